"""A throw-away format that makes it hard for whoever writes it down: names that are words of a dialect, marker text
that is made of what dialects quote, escape and end a line with."""

from __future__ import annotations

from pathlib import Path

MARKER = '<"a";b|c>&{d}%%:#1;`--\\n[e]'
OWN = Path(__file__).parent / "own"
GRAMMAR = (OWN / "odd.lark").read_text("utf-8")
MACHINE = (OWN / "odd.yaml").read_text("utf-8")


def write_own_format(folder: Path) -> tuple[Path, Path]:
    """Write its two files; returns their paths."""
    grammar, machine = folder / "own.lark", folder / "own.yaml"
    grammar.write_text(GRAMMAR, encoding="utf-8")
    machine.write_text(MACHINE, encoding="utf-8")
    return grammar, machine
