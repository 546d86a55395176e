"""A format being written: terminals, states, transitions and rules, and the two files that they make.

Strategy: skeletons add what they need and name it by its role; the draft keeps names unique, one terminal per text, and
writes grammar and machine at the end.  The specification is made from the same data without reading the files again,
which would cost more than all of the analysis; that both are the same is a test.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolgram.machine_file import MachineFile
from toolgram.machine_text import machine_text
from toolgram.spec import Literal, Run, Spec
from toolgram.spec_building import build_spec

FINAL = "ALL_TOOLS_COMPLETE"
START = "WAITING_FOR_TOOL_START"
DONE = "TOOL_COMPLETE"
RECOVERING = "RECOVERING"
BLANK = "WS"
_BLANK_CLASS = "[ \t\r\n]"


@dataclass(slots=True)
class Draft:
    """The parts of a format in the order in which they will be written."""

    name: str
    title: str
    about: dict[str, Any] = field(default_factory=dict)
    comment: str = ""
    terminals: dict[str, Literal | Run] = field(default_factory=dict)
    states: dict[str, tuple[str, ...]] = field(default_factory=dict)
    rows: dict[tuple[str, str], tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    rules: list[str] = field(default_factory=list)
    imports: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)  # terminals of free text: name -> regular expression
    open_ended: dict[str, set[str]] = field(default_factory=dict)  # states of a call that anything but these ends
    initial: str = START

    def literal(self, role: str, text: str) -> str:
        """The terminal that is `text`, named by its role unless it has a name already."""
        for name, shape in self.terminals.items():
            if isinstance(shape, Literal) and shape.text == text:
                return name
        name = self._free(role)
        self.terminals[name] = Literal(name, text)
        return name

    def has(self, text: str) -> bool:
        """Whether there is a terminal that is `text`."""
        return any(isinstance(shape, Literal) and shape.text == text for shape in self.terminals.values())

    def literals(self, role: str, texts: Iterable[str]) -> list[str]:
        """Terminals for the pieces of one marker."""
        return [self.literal(role, text) for text in texts]

    def run(self, role: str, first: str, rest: str, most: int) -> str:
        """A terminal that is a run: a character of `first`, and up to `most` - 1 of `rest`."""
        pattern = f"{first}{{1,{most}}}" if first == rest else f"{first}{rest}{{0,{most - 1}}}"
        known = self.terminals.get(role)
        if isinstance(known, Run) and known.pattern == pattern:
            return role
        name = self._free(role)
        self.terminals[name] = Run(name, pattern, first, most)
        return name

    def anything_but(self, states: Sequence[str]) -> str:
        """A regular expression of text in which no marker of these states begins."""
        found = []
        for source, trigger in self.rows:
            shape = self.terminals.get(trigger)
            if source in states and isinstance(shape, Literal) and shape.text not in found:
                found.append(shape.text)
        if not found:
            return r"[\s\S]+"
        return f"(?:(?!{'|'.join(re.escape(text) for text in found)})[\\s\\S])+"

    def blanks(self) -> str:
        """The terminal of a run of blanks."""
        if BLANK not in self.terminals:
            self.terminals[BLANK] = Run(BLANK, f"{_BLANK_CLASS}{{1,64}}", _BLANK_CLASS, 64)
        return BLANK

    def state(self, role: str, *tags: str) -> str:
        """A new state, named by its role."""
        name = role
        number = 2
        while name in self.states:
            name = f"{role}_{number}"
            number += 1
        self.states[name] = tags
        return name

    def to(self, trigger: str, sources: str | Iterable[str], dest: str, *actions: str) -> None:
        """A transition from each source, "=" to itself; the first one that is given stays."""
        for source in [sources] if isinstance(sources, str) else sources:
            self.rows.setdefault((source, trigger), (source if dest == "=" else dest, actions))

    def loop_blanks(self, *states: str) -> None:
        """Blanks may stand in these states."""
        for state in states:
            self.to(self.blanks(), state, state)

    def _free(self, role: str) -> str:
        name = role
        number = 2
        while name in self.terminals or name in self.texts:
            name = f"{role}_{number}"
            number += 1
        return name

    # --- the files ------------------------------------------------------------------------------------------------

    def grammar(self) -> str:
        """The text of the .lark file."""
        lines = [f"// {line}".rstrip() for line in self.comment.splitlines()]
        lines += ["", *(f"%import {each}" for each in self.imports)] if self.imports else []
        rules = [*self.rules, f"_ws: {BLANK}*"] if any("_ws" in rule for rule in self.rules) else self.rules
        lines += ["", *(" ".join(rule.split()) for rule in rules), ""]
        for name, shape in self.terminals.items():
            if isinstance(shape, Literal):
                lines.append(f"{name}: {quoted(shape.text)}")
            else:
                lines.append(f"{name}: /{slashed(shape.pattern)}/")
        lines += [f"{name}: /{slashed(pattern)}/" for name, pattern in self.texts.items()]
        return "\n".join(lines) + "\n"

    def machine(self) -> str:
        """The text of the .yaml file."""
        return machine_text(self.machine_dict(), self.comment.partition("\n")[0])

    def _about(self) -> dict[str, Any]:
        return {"title": self.title, "parser": "earley", "longest_match": True, **self.about}

    def _grouped(self) -> dict[tuple[str, str, tuple[str, ...]], list[str]]:
        """Transitions by what they do, with all their sources; those that stay where they are together."""
        groups: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
        for (source, trigger), (dest, actions) in self.rows.items():
            groups.setdefault((trigger, "=" if source == dest else dest, actions), []).append(source)
        return groups

    def machine_dict(self) -> dict[str, Any]:
        """What the .yaml file says, as data."""
        states: list[dict[str, Any]] = [
            {"name": name, "tags": list(tags)} if tags else {"name": name} for name, tags in self.states.items()
        ]
        transitions: list[dict[str, Any]] = []
        for (trigger, dest, actions), sources in self._grouped().items():
            entry: dict[str, Any] = {"trigger": trigger, "source": sources if len(sources) > 1 else sources[0]}
            entry["dest"] = "=" if sources == [dest] else dest
            if actions:
                entry["after"] = list(actions) if len(actions) > 1 else actions[0]
            transitions.append(entry)
        machine = {
            "name": self.name,
            "initial": self.initial,
            "auto_transitions": False,
            "states": [*states, {"name": FINAL, "final": True}],
            "transitions": transitions,
        }
        return {"format": self._about(), "machine": machine}

    def spec(self, import_paths: tuple[str, ...]) -> Spec:
        """The specification, as reading the two files would give it. Raises FormatError where it cannot run."""
        machine = MachineFile(f"{self.name}.yaml", self.machine_dict(), {})
        known = {**dict.fromkeys(self.texts), **self.terminals}
        shapes = {name: lambda shape=shape: shape for name, shape in known.items()}
        return build_spec(machine, shapes, self.grammar(), f"{self.name}.lark", import_paths)


def quoted(text: str) -> str:
    """A text as a Lark string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(_SHORT.get(char, char) if char.isprintable() else _code(char) for char in escaped) + '"'


_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _code(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def slashed(pattern: str) -> str:
    """A regular expression as it stands between slashes in a Lark file."""
    pattern = re.sub(r"(?<!\\)((?:\\\\)*)/", r"\1\\/", pattern)
    return re.sub(r"\\?([\n\t\r])", lambda match: _SHORT[match.group(1)], pattern)
