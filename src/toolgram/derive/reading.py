"""Finding the calls of a probe in a rendered turn.

Strategy: all values of a probe are known, so a call is a row of *items* (name, id, arguments as one region) and the
constant texts between them.  Counters over the calls (`:0`, `"call_id": "1"`) are no values that we chose; they are
found as the numbers that go up by one from call to call in the same place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from toolgram.derive.arguments import find_object
from toolgram.derive.comparing import find_slots
from toolgram.derive.result import ArgumentSlot, ArgumentsStyle, Slot
from toolgram.observing.probes import Call

LEAD, TAIL = -1, -2  # columns of a call besides the texts between its items, which count from 0
_NUMBER = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class Item:
    """One value of a call in a text."""

    slot: Slot
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Word:
    """A key or a value of a tagged argument in a text; `argument` counts the arguments of the call."""

    argument: int
    slot: ArgumentSlot
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Counter:
    """Where a counter stands: in which column, which number from that column's end (lead) or beginning (others)."""

    column: int
    token: int
    base: int


@dataclass(slots=True)
class Reading:
    """A turn with the calls found in it: the items of each call, and the words of tagged arguments."""

    text: str
    calls: list[list[Item]]
    words: list[list[Word]]

    @property
    def start(self) -> int:
        """Where the first item stands."""
        return self.calls[0][0].start

    @property
    def end(self) -> int:
        """Where the last item ends."""
        return self.calls[-1][-1].end

    def lead(self, call: int) -> str:
        """The text before a call's first item, from the end of the call before it."""
        return self.text[self.calls[call - 1][-1].end if call else 0 : self.calls[call][0].start]

    def tail(self, call: int) -> str:
        """The text after a call's last item, up to the next call."""
        last = call == len(self.calls) - 1
        return self.text[self.calls[call][-1].end : None if last else self.calls[call + 1][0].start]

    def inner(self, call: int) -> list[str]:
        """The texts between a call's items."""
        return [self.text[a.end : b.start] for a, b in pairwise(self.calls[call])]

    def slots(self, call: int) -> list[Slot]:
        """What the items of a call are."""
        return [item.slot for item in self.calls[call]]


def read_calls(text: str | None, calls: Sequence[Call], style: ArgumentsStyle) -> Reading | None:
    """Find every call in `text`; None where one is missing or they are mixed up."""
    if text is None:
        return None
    found = _tagged(text, calls) if style is ArgumentsStyle.TAGGED else _whole(text, calls, style)
    if found is None or any(not items for items in found.calls):
        return None
    edges = [edge for items in found.calls for item in items for edge in (item.start, item.end)]
    return found if edges == sorted(edges) and _has_arguments(found) else None


def _has_arguments(reading: Reading) -> bool:
    return all(Slot.ARGUMENTS in {item.slot for item in items} for items in reading.calls)


def _names_and_ids(calls: Sequence[Call]) -> list[tuple[str, str]]:
    pairs = [(f"{at} {Slot.NAME.value}", call.name) for at, call in enumerate(calls)]
    return pairs + [(f"{at} {Slot.ID.value}", call.id) for at, call in enumerate(calls)]


def _whole(text: str, calls: Sequence[Call], style: ArgumentsStyle) -> Reading | None:
    items: list[list[Item]] = []
    at = 0
    spans: list[tuple[int, int]] = []
    for call in calls:
        span = find_object(text, call.arguments, style, at)
        if span is None:
            return None
        items.append([Item(Slot.ARGUMENTS, *span)])
        spans.append(span)
        at = span[1]
    for slot in find_slots(text, _names_and_ids(calls)):
        if not any(start <= slot.start < end for start, end in spans):
            owner, kind = slot.label.split()
            items[int(owner)].append(Item(Slot(kind), slot.start, slot.end))
    return Reading(text, [sorted(row, key=lambda item: item.start) for row in items], [[] for _ in calls])


def _tagged(text: str, calls: Sequence[Call]) -> Reading | None:
    values = _names_and_ids(calls)
    for at, call in enumerate(calls):
        for number, (key, value) in enumerate(call.arguments.items()):
            values += [(f"{at} key {number}", key), (f"{at} value {number}", str(value))]
    items: list[list[Item]] = [[] for _ in calls]
    words: list[list[Word]] = [[] for _ in calls]
    for slot in find_slots(text, values):
        owner, kind, *position = slot.label.split()
        if position:
            words[int(owner)].append(Word(int(position[0]), ArgumentSlot(kind), slot.start, slot.end))
        else:
            items[int(owner)].append(Item(Slot(kind), slot.start, slot.end))
    for row, call_words in zip(items, words, strict=True):
        if call_words:
            row.append(Item(Slot.ARGUMENTS, call_words[0].start, call_words[-1].end))
            row.sort(key=lambda item: item.start)
    return Reading(text, items, words)


def find_counters(reading: Reading) -> list[Counter]:
    """The numbers that go up by one from call to call."""
    count = range(len(reading.calls))
    inners = [reading.inner(call) for call in count]
    if len(inners) < 2 or len({len(inner) for inner in inners}) > 1:
        return []
    columns = [(LEAD, [reading.lead(call) for call in count], True)]
    columns += [(at, [inner[at] for inner in inners], False) for at in range(len(inners[0]))]
    columns += [(TAIL, [reading.tail(call) for call in count], False)]
    counters: list[Counter] = []
    for column, texts, backwards in columns:
        place = _counting(texts, backwards)
        if place is not None:
            counters.append(Counter(column, *place))
    return counters


def _counting(texts: Sequence[str], backwards: bool) -> tuple[int, int] | None:
    tokens = [_NUMBER.split(text)[:: -1 if backwards else 1] for text in texts]
    for at in range(min(map(len, tokens))):
        column = [row[at] for row in tokens]
        if len(set(column)) > 1:
            if not all(token.isdigit() and len(token) < 9 for token in column):
                return None
            base = int(column[0])
            return (at, base) if [int(token) for token in column] == [*range(base, base + len(column))] else None
    return None


def with_counters(reading: Reading, counters: Sequence[Counter]) -> Reading:
    """The reading with an INDEX item for every counter."""
    calls = []
    for call, items in enumerate(reading.calls):
        found = [place for place in (_place(reading, call, counter) for counter in counters) if place is not None]
        calls.append(sorted([*items, *found], key=lambda item: item.start))
    return Reading(reading.text, calls, reading.words)


def _place(reading: Reading, call: int, counter: Counter) -> Item | None:
    items = reading.calls[call]
    if counter.column == LEAD:
        text, backwards = reading.lead(call), True
        at = items[0].start - len(text)
    elif counter.column == TAIL:
        text, backwards, at = reading.tail(call), False, items[-1].end
    else:
        if counter.column + 1 >= len(items):
            return None
        text, backwards, at = reading.inner(call)[counter.column], False, items[counter.column].end
    tokens = _NUMBER.split(text)
    token = len(tokens) - 1 - counter.token if backwards else counter.token
    if not 0 <= token < len(tokens) or not tokens[token].isdigit():
        return None
    start = at + sum(map(len, tokens[:token]))
    return Item(Slot.INDEX, start, start + len(tokens[token]))


def widened(reading: Reading, before: int, after: int) -> Reading:
    """The reading with every region of arguments wider at both ends."""
    calls = [
        [
            Item(item.slot, item.start - before, item.end + after) if item.slot is Slot.ARGUMENTS else item
            for item in items
        ]
        for items in reading.calls
    ]
    return Reading(reading.text, calls, reading.words)
