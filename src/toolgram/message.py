"""The message that events add up to.

Strategy: a message is a fold over events and nothing else, so that a stream and a whole-text parse cannot differ.  Text
and calls are kept in the order in which the model wrote them.  A call that failed is text: what it was made from, with
the markers and blanks around it, is at its place in the content, and the call itself is in `malformed`.  The source
of a call is kept only while it may still fail.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable, MutableSequence, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from toolgram.anomalies import Anomaly
from toolgram.errors import ToolgramError
from toolgram.events import (
    BufferedEvent,
    Content,
    Dropped,
    Malformed,
    Note,
    Reasoning,
    Status,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from toolgram.late_imports import late_import
from toolgram.tools.repeated_keys import KeyWatch, repeated_keys

if TYPE_CHECKING:
    from toolgram.tools.validation import CheckedCall


@dataclass(slots=True)
class ToolCall:
    """One call. `arguments` is a JSON string as in the OpenAI API: whole if `status` is `complete`, and otherwise what
    was written of it. `model_id` is the id that the model wrote, if it came after `id` was needed."""

    id: str
    name: str
    arguments: str
    status: Status
    model_id: str | None = None


@dataclass(slots=True)
class MalformedCall:
    """A call that failed. `index` is that of its events, `arguments` what was read of them, `source` all of its text,
    and `start` the offset in characters at which that begins."""

    index: int
    id: str
    name: str
    arguments: str
    source: str
    start: int


Part: TypeAlias = str | ToolCall


@dataclass(slots=True)
class Message:
    """One assistant message. `content` and `reasoning` are None when there is nothing but whitespace.

    `tool_calls` are complete or truncated. `parts` has the texts of `content` and these calls in order; `malformed` are
    the calls that failed, whose text is part of `content`.
    """

    content: str | None = None
    reasoning: str | None = None
    tool_calls: list[ToolCall] = field(default_factory=list)
    malformed: list[MalformedCall] = field(default_factory=list)
    anomalies: list[Anomaly] = field(default_factory=list)
    finish_reason: str | None = None
    parts: list[Part] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the message as JSON-able data, without `parts`, which repeat the rest."""
        return {
            "content": self.content,
            "reasoning": self.reasoning,
            "tool_calls": [_call_fields(call) for call in self.tool_calls],
            "malformed": [_fields(call) for call in self.malformed],
            "anomalies": [_fields(anomaly) for anomaly in self.anomalies],
            "finish_reason": self.finish_reason,
        }

    def validate(self, tools: Sequence[Any] | None) -> list[CheckedCall]:
        """Validate every call against the JSON Schema of its tool; return all faults, worded for the model.

        `tools` are in any known shape. Raises ToolgramError for an unknown one, and without jsonschema-rs (the extra
        `validate`). See `toolgram.tools.validation`.
        """
        checked: list[CheckedCall] = late_import("validate")(self, tools)
        return checked


def _call_fields(call: ToolCall) -> dict[str, Any]:
    """Do what `_fields` does, for what nearly every message has."""
    said = {"id": call.id, "name": call.name, "arguments": call.arguments, "status": call.status}
    return said if call.model_id is None else {**said, "model_id": call.model_id}


def _fields(value: Any) -> dict[str, Any]:
    """Return a dataclass as data; what is None is left out."""
    named = {name: getattr(value, name) for name in value.__match_args__}
    return {name: each for name, each in named.items() if each is not None}


MALFORMED: Container[Status] = frozenset[Status]({"malformed"})
UNFINISHED = frozenset[Status]({"malformed", "truncated"})
ENDED = ("stop", "tool_calls")  # the finish reasons of an output that was not cut off

_FORGOTTEN: deque[str] = deque(maxlen=0)
_BRACKETS = frozenset("}])")


@dataclass(slots=True, eq=False, repr=False)
class _Text:
    """Text between calls; `joined`: a blank precedes it, for what was dropped there."""

    pieces: MutableSequence[str] = field(default_factory=list)
    joined: bool = False


@dataclass(slots=True, eq=False, repr=False)
class _Call:
    """A call, and what it was made from as long as it may fail.

    `fragments` are its arguments. `sources` says which of them the model wrote differently, `inside` what was dropped
    between them (before which fragment), `before` and `after` what was dropped around them, `rest` what was malformed
    after them. `shared`: other calls are in the same brackets.
    """

    call: ToolCall
    index: int
    start: int
    before: list[str]
    fragments: list[str] = field(default_factory=list)
    sources: dict[int, str] = field(default_factory=dict)
    inside: list[tuple[int, str]] = field(default_factory=list)
    rest: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    shared: bool = False

    def forget_source(self) -> None:
        """Return whether it is complete."""
        self.before, self.inside, self.sources = [], [], {}

    def source(self) -> str:
        """Return all of its text."""
        before = "".join(self.before)
        if self.shared:  # what is around several calls belongs to none of them
            before = before[max(before.rfind("{"), 0) :]
        pieces, at = [before], 0
        for place, text in [*self.inside, (len(self.fragments), "")]:
            pieces += [self.sources.get(number, self.fragments[number]) for number in range(at, place)]
            pieces.append(text)
            at = place
        return "".join([*pieces, *self.rest, *(() if self.shared else self.after)])

    def malformed(self) -> MalformedCall:
        """Return the call as one that failed."""
        source = self.source()
        blanks = len(source) - len(source.lstrip())
        skipped = len("".join(self.before)) - len("".join(self.before)[max("".join(self.before).rfind("{"), 0) :])
        start = self.start + (skipped if self.shared else 0) + blanks
        arguments = "".join(self.fragments)
        return MalformedCall(self.index, self.call.id, self.call.name, arguments, source.strip(), start)


class MessageBuilder:
    """Folds events into a message as they come, keeping texts and no events.

    `content`, `reasoning` and `fragments` (of the call that is open) are lists to append text to: the parser's short
    path does just that. `closing` are the markers that close a call. With `keep` false everything is forgotten at once,
    and there is no message to ask for.
    """

    __slots__ = (
        "_call", "_content", "_dropped", "_failed", "_finish_reason", "_finished", "_joined", "_keep", "_opens",
        "_parts", "_reasoning", "closing", "fragments", "repeated",
    )  # fmt: skip

    def __init__(self, closing: frozenset[str] = frozenset(), keep: bool = True) -> None:
        self._keep = keep
        self.closing = closing
        self._content: MutableSequence[str] | None = None
        self._reasoning: MutableSequence[str] | None = None
        self.fragments: MutableSequence[str] | KeyWatch = _FORGOTTEN
        self._joined = False  # a blank precedes `content`, for what was dropped there
        self._parts: list[_Text | _Call] | None = None  # before `content`; made when it is needed, as all lists here
        self._call: _Call | None = None  # the open one
        self._failed: _Call | None = None  # one that has failed, and whose text may go on
        self._dropped: list[str] | None = None  # since the last text or call
        self._opens: tuple[int, bool] | None = None  # at which of these a call begins, and whether inside another's
        self._finish_reason: str | None = None
        self._finished = False
        self.repeated: list[tuple[int, str]] | None = None  # calls whose arguments have a key twice, and the key

    @property
    def keeps(self) -> bool:
        """Whether there will be a message."""
        return self._keep

    @property
    def content(self) -> MutableSequence[str]:
        """The text since the last call."""
        if self._content is None:
            self._content = [] if self._keep else _FORGOTTEN
        return self._content

    @property
    def reasoning(self) -> MutableSequence[str]:
        """The reasoning."""
        if self._reasoning is None:
            self._reasoning = [] if self._keep else _FORGOTTEN
        return self._reasoning

    @property
    def inside_string(self) -> Callable[[str], None]:
        """What takes more of a string in the arguments, written as JSON. No key begins or ends there."""
        return (_FORGOTTEN if isinstance(self.fragments, KeyWatch) else self.fragments).append

    def add(self, events: Iterable[BufferedEvent], offset: int = 0) -> None:
        """Add events, in order; `offset` is where the first of them begins."""
        if not self._keep:
            self._watch(events)
            return
        for event in events:
            if isinstance(event, Dropped):
                self._drop(event.source)
            elif isinstance(event, ToolCallDelta):
                if event.arguments != event.source:
                    self.written_as(event.source)
                self.fragments.append(event.arguments)
            elif isinstance(event, Content):
                self._say(event.text, event.source)
            elif isinstance(event, Reasoning):
                self.reasoning.append(event.text)
                self._forget_dropped()
            else:
                self._add_once(event, offset)
            offset += len(event.source)

    def _add_once(self, event: BufferedEvent, offset: int) -> None:
        """Add an event that comes once for a call or less often, and not with every delta."""
        if isinstance(event, Note):
            self._note(event)
        elif isinstance(event, ToolCallStart):
            self._start(event, offset)
        elif isinstance(event, ToolCallEnd):
            self._end(event)
        elif isinstance(event, Malformed):
            self._malformed(event)

    def _watch(self, events: Iterable[BufferedEvent]) -> None:
        """Note only which keys of arguments come twice, if nothing is kept."""
        for event in events:
            if isinstance(event, Dropped):
                continue
            if isinstance(event, ToolCallDelta):
                self.fragments.append(event.arguments)
            elif isinstance(event, ToolCallStart):
                self.fragments = KeyWatch()
            elif isinstance(event, ToolCallEnd):
                if isinstance(self.fragments, KeyWatch) and event.status == "complete":
                    self._note_repeated(event.index, self.fragments.repeated)
                self.fragments = _FORGOTTEN

    def _note_repeated(self, index: int, keys: Iterable[str]) -> None:
        for key in keys:
            self.repeated = [*(self.repeated or ()), (index, key)]

    def written_as(self, source: str) -> None:
        """Note that the next fragment of arguments was written in another way."""
        if self._call is not None:
            self._call.sources[len(self._call.fragments)] = source

    def _say(self, text: str, source: str) -> None:
        """Add text for the user. What was dropped before it joins it to the text before by one blank."""
        self._forget_dropped()
        if not self.content and text.startswith(" ") and not source.startswith(" "):
            self._joined, text = True, text[1:]
        self.content.append(text)

    def _forget_dropped(self) -> None:
        self._failed = self._opens = self._dropped = None

    def _drop(self, source: str) -> None:
        """Keep characters without meaning of their own, for a call that may fail."""
        if self._call is not None:
            self._call.inside.append((len(self._call.fragments), source))
            return
        failed = self._failed if not self.content else None
        if failed is not None and self._opens is None:
            bare = source.strip()
            if not bare or bare in self.closing or _BRACKETS.issuperset(bare):
                failed.after.append(source)
                return
        self._failed = None
        if self._dropped is None:
            self._dropped = []
        self._dropped.append(source)

    def _note(self, note: Note) -> None:
        if note.kind == "opens":
            self._opens = len(self._dropped or ()), note.text == "inside"
        elif note.kind == "model_id" and self._call is not None:
            self._call.call.model_id = note.text

    def _start(self, event: ToolCallStart, offset: int) -> None:
        dropped, parts = self._dropped or [], self._parts or []
        at, shared = self._opens or (len(dropped), True)
        if at and dropped[at - 1].isspace():
            at -= 1
        before = dropped[at:]
        last = parts[-1] if parts else None
        if shared and isinstance(last, _Call) and not self.content:
            last.shared = True
        else:
            shared = False
        call = ToolCall(event.id, event.name, "", "truncated")
        self._call = _Call(call, event.index, offset - sum(map(len, before)), before, shared=shared)
        self._call.inside.append((0, event.source))
        self.fragments = self._call.fragments
        self._parts = parts
        parts += [_Text(self.content, self._joined), self._call]
        self._content, self._joined = None, False
        self._forget_dropped()

    def _end(self, event: ToolCallEnd) -> None:
        call = self._call
        if call is None:
            return
        call.call.status = event.status
        if event.status == "malformed":
            self._failed = call
        elif event.status == "complete":
            call.forget_source()
            self._note_repeated(call.index, repeated_keys("".join(call.fragments)))
        self._call = None

    def _malformed(self, event: Malformed) -> None:
        if self._failed is not None and not self.content:
            self._failed.rest += [*self._failed.after, event.source]
            self._failed.after.clear()
        else:
            self._say(event.text, event.source)

    def finish(self, finish_reason: str | None) -> None:
        """End the output."""
        self._finished = True
        self._finish_reason = finish_reason

    def message(self, anomalies: Sequence[Anomaly] = (), failed_as_text: Container[Status] = MALFORMED) -> Message:
        """Return the message so far. Calls with one of the statuses `failed_as_text` are text, and
        any other is a call. Costs as much as it is long.

        Raises ToolgramError if nothing was kept.
        """
        if not self._keep:
            raise ToolgramError("this parser keeps no message; make it with keep_message=True, or fold its events")
        parts: list[Part] = []
        texts: list[str] = []  # of the content
        calls: list[ToolCall] = []
        malformed: list[MalformedCall] = []
        text, failed = "", False
        for part in [*(self._parts or ()), _Text(self.content, self._joined)]:
            if isinstance(part, _Text):
                if not part.pieces:
                    continue
                shown = "".join(part.pieces)
                text += f" {shown}" if part.joined and shown and not failed else shown
                failed = failed and not shown
            elif part.call.status in failed_as_text:
                malformed.append(part.malformed())
                text, failed = text + part.source(), not part.shared
            else:
                made = part.call
                call = ToolCall(made.id, made.name, "".join(part.fragments), made.status, made.model_id)
                calls.append(call)
                texts.append(text)
                if text.strip():
                    parts.append(text)
                parts.append(call)
                text, failed = "".join(part.rest), False
        texts.append(text)
        if text.strip():
            parts.append(text)
        return Message(
            _text(texts),
            _text(self._reasoning or ()),
            calls,
            malformed,
            [replace(anomaly) for anomaly in anomalies],
            self._reason(calls),
            parts,
        )

    def _reason(self, calls: list[ToolCall]) -> str | None:
        if self._finish_reason is not None or not self._finished:
            return self._finish_reason
        if any(call.status == "truncated" for call in calls):
            return "length"
        return "tool_calls" if any(call.status == "complete" for call in calls) else "stop"


def _text(pieces: Iterable[str]) -> str | None:
    text = "".join(pieces)
    return text if text.strip() else None
