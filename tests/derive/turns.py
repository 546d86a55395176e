"""Messages to be written from an analysis, and the template's own rendering of them to compare with.

Strategy: none of the values here is used by the analysis itself, so that a turn that comes out right character for
character was understood, not remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from toolgram.derive.conversation import Conversation
from toolgram.derive.rebuilding import NotExpressible, rebuild
from toolgram.derive.rendering import ChatTemplate
from toolgram.derive.result import DiffAnalysisResult, Report
from toolgram.observing.probes import Call

TEMPLATES = Path(__file__).parent / "templates"
# Derived and read, and exported; but vLLM is not told where their thoughts end.
UNTOLD_ENDS = frozenset({"action_lines", "addressed_parts", "thought_message"})
# Derived and read; but a prompt ends inside a marker, one header begins thoughts, answers and calls alike, or only the
# next argument ends a value. Some exports are refused, and vLLM is not told where their thoughts end.
READ_ONLY = frozenset({"header_per_part", "open_values", "python_in_fence", "recipient_in_prompt", "role_per_call"})
SHARED = Path(__file__).parents[2].parent / "shared"
EXACT, WRONG, NOT_EXPRESSIBLE, REFUSED = "exact", "wrong", "not expressible", "refused"

_CONTENT = "Hello, world!\nIs a < b, or {not}?"
_REASONING = "The user wants something.\nLet me think step by step."
_WEATHER = Call("get_weather", {"city": "Paris", "days": 2}, "call12345")
_SEARCH = Call("search.docs", {"query": "cats & <dogs>", "limit": 3}, "call12346")
_TIME = Call("get_time", {}, "call12347")
_NESTED = Call(
    "search.docs",
    {
        "query": 'naïve café ☕ "quoted" \\ back\ttab',
        "filters": {"a": {"b": [1, 2, {"c": 'd "e" {f}'}]}, "empty": {}, "list": []},
        "tags": ["x", 'y "z"', "it's"],
        "exact": True,
        "limit": 0,
    },
    "call12348",
)
_TYPES = Call("types", {"q": "q", "exact": False, "score": 0.1, "limit": -7, "tags": [], "nil": None}, "call12349")


@dataclass(frozen=True, slots=True)
class Message:
    """A message to be written."""

    content: str | None = None
    reasoning: str | None = None
    calls: Sequence[Call] = ()


MESSAGES = {
    "a content": Message(_CONTENT),
    "b one call": Message(calls=[_WEATHER]),
    "c two calls": Message(calls=[_WEATHER, _SEARCH]),
    "c2 equal calls": Message(calls=[_WEATHER, _WEATHER]),
    "c3 three calls": Message(calls=[_WEATHER, _TIME, _SEARCH]),
    "d reasoning, content": Message(_CONTENT, _REASONING),
    "e reasoning, call": Message(None, _REASONING, [_WEATHER]),
    "f content, call": Message(_CONTENT, None, [_WEATHER]),
    "f2 reasoning, content, calls": Message(_CONTENT, _REASONING, [_WEATHER, _SEARCH]),
    "g nested": Message(calls=[_NESTED]),
    "g2 types": Message(calls=[_TYPES]),
    "h no arguments": Message(calls=[_TIME]),
}


def outcomes(source: str, result: DiffAnalysisResult, eos_token: str = "</s>") -> dict[str, str]:
    """For every message, whether the analysis writes what the template renders."""
    conversation = Conversation(ChatTemplate(source, "<s>", eos_token), Report())
    conversation.form = result.form
    return {name: _outcome(conversation, result, message) for name, message in MESSAGES.items()}


def _outcome(conversation: Conversation, result: DiffAnalysisResult, message: Message) -> str:
    try:
        written = rebuild(result, message.content, message.reasoning, message.calls)
    except NotExpressible:
        return NOT_EXPRESSIBLE
    turn = conversation.turn(message.content, message.reasoning, message.calls)
    if turn is None:
        return REFUSED
    return EXACT if turn == written else WRONG
