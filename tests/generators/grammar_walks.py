"""Outputs that a format's grammar allows, made from its two files alone: no format has a generator of its own here.

Strategy: `check` reads a grammar as a finite automaton whose symbols are terminals and whole embedded values. A walk
through it that ends in a final state is a valid output; each symbol is then written as text. A fixed terminal is its
text, a run is a candidate that its pattern takes, embedded values are drawn as JSON or as Python keyword arguments, and
a call object is one of `check`'s samples with its name, its id and its arguments replaced.

Choices come from a `random.Random`. The fuzz command gives it a seed; Hypothesis hands out one that it can shrink.
"""

import json
import random
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any

from automata.fa.dfa import DFA
from automata.fa.nfa import NFA

import toolgram
from tests.tables import table
from toolgram.check.languages import ARGUMENTS, LIST, OBJECT, RUNS, VALUE, WS, grammar_automaton, samples
from toolgram.spec.data import TEXT, Literal, Spec

PROSE = ("x", "Sure.", "Here is", "naïve 你好", "it's", '"q"', "1 < 2", "a\\b", "50%", "a; b", "- \t1.", "👍")
RUN_CANDIDATES = table(__file__, "run_candidates")
NAMES = ("f", "get_weather", "search")
KEYS = ("a", "b", "city", "name", "arguments")
STRINGS = ("", "x", "Paris", "a b", '"', "\\", "'", "{", "}", "]", ")", "\n", "é👍", "<b>", "007")
LEAVES: tuple[Any, ...] = (None, True, False, 0, -1, 12, 1.5, 1e30, [], {})
RAW_VALUES = ("Paris", "v", "1", "true", "None", "{}", '"q"', "a\nb", "007", "<b>", "x </", "[1, 2")
WRITTEN_ARGUMENTS = '{"a": 1}'  # as a JSON string
EXTRA_SYMBOLS = 6  # after so many symbols a walk takes the shortest way to an end


class Values:
    """Values of arguments, drawn at random."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def arguments(self) -> dict[str, Any]:
        """Arguments of a call: none to three."""
        return {self.rng.choice(KEYS): self.value() for _ in range(self.rng.choice((0, 1, 1, 2, 3)))}

    def value(self, depth: int = 2) -> Any:
        """A JSON value."""
        kind = self.rng.randrange(8)
        if kind < 4 or not depth:
            return self.rng.choice(STRINGS)
        if kind < 6:
            return self.rng.choice(LEAVES)
        if kind == 6:
            return [self.value(depth - 1) for _ in range(self.rng.choice((0, 1, 2)))]
        return {self.rng.choice(KEYS): self.value(depth - 1) for _ in range(self.rng.choice((0, 1, 2)))}

    def tagged(self, texts: tuple[str, ...]) -> str:
        """The text of a tagged argument's value."""
        return self.rng.choice(texts)


class OneValue(Values):
    """The same value wherever one is asked for."""

    def __init__(self, value: Any) -> None:
        super().__init__(random.Random(0))
        self.only = value

    def arguments(self) -> dict[str, Any]:
        return {"a": self.only}

    def tagged(self, texts: tuple[str, ...]) -> str:
        raw = isinstance(self.only, str) and not any(text.startswith('"') for text in texts[:1])
        return str(self.only) if raw else json.dumps(self.only)


@dataclass(frozen=True)
class Walks:
    """The automaton of one grammar, deterministic and minimal, ready to be walked."""

    spec: Spec
    initial: int
    edges: dict[int, tuple[tuple[str, int], ...]]
    to_end: dict[int, int]  # symbols from a state to the nearest final one
    texts: dict[str, tuple[str, ...]]  # of the symbols that have a few fixed texts
    python_after: frozenset[str]  # symbols after which arguments are Python
    typed: bool
    objects: tuple[Any, ...]
    closing: str  # how the tag begins that closes a value with elements inside; "" where there are none

    def word(self, rng: random.Random) -> list[str]:
        """The symbols of a random output."""
        state = self.initial
        word: list[str] = []
        while True:
            ways = self.edges[state]
            stops = 1.0 if not ways or len(word) > EXTRA_SYMBOLS else 0.15 if word else 0.02
            if self.to_end[state] == 0 and rng.random() < stops:
                return word
            if len(word) > EXTRA_SYMBOLS:
                ways = tuple(way for way in ways if self.to_end[way[1]] < self.to_end[state])
            symbol, state = rng.choice(ways)
            word.append(symbol)

    def write(self, word: list[str], rng: random.Random, values: Values | None = None) -> str:
        """A text for a row of symbols. Blanks, and texts, that meet are written once."""
        return "".join(self.pieces(word, rng, values))

    def pieces(self, word: list[str], rng: random.Random, values: Values | None = None) -> list[str]:
        """The text of each symbol of a row."""
        values = values or Values(rng)
        pieces: list[str] = []
        key, last = RUNS["KEY"], ""  # the last symbol that is no blank
        for before, symbol in zip(["", *word], word, strict=False):
            if symbol == before and symbol in (TEXT, WS):
                continue
            made = symbol == ARGUMENTS and last in self.python_after
            given = ", ".join(f"{key}={value!r}" for key, value in values.arguments().items()) if made else ""
            piece = f"({given})" if made else self._symbol(symbol, rng, values)
            last = last if symbol == WS else symbol
            key = piece if symbol == "KEY" else key
            if symbol == VALUE and self.closing:  # the tag that closes a value has its key
                piece = piece.removesuffix(f"{self.closing}{RUNS['KEY']}>") + f"{self.closing}{key}>"
            pieces.append(piece)
        return pieces

    def _symbol(self, symbol: str, rng: random.Random, values: Values) -> str:
        if symbol == TEXT:
            return " ".join(rng.choice(PROSE) for _ in range(rng.choice((1, 1, 2))))
        if symbol == ARGUMENTS:
            return json_text(values.arguments(), rng)
        if symbol == OBJECT:
            return self._object(rng, values)
        if symbol == LIST:
            return "[" + ", ".join(self._object(rng, values) for _ in range(rng.choice((1, 1, 2)))) + "]"
        if symbol == VALUE:
            return values.tagged(self.texts[VALUE] if self.typed else RAW_VALUES)
        return rng.choice(self.texts[symbol])

    def _object(self, rng: random.Random, values: Values) -> str:
        return json_text(_filled(rng.choice(self.objects), rng.choice(NAMES), values.arguments()), rng)


def json_text(value: Any, rng: random.Random) -> str:
    """`value` as models write JSON: tight, loose, or on several lines."""
    separators, indent = rng.choice((((", ", ": "), None), ((",", ":"), None), ((", ", ": "), 1)))
    return json.dumps(value, ensure_ascii=rng.random() < 0.5, separators=separators, indent=indent)


def _filled(sample: dict[str, Any], name: str, made: dict[str, Any]) -> dict[str, Any]:
    """A sample of a call object with another name (or key that is the name), and other arguments."""
    if any(isinstance(part, dict) and "f" in part.values() for part in sample.values()):
        return {key: _filled(part, name, made) if isinstance(part, dict) else part for key, part in sample.items()}
    return {
        (name if key == "f" else key): made if isinstance(part, dict) else name if part == "f" else part
        for key, part in sample.items()
    }


@lru_cache(maxsize=256)
def walks(name: str) -> Walks:
    """The walks of a shipped format."""
    spec = toolgram.get_format(name).spec
    found = grammar_automaton(spec)
    codes = {symbol: chr(0xE000 + at) for at, symbol in enumerate(sorted(found.symbols()))}
    symbols = {code: symbol for symbol, code in codes.items()}
    moves: dict[int, dict[str, set[int]]] = {state: {} for state in range(found.size)}
    for source, symbol, dest in found.edges:
        moves[source].setdefault(codes.get(symbol, ""), set()).add(dest)
    nfa = NFA(
        states=set(moves), input_symbols=set(symbols), transitions=moves, initial_state=found.initial,
        final_states=found.final,
    )  # fmt: skip
    dfa = DFA.from_nfa(nfa, minify=True)
    to_end = _distances(dfa)
    numbers = _numbers(dfa, to_end)
    edges = {
        number: tuple(
            (symbols[code], numbers[dest]) for code, dest in sorted(dfa.transitions[state].items()) if dest in to_end
        )
        for state, number in numbers.items()
    }
    return Walks(
        spec, numbers[dfa.initial_state], edges, {number: to_end[state] for state, number in numbers.items()},
        _texts(spec), _python_after(spec),
        any(state.typed in ("json", "notated", "elements") for state in spec.states.values()), _call_objects(spec),
        spec.notation[1] if any(state.typed == "elements" for state in spec.states.values()) else "",
    )  # fmt: skip


def _python_after(spec: Spec) -> frozenset[str]:
    """The symbols that lead to a state in which arguments are Python."""
    rows = (row for row in spec.transitions if row.trigger == "object_start" and spec.states[row.dest].python)
    sources = {row.source for row in rows}
    return frozenset(row.trigger for row in spec.transitions if row.dest in sources and row.source != row.dest)


def _call_objects(spec: Spec) -> tuple[Any, ...]:
    """Call objects of a format: `check`'s samples, and one for each other way that the machine takes a member."""
    plain = [json.loads(text) for text in samples(spec)[OBJECT]]
    (key,) = [key for key, part in plain[0].items() if isinstance(part, dict)]
    rest = {name: part for name, part in plain[0].items() if name != key}
    other: list[dict[str, Any]] = []
    for move in {move.trigger: move for move in spec.transitions}.values():
        match move.trigger.replace("item.", "").split():
            case ["null", member] if member == key:
                other += [{**rest, key: None}, {key: None, **rest}]
            case ["string", member] if member == key:
                other += [{**rest, key: WRITTEN_ARGUMENTS}, {key: WRITTEN_ARGUMENTS, **rest}]
            case ["string", member, value]:
                other += [{member: value, **plain[0]}, {**plain[0], member: value}]
            case ["start_map", member] if member not in ("item", "*") and spec.states[move.dest].meaning == "arguments":
                other += [{**rest, member: plain[0][key]}, {member: plain[0][key], **rest}]
            case ["start_map", member] if member not in ("item", "*"):
                other += [{member: made} for made in plain[:2]]
    renamed = {old.removeprefix("item."): new.removeprefix("item.") for old, new in spec.same_path.items()}
    other += [
        {alias if name == known else name: part for name, part in made.items()}
        for alias, known in renamed.items()
        if "." not in alias + known
        for made in plain
        if known in made
    ]
    return (*plain, *other)


def _numbers(dfa: DFA, to_end: dict[Any, int]) -> dict[Any, int]:
    """The states in the order in which a walk finds them, so that a seed gives the same outputs in every process."""
    numbers = {dfa.initial_state: 0}
    for state in (order := [dfa.initial_state]):
        for _, dest in sorted(dfa.transitions[state].items()):
            if dest in to_end and dest not in numbers:
                numbers[dest] = len(numbers)
                order.append(dest)
    return numbers


def _distances(dfa: DFA) -> dict[Any, int]:
    """How many symbols a state is from a final one, at least; states from which there is no way are absent."""
    distances: dict[Any, int] = dict.fromkeys(dfa.final_states, 0)
    for length in count(1):
        left = [state for state in dfa.states if state not in distances]
        nearer = [state for state in left if not distances.keys().isdisjoint(dfa.transitions[state].values())]
        if not nearer:
            break
        distances |= dict.fromkeys(nearer, length)
    return distances


def _texts(spec: Spec) -> dict[str, tuple[str, ...]]:
    """The texts that a symbol may stand for, of those with a few."""
    texts = {symbol: tuple(values) for symbol, values in samples(spec).items()}
    for symbol, shape in spec.terminals.items():
        if isinstance(shape, Literal):
            texts[symbol] = (shape.text,)
        else:
            fitting = tuple(text for text in RUN_CANDIDATES if re.fullmatch(shape.pattern, text))
            texts[symbol] = fitting or texts[symbol]
    return texts


def covering_words(found: Walks) -> Iterator[list[str]]:
    """For each edge of the automaton, the shortest output that takes it."""
    reached: dict[int, list[str]] = {found.initial: []}
    pending = deque([found.initial])
    while pending:
        state = pending.popleft()
        for symbol, dest in found.edges[state]:
            if dest not in reached:
                reached[dest] = [*reached[state], symbol]
                pending.append(dest)
            yield [*reached[state], symbol, *_shortest_end(found, dest)]


def _shortest_end(found: Walks, state: int) -> list[str]:
    word: list[str] = []
    while found.to_end[state]:
        symbol, state = min(found.edges[state], key=lambda way: found.to_end[way[1]])
        word.append(symbol)
    return word
