"""The clauses of the contract that one text can break, without Hypothesis: for the exhaustive and the fuzz command.

Strategy: a text is read by several parsers of their own (whole, by character, in random pieces), no state shared or
copied. The merged events must be the same, give the text back, and end each call; a `complete` call has an object of
arguments, and where a beginning of the text was closed with "length", no call that it completed is another in the
whole, but for one whose closing brace was in a string, as a quote on its line says. A failure belongs to a
class: the clause, and the first events that differ.
"""

import argparse
import multiprocessing
import random
import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise, takewhile
from typing import Any, Self

import toolgram
from tests.json_prefix import is_object
from tests.streams import arguments_of, merged, sources
from toolgram.events import Dropped, Event, ToolCallEnd, ToolCallStart

Call = tuple[str, str, str]  # name, arguments, status
Promised = tuple[tuple[int, Call], ...]  # complete calls by their index
Tools = Sequence[dict[str, Any]] | None


@dataclass
class Reading:
    """What one parser made of a text: its events merged, and the calls."""

    events: list[Event]
    calls: tuple[Call, ...]

    @property
    def complete(self) -> Promised:
        """The calls that are complete."""
        return tuple((at, call) for at, call in enumerate(self.calls) if call[2] == "complete")

    def contradicts(self, promised: Promised) -> list[tuple[Call, tuple[Call, ...]]]:
        """Calls that were complete and are something else here, with what they are."""
        return [
            (call, self.calls[at : at + 1])
            for at, call in promised
            if self.calls[at : at + 1] != (call,) and not self._goes_on(at, call)
        ]

    def _goes_on(self, index: int, call: Call) -> bool:
        """Return whether what follows shows that the same call is none, or that it is in a fence (P3).

        The brace that closed the arguments was in a string, or anything but brackets follows a call without a marker.
        """
        name, arguments, status = self.calls[index] if index < len(self.calls) else ("", "", "")
        if (name, arguments) != call[:2]:
            return False
        if status == "truncated":
            return "```" in sources(self.events)
        after = sources(self.events[self._place(ToolCallEnd, index) :]).lstrip(" \t)]},")
        return self._is_bare(index) or after.startswith(("\\", '"', "'"))

    def _is_bare(self, index: int) -> bool:
        """Return whether a bracket begins the call, and no marker."""
        before = reversed(self.events[: self._place(ToolCallStart, index)])
        dropped = list(takewhile(lambda event: isinstance(event, Dropped), before))
        return sources(dropped[::-1]).lstrip().startswith(("{", "["))

    def _place(self, kind: type[ToolCallStart | ToolCallEnd], index: int) -> int:
        return next(at for at, each in enumerate(self.events) if isinstance(each, kind) and each.index == index)


@dataclass
class Failure:
    """A text that breaks a clause. `kind` is the class that it belongs to."""

    kind: str
    text: str
    detail: str


@dataclass
class Tally:
    """How many texts were read, and the shortest failure of each class, with the number of its texts."""

    texts: int = 0
    characters: int = 0
    failures: dict[str, tuple[int, Failure]] = field(default_factory=dict)

    def note(self, failure: Failure, count: int = 1) -> None:
        known, shortest = self.failures.get(failure.kind, (0, failure))
        if (len(failure.text), failure.text) < (len(shortest.text), shortest.text):
            shortest = failure
        self.failures[failure.kind] = (known + count, shortest)

    def add(self, other: Self) -> None:
        self.texts += other.texts
        self.characters += other.characters
        for count, failure in other.failures.values():
            self.note(failure, count)


def tallied(label: str, do: Callable[[Any], Tally], tasks: Sequence[Any], workers: int) -> Tally:
    """What tasks found that were done in processes, with a line that says how far they are."""
    total, began, told = Tally(), time.monotonic(), 0.0
    with multiprocessing.Pool(workers) as pool:
        for done, tally in enumerate(pool.imap_unordered(do, tasks), 1):
            total.add(tally)
            if sys.stderr.isatty() or time.monotonic() - told > 60:
                told = time.monotonic()
                found = f"{total.texts:,} texts, {len(total.failures)} classes of failures"
                line = f"{label}: {done}/{len(tasks)} parts, {found}, {told - began:.0f} s"
                print(f"\r{line}", end="" if sys.stderr.isatty() else "\n", file=sys.stderr, flush=True)
    return total


def read(fmt: toolgram.Format, pieces: Iterable[str], reason: str | None = None, tools: Tools = None) -> Reading:
    """What a new parser makes of the pieces. An exception is the caller's."""
    parser = fmt.parser(call_ids=str, prefix="", tools=tools)
    events = merged([*(event for piece in pieces for event in parser.feed(piece)), *parser.close(reason)])
    starts = [event for event in events if isinstance(event, ToolCallStart)]
    ends = [event for event in events if isinstance(event, ToolCallEnd)]
    both = zip(starts, ends, strict=True)
    calls = [(start.name, "".join(arguments_of(events, start.index)), str(end.status)) for start, end in both]
    return Reading(events, tuple(calls))


def check(fmt: toolgram.Format, text: str, promised: Promised = ()) -> tuple[Failure | None, Promised]:
    """The first clause that `text` breaks, whole and by character, and the calls that are complete when it is cut off.

    `promised` are those that a beginning of the text, closed with "length", has shown as complete.
    """
    try:
        whole = read(fmt, (text,))
        failure = broken(text, whole, promised) or difference(text, whole, read(fmt, text), "by character")
        if failure is None and whole.complete:
            cut = read(fmt, (text,), "length")
            failure = broken(text, cut, promised) or difference(text, cut, read(fmt, text, "length"), "by character")
            promised = _certain(fmt, text, cut.complete)
    except Exception as error:
        failure = raised(text, error)
    return failure, promised


def check_widely(fmt: toolgram.Format, text: str, tools: Tools) -> Failure | None:
    """The first clause that `text` breaks: as `check`, with tools, in random pieces, and cut off at random places."""
    rng = random.Random(len(text))
    try:
        for declared in (None, tools):
            whole = read(fmt, (text,), None, declared)
            failure = broken(text, whole) or difference(text, whole, read(fmt, text, None, declared), "by character")
            failure = failure or difference(text, whole, read(fmt, in_pieces(text, rng), None, declared), "in pieces")
            brackets = [at for at, character in enumerate(text, 1) if character in "})]>"]
            cuts = [rng.randint(0, len(text)) for _ in range(3)] + rng.sample(brackets, min(4, len(brackets)))
            for at in () if failure else cuts:
                promised = _certain(fmt, text[:at], read(fmt, (text[:at],), "length", declared).complete)
                for _, became in whole.contradicts(promised):
                    kind = f"complete when cut off, and then {became[0][2] if became else 'no call'}"
                    return Failure(kind, text, f"{text[:at]!r} has {promised}, the whole {whole.calls}")
            if failure:
                return failure
    except Exception as error:
        return raised(text, error)
    return None


def _certain(fmt: toolgram.Format, text: str, promised: Promised) -> Promised:
    """The calls that no more text can change. A Python call whose bracket is the end of the output is complete (P1); if
    an expression goes on there, it is malformed (P7). The bracket of a marker is an operator as well."""
    is_python = any(state.python for state in fmt.spec.states.values())
    return promised[:-1] if is_python and re.search(r"\)\s*[<\[]?\s*\Z", text) else promised


def in_pieces(text: str, rng: random.Random) -> list[str]:
    """The text, cut at a few random places."""
    cuts = sorted(rng.randint(0, len(text)) for _ in range(rng.choice((1, 3, 8))))
    return [text[one:other] for one, other in pairwise([0, *cuts, len(text)])]


def broken(text: str, made: Reading, promised: Promised = ()) -> Failure | None:
    """A clause that one reading breaks by itself."""
    if sources(made.events) != text:
        return Failure("not conserved", text, str(made.events))
    for name, arguments, status in made.calls:
        if status == "complete" and not is_object(arguments):
            return Failure("complete, and its arguments are no object", text, f"{name}: {arguments!r}")
    if made.contradicts(promised):
        return Failure("complete when cut off, and contradicted", text, f"{promised} became {made.calls}")
    return None


def raised(text: str, error: Exception) -> Failure:
    """An exception that a text caused, by type and function."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = place.tb_frame.f_code.co_name if place is not None else "?"
    return Failure(f"raised {type(error).__name__} in {where}", text, str(error))


def difference(text: str, whole: Reading, other: Reading, way: str) -> Failure | None:
    """Where two readings of one text part."""
    if whole.events == other.events:
        return None
    rows = zip(whole.events, other.events, strict=False)
    at = next((at for at, (one, two) in enumerate(rows) if one != two), min(len(whole.events), len(other.events)))
    shown = map(_label, (*whole.events[at : at + 1], *other.events[at : at + 1]))
    kind = "depends on the deltas: " + " / ".join(dict.fromkeys(shown))
    return Failure(kind, text, f"\n      whole {whole.events[at:]}\n      {way} {other.events[at:]}")


def _label(event: Event) -> str:
    why = getattr(event, "why", "")
    return f"{event.type}({why})" if why else event.type


def minimised(failure: Failure, check_again: Callable[[str], Failure | None]) -> Failure:
    """The same class of failure with as few characters as taking out one piece at a time allows."""
    size = max(1, len(failure.text) // 2)
    while size:
        for at in range(len(failure.text) - size + 1):
            shorter = check_again(failure.text[:at] + failure.text[at + size :])
            if shorter is not None and shorter.kind == failure.kind:
                failure = shorter
                break
        else:
            size //= 2
    return failure


def report(title: str, tally: Tally, check_again: Callable[[str], Failure | None]) -> None:
    """Print what was found: one small example per class."""
    print(f"{title}: {tally.texts:,} texts, {tally.characters:,} characters, {len(tally.failures)} classes of failures")
    for kind, (count, failure) in sorted(tally.failures.items()):
        small = minimised(failure, check_again)
        print(f"  {kind}: {count:,} texts, such as\n    {small.text!r} {small.detail}", flush=True)


def options(program: str, about: str | None) -> argparse.ArgumentParser:
    """The options of a command that tries texts of formats."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=(about or "").split("\n\n")[0])
    parser.add_argument("--format", choices=toolgram.format_names(), action="append", help="default: all")
    parser.add_argument("--workers", type=int, default=2)
    return parser


def try_all(
    names: Sequence[str], run: Callable[[str], Tally], check_again: Callable[[str, str], Failure | None]
) -> int:
    """Run and report each format; 1 where anything failed."""
    failed = False
    for name in names:
        tally = run(name)
        report(f"\r{name}", tally, partial(check_again, name))
        failed |= bool(tally.failures)
    return int(failed)
