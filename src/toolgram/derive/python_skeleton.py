"""Calls that are written as Python: `name(key=value, ...)`, in a list or in markers.

Strategy: the machine of the shipped pythonic format, with this template's markers.  Python's own brackets tell where
a call ends, so the rest is a name, a parenthesis, and what stands between two calls.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolgram.derive.drafts import RECOVERING, START, Draft
from toolgram.derive.paths import Path, each_optional, pieces
from toolgram.derive.rebuilding import NotExpressible
from toolgram.derive.result import ArgumentSlot, ArgumentsStyle, CallsFormat, DiffAnalysisResult, Slot, ValueEncoding

_PYTHON = {ValueEncoding.JSON, ValueEncoding.PYTHON, ValueEncoding.PYTHON_REPR, ValueEncoding.JSON_ESCAPED}


def is_python(calls: CallsFormat) -> bool:
    """Whether the calls are Python calls with keyword arguments."""
    form = calls.arguments
    pattern = calls.pattern
    if form.style is not ArgumentsStyle.TAGGED or Slot.NAME not in pattern:
        return False
    at = pattern.index(Slot.NAME)
    after = pattern[at + 1 : at + 4]
    opening = after[0] if after and isinstance(after[0], str) else ""
    closing = after[2] if len(after) > 2 and isinstance(after[2], str) else ""
    if opening.strip() != "(" or after[1:2] != (Slot.ARGUMENTS,) or not closing.lstrip().startswith(")"):
        return False
    if form.separator.strip() != "," or form.pattern[:1] != (ArgumentSlot.KEY,):
        return False
    for style in form.values.values():
        bare = style.before.strip() == "=" and style.encoding in _PYTHON
        quoted = style.before.strip() in ('="', "='") and style.encoding in (*_PYTHON, ValueEncoding.RAW)
        if not bare and not quoted:
            return False
    return True


def add_python_calls(draft: Draft, result: DiffAnalysisResult, entries: Sequence[str]) -> list[str]:
    """Add the calls. `entries` are the states of free text; returns the states behind a call, which text leaves."""
    calls = result.calls
    assert calls is not None
    at = calls.pattern.index(Slot.NAME)
    before = "".join(part for part in calls.pattern[:at] if isinstance(part, str))
    closing = calls.pattern[at + 3] if len(calls.pattern) > at + 3 else ""
    assert isinstance(closing, str)
    start = (calls.section_start + before).strip()
    end = (closing.lstrip().removeprefix(")") + calls.section_end).strip()
    listed = start.endswith("[")
    opening, ending = pieces(start.removesuffix("[")), pieces(end.removeprefix("]"))
    if not opening and not listed:
        raise NotExpressible("nothing stands before a Python call, by which its beginning could be told")
    recovering = draft.state(RECOVERING, "malformed")
    done = draft.state("TOOL_COMPLETE", "content")
    path = Path(draft, [*entries, done, recovering])
    for name in draft.literals("TOOL_CALLS", opening):
        path.step(name, draft.state("WAITING_FOR_TOOL_LIST", "held"))
    if not opening:
        path.states.remove(recovering)
    rule = path.text() if path.symbols else ""
    alone = _add_list(draft, path.states, done, recovering, bare=bool(opening))
    rule = f"{rule} list{' _ws' if ending or alone else ''}"
    if alone:
        rule += f" {_one_by_one(draft, calls.separator.strip(), done, alone)}"
    leaving = [done]
    names = draft.literals("TOOL_CALLS_END", ending)
    closers = each_optional(names)
    for name in names:
        dest = draft.state("CALLS_COMPLETE", "content")
        draft.to(name, [leaving[-1], recovering], dest)
        leaving.append(dest)
    draft.rules += [f"calls.3: {rule} {closers}".rstrip()]
    listing = "OPEN_BRACKET _ws call _ws (COMMA _ws call _ws)* (COMMA _ws)? CLOSE_BRACKET"
    draft.rules += [f"list: {listing}{' | call' if alone else ''}", "call: NAME arguments"]
    draft.imports.append(".common.python (arguments)")
    return leaving


def _one_by_one(draft: Draft, separator: str, done: str, alone: str) -> str:
    """Calls behind one another without a list, with a separator between them or without; their rule."""
    draft.to("NAME", done, alone, "name")
    if not separator or separator == "," or not pieces(separator):
        return "(call _ws)*"
    name = draft.literal("SEPARATOR", separator)
    waiting = draft.state("WAITING_FOR_NEXT_CALL", "held")
    draft.to(name, done, waiting)
    draft.loop_blanks(waiting)
    draft.to("NAME", waiting, alone, "name")
    return f"(({name} _ws)? call _ws)*"


def _add_list(draft: Draft, opened: Sequence[str], done: str, recovering: str, bare: bool) -> str:
    """A list of calls; with `bare`, one call without a list as well. Returns the state behind the name of that one."""
    waiting = draft.state("WAITING_FOR_TOOL_KEY", "held")
    named = draft.state("PARSING_NAME_COMPLETED", "held")
    next_named = draft.state("PARSING_NEXT_NAME_COMPLETED", "held")
    empty = draft.state("EMPTY_ARGUMENTS", "held")
    arguments = draft.state("PARSING_ARGUMENTS", "arguments", "python")
    completed = draft.state("PARSING_ARGUMENTS_COMPLETED")
    following = draft.state("WAITING_FOR_NEXT_TOOL")
    bracket, closing = draft.literal("OPEN_BRACKET", "["), draft.literal("CLOSE_BRACKET", "]")
    comma = draft.literal("COMMA", ",")
    name = draft.run("NAME", r"[^\W\d]", r"[\w.\-]", 256)
    draft.to(bracket, opened, waiting)
    draft.loop_blanks(waiting, empty, completed, following)
    draft.to(name, waiting, named, "name")
    draft.to(name, following, next_named, "name")
    draft.to("object_start", [named, next_named], arguments, "start_call")
    draft.to("object_empty", named, empty, "no_arguments")
    draft.to("object_empty", next_named, completed, "start_call", "no_arguments", "end_call")
    draft.to("object_end", arguments, completed, "end_call")
    draft.to(comma, empty, following, "start_call", "end_call")
    draft.to(closing, empty, done, "start_call", "end_call")
    draft.to(comma, completed, following)
    draft.to(closing, [completed, following], done)
    draft.to("malformed", [completed, following], START)
    draft.to("recovered", recovering, completed)
    alone = ""
    if bare:
        alone = draft.state("PARSING_SOLE_NAME_COMPLETED", "held")
        sole = draft.state("PARSING_SOLE_ARGUMENTS", "arguments", "python")
        draft.to(name, opened, alone, "name")
        draft.to("object_start", alone, sole, "start_call")
        draft.to("object_empty", alone, done, "start_call", "no_arguments", "end_call")
        draft.to("object_end", sole, done, "end_call")
    return alone
