"""A throw-away format that makes it hard for whoever writes it down: names that are words of a dialect, marker text
that is made of what dialects quote, escape and end a line with."""

from pathlib import Path

import toolgram

MARKER = '<"a";b|c>&{d}%%:#1;`--\\n[e]'
OWN = Path(__file__).parent / "own"
GRAMMAR = (OWN / "odd.lark").read_text("utf-8")
MACHINE = (OWN / "odd.yaml").read_text("utf-8")


def write_own_format(folder: Path, grammar: str = GRAMMAR, machine: str = MACHINE) -> tuple[Path, Path]:
    """Write the two files of a format; returns their paths."""
    paths = folder / "own.lark", folder / "own.yaml"
    for path, text in zip(paths, (grammar, machine), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def load_own(folder: Path, grammar: str = GRAMMAR, machine: str = MACHINE) -> toolgram.Format:
    """Load the format of two files that are written for it."""
    return toolgram.load_format(*write_own_format(folder, grammar, machine))
