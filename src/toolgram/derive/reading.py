"""Find the calls of a probe in a rendered turn.

Strategy: all values of a probe are known, so a call is a row of *items* (name, id, arguments as one region), and the
texts around them are constant. Counters over the calls (`:0`, `"call_id": "1"`) are no values that we chose; they are
the numbers that go up by one from call to call in the same place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolgram.derive.arguments import find_object
from toolgram.derive.comparing import find_slots
from toolgram.derive.result import ArgumentSlot, ArgumentsStyle, Slot
from toolgram.observing.probes import Call

_NUMBER = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class Item:
    """One value of a call in a text, or a key or a value of argument number `argument`."""

    slot: Slot | ArgumentSlot
    start: int
    end: int
    argument: int = 0


@dataclass(frozen=True, slots=True)
class Counter:
    """Where a counter is: in which text around the items, and which number there (from the end in the first text)."""

    text: int
    token: int
    base: int


@dataclass(frozen=True, slots=True)
class Reading:
    """A turn with the calls found in it: the items of each call, and the keys and values of tagged arguments."""

    text: str
    calls: list[list[Item]]
    words: list[list[Item]]

    def around(self, call: int) -> list[tuple[int, int]]:
        """Return where the texts around a call's items are: before the first, between two, after the last."""
        items = self.calls[call]
        following = self.calls[call + 1][0].start if call + 1 < len(self.calls) else len(self.text)
        starts = [self.calls[call - 1][-1].end if call else 0, *(item.end for item in items)]
        return list(zip(starts, [*(item.start for item in items), following], strict=True))

    def texts(self, call: int) -> list[str]:
        """Return the texts around a call's items."""
        return [self.text[start:end] for start, end in self.around(call)]

    def lead(self, call: int) -> str:
        """Return the text before a call's first item, from the end of the call before it."""
        return self.texts(call)[0]

    def tail(self, call: int) -> str:
        """Return the text after a call's last item, up to the next call."""
        return self.texts(call)[-1]


def read_calls(text: str | None, calls: Sequence[Call], style: ArgumentsStyle) -> Reading | None:
    """Find every call in `text`; None if one is missing or they are mixed up."""
    if text is None:
        return None
    found = _tagged(text, calls) if style is ArgumentsStyle.TAGGED else _whole(text, calls, style)
    if found is None or any(Slot.ARGUMENTS not in {item.slot for item in items} for items in found.calls):
        return None
    edges = [edge for items in found.calls for item in items for edge in (item.start, item.end)]
    return found if edges == sorted(edges) else None


def _names_and_ids(calls: Sequence[Call]) -> list[tuple[str, str]]:
    pairs = [(f"{at} {Slot.NAME.value}", call.name) for at, call in enumerate(calls)]
    return pairs + [(f"{at} {Slot.ID.value}", call.id) for at, call in enumerate(calls)]


def _whole(text: str, calls: Sequence[Call], style: ArgumentsStyle) -> Reading | None:
    spans: list[tuple[int, int]] = []
    for call in calls:
        span = find_object(text, call.arguments, style, spans[-1][1] if spans else 0)
        if span is None:
            return None
        spans.append(span)
    items = [[Item(Slot.ARGUMENTS, *span)] for span in spans]
    for slot in find_slots(text, _names_and_ids(calls)):
        if not any(start <= slot.start < end for start, end in spans):
            owner, kind = slot.label.split()
            items[int(owner)].append(Item(Slot(kind), slot.start, slot.end))
    return Reading(text, [_in_order(row) for row in items], [[] for _ in calls])


def _tagged(text: str, calls: Sequence[Call]) -> Reading:
    values = _names_and_ids(calls)
    for at, call in enumerate(calls):
        for number, (key, value) in enumerate(call.arguments.items()):
            values += [(f"{at} key {number}", key), (f"{at} value {number}", str(value))]
    items: list[list[Item]] = [[] for _ in calls]
    words: list[list[Item]] = [[] for _ in calls]
    for slot in find_slots(text, values):
        owner, kind, *position = slot.label.split()
        if position:
            words[int(owner)].append(Item(ArgumentSlot(kind), slot.start, slot.end, int(position[0])))
        else:
            items[int(owner)].append(Item(Slot(kind), slot.start, slot.end))
    for row, found in zip(items, words, strict=True):
        row += [Item(Slot.ARGUMENTS, found[0].start, found[-1].end)] if found else []
    return Reading(text, [_in_order(row) for row in items], words)


def _in_order(items: Sequence[Item]) -> list[Item]:
    return sorted(items, key=lambda item: item.start)


def find_counters(reading: Reading) -> list[Counter]:
    """Return the numbers that go up by one from call to call."""
    rows = [reading.texts(call) for call in range(len(reading.calls))]
    if len(rows) < 2 or len({len(row) for row in rows}) > 1:
        return []
    counters = []
    for text in (*range(len(rows[0]) - 1), -1):
        place = _counting([row[text] for row in rows], backwards=text == 0)
        counters += [Counter(text, *place)] if place else []
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
    """Return the reading with an INDEX item for every counter."""
    calls = []
    for call, items in enumerate(reading.calls):
        places = (_place(reading, call, counter) for counter in counters)
        calls.append(_in_order([*items, *(place for place in places if place is not None)]))
    return replace(reading, calls=calls)


def _place(reading: Reading, call: int, counter: Counter) -> Item | None:
    around = reading.around(call)
    if counter.text >= len(around) - 1:
        return None
    start, end = around[counter.text]
    tokens = _NUMBER.split(reading.text[start:end])
    token = counter.token if counter.text else len(tokens) - 1 - counter.token
    if not 0 <= token < len(tokens) or not tokens[token].isdigit():
        return None
    start += sum(map(len, tokens[:token]))
    return Item(Slot.INDEX, start, start + len(tokens[token]))


def widened(reading: Reading, before: int, after: int) -> Reading:
    """Return the reading with every region of arguments wider at both ends."""
    wider = [
        [
            replace(item, start=item.start - before, end=item.end + after) if item.slot is Slot.ARGUMENTS else item
            for item in items
        ]
        for items in reading.calls
    ]
    return replace(reading, calls=wider)
