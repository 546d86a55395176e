"""Phases T1 to T7: how calls are written.

Strategy: one, two and three calls are rendered and read (`reading`).  What is between two calls is split against
what precedes the first and what follows the last: the shared parts belong to each call, the rest is the separator, and
what only the first and the last have is the section.  Whether markers are per call or per section, where the id is,
what wraps the name, need no questions of their own: they are read off the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from typing import Any

from toolgram.derive.arguments import find_object, learn_values, style_of
from toolgram.derive.comparing import common_prefix, common_suffix, find_slots, markers_of, split_junction
from toolgram.derive.content import Content, split_turn_end, without_empty_reasoning
from toolgram.derive.conversation import CONTENT, EITHER, REASONING, Conversation, forms
from toolgram.derive.reading import Reading, find_counters, read_calls, widened, with_counters
from toolgram.derive.reasoning import Reasoning
from toolgram.derive.result import (
    ArgumentPattern,
    ArgumentsFormat,
    ArgumentSlot,
    ArgumentsStyle,
    CallsFormat,
    Pattern,
    Slot,
    ValueEncoding,
    ValueStyle,
    framed,
    shown,
)
from toolgram.observing.probes import CALLS, TYPED, Call

_READABLE = (ArgumentsStyle.JSON, ArgumentsStyle.TAGGED, ArgumentsStyle.JSON_STRING)


@dataclass(slots=True)
class Calls:
    """The readings that the phases share: one call, two and three."""

    style: ArgumentsStyle
    one: Reading
    several: list[Reading]
    base: int = 0


def settle_calls(conversation: Conversation) -> ArgumentsStyle | None:
    """Find the form in which the template prints calls, and the style of their arguments. None if it prints none."""
    fallback = None
    either = list(forms(conversation.form, arguments_as_string=EITHER, empty_content=("", None)))
    for conversation.form in either:
        turn = conversation.turn(None, None, CALLS[:1])
        if turn is None or not (CALLS[0].name in turn or CALLS[0].id in turn):
            continue
        style = style_of(turn, CALLS[0].arguments)
        readable = style in _READABLE and not (conversation.form.arguments_as_string and _is_text(turn, style))
        if style is not None and readable:
            return _settled(conversation, style, turn)
        if style is not None and fallback is None:
            fallback = conversation.form, style
    conversation.form = fallback[0] if fallback else either[0]
    return fallback[1] if fallback else None


def _is_text(turn: str, style: ArgumentsStyle | None) -> bool:
    """Return whether arguments that were given as text are printed as a text of a language, in its quotes."""
    span = find_object(turn, CALLS[0].arguments, style) if style is ArgumentsStyle.JSON else None
    return span is not None and turn[span[0] - 1 : span[0]] == turn[span[1] : span[1] + 1] == "'"


def _settled(conversation: Conversation, style: ArgumentsStyle, turn: str) -> ArgumentsStyle:
    if conversation.form.empty_content == "":
        empty, conversation.form = conversation.form, replace(conversation.form, empty_content=None)
        shorter = conversation.turn(None, None, CALLS[:1])
        if not (shorter and len(shorter) < len(turn) and turn.startswith(shorter.rstrip())):
            conversation.form = empty  # an empty content adds nothing after the calls, such as a turn of its own
    return style


def read_all(conversation: Conversation, style: ArgumentsStyle) -> Calls | None:
    """Read one, two and three calls, and the counters in them."""
    one = read_calls(_body(conversation, CALLS[:1]), CALLS[:1], style)
    if one is None:
        return None
    several = []
    for count in (2, 3):
        reading = read_calls(_body(conversation, CALLS[:count]), CALLS[:count], style)
        if reading is None:
            break
        several.append(reading)
    calls = Calls(style, one, several)
    counters = find_counters(several[-1]) if several else []
    if counters:
        calls.one = with_counters(one, counters)
        calls.several = [with_counters(reading, counters) for reading in several]
        calls.base = counters[0].base
        conversation.found("T7", f"a counter from {calls.base}", "a number goes up by one per call", several[-1].text)
    return calls


def _body(
    conversation: Conversation, calls: Sequence[Call], content: str | None = None, reasoning: str | None = None
) -> str:
    return conversation.body(conversation.turn(content, reasoning, calls) or "")


def learn_calls(conversation: Conversation, calls: Calls, reasoning: Reasoning, content: Content) -> CallsFormat:
    """Return the pattern of a call, what separates calls, and the section around them."""
    if calls.style is ArgumentsStyle.TAGGED:
        arguments = _learn_tagged(conversation, calls)
    else:
        arguments = ArgumentsFormat(calls.style, _shown(calls))
    before, after = _before_first(conversation, calls, reasoning, content), _after_last(calls.one, content)
    section_start, section_end, separator, eos = "", "", "", conversation.template.tokens["eos_token"]
    if calls.several:
        pair = calls.several[0]
        opening = before if pair.lead(0).endswith(before) else pair.lead(0)
        closing = _after_last(pair, content)
        end, separator, start = split_junction(pair.lead(1), opening, closing)
        section_start = opening.removesuffix(start) if opening.endswith(start) else ""
        section_end = closing[len(end) :]
        bare = not content.turn_end.strip() or split_turn_end(pair.tail(1), content.turn_end)[1]
        shorter = _up_to(section_end, eos)
        section_end = shorter if bare or shorter != section_end else _section_end(section_start, section_end)
        section_start = section_start if (section_start + section_end).strip() else ""
    else:  # a template that prints one call has no section
        start, end = before, _up_to(after, eos)
    slots = [Slot(item.slot) for item in calls.one.calls[0]]
    pattern: Pattern = _pattern([start, *calls.one.texts(0)[1:-1], end], slots)
    single = _single(before, after, start, end, section_start, section_end)
    result = CallsFormat(pattern, arguments, section_start, section_end, separator, single, index_base=calls.base)
    result = replace(result, parallel=bool(calls.several))
    return _report(conversation, result, calls)


def _report(conversation: Conversation, result: CallsFormat, calls: Calls) -> CallsFormat:
    texts = [calls.one.text, *(reading.text for reading in calls.several)]
    section = f"section {result.section_start!r} ... {result.section_end!r}, between calls {result.separator!r}"
    conversation.found("T1-T3", section, "what is between two calls, before the first and after the last", *texts)
    conversation.found("T4-T7", f"each call {shown(result.pattern)}", "what surrounds name, id and arguments", *texts)
    both = _body(conversation, CALLS[:2])
    if not result.parallel and all(call.name in both for call in CALLS[:2]):
        conversation.leave_unexplained("the template prints two calls, and not one after the other as it prints one")
    elif not result.parallel:
        conversation.warn("the template does not print two calls in one message")
    return result


def _before_first(conversation: Conversation, calls: Calls, reasoning: Reasoning, content: Content) -> str:
    """Return what precedes the first call whatever comes before the calls, less an empty block of reasoning."""
    first = calls.one.calls[0]
    counted = first[1].start - first[0].start if first[0].slot is Slot.INDEX else 0  # a counter before the name
    leads = [without_empty_reasoning(calls.one.lead(0), reasoning)]
    for with_content, with_reasoning in ((CONTENT, None), (None, REASONING)):
        reading = read_calls(_body(conversation, CALLS[:1], with_content, with_reasoning), CALLS[:1], calls.style)
        word = with_content or with_reasoning or ""
        if reading is None or word not in reading.lead(0):
            continue
        rest = reading.lead(0).partition(word)[2]
        rest = rest[: len(rest) - counted]
        marker = (content.end if with_content else reasoning.end).strip()
        leads.append(rest.partition(marker)[2] if marker and rest.lstrip().startswith(marker) else rest)
    shared = common_suffix(leads)
    return shared if shared.strip() or not leads[0].strip() else leads[0]


def _after_last(reading: Reading, content: Content) -> str:
    return split_turn_end(reading.tail(len(reading.calls) - 1), content.turn_end)[0]


def _up_to(text: str, token: str) -> str:
    return text.partition(token)[0] if token else text


def _section_end(section_start: str, section_end: str) -> str:
    """Return the part of what follows the last call that is not the turn's end, if calls end a turn otherwise."""
    if not section_start.strip():
        return ""
    count, markers = len(markers_of(section_start)), markers_of(section_end)
    return section_end if len(markers) <= count else section_end[: section_end.index(markers[count])]


def _single(
    before: str, after: str, start: str, end: str, section_start: str, section_end: str
) -> tuple[str, str] | None:
    """Return how one call alone is opened and closed, if several are otherwise."""
    if not (before.endswith(start) and after.startswith(end)):
        return None
    opening, closing = before.removesuffix(start), after.removeprefix(end)
    closing = section_end if closing.startswith(section_end) else closing
    opening = opening if opening.strip() or section_start else ""
    return None if (opening, closing) == (section_start, section_end) else (opening, closing)


def _pattern(texts: Sequence[str], slots: Sequence[Enum]) -> tuple[Any, ...]:
    """Return these texts with the slots between them, without empty ones."""
    parts: list[Any] = [texts[0]]
    for slot, text in zip(slots, texts[1:], strict=True):
        parts += [slot, text]
    return tuple(part for part in parts if part != "")


def _shown(calls: Calls) -> str:
    region = next(item for item in calls.one.calls[0] if item.slot is Slot.ARGUMENTS)
    return calls.one.text[region.start : region.end]


def _learn_tagged(conversation: Conversation, calls: Calls) -> ArgumentsFormat:
    """Learn the pattern of one argument, the separator, and how each type is written (A1 and A2)."""
    one = calls.one
    words = one.words[0]
    second = next(at for at, word in enumerate(words) if word.argument != words[0].argument)
    region = [item.slot for item in one.calls[0]].index(Slot.ARGUMENTS)
    junction = one.text[words[second - 1].end : words[second].start]
    before, after = one.texts(0)[region : region + 2]
    bare = _body(conversation, [replace(CALLS[0], arguments={})]).partition(CALLS[0].name)[2]
    before = before if common_prefix([bare, before]) != before else ""  # it is there without arguments as well
    end, separator, start = split_junction(junction, before, after)
    calls.one = widened(one, len(start), len(end))
    calls.several = [widened(reading, len(start), len(end)) for reading in calls.several]
    first = words[:second]
    texts = [one.text[a.end : b.start] for a, b in pairwise(first)]
    pattern: ArgumentPattern = _pattern([start, *texts, end], [ArgumentSlot(word.slot) for word in first])
    values = _learn_types(conversation, pattern)
    if "string" in values and values["string"].encoding is not ValueEncoding.OMITTED:
        pattern = framed(pattern, values["string"])
    found = f"argument {shown(pattern)}, between {separator!r}"
    conversation.found("A1", found, "the text between two arguments", one.text)
    return ArgumentsFormat(calls.style, _shown(calls), pattern=pattern, separator=separator, values=values)


def _learn_types(conversation: Conversation, pattern: ArgumentPattern) -> dict[str, ValueStyle]:
    """Return how each JSON type is written, from one call with a value of each, or from a call for each."""
    at = pattern.index(ArgumentSlot.VALUE)
    before = next((part for part in pattern[at - 1 : at] if isinstance(part, str)), "")
    default = next((part for part in pattern[at + 1 : at + 2] if isinstance(part, str)), "")
    stretches = _stretches(conversation, TYPED)
    if not stretches:
        for key in TYPED.arguments:
            chosen = {name: TYPED.arguments[name] for name in ("zka_str", key, "zkz_end")}
            stretches |= _stretches(conversation, replace(TYPED, arguments=chosen))
        conversation.warn("the template does not print arguments of every type")
    styles = learn_values(stretches, TYPED.arguments, before)
    if not styles:
        conversation.warn("the values of arguments cannot be told from their markers; only text was seen")
    plain = stretches.get("zka_str", "")
    rest = plain[len(before) + len(TYPED.arguments["zka_str"]) + len(default) :]
    for kind, style in styles.items():
        if not style.after.endswith(rest):
            styles[kind] = ValueStyle(ValueEncoding.UNKNOWN, before, default)
        else:
            styles[kind] = replace(style, after=style.after.removesuffix(rest))
    return styles


def _stretches(conversation: Conversation, call: Call) -> dict[str, str]:
    """Return the text between each key of a call and the next one, the key itself written as a zero byte."""
    turn = conversation.turn(None, None, [call])
    if turn is None:
        return {}
    first: dict[str, tuple[int, int]] = {}
    for slot in find_slots(turn, [(key, key) for key in call.arguments]):
        first.setdefault(slot.label, (slot.start, slot.end))
    rows = sorted(first.items(), key=lambda row: row[1])
    return {key: turn[end:start].replace(key, "\0") for (key, (_, end)), (_, (start, _)) in pairwise(rows)}
