"""Events as vLLM's messages: a whole answer, and the deltas of a stream.

**Order.** A delta message of vLLM has content, reasoning and calls side by side, without an order. The Responses API
writes content first and calls after it, so content *after* arguments of an open call would close that call and open it
again without a name, which ends the connection. `Outgoing` therefore keeps such content for the next delta. At the end
of a stream there is no next delta: then the message says which call was open (`Ended`), and `vllm_patches` puts it in
order.

**Failed calls.** In one message, a call that cannot be read is the text that the model wrote, at its place: no client
has to guard `json.loads`. A call that was cut off remains a call, with the beginning of its arguments and the finish
reason `length`; for Anthropic's messages, whose arguments are a value, it is text as well. A stream cannot take back a
call that has begun: its arguments end without being JSON, and the rest follows as text. TOOLGRAM_MALFORMED_CALLS=call,
or `vllm_xargs: {"toolgram_malformed_calls": "call"}` in a request, keeps such a call in both modes, with its arguments
as far as they were read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from toolgram.events import Content, Event, Malformed, Reasoning, ToolCallDelta, ToolCallEnd, ToolCallStart
from toolgram.integrations.answers import CALL, FAILED, TEXT, WHOLE, AnswerBuilder, PlainThought
from toolgram.integrations.observing import logger
from toolgram.integrations.vllm_patches import MALFORMED_FIELD, quick_arguments
from toolgram.integrations.vllm_surface import DeltaFunctionCall, DeltaMessage, DeltaToolCall

MALFORMED_VARIABLE = "TOOLGRAM_MALFORMED_CALLS"

_TEXTS = (Content, Malformed, Reasoning)


def malformed_calls(request: Any) -> str:
    """Return what becomes of failed calls: "text", "call" or "whole". The request overrides the server."""
    asked = getattr(request, "vllm_xargs", None) or {}
    for said in (asked.get(MALFORMED_FIELD), os.environ.get(MALFORMED_VARIABLE)):
        if said in (TEXT, CALL, WHOLE):
            return str(said)
    return TEXT


def warn_of_unknown_setting() -> None:
    """Log a warning if the environment has an unknown setting."""
    said = os.environ.get(MALFORMED_VARIABLE)
    if said not in (None, "", TEXT, CALL):
        logger.warning("toolgram: %s is %r, which is neither text nor call; using text", MALFORMED_VARIABLE, said)


def builder_for(request: Any, marks: frozenset[str] | None) -> AnswerBuilder:
    """Return the builder of an answer to this request. With `marks`, reasoning is content, with these markers."""
    return AnswerBuilder(FAILED[malformed_calls(request)], PlainThought(marks) if marks is not None else None)


class Outgoing:
    """The deltas of one stream."""

    __slots__ = ("carried", "open", "waiting")

    def __init__(self) -> None:
        self.open = -1  # the call that began in an earlier delta and has not ended
        self.carried = False  # the last delta had arguments of such a call
        self.waiting: list[Event] = []

    def delta(self, events: list[Event]) -> Any:
        """Return the next delta; None if there is nothing to send."""
        if self.waiting:
            events = [*self.waiting, *events]
        place, self.carried = self._cut(events)
        self.waiting = events[place:]
        sent = events[:place] if self.waiting else events
        for event in sent:
            if type(event) is ToolCallStart:
                self.open = event.index
            elif type(event) is ToolCallEnd:
                self.open = -1
        return delta_of(sent)

    def last(self, events: list[Event]) -> Any:
        """Return what is left at the end, which goes into one message with the delta before it."""
        events, self.waiting = [*self.waiting, *events], []
        return delta_of(events)

    def _cut(self, events: list[Event]) -> tuple[int, bool]:
        """Return where the next delta has to begin, and whether this one has arguments of a call already open."""
        carried = False
        for place, event in enumerate(events):
            if type(event) is ToolCallDelta and event.index == self.open:
                carried = True
            elif carried and isinstance(event, _TEXTS) and event.text:
                return place, True
        return len(events), carried


def delta_of(events: Iterable[Event]) -> Any:
    """Return the delta message of these events; None if there is nothing to send."""
    content: list[str] = []
    reasoning: list[str] = []
    calls: dict[int, list[Any]] = {}  # index -> id, name, fragments
    for event in events:
        if isinstance(event, (Content, Malformed)):
            content.append(event.text)
        elif isinstance(event, Reasoning):
            reasoning.append(event.text)
        elif isinstance(event, ToolCallStart):
            calls[event.index] = [event.id, event.name, []]
        elif isinstance(event, ToolCallDelta):
            calls.setdefault(event.index, ["", "", []])[2].append(event.arguments)
    said, thought = "".join(content), "".join(reasoning)
    if len(calls) == 1 and not (said or thought):
        index, (id, name, fragments) = next(iter(calls.items()))
        if not (id or name):
            return quick_arguments(index, "".join(fragments))
    made = [_call_delta(index, *call) for index, call in calls.items()]
    fields = {"content": said, "reasoning": thought, "tool_calls": made}
    given = {name: value for name, value in fields.items() if value}
    return DeltaMessage(**given) if given else None


def _call_delta(index: int, id: str, name: str, fragments: list[str]) -> Any:
    arguments = "".join(fragments)
    if name or id:
        function = DeltaFunctionCall(name=name, arguments=arguments)
        return DeltaToolCall(index=index, id=id, type="function", function=function)
    return DeltaToolCall(index=index, function=DeltaFunctionCall(arguments=arguments))
