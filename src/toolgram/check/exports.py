"""What was asked for is what can come: the envelope of an export, intersected with the parser.

Strategy: an export is written from an expression, whose envelope is an automaton: places, with fixed texts, free texts
and values as its symbols.  The parser is an automaton as well: what it does next depends on its snapshot alone, without
the counters of calls and characters.  Both are stepped together over every pair of a place and a snapshot that can be
reached.  A value is one text; free text is none or prose, and if a call must come, also an open code span, a fence, a
bracket or a last backtick, if it may be there.  So every way
through the envelope is tried, and not a sample of them: with `required` or a named function the parser has read a call
at each end, with `none` it has not, and nothing is malformed on any way.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from toolgram.errors import ToolgramError
from toolgram.events import Event, Malformed, ToolCallEnd, ToolCallStart
from toolgram.export import export_request, expression
from toolgram.export import expressions as ex
from toolgram.export.notations import BASE, JSON
from toolgram.export.passes import Places
from toolgram.export.texts import first_completion
from toolgram.export.values import Values
from toolgram.formats import Format
from toolgram.limits import MOST_PAIRS

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {key: {"type": "string"} for key in needed},
                "required": needed,
                "additionalProperties": False,
            },
        },
    }
    for name, needed in (("get_weather", ["city"]), ("now", []))
]
NAMED = {"type": "function", "function": {"name": "now"}}
CHOICES: dict[str, dict[str, Any]] = {
    "auto": {},
    "required": {"tool_choice": "required"},
    "required after text": {"tool_choice": "required", "text_before_calls": True},
    "named": {"tool_choice": NAMED},
    "none": {"tool_choice": "none"},
}
_COUNTERS = {"offset": 0, "count": 0, "index": 0, "id": None, "digest": ""}
_PROSE = ("", "Hm x")
_IN_CODE = ("Hm `", "Hm `x", "Hm\n```\nx", "Hm {")  # what may turn a call that must come into text


@dataclass(frozen=True, slots=True)
class _Pair:
    """A place of the envelope, and what the parser knows there. Pairs with the same key go on alike."""

    place: int
    key: str
    called: bool
    snapshot: Mapping[str, Any] = field(compare=False)


class _Reader:
    """The parser of a format as an automaton. Steps are kept: many places and choices meet the same ones."""

    def __init__(self, fmt: Format) -> None:
        self.fmt = fmt
        self.start = fmt.parser(tools=TOOLS).snapshot()
        self._steps: dict[tuple[str, str], tuple[list[Event], Mapping[str, Any]]] = {}
        self._ends: dict[str, list[Event]] = {}

    def step(self, pair: _Pair, text: str) -> tuple[list[Event], Mapping[str, Any]]:
        """Return the events of a text after a pair, and what the parser knows then."""
        if (pair.key, text) not in self._steps:
            parser = self.fmt.restore(pair.snapshot, tools=TOOLS)
            self._steps[pair.key, text] = parser.feed(text), parser.snapshot()
        return self._steps[pair.key, text]

    def close(self, pair: _Pair) -> list[Event]:
        """Return the events of an end after a pair."""
        if pair.key not in self._ends:
            self._ends[pair.key] = self.fmt.restore(pair.snapshot, tools=TOOLS).close("stop")
        return self._ends[pair.key]


def violations(fmt: Format) -> Iterator[str]:
    """Yield what an export of this format allows and must not, each with the shortest output that was found."""
    if not fmt.observed_paths.edges:
        return
    reader = _Reader(fmt)
    for name, asked in CHOICES.items():
        try:
            root, _ = expression(fmt, export_request(TOOLS, **asked), None, lambda words: None)
        except ToolgramError:
            continue  # which says so
        yield from (f"{name}: {words}" for words in _Search(reader, root, name).violations())


class _Search:
    def __init__(self, reader: _Reader, root: ex.Expr, choice: str) -> None:
        self.reader, self.choice = reader, choice
        self.prose = _PROSE if choice in ("auto", "none") else (*_PROSE, *_IN_CODE)
        self.places = Places()
        self.end = self.places.new()
        self.places.add(root, 0, self.end)
        self.found: dict[str, str] = {}

    def violations(self) -> list[str]:
        """Return one violation of each kind."""
        first = _pair(0, self.reader.start, False)
        seen, level = {first}, [(first, "")]
        while level:
            further: list[tuple[_Pair, str]] = []
            for pair, text in level:
                for after, written in self._steps(pair, text):
                    if after not in seen:
                        seen.add(after)
                        further.append((after, written))
            level = further
            if len(seen) > MOST_PAIRS:
                return [*self.found.values(), f"more than {MOST_PAIRS:,} pairs of a place and a state"]
        return list(self.found.values())

    def _steps(self, pair: _Pair, text: str) -> Iterator[tuple[_Pair, str]]:
        if pair.place == self.end:
            self._check_end(pair, text)
        for place in self.places.free[pair.place]:
            yield replace(pair, place=place), text
        for symbol, dest in self.places.edges[pair.place]:
            for written in _texts(symbol, self.prose):
                events, snapshot = self.reader.step(pair, written)
                if self._check(events, text + written):
                    called = pair.called or any(isinstance(each, ToolCallEnd) for each in events)
                    yield _pair(dest, snapshot, called), text + written

    def _check(self, events: list[Event], text: str) -> bool:
        """Return whether what was read is allowed; keep it if it is not."""
        for event in events:
            if isinstance(event, Malformed):
                self.found.setdefault("malformed", f"{text!r} is accepted, and is malformed: {event.why}")
                return False
            if isinstance(event, ToolCallEnd) and event.status != "complete":
                self.found.setdefault("status", f"{text!r} is accepted, and its call is {event.status}")
                return False
            if isinstance(event, ToolCallStart) and self.choice == "none":
                self.found.setdefault("called", f"{text!r} is accepted, and is a call")
                return False
        return True

    def _check_end(self, pair: _Pair, text: str) -> None:
        events = self.reader.close(pair)
        called = pair.called or any(isinstance(each, ToolCallEnd) for each in events)
        if self._check(events, text) and self.choice not in ("auto", "none") and not called:
            self.found.setdefault("not called", f"{text!r} is accepted, and no call is read in it")


def _pair(place: int, snapshot: Mapping[str, Any], called: bool) -> _Pair:
    """Return a pair with a key that has no counters of calls and characters, and of held text only whether any is."""
    kept: dict[str, Any] = {**snapshot, **_COUNTERS, "tail": snapshot["tail"][-1:]}
    for name in ("withheld", "held", "open_call"):
        kept[name] = bool(kept[name])
    quote, *flags = kept["code"]
    kept["code"] = [bool(quote), *flags[:4], *flags[5:]]  # without how long ago a span was opened
    return _Pair(place, json.dumps(kept), called, snapshot)


# --- a text of each symbol ----------------------------------------------------------------------------------------


def _texts(symbol: ex.Expr, every: Sequence[str]) -> list[str]:
    """Return what is written for a symbol: of free text, nothing, and pieces of prose that may be there."""
    if not isinstance(symbol, ex.Text) or symbol.within is not None:
        return [shortest(symbol)]
    closer, words = symbol.closer, symbol.forbidden.words
    written = (prose + closer for prose in every)
    return [each for each in written if first_completion(words, each) in (0, len(each)) or each == closer]


def shortest(expr: ex.Expr, rules: Mapping[str, ex.Expr] = BASE) -> str:
    """Return a short text of an expression."""
    match expr:
        case ex.Repeat() | ex.Quoted():
            return shortest(expr.body, rules) * (expr.low if isinstance(expr, ex.Repeat) else 1)
        case ex.Seq():
            return "".join(shortest(each, rules) for each in expr.parts)
        case ex.Choice():
            return shortest(min(expr.options, key=_depth), rules)
        case ex.Json():
            return shortest(_value(json.loads(expr.schema)), rules)
        case ex.Rules():
            inner = {**rules, **dict(expr.rules)}
            return shortest(inner[expr.start], inner)
        case ex.Ref():
            return _KINDS.get(expr.name.partition("_")[2]) or shortest(rules[expr.name], rules)
        case ex.Members():
            return shortest(_needed(expr), rules)
        case ex.Text():
            return ("" if expr.within is None else shortest(expr.within, rules)) + expr.closer
    return _leaf(expr)


def _leaf(expr: ex.Expr) -> str:
    match expr:
        case ex.Lit() | ex.Token():
            return expr.text
        case ex.Chars():
            return next(char for char in expr.first if char not in expr.but)
        case ex.Class():
            return "x" if any(low <= 120 <= high for low, high in expr.ranges) else chr(expr.ranges[0][0])
        case ex.OtherName():
            return '"~"'
    return ""  # blanks, and what may be left out


_KINDS = {"string": '"x"', "any": "1", "integer": "1", "number": "1", "rest": '"'}


def _depth(expr: ex.Expr) -> int:
    """Return how simple an alternative is: a rule may lead to itself."""
    return {ex.Lit: 0, ex.Class: 0, ex.Seq: 1, ex.Ref: 2}.get(type(expr), 1)


def _value(schema: Mapping[str, Any]) -> ex.Expr:
    values = Values(schema, lambda words: None, JSON)
    return values.rules(values.whole_object(schema))


def _needed(members: ex.Members) -> ex.Expr:
    """Return the required members, or the first one."""
    needed = [each for each in members.members if each.required] or list(members.members[:1])
    return ex.seq(*(each.later if at else each.first for at, each in enumerate(needed)))
