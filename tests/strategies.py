"""What models write, and what they write by mistake: Hypothesis strategies over every format.

The rooms are in `tests.generators`. Every format has outputs made from its two files (`grammar_walks`), so a new format
needs nothing here. Where a format has a writer (`tests.integrations.writers`), some outputs come with what they mean.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import strategies as st

from tests.generators.broken_outputs import broken, fragments, grammar_literals
from tests.generators.grammar_walks import walks
from tests.generators.suite_cases import random_turn, writable
from tests.integrations.writers import WRITERS, Turn
from toolgram.runtime.following import GOES_ON, expression_goes_on

__all__ = [
    "Output", "any_text", "chunkings", "fragments", "grammar_literals", "mutated", "noise", "outputs", "well_formed",
]  # fmt: skip


@dataclass(frozen=True)
class Output:
    """A well-formed output, and the turn that it means where a writer wrote it."""

    text: str
    turn: Turn | None = None


def written(name: str, seed: int) -> Output:
    """A turn that its notation has room for, as a writer by hand puts it down."""
    rng = random.Random(seed)
    while True:
        turn = random_turn(rng, rng.random() < 0.4, rng.random() < 0.4)
        if writable(name, turn):
            return Output(WRITERS[name](turn), turn)


@st.composite
def walked(draw: st.DrawFn, name: str) -> list[str]:
    """An output that the format's grammar allows, as the texts of its symbols."""
    rng = draw(st.randoms(use_true_random=False))
    found = walks(name)
    return found.pieces(found.word(rng), rng)


def well_formed(name: str) -> st.SearchStrategy[Output]:
    """Outputs of a format as a model means them, with the turn that each one is where a writer says so."""
    from_files = walked(name).filter(_apart).map(lambda pieces: Output("".join(pieces)))
    if name not in WRITERS:
        return from_files
    return st.integers(0, 2**32).map(lambda seed: written(name, seed)) | from_files


def _apart(pieces: list[str]) -> bool:
    """Return whether each symbol is read as itself: no word goes on in the next one, and nothing directly after
    arguments shows that they go on, which only the parser doubts."""
    for at, piece in enumerate(pieces):
        rest = "".join(pieces[at + 1 :])
        if piece[-1:].isalnum() and rest[:1].isalnum():
            return False
        goes_on = rest.startswith(GOES_ON) if piece.endswith("}") else expression_goes_on(rest.lstrip(" \t"))
        if goes_on and piece.endswith(("}", ")")):
            return False
    return True


# ------------------------------------------------------------------------------------------------------ broken outputs


def noise(name: str) -> st.SearchStrategy[str]:
    """A row of the fragments that a format's own lexer has to worry about."""
    return st.lists(st.sampled_from(fragments(name)), max_size=30).map("".join)


@st.composite
def mutated(draw: st.DrawFn, name: str) -> str:
    """A well-formed output, broken in a few places: between its symbols, or anywhere."""
    pieces = draw(well_formed(name).map(lambda output: list(output.text)) | walked(name))
    return broken(name, pieces, draw(st.randoms(use_true_random=False)))


def any_text() -> st.SearchStrategy[str]:
    """Any str at all, lone surrogates and control characters among them."""
    return st.text(st.characters(), max_size=40)


def outputs(name: str) -> st.SearchStrategy[str]:
    """Everything: well-formed, broken, noise, and text that has nothing to do with the format."""
    return st.one_of(well_formed(name).map(lambda o: o.text), mutated(name), noise(name), any_text())


# ----------------------------------------------------------------------------------------------------------- chunkings


@st.composite
def chunkings(draw: st.DrawFn, text: str) -> list[str]:
    """`text` in random pieces, empty ones among them."""
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return list(_pieces(text, cuts))


def _pieces(text: str, cuts: list[int]) -> Iterator[str]:
    last = 0
    for at in [*cuts, len(text)]:
        yield text[last:at]
        last = at
