"""The JSON around a call: `{"name": ..., "arguments": {...}}`, alone or in a list, keys in any order.

Strategy: `JsonScanner` finds where each token ends, and the envelope knows the place of the next value. Token and place
together are an event of ijson, `(prefix, event, value)`, which is written `event prefix`: these are the machine's
triggers. A call outside a list is read as the one item of a list, so one machine reads both spellings.

An opening brace counts only with the character after it: a key or a closing brace makes it an object.
"""

from __future__ import annotations

from typing import Any, cast

from toolgram.islands import OpenBrackets, dump_island, load_island
from toolgram.islands.json_strings import JsonStringScanner
from toolgram.islands.json_table import AFTER_ITEM
from toolgram.islands.json_values import JsonScanner


class Envelope:
    """The state of one open envelope; the parser moves it.

    `source` collects the characters since the last event and `token` an unfinished string. `path` is the place of the
    next value (`item.name`) and `parents` the objects around it. `in_list` says whether the model opened a list itself;
    if that list is the value of a `member`, that is its path, and `outside` are the brackets around it. `string` reads
    arguments written as a JSON string.
    """

    __slots__ = (
        "in_list", "inner", "member", "outside", "parents", "path", "repairs", "scanner", "source",
        "string", "token", "token_at",
    )  # fmt: skip

    def __init__(self, in_list: bool = False, repairs: bool = False) -> None:
        self.repairs = repairs
        self.scanner = JsonScanner(repairs=repairs)
        self.string: JsonStringScanner | None = None
        self.in_list = in_list
        self.inner = "envelope"  # while the JSON is repaired: the reader of what the repairer writes
        self.source = ""
        self.token = ""
        self.token_at = 0  # where it begins in `source`
        self.path = "" if in_list else "item"
        self.parents: list[str] = []
        self.member = self.outside = ""

    @classmethod
    def after_item(cls, repairs: bool) -> Envelope:
        """Return the rest of a list that the model opened itself, after an item."""
        envelope = cls(True, repairs)
        envelope.scanner.stack.append("[")
        envelope.scanner.state, envelope.path = AFTER_ITEM, "item"
        return envelope

    def take_source(self) -> str:
        """Return the characters since the last event, and forget them."""
        text, self.source = self.source, ""
        return text

    def read(self, text: str, pos: int, final: bool) -> int:
        """Read one token or its beginning; `scanner.kind` says which."""
        return self.scanner.step(text, pos)

    @property
    def depth(self) -> int:
        """How many brackets are open around a member of the call's object."""
        return len(self.outside) + len(self.parents) + (1 if self.in_list else 0)

    def enter_list(self) -> None:
        """Enter a list of calls that is the value of a member, and read it as if nothing were around it."""
        self.member, self.outside = self.path, "".join(self.scanner.stack[:-1])
        self.in_list, self.parents, self.path = True, [], "item"

    def leave_list(self) -> None:
        """Leave that list; other members of the object may follow."""
        self.in_list, self.parents = len(self.outside) > 1, ["item"]
        self.member = self.outside = ""

    def open_brackets(self) -> OpenBrackets:
        """Return what is open in the envelope and in its arguments; for arguments in a string, the string."""
        opened = self.scanner.open_brackets()
        if opened.stack == "<":
            return opened
        quote = '"' if self.string is not None else opened.quote
        return opened._replace(stack=opened.stack[len(self.outside) :], quote=quote, in_list=self.in_list)

    def dump(self) -> list[Any]:
        """Return the state as JSON-able data."""
        token_at = self.token_at if self.token else 0
        place = [self.in_list, self.repairs, self.member, self.outside, self.path, [*self.parents]]
        read = [self.source, self.token, token_at]
        inner = "envelope" if self.scanner.repairer is None else self.inner
        return [self.scanner.dump(), dump_island(self.string), *place, *read, inner]

    @classmethod
    def load(cls, data: Any) -> Envelope:
        """Load what `dump` returned."""
        scanner, string, in_list, repairs, *rest = data
        envelope = cls(in_list, repairs)
        envelope.scanner = JsonScanner.load(scanner)
        envelope.string = cast("JsonStringScanner | None", load_island(string))
        envelope.member, envelope.outside, envelope.path, parents, envelope.source, envelope.token, *rest = rest
        envelope.parents, (envelope.token_at, envelope.inner) = [*parents], rest
        return envelope
