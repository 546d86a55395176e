"""What models write, and what they write by mistake: Hypothesis strategies over every format.

The rooms are in `tests.generators`. Every format has outputs made from its two files (`grammar_walks`), so a new format
needs nothing here. Some have writers by hand as well, whose outputs come with the message they mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from hypothesis import strategies as st

import toolgram
from tests.generators import json_call_outputs as json_calls
from tests.generators import other_call_outputs as other_calls
from tests.generators.broken_outputs import broken, fragments, grammar_literals
from tests.generators.grammar_walks import walks
from tests.generators.meant_outputs import Call, Output
from toolgram.runtime.following import GOES_ON, expression_goes_on

__all__ = [
    "Call", "Output", "any_text", "chunkings", "fragments", "grammar_literals", "mutated", "noise", "outputs",
    "well_formed",
]  # fmt: skip

WRITTEN_BY_HAND: dict[str, Callable[[bool], st.SearchStrategy[Output]]] = {
    "llama3_json": json_calls.llama3_json,
    "llama4_pythonic": other_calls.llama4_pythonic,
    "mistral_v3": json_calls.mistral_v3,
    "mistral_v11": json_calls.mistral_v11,
    "functionary_v3_2": json_calls.functionary_v3_2,
    "gpt_oss": json_calls.gpt_oss,
    "granite_3": json_calls.granite_3,
    "hermes": json_calls.hermes,
    "qwen3_coder": other_calls.qwen3_coder,
    "lfm2": other_calls.lfm2,
}


@st.composite
def walked(draw: st.DrawFn, name: str) -> list[str]:
    """An output that the format's grammar allows, as the texts of its symbols."""
    rng = draw(st.randoms(use_true_random=False))
    found = walks(name)
    return found.pieces(found.word(rng), rng)


def well_formed(name: str, *, small: bool = False) -> st.SearchStrategy[Output]:
    """Outputs of a format as a model means them, with the message each one is where a writer says so.

    At most one call from a writer where `small`. What a token that ends the turn means before more text is a matter of
    what follows (P3), and no writer says it.
    """
    from_files = walked(name).filter(_end_apart).map(lambda pieces: Output("".join(pieces), known=False))
    if name not in WRITTEN_BY_HAND:
        return from_files
    program = toolgram.get_format(name).program
    stops = [program.literals[each] for each in program.stop if each in program.literals]

    def judged(output: Output) -> Output:
        rest = output.text.rstrip()
        for stop in stops:
            rest = rest.removesuffix(stop)
        return replace(output, known=output.known and not any(stop in rest for stop in stops))

    return WRITTEN_BY_HAND[name](small).map(judged) | from_files


def _end_apart(pieces: list[str]) -> bool:
    """Return whether nothing directly after arguments shows that they go on, which only the parser doubts."""
    for at, piece in enumerate(pieces):
        rest = "".join(pieces[at + 1 :])
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
