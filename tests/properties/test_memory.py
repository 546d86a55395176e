"""Text that is held costs what it is long: at most eight bytes for a character beyond the text itself.

Every kind of held text, 100 000 characters of it, comes character by character, which is when lists of pieces and
events of one character would cost ten times as much.
"""

import gc
import itertools
import tracemalloc
from collections.abc import Iterator

import pytest

import toolgram
from tests.tables import table

LENGTH = 30_000
MOST = 9  # bytes for a character of ASCII: itself, and eight

# what opens it, the unit that is repeated, and whether all of it is held
HELD = table(__file__, "held")


@pytest.fixture(autouse=True)
def only_what_is_new_is_collected() -> Iterator[None]:
    """What other tests have left is looked at by no collection here: that would take most of the time."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize("kind", HELD)
def test_held_text_costs_little_more_than_itself(kind: str) -> None:
    name, opening, unit = HELD[kind]
    fmt = toolgram.get_format(name)
    text = opening + unit * (LENGTH // len(unit))
    fmt.parser(prefix="").feed(text[:200])  # what is loaded or remembered once is not counted
    parser = fmt.parser(prefix="", keep_message=False)
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        told = 0
        for character in text:
            told += sum(len(event.source) for event in parser.feed(character))
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    held = len(text) - told
    assert held <= 64 or held > LENGTH // 2, "either it is held, or it goes out"
    assert after - before <= MOST * max(held, LENGTH // 10), f"{(after - before) / len(text):.1f} bytes for a character"


@pytest.mark.parametrize(
    ("name", "opening", "unit"),
    [
        ("mistral_v11", "", "word "),
        ("mistral_v3", "[TOOL_CALLS] [", '{"name": "f", "arguments": {}}'),
        ("qwen3_coder", "<tool_call><function=f>", "<parameter=a>1</parameter>"),
    ],
)
def test_a_parser_that_keeps_no_message_keeps_no_text_and_no_deviations(name: str, opening: str, unit: str) -> None:
    parser = toolgram.get_format(name).parser(prefix="", keep_message=False)
    parser.feed(opening)
    sizes = []
    tracemalloc.start()
    for _ in range(4):
        for _ in range(2_000 if unit == "word " else 200):
            parser.feed(unit)
            parser.take_anomalies()
        gc.collect()
        sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    grown = [after - before for before, after in itertools.pairwise(sizes)]
    assert min(grown) < 4_096, "what piles up grows in each round, by at least 10,000"


# --- what a parser weighs: a server has thousands of them -----------------------------------------------------------

PARSERS = 1_000
MOST_WEIGHT = 1_024  # bytes
MOST_BEGUN = 1_536  # of one whose prompt has begun what may become a call, which it holds


def test_a_fresh_parser_weighs_no_more_than_a_kibibyte() -> None:
    formats = [toolgram.get_format(name) for name in toolgram.format_names()]
    held = {fmt.name: fmt.program.states[fmt.parser().state].held for fmt in formats}
    gc.collect()
    sizes = {fmt.name: _size(fmt) for fmt in formats}
    assert {name: size for name, size in sizes.items() if size > (MOST_BEGUN if held[name] else MOST_WEIGHT)} == {}


def _size(fmt: toolgram.Format) -> float:
    """Return the bytes of a parser, of a prompt that ends where the model begins."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        parsers = [fmt.parser() for _ in range(PARSERS)]
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return (after - before) / len(parsers)
