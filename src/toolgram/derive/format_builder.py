"""A format being written: fragments, terminals, states, transitions and rules, and the two files that they make.

Strategy: skeletons choose fragments and fill in their markers, and add by role only what is particular to a template;
the builder keeps names unique and one terminal per text.  The machine that it writes is the source, as of a shipped
format; whatever follows from fragments and tags is added by `composition`, and read from the result if it is needed
here.  A path through states is a sequence of symbols: each step adds the transition and the symbol together, so that
the two files cannot drift apart.  A marker is cut into *pieces* at its blanks and at brackets, and blanks are allowed
between any two, as a model may write more or fewer of them than the template does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from toolgram.formats import grammar_home
from toolgram.limits import MOST_BLANKS
from toolgram.spec.composition import START, compose, fragment_loader, names_in
from toolgram.spec.data import Literal, Run
from toolgram.spec.declarations import FREE_TEXT, slashed
from toolgram.spec.machine_file import MachineFile
from toolgram.spec.machine_text import machine_text

BLANK = "WS"
TEXTS = ("content", "reasoning", "malformed")  # the tags of the states in which a call may begin
_BLANK_CLASS = "[ \t\r\n]"
# Between two complete markers: neither continues in the other.
_BETWEEN = re.compile(
    r"(?<=[>】»⟩])\s*(?=[<【«⟨])|(?<=[>】»⟩])\s*(?=\[[^\[])|(?<=[^\]]\])\s*(?=[<【«⟨])|(?<=[^\]]\])\s*(?=\[[^\[])"
)
_LINES = re.compile(r"\s*\n\s*")


@dataclass(frozen=True, slots=True)
class _State:
    tags: tuple[str, ...]
    text: str  # the state to which free text leads; "" for the state itself


@dataclass(slots=True)
class FormatBuilder:
    """The parts of a format in the order in which they will be written."""

    name: str
    title: str
    about: dict[str, Any] = field(default_factory=dict)
    comment: str = ""
    initial: str = START
    fragments: list[dict[str, str]] = field(default_factory=list)
    recovered: str = ""  # the state after what is left of a broken call, if no fragment says
    terminals: dict[str, Literal | Run] = field(default_factory=dict)
    states: dict[str, _State] = field(default_factory=dict)
    rows: dict[tuple[str, str], tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    rules: list[str] = field(default_factory=list)
    imports: dict[str, list[str]] = field(default_factory=dict)  # what the grammar imports: module -> names
    taken: set[str] = field(default_factory=lambda: {START})  # names of states, those of fragments included
    owed: list[tuple[str, str]] = field(default_factory=list)  # opening markers, with the closing ones that calls owe

    def use(self, fragment: str, names: Mapping[str, str]) -> None:
        """Import a fragment. `names` are its markers, and new names for its states, exits and JSON paths."""
        given = {key: value for key, value in names.items() if key != value}
        self.fragments.append({"fragment": fragment, **given})
        self.taken |= {given.get(name, name) for name in names_in(_load(fragment), _load)}

    def literal(self, role: str, text: str) -> str:
        """Return the terminal that is `text`, named by its role unless it has a name already."""
        if name := next(self._named(text), ""):
            return name
        name = self._free(role)
        self.terminals[name] = Literal(name, text, either_end="\n" in text)
        return name

    def has(self, text: str) -> bool:
        """Return whether there is a terminal that is `text`."""
        return any(self._named(text))

    def means_nothing(self, text: str) -> bool:
        """Return whether this text is dropped wherever text may be, or begins a thought there."""
        return any((source, name) in self.rows for name in self._named(text) for source in ("content", START))

    def _named(self, text: str) -> Iterator[str]:
        return (name for name, shape in self.terminals.items() if isinstance(shape, Literal) and shape.text == text)

    def owe(self, openers: Sequence[str], closers: Sequence[str]) -> None:
        """Declare what closes the markers before a call, from the outside in; closing markers come from the inside out.

        A single character closes nothing, since text has it too; neither does a marker that opens something.
        """
        pairs = zip(reversed(openers), closers, strict=False)
        self.owed += [(opener, closer) for opener, closer in pairs if len(closer) > 1 and closer not in openers]

    def _pairs(self) -> dict[str, str | list[str]]:
        """Return the pairs by name, without what ends the turn. A separator may close one call and open the next."""
        names = {shape.text: name for name, shape in self.terminals.items() if isinstance(shape, Literal)}
        stop = self.about.get("stop", ())
        found: dict[str, list[str]] = {}
        for opener, closer in self.owed:
            closing = [names[closer]] if closer in names and names[closer] not in stop else []
            both = [names[closer + opener]] if closer + opener in names else []
            for each in [names[opener], *both] if closing and opener in names else []:
                found.setdefault(each, []).extend([*closing, *both])
        return {opener: _one_or_all(list(dict.fromkeys(closers))) for opener, closers in found.items()}

    def literals(self, role: str, texts: Iterable[str]) -> list[str]:
        """Return terminals for the pieces of one marker."""
        return [self.literal(role, text) for text in texts]

    def run(self, role: str, first: str, rest: str, most: int) -> str:
        """Return a terminal that is a run: a character of `first`, and up to `most` - 1 of `rest`."""
        pattern = f"{first}{{1,{most}}}" if first == rest else f"{first}{rest}{{0,{most - 1}}}"
        known = self.terminals.get(role)
        if isinstance(known, Run) and known.pattern == pattern:
            return role
        name = self._free(role)
        self.terminals[name] = Run(name, pattern, first, most)
        return name

    def blanks(self) -> str:
        """Return the terminal of a run of blanks."""
        if BLANK not in self.terminals:
            self.terminals[BLANK] = Run(BLANK, f"{_BLANK_CLASS}{{1,{MOST_BLANKS}}}", _BLANK_CLASS, MOST_BLANKS)
        return BLANK

    def state(self, role: str, *tags: str, text: str = "") -> str:
        """Return a new state, named by its role. Text leads from it to `text`, or stays in it."""
        name = _numbered(role, self.taken)
        self.taken.add(name)
        self.states[name] = _State(tags, text)
        return name

    def tag(self, name: str, *tags: str) -> None:
        """Give a state of content or reasoning, perhaps of a fragment, these tags."""
        self.states[name] = _State(tags, "")

    def begin(self, initial: str) -> None:
        """Let an output begin in `initial`; text leads from there to the state of content."""
        self.initial = initial
        self.tag(START, "content")

    def closed(self, role: str) -> str:
        """Return a new state of content after a call, which text leaves."""
        return self.state(role, "content", text=START)

    def to(self, trigger: str, sources: str | Iterable[str], dest: str, *actions: str) -> None:
        """Add a transition from each source (a state or a tag), "=" to the source itself. The first one stays."""
        for source in [sources] if isinstance(sources, str) else sources:
            self.rows.setdefault((source, trigger), (dest, actions))

    def loop_blanks(self, *states: str) -> None:
        """Allow blanks in these states."""
        self.to(self.blanks(), states, "=")

    def take(self, module: str, *names: str) -> None:
        """Import rules or terminals of a grammar beside the shipped ones."""
        known = self.imports.setdefault(module, [])
        known += dict.fromkeys(name for name in names if name not in known)

    def _free(self, role: str) -> str:
        return _numbered(role, {*self.terminals, *FREE_TEXT})

    def composed(self) -> Mapping[str, Any]:
        """Return the machine with its fragments put in, and with the rows that follow from the states."""
        machine: Mapping[str, Any] = compose(self._machine_file(), _load).data["machine"]
        return machine

    def grammar(self) -> str:
        """Return the text of the .lark file."""
        about = [f"// {line}".rstrip() for line in self.comment.splitlines()]
        imports = [f"%import .common.{module} ({', '.join(names)})" for module, names in self.imports.items()]
        rules = [*self.rules, f"_ws: {BLANK}*"] if any("_ws" in rule for rule in self.rules) else self.rules
        known = {name for names in self.imports.values() for name in names}
        terminals = [f"{name}: {_written(shape)}" for name, shape in self.terminals.items() if name not in known]
        own = [name for name in self.declared() if name not in known]
        terminals += [f"%declare {' '.join(own)}"] if own else []
        parts = [about, imports, [" ".join(rule.split()) for rule in rules], terminals]
        return "\n\n".join("\n".join(part) for part in parts if part) + "\n"

    def declared(self) -> list[str]:
        """Return the terminals that follow from the machine: those that a rule names, and those of imported rules."""
        named = {name for names in self.imports.values() for name in names}
        named |= {name for rule in self.rules for name in re.findall(r"\w+", rule)}
        return [name for name in FREE_TEXT if name in named]

    def machine(self) -> str:
        """Return the text of the .yaml file."""
        return machine_text(self.machine_dict(), self.comment.partition("\n")[0])

    def machine_dict(self) -> dict[str, Any]:
        """Return what the .yaml file says, as data."""
        machine: dict[str, Any] = {
            "name": self.name if PurePath(f"{self.name}.yaml").stem != self.name else "",
            "initial": self.initial if self.initial != START else "",
            "home": START if self.initial != START else "",
            "recovered": self.recovered,
            "import": self.fragments,
            "states": list(self._state_entries()),
            "transitions": list(self._row_entries()),
        }
        about = {"title": self.title, "parser": "earley", "longest_match": True, **self.about}
        if pairs := self._pairs():
            about["closed_by"] = pairs
        return {"format": about, "machine": {key: value for key, value in machine.items() if value}}

    def _machine_file(self) -> MachineFile:
        return MachineFile(f"{self.name}.yaml", self.machine_dict(), {})

    def _state_entries(self) -> Iterator[dict[str, Any]]:
        """Yield the states, those that are alike in one entry."""
        alike: dict[_State, list[str]] = {}
        for name, state in self.states.items():
            alike.setdefault(state, []).append(name)
        for state, names in alike.items():
            entry: dict[str, Any] = {"name": names[0]} if len(names) == 1 else {"names": names}
            if state.tags:
                entry["tags"] = list(state.tags)
            if state.text:
                entry["text"] = state.text
            yield entry

    def _row_entries(self) -> Iterator[dict[str, Any]]:
        """Yield the transitions, those that differ in nothing but their source, or their trigger, in one entry."""
        by_trigger: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
        for (source, trigger), (dest, actions) in self.rows.items():
            by_trigger.setdefault((trigger, source if dest == "=" else dest, actions), []).append(source)
        for (trigger, dest, actions), sources in list(by_trigger.items()):
            if sources == [dest]:
                by_trigger.setdefault((trigger, "=", actions), []).append(dest)
                del by_trigger[trigger, dest, actions]
        alike: dict[tuple[tuple[str, ...], str, tuple[str, ...]], list[str]] = {}
        for (trigger, dest, actions), sources in by_trigger.items():
            alike.setdefault((tuple(sources), dest, actions), []).append(trigger)
        for (leaving, dest, actions), triggers in alike.items():
            entry = {"trigger": _one_or_all(triggers), "source": _one_or_all(leaving), "dest": dest}
            yield {**entry, "after": _one_or_all(actions)} if actions else entry


def sources_of(row: Mapping[str, Any]) -> list[str]:
    """Return the states that a row of a composed machine leaves."""
    return [row["source"]] if isinstance(row["source"], str) else row["source"]


def _load(fragment: str) -> Any:
    return fragment_loader([grammar_home().parent / "machines"])(fragment)


def _one_or_all(names: Sequence[str]) -> str | list[str]:
    return names[0] if len(names) == 1 else list(names)


def _numbered(role: str, taken: Iterable[str]) -> str:
    """Return the name, with a number if it is taken."""
    name, number = role, 2
    while name in taken:
        name, number = f"{role}_{number}", number + 1
    return name


def _written(shape: Literal | Run) -> str:
    """Return a terminal as a Lark file says what it is."""
    exact = isinstance(shape, Literal) and not shape.either_end
    return quoted(shape.text) if isinstance(shape, Literal) and exact else f"/{slashed(shape.pattern)}/"


def quoted(text: str) -> str:
    """Return a text as a Lark string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in escaped) + '"'


def pieces(marker: str) -> list[str]:
    """Return the pieces of a marker, without the blanks around and between them."""
    cut = [piece for line in _LINES.split(marker) for piece in _BETWEEN.split(line)]
    return [piece.strip() for piece in cut if piece.strip()]


def whole(builder: FormatBuilder, marker: str) -> list[str]:
    """Return the pieces of a marker; one piece if the first has another meaning in free text."""
    cut = pieces(marker)
    return [marker.strip()] if cut and builder.has(cut[0]) else cut


def class_of(excluded: str, blanks: bool = False) -> str:
    """Return a character class of everything but `excluded`, line ends, and (unless `blanks`) other blanks."""
    kept = dict.fromkeys(char for char in excluded if not char.isspace())
    escaped = "".join(rf"\{char}" if char in r"\]^-[/" else char for char in kept)
    return f"[^{escaped}" + ("\r\n]" if blanks else r"\s]")


def one_of(alternatives: Sequence[str]) -> str:
    """Return the part of a rule that is one of these; "" if there are none."""
    one = " | ".join(alternatives)
    return one if one.strip().isidentifier() or not one else f"({one})"


def each_optional(names: Sequence[str]) -> str:
    """Return the rule of consecutive markers, of which any number at the end may be missing."""
    rule = ""
    for at in range(len(names) - 1, -1, -1):
        blanks = " _ws" if at < len(names) - 1 else ""
        rule = f"({names[at]}{blanks}{' ' + rule if rule else ''})?"
    return rule


def add_closers(
    builder: FormatBuilder, role: str, texts: Sequence[str], sources: Sequence[str], leaving: list[str]
) -> str:
    """Return the rule of the markers after the last call, each of which may be missing.

    Adds the states after them to `leaving`.
    """
    names = builder.literals(role, texts)
    for name in names:
        dest = builder.closed("CALLS_CLOSED")
        builder.to(name, [*sources, "malformed"], dest)
        leaving.append(dest)
        sources = [dest]
    return each_optional(names)


def close_arguments(builder: FormatBuilder, text: str, done: str, parsing: str = "PARSING_ARGUMENTS") -> None:
    """Let the marker after a call close the brackets that its arguments lack. One that JSON may have does not tell.

    `done` is the state after the call, `parsing` that of its arguments.
    """
    if text[0] not in ']},:"':
        name = builder.literal("CALL_END", text)
        names = {"CALL_END": name, "CALL_COMPLETE": builder.rows[done, name][0], "PARSING_ARGUMENTS": parsing}
        builder.use("unclosed_json", names)


@dataclass(slots=True)
class Path:
    """The current states of a path (it may begin in several), and the symbols that lead there."""

    builder: FormatBuilder
    states: list[str]  # or tags, for all states that have one
    symbols: list[str] = field(default_factory=list)

    def step(self, trigger: str, dest: str, *actions: str, blanks: bool = True) -> Path:
        """Take one symbol to `dest`, which allows blanks."""
        self.builder.to(trigger, self.states, dest, *actions)
        self.symbols.append(trigger)
        self.states = [dest]
        if blanks:
            self.blanks()
        return self

    def markers(self, role: str, texts: Sequence[str], last: str) -> Path:
        """Add the pieces of a marker, up to the state `last`, whose blanks belong to a fragment."""
        names = self.builder.literals(role, texts)
        for name in names[:-1]:
            self.step(name, self.builder.state("WAITING_FOR_TOOL_MARKER", "held"))
        for name in names[-1:]:
            self.builder.blanks()
            self.step(name, last, blanks=False).symbols.append("_ws")
        return self

    def blanks(self) -> None:
        """Allow blanks here."""
        self.builder.loop_blanks(*self.states)
        self.symbols.append("_ws")

    def fork(self) -> Path:
        """Return another path from here, with symbols of its own."""
        return Path(self.builder, list(self.states))

    def text(self) -> str:
        """Return the symbols as part of a rule."""
        return " ".join(self.symbols)
