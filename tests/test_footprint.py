"""What a parser weighs: a server has thousands of them."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

import toolgram

PARSERS = 1_000
MOST = 1_024  # bytes
MOST_BEGUN = 1_536  # of one whose prompt has begun what may become a call, which it holds


@pytest.mark.parametrize("name", toolgram.format_names())
def test_a_fresh_parser_weighs_no_more_than_a_kibibyte(name: str) -> None:
    fmt = toolgram.get_format(name)
    fmt.parser()
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        parsers = [fmt.parser() for _ in range(PARSERS)]
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(parsers) == PARSERS
    held = fmt.program.states[fmt.parser().state].held
    assert (after - before) / PARSERS <= (MOST_BEGUN if held else MOST)
