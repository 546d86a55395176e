"""Calls that are written as Python: `name(key=value, ...)`, in a list or in markers.

Strategy: the fragments of the shipped pythonic formats, with this template's markers.  Python's own brackets tell where
a call ends, so the rest is a name, a parenthesis, and what is between two calls.  Models write Python, whatever
became of quotes and commas in the history that a template prints; if it prints no Python, Python is read all the
same, and that is left unexplained.
"""

from __future__ import annotations

from toolgram.derive.errors import NotExpressible
from toolgram.derive.format_builder import TEXTS, FormatBuilder, Path, add_closers, pieces
from toolgram.derive.result import ArgumentSlot, ArgumentsStyle, CallsFormat, Slot, ValueEncoding

_PYTHON = {ValueEncoding.JSON, ValueEncoding.PYTHON, ValueEncoding.PYTHON_REPR, ValueEncoding.JSON_ESCAPED}

_MARKS = {"NAME": "", "OPEN_BRACKET": "[", "CLOSE_BRACKET": "]", "COMMA": ","}  # as the shared grammar has them


def is_python(calls: CallsFormat) -> bool:
    """Return whether the calls are Python calls with keyword arguments."""
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
    if form.separator.strip() not in ("", ",") or form.pattern[:1] != (ArgumentSlot.KEY,):
        return False
    if not form.values or any(style.before.strip() not in ("=", '="', "='") for style in form.values.values()):
        return False
    text, start = form.values["string"], (calls.section_start + "".join(map(str, pattern[:at]))).strip()
    return not start.removesuffix("[") or text.encoding is not ValueEncoding.RAW or text.before.strip() != "="


def is_lossy(calls: CallsFormat) -> bool:
    """Return whether Python calls are printed so that they are no Python: values without their quotes, with too many,
    or with others inside that nothing escapes, or no comma between two arguments."""
    form = calls.arguments
    if form.separator.strip() != ",":
        return True
    quotes = {style.before.strip() for style in form.values.values()} & {'="', "='"}
    kinds = {kind for kind, style in form.values.items() if style.before.strip() != "=" and kind != "string"}
    bare = any(style.before.strip() == "=" and style.encoding not in _PYTHON for style in form.values.values())
    raw = any(style.before.strip() != "=" and style.encoding is ValueEncoding.RAW for style in form.values.values())
    return bare or raw or bool(quotes and kinds)


def add_python_calls(builder: FormatBuilder, calls: CallsFormat) -> list[str]:
    """Add the calls, and return the states after a call, which text leaves."""
    at = calls.pattern.index(Slot.NAME)
    before = "".join(part for part in calls.pattern[:at] if isinstance(part, str))
    closing = calls.pattern[at + 3] if len(calls.pattern) > at + 3 else ""
    assert isinstance(closing, str)
    start = (calls.section_start + before).strip()
    end = (closing.lstrip().removeprefix(")") + calls.section_end).strip()
    opening, ending = pieces(start.removesuffix("[")), pieces(end.removeprefix("]"))
    if not opening and not start.endswith("["):
        raise NotExpressible("nothing before a Python call shows where it begins")
    builder.blanks()
    builder.run("NAME", r"[^\W\d]", r"[\w.\-]", 256)
    if any(builder.literal(name, text) != name for name, text in _MARKS.items() if text):
        raise NotExpressible("a bracket or a comma of Python means something else in free text")
    builder.use("python_first_call", {})
    builder.use("python_calls" if opening else "python_list", {})
    builder.use("python_line_call", {})
    builder.about["line_calls"] = "PARSING_LINE_NAME_COMPLETED"
    path = Path(builder, list(TEXTS)).markers("TOOL_CALLS", opening, "WAITING_FOR_TOOL_LIST")
    rule = [*path.symbols, "list", "_ws" if opening or ending else ""]
    if opening:
        builder.use("python_sole_call", {})
        inside = bool(calls.section_start.strip())  # what is around each call separates two of them
        between = closing.lstrip().removeprefix(")") + calls.separator + before if inside else calls.separator
        rule.append(_one_by_one(builder, between.strip()))
    else:
        builder.to("OPEN_BRACKET", ["content", "reasoning"], "WAITING_FOR_TOOL_KEY")
    leaving = ["TOOL_COMPLETE"]
    rule.append(add_closers(builder, "TOOL_CALLS_END", ending, leaving, leaving))
    builder.owe(opening, ending)
    builder.rules += [f"calls.3: {' '.join(rule)}", f"list: _listed_calls{' | call' if opening else ''}"]
    builder.take("python_calls", "_listed_calls", "call", "WS", *_MARKS)
    return leaving


def _one_by_one(builder: FormatBuilder, separator: str) -> str:
    """Add calls after one another without a list, with a separator between them or without; return their rule."""
    sole = "PARSING_SOLE_NAME_COMPLETED"
    builder.to("NAME", "TOOL_COMPLETE", sole, "name")
    if not separator or builder.means_nothing(separator):
        return "(call _ws)*"
    trigger = builder.literal("SEPARATOR", separator)
    waiting = builder.state("WAITING_FOR_NEXT_CALL", "held")
    builder.to(trigger, "TOOL_COMPLETE", waiting)
    builder.loop_blanks(waiting)
    builder.to("NAME", waiting, sole, "name")
    return f"(({trigger} _ws)? call _ws)*"
