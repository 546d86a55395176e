"""A call of a format in two halves, with room for a value between them: made from the format's two files.

Strategy: among the shortest outputs that take each edge of the grammar's automaton, take those that hold a call, write
the same value for every argument, and cut the text at its place. The call is certain there: its name comes before.
"""

import json
import random
import re
from functools import lru_cache

import toolgram
from tests.generators.alphabet import markers
from tests.generators.grammar_walks import OneValue, covering_words, walks
from toolgram.check.languages import ARGUMENTS, LIST, OBJECT, VALUE
from toolgram.program.state import THOUGHT

IN_STRING = "qqq"
IN_VALUE = 777


@lru_cache(maxsize=256)
def call_around(name: str, value: str | int) -> tuple[str, str]:
    """What a format's shortest complete call has before an argument's value and after it, outside of a thought."""
    found, fmt = walks(name), toolgram.get_format(name)
    program = fmt.program
    thoughts = [program.literals[each.trigger] for each in program.initial.symbols if each.opens == THOUGHT]
    written = str(value)
    halves: list[tuple[str, str]] = []
    for word in covering_words(found):
        if {ARGUMENTS, OBJECT, LIST, VALUE} & {*word}:
            for seed in range(4):
                before, between, after = found.write(word, random.Random(seed), OneValue(value)).partition(written)
                for thought in thoughts:
                    before = before.removeprefix(thought)
                if between and written not in after and _is_complete(fmt, before + between, after):
                    halves.append((before, after))
    return min(halves, key=lambda half: (len("".join(half)), half))


def _is_complete(fmt: toolgram.Format, before: str, after: str) -> bool:
    """Return whether the two make one complete call without a finish reason, certain before its value is over."""
    parser = fmt.parser(prefix="")
    certain = any(event.type == "tool_call_start" for event in parser.feed(before))
    parser.feed(after)
    parser.close()
    return certain and [call.status for call in parser.message.tool_calls] == ["complete"]


def around_string(name: str) -> tuple[str, str]:
    """What comes before and after the text of a string argument."""
    return call_around(name, IN_STRING)


def around_value(name: str) -> tuple[str, str]:
    """What comes before and after an argument that is no string."""
    return call_around(name, IN_VALUE)


def simple_call(name: str) -> tuple[str, object]:
    """The shortest output with one call, and its arguments."""
    before, after = around_value(name)
    text = f"{before}{IN_VALUE}{after}"
    (call,) = toolgram.get_format(name).parse(text, prefix="", finish_reason="stop").tool_calls
    return text, json.loads(call.arguments)


# --- how an output may go on: tokens, and texts that a beginning may be on the way to -------------------------------
# Strategy: goals are the shortest outputs that take each edge of the grammar's automaton, and their endings from every
# place where something begins. What is left of a goal, wherever a beginning breaks it off, is a token of its own, so
# that a few tokens reach every outcome. Scenes are outputs in which every place is tried as such a beginning.

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
    texts = {found.write(word, random.Random(1), OneValue(1)) for word in words}
    some = sorted(texts, key=lambda text: (len(text), text))
    half = before[: len(before) // 2]
    return (f"Hi {call} x", before, f"{before}1x{after} x", f"{call[:-1]} x", f"a < b {half} x", *some[:4])
