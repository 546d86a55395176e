"""Values whose text is escaped: entities of XML, or characters in percent signs, are decoded.

    <param name="q">a &lt;b&gt; &amp; c</param>    <param name="q"><![CDATA[a <b> & c]]></param>    f?q=a%20b&r=c

Strategy: decode the text here and pass it to a tagged value. What begins no token (`escapes`) is text, and what may
become one waits for its rest. In XML, a value may have CDATA sections anywhere; no marker counts inside one.
"""

from __future__ import annotations

from typing import Any

from toolgram.islands.escapes import CDATA, END_CDATA, ESCAPES, Escapes
from toolgram.islands.tagged_values import TaggedValue
from toolgram.tools.parameters import Types


class EscapedValue(TaggedValue):
    """A tagged value whose text is decoded before it is read."""

    __slots__ = ("_kind", "_unclosed", "_undecoded")

    def __init__(self, types: Types, kind: str = "xml") -> None:
        super().__init__(types)
        self._kind = kind  # of escapes; "cdata" in a section
        self._undecoded = ""  # what may become a token
        self._unclosed = False

    @property
    def in_section(self) -> bool:
        return self._kind == "cdata"

    @property
    def stops(self) -> str:
        """The characters that may be more than text, inside text; else ""."""
        return ESCAPES[self._kind].firsts if self.is_text and not self._undecoded else ""

    @property
    def broken(self) -> bool:
        """True if the text that was passed on cannot be continued."""
        return super().broken or self._unclosed

    @property
    def in_string(self) -> bool:
        """True if the next character is in a section or in a string of a literal, so no marker can begin there."""
        return self.in_section or super().in_string

    def read(self, text: str, pos: int, final: bool) -> int:
        """Read on from `pos`; `out` is the JSON that is now certain. Return where it breaks, or the end."""
        begun = len(self._undecoded)
        text = self._undecoded + text[pos:]
        self._undecoded = ""
        parts: list[str] = []
        at = mark = back = 0
        known, place = len(self.repairs), None
        while at < len(text):
            escapes = ESCAPES[self._kind]
            end, after, plain = self._next(text, at)
            if end > at:
                fits = super().read(text[at:end], 0, False)
                if len(self.repairs) > known and place is None:
                    place = at + fits - self.back
                if self.out:
                    parts.append(self.out)
                    mark = at + fits - self.tail
                if self.broken:
                    taken = max(begun, _waited(text, at, at + fits, escapes))
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
        escapes = ESCAPES[self._kind]
        match = escapes.find(text, at)
        if match is None:
            end = escapes.begun(text, at)
            return end, end, ""
        self._kind = {CDATA: "cdata", END_CDATA: "xml"}.get(match.group(), self._kind)
        return match.start(), match.end(), escapes.meaning(match.group())

    def finish(self) -> str:
        """Return the JSON that the closing marker makes certain."""
        if self.in_section:
            self._unclosed = True
            return ""
        written = ""
        if self._undecoded:
            super().read(self._undecoded, 0, True)
            written, self._undecoded = self.out, ""
        return written + super().finish()

    def dump(self) -> list[Any]:
        """Return the state as JSON-able data."""
        return [self._kind, self._undecoded, super().dump()]

    @classmethod
    def load(cls, data: Any) -> EscapedValue:
        """Load what `dump` returned."""
        kind, undecoded, inside = data
        value = cls(None, kind)
        value._set(inside)
        value._undecoded = undecoded
        return value


def _waited(text: str, begin: int, at: int, escapes: Escapes) -> int:
    """Return how far the text was taken when the character at `at` was read: a token may have begun there or before."""
    for start in range(max(begin, at - escapes.longest + 1), at + 1):
        size = escapes.common(text, start)
        if size > at - start:
            return start + size
    return at
