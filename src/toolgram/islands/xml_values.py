"""Values between XML tags: CDATA sections are unwrapped, and entities are decoded.

    <param name="q"><![CDATA[a <b> & c]]></param>    <param name="q">a &lt;b&gt; &amp; c</param>

Strategy: decode the text here and pass it to a tagged value. A value may have several sections anywhere; no marker
counts inside one. An ampersand or a bracket that begins nothing known is text. What may become a section's marker or an
entity waits for its rest.
"""

from __future__ import annotations

import re
from typing import Any

from toolgram.islands import checked
from toolgram.islands.held_text import overlap
from toolgram.islands.tagged_values import TaggedValue
from toolgram.tools.parameters import Types

_OPENING, _CLOSING = "<![CDATA[", "]]>"
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&amp;": "&"}
_TOKENS = (_OPENING, *_ENTITIES)
_TOKEN = re.compile("|".join(map(re.escape, _TOKENS))).search


class XmlValue(TaggedValue):
    """A tagged value whose text is decoded before it is read."""

    __slots__ = ("_section", "_unclosed", "_undecoded")

    def __init__(self, types: Types, quoted: bool = False, trimmed: bool = False) -> None:
        super().__init__(types, quoted, trimmed)
        self._section = False  # a section is open
        self._undecoded = ""  # what may become a token
        self._unclosed = False

    @property
    def is_text(self) -> bool:
        """Return False: text may have to be decoded."""
        return False

    @property
    def stops(self) -> str:
        """The characters that may be more than text, inside text; else ""."""
        return ("]" if self._section else "&<") if super().is_text and not self._undecoded else ""

    @property
    def broken(self) -> bool:
        """True if the text that was passed on cannot be continued."""
        return super().broken or self._unclosed

    @property
    def in_string(self) -> bool:
        """True if the next character is in a section or in a string of a literal, so no marker can begin there."""
        return self._section or super().in_string

    def read(self, text: str, pos: int, final: bool) -> int:
        """Read on from `pos`; `out` is the JSON that is now certain. Return where it breaks, or the end."""
        begun = len(self._undecoded)
        text = self._undecoded + text[pos:]
        self._undecoded = ""
        parts: list[str] = []
        at = mark = back = 0
        known, place = len(self.repairs), None
        while at < len(text):
            tokens = (_CLOSING,) if self._section else _TOKENS
            end, after, plain = self._next(text, at)
            if end > at:
                fits = super().read(text[at:end], 0, False)
                if len(self.repairs) > known and place is None:
                    place = at + fits - self.back
                if self.out:
                    parts.append(self.out)
                    mark = at + fits - self.tail
                if self.broken:
                    taken = max(begun, _waited(text, at, at + fits, tokens))
                    back = 0 if place is None else taken - place
                    return self._broke(parts, pos - begun, taken, mark, back)
            if plain:
                super().read(plain, 0, False)
                if self.out:
                    parts.append(self.out)
                    mark = after
                if self.broken:
                    return self._broke(parts, pos - begun, max(begun, after - 1), mark, 0)
            if after == end:  # all the rest waits
                self._undecoded = text[end:]
                break
            at = after
        self.out = "".join(parts)
        self.tail = len(text) - mark if parts else 0
        self.back = 0 if place is None else len(text) - place
        return pos + len(text) - begun

    def _broke(self, parts: list[str], pos: int, taken: int, mark: int, back: int) -> int:
        """Return where it breaks: after `taken` characters, of which `mark` wrote something."""
        self.out, self.back = "".join(parts), back
        self.tail = max(0, taken - mark) if parts else 0
        return pos + taken

    def _next(self, text: str, at: int) -> tuple[int, int, str]:
        """Return where the next token begins and ends, and its meaning; the same place twice if the rest must wait."""
        if self._section:
            end = text.find(_CLOSING, at)
            if end < 0:
                end = len(text) - overlap(text, at, _CLOSING)
                return end, end, ""
            self._section = False
            return end, end + len(_CLOSING), ""
        match = _TOKEN(text, at)
        if match is None:
            end = len(text) - overlap(text, at, *_TOKENS)
            return end, end, ""
        self._section = match.group() == _OPENING
        return match.start(), match.end(), _ENTITIES.get(match.group(), "")

    def finish(self) -> str:
        """Return the JSON that the closing marker makes certain."""
        if self._section:
            self._unclosed = True
            return ""
        written = ""
        if self._undecoded:
            super().read(self._undecoded, 0, True)
            written, self._undecoded = self.out, ""
        return written + super().finish()

    def dump(self) -> list[Any]:
        """Return the state as JSON-able data."""
        return [self._section, self._undecoded, super().dump()]

    @classmethod
    def load(cls, data: Any) -> XmlValue:
        """Load what `dump` returned. Raise ValueError for anything else."""
        section, undecoded, inside = checked(data, bool, str, list)
        value = cls(None)
        value._set(inside)
        value._section, value._undecoded = section, undecoded
        if len(undecoded) >= len(_OPENING):
            raise ValueError("undecoded text cannot be so long")
        return value


def _waited(text: str, begin: int, at: int, tokens: tuple[str, ...]) -> int:
    """Return how far the text was taken when the character at `at` was read: a token may have begun there or before."""
    for start in range(max(begin, at - max(map(len, tokens)) + 1), at + 1):
        if any(token.startswith(text[start : at + 1]) for token in tokens):
            return start + max(_common(text, start, token) for token in tokens)
    return at


def _common(text: str, start: int, token: str) -> int:
    """Return how many characters of a token are at `start`."""
    return next((at for at, one in enumerate(token) if text[start + at : start + at + 1] != one), len(token))
