"""The characters that were taken and that no event accounts for yet.

A character is accounted for by the event that it brings about, and that may come later: a bracket opens an object only
if a key follows, a name in Python's spelling is JSON only when its value begins.  Until then it is held here, in order,
so that it can become text again.
"""

from __future__ import annotations

from toolgram.islands.held_text import add_piece, take_pieces


class Source:
    """In order: the `opening` of a value, the source of `json`, and `pieces` that have produced nothing yet."""

    __slots__ = (
        "json", "json_source", "opening", "pieces", "prefix_characters", "read_again", "reading", "transcoding",
        "unconfirmed",
    )  # fmt: skip

    def __init__(self) -> None:
        self.prefix_characters = 0  # of a token that a prefix has begun: no event accounts for them
        self.unconfirmed = False  # the opening may turn out to be text
        self.opening = ""
        self.json: list[str] | None = None  # arguments that were transcoded before they were certain
        self.json_source: list[str] | None = None
        self.pieces: list[str] = []
        self.transcoding: list[str] | None = None  # what the character that is being read was transcoded from
        self.reading = True  # its last character is the one that is being read
        self.read_again = False  # the transcoded character did not fit, and is to be read again as what it is

    def take(self, text: str, begin: int, end: int) -> str:
        """The source of the characters that a reader takes: themselves, or what they were transcoded from."""
        if self.transcoding is not None:
            return take_pieces(self.transcoding)
        if self.prefix_characters:
            begin = self.skip_prefix(begin, end)
        return text[begin:end]

    def skip_prefix(self, begin: int, end: int) -> int:
        """Where the output's own characters begin in a token that a prefix has begun."""
        skipped = min(self.prefix_characters, end - begin)
        self.prefix_characters -= skipped
        return begin + skipped

    def hold(self, text: str, begin: int, end: int) -> None:
        """Take characters that produce nothing yet."""
        add_piece(self.pieces, self.take(text, begin, end))

    def hold_converted(self, out: str, text: str, pos: int, mark: int, end: int) -> None:
        """Take characters up to `end`; those up to `mark`, and what was held, have produced `out`."""
        if out:
            held = take_pieces(self.pieces)
            idle = max(0, pos - mark) if self.transcoding is None else 0
            split = len(held) - idle
            if self.json is None or self.json_source is None:
                self.json, self.json_source = [], self.json_source or []
            add_piece(self.json_source, held[:split])
            add_piece(self.pieces, held[split:])
            add_piece(self.json, out)
            if mark > pos:
                add_piece(self.json_source, self.take(text, pos, mark))
                pos = mark
        if end > pos:
            self.hold(text, pos, end)

    def confirm(self) -> str:
        """The opening is what it seemed to be."""
        opening, self.opening, self.unconfirmed = self.opening, "", False
        return opening

    def take_json(self) -> tuple[str, str]:
        """The JSON that is held, and its source."""
        json, source = "".join(self.json or ()), "".join(self.json_source or ())
        self.json = self.json_source = None
        return json, source

    def take_all(self) -> str:
        """Everything that is held. A character that is being transcoded is to be read again."""
        being_read = take_pieces(self.transcoding) if self.transcoding else ""
        if being_read:
            self.read_again = self.reading
        self.transcoding = None
        opening, (_, source) = self.confirm(), self.take_json()
        return (
            opening
            + source
            + take_pieces(self.pieces)
            + (being_read[:-1] if being_read and self.read_again else being_read)
        )

    @property
    def waiting(self) -> int:
        """How many characters were taken and have produced nothing yet."""
        return sum(map(len, self.pieces))

    def forget(self) -> None:
        """A prefix has written what is held: no event accounts for it."""
        self.opening, self.json_source = "", None if self.json is None else []
        self.pieces.clear()
        if self.transcoding:
            self.transcoding.clear()
