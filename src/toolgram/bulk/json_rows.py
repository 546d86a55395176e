"""Read and write JSON of rows, with orjson if it is installed.

Strategy: orjson reads and writes what it accepts, and the json module does everything else: lone surrogates, NaN,
integers of any length, and the text of an error. So both give the same answers, and one of them is faster.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

from toolgram.bulk.errors import BadRow

try:
    import orjson as _orjson
except ImportError:
    _fast: Any = None
else:
    _fast = _orjson

# Control characters (C0 except tab and newline, DEL, C1), characters that are invisible or reorder the visible text
# (soft hyphen, bidirectional marks, line separators, tags) and surrogates. The joiners that hold emoji together stay.
CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def read_row(line: bytes) -> Any:
    """Return the value in one line. Raises BadRow with the reason if it has none."""
    with suppress(ValueError):
        if _fast is not None:
            return _fast.loads(line)
    return read_row_exactly(line)


def read_row_exactly(line: bytes) -> Any:
    """Return the value in one line, read by the json module alone: integers of any length are kept."""
    try:
        return json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BadRow(f"not UTF-8: byte {error.start + 1}") from None
    except json.JSONDecodeError as error:
        raise BadRow(f"not JSON: {error.msg} at character {error.pos + 1}") from None
    except (ValueError, RecursionError):
        raise BadRow("not JSON that can be read: too deep, or a number too long") from None


def is_exact(value: Any) -> bool:
    """Return whether a value from `read_row` is certainly the written value: orjson reads long integers as floats."""
    return _fast is None or value is None or isinstance(value, str | bool | int)


def write_row(value: Any) -> bytes:
    """Return one JSON document on its own line. Characters that could control a terminal are escaped."""
    with suppress(TypeError):
        if _fast is not None:
            line: bytes = _fast.dumps(value)
            return line + b"\n" if line.isascii() and b"\x7f" not in line else escaped(line.decode())
    return escaped(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def escaped(document: str) -> bytes:
    """Return a JSON document on its own line, in which nothing controls a terminal."""
    # Such a character can only be inside a string, where its escape means the same.
    return CONTROLS.sub(lambda found: json.dumps(found[0])[1:-1], document).encode() + b"\n"
