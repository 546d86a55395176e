"""Call ids, for models that write none: pluggable, seedable, in the shape that each family expects.

Mistral's templates refuse an id that is not nine alphanumeric characters; the rest of the field writes `call_` and
24 of them.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any, TypeAlias

CallIds: TypeAlias = Callable[[], str]
Choices: TypeAlias = Callable[..., list[Any]]

_ALPHABET = string.ascii_letters + string.digits
_SHAPES = {"call_24": ("call_", 24), "mistral_9": ("", 9)}
STYLES = tuple(_SHAPES)


def random_call_ids(style: str = "call_24", seed: int | None = None) -> CallIds:
    """A factory of ids in `style` ("call_24" or "mistral_9"); with a `seed`, the same ids every time.

    Raises KeyError for an unknown style. The ids name calls within one conversation; they are not secrets.
    """
    prefix, length = _SHAPES[style]
    choices: Choices | None = None

    def next_id() -> str:
        nonlocal choices
        if choices is None:
            choices = _choices(seed)
        return prefix + "".join(choices(_ALPHABET, k=length))

    return next_id


def _choices(seed: int | None) -> Choices:
    import random  # takes milliseconds, and most outputs call nothing

    return random.choices if seed is None else random.Random(seed).choices
