"""What `complete` promises: an object of arguments for `json.loads`, and no other call when the output goes on.

Strategy: broken outputs of every format (`tests.fuzz`), each cut off at every character and closed with "length". A
call that is complete there is the same call in the whole, with and without tools.
"""

from __future__ import annotations

import json
import random

import toolgram
from tests.clauses import read
from tests.fuzz import text_of, tools
from tests.properties.selection import every_format

TEXTS = 12
LONGEST = 200


def broken_outputs(name: str) -> list[str]:
    """Some broken outputs of a format, the same in every run."""
    rng = random.Random(name)
    found: list[str] = []
    while len(found) < TEXTS:
        text = text_of(name, rng)
        if 8 <= len(text) <= LONGEST:
            found.append(text)
    return found


@every_format
def test_a_complete_call_has_an_object_of_arguments(name: str) -> None:
    for text in broken_outputs(name):
        for reason in (None, "stop", "length"):
            for function, arguments, status in read(toolgram.get_format(name), (text,), reason, tools()).calls:
                assert status != "complete" or isinstance(json.loads(arguments), dict), (text, function, arguments)


@every_format
def test_what_is_complete_when_cut_off_is_what_the_whole_has(name: str) -> None:
    fmt = toolgram.get_format(name)
    for text in broken_outputs(name):
        for declared in (None, tools()):
            whole = read(fmt, (text,), None, declared)
            for at in range(1, len(text)):
                promised = read(fmt, (text[:at],), "length", declared).complete
                assert not whole.contradicts(promised), (text[:at], text, promised, whole.calls)
