"""What a parser weighs: a server has thousands of them."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

import toolgram

PARSERS = 1_000
MOST = 1_024  # bytes


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
    assert (after - before) / PARSERS <= MOST
