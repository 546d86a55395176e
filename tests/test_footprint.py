"""What a parser weighs: a server has thousands of them."""

from __future__ import annotations

import gc
import tracemalloc

import toolgram

PARSERS = 1_000
MOST = 1_024  # bytes
MOST_BEGUN = 1_536  # of one whose prompt has begun what may become a call, which it holds


def test_a_fresh_parser_weighs_no_more_than_a_kibibyte() -> None:
    formats = [toolgram.get_format(name) for name in toolgram.format_names()]
    held = {fmt.name: fmt.program.states[fmt.parser().state].held for fmt in formats}
    gc.collect()
    sizes = {fmt.name: _size(fmt) for fmt in formats}
    assert {name: size for name, size in sizes.items() if size > (MOST_BEGUN if held[name] else MOST)} == {}


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
