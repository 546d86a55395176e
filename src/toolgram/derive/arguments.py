"""Phases A1 and A2: how the arguments of a call are written.

Strategy: the arguments of a probe are looked for as a whole first (an object, an object inside a JSON string, a Python
dict), then one by one.  One by one, the text between two arguments is split against what precedes the first and what
follows the last, which needs no idea of what a marker looks like.  One call with a value of every JSON type then shows
how each type is encoded; quotes around text count as encoding when other types have none.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from toolgram.derive.comparing import find_slots
from toolgram.derive.result import ArgumentsStyle, ValueEncoding, ValueStyle
from toolgram.islands.escapes import ESCAPES
from toolgram.limits import MOST_DICT_ENDS
from toolgram.observing.probes import json_type

Span = tuple[int, int]
_decode = json.JSONDecoder(strict=False).raw_decode


def find_object(text: str, arguments: Mapping[str, Any], style: ArgumentsStyle, start: int = 0) -> Span | None:
    """Return where the arguments are written as one value in this style, from `start` on."""
    for at in positions(text, '"' if style is ArgumentsStyle.JSON_STRING else "{", start):
        found = python_dict(text, at) if style is ArgumentsStyle.PYTHON_DICT else json_value(text, at)
        if found is not None and style is ArgumentsStyle.JSON_STRING:
            encoded = json_value(found[0], 0) if isinstance(found[0], str) else None
            found = encoded and (encoded[0], found[1])
        if found is not None and found[0] == arguments:
            return at, found[1]
    return None


def positions(text: str, character: str, start: int = 0) -> Iterator[int]:
    """Return the places of a character, from `start` on."""
    return (match.start() for match in re.compile(re.escape(character)).finditer(text, start))


def json_value(text: str, at: int) -> tuple[Any, int] | None:
    """Return the JSON value that begins there, and its end."""
    try:
        return _decode(text, at)
    except ValueError:
        return None


def python_dict(text: str, at: int) -> tuple[dict[str, Any], int] | None:
    """Return the dict of Python that begins there, and where it ends."""
    for end in islice(positions(text, "}", at), MOST_DICT_ENDS):
        try:
            value = ast.literal_eval(text[at : end + 1])
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        return (value, end + 1) if isinstance(value, dict) else None
    return None


def style_of(text: str, arguments: Mapping[str, Any]) -> ArgumentsStyle | None:
    """Return the style in which `text` holds these arguments, None if it does not."""
    for style in (ArgumentsStyle.JSON, ArgumentsStyle.JSON_STRING, ArgumentsStyle.PYTHON_DICT):
        if find_object(text, arguments, style) is not None:
            return style
    found = {slot.label for slot in find_slots(text, [(word, word) for word in (*arguments, *arguments.values())])}
    return ArgumentsStyle.TAGGED if found >= {*arguments, *arguments.values()} else None


def learn_values(stretches: Mapping[str, str], arguments: Mapping[str, Any], before: str) -> dict[str, ValueStyle]:
    """Return how each type is encoded, from the text between each key and the next one.

    `before` is the text between a key and a text value. Keys without a stretch were not written.
    """
    plain = _learn_values(stretches, arguments, before)
    for kind in ("html", "url") if plain and plain["string"].encoding is ValueEncoding.UNKNOWN else ():
        decode = ESCAPES[kind].decoded
        styles = _learn_values({key: decode(each) for key, each in stretches.items()}, arguments, decode(before))
        if "string" in styles and styles["string"].encoding is ValueEncoding.RAW:
            shown = {decode(text): text for text in (before, plain["string"].after)}  # quotes are escaped as well
            for name, style in styles.items():
                before, after = (shown.get(text, text) for text in (style.before, style.after))
                styles[name] = replace(style, escaped=kind, before=before, after=after)
            return styles
    return plain


def _learn_values(stretches: Mapping[str, str], arguments: Mapping[str, Any], before: str) -> dict[str, ValueStyle]:
    names = {json_type(value): key for key, value in arguments.items() if not key.endswith(("_odd", "_end", "_no"))}
    plain = names["string"]
    if plain not in stretches or not stretches[plain].startswith(before):
        return {}
    after = stretches[plain][len(before) + len(arguments[plain]) :]
    quoted = _unquoted(stretches, arguments, before, after, names["integer"])
    styles: dict[str, ValueStyle] = {}
    for kind, key in names.items():
        if key not in stretches:
            styles[kind] = ValueStyle(ValueEncoding.OMITTED, before, after)
        elif kind != "string":
            styles[kind] = _value_style(stretches[key], arguments[key], [quoted, (before, after)])
    odd = next(key for key in arguments if key.endswith("_odd"))
    wrapped = _wrapped(stretches.get(odd, ""), arguments[odd], before, after)
    styles["string"] = ValueStyle(ValueEncoding.RAW, before, after, wrapped=wrapped)
    if odd in stretches and not wrapped:
        styles["string"] = _value_style(stretches[odd], arguments[odd], [quoted, (before, after)])
    return styles


def _inner(stretch: str, before: str, after: str) -> str | None:
    """Return what is between these two texts; None if they are not at the edges of the stretch."""
    framed = stretch.startswith(before) and stretch.endswith(after) and len(stretch) >= len(before) + len(after)
    return stretch[len(before) : len(stretch) - len(after)] if framed else None


def _wrapped(stretch: str, text: str, before: str, after: str) -> tuple[str, str] | None:
    """Return the markers that are around a text with characters of all kinds, and around no other."""
    opening, found, closing = (_inner(stretch, before, after) or "").partition(text)
    marked = len(opening.strip()) > 1 and len(closing.strip()) > 1
    return (opening, closing) if found and marked else None


def _unquoted(
    stretches: Mapping[str, str], arguments: Mapping[str, Any], before: str, after: str, number: str
) -> tuple[str, str]:
    """Return `before` and `after` without the quotes that belong to a text value, if a number has none."""
    quoted = before[-1:] in ("'", '"') and before[-1:] == after[:1]
    found, closing, _ = stretches.get(number, "").rpartition(f"{arguments[number]}{after[1:]}")
    return (before[:-1], after[1:]) if quoted and closing and found[-1:] != before[-1:] else (before, after)


def _value_style(stretch: str, value: Any, frames: list[tuple[str, str]]) -> ValueStyle:
    """Return the encoding in which `value` fills `stretch`; the frames are what may be before and after it."""
    for before, after in frames:
        inner = _inner(stretch, before, after)
        found = None if inner is None else _encoding_of(inner, value)
        if found is not None:
            return ValueStyle(found, before, after)
    return _loose_style(stretch, value, frames[0])


def _encoding_of(inner: str, value: Any) -> ValueEncoding | None:
    if isinstance(value, str) and inner == value:
        return ValueEncoding.RAW
    if not inner and value is None:
        return ValueEncoding.EMPTY
    if _is_json(inner, value):
        return ValueEncoding.JSON
    if inner in (str(value), repr(value)):
        return ValueEncoding.PYTHON if inner == str(value) else ValueEncoding.PYTHON_REPR
    return ValueEncoding.JSON_ESCAPED if isinstance(value, str) and _is_json(f'"{inner}"', value) else None


def _is_json(text: str, value: Any) -> bool:
    """Return whether a text is this value as JSON; `true` is no 1."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return json.dumps(found, sort_keys=True) == json.dumps(value, sort_keys=True)


def _loose_style(stretch: str, value: Any, frame: tuple[str, str]) -> ValueStyle:
    """Return the style of a value whose frame depends on its type.

    Either one of its ends differs, as in `type="integer"`, or text has quotes of its own kind inside it.
    """
    texts = {json.dumps(value): ValueEncoding.JSON, json.dumps(value, ensure_ascii=False): ValueEncoding.JSON}
    texts |= {str(value): ValueEncoding.PYTHON} if str(value) not in texts else {}
    for text, encoding in texts.items():
        at = stretch.rfind(text)
        before, after = stretch[: max(at, 0)], stretch[at + len(text) :]
        bare = frame[0].startswith(before) and frame[1].endswith(after)
        if at >= 0 and (before == frame[0] or after == frame[1] or bare):
            return ValueStyle(encoding, before, after)
    if value is None and stretch.endswith(frame[1]):
        return ValueStyle(ValueEncoding.EMPTY, stretch[: len(stretch) - len(frame[1])], frame[1])
    return ValueStyle(ValueEncoding.UNKNOWN, *frame)
