"""Writing an assistant's turn from an analysis: the inverse of what the phases do, and their check.

Strategy: concatenation, and nothing else.  Whatever the analysis has understood, this writes character for character
as the template would; so a message that was not used in the analysis shows whether it understood rightly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolgram.derive.arguments import dumps, encode
from toolgram.derive.result import (
    ArgumentPattern,
    ArgumentsFormat,
    ArgumentSlot,
    ArgumentsStyle,
    CallsFormat,
    DiffAnalysisResult,
    Part,
    Parts,
    Slot,
    ValueEncoding,
    ValueStyle,
)
from toolgram.observing.probes import Call, json_type


class NotExpressible(Exception):
    """The template does not print such a message, or not all of it."""


def rebuild(
    result: DiffAnalysisResult, content: str | None = None, reasoning: str | None = None, calls: Sequence[Call] = ()
) -> str:
    """The turn that the template prints for this message, role header included.

    Raises NotExpressible where the analysis says that the template does not print all parts of it.
    """
    parts = parts_of(content, reasoning, calls)
    shape = result.shapes.get(parts)
    if shape is None or shape.dropped:
        raise NotExpressible("the template does not print " + ", ".join(sorted(part.value for part in parts)))
    if len(calls) > 1 and result.calls is not None and not result.calls.parallel:
        raise NotExpressible("the template does not print several calls")
    written = [result.header, shape.texts[0]]
    for part, text in zip(shape.parts, shape.texts[1:], strict=True):
        written += [_write_part(result, part, content or "", reasoning or "", calls), text]
    return "".join(written)


def parts_of(content: str | None, reasoning: str | None, calls: Sequence[Call]) -> Parts:
    """Which parts a message has."""
    given = ((Part.CONTENT, content), (Part.REASONING, reasoning), (Part.CALLS, calls))
    return frozenset(part for part, value in given if value)


def _write_part(result: DiffAnalysisResult, part: Part, content: str, reasoning: str, calls: Sequence[Call]) -> str:
    if part is Part.CALLS and result.calls is not None:
        return write_calls(result.calls, calls)
    text, strips = (content, result.content_strips) if part is Part.CONTENT else (reasoning, result.reasoning_strips)
    text = text.lstrip() if strips.left else text
    return text.rstrip() if strips.right else text


def write_calls(form: CallsFormat, calls: Sequence[Call]) -> str:
    """The calls of a turn, section included."""
    start, end = (form.section_start, form.section_end)
    if len(calls) == 1 and form.single is not None:
        start, end = form.single
    written = [write_call(form, call.name, call.arguments, call.id, at) for at, call in enumerate(calls)]
    return start + form.separator.join(written) + end


def write_call(form: CallsFormat, name: str, arguments: Mapping[str, Any], call_id: str, index: int) -> str:
    """One call of a turn."""
    pattern = form.pattern if arguments or form.without_arguments is None else form.without_arguments
    texts = {
        Slot.NAME: name,
        Slot.ID: call_id,
        Slot.INDEX: str(form.index_base + index),
        Slot.ARGUMENTS: write_arguments(form.arguments, arguments),
    }
    return "".join(part if isinstance(part, str) else texts[part] for part in pattern)


def write_arguments(form: ArgumentsFormat, arguments: Mapping[str, Any]) -> str:
    """The arguments of a call."""
    match form.style:
        case ArgumentsStyle.JSON:
            return dumps(dict(arguments), form.json)
        case ArgumentsStyle.JSON_STRING:
            return dumps(dumps(dict(arguments), form.json), form.json)
        case ArgumentsStyle.PYTHON_DICT:
            return repr(dict(arguments))
    pairs = sorted(arguments.items()) if form.json.sort_keys else list(arguments.items())
    written = [_write_argument(form, key, value) for key, value in pairs]
    return form.separator.join(text for text in written if text is not None)


def _write_argument(form: ArgumentsFormat, key: str, value: Any) -> str | None:
    style = form.values.get(json_type(value))
    if style is not None and style.encoding is ValueEncoding.OMITTED:
        return None
    texts = form.pattern if style is None else framed(form.pattern, style)
    slots = {ArgumentSlot.KEY: key, ArgumentSlot.VALUE: encode(value, style) if style else str(value)}
    return "".join(part if isinstance(part, str) else slots[part] for part in texts)


def framed(pattern: ArgumentPattern, style: ValueStyle) -> ArgumentPattern:
    """The pattern of an argument with the texts that this type has around its value."""
    texts = list(pattern)
    at = texts.index(ArgumentSlot.VALUE)
    after = texts[at + 1 : at + 2]
    texts[at + 1 : at + 1 + sum(isinstance(part, str) for part in after)] = [style.after]
    before = texts[at - 1 : at] if at else []
    texts[at - sum(isinstance(part, str) for part in before) : at] = [style.before]
    return tuple(part for part in texts if part != "")
