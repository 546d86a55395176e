"""The `response_template` of transformers, written from a format.

Strategy: such a template is a table of regions with markers or expressions around them. The parser's events show the
texts around names, arguments and values in an example of the format. Only what is the same in both calls can be in a
template. It is tried on the example, on the example with other names, and on its calls alone; calls that are not read
back are left out. Notes report what is not expressed.
"""

from __future__ import annotations

import json
import os.path
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolgram.errors import ToolgramError
from toolgram.events import Content, Event, Malformed, Reasoning, ToolCallDelta, ToolCallEnd, ToolCallStart
from toolgram.formats import Format
from toolgram.message import Message, ToolCall
from toolgram.observing.paths import canonical_outputs


@dataclass(frozen=True, slots=True)
class ResponseTemplate:
    """The template as data for tokenizer_config.json, and what it cannot express."""

    template: dict[str, Any]
    notes: list[str] = field(default_factory=list)


def write_response_template(fmt: Format) -> ResponseTemplate:
    """Return the `response_template` of a format. Raises ToolgramError for a format without an example."""
    notes = ["repairs, and the status of calls that were cut off, have no place in a response template"]
    if not fmt.example:
        raise ToolgramError(f"{fmt.name} has no example to write from: add `example:` to its machine file")
    fields, opened = example_fields(fmt, notes)
    analysis = fmt.report.analysis if fmt.report is not None else None
    anchor = {"start_anchor": analysis.header} if analysis is not None and analysis.header.strip() else {}
    if not anchor:
        notes.append("the role header is not known, so the whole prompt is left out, but for a thought that it opens")
        tail = rf"(?:{re.escape(opened)}\s*)?" if opened else ""
        anchor = {"start_anchor_pattern": rf"\A.*?(?={tail}\Z)"}
    return ResponseTemplate({"defaults": {"role": "assistant"}, **anchor, "fields": fields}, notes)


LEFT_AROUND = "some markers around content are left in it"
LEFT_OUT = "calls of this format cannot be expressed, and are left in content"
_NAME = r"(?P<name>[^\s<>\"'{}\[\]()=:]+)"
_SIZES = 2  # calls of an example that are used


@dataclass
class Call:
    """One call of the example: the text around its parts."""

    before: str = ""  # since the preceding text or call
    name: str = ""
    between: str = ""  # between the name and the arguments
    arguments: str = ""
    values: list[tuple[str, str, str, str]] = field(default_factory=list)  # before a key, key, before its value, value
    after: str = ""  # after the last argument, up to the end


def example_fields(fmt: Format, notes: list[str]) -> tuple[dict[str, Any], str]:
    """Return the fields of a template, and the marker that opens reasoning. Note whatever they cannot express."""
    example = _example_of(fmt)
    events = fmt.parser().feed(example)
    fields: dict[str, Any] = {}
    opened = _reasoning(fmt, events, fields, notes)
    said = fmt.parse(example)
    found = calls_of(events)
    made = None
    if found:
        found[0].before = _first_marker(fmt, example, found[0].before, said.tool_calls)
        made = _example_calls(found, _trims_lines(fmt, example, found[0]), notes)
        if made is None or not all(
            _reads_back(made, text, read) for text, read in _variants(fmt, example, said.tool_calls)
        ):
            made = None
            notes.append(LEFT_OUT)
    if made is not None:
        fields["tool_calls"] = made
    thought = fields.get("thinking", {})
    content = _example_content(fmt, {thought.get("open"), thought.get("close")})
    if (
        made is not None
        and _content_of(example, {**fields, "content": content}).split() != (said.content or "").split()
    ):
        notes.append(LEFT_AROUND)
    return {**fields, "content": content}, opened


def _example_of(fmt: Format) -> str:
    """Return the output of a format that shows most: several calls, content, reasoning."""

    def shown(text: str) -> tuple[int, bool, bool]:
        said = fmt.parse(text)
        return min(len(said.tool_calls), _SIZES), bool(said.content), bool(said.reasoning)

    return max([fmt.example, *(output for _, output, _ in canonical_outputs(fmt))], key=shown)


def _content_of(text: str, fields: dict[str, Any]) -> str:
    """Return the part of a text that is in no other region, without the markers around content."""
    for name in ("tool_calls", "thinking"):
        each = fields.get(name, {})
        opens = each.get("open_pattern") or re.escape(each.get("open", ""))
        ends = each.get("close_pattern") or re.escape(each.get("close", ""))
        if opens:
            text = re.sub(rf"(?:{opens}).*?(?:{ends}|\Z)" if ends else rf"(?:{opens}).*", " ", text, flags=re.DOTALL)
    closers = fields["content"].get("close_pattern")
    return re.sub(closers, " ", text) if closers else text


def _first_marker(fmt: Format, example: str, before: str, calls: Sequence[ToolCall]) -> str:
    """Return the text that begins the calls, without the markers that close the text before them."""
    place = example.find(before)
    found = before
    for at in range(1, len(before)):
        if before[at] in "<[" and before[at - 1] in ">]\n ":
            read = _only_calls(fmt, example[place + at :], calls)
            if read and not read.anomalies:
                found = before[at:]
    return found


def _only_calls(fmt: Format, text: str, calls: Sequence[ToolCall]) -> Message | None:
    """Return the message of a text that has these calls and no content; None for another text."""
    read = fmt.parse(text, prefix="")
    same = [(call.name, call.arguments) for call in read.tool_calls] == [(call.name, call.arguments) for call in calls]
    return read if same and not read.content else None


def _example_content(fmt: Format, marks: Collection[str]) -> dict[str, Any]:
    """Return the field for content, without the markers around it that belong to nothing else."""
    texts = {text.strip() for text in fmt.program.literals.values() if text.strip()[:1] in ("<", "[")}
    wrapped = [(text, fmt.parse(each, prefix="")) for text in texts - {*marks, ""} for each in (f"{text}a", f"a{text}")]
    ends = {text for text, said in wrapped if said.content == "a" and not (said.reasoning or said.anomalies)}
    closers = "|".join(blanks_in(text) for text in sorted(ends, key=lambda each: (-len(each), each)))
    made: dict[str, Any] = {"content": "text", "repeats": True, "join": " "}
    return {**made, "close_pattern": rf"\s*(?:{closers})\s*"} if closers else made


def _reasoning(fmt: Format, events: Sequence[Event], fields: dict[str, Any], notes: list[str]) -> str:
    place = next((at for at, event in enumerate(events) if isinstance(event, Reasoning)), None)
    if place is None:
        return ""
    start = "".join(event.source for event in events[:place]).strip() or fmt.generation_prompt.strip()
    following = [event.source.strip() for event in events[place:] if not isinstance(event, Reasoning)]
    end = next((source for source in following if source), "")
    if not start or not end:
        notes.append("reasoning that no marker opens, or closes, is read as content")
        return ""
    fields["thinking"] = {"open": start, "close": end, "content": "text"}
    return start


def calls_of(events: Sequence[Event]) -> list[Call]:
    """Return the calls among events."""
    calls: list[Call] = []
    run, open_call, key = "", False, None
    for event in events:
        match event:
            case Content() | Reasoning() | Malformed():
                if calls and not open_call:
                    calls[-1].after += run
                run = ""
            case ToolCallStart():
                if calls:
                    calls[-1].after = run
                calls.append(Call(before=run, name=event.source))
                run, open_call, key = "", True, None
            case ToolCallDelta() if open_call and event.source:
                run, key = _with_arguments(calls[-1], event, run, key)
            case ToolCallEnd():
                open_call = False
            case _:
                run += event.source
    if calls:
        calls[-1].after = calls[-1].after or run
    return calls


def _with_arguments(
    call: Call, event: ToolCallDelta, run: str, key: tuple[str, str] | None
) -> tuple[str, tuple[str, str] | None]:
    """Add a part of the arguments to a call. Return the text since then, and the key whose value comes next."""
    if event.arguments.endswith(": "):
        return "", (run, event.source)
    if key is not None:
        call.values.append((*key, run, event.source))
    elif not call.values:
        call.between = call.between or run
        call.arguments += event.source
    else:
        return run, None
    return "", None


def _example_calls(calls: list[Call], trims: bool, notes: list[str]) -> dict[str, Any] | None:
    """Return the field for calls. `trims` means that a line break at the edges of a value is not part of it."""
    first = calls[0]
    if first.name.startswith('"'):
        return _as_json(calls)
    if first.arguments.startswith("("):
        return None  # Python
    if len(calls) < _SIZES:
        return None  # one call does not show where it ends, and what all calls share
    opener = _common_end(first.before, calls[1].before)
    if not opener.strip():
        return None
    between = [call.values[0][0] if call.values else call.between for call in calls[:_SIZES]]
    made = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
    section = first.before.removesuffix(opener).strip()
    start = rf"(?:{blanks_in(section)}\s*)?{blanks_in(opener)}" if section else blanks_in(opener)
    found: dict[str, Any] = {"content": "json", "repeats": True, "transform": made}
    if first.values:
        tags = _tags(first, trims)
        if tags is None:
            return None
        head, pattern, closer = tags
        found |= {"content": "xml-inline", "content_args": {"tag_pattern": pattern}}
        following = head
        notes.append("arguments are text, unless `tools` are given to parse_response")
    else:
        following = _either(between)
        closer = first.after
    after = calls[-1].after
    closer = closer.strip().removesuffix(opener.strip()).rstrip()
    closer = closer if first.values else _whole_markers(_common_beginning(closer, after))
    return {**found, "open_pattern": rf"\s*{start}{_NAME}{following}", **_close(closer, start, after)}


def _close(closer: str, opener: str, after: str) -> dict[str, Any]:
    """Return the field for the end of a call: its own marker, or the place where the next call begins."""
    if closer.strip():
        return {"close_pattern": blanks_in(closer.strip()) + _optional(after.rpartition(closer.strip())[2].strip())}
    ends = [rf"\s*(?={opener})", *([rf"\s*{blanks_in(after.strip())}"] if after.strip() else [])]
    return {"close_pattern": "|".join(ends)}


def _tags(call: Call, trims: bool) -> tuple[str, str, str] | None:
    """Return the text after the name, the expression of an argument, and the text that closes the call."""
    if len(call.values) < _SIZES:
        return None
    (head, _, sep, _), (middle, _, other, _) = call.values[:_SIZES]
    opener = _common_end(head, middle)
    closer = middle.removesuffix(opener)
    if not opener.strip() or not closer.strip() or not call.after.strip().startswith(closer.strip()):
        return None
    line = r"\n?" if trims else ""
    between = _either([sep.strip(), other.strip()])
    value = rf"{blanks_in(opener)}(?P<key>[^<>\"']+?){between}{line}(?P<value>.*?){line}{blanks_in(closer.strip())}"
    return blanks_in(head.removesuffix(opener)), value, call.after.strip().removeprefix(closer.strip())


def _as_json(calls: list[Call]) -> dict[str, Any] | None:
    """Return the field for calls that are JSON objects, or a list of them, between markers."""
    before = calls[0].before
    rest = "".join(call.name + call.between + call.arguments + call.after for call in calls)
    found_json = _first_json(before, rest)
    if found_json is None:
        return None
    place, value, following = found_json
    opener = before[:place].strip()
    if not opener:
        return None
    if isinstance(value, dict) and len(calls) < _SIZES:
        return None
    item = value[0] if isinstance(value, list) and value else value
    closer = following.partition(opener)[0].strip()
    name = json.loads(calls[0].name)
    path = _path(item, name)
    if path is None:
        return None
    holder, key = path
    inner = _at(item, ".".join(holder)) if holder else item
    arguments = next((other for other, each in inner.items() if other != key and isinstance(each, dict)), None)
    if arguments is None:
        return None
    root = [] if isinstance(value, list) else ["content"]
    path_of = {"name": key, "arguments": arguments}
    function = {part: "{" + ".".join([*root, *holder, last]) + "}" for part, last in path_of.items()}
    found: dict[str, Any] = {
        "open_pattern": rf"\s*{blanks_in(opener)}",
        "content": "json",
        "transform": {"type": "function", "function": function},
    }
    found |= {"transform_each": True} if isinstance(value, list) else {"repeats": True}
    if closer:
        first = re.match(r"<[^<>]*>|\[[^\[\]]*\]", closer)
        first_closer = first[0] if first else closer
        found["close_pattern"] = blanks_in(first_closer) + _optional(closer.removeprefix(first_closer).strip())
    elif not isinstance(value, list):
        found["close_pattern"] = rf"\s*(?={blanks_in(opener)})"
    return found


def _first_json(before: str, rest: str) -> tuple[int, Any, str] | None:
    """Return where in `before` the JSON of a call begins, its value, and the text after it."""
    for place, mark in enumerate(before):
        if mark in "[{":
            try:
                value, end = json.JSONDecoder().raw_decode(before + rest, place)
            except ValueError:
                continue
            return place, value, (before + rest)[end:]
    return None


def _path(item: Any, name: str) -> tuple[list[str], str] | None:
    """Return the path and the key of the name in a call."""
    for key, value in item.items() if isinstance(item, dict) else ():
        if value == name:
            return [], key
        if (found := _path(value, name)) is not None:
            return [key, *found[0]], found[1]
    return None


def _optional(text: str) -> str:
    """Return an expression for what may follow a closer: a text, and blanks."""
    return rf"(?:\s*{blanks_in(text)})?\s*" if text else r"\s*"


def blanks_in(text: str) -> str:
    """Return an expression for a text; blanks in it may be any blanks, or missing."""
    return r"\s*".join(re.escape(part) for part in re.split(r"\s+", text))


def _either(texts: Sequence[str]) -> str:
    """Return an expression for texts that differ in one word at most, such as an id."""
    first, *others = texts
    if all(other == first for other in others):
        return blanks_in(first)
    start = _common_beginning(*texts)
    end = _common_end(*(text[len(start) :] for text in texts))
    return rf"{blanks_in(start)}[^\s<>]*?{blanks_in(end)}"


def _whole_markers(text: str) -> str:
    """Return a text without an incomplete marker at its end."""
    begun = text.rfind("<")
    return text[:begun] if begun > text.rfind(">") else text


def _common_beginning(*texts: str) -> str:
    """Return the beginning that texts have in common."""
    return os.path.commonprefix(texts)  # noqa: RUF071 - of characters


def _common_end(*texts: str) -> str:
    """Return the end that texts have in common, from where a marker begins in it."""
    backwards = [text[::-1] for text in texts]
    found = _common_beginning(*backwards)[::-1]
    if all(found == text or text[-len(found) - 1].isspace() for text in texts) or found[:1] in ("", "<", "[", "\n"):
        return found
    places = [place for mark in "<[" if (place := found.find(mark)) > 0]
    return found[min(places) :] if places else found


def _trims_lines(fmt: Format, example: str, call: Call) -> bool:
    """Return whether the format drops a line break at the edges of a value."""
    if not call.values:
        return False
    _, key, sep, value = call.values[0]
    if sep.endswith("\n"):
        return True
    text = example.replace(key + sep + value, f"{key}{sep.rstrip()}\n{value}\n", 1)
    read = fmt.parse(text).tool_calls
    return bool(read) and read[0].status == "complete" and json.loads(read[0].arguments).get(key) == value


def _variants(fmt: Format, example: str, calls: Sequence[ToolCall]) -> Iterator[tuple[str, Sequence[ToolCall]]]:
    """Yield the example, the same with other names, and an answer that begins with its calls; each with its calls."""
    yield example, calls
    renamed = example
    for call in calls:
        renamed = renamed.replace(call.name, f"{call.name}_too")
    yield renamed, fmt.parse(renamed).tool_calls
    first = example.find(calls[0].name) if calls else 0
    for place in range(first, -1, -1):  # the shortest answer with these calls and nothing else
        if read := _only_calls(fmt, example[place:], calls):
            if not read.anomalies:
                yield example[place:], read.tool_calls
            break


def _reads_back(made: dict[str, Any], text: str, calls: Sequence[ToolCall]) -> bool:
    """Return whether the expressions find in the example what the format reads there."""
    found: list[tuple[str, Any]] = []
    place = 0
    while (opened := re.compile(made["open_pattern"], re.DOTALL).search(text, place)) is not None:
        close = re.compile(made.get("close_pattern", r"\Z"), re.DOTALL).search(text, opened.end())
        body, place = text[opened.end() : close.start() if close else None], close.end() if close else len(text)
        try:
            found += _values(made, opened, body)
        except (ValueError, KeyError, TypeError):
            return False
    wanted = [(call.name, json.loads(call.arguments)) for call in calls]
    if made["content"] == "xml-inline":
        wanted = [
            (name, {key: value if isinstance(value, str) else json.dumps(value) for key, value in given.items()})
            for name, given in wanted
        ]
        found = [(name, {key: value.strip() for key, value in given.items()}) for name, given in found]
    return found == wanted


def _values(made: dict[str, Any], opened: re.Match[str], body: str) -> list[tuple[str, Any]]:
    if made["content"] == "xml-inline":
        pairs = re.finditer(made["content_args"]["tag_pattern"], body, re.DOTALL)
        return [(opened["name"], {pair["key"]: pair["value"] for pair in pairs})]
    content = json.loads(body)
    function = made["transform"]["function"]
    if function["arguments"] == "{content}":
        return [(opened["name"], content)]
    items = content if made.get("transform_each") else [{"content": content}]
    return [(_at(item, function["name"]), _at(item, function["arguments"])) for item in items]


def _at(item: Any, placeholder: str) -> Any:
    for key in placeholder.strip("{}").split("."):
        item = item[key]
    return item
