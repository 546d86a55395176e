"""The JSON around a call: `{"name": ..., "arguments": {...}}`, alone or in a list, keys in any order.

Strategy: `JsonScanner` finds where each token ends, and ijson's push parser is fed whole tokens, so that the position
of each of its events is known. Its `(prefix, event, value)` triples, written `event prefix`, are the machine's
triggers. Two rules keep that cheap and exact:

* ijson never sees the arguments: it is fed an empty object instead, because its C backend rescans an unfinished string
  at every push;
* a call outside a list is read as the one item of a list that the reader opens, so one machine reads both spellings.

An opening brace counts only with the character after it: a key or a closing brace makes it an object.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any

from toolgram.islands import OpenBrackets, checked, dump_island, load_island
from toolgram.islands.json_strings import JsonStringScanner
from toolgram.islands.json_table import AFTER_ITEM, SCALARS, START
from toolgram.islands.json_values import JsonScanner
from toolgram.limits import LONGEST_ENVELOPE_TEXT

if TYPE_CHECKING:
    from toolgram.islands.python_literals import PythonScanner


_PART_OF_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*+\\?\Z', re.DOTALL).match
_PART_OF_SCALAR = re.compile(r"[-0-9tfn][-+.0-9a-zE]*+\Z").match


class NoEvent(ValueError):
    """A token that does not fit at ijson's place."""


class IjsonFeed:
    """ijson's push parser, with a trail from which another one can be set up at the same place."""

    __slots__ = ("_events", "_push", "_refusal", "trail")

    def __init__(self, trail: str = "") -> None:
        import ijson

        self._refusal = ijson.JSONError
        self._events: list[tuple[str, str, Any]] = []
        self._push = ijson.parse_coro(_Target(self._events))
        self.trail = ""
        if trail:
            self.push(trail)

    def __del__(self) -> None:
        """Suppress the complaint of ijson's Python backend about an incomplete document."""
        with contextlib.suppress(Exception):
            self._push.close()

    def push(self, token: str) -> list[tuple[str, str, Any]]:
        """Feed one whole token and return the events that it completes. Raise NoEvent if it does not fit."""
        self.trail += token
        try:
            self._push.send(token.encode("utf-8", "replace"))
        except (self._refusal, ValueError, StopIteration):  # its C library rejects an escaped lone surrogate
            raise NoEvent(token) from None
        events = self._events[:]
        self._events.clear()
        return events


class _Target:
    __slots__ = ("_events",)

    def __init__(self, events: list[tuple[str, str, Any]]) -> None:
        self._events = events

    def send(self, event: tuple[str, str, Any]) -> None:
        self._events.append(event)

    def close(self) -> None:
        """Do nothing: ijson closes its target when the stream is dropped."""


class Envelope:
    """The state of one open envelope; the parser moves it.

    `source` collects the characters since the last event and `token` an unfinished string. `path` is the place of the
    next value (`item.name`) and `parents` the objects around it. `in_list` says whether the model opened a list itself;
    if that list is the value of a `member`, that is its path, and `outside` are the brackets around it. `string` reads
    arguments written as a JSON string. If the model quotes like Python, `python` transcodes, and the first `skip`
    characters that it writes are already known.
    """

    __slots__ = (
        "_trail", "feed", "in_list", "inner", "member", "outside", "parents", "path", "python", "repairs", "scanner",
        "skip", "source", "string", "token", "token_at",
    )  # fmt: skip

    def __init__(self, in_list: bool = False, repairs: bool = False) -> None:
        self.repairs = repairs
        self.scanner = JsonScanner(repairs=repairs)
        self.feed: IjsonFeed | None = None
        self._trail = ""  # what a copy was fed and its parser has not seen
        self.python: PythonScanner | None = None
        self.string: JsonStringScanner | None = None
        self.in_list = in_list
        self.skip = 0
        self.inner = "envelope"  # while transcoding: the reader of the transcoded text
        self.source = ""
        self.token = ""
        self.token_at = 0  # where it begins in `source`
        self.path = "" if in_list else "item"
        self.parents: list[str] = []
        self.member = self.outside = ""

    def push(self, token: str) -> list[tuple[str, str, Any]]:
        """Return ijson's events for one more token. Make its parser when it is first needed."""
        if self.feed is None:
            self.feed = IjsonFeed(self._trail or ("" if self.in_list else "["))
        return self.feed.push(token)

    def read(self, text: str, pos: int, final: bool) -> int:
        """Read one token or its beginning; `scanner.kind` says which."""
        return self.scanner.step(text, pos)

    def pushed(self, token: str) -> bool:
        """Feed a token whose events are not needed. Return whether it fits."""
        try:
            self.push(token)
        except NoEvent:
            return False
        return True

    def value_of(self, token: str) -> str:
        """Return the text of a JSON string, decoded by ijson. Raise NoEvent if none fits here."""
        events = self.push(token)
        if len(events) != 1 or not isinstance(events[0][2], str):
            raise NoEvent(token)
        return events[0][2]

    def settle(self) -> None:
        """Shorten the trail after a complete value: the place is enough."""
        if self.feed is None and not self._trail:
            return
        keys = [path.rpartition(".")[2] for path in self.parents[1:]]
        objects = "".join(f'{{"{key}":' for key in [*keys, ""]) if self.parents else ""
        if self.feed is not None:
            self.feed.trail = f"[{objects}0"
        else:
            self._trail = f"[{objects}0"

    def leave_value(self) -> None:
        """Read the value of the last key as that of another key: that key was read, and no colon follows it."""
        self.settle()
        trail = self.feed.trail if self.feed is not None else self._trail
        self.feed, self._trail, self.token = None, f'{trail},""', ""

    @property
    def depth(self) -> int:
        """How many brackets are open around a member of the call's object."""
        return len(self.outside) + len(self.parents) + (1 if self.in_list else 0)

    @property
    def in_token(self) -> bool:
        """True inside a string or a scalar of the envelope itself."""
        scanner = self.scanner
        inside = (scanner.in_string and self.string is None) or (not scanner.in_string and scanner.state >= SCALARS)
        return inside and len(scanner.stack) == self.depth

    def enter_list(self) -> None:
        """Enter a list of calls that is the value of a member, and read it as if nothing were around it."""
        self.member, self.outside = self.path, "".join(self.scanner.stack[:-1])
        self.in_list, self.parents, self.path, self.feed, self._trail = True, [], "item", None, ""
        self.push("[")

    def leave_list(self) -> None:
        """Leave that list; other members of the object may follow."""
        self.in_list, self.parents, self.feed, self._trail = len(self.outside) > 1, ["item"], None, '[{"":0'
        self.member = self.outside = ""

    def resume_list(self) -> None:
        """Continue in the model's own list, after an item."""
        self.scanner = JsonScanner(repairs=self.repairs)
        self.scanner.stack.append("[")
        self.scanner.state = AFTER_ITEM
        self.feed = IjsonFeed("[0")
        self.parents, self.path, self.token, self.source = [], "item", "", ""
        self.member = self.outside = ""
        self.python = self.string = None
        self.inner = "envelope"

    def open_brackets(self) -> OpenBrackets:
        """Return what is open in the envelope and in its arguments; for arguments in a string, the string."""
        stack, quote = self.scanner.open_brackets()[:2]
        if stack == "<":
            return OpenBrackets(stack)
        quote = '"' if self.string is not None else quote
        return OpenBrackets(stack[len(self.outside) :], quote, self.in_list, self.python is not None)

    def dump(self) -> list[Any]:
        """Return the state as JSON-able data."""
        trail = self.feed.trail if self.feed else self._trail or None
        token_at = self.token_at if self.token else 0
        place = [self.in_list, self.repairs, self.member, self.outside, self.path, [*self.parents], trail]
        read = [self.source, self.token, token_at]
        transcodes = self.python is not None or self.scanner.repairer is not None
        transcoding = [dump_island(self.python), *([self.skip, self.inner] if transcodes else [0, "envelope"])]
        return [self.scanner.dump(), dump_island(self.string), *place, *read, *transcoding]

    @classmethod
    def load(cls, data: Any) -> Envelope:
        """Load what `dump` returned. Raise ValueError for anything else."""
        sizes, maybe = range(2 * LONGEST_ENVELOPE_TEXT), (list, None)
        kinds = bool, bool, str, ("", "{", "[{"), str, list, (str, None), str, str, sizes
        scanner, string, *place, python, skip, inner = checked(data, list, maybe, *kinds, maybe, sizes, str)
        in_list, repairs, member, outside, path, parents, trail, source, token, token_at = place
        envelope = cls(in_list, repairs)
        envelope.scanner = JsonScanner.load(scanner)
        envelope.feed = IjsonFeed(trail) if trail is not None else None
        envelope.string, envelope.python = load_island(string), load_island(python)  # type: ignore[assignment]
        envelope.path, envelope.parents = path, checked(parents, *[str] * len(parents))[:]
        envelope.member, envelope.outside = member, outside
        envelope.source, envelope.token, envelope.token_at = source, token, token_at
        envelope.skip, envelope.inner = skip, inner
        envelope._check()
        return envelope

    def _check(self) -> None:
        """Raise ValueError if the parts do not fit each other."""
        scanner, outer = self.scanner, self.outside + "[" * self.in_list + "{" * len(self.parents)
        fits = "".join(scanner.stack).startswith(outer) or (scanner.state == START and not self.parents)
        fits &= bool(self.member) == bool(self.outside)
        fits &= self.string is None or isinstance(self.string, JsonStringScanner)
        fits &= self.python is None or type(self.python).__name__ in ("PythonScanner", "LiteralScanner")
        if self.token and self.in_token:  # the token of a member outside any call is dropped as it comes
            part = _PART_OF_STRING if scanner.in_string else _PART_OF_SCALAR
            fits &= part(self.token) is not None
        else:
            fits &= not self.token
        if not fits:
            raise ValueError("the parts of an envelope do not fit each other")
