"""What a format's machine and examples say about the markers of reasoning.

Strategy: the transitions of a trigger show whether it opens reasoning, closes it, or also does something else. If
channels share their markers, no single marker opens a thought; the examples show the text before and after one.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from toolgram.errors import ToolgramError
from toolgram.events import Dropped, Reasoning
from toolgram.export import export_request, expression
from toolgram.export.expressions import NOTHING, behind
from toolgram.formats import Format
from toolgram.observing.paths import canonical_outputs
from toolgram.program.state import StateProgram


def crossing(states: list[StateProgram], inwards: bool) -> set[str]:
    """Return the triggers on which a machine enters reasoning, or leaves it."""
    return {
        trigger
        for state in states
        for trigger, move in state.row.items()
        if (state.meaning == "reasoning") != inwards and (move.dest.meaning == "reasoning") == inwards
    }


def only_about_reasoning(trigger: str, states: list[StateProgram], initial: StateProgram | None) -> bool:
    """Return whether a marker only opens reasoning, at the beginning of an output, or only closes it, or is dropped."""
    rows = [(state, state.row[trigger]) for state in states if trigger in state.row]
    opens = all(move.dest.meaning == "reasoning" for _, move in rows)
    begins = initial is not None and trigger in initial.row
    inside = [move.dest for state, move in rows if state.meaning == "reasoning"]
    closes = bool(inside) and all(dest.is_text and dest.meaning != "reasoning" for dest in inside)
    dropped = all(
        state.is_text and move.dest.meaning == "content" for state, move in rows if state.meaning != "reasoning"
    )
    return bool(rows) and ((opens and begins) or (closes and dropped))


def opens_and_closes(trigger: str, states: list[StateProgram]) -> bool:
    """Return whether a marker that opens reasoning also closes it, and does nothing else."""
    rows = [(state.meaning == "reasoning", state.row[trigger].dest) for state in states if trigger in state.row]
    return all(dest.is_text and (dest.meaning == "reasoning") != inside for inside, dest in rows)


def around_a_thought(fmt: Format, starts: Collection[str], ends: Collection[str]) -> tuple[str, str]:
    """Return what opens and what closes a thought in the first example with one: one of the markers `starts` and one of
    `ends`, or else all the text there. Without examples, return any of those; "" if there are none."""
    opening, closing = _shown_around_a_thought(fmt)
    return (
        _marker_in(opening, starts) or opening.strip() or min(starts, default=""),
        _marker_in(closing, ends) or closing.strip() or min(ends, default=""),
    )


@lru_cache(maxsize=64)
def exports_write_a_thought(fmt: Format, prefix: str, opening: str) -> bool:
    """Return whether the examples show a thought after a prefix, so that exports allow one there."""
    try:
        root, _ = expression(fmt, export_request(tool_choice="none"), prefix, str)
    except ToolgramError:
        return False
    shown, _ = _shown_around_a_thought(fmt)  # with blanks, and with the end of the prompt
    first = max((text for text in fmt.program.literals.values() if shown.startswith(text)), key=len, default=opening)
    return any(behind(root, text) != NOTHING for text in (opening, shown, first) if text)


def _marker_in(text: str, markers: Collection[str]) -> str:
    """Return the marker in a text, with a blank before a word, because tokens begin with one."""
    for marker in sorted(markers):
        before, found, _ = text.partition(marker)
        if found:
            return before[len(before.rstrip()) :] + marker if marker[:1].isalnum() else marker
    return ""


def _shown_around_a_thought(fmt: Format) -> tuple[str, str]:
    """Return the text before the first thought of an example, and the text after it up to the end of a marker."""
    for prefix, output, tools in canonical_outputs(fmt):
        parser = fmt.parser(tools, "", keep_message=False)
        opening, closing, inside = "", "", False
        for event in (*parser.feed(prefix + output), *parser.close("stop")):
            if isinstance(event, Reasoning):
                inside = True
            elif not inside:
                opening = opening + event.source if isinstance(event, Dropped) else ""
            elif not closing.strip():
                closing += event.source
        if inside:
            return opening, closing
    return "", ""
