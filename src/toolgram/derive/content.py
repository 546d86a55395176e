"""Phase C1: whether content has markers of its own around it, and where the turn ends.

Strategy: an answer with only content has a text before it and a text after it. The text before, less an empty block of
reasoning, opens the content; without an opening there is no closing, so all text that follows is the turn's end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from toolgram.derive.comparing import common_prefix, markers_of, mirrors
from toolgram.derive.conversation import CONTENT, REASONING, Conversation
from toolgram.derive.reasoning import Reasoning
from toolgram.derive.result import ContentMode, Part, ReasoningMode
from toolgram.islands.escapes import ESCAPES
from toolgram.observing.probes import CALLS


@dataclass(frozen=True, slots=True)
class Content:
    """What the phase found."""

    mode: ContentMode
    start: str
    end: str
    turn_start: str  # blanks that the template writes before content, after the role header
    turn_end: str
    lead: str  # what a turn without a thought begins with, whatever follows


_FEWEST = 2  # characters of an end of turn that is known at any position


def learn_content(conversation: Conversation, reasoning: Reasoning, after_calls: str) -> Content:
    """Return the markers of content, and the turn's end; `after_calls` is the text after the last value of a call."""
    before, after = _around(conversation)
    start, lead = without_empty_reasoning(before, reasoning), ""
    if start.strip() and start == before and reasoning.end:
        lead = _lead(conversation, before)
        lead = lead if before.removeprefix(lead).strip() != reasoning.start.strip() else ""
        start = start.removeprefix(lead)
    mode, turn_start = ContentMode.ALWAYS_WRAPPED, ""
    if not start.strip():
        unasked = conversation.body(conversation.turn(CONTENT, kwargs={}) or "").partition(CONTENT)[0]
        mode, turn_start, start = ContentMode.PLAIN, start if unasked.strip() else unasked, ""
    end, turn_end = ("", after) if not start else _split_end(start, after, after_calls)
    conversation.found("C1", f"{mode.value}: {start!r} ... {end!r}", "what surrounds content", before, after)
    return Content(mode, start, end, turn_start, turn_end, lead)


def _around(conversation: Conversation) -> tuple[str, str]:
    """Return what is before and after content."""
    turn = conversation.turn(CONTENT)
    body = conversation.body(turn or conversation.turn(CONTENT, None, CALLS[:1]) or "")
    before, found, after = body.partition(CONTENT)
    if turn is None:  # only the text that closes any message is known
        after = split_turn_end(after, conversation.before_turn())[1]
    return (before, after) if found else ("", "")


def _lead(conversation: Conversation, before: str) -> str:
    """Return what an answer and a call begin with if no thought comes before them, and no thought begins with."""
    lead = common_prefix([before, conversation.body(conversation.turn(None, None, CALLS[:1]) or "")])
    return "" if conversation.body(conversation.turn(CONTENT, REASONING) or "").startswith(lead) else lead


def find_escapes(conversation: Conversation) -> dict[Part, str]:
    """Return the parts whose text the template escapes, each with the kind of escapes that give it back."""
    said, found = f"{CONTENT} <b>\n& \"c\" \\ 'd' {CONTENT}", {}
    for part, turn in ((Part.CONTENT, conversation.turn(said)), (Part.REASONING, conversation.turn(CONTENT, said))):
        for kind in ("html", "string", "url") if turn is not None and said not in turn else ():
            if said in ESCAPES[kind].decoded(turn or ""):
                found[part] = kind
    return found


def without_empty_reasoning(text: str, reasoning: Reasoning) -> str:
    """Return `text` without an empty block of reasoning at its beginning."""
    start, end = reasoning.start.strip(), reasoning.end.strip()
    for block in ([start, end], [end], [start] if reasoning.mode is ReasoningMode.FORCED_OPEN else []):
        if end and block and all(block):
            match = re.match(r"\s*" + r"\s*".join(map(re.escape, block)), text)
            if match is not None:
                return text[match.end() :]
    return text


def _split_end(start: str, after: str, after_calls: str) -> tuple[str, str]:
    """Split the text after wrapped content into its end marker and the turn's end."""
    end, turn_end = split_turn_end(after, after_calls)
    if turn_end and end.strip():
        return end, turn_end
    for marker in markers_of(after):
        if any(mirrors(opening, marker) for opening in markers_of(start)):
            at = after.index(marker) + len(marker)
            return after[:at], after[at:]
    quoted = start[-1:] == after[:1] and after[:1] in ("'", '"')  # what a quote opens, it closes
    return (after[0], after[1:]) if quoted else ("", after)


def split_turn_end(text: str, other: str) -> tuple[str, str]:
    """Split `text` before what it shares with the end of `other`, blanks aside; not inside a marker."""
    at, back = len(text), len(other)
    while at > 0 and back > 0:
        if text[at - 1] == other[back - 1]:
            at, back = at - 1, back - 1
        elif text[at - 1].isspace():
            at -= 1
        elif other[back - 1].isspace():
            back -= 1
        else:
            break
    shared = text[at:]
    whole = len(shared.strip()) > _FEWEST and shared.strip() == other.strip()  # the whole end of a turn
    edges, position = {0, len(text)}, 0
    for marker in markers_of(text):
        position = text.index(marker, position)
        edges |= {position, position + len(marker)}
        position += len(marker)
    while shared.strip() and not whole and not (at in edges or text[at - 1].isspace() or text[at].isspace()):
        at += 1
        shared = text[at:]
    return (text[:at], shared) if shared.strip() else (text, "")
