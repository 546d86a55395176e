"""A shipped format for a template that the analysis does not explain: one that reads everything the template renders.

Strategy: the messages of verification are rendered by the template itself, not written from the analysis, so that this
holds whatever the analysis has misunderstood.  Each shipped format reads them; one that gives all of them back is
taken.  No name is asked for.  Only formats are loaded one of whose markers stands in messages with calls alone, those
first that have most of the markers there and then the fewest others, and only while at least half of the time is left:
several may read the same messages, as some read what models write wrong, and the one that writes them so is meant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from toolgram.derive.budget import look, time_left
from toolgram.derive.conversation import Conversation
from toolgram.derive.rendering import ChatTemplate
from toolgram.derive.report import Probe
from toolgram.derive.result import DiffAnalysisResult, Report
from toolgram.derive.verification import CASES, Case, difference
from toolgram.formats import Format, format_names, get_format, grammar_home
from toolgram.limits import DERIVATION_SECONDS
from toolgram.observing.probes import TOOLS

_FEWEST = 4  # messages with calls that must have been rendered
_ALIKE = "empty texts, lists and objects inside values are printed alike or not at all, and so is null"
_SHORTEST = 4  # characters of a marker that tells anything
_LITERAL = re.compile(r'^(?:%override )?([A-Z]\w*)(?:\.-?\d+)?:.*?"([^"\\\n]+)"', re.MULTILINE)
_REPAIR = "// repair"  # behind a marker that only models write, and no template does
_PIECE = re.compile(r"^%import (?:\.common)?\.(\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Rendered:
    """A message, what the prompt has of it, and the rest as the template renders it."""

    case: Case
    prefix: str
    output: str


class Recognised(NamedTuple):
    """A shipped format, the messages that it reads, and what of them the template does not print."""

    name: str
    probes: list[Probe]
    lost: str


def recognise(template: ChatTemplate, result: DiffAnalysisResult) -> Recognised | None:
    """The shipped format that reads every message as this template renders it.

    None where there is no such format, or the template renders too few messages to tell.
    """
    messages = _messages(template, result)
    if sum(bool(message.case.calls) for message in messages) < _FEWEST:
        return None
    messages.sort(key=lambda message: not message.case.calls)  # what most formats do not read comes first
    text = "".join(message.output for message in messages if message.case.calls)
    plain = "".join(message.output for message in messages if not message.case.calls)
    names = [name for name in format_names() if any(_is_of_calls(each, text, plain) for each in markers_in_files(name))]
    for name in sorted(names, key=lambda name: (-_own_markers(name, text), strange_markers(name, text))):
        if time_left() < DERIVATION_SECONDS / 2:
            break
        look("looking for a shipped format that reads what the template renders")
        fmt = get_format(name)
        problems = [message for message in messages if _problem(fmt, message)]
        if all(_differs_in_empties(fmt, message) for message in problems):
            probes = [Probe(message.case.name, "unset", message.output) for message in messages]
            return Recognised(name, probes, _ALIKE if problems else "")
    return None


def _is_of_calls(marker: str, text: str, plain: str) -> bool:
    """Whether a marker stands in messages with calls, and in no other: those of thoughts and turns tell nothing."""
    return marker in text and marker not in plain


def _own_markers(name: str, text: str) -> int:
    """How many markers of a shipped format stand in a text; those that only models write are none."""
    return sum(marker in text for marker in markers_in_files(name))


def strange_markers(name: str, text: str) -> int:
    """How many markers of a shipped format do not stand in a text: the fewer, the closer is the format to it."""
    return sum(marker not in text for marker in markers_in_files(name))


@cache
def markers_in_files(name: str) -> frozenset[str]:
    """The markers of a shipped format, by its grammar and the pieces that it imports; these are looked at, not read."""
    literals = _literals((grammar_home() / f"{name}.lark").read_text(encoding="utf-8"))
    return frozenset(each for each in literals.values() if len(each) >= _SHORTEST and not each.isalnum())


def _literals(grammar: str) -> dict[str, str]:
    """The text of each terminal that has one; what a grammar says itself goes before what its pieces say."""
    found: dict[str, str] = {}
    for piece in _PIECE.findall(grammar):
        found |= _literals((grammar_home() / "common" / f"{piece}.lark").read_text(encoding="utf-8"))
    return found | dict(_LITERAL.findall("\n".join(line for line in grammar.splitlines() if _REPAIR not in line)))


def _messages(template: ChatTemplate, result: DiffAnalysisResult) -> list[Rendered]:
    conversation = Conversation(template, Report())
    conversation.form, conversation.header = result.form, result.header
    prompt = result.prompts["unset"].text
    found = []
    for case in CASES:
        turn = conversation.turn(case.content, case.reasoning, case.calls)
        if turn is None or not _is_whole(turn, case):
            continue
        begun = turn.startswith(prompt)
        output = turn[len(prompt) :] if begun else conversation.body(turn)
        for end in (result.turn_end_after_calls, result.turn_end):
            output = output.removesuffix(end) if case.calls or end == result.turn_end else output
        found.append(Rendered(case, prompt if begun else "", output))
    return found


def _is_whole(turn: str, case: Case) -> bool:
    """Whether the template has printed every part of the message."""
    texts = [text for text in (case.content, case.reasoning) if text]
    return all(text in turn for text in texts) and all(call.name in turn for call in case.calls)


def _problem(fmt: Format, message: Rendered) -> str:
    return difference(fmt.parse(message.output, _tools(message.case.calls), message.prefix, "stop"), message.case)


def _differs_in_empties(fmt: Format, message: Rendered) -> bool:
    """Whether a message is read as it is but for empty lists, objects and texts inside values, and null, which may be
    printed alike."""
    read = fmt.parse(message.output, _tools(message.case.calls), message.prefix, "stop")
    if any(call.status != "complete" for call in read.tool_calls):
        return False
    calls = [(call.name, without_empties(json.loads(call.arguments))) for call in read.tool_calls]
    wanted = [(call.name, without_empties(dict(call.arguments))) for call in message.case.calls]
    texts = [(read.content or "", message.case.content or ""), (read.reasoning or "", message.case.reasoning or "")]
    return calls == wanted and all(one == other for one, other in texts)


def without_empties(value: Any) -> Any:
    """A value in which empty lists and objects are empty texts, without members that are empty or null."""
    if isinstance(value, Mapping):
        members = {key: without_empties(each) for key, each in value.items()}
        return {key: each for key, each in members.items() if each not in ("", None)} or ""
    if isinstance(value, list):
        return [without_empties(each) for each in value] or ""
    return value


def _tools(calls: Sequence[object]) -> list[dict[str, object]] | None:
    return TOOLS if calls else None
