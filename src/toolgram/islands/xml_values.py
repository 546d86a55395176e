"""Values between tags of XML: what stands in CDATA sections is taken out of them, and entities are decoded.

    <param name="q"><![CDATA[a <b> & c]]></param>    <param name="q">a &lt;b&gt; &amp; c</param>

Strategy: the text is decoded here and handed to a tagged value, which reads it as any other.  A section may stand
anywhere in a value, and there may be several.  Inside one, no marker counts.  An ampersand or a bracket that begins
nothing known is itself.  What may become a section's marker or an entity waits for its rest.
"""

from __future__ import annotations

import re
from typing import Any

from toolgram.islands import checked
from toolgram.islands.tagged_values import TaggedValue
from toolgram.tools.parameters import Types

_OPENING, _CLOSING = "<![CDATA[", "]]>"
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&amp;": "&"}
_TOKENS = (_OPENING, *_ENTITIES)
_TOKEN = re.compile("|".join(map(re.escape, _TOKENS))).search


class XmlValue:
    """One value being read, with the attributes of a tagged value, which reads it once it is decoded."""

    __slots__ = ("_held", "_inside", "_section", "_unclosed", "back", "out", "tail")

    def __init__(self, types: Types) -> None:
        self._inside = TaggedValue(types)
        self._section = False  # a section is open
        self._held = ""  # what may become a token
        self._unclosed = False
        self.out = ""
        self.back = 0  # how far the first repair of the last `read` is before where that has stopped
        self.tail = 0  # characters behind those that the last `read` has written; some may have been read before

    @property
    def is_text(self) -> bool:
        """Everything that comes before the marker is text as it stands: never known."""
        return False

    @property
    def stops(self) -> str:
        """In text, the characters that may be more than text; nothing elsewhere."""
        return ("]" if self._section else "&<") if self._inside.is_text and not self._held else ""

    @property
    def broken(self) -> bool:
        """What was passed on cannot be gone on with."""
        return self._inside.broken or self._unclosed

    @property
    def odd(self) -> bool:
        """The value is not of a declared type."""
        return self._inside.odd

    @property
    def repairs(self) -> list[str]:
        """Kinds of anomalies: what a literal deviates in."""
        return self._inside.repairs

    @property
    def unclosed(self) -> bool:
        """A literal is certain, and not whole."""
        return self._inside.unclosed

    @property
    def in_string(self) -> bool:
        """The next character is in a section, or in a string of a literal: no marker can stand there."""
        return self._section or self._inside.in_string

    @property
    def is_literal(self) -> bool:
        """A literal is certain, and passed on while it comes."""
        return self._inside.is_literal

    @property
    def done(self) -> bool:
        """Only a marker says that the value is over."""
        return False

    def read(self, text: str, pos: int, final: bool) -> int:
        """Read on from `pos`; `out` is the JSON that this makes certain. Returns where it breaks, or the end."""
        begun = len(self._held)
        text = self._held + text[pos:]
        self._held, self.tail, self.back = "", 0, 0
        parts: list[str] = []
        at = mark = 0
        known, place = len(self.repairs), None
        while at < len(text):
            tokens = (_CLOSING,) if self._section else _TOKENS
            end, behind, plain = self._next(text, at)
            if end > at:
                fits = self._inside.read(text[at:end], 0, False)
                if len(self.repairs) > known and place is None:
                    place = at + fits - self._inside.back
                if self._inside.out:
                    parts.append(self._inside.out)
                    mark = at + fits - self._inside.tail
                if self._inside.broken:
                    taken = max(begun, _waited(text, at, at + fits, tokens))
                    self.back = 0 if place is None else taken - place
                    return self._broke(parts, pos - begun, taken, mark)
            if plain:
                self._inside.read(plain, 0, False)
                if self._inside.out:
                    parts.append(self._inside.out)
                    mark = behind
                if self._inside.broken:
                    return self._broke(parts, pos - begun, max(begun, behind - 1), mark)
            if behind == end:  # all the rest waits
                self._held = text[end:]
                break
            at = behind
        self.out = "".join(parts)
        self.tail = len(text) - mark if parts else 0
        self.back = 0 if place is None else len(text) - place
        return pos + len(text) - begun

    def _broke(self, parts: list[str], pos: int, taken: int, mark: int) -> int:
        """Where it breaks: behind `taken` characters of which `mark` have written."""
        self.out = "".join(parts)
        self.tail = max(0, taken - mark) if parts else 0
        return pos + taken

    def _next(self, text: str, at: int) -> tuple[int, int, str]:
        """Where the next token begins and ends, and what it stands for; the same place twice for what must wait."""
        if self._section:
            end = text.find(_CLOSING, at)
            if end < 0:
                end = len(text) - _overlap(text, at, (_CLOSING,))
                return end, end, ""
            self._section = False
            return end, end + len(_CLOSING), ""
        match = _TOKEN(text, at)
        if match is None:
            end = len(text) - _overlap(text, at, _TOKENS)
            return end, end, ""
        self._section = match.group() == _OPENING
        return match.start(), match.end(), _ENTITIES.get(match.group(), "")

    def finish(self) -> str:
        """The JSON that the closing marker makes certain."""
        if self._section:
            self._unclosed = True
            return ""
        written = ""
        if self._held:
            self._inside.read(self._held, 0, True)
            written, self._held = self._inside.out, ""
        return written + self._inside.finish()

    def open_brackets(self) -> None:
        """A marker ends what is left of tagged arguments, and no bracket does."""

    def dump(self) -> list[Any]:
        """The state as JSON-able data."""
        return [self._section, self._held, self._inside.dump()]

    @classmethod
    def load(cls, data: Any) -> XmlValue:
        """The inverse of `dump`. Raises ValueError for what is none."""
        section, held, inside = checked(data, bool, str, list)
        value = cls(None)
        value._section, value._held, value._inside = section, held, TaggedValue.load(inside)
        if len(held) >= len(_OPENING):
            raise ValueError("nothing waits that long")
        return value


def _waited(text: str, begin: int, at: int, tokens: tuple[str, ...]) -> int:
    """Up to where the text was taken when the character at `at` was read: a token may have begun there, or before."""
    for start in range(max(begin, at - max(map(len, tokens)) + 1), at + 1):
        if any(token.startswith(text[start : at + 1]) for token in tokens):
            return start + max(_common(text, start, token) for token in tokens)
    return at


def _common(text: str, start: int, token: str) -> int:
    """How many characters of a token stand at `start`."""
    return next((at for at, one in enumerate(token) if text[start + at : start + at + 1] != one), len(token))


def _overlap(text: str, at: int, tokens: tuple[str, ...]) -> int:
    """How many characters at the end of a text may begin a token."""
    for size in range(min(max(map(len, tokens)) - 1, len(text) - at), 0, -1):
        if any(token.startswith(text[-size:]) for token in tokens):
            return size
    return 0
