"""What models write, and what they write by mistake: Hypothesis strategies over every format.

The rooms are in `tests.generators`. Every format has outputs made from its two files (`grammar_walks`), so a new format
needs nothing here. Where a format has a writer (`tests.integrations.writers`), some outputs come with what they mean.
"""

import json
import random
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from hypothesis import note
from hypothesis import strategies as st

import toolgram
from tests.generators.alphabet import contexts
from tests.generators.broken_outputs import broken, fragments
from tests.generators.calls_in_halves import simple_call
from tests.generators.grammar_walks import walks
from tests.generators.suite_cases import random_turn, writable
from tests.integrations.writers import WRITERS, Turn
from tests.streams import merged
from toolgram.runtime.following import expression_goes_on, goes_on

TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": n, "parameters": {"type": "object", "properties": {"a": {}}}}}
    for n in ("f", "search", "get_weather")
]
# A function that no format's simple call calls, and whose arguments are other ones.
OTHER_TOOLS = [{"type": "function", "function": {"name": "zz", "parameters": {"type": "object", "properties": {}}}}]
LONGEST = 12  # pieces of a text about calls
CODE = ("`", "``", "```", "```json\n", "````\n", "\n```\n", "~", "~~~\n", "\n", "\n\n", " ", "\t")
PROSE = ("Well. ", "x", "I call {", "}", '{"a": 1}', "[", "]", '"', "\\n", "<", "<|")


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
        continued = goes_on(rest) if piece.endswith("}") else expression_goes_on(rest.lstrip(" \t"))
        if continued and piece.endswith(("}", ")")):
            return False
    return True


def noise(name: str) -> st.SearchStrategy[str]:
    """A row of the fragments that a format's own lexer has to worry about."""
    return st.lists(st.sampled_from(fragments(name)), max_size=30).map("".join)


@st.composite
def mutated(draw: st.DrawFn, name: str) -> str:
    """A well-formed output, broken in a few places: between its symbols, or anywhere."""
    pieces = draw(well_formed(name).map(lambda output: list(output.text)) | walked(name))
    return broken(name, pieces, draw(st.randoms(use_true_random=False)))


@cache
def thought_markers(name: str) -> tuple[str, str]:
    """What opens a thought and what closes it. Both are "" if the format has none."""
    fmt = toolgram.get_format(name)
    for opener in sorted(contexts(name), key=len):
        for closer in fmt.program.literals.values():
            parser = fmt.parser(prefix="")
            events = parser.feed(f"{opener}a{closer}b c") + parser.close()
            told = [(event.type, event.source) for event in merged(events)]
            if ("reasoning", "a") in told and ("content", "b c") in told:
                return opener, closer
    return "", ""


@st.composite
def mentions(draw: st.DrawFn, name: str) -> str:
    """A text in which there are calls, whole and cut, in and after code and thoughts."""
    call, example = simple_call(name)[0], toolgram.get_format(name).example
    program, (opener, closer) = toolgram.get_format(name).program, thought_markers(name)
    literals, stops = [*program.literals.values()], [program.literals[trigger] for trigger in program.stop]
    roles = [*program.spec.other_roles, "<|im_start|>user\n", "<|im_start|>assistant\n"]
    around = [*PROSE, *CODE, *CODE, "\u00a0", "<think>", "</think>", *[opener, closer] * 3, *stops, *roles]
    piece = st.one_of(
        st.sampled_from(around),
        st.sampled_from([call, call, f"{call}\n", f"\n{call}", example]),
        st.integers(1, len(call)).map(lambda at: call[:at]),
        st.integers(1, len(call)).map(lambda at: call[at:]),
        st.sampled_from(literals),
    )
    return "".join(draw(st.lists(piece, max_size=LONGEST)))


def declarations(name: str) -> st.SearchStrategy[list[dict[str, Any]] | None]:
    """No tools, those that most outputs call, that of a format's simple call, or another one."""
    (call,) = toolgram.get_format(name).parse(simple_call(name)[0], prefix="", finish_reason="stop").tool_calls
    schema = {"type": "object", "properties": {key: {} for key in json.loads(call.arguments)}}
    declared = [{"type": "function", "function": {"name": call.name, "parameters": schema}}]
    return st.sampled_from([None, TOOLS, declared, OTHER_TOOLS])


def any_text() -> st.SearchStrategy[str]:
    """Any str at all, lone surrogates and control characters among them."""
    return st.text(st.characters(), max_size=40)


def outputs(name: str) -> st.SearchStrategy[str]:
    """Everything: well-formed, broken, noise, calls that are mentioned, and what has nothing to do with the format."""
    return st.one_of(well_formed(name).map(lambda o: o.text), mutated(name), noise(name), mentions(name), any_text())


def drawn(data: st.DataObject, name: str) -> str:
    """An output, which is shown if a test fails."""
    text = data.draw(outputs(name))
    note(f"text: {text!r}")
    return text


@st.composite
def chunkings(draw: st.DrawFn, text: str) -> list[str]:
    """`text` in random pieces, empty ones among them."""
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return [text[begin:end] for begin, end in pairwise([0, *cuts, len(text)])]
