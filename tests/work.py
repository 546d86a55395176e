"""A bound on work that no machine changes: how many functions are called.

A clock would measure the machine, and the tests beside this one, as well.  What one function of C does, such as the
match of an expression, counts as one call.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

import toolgram


@contextmanager
def at_most(calls: int) -> Iterator[list[int]]:
    """Fails as soon as its block has called more functions than these; gives a list whose one item counts them."""
    made = [0]

    def count(frame: FrameType, event: str, argument: Any) -> None:
        made[0] += event in ("call", "c_call")
        if made[0] > calls:
            sys.setprofile(None)
            pytest.fail(f"more than {calls:,} calls: {frame.f_code.co_filename}:{frame.f_lineno}")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield made
    finally:
        sys.setprofile(before)


def calls_made(name: str, chunks: Iterable[str]) -> int:
    """Return how many functions, of Python and of C, reading these deltas calls."""
    parser = toolgram.get_format(name).parser(prefix="")
    with at_most(sys.maxsize) as made:
        for chunk in chunks:
            parser.feed(chunk)
        parser.close("stop")
    return made[0]
