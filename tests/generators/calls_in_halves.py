"""A call of a format in two halves, with room for a value between them: made from the format's two files.

Strategy: among the shortest outputs that take each edge of the grammar's automaton, take those that hold a call, write
the same value for every argument, and cut the text at its place. The call is certain there: its name comes before.
"""

import json
import random
from functools import lru_cache

import toolgram
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
