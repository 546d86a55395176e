"""The characters that no event accounts for yet.

The event of a character may come later than the character: a bracket opens an object only if a key follows, and a name
in Python's spelling is JSON only when its value begins. Until then the character is held here, in order, so that it can
become text again.
"""

from __future__ import annotations

from toolgram.islands.held_text import add_piece, take_pieces


class Transcoding:
    """The characters from which the current character was transcoded."""

    __slots__ = ("pieces", "read_again", "reading")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.reading = False  # the last character is the one that is being read
        self.read_again = False  # it did not fit, and is to be read again unchanged


class Source:
    """The held characters, in order: the `opening` of a value that may be text, or None; the source of what was
    `converted` to JSON that is not emitted yet; and `pieces` that have produced nothing yet."""

    __slots__ = ("converted", "opening", "pieces", "transcoding")

    def __init__(self) -> None:
        self.opening: str | None = None
        self.converted: tuple[list[str], list[str]] | None = None  # JSON and its source
        self.pieces: list[str] = []
        self.transcoding: Transcoding | None = None

    @property
    def object_is_held(self) -> bool:
        """True if a value was opened that may turn out to be text."""
        return self.opening is not None

    def take(self, text: str, begin: int, end: int) -> str:
        """Return the source of the characters that a reader takes: they were written so, or transcoded from it."""
        return text[begin:end] if self.transcoding is None else take_pieces(self.transcoding.pieces)

    def hold(self, text: str, begin: int, end: int) -> None:
        """Hold characters that produce nothing yet."""
        add_piece(self.pieces, self.take(text, begin, end))

    def hold_converted(self, out: str, text: str, pos: int, mark: int, end: int) -> None:
        """Hold characters up to `end`. Those up to `mark`, and what was held before, have produced `out`."""
        if out:
            held = take_pieces(self.pieces)
            idle = max(0, pos - mark) if self.transcoding is None else 0
            split = len(held) - idle
            self.hold_json(out, held[:split])
            add_piece(self.pieces, held[split:])
            if mark > pos:
                self.hold_json("", self.take(text, pos, mark))
                pos = mark
        if end > pos:
            self.hold(text, pos, end)

    def hold_json(self, out: str, source: str) -> None:
        """Hold JSON that is not certain yet, with its source."""
        if self.converted is None:
            self.converted = [], []
        add_piece(self.converted[0], out)
        add_piece(self.converted[1], source)

    def confirm(self) -> str:
        """Confirm the opening as the beginning of a value, and return it."""
        opening, self.opening = self.opening or "", None
        return opening

    def confirm_converted(self) -> None:
        """Confirm the opening of a value that is transcoded: it becomes part of the source."""
        out, source = self.take_json()
        self.hold_json(out, self.confirm() + source)

    def take_json(self) -> tuple[str, str]:
        """Return the JSON that is held, and its source."""
        (out, source), self.converted = self.converted or ([], []), None
        return "".join(out), "".join(source)

    def take_all(self) -> str:
        """Return everything that is held. A character that is being transcoded is to be read again."""
        transcoding, self.transcoding = self.transcoding, None
        being_read = take_pieces(transcoding.pieces) if transcoding is not None else ""
        if transcoding is not None and being_read:
            transcoding.read_again = transcoding.reading
            being_read = being_read[:-1] if transcoding.read_again else being_read
        opening, (_, source) = self.confirm(), self.take_json()
        return opening + source + take_pieces(self.pieces) + being_read

    @property
    def waiting(self) -> int:
        """The number of characters that were taken and are not emitted yet."""
        return sum(map(len, self.pieces)) + (sum(map(len, self.converted[1])) if self.converted else 0)
