"""What the files of shipped formats show: outputs, markers, and what they say of prompts and templates.

Strategy: the texts of the files are read, and no format is loaded, which would cost more than most of its uses here.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import yaml

from toolgram.formats import grammar_home

_SHORTEST = 3  # characters of a marker that tells anything
_SAID = re.compile(
    r"^  (?:canonical|example|generation_prompt|prompt_shows|calls_begin):.*\n(?:(?:    .*)?\n)*", re.MULTILINE
)
_LITERAL = re.compile(r'^(?:%override )?([A-Z]\w*)(?:\.-?\d+)?:.*?"([^"\\\n]+)"', re.MULTILINE)
_REPAIR = "// repair"  # after a marker that only models write, and no template does
_PIECE = re.compile(r"^%import (?:\.common)?\.(\w+)", re.MULTILINE)


@cache
def outputs_of_format(name: str) -> tuple[str, ...]:
    """Return the canonical outputs of a shipped format."""
    said = said_by(name)
    shown = said.get("canonical") or [said.get("example", "")]
    return tuple(each if isinstance(each, str) else str(each.get("output", "")) for each in shown)


@cache
def said_by(name: str) -> dict[str, Any]:
    """Return what the machine file says of outputs, of the prompt, and of templates of the family."""
    text = (grammar_home().parent / "machines" / f"{name}.yaml").read_text(encoding="utf-8")
    said: dict[str, Any] = yaml.safe_load("".join(_SAID.findall(text))) or {}
    return said


@cache
def markers_of_format(name: str) -> frozenset[str]:
    """Return the markers of a shipped format, by its grammar and the pieces that it imports."""
    literals = _literals((grammar_home() / f"{name}.lark").read_text(encoding="utf-8"))
    return frozenset(each for each in literals.values() if len(each) >= _SHORTEST + 4 * each.isalnum())


def _literals(grammar: str) -> dict[str, str]:
    """Return the text of each terminal that has one; a grammar's own text goes before that of its pieces."""
    found: dict[str, str] = {}
    for piece in _PIECE.findall(grammar):
        found |= _literals((grammar_home() / "common" / f"{piece}.lark").read_text(encoding="utf-8"))
    return found | dict(_LITERAL.findall("\n".join(line for line in grammar.splitlines() if _REPAIR not in line)))
