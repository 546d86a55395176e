"""How an output may go on: tokens, and texts that a beginning may be on the way to. Made from a format's two files.

Strategy: goals are the shortest outputs that take each edge of the grammar's automaton, and their endings from every
place where something begins. What is left of a goal, wherever a beginning breaks it off, is a token of its own, so
that a few tokens reach every outcome. Scenes are outputs in which every place is tried as such a beginning.
"""

import random
import re
from functools import lru_cache

import toolgram
from tests.generators.alphabet import markers
from tests.generators.calls_in_halves import around_value, simple_call
from tests.generators.grammar_walks import OneValue, covering_words, walks
from toolgram.check.languages import ARGUMENTS, LIST, OBJECT, VALUE

LONGEST_GOAL = 90  # characters
MOST_MARKERS = 6  # of the longest, where these are more characters than that
_CALLS = {ARGUMENTS, LIST, OBJECT, VALUE}
_BEGINS = re.compile(r"(?<=[\s\[\](){}<>,:\"'=])(?=\S)")


@lru_cache(maxsize=256)
def tokens(name: str) -> tuple[str, ...]:
    """Short texts that may come next: plain ones, the signs that a call is written with, the marker that begins it."""
    before, after = around_value(name)
    opening = [marker for marker in markers(toolgram.get_format(name).spec) if marker in before][:1]
    rest = before + after
    for marker in markers(toolgram.get_format(name).spec):
        rest = rest.replace(marker, marker if len(marker) == 1 else "")
    signs = [sign for sign in "{}[]()\"'=,:><" if sign in rest]
    return tuple(dict.fromkeys(("x", " ", "1", *signs, *opening)))


@lru_cache(maxsize=256)
def goals(name: str) -> tuple[str, ...]:
    """Texts that a beginning may be on the way to, short ones first."""
    found = walks(name)
    whole = {found.write(word, random.Random(seed), OneValue(1)) for word in covering_words(found) for seed in range(6)}
    endings = {text[at:] for text in whole for at in (0, *(match.start() for match in _BEGINS.finditer(text)))}
    longest = max(LONGEST_GOAL, MOST_MARKERS * max(map(len, markers(toolgram.get_format(name).spec)), default=0))
    return tuple(sorted((text for text in endings if 0 < len(text) <= longest), key=lambda text: (len(text), text)))


@lru_cache(maxsize=256)
def scenes(name: str) -> tuple[str, ...]:
    """Outputs to be read up to every place in them: some with calls, text around them, and calls that break."""
    found = walks(name)
    call, _ = simple_call(name)
    before, after = around_value(name)
    words = [word for word in covering_words(found) if _CALLS & {*word}]
    some = sorted(
        {found.write(word, random.Random(1), OneValue(1)) for word in words}, key=lambda text: (len(text), text)
    )
    half = before[: len(before) // 2]
    return (f"Hi {call} x", before, f"{before}1x{after} x", f"{call[:-1]} x", f"a < b {half} x", *some[:4])
