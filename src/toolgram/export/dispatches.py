"""Free text as xgrammar's own dispatch: the words that the engine looks for.

Strategy: the engine compiles a state of its dispatch in half a millisecond, and has one for each character of a word.
So of a long special token, of a phrase, and of the name of a function, a part stands for the whole: it excludes a
little more than the word does, never less, and notes say what.  With eight functions, OLMo 3 compiles in 68 ms instead
of 114, and Llama 4 in 55 instead of 106 (`python -m benchmarks.exports` over tekken, xgrammar 0.2.8).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from toolgram.export.expressions import Text

_SPECIAL = re.compile(r"(<｜|<\|[^\W\d_]\w\w)")  # so much of a special token is read: nothing else begins so
_MARKER = re.compile(r"(</?[^\W\d_]{3,}_|\[/?[A-Z]{3,}(?:_| [A-Z]{3,})|\{\"[^\W\d_]{3,}_)")  # and of others
_PHRASE = re.compile(r"[\w' ]+ (\w[\w' ]{10,}[\w':])\Z")  # of which words at the end are read
_NAME = re.compile(r"[\"']?\w+(_\w+[\"'(])\Z")  # of a function, as a call has it; the last word is read


def excluded(text: Text, note: Callable[[str], object]) -> tuple[str, ...]:
    """Return the words that the engine looks for in a text: those that must not stand in it, and its closer."""
    parts = {word: _part(word) for word in text.forbidden.words}
    found = dict.fromkeys((*parts.values(), *([] if is_told_apart(text) else [text.closer])))
    words = tuple(word for word in found if not any(each != word and each in word for each in found))
    shown = dict.fromkeys(repr(part) for word, part in parts.items() if part in words and part != word)
    if shown:
        note(f"text holds no part of a marker or a name such as {' or '.join(shown)}, with the rest of it or without")
    return words


def is_told_apart(text: Text) -> bool:
    """Whether a text ends before its closer in any case, because a word that it must not hold is in the closer."""
    return not text.closer or any(_part(word) in text.closer for word in text.forbidden.words)


@lru_cache(maxsize=4096)
def _part(word: str) -> str:
    """Return the part of a word that stands for it."""
    found = _NAME.match(word) or _PHRASE.match(word) or _SPECIAL.match(word) or _MARKER.match(word)
    return found[1] if found else word
