"""Reading the field's names off what the phases found: markers, JSON fields, tool format.

Strategy: the pattern of a call says everything; names are given to its texts by where they are, and no text is cut.
A call that is JSON when its slots are filled is JSON-native, and its keys are read by parsing it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from toolgram.derive.arguments import json_value, positions, python_dict
from toolgram.derive.content import Content
from toolgram.derive.python_skeleton import is_python
from toolgram.derive.reasoning import Reasoning
from toolgram.derive.result import (
    ArgumentSlot,
    ArgumentsStyle,
    CallsFormat,
    JsonFields,
    MarkerRegistry,
    Slot,
    ToolFormat,
    filled,
)
from toolgram.observing.probes import CALLS

_NAME, _ID, _INDEX = "qname", "qid", "907"
_HOLDING = (Slot.NAME, Slot.ARGUMENTS)


def name_markers(
    reasoning: Reasoning, content: Content, calls: CallsFormat | None
) -> tuple[MarkerRegistry, JsonFields, ToolFormat]:
    """Return the markers, JSON fields and tool format that follow from the findings."""
    around = {"reasoning_start": reasoning.start, "reasoning_end": reasoning.end, "content_lead": content.lead}
    around |= {"content_start": content.start, "content_end": content.end}
    if calls is None:
        return MarkerRegistry(**around), JsonFields(), ToolFormat.NONE
    around |= {"tool_section_start": calls.section_start, "tool_section_end": calls.section_end}
    around["call_separator"] = calls.separator
    found = _json_call(calls)
    if found is not None:
        start, end, fields = found
        around |= {"per_call_start": start, "per_call_end": end}
        return MarkerRegistry(**around), fields, ToolFormat.JSON_NATIVE
    around |= _tag_markers(calls)
    return MarkerRegistry(**around), JsonFields(), _tag_format(calls)


def _json_call(calls: CallsFormat) -> tuple[str, str, JsonFields] | None:
    """Return the texts around a call that is one JSON object, and its fields."""
    values = {Slot.NAME: _NAME, Slot.ID: _ID, Slot.INDEX: _INDEX, Slot.ARGUMENTS: calls.arguments.shown}
    text = filled(calls.pattern, values)
    if Slot.NAME not in calls.pattern:
        return None
    places = {slot: len(filled(calls.pattern[: calls.pattern.index(slot)], values)) for slot in _HOLDING}
    for at in positions(text[: places[Slot.NAME]], "{"):
        found = json_value(text, at)
        if found is None and calls.arguments.style is ArgumentsStyle.PYTHON_DICT:
            found = python_dict(text, at)
        if found is not None and found[1] > max(places.values()):
            return text[:at], text[found[1] :], _json_fields(found[0], calls)
    return None


def _json_fields(value: dict[str, Any], calls: CallsFormat) -> JsonFields:
    names: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    for path, item in _walk(value):
        if item == _NAME:
            names |= {"name_field": path[-1], "function_field": path[-2] if len(path) > 1 else ""}
        elif path[-1] == _NAME:
            names["name_is_key"] = True
        elif item == _ID:
            names["id_field"] = path[-1]
        elif str(item) == _INDEX:
            names["gen_id_field"] = path[-1]
        elif _is_arguments(item):
            names["args_field"] = path[-1]
        elif not isinstance(item, (dict, list)) and path[-1] not in CALLS[0].arguments:
            constants[".".join(path)] = item
    holder = value.get(names.get("function_field", ""), value)
    names["flat_arguments"] = isinstance(holder, dict) and any(key in holder for key in CALLS[0].arguments)
    wrapped = calls.section_start.rstrip().endswith("[") or str(calls.pattern[0]).split("{")[0].rstrip().endswith("[")
    return JsonFields(**names, array_wrapped=wrapped, constants=constants)


def _walk(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    items = value.items() if isinstance(value, dict) else ()
    for key, item in items:
        yield (*path, key), item
        if not _is_arguments(item):
            yield from _walk(item, (*path, key))


def _is_arguments(item: Any) -> bool:
    found = json_value(item, 0) if isinstance(item, str) else (item, 0)
    return found is not None and bool(found[0] == CALLS[0].arguments)


def _tag_markers(calls: CallsFormat) -> dict[str, str]:
    """Return the constant texts of a call that is not JSON, and of its arguments, by where they are."""
    found = {"per_call_start": _text(calls.pattern[0]), "per_call_end": _text(calls.pattern[-1])}
    found["name_end"] = _text_after(calls.pattern, Slot.NAME)
    form = calls.arguments
    if form.style is ArgumentsStyle.TAGGED:
        found |= {"argument_start": _text(form.pattern[0]), "argument_end": _text(form.pattern[-1])}
        found |= {"key_end": _text_after(form.pattern, ArgumentSlot.KEY), "argument_separator": form.separator}
    return found


def _text(part: object) -> str:
    return part if isinstance(part, str) else ""


def _text_after(pattern: Sequence[object], slot: object) -> str:
    """Return the text after a slot."""
    return _text(pattern[pattern.index(slot) + 1]) if slot in pattern[:-1] else ""


def _tag_format(calls: CallsFormat) -> ToolFormat:
    if calls.arguments.style is not ArgumentsStyle.TAGGED:
        return ToolFormat.TAG_WITH_JSON
    return ToolFormat.PYTHON_CALLS if is_python(calls) else ToolFormat.TAG_WITH_TAGGED
