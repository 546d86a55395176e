"""How text is escaped: the tokens that mean characters, decoded as they come.

Strategy: a token of an escaped text is a row of places, each with the characters that may be there: `&lt;` has four
places with one each, `%41` has a place with one and two with many. So one rule finds whole tokens, and the beginning of
one at the end of a text, in every kind of escaped text. Anything else is text as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import cached_property

_HEX, _FOLLOWS = "0123456789abcdefABCDEF", ("%", "89abAB", "0123456789abcdefABCDEF")
CDATA, END_CDATA = "<![CDATA[", "]]>"
_OF_XML = {"&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"', "&#34;": '"', "&apos;": "'", "&#39;": "'"}


class Escapes:
    """A kind of escaped text: its tokens, each with the characters of every place, and what a whole one means."""

    def __init__(self, meaning: Callable[[str], str], *tokens: Sequence[str]) -> None:
        self.meaning = meaning
        self.tokens = tokens
        self.firsts = "".join(dict.fromkeys(token[0] for token in tokens))  # the characters with which tokens begin
        self.longest = max(map(len, tokens))

    @cached_property
    def find(self) -> Callable[..., re.Match[str] | None]:
        """The search for a token."""
        return re.compile("|".join("".join(f"[{re.escape(place)}]" for place in token) for token in self.tokens)).search

    def decoded(self, text: str) -> str:
        """Return what a text means."""
        parts: list[str] = []
        at = 0
        while (found := self.find(text, at)) is not None:
            parts += text[at : found.start()], self.meaning(found.group())
            at = found.end()
        return "".join([*parts, text[at:]])

    def after(self, text: str, at: int, place: int) -> int:
        """Return where the last token ends that begins before `place`, from `at` on; `at` if there is none."""
        while (found := self.find(text, at, place + self.longest)) is not None and found.start() < place:
            at = found.end()
        return at

    def begun(self, text: str, at: int) -> int:
        """Return where a token begins, from `at` on, that the end of the text cuts off; else the end."""
        first = max(self.after(text, at, len(text)), len(text) + 1 - self.longest)
        ends = (start for start in range(first, len(text)) if text[start] in self.firsts)
        return next((start for start in ends if start + self.common(text, start) == len(text)), len(text))

    def common(self, text: str, start: int) -> int:
        """Return how many characters at `start` fit a token."""
        return max(_common(text, start, token) for token in self.tokens)


def _common(text: str, start: int, token: Sequence[str]) -> int:
    pairs = enumerate(zip(token, text[start : start + len(token)], strict=False))
    return next((at for at, (place, one) in pairs if one not in place), min(len(token), len(text) - start))


def _of_string(token: str) -> str:
    text: str = json.loads(f'"{token}"')
    return text


def _of_url(token: str) -> str:
    try:
        return bytes.fromhex(token.replace("%", "")).decode()
    except UnicodeDecodeError:
        return token


ESCAPES = {
    "html": Escapes(_OF_XML.__getitem__, *_OF_XML),
    "xml": Escapes(lambda token: _OF_XML.get(token, ""), CDATA, *_OF_XML),
    "cdata": Escapes(lambda token: "", END_CDATA),
    "url": Escapes(  # characters in UTF-8
        _of_url,
        ("%", "01234567", _HEX),
        ("%", "cdCD", _HEX, *_FOLLOWS),
        ("%", "eE", _HEX, *_FOLLOWS, *_FOLLOWS),
        ("%", "fF", "01234", *_FOLLOWS, *_FOLLOWS, *_FOLLOWS),
    ),
    "string": Escapes(  # what is inside a JSON string
        _of_string,
        ("\\", '"\\/bfnrt'),
        ("\\", "u", "0123456789abcefABCEF", _HEX, _HEX, _HEX),
        ("\\", "u", "dD", "01234567", _HEX, _HEX),
        ("\\", "u", "dD", "89abAB", _HEX, _HEX, "\\", "u", "dD", "cdefCDEF", _HEX, _HEX),
    ),
}

_WRITTEN = str.maketrans({character: token for token, character in _OF_XML.items()})


def escaped(text: str, kind: str) -> str:
    """Return what a value of this kind (a tag of its state) is written as, so that it is read as `text`.

    In XML, text is written as it is if it is read as it is.
    """
    return text.translate(_WRITTEN) if kind == "html" or (kind == "xml" and ESCAPES[kind].find(text)) else text
