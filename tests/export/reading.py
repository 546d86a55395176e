"""Readers of the notations that exports are written in: the text of a grammar as the pieces that were meant.

Strategy: one scanner for all notations, because they differ in their atoms alone.  What it reads as an atom is kept as
it is written.  So a writer that hides an operator inside of an atom is found: it is read as another piece.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from toolgram.export.written import EMPTY_ROW, Atom, Counted, Piece, either, row

_STRING = r'"(?:[^"\\]|\\.)*"'
_REGEX = r"/(?:[^/\\]|\\.)*/"
_PART = re.compile(
    rf"""(?P<space>[ ]+)
    |(?P<atom>
        (?:Regex|TagDispatch|Token)\((?:{_STRING}|[^"()]|\((?:{_STRING}|[^"()])*\))*\)  # calls of xgrammar
        |\(=(?:\[(?:[^\]\\]|\\.)*\]|\((?:\[(?:[^\]\\]|\\.)*\]|[^()\[])*\))\)            # what must follow, in xgrammar
        |{_REGEX}(?:[ ]&[ ]~?{_REGEX})*                                                 # terminals of llguidance
        |%json[ ].*
        |\[(?:[^\]\\]|\\.)*\]
        |<\[\d+\]>|<[^<>\[\]\s]+>
        |(?:{_STRING}|[A-Za-z_][\w-]*(?:::(?:0x0|_|set_bit\(\d+\)))?)(?:[ ]%if[ ][\w()]+(?:,[ ][\w()]+)*)?
    )
    |(?P<mark>[?*+]|\{{\d+(?:,\d*)?\}})
    |(?P<sign>[()|])""",
    re.VERBOSE,
)


def rules_of(text: str) -> list[tuple[str, Piece]]:
    """The rules of a grammar. Raises ValueError for what is no rule."""
    return [(name, piece_of(body)) for name, body in map(_rule, text.splitlines())]


def grammars_of(text: str) -> Iterator[str]:
    """The grammars inside of a structural tag."""
    pending = [json.loads(text)]
    while pending:
        here = pending.pop()
        if isinstance(here, dict):
            if here.get("type") == "grammar":
                yield here["grammar"]
            pending += here.values()
        elif isinstance(here, list):
            pending += here


def _rule(line: str) -> tuple[str, str]:
    found = re.fullmatch(r"([A-Za-z_][\w-]*(?:::_)?(?:\[\w+(?:=\d+)?\])?) (?:::=|:) (.*)", line)
    if found is None:
        raise ValueError(f"no rule: {line!r}")
    return found[1], found[2]


def piece_of(body: str) -> Piece:
    """The piece that the body of a rule is."""
    options: list[list[list[Piece]]] = [[[]]]  # of each open bracket: its alternatives, each with its parts
    at = 0
    while at < len(body):
        found = _PART.match(body, at)
        if found is None:
            raise ValueError(f"not read: {body[at:]!r}")
        at = found.end()
        if found["atom"]:
            options[-1][-1].append(EMPTY_ROW if found["atom"] == '""' else Atom(found["atom"]))
        elif found["mark"]:
            options[-1][-1][-1] = Counted(options[-1][-1][-1], found["mark"])
        elif found["sign"] == "|":
            options[-1].append([])
        elif found["sign"] == "(":
            options.append([[]])
        elif found["sign"] == ")":
            inner = either(*(row(*each) for each in options.pop()))
            options[-1][-1].append(inner)
    if len(options) > 1:
        raise ValueError(f"a bracket is open in {body!r}")
    return either(*(row(*each) for each in options[0]))
