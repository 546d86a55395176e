"""Every shipped format's notation, written by hand: what a model writes for a turn.

Strategy: a notation is a row of `writers.yaml`. `_notation` puts reasoning, content, calls and text in order, between
the markers of the row; a function of one call writes the call. Nothing here knows toolgram, so that what is written is
a test of what is read. `can_write` says what a notation has no room for.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import yaml

Call: TypeAlias = tuple[str, dict[str, Any]]
Pair: TypeAlias = tuple[str, str]
WriteCall: TypeAlias = Callable[[int, str, dict[str, Any]], str]  # of the place of the call, its name, its arguments


@dataclass(frozen=True)
class Turn:
    """What a model means to say."""

    label: str
    reasoning: str = ""
    content: str = ""
    calls: tuple[Call, ...] = ()
    after: str = ""


def turn_of(row: dict[str, Any]) -> Turn:
    """A turn as a row of a file has it: its calls are names with arguments."""
    said = {key: row[key] for key in ("label", "reasoning", "content", "after") if key in row}
    return Turn(**said, calls=tuple((name, given) for name, given in row.get("calls", ())))


Write: TypeAlias = Callable[[Turn], str]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _raw(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _notation(
    call: WriteCall, section: Pair = ("", ""), between: str = "", think: Pair = ("<think>", "</think>"),
    text: Pair = ("", ""), after: Pair | None = None, gap: str = "",
) -> Write:  # fmt: skip
    """Writes reasoning between `think`, content between `text`, all calls between `section`, text behind between
    `after`, which is as `text` unless told; `gap` is between content and calls."""

    def write(turn: Turn) -> str:
        calls = between.join(call(place, *each) for place, each in enumerate(turn.calls))
        parts = [
            f"{think[0]}{turn.reasoning}{think[1]}" if turn.reasoning else "",
            f"{text[0]}{turn.content}{text[1]}" if turn.content else "",
            f"{gap if turn.content else ''}{section[0]}{calls}{section[1]}" if turn.calls else "",
            f"{(after or text)[0]}{turn.after}{(after or text)[1]}" if turn.after else "",
        ]
        return "".join(parts)

    return write


# --- one call -------------------------------------------------------------------------------------------------------


def _object(before: str = "", after: str = "", name: str = "name", arguments: str = "arguments") -> WriteCall:
    """A JSON object with a name and arguments."""
    return lambda place, called, given: f"{before}{_json({name: called, arguments: given})}{after}"


def _named(before: str, between: str, after: str) -> WriteCall:
    """The name, and the arguments as a JSON object behind it; `{place}` in a marker is the place of the call."""
    return lambda place, called, given: f"{before}{called}{between}{_json(given)}{after}".replace("{place}", str(place))


def _tags(before: str, opened: str, value: Callable[[str, Any], str], after: str, closed: str = "") -> WriteCall:
    """The name between `before` and `opened`, or `closed` where nothing is given; then a tag for each argument."""
    return lambda place, called, given: (
        f"{before}{called}{opened if given or not closed else closed}"
        f"{''.join(value(key, each) for key, each in given.items())}{after}"
    )


def _parameter(before: str, between: str, after: str) -> Callable[[str, Any], str]:
    return lambda key, given: f"{before}{key}{between}{_raw(given)}{after}"


def _told(mark: str) -> Callable[[str, Any], str]:
    """A parameter that says whether it is a string."""

    def write(key: str, given: Any) -> str:
        told = "true" if isinstance(given, str) else "false"
        return f'<{mark}parameter name="{key}" string="{told}">{_raw(given)}</{mark}parameter>\n'

    return write


def _invoke(mark: str) -> WriteCall:
    return _tags(f'<{mark}invoke name="', '">\n', _told(mark), f"</{mark}invoke>\n")


def _key_value(suffix: str = "", line: str = "") -> Callable[[str, Any], str]:
    return lambda key, given: (
        f"<arg_key{suffix}>{key}</arg_key{suffix}>{line}<arg_value{suffix}>{_raw(given)}</arg_value{suffix}>{line}"
    )


def _horizon(key: str, given: Any) -> str:
    return f"<ifm|arg_key>{key}</ifm|arg_key><ifm|arg_value>{_raw(given)}</ifm|arg_value>"


def _typed(key: str, given: Any) -> str:
    kind = {str: "string", dict: "object", list: "array", bool: "boolean"}.get(type(given), "number")
    return f'<|open|>argument key="{key}" type="{kind}"<|sep|>{_raw(given)}<|close|>argument<|sep|>'


def _kimi_k3(place: int, called: str, given: dict[str, Any]) -> str:
    values = "".join(_typed(*each) for each in given.items())
    return f'<|open|>call tool="{called}" index="{place + 1}"<|sep|>{values}<|close|>call<|sep|>'


def _notated(quote: str, given: Any) -> str:
    """A value with bare keys, and strings between `quote`."""
    if isinstance(given, str):
        return f"{quote}{given}{quote}"
    if isinstance(given, dict):
        return "{" + ",".join(f"{key}:{_notated(quote, each)}" for key, each in given.items()) + "}"
    if isinstance(given, list):
        return "[" + ",".join(_notated(quote, each) for each in given) + "]"
    return _json(given)


def _noted(before: str, quote: str, after: str) -> WriteCall:
    return lambda place, called, given: f"{before}call:{called}{_notated(quote, given)}{after}"


def _python(place: int, called: str, given: dict[str, Any]) -> str:
    return f"{called}({', '.join(f'{key}={value!r}' for key, value in given.items())})"


def _cohere(place: int, called: str, given: dict[str, Any]) -> str:
    return "    " + _json({"tool_call_id": str(place), "tool_name": called, "parameters": given})


def _apertus(place: int, called: str, given: dict[str, Any]) -> str:
    return _json({called: given})


def _llama(turn: Turn) -> str:
    calls = "; ".join(_json({"name": name, "parameters": given}) for name, given in turn.calls)
    return "\n".join(part for part in (turn.content, calls, turn.after) if part)


def _ernie(turn: Turn) -> str:
    """Content is between tags behind a thought only."""
    rest = WRITERS["hermes"](Turn("", calls=turn.calls, after=turn.after))
    if not turn.reasoning:
        return "\n".join(part for part in (turn.content, rest) if part)
    said = f"<response>\n{turn.content}\n</response>\n\n" if turn.content else ""
    return f"<think>\n{turn.reasoning}\n</think>\n\n{said}{rest}"


def _granite(turn: Turn) -> str:
    """Content is between tags behind a thought only."""
    text = ("<response>", "</response>") if turn.reasoning else ("", "")
    return _notation(_object(), ("<|tool_call|>[", "]"), ", ", text=text, after=("", ""))(turn)


def _inkling(place: int, called: str, given: dict[str, Any]) -> str:
    return f'<|message_model|>{called}<|content_invoke_tool_json|>{{"name":"{called}","args":{_json(given)}}}'


def _solar(turn: Turn) -> str:
    messages = [f"<|think|>{turn.reasoning}<|end|>"] if turn.reasoning else []
    messages += [f"<|content|>{turn.content}<|end|>"] if turn.content else []
    calls = "".join(
        f"<|tool_call:begin|>a1b2c3d4e{place}<|tool_call:name|>{name}<|tool_call:args|>{_json(given)}<|tool_call:end|>"
        for place, (name, given) in enumerate(turn.calls)
    )
    messages += [f"<|tool_calls|>{calls}"] if calls else []
    messages += [f"<|content|>{turn.after}<|end|>"] if turn.after else []
    header = "<|begin|>assistant"
    return ("" if turn.reasoning else header) + header.join(messages)


def _element(mark: str, name: str, given: Any) -> str:
    """An element with its name, and what is inside as elements."""
    if isinstance(given, dict):
        inside = "".join(_element(mark, key, each) for key, each in given.items())
    elif isinstance(given, list):
        inside = "".join(_element(mark, "item", each) for each in given)
    else:
        inside = _raw(given)
    return f"{mark}<{name}>{inside}{mark}</{name}>"


def _section_of_xml(given: Any) -> str:
    """A value, in a section of its own where it has characters of tags."""
    return f"<![CDATA[{_raw(given)}]]>" if any(char in _raw(given) for char in "<>&") else _raw(given)


def _messages(
    thought: str, answer: str, call: WriteCall, end: str, last: Pair = ("", ""), start: str = "<|start|>assistant"
) -> Write:
    """Each part in a message of its own, the first of which the prompt has begun. `last` ends a turn: behind text, and
    behind a call."""

    def write(turn: Turn) -> str:
        parts = [f"{thought}{turn.reasoning}"] if turn.reasoning else []
        parts += [f"{answer}{turn.content}"] if turn.content else []
        parts += [call(place, *each) for place, each in enumerate(turn.calls)]
        parts += [f"{answer}{turn.after}"] if turn.after else []
        return f"{end}{start}".join(parts) + last[bool(turn.calls and not turn.after)]

    return write


_ATEM_VALUE = _parameter('<atem:parameter name="', '">', "</atem:parameter>\n")
_ATEM = _tags('<atem:invoke name="', '">\n', _ATEM_VALUE, "</atem:invoke>")


def _muse(place: int, called: str, given: dict[str, Any]) -> str:
    return f" to={called}<|message|><atem:function_calls>\n{_ATEM(place, called, given)}\n</atem:function_calls>"


def _beam(place: int, called: str, given: dict[str, Any]) -> str:
    values = _parameter('<rfl:parameter name="', '">\n', "\n</rfl:parameter>")
    header = f" to={called}<|channel|>analysis <|constrain|>xml<|message|>"
    return header + "".join(values(*each) for each in given.items())


def _lines(write: Write) -> Write:
    """The same with each part on lines of its own."""

    def lined(turn: Turn) -> str:
        thought = write(Turn("", reasoning=turn.reasoning)) if turn.reasoning else ""
        calls = [write(Turn("", calls=(each,))) for each in turn.calls]
        return thought + "\n".join(part for part in (turn.content, *calls, turn.after) if part)

    return lined


# --- the formats ----------------------------------------------------------------------------------------------------

_MAKERS: dict[str, Callable[..., Any]] = {
    "object": _object, "named": _named, "tags": _tags, "parameter": _parameter, "invoke": _invoke,
    "key_value": _key_value, "noted": _noted, "element": lambda mark: partial(_element, mark),
    "section_of_xml": lambda: lambda key, given: f'<param name="{key}">{_section_of_xml(given)}</param>',
}  # fmt: skip
_CALLS: dict[str, Any] = {
    "apertus": _apertus, "beam": _beam, "cohere": _cohere, "horizon": _horizon, "inkling": _inkling,
    "kimi_k3": _kimi_k3, "muse": _muse, "python": _python,
}  # fmt: skip


def _made(row: Any) -> Any:
    """Return what the function of a mapping of one name makes of its values, or the function itself."""
    if not isinstance(row, dict):
        return row
    ((name, given),) = row.items()
    if name in _CALLS:
        return _CALLS[name]
    values = {key: _made(each) for key, each in given.items()} if isinstance(given, dict) else {}
    return _MAKERS[name](**values) if values or given == {} else _MAKERS[name](*given)


def _writer(row: dict[str, Any]) -> Write:
    if "messages" in row:
        return _messages(**{**row["messages"], "call": _made(row["messages"]["call"])})
    row = dict(row)
    each_on_lines = row.pop("lines", False)
    write = _notation(**{**row, "call": _made(row["call"])})
    return _lines(write) if each_on_lines else write


_ROWS: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
WRITERS: dict[str, Write] = {
    **{name: _writer(row) for name, row in _ROWS.items()}, "ernie45": _ernie, "granite_3": _granite,
    "llama3_json": _llama, "solar_open": _solar,
}  # fmt: skip

BEFORE, AFTER, SEVERAL, BLANKS = "text before calls", "text behind calls", "several calls", "blanks around values"
EMPTY = "objects without members"  # an empty element is also how an empty text is written
_NO_ROOM = {
    "dots": frozenset({BLANKS}), "step3": frozenset({BLANKS}), "minimax_m3": frozenset({EMPTY}),
    "gigachat3": frozenset({SEVERAL}), "glm4": frozenset({BEFORE, AFTER, SEVERAL}),
}  # fmt: skip


def can_write(name: str, turn: Turn) -> bool:
    """Whether a notation has room for what a turn has besides reasoning."""
    missing = _NO_ROOM.get(name, frozenset())
    values = [each for _, given in turn.calls for each in given.values() if isinstance(each, str)]
    has = {
        BEFORE: turn.content and turn.calls,
        AFTER: turn.after,
        SEVERAL: len(turn.calls) > 1,
        BLANKS: any(each != each.strip() for each in values),
        EMPTY: "{}" in json.dumps([given for _, given in turn.calls if given]),
    }
    return not any(has[each] for each in missing)
