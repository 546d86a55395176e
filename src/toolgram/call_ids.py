"""Call ids, for models that write none: pluggable, seedable, in the shape that each family expects.

Mistral's templates refuse an id that is not nine alphanumeric characters; the rest of the field writes `call_` and
24 of them.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable
from typing import TypeAlias

CallIds: TypeAlias = Callable[[], str]

_ALPHABET = string.ascii_letters + string.digits
_SHAPES = {"call_24": ("call_", 24), "mistral_9": ("", 9)}
STYLES = tuple(_SHAPES)


def random_call_ids(style: str = "call_24", seed: int | None = None) -> CallIds:
    """A factory of ids in `style` ("call_24" or "mistral_9"); with a `seed`, the same ids every time.

    Raises KeyError for an unknown style. The ids name calls within one conversation; they are not secrets.
    """
    prefix, length = _SHAPES[style]
    source = random.Random(seed) if seed is not None else random

    def next_id() -> str:
        return prefix + "".join(source.choices(_ALPHABET, k=length))

    return next_id
