"""Every short string over a format's critical alphabet, read whole and character by character.

    python -m tests.exhaustive --length 5 --format hermes

Strategy: the strings are all rows of up to LENGTH symbols (`tests.generators.alphabet`) from the start of an output,
and all rows of up to LENGTH - 2 symbols behind each beginning that leads into a state of the machine. Each string is
read by two parsers of its own, one that gets it whole and one that gets its characters; no state is shared or copied,
so nothing hides behind a snapshot. The merged events must be the same, give the text back, and end each call; a
`complete` call has an object of arguments, and where the output was closed with "length", no longer string says
otherwise of that call.

A failure is shown by class: the clause, and the first events that differ. Of each class the shortest example is
printed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import toolgram
from tests.generators.alphabet import contexts, critical_alphabet
from toolgram.events import Event, ToolCallDelta, ToolCallEnd, ToolCallStart

Calls = tuple[tuple[str, str, str], ...]  # name, arguments, status
Item = tuple[str, object, str, str]  # type, what tells it from its neighbours, text, source


@dataclass
class Reading:
    """What one parser made of a text: its events merged, and the calls."""

    items: list[Item]
    calls: Calls


@dataclass
class Failure:
    """A text that breaks a clause. `kind` is the class that it belongs to."""

    kind: str
    text: str
    detail: str


@dataclass
class Tally:
    """How many strings were read, and the shortest failure of each class, with the number of its strings."""

    strings: int = 0
    failures: dict[str, tuple[int, Failure]] = field(default_factory=dict)

    def note(self, failure: Failure, count: int = 1) -> None:
        known, shortest = self.failures.get(failure.kind, (0, failure))
        if (len(failure.text), failure.text) < (len(shortest.text), shortest.text):
            shortest = failure
        self.failures[failure.kind] = (known + count, shortest)

    def add(self, other: Tally) -> None:
        self.strings += other.strings
        for count, failure in other.failures.values():
            self.note(failure, count)


def events_of(fmt: toolgram.Format, pieces: Iterable[str], reason: str | None) -> list[Event]:
    parser = fmt.parser(call_ids=str, prefix="")
    events = [event for piece in pieces for event in parser.feed(piece)]
    events += parser.close(reason)
    return events


def reading(events: Sequence[Event]) -> Reading:
    """The events with neighbours of one kind made one, and the calls that they make."""
    items: list[Item] = []
    starts: list[str] = []
    arguments: list[str] = []
    ends: list[str] = []
    for event in events:
        kind, text = event.type, ""
        key: object
        if isinstance(event, ToolCallStart):
            key = (event.index, event.name)
            starts.append(event.name)
            arguments.append("")
        elif isinstance(event, ToolCallDelta):
            key, text = event.index, event.arguments
            arguments[event.index] += text
        elif isinstance(event, ToolCallEnd):
            key = (event.index, event.status)
            ends.append(event.status)
        else:
            key, text = getattr(event, "why", ""), event.text
        if items and items[-1][0] == kind and items[-1][1] == key:
            last = items[-1]
            items[-1] = (kind, key, last[2] + text, last[3] + event.source)
        else:
            items.append((kind, key, text, event.source))
    return Reading(items, tuple(zip(starts, arguments, ends, strict=True)))


def check(fmt: toolgram.Format, text: str, promised: Calls = ()) -> tuple[Failure | None, Calls]:
    """The first clause that `text` breaks, and the calls that it has completed for good.

    `promised` are those that a prefix of the text, closed with "length", has shown as complete.
    """
    try:
        whole = reading(events_of(fmt, (text,), None))
        single = reading(events_of(fmt, text, None))
        failure = _broken(text, whole, single, promised)
        if failure is None and any(call[2] == "complete" for call in whole.calls):
            cut = reading(events_of(fmt, (text,), "length"))
            failure = _broken(text, cut, reading(events_of(fmt, text, "length")), promised)
            promised = tuple(call for call in cut.calls if call[2] == "complete")
    except Exception as error:
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        where = f"{place.tb_frame.f_code.co_name}" if place is not None else "?"
        failure = Failure(f"raised {type(error).__name__} in {where}", text, str(error))
    return failure, promised


def _broken(text: str, whole: Reading, single: Reading, promised: Calls) -> Failure | None:
    for way, read in (("whole", whole), ("by character", single)):
        if "".join(item[3] for item in read.items) != text:
            return Failure(f"not conserved, {way}", text, str(read.items))
        for name, arguments, status in read.calls:
            if status == "complete" and not _is_object(arguments):
                return Failure(f"complete, and no object, {way}", text, f"{name}: {arguments!r}")
        if read.calls[: len(promised)] != promised:
            return Failure(f"complete when cut off, and contradicted, {way}", text, f"{promised} became {read.calls}")
    if whole.items != single.items:
        return Failure(*_difference(text, whole.items, single.items))
    return None


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except ValueError:
        return False


def _difference(text: str, whole: list[Item], single: list[Item]) -> tuple[str, str, str]:
    at = next(
        (at for at, (one, other) in enumerate(zip(whole, single, strict=False)) if one != other),
        min(len(whole), len(single)),
    )
    one, other = whole[at : at + 1], single[at : at + 1]
    shown = [f"{item[0]}({item[1]})" if item[1] != "" else item[0] for item in (*one, *other)]
    kind = "whole and by character differ: " + " / ".join(dict.fromkeys(shown))
    return kind, text, f"\n      whole        {whole[at:]}\n      by character {single[at:]}"


# ------------------------------------------------------------------------------------------------------ all the strings


def visit(fmt: toolgram.Format, text: str, last: str, left: int, promised: Calls, tally: Tally) -> None:
    """Check `text` and all strings that are it and up to `left` symbols."""
    failure, promised = check(fmt, text, promised)
    tally.strings += 1
    if failure is not None:
        tally.note(failure)
    if left:
        symbols = critical_alphabet(fmt.name)
        for symbol in symbols:
            if last + symbol not in symbols:  # those two are one symbol, and are tried as that
                visit(fmt, text + symbol, symbol, left - 1, promised, tally)


Task = tuple[str, str, str, int]  # format, beginning, first symbol, symbols after it


def tasks_from_start(name: str, length: int) -> Iterator[Task]:
    """All strings of up to `length` symbols, as tasks by their first two."""
    for symbol in critical_alphabet(name) if length else ():
        yield name, "", symbol, length - 1


def tasks_behind_contexts(name: str, length: int) -> Iterator[Task]:
    """All strings of up to `length` symbols behind each context."""
    for context in contexts(name) if length > 0 else ():
        for symbol in critical_alphabet(name):
            yield name, context, symbol, length - 1


def do(task: Task) -> Tally:
    """The strings of one task."""
    name, beginning, symbol, left = task
    tally = Tally()
    fmt = toolgram.get_format(name)
    _, promised = check(fmt, beginning)
    visit(fmt, beginning + symbol, symbol, left, promised, tally)
    return tally


def minimised(name: str, failure: Failure) -> Failure:
    """The same failure with as few characters as taking out one piece at a time allows."""
    fmt = toolgram.get_format(name)
    size = len(failure.text) // 2
    while size:
        for at in range(len(failure.text) - size + 1):
            shorter, _ = check(fmt, failure.text[:at] + failure.text[at + size :])
            if shorter is not None and shorter.kind == failure.kind:
                failure = shorter
                break
        else:
            size //= 2
    return failure


# ---------------------------------------------------------------------------------------------------------- the command


def run(name: str, length: int, workers: int) -> Tally:
    """All strings of a format, in processes, with a line that says how far it is."""
    tasks = [*tasks_from_start(name, length), *tasks_behind_contexts(name, length - 2)]
    total, began = Tally(), time.monotonic()
    with multiprocessing.Pool(workers) as pool:
        for done, tally in enumerate(pool.imap_unordered(do, tasks), 1):
            total.add(tally)
            if sys.stderr.isatty():
                part = (
                    f"{done}/{len(tasks)} parts, {total.strings:,} strings, {len(total.failures)} classes of failures"
                )
                print(f"\r{name}: {part}, {time.monotonic() - began:.0f} s", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return total


def report(name: str, tally: Tally, began: float) -> None:
    """What was found, one example per class."""
    seconds = time.monotonic() - began
    print(f"{name}: {tally.strings:,} strings, {len(tally.failures)} classes of failures, {seconds:.0f} s", flush=True)
    for kind, (count, failure) in sorted(tally.failures.items()):
        small = minimised(name, failure)
        print(f"  {kind}: {count:,} strings, such as\n    {small.text!r} {small.detail}", flush=True)


def main() -> int:
    """The command; 1 where anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.exhaustive", description=__doc__.split("\n\n")[0])
    parser.add_argument("--length", type=int, default=5, help="symbols from the start of an output (default 5)")
    parser.add_argument("--format", choices=toolgram.format_names(), action="append", help="default: all")
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    failed = False
    for name in chosen.format or toolgram.format_names():
        began = time.monotonic()
        tally = run(name, chosen.length, chosen.workers)
        report(name, tally, began)
        failed |= bool(tally.failures)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
