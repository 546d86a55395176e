"""Warnings: what is proved and may still be a mistake. They do not fail `check`.

* a marker with a line end that refuses `\\r\\n`, which some models and servers write,
* the name of a function that refuses capitals, digits, `_`, `.` or `-`,
* an example that shows no call, or in which the parser misses a closing marker that `closed_by` declares,
* a comment of the grammar that says what is open, as derivation leaves them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolgram.check.examples import doubtful
from toolgram.check.sanity import place_of
from toolgram.formats import Format
from toolgram.spec.data import Literal, Run, Spec
from toolgram.spec.declarations import slashed
from toolgram.spec.grammar_file import OPEN

_IN_NAMES = {"capitals": "A", "digits": "0", "`_`": "_", "`.`": ".", "`-`": "-"}


def warnings_of(fmt: Format) -> list[str]:
    """Return all warnings about a format, each with its file and line and what to write instead."""
    return [*_open(fmt.spec), *_line_ends(fmt.spec), *_names(fmt.spec), *doubtful(fmt)]


def _open(spec: Spec) -> Iterator[str]:
    """Yield what derivation left open, until somebody completes it and deletes the comment."""
    for number, line in enumerate(spec.grammar_text.splitlines(), 1):
        if line.startswith(OPEN):
            yield f"{spec.grammar_path}:{number}: open: {line.removeprefix(OPEN)}"


def _line_ends(spec: Spec) -> Iterator[str]:
    """Yield the markers that are read with one kind of line end only."""
    for name, shape in spec.terminals.items():
        if isinstance(shape, Literal) and "\n" in shape.text and not shape.either_end:
            pattern = slashed(re.escape(shape.text.replace("\r\n", "\n")).replace("\\\n", "\n"))
            both = pattern.replace("\\n", "\\r?\\n")
            yield f"{place_of(spec, name)}: marker {name} refuses one of `\\n` and `\\r\\n`; write {name}: /{both}/"


def _names(spec: Spec) -> Iterator[str]:
    """Yield the terminals of names that refuse characters which names of functions have."""
    for name in dict.fromkeys(row.trigger for row in spec.transitions if "name" in row.actions):
        shape = spec.terminals.get(name)
        if isinstance(shape, Run) and re.fullmatch(shape.pattern, "a"):
            refused = [what for what, sign in _IN_NAMES.items() if not re.fullmatch(shape.pattern, f"a{sign}")]
            if refused:
                yield (
                    f"{place_of(spec, name)}: {name} is the name of a function and refuses {', '.join(refused)}; write "
                    rf"{name}: /[\w.\-]{{1,256}}/"
                )
