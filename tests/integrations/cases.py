"""What models say, in every shipped format: the cases of the vLLM matrix.

A case is written down once, as reasoning, content and calls; a *writer* of `writers.py` puts it into a format's
notation.  What the package's own whole-text parse makes of the text is what every path through a server has to give,
and where a format has a writer, that parse is held to what was written.  A format without one is tried with its own
example.
"""

import json
from dataclasses import dataclass
from typing import Any

import toolgram
from tests.integrations.writers import WRITERS, Turn, can_write, turn_of
from tests.tables import table


@dataclass(frozen=True)
class Case:
    """A turn as a text of a format; `turn` is None where only the package's own parse says what it means."""

    format: str
    label: str
    text: str
    turn: Turn | None
    prefix: str = ""
    finish: str = "stop"


TURNS = tuple(turn_of(row) for row in table(__file__, "turns"))
TOOLS: list[dict[str, Any]] = table(__file__, "tools")


def can_reason(name: str) -> bool:
    states = toolgram.get_format(name).machine_dict["machine"]["states"]
    return any("reasoning" in state.get("tags", ()) for state in states if isinstance(state, dict))


def without_stop(fmt: toolgram.Format, text: str) -> str:
    """A turn without the marker that ends it: an engine stops there and asks no grammar."""
    ends = [fmt.program.literals[each] for each in fmt.spec.stop or () if each in fmt.program.literals]
    return text.removesuffix(next((end for end in ends if text.endswith(end)), ""))


def cases(name: str) -> list[Case]:
    writer = WRITERS.get(name)
    example = toolgram.get_format(name).example
    found = [Case(name, "its own example", example, None)]
    for share in (1, 2, 3):
        cut = example[: len(example) * share // 4]
        found.append(Case(name, f"its own example, cut {share}/4", cut, None, finish="length"))
    if writer is None:
        return found
    for turn in TURNS:
        if (turn.reasoning and not can_reason(name)) or not can_write(name, turn):
            continue
        text = writer(turn)
        found.append(Case(name, turn.label, text, turn))
        if turn.label in ("content, call", "content, three calls"):
            found.append(Case(name, f"{turn.label}, cut off", text[: len(text) * 4 // 5], None, finish="length"))
        if turn.reasoning and turn.label in ("reasoning, content", "reasoning, content, call"):
            end = text.index(turn.reasoning)
            found.append(Case(name, f"{turn.label}, opened by the prompt", text[end:], turn, prefix=text[:end]))
            found.append(Case(name, f"{turn.label}, never closed", text[: end + len(turn.reasoning)], None))
    return found


def meant(case: Case) -> toolgram.Message:
    """What the package's own whole-text parse makes of a case; held to what was written, where that is known."""
    reason = "length" if case.finish == "length" else None
    message = toolgram.get_format(case.format).parse(case.text, TOOLS, case.prefix, reason)
    turn = case.turn
    if turn is not None:
        said = " ".join(part for part in (turn.content, turn.after) if part) or None
        assert message.content == said, case
        assert message.reasoning == (turn.reasoning or None), case
        calls = [(call.name, json.loads(call.arguments), call.status) for call in message.tool_calls]
        assert calls == [(name, arguments, "complete") for name, arguments in turn.calls], case
    return message
