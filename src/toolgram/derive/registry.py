"""Reading the field's names off what the phases found: markers, JSON fields, tool format.

Strategy: the pattern of a call says everything; names are given to its pieces by where they stand.  A call that is JSON
when its slots are filled is JSON-native, and its keys are read by parsing it.  In any other call the markers before
the name are the call's, except the last, which is the name's where the name stands inside it or where it is closed
right behind.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from toolgram.derive.arguments import python_dict
from toolgram.derive.comparing import markers_of, mirrors
from toolgram.derive.content import Content
from toolgram.derive.conversation import CALLS
from toolgram.derive.reasoning import Reasoning
from toolgram.derive.rebuilding import write_arguments
from toolgram.derive.result import (
    ArgumentSlot,
    ArgumentsStyle,
    CallIdPosition,
    CallsFormat,
    JsonFields,
    MarkerRegistry,
    Slot,
    ToolFormat,
)

_NAME, _ID, _INDEX = "qname", "qid", "907"
_OPEN = re.compile(r"(?:<[^<>\s][^<>]*|\[[^\[\]\s][^\[\]]*|【[^【】]*|\{\{[^{}]*|«[^«»]*)\Z")
_CLOSE = re.compile(r"\A[\"']?\s*/?(?:>+|\]+|】|\}\}|»)")
_OPENED = re.compile(r"\{\s*(?P<quote>[\"']?)(?P<key>[A-Za-z_]\w*)(?P=quote)\s*:\s*(?P<end>[\"']?)\Z")
_SEPARATED = re.compile(r"(?P<end>[\"']?)\s*(?P<comma>,?)\s*(?P<quote>[\"']?)(?P<key>[A-Za-z_]\w*)(?P=quote)\s*:\s*")
_FENCE = re.compile(r"(`{3,}|~{3,})(\w*)")
_decode = json.JSONDecoder(strict=False).raw_decode


@dataclass(slots=True)
class Pieces:
    """The texts of a call around its name and arguments, and of its id."""

    before_name: str = ""
    after_name: str = ""
    before_arguments: str = ""
    after_arguments: str = ""
    before_id: str = ""
    after_id: str = ""


def name_markers(
    reasoning: Reasoning, content: Content, calls: CallsFormat | None
) -> tuple[MarkerRegistry, JsonFields, ToolFormat, CallIdPosition]:
    """The markers, JSON fields, tool format and id position that follow from the findings."""
    around: dict[str, str] = {
        "reasoning_start": reasoning.start,
        "reasoning_end": reasoning.end,
        "content_start": content.start,
        "content_end": content.end,
    }
    if calls is None:
        return MarkerRegistry(**around), JsonFields(), ToolFormat.NONE, CallIdPosition.NONE
    around |= {
        "tool_section_start": calls.section_start,
        "tool_section_end": calls.section_end,
        "call_separator": calls.separator,
    }
    found = _json_call(calls) or _almost_json(calls)
    if found is not None:
        start, end, fields = found
        around |= {"per_call_start": start, "per_call_end": end}
        return MarkerRegistry(**around), fields, ToolFormat.JSON_NATIVE, id_position(calls)
    around |= _tag_markers(calls) | _argument_markers(calls)
    fields = JsonFields(almost=_nearly(calls) is not None)
    return MarkerRegistry(**around), fields, _tag_format(calls), id_position(calls)


def id_position(calls: CallsFormat) -> CallIdPosition:
    """Where the id stands among name and arguments."""
    order = [part for part in calls.pattern if part in (Slot.NAME, Slot.ARGUMENTS, Slot.ID)]
    if Slot.ID not in order:
        return CallIdPosition.NONE
    at = order.index(Slot.ID)
    if at > order.index(Slot.ARGUMENTS):
        return CallIdPosition.POST_ARGS
    named = Slot.NAME in order and at > order.index(Slot.NAME)
    return CallIdPosition.BETWEEN_FUNC_AND_ARGS if named else CallIdPosition.PRE_FUNC_NAME


def _json_call(calls: CallsFormat) -> tuple[str, str, JsonFields] | None:
    """The texts around a call that is one JSON object, and its fields."""
    filled = {Slot.NAME: _NAME, Slot.ID: _ID, Slot.INDEX: _INDEX}
    filled[Slot.ARGUMENTS] = write_arguments(calls.arguments, CALLS[0].arguments)
    text = ""
    places: dict[str | Slot, int] = {}
    for part in calls.pattern:
        places.setdefault(part, len(text))
        text += part if isinstance(part, str) else filled[part]
    if Slot.NAME not in places:
        return None
    for at in _braces(text, places[Slot.NAME]):
        found = _object_at(text, at, calls.arguments.style is ArgumentsStyle.PYTHON_DICT)
        if found is not None and found[1] > max(places[Slot.NAME], places[Slot.ARGUMENTS]):
            return text[:at], text[found[1] :], _json_fields(found[0], calls)
    return None


def _almost_json(calls: CallsFormat) -> tuple[str, str, JsonFields] | None:
    """The same for a call that would be an object but for the kind of its quotes, or its last brace."""
    found = _nearly(calls)
    if found is None:
        return None
    opened, separated = found
    quoted = opened["quote"] and opened["end"] and separated["end"] and separated["comma"] and separated["quote"]
    if not quoted:
        return None
    after = str(calls.pattern[4]).lstrip() if len(calls.pattern) > 4 else ""
    keys = opened["key"], separated["key"]
    fields = JsonFields(name_field=keys[0], args_field=keys[1], order=keys, almost=True)
    return str(calls.pattern[0])[: opened.start()], after.removeprefix("}"), fields


def _nearly(calls: CallsFormat) -> tuple[re.Match[str], re.Match[str]] | None:
    """What stands before and behind the name of a call, where both read like parts of a JSON object."""
    if len(calls.pattern) not in (4, 5) or calls.pattern[1::2] != (Slot.NAME, Slot.ARGUMENTS):
        return None
    if calls.arguments.style is ArgumentsStyle.TAGGED:
        return None
    opened, separated = _OPENED.search(str(calls.pattern[0])), _SEPARATED.fullmatch(str(calls.pattern[2]))
    return (opened, separated) if opened and separated and opened["key"] != separated["key"] else None


def _object_at(text: str, at: int, python: bool) -> tuple[dict[str, Any], int] | None:
    """The object that begins there, and where it ends; a dict of Python where the arguments are one."""
    try:
        value, end = _decode(text, at)
    except ValueError:
        return python_dict(text, at) if python else None
    return (value, end) if isinstance(value, dict) else None


def _braces(text: str, before: int) -> Iterator[int]:
    at = text.find("{")
    while 0 <= at < before:
        yield at
        at = text.find("{", at + 1)


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
    order = tuple(key for key in holder if key not in (*CALLS[0].arguments, _NAME)) if isinstance(holder, dict) else ()
    wrapped = calls.section_start.rstrip().endswith("[") or str(calls.pattern[0]).split("{")[0].rstrip().endswith("[")
    return JsonFields(**names, array_wrapped=wrapped, order=order, constants=constants)


def _walk(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    items = value.items() if isinstance(value, dict) else ()
    for key, item in items:
        yield (*path, key), item
        if not _is_arguments(item):
            yield from _walk(item, (*path, key))


def _is_arguments(item: Any) -> bool:
    if isinstance(item, str):
        try:
            return bool(json.loads(item) == CALLS[0].arguments)
        except ValueError:
            return False
    return bool(item == CALLS[0].arguments)


def _pieces(calls: CallsFormat) -> Pieces:
    """The texts directly around each slot of the pattern."""
    pieces = Pieces()
    named = False
    padded = ["", *calls.pattern, ""]
    for before, part, after in zip(padded, padded[1:], padded[2:], strict=False):
        texts = [each if isinstance(each, str) else "" for each in (before, after)]
        if part is Slot.NAME and not named:
            pieces.before_name, pieces.after_name = texts
            named = True
        elif part is Slot.ARGUMENTS:
            pieces.before_arguments, pieces.after_arguments = texts
        elif part is Slot.ID:
            pieces.before_id, pieces.after_id = texts
    return pieces


def _tag_markers(calls: CallsFormat) -> dict[str, str]:
    """The markers around name, arguments and id of a call that is not JSON."""
    pieces = _pieces(calls)
    call_start, name_prefix = _split_before_name(pieces.before_name, pieces.after_name)
    id_prefix = pieces.before_id
    if calls.pattern[1:2] == (Slot.ID,):
        name_prefix = call_start + name_prefix
        call_start, id_prefix = _split_before_name(id_prefix, pieces.after_id)
    name_suffix, arguments_start = _split_after_name(pieces.after_name, name_prefix)
    slots = [part for part in calls.pattern if isinstance(part, Slot)]
    after_name = slots[slots.index(Slot.NAME) + 1 :][:1] if Slot.NAME in slots else []
    if after_name != [Slot.ARGUMENTS]:
        name_suffix = "" if after_name == [Slot.ID] else pieces.after_name
        arguments_start = pieces.before_arguments
    arguments_end, close, call_end = _split_after_arguments(
        pieces.after_arguments, arguments_start or pieces.before_arguments, name_prefix
    )
    fence = _FENCE.search(pieces.before_arguments)
    return {
        "per_call_start": call_start,
        "per_call_end": call_end,
        "function_name_prefix": name_prefix,
        "function_name_suffix": name_suffix,
        "function_close": close,
        "function_namespace": name_prefix if re.fullmatch(r"[A-Za-z_]\w*[.:/]", name_prefix) else "",
        "arguments_start": arguments_start,
        "arguments_end": arguments_end,
        "call_id_prefix": id_prefix,
        "call_id_suffix": "" if pieces.after_id in (pieces.before_arguments, pieces.before_name) else pieces.after_id,
        "code_block_marker": fence.group(1) if fence else "",
        "code_block_language": fence.group(2) if fence else "",
    }


def _split_before_name(text: str, after: str) -> tuple[str, str]:
    """Split what precedes the name into the call's start and the name's prefix."""
    inside = _OPEN.search(text)
    if inside is not None and _CLOSE.match(after):
        return text[: inside.start()], inside.group()
    markers = markers_of(text)
    if not markers:
        return text, ""
    last = text.rindex(markers[-1])
    closes = markers_of(after)
    if markers[-1][0].isalnum() or (closes and mirrors(markers[-1], closes[0])):
        return text[:last], text[last:]
    return text, ""


def _split_after_name(text: str, prefix: str) -> tuple[str, str]:
    """Split what follows the name into the name's suffix and the arguments' start."""
    closing = _CLOSE.match(text) if _OPEN.search(prefix) else None
    if closing is not None:
        return text[: closing.end()], text[closing.end() :]
    markers = markers_of(text)
    if markers and mirrors(prefix, markers[0]):
        end = text.index(markers[0]) + len(markers[0])
        return text[:end], text[end:]
    return ("", text) if markers else (text, "")


def _split_after_arguments(text: str, arguments_start: str, name_prefix: str) -> tuple[str, str, str]:
    """Split what follows the arguments into their end, the function's close and the call's end."""
    ends = {"arguments": 0, "function": 0}
    at = 0
    for marker in markers_of(text):
        at = text.index(marker, at) + len(marker)
        if any(mirrors(opening, marker) for opening in markers_of(arguments_start)) or _FENCE.fullmatch(marker):
            ends["arguments"] = at
        elif mirrors(name_prefix + ">", marker) or mirrors(_bare(name_prefix), marker):
            ends["function"] = at
    first, second = ends["arguments"], max(ends["arguments"], ends["function"])
    return text[:first], text[first:second], text[second:]


def _bare(prefix: str) -> str:
    """An open tag such as `<function=` as it would be without what it assigns."""
    match = re.match(r"(<[\w:.-]+)", prefix.strip())
    return match.group(1) + ">" if match else prefix


def _argument_markers(calls: CallsFormat) -> dict[str, str]:
    form = calls.arguments
    if form.style is not ArgumentsStyle.TAGGED:
        return {}
    key, value = form.pattern.index(ArgumentSlot.KEY), form.pattern.index(ArgumentSlot.VALUE)
    texts = [part if isinstance(part, str) else "{key}" for part in form.pattern]
    middle = "".join(texts[key + 1 : value])
    suffix, prefix = _split_key_and_value(middle)
    return {
        "argument_name_prefix": "".join(texts[:key]),
        "argument_name_suffix": suffix,
        "argument_value_prefix": prefix,
        "argument_value_suffix": "".join(texts[value + 1 :]),
        "argument_separator": form.separator,
    }


def _split_key_and_value(text: str) -> tuple[str, str]:
    """Split what stands between key and value into the key's suffix and the value's prefix."""
    closing = re.match(r"[\"']?\s*/?>|</[^<>]*>\s*(?=<)", text)
    return (text[: closing.end()], text[closing.end() :]) if closing else (text, "")


def _tag_format(calls: CallsFormat) -> ToolFormat:
    form = calls.arguments
    if form.style is not ArgumentsStyle.TAGGED:
        return ToolFormat.TAG_WITH_JSON
    texts = [part for part in form.pattern if isinstance(part, str)]
    key, value = form.pattern.index(ArgumentSlot.KEY), form.pattern.index(ArgumentSlot.VALUE)
    middle = "".join(part for part in form.pattern[key + 1 : value] if isinstance(part, str))
    pieces = _pieces(calls)
    if middle.strip(" \"'") == "=" and pieces.after_name.endswith("(") and pieces.after_arguments.startswith(")"):
        return ToolFormat.PYTHON_CALLS
    brackets = any(character in part for part in texts for character in "<>[]{}【】«»")
    if not brackets and ("\n" in form.separator or any("\n" in part for part in texts)):
        return ToolFormat.KEY_VALUE_LINES
    return ToolFormat.TAG_WITH_TAGGED
