"""Grammar = machine: both become finite automata over symbols, and the two languages are compared.

A symbol is a terminal or a whole embedded value: the arguments of a call, the JSON object around one call, a list of
such objects.  What is outside these values must be regular: no rule may lead back to itself, except through the
repetitions that Lark makes of `*` and `+`.  Free text is the symbol TEXT, whatever it means.

The machine's automaton leaves out recovery (`malformed`, `recovered`, and text in a held state, which rejects the
candidate).  It passes an embedded value in one step, from the transition that enters it to the one that leaves it.  It
accepts if the state allows text and the output may end, and in a held state that declares what the end means.  An end
inside a value is truncation.

`automata-lib` compares the two automata.  The shortest word that only one of them accepts is the counterexample.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from automata.fa.dfa import DFA
from automata.fa.nfa import NFA
from lark.grammar import Rule, Terminal

from toolgram.errors import FormatError
from toolgram.limits import MAX_LANGUAGE_STATES
from toolgram.spec.data import END, TEXT, Literal, Run, Spec, Transition, rows_of, without_repairs
from toolgram.spec.declarations import short_name
from toolgram.spec.grammar_file import load_lark, terminal_line
from toolgram.spec.vocabulary import UNTYPED, VALUE_TYPES, value_type

ARGUMENTS, OBJECT, LIST, VALUE, WS = "arguments", "call object", "list of calls", "value", "WS"
_VALUES = {
    "arguments": ARGUMENTS,
    "bare_arguments": ARGUMENTS,
    "envelope": OBJECT,
    "bare_envelope": OBJECT,
    "call_list": LIST,
    **dict.fromkeys(("raw_value", "literal_value", *(f"{kind}_value" for kind in VALUE_TYPES)), VALUE),
    "text": TEXT,
    "THOUGHT": TEXT,
}


@dataclass(slots=True)
class Automaton:
    """A nondeterministic automaton under construction; the label "" moves without a symbol."""

    initial: int = 0
    final: set[int] = field(default_factory=set)
    size: int = 1
    edges: list[tuple[int, str, int]] = field(default_factory=list)

    def state(self) -> int:
        """Return a new state."""
        self.size += 1
        return self.size - 1

    def symbols(self) -> set[str]:
        """Return its alphabet."""
        return {symbol for _, symbol, _ in self.edges if symbol}


# --- the grammar --------------------------------------------------------------------------------------------------


def grammar_automaton(spec: Spec) -> Automaton:
    """Return the automaton of the grammar's envelope. Raises FormatError if it is not regular, naming the rule."""
    return _automaton_of(spec, _rules(spec))


def strict_grammar_automaton(spec: Spec) -> Automaton:
    """Return the same without the rules that repair, and what has them as a part."""
    rules = {
        name: [rule for rule in group if not any(repairs(symbol.name) for symbol in rule.expansion)]
        for name, group in _rules(spec).items()
    }
    return _automaton_of(spec, rules)


def repairs(rule: str) -> bool:
    """Return whether a rule of a grammar is there to repair what a model got wrong, by its name.

    Lark makes rules of repetitions, named after the first rule that has them (`__repair_call_star_3`), and shares them.
    """
    return not rule.startswith("__") and short_name(rule).lstrip("_").startswith("repair_")


def _rules(spec: Spec) -> dict[str, list[Rule]]:
    by_name: dict[str, list[Rule]] = {}
    for rule in load_lark(spec.grammar_text, spec.grammar_path, spec.import_paths).rules:
        by_name.setdefault(rule.origin.name, []).append(rule)
    return by_name


def _automaton_of(spec: Spec, by_name: dict[str, list[Rule]]) -> Automaton:
    return _RuleAutomata(spec, by_name).of("start", ())


class _RuleAutomata:
    """The automaton of each rule, made once and as small as can be, and copied to wherever the rule is used."""

    def __init__(self, spec: Spec, rules: dict[str, list[Rule]]) -> None:
        self._spec, self._rules = spec, rules
        self._made: dict[str, Automaton] = {}

    def of(self, name: str, inside: tuple[str, ...]) -> Automaton:
        """Return the automaton of rule `name`. `inside` are the rules it is part of."""
        if name in inside:
            raise self._recursive(name, inside)
        if name not in self._made:
            self._made[name] = _smaller(self._build(name, (*inside, name)))
        return self._made[name]

    def _build(self, name: str, inside: tuple[str, ...]) -> Automaton:
        automaton, rules = Automaton(), self._rules[name]
        begin, end = automaton.initial, automaton.state()
        automaton.final = {end}
        repeated = name.startswith("__") and any(_begins_with_itself(rule, name) for rule in rules)
        if repeated:
            # Lark writes x+ as `r: x | r x`; the bodies are those that do not begin with the rule itself
            inner, after = automaton.state(), automaton.state()
            automaton.edges += [(begin, "", inner), (after, "", inner), (after, "", end)]
            begin, end = inner, after
        for rule in rules:
            if not (repeated and _begins_with_itself(rule, name)):
                self._add_sequence(automaton, rule, begin, end, inside)
        if automaton.size > MAX_LANGUAGE_STATES:
            raise FormatError(
                self._spec.grammar_path, "the grammar is too large to check", "share rules less, or split the format"
            )
        return automaton

    def _add_sequence(self, automaton: Automaton, rule: Rule, begin: int, end: int, inside: tuple[str, ...]) -> None:
        here = begin
        for at, symbol in enumerate(rule.expansion):
            following = end if at == len(rule.expansion) - 1 else automaton.state()
            short = short_name(symbol.name)
            if short in _VALUES:
                automaton.edges.append((here, _VALUES[short], following))
            elif isinstance(symbol, Terminal):
                automaton.edges.append((here, short, following))
            else:
                _copy(self.of(symbol.name, inside), automaton, here, following)
            here = following
        if not rule.expansion:
            automaton.edges.append((begin, "", end))

    def _recursive(self, name: str, inside: tuple[str, ...]) -> FormatError:
        return FormatError(
            self._spec.grammar_path,
            f"rule {name} is recursive ({' -> '.join([*inside[inside.index(name) :], name])})",
            "outside embedded values a format must be regular: write the repetition with * or +, or, if this is a "
            "value of its own, import it from common/",
            terminal_line(self._spec.grammar_text, name),
        )


def _copy(part: Automaton, whole: Automaton, begin: int, end: int) -> None:
    """Add the language of `part` between two states of `whole`."""
    offset = whole.size
    whole.size += part.size
    whole.edges += [(source + offset, symbol, dest + offset) for source, symbol, dest in part.edges]
    whole.edges += [(begin, "", part.initial + offset), *((state + offset, "", end) for state in part.final)]


_SMALL = 12  # states that are not worth the work


def _smaller(automaton: Automaton) -> Automaton:
    """Return the smallest deterministic automaton of the same language."""
    if automaton.size <= _SMALL or not automaton.edges:
        return automaton
    symbols = sorted(automaton.symbols())
    dfa = _deterministic(automaton, {symbol: chr(0xE000 + at) for at, symbol in enumerate(symbols)})
    numbers: dict[object, int] = {dfa.initial_state: 0}
    for state in dfa.states:
        numbers.setdefault(state, len(numbers))
    edges = [
        (numbers[state], symbols[ord(code) - 0xE000], numbers[dest])
        for state, row in dfa.transitions.items()
        for code, dest in row.items()
    ]
    return Automaton(0, {numbers[state] for state in dfa.final_states}, len(numbers), edges)


def _begins_with_itself(rule: Rule, name: str) -> bool:
    return bool(rule.expansion) and rule.expansion[0].name == name


# --- the machine --------------------------------------------------------------------------------------------------


def machine_automaton(spec: Spec) -> Automaton:
    """Return the automaton of the machine, without recovery; an embedded value is one step."""
    rows = rows_of(spec)
    automaton = Automaton()
    numbers = {spec.initial: 0}
    pending = [spec.initial]
    while pending:
        name = pending.pop()
        for symbol, dest in edges_of(spec, rows, name):
            if dest not in numbers:
                numbers[dest] = automaton.state()
                pending.append(dest)
            automaton.edges.append((numbers[name], symbol, numbers[dest]))
    automaton.final = {number for name, number in numbers.items() if name in rows and may_end(spec, rows, name)}
    return automaton


READ = ", read"  # a state that reads a value, and has


def edges_of(spec: Spec, rows: dict[str, dict[str, Transition]], name: str) -> Iterator[tuple[str, str]]:
    """Yield the symbols that lead on from a state, and where to; one that reads a value has a second state after it."""
    if _reads_value(spec, name):
        yield VALUE, name + READ
    else:
        yield from _edges(spec, rows, name.removesuffix(READ))


def _reads_value(spec: Spec, name: str) -> bool:
    return name in spec.states and spec.states[name].meaning == "value"


def may_end(spec: Spec, rows: dict[str, dict[str, Transition]], name: str) -> bool:
    """Return whether a complete output may end in this state."""
    state = spec.states[name]
    return END in rows[name] and (state.meaning in ("content", "reasoning") or state.held)


def _edges(spec: Spec, rows: dict[str, dict[str, Transition]], name: str) -> Iterator[tuple[str, str]]:
    row, state = rows[name], spec.states[name]
    for trigger, transition in row.items():
        dest = transition.dest
        if "unclosed_argument" in transition.actions:
            continue  # the call is malformed, so it is not part of the language
        if trigger in spec.terminals:
            yield trigger, dest
        elif trigger == TEXT:
            if not state.held:
                yield TEXT, dest
        elif trigger == "value_end" and state.meaning == "value":
            yield "", dest
        else:
            yield from _embedded(rows, trigger, dest)
    if _blanks_matter(spec, rows, name):
        yield WS, name


def _embedded(rows: dict[str, dict[str, Transition]], trigger: str, dest: str) -> Iterator[tuple[str, str]]:
    """Yield the edges of an embedded value, as one symbol, from the trigger that begins it."""
    if trigger == "object_start":
        yield from ((ARGUMENTS, end) for end in _ends(rows, dest, "object_end"))
    elif trigger == "object_empty":
        yield ARGUMENTS, dest
    elif trigger == "start_map item":
        for end in _ends(rows, dest, "end_map item"):
            closing = rows[end].get("end_array")  # a bare object is read as the one item of a list
            yield OBJECT, closing.dest if closing else end
    elif trigger == "start_array":
        yield from ((LIST, end) for end in _ends(rows, dest, "end_array"))


def _ends(rows: dict[str, dict[str, Transition]], start: str, closing: str) -> set[str]:
    """Return where the embedded value that begins at `start` ends: the destinations of `closing` inside it."""
    ends: set[str] = set()
    seen, pending = {start}, [start]
    while pending:
        for trigger, transition in rows[pending.pop()].items():
            if trigger == closing:
                ends.add(transition.dest)
            elif _is_inside(trigger) and transition.dest not in seen:
                seen.add(transition.dest)
                pending.append(transition.dest)
    return ends


def _is_inside(trigger: str) -> bool:
    first = trigger.partition(" ")[0]
    return first in ("start_map", "end_map", "map_key", "string", "null", "boolean", "number", "value_end")


_OPENERS = ("start_map item", "start_array", "object_start")  # of JSON after a call


def _blanks_matter(spec: Spec, rows: dict[str, dict[str, Transition]], name: str) -> bool:
    """Return whether blanks may precede a symbol that text makes unavailable.

    In a state that text leaves, a blank run alone leaves nothing. If the state after text has the same transitions
    this makes no difference, and the run is text like any other.
    """
    row, state = rows[name], spec.states[name]
    if state.meaning not in ("content", "reasoning") or row[TEXT].dest == name:
        return False
    after = rows[row[TEXT].dest]
    return any(trigger not in after for trigger in row if trigger in spec.terminals or trigger in _OPENERS)


# --- comparison ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Difference:
    """A word of symbols that only one side accepts, and an output that it stands for."""

    accepted_by: str
    word: list[str]
    example: str


def difference(spec: Spec) -> Difference | None:
    """Return the shortest word on which grammar and machine differ; None when they are the same language."""
    return _difference(spec, grammar_automaton(spec), machine_automaton(spec))


def strict_difference(spec: Spec) -> Difference | None:
    """Return the same for what strict parsers read: without the rules and rows that repair."""
    return _difference(spec, strict_grammar_automaton(spec), machine_automaton(without_repairs(spec)))


def _difference(spec: Spec, grammar: Automaton, machine: Automaton) -> Difference | None:
    alphabet = {symbol: chr(0xE000 + at) for at, symbol in enumerate(sorted(grammar.symbols() | machine.symbols()))}
    one, other = _deterministic(grammar, alphabet), _deterministic(machine, alphabet)
    unlike = one.symmetric_difference(other)
    if unlike.isempty():
        return None
    coded = _shortest_word(unlike)
    names = {code: symbol for symbol, code in alphabet.items()}
    word = [names[code] for code in coded]
    side = "grammar" if one.accepts_input(coded) else "machine"
    return Difference(side, word, "".join(sample(spec, symbol) for symbol in word))


def _shortest_word(automaton: DFA) -> str:
    """Return a shortest word of a language that has one. Visits each state once."""
    words = {automaton.initial_state: ""}
    states = deque(words)
    while states[0] not in automaton.final_states:
        state = states.popleft()
        for symbol, dest in automaton.transitions[state].items():
            if dest not in words:
                words[dest] = words[state] + symbol
                states.append(dest)
    return words[states[0]]


def _deterministic(automaton: Automaton, alphabet: dict[str, str]) -> DFA:
    transitions: dict[int, dict[str, set[int]]] = {state: {} for state in range(automaton.size)}
    for source, symbol, dest in automaton.edges:
        transitions[source].setdefault(alphabet[symbol] if symbol else "", set()).add(dest)
    nfa = NFA(
        states=set(range(automaton.size)),
        input_symbols=set(alphabet.values()),
        transitions=transitions,
        initial_state=automaton.initial,
        final_states=automaton.final,
    )
    return DFA.from_nfa(nfa, minify=True)


def sample(spec: Spec, symbol: str) -> str:
    """Return a text that `symbol` may stand for, to make a word readable."""
    shape = spec.terminals.get(symbol)
    if isinstance(shape, Literal):
        return shape.text
    return samples(spec).get(symbol, [f"<{symbol}>"])[0]


RUNS = {"NAME": "f", "ID": "i1", "INDEX": "0", "KEY": "k"}
CHARACTERS = "".join(map(chr, (*range(0x21, 0x7F), *range(0xA1, 0xD800))))  # of which a run has some
ASCII = 0x7F - 0x21  # of these


def _objects(spec: Spec) -> list[str]:
    """Return call objects with this format's keys."""
    keys = dict.fromkeys(("name", "arguments", "id"), "")
    for transition in spec.transitions:
        if transition.repair:
            continue
        event, _, path = transition.trigger.partition(" ")
        key = path.removeprefix("item.")
        if event == "string" and "." not in key and "item." in path:
            if "name" in transition.actions:
                keys["name"] = keys["name"] or key
            elif "call_id" in transition.actions:
                keys["id"] = key
        elif event == "start_map" and spec.states[transition.dest].meaning == "arguments":
            keys["arguments"] = key
    key = keys["arguments"] or "arguments"
    if key == "*":
        return ['{"f": {"a": 1}}', '{"f":{}}']
    name = "name" if keys["name"] in ("", "function") else keys["name"]
    objects = [f'{{"{name}": "f", "{key}": {{"a": 1}}}}', f'{{"{key}":{{}},"{name}":"f"}}']
    if keys["id"]:
        objects.append(f'{{"{keys["id"]}": "i1", "{name}": "f", "{key}": {{}}}}')
    return objects


def _elements(opening: str, closing: str, item: str, name: str = RUNS["KEY"]) -> list[str]:
    """Return values with elements inside, of an element that has a name of its own, or that of the sample of a key."""
    end = f"{closing}{name}>"
    items = "".join(f"{opening}{item}>{text}{closing}{item}>" for text in ("v", "1"))
    return [f"v{end}", f"{items}{end}", f"{opening}a>{items}{closing}a>{opening}b>{closing}b>{end}", end]


def _fitting(typed: Iterable[str]) -> Sequence[str]:
    """Return values that fit all states: what has a notation of its own is read as text as well, not the reverse."""
    found = (value_type(tag).samples for tag in typed)
    return next((each for each in found if each != UNTYPED.samples), UNTYPED.samples)


def _arguments(spec: Spec) -> list[str]:
    found = ['{"a": 1}', "{}"]
    encoded = any(state.encoded for state in spec.states.values())
    return [*found, r'"{\"a\": 1}"', '"{}"'] if encoded else found


def _run(shape: Literal | Run, text: str) -> str:
    """Return the text, after a character with which the run begins if it does not begin like the text; if the run has
    no such text, as many of its characters as it needs."""
    if isinstance(shape, Literal):
        return text
    head = next((each for each in CHARACTERS if re.fullmatch(shape.first, each)), "")
    longer = (head + each * count for count in range(shape.most) for each in head + CHARACTERS[:ASCII])
    return next((each for each in chain((text, head + text), longer) if re.fullmatch(shape.pattern, each)), text)


def samples(spec: Spec) -> dict[str, list[str]]:
    """Return texts for the symbols that are not one fixed text."""
    kinds = {spec.states[row.dest].python for row in spec.transitions if row.trigger == "object_start"}
    objects = _objects(spec)
    typed = [state.typed for state in spec.states.values() if state.typed]
    values = _elements(*spec.notation) if "elements" in typed else list(_fitting(typed))
    runs = {
        name: [_run(shape, RUNS.get(name.partition("_")[0], "k"))]
        for name, shape in spec.terminals.items()
        if name != WS
    }
    return {
        **runs,
        TEXT: ["x"],
        WS: [" "],
        VALUE: values,
        ARGUMENTS: [*([] if kinds == {True} else _arguments(spec)), *(["(a=1)", "()"] if True in kinds else [])],
        OBJECT: objects,
        LIST: [f"[{objects[0]}]", f"[{objects[1]},\n{objects[0]}]", "[]"],
    }
