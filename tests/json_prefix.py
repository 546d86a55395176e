"""Is this text the beginning of a JSON document, or a JSON object? Other parsers than ours are asked."""

import json
import re
from typing import Any

import ijson

# What may be missing of the last token: of a string and the digits of an escape in it, of a number and a literal.
IN_STRING = ('"', '0"', '00"', '000"', '0000"')
OUTSIDE = ("", "0", *(word[at:] for word in ("true", "false", "null") for at in range(1, len(word))))
_ESCAPED = re.compile(r"\\.", re.DOTALL)
# JSON that is not text in UTF-8, or a number that Python refuses: something shorter replaces it.
_HALF_A_PAIR = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_MANY_DIGITS = re.compile(r"(\d{8})\d+")


def is_json_prefix(text: str) -> bool:
    """Return whether some continuation of a text is a JSON document: then the same is true of all its beginnings.

    yajl is asked, through ijson.
    """
    bare = _ESCAPED.sub("", text)
    tails = ('n"',) if bare.endswith("\\") else IN_STRING if bare.count('"') % 2 else OUTSIDE
    return not text.strip() or any(_is_read(f"{text}{tail} ") for tail in tails)


def _is_read(text: str) -> bool:
    """Return whether yajl takes a text; the blank at its end shows that the last token is over."""
    text = _MANY_DIGITS.sub(r"\1", _HALF_A_PAIR.sub(r"\\u0041", text))
    try:
        ijson.basic_parse_coro(ijson.sendable_list()).send(text.encode("utf-8", "replace"))
    except ijson.JSONError:
        return False
    return True


def is_json(text: str, kind: type = object) -> bool:
    """Return whether a text is JSON, of this kind."""
    try:
        return isinstance(json.loads(text), kind)
    except ValueError:
        return False


def is_object(text: str) -> bool:
    """Return whether a text is a JSON object."""
    return is_json(text, dict)


def value_of(text: Any) -> Any:
    """Return the value of a text that is JSON; anything else unchanged."""
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return text
