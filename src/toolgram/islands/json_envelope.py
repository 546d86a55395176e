"""The JSON around a call: `{"name": ..., "arguments": {...}}`, alone or in a list, keys in any order.

Strategy: `JsonScanner` finds where each token ends, and ijson's push parser is fed whole tokens, so that the position
of each of its events is known.  Its `(prefix, event, value)` triples, written `event prefix`, are the machine's
triggers.  Two rules keep that cheap and exact:

* ijson never sees the arguments: it is fed an empty object in their place (its C backend scans an unfinished string
  again at every push);
* a call that stands without a list is read as the one item of a list that the reader opens itself, so one machine
  serves both spellings.

An opening brace is not believed before the character after it: only a key or a closing brace make it an object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolgram.islands.json_values import AFTER_ITEM, JsonScanner

if TYPE_CHECKING:
    from toolgram.islands.python_literals import PythonScanner

MAX_TOKEN = 65_536  # characters of one key or name; longer ones are no call


class NoEvent(ValueError):
    """A token that does not fit where ijson stands."""


class IjsonFeed:
    """ijson's push parser, with a trail that can set up another one at the same place."""

    __slots__ = ("_events", "_push", "_refusal", "trail")

    def __init__(self, trail: str = "") -> None:
        import ijson

        self._refusal = ijson.JSONError
        self._events: list[tuple[str, str, Any]] = []
        self._push = ijson.parse_coro(_Sink(self._events))
        self.trail = ""
        if trail:
            self.push(trail)

    def push(self, token: str) -> list[tuple[str, str, Any]]:
        """Feed one whole token; the events that it completes. Raises NoEvent where it does not fit."""
        self.trail += token
        try:
            self._push.send(token.encode("utf-8", "replace"))
        except (self._refusal, ValueError):  # a lone surrogate, escaped, is no text to its C library
            raise NoEvent(token) from None
        events = self._events[:]
        self._events.clear()
        return events


class _Sink:
    __slots__ = ("_events",)

    def __init__(self, events: list[tuple[str, str, Any]]) -> None:
        self._events = events

    def send(self, event: tuple[str, str, Any]) -> None:
        self._events.append(event)

    def close(self) -> None:
        """ijson closes its target when the stream is dropped; there is nothing to do."""


class Envelope:
    """What one open envelope remembers; the parser moves it.

    `source` collects the characters since the last event and `token` an unfinished string; `path` is where the next
    value stands (`item.name`) and `parents` the objects around it; `in_list` says whether the model itself opened a
    list. Where the model quotes like Python, `python` transcodes, and `skip` brackets of what it says are known.
    """

    __slots__ = (
        "feed",
        "in_list",
        "inner",
        "parents",
        "path",
        "python",
        "scanner",
        "skip",
        "source",
        "token",
        "token_at",
    )

    def __init__(self, in_list: bool = False) -> None:
        self.scanner = JsonScanner()
        self.feed: IjsonFeed | None = None
        self.python: PythonScanner | None = None
        self.in_list = in_list
        self.skip = 0
        self.inner = "envelope"  # while transcoding: the reader of what is transcoded
        self.source = ""
        self.token = ""
        self.token_at = 0  # where in `source` it begins
        self.path = "" if in_list else "item"
        self.parents: list[str] = []

    def push(self, token: str) -> list[tuple[str, str, Any]]:
        """ijson's events for one more token; the parser behind it is made when first needed."""
        if self.feed is None:
            self.feed = IjsonFeed("" if self.in_list else "[")
        return self.feed.push(token)

    def settle(self) -> None:
        """A value is complete: the trail need only say where, not what went by."""
        assert self.feed is not None
        keys = [path.rpartition(".")[2] for path in self.parents[1:]]
        objects = "".join(f'{{"{key}":' for key in [*keys, ""]) if self.parents else ""
        self.feed.trail = f"[{objects}0"

    @property
    def depth(self) -> int:
        """How many brackets are open around a member of the call's object."""
        return len(self.parents) + (1 if self.in_list else 0)

    def resume_list(self) -> None:
        """Stand in the model's own list, after an item."""
        self.scanner = JsonScanner()
        self.scanner.stack.append("[")
        self.scanner.state = AFTER_ITEM
        self.feed = IjsonFeed("[0")
        self.parents, self.path, self.token, self.source, self.python = [], "item", "", "", None
        self.inner = "envelope"

    def dump(self) -> dict[str, Any]:
        """The state as JSON-able data."""
        return {
            "scanner": self.scanner.dump(),
            "trail": self.feed.trail if self.feed else None,
            "python": self.python.state() if self.python else None,
            "in_list": self.in_list,
            "source": self.source,
            "skip": self.skip,
            "inner": self.inner,
            "token": self.token,
            "token_at": self.token_at,
            "path": self.path,
            "parents": self.parents,
        }

    @classmethod
    def load(cls, data: dict[str, Any]) -> Envelope:
        """The inverse of `dump`."""
        envelope = cls(data["in_list"])
        envelope.scanner = JsonScanner.load(data["scanner"])
        envelope.feed = IjsonFeed(data["trail"]) if data["trail"] is not None else None
        if data["python"] is not None:
            from toolgram.islands.python_literals import PythonScanner

            envelope.python = PythonScanner.restore(data["python"])
        envelope.skip, envelope.inner = data["skip"], data["inner"]
        envelope.source, envelope.token, envelope.token_at = data["source"], data["token"], data["token_at"]
        envelope.path, envelope.parents = data["path"], list(data["parents"])
        return envelope
