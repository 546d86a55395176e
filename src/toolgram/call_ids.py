"""Call ids, for models that write none: pluggable, seedable, in the shape that each family expects.

Mistral's templates refuse an id that is not nine alphanumeric characters; the rest of the field writes `call_` and
24 of them.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from functools import partial
from os import urandom
from typing import Any, TypeAlias

CallIds: TypeAlias = Callable[[], str]

_ALPHABET = (string.ascii_letters + string.digits).encode()
_LETTERS = bytes(_ALPHABET[byte % len(_ALPHABET)] for byte in range(256))  # a byte -> a character of an id
_SHAPES = {"call_24": ("call_", 24), "mistral_9": ("", 9)}
STYLES = tuple(_SHAPES)


def random_call_ids(style: str = "call_24", seed: int | None = None) -> CallIds:
    """Return a factory of ids in `style` ("call_24" or "mistral_9"); with a `seed`, the same ids every time.

    Raises KeyError for an unknown style. The ids name calls within one conversation; they are not secrets.
    """
    prefix, length = _SHAPES[style]
    return partial(_next_id, prefix, length, urandom if seed is None else _seeded(seed))


def call_ids_of(text: str, style: str = "call_24") -> CallIds:
    """Return a factory of ids in `style` that are made from `text`, the output: another run makes the same ones.

    Costs a few microseconds per id, and its length for a long text. Raises KeyError for an unknown style.
    """
    prefix, length = _SHAPES[style]
    return partial(_next_id, prefix, length, _Digests(text).take)


class _Digests:
    """Bytes that follow from a text: other ones for each id."""

    __slots__ = ("_hash", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._hash: Any = None

    def take(self, length: int) -> bytes:
        """Return the next bytes."""
        if self._hash is None:
            from hashlib import shake_128  # which takes a millisecond to load

            self._hash = shake_128(self._text.encode("utf-8", "surrogatepass"))
        taken: bytes = self._hash.digest(length)
        self._hash.update(b"next")
        return taken


def _next_id(prefix: str, length: int, source: Callable[[int], bytes]) -> str:
    return prefix + source(length).translate(_LETTERS).decode("ascii")


def _seeded(seed: int) -> Callable[[int], bytes]:
    from random import Random  # takes milliseconds to load, and is for tests

    return Random(seed).randbytes
