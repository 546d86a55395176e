"""Where blanks end: JSON whitespace, or any whitespace."""

from __future__ import annotations

import re
from typing import cast

_JSON_BLANKS = re.compile(r"[ \t\r\n]*+").match
_BLANKS = re.compile(r"\s*+").match


def end_of_json_blanks(text: str, pos: int) -> int:
    """Return the position after JSON whitespace."""
    return cast("re.Match[str]", _JSON_BLANKS(text, pos)).end()


def end_of_blanks(text: str, pos: int) -> int:
    """Return the position after blanks of any kind."""
    return cast("re.Match[str]", _BLANKS(text, pos)).end()
