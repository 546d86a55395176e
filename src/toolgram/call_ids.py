"""Call ids, for models that write none: pluggable, seedable, in the shape that each family expects.

Mistral's templates refuse an id that is not nine alphanumeric characters; the rest of the field writes `call_` and
24 of them.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from functools import partial
from os import urandom
from typing import TypeAlias

CallIds: TypeAlias = Callable[[], str]

_ALPHABET = (string.ascii_letters + string.digits).encode()
_LETTERS = bytes(_ALPHABET[byte % len(_ALPHABET)] for byte in range(256))  # a byte -> a character of an id
_SHAPES = {"call_24": ("call_", 24), "mistral_9": ("", 9)}
STYLES = tuple(_SHAPES)


def random_call_ids(style: str = "call_24", seed: int | None = None) -> CallIds:
    """A factory of ids in `style` ("call_24" or "mistral_9"); with a `seed`, the same ids every time.

    Raises KeyError for an unknown style. The ids name calls within one conversation; they are not secrets.
    """
    prefix, length = _SHAPES[style]
    return partial(_next_id, prefix, length, urandom if seed is None else _seeded(seed))


def _next_id(prefix: str, length: int, source: Callable[[int], bytes]) -> str:
    return prefix + source(length).translate(_LETTERS).decode("ascii")


def _seeded(seed: int) -> Callable[[int], bytes]:
    from random import Random  # takes milliseconds to load, and is for tests

    return Random(seed).randbytes
