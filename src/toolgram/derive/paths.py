"""Write machine and grammar together: a path through states is a sequence of symbols.

Strategy: a marker is cut into *pieces* at its blanks and at brackets, and blanks are allowed between any two, so that a
model may write more or fewer of them than the template does. Each step of a path adds the transition and the symbol
together; the two files cannot drift apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from toolgram.derive.format_builder import FormatBuilder

# Between two complete markers: neither continues in the other.
_BETWEEN = re.compile(
    r"(?<=[>】»⟩])\s*(?=[<【«⟨])|(?<=[>】»⟩])\s*(?=\[[^\[])|(?<=[^\]]\])\s*(?=[<【«⟨])|(?<=[^\]]\])\s*(?=\[[^\[])"
)
_LINES = re.compile(r"\s*\n\s*")


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
