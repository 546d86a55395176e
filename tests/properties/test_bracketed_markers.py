"""Closing markers that begin with a bracket, as Python has it: `<tool_code>print(f(a=1))</tool_code>`.

Strategy: no shipped format has such a marker, so formats are derived from templates that print them.  Every short
string over what matters there is read after beginnings of a call, whole and by character; and valid outputs are broken
as the fuzz breaks those of shipped formats.
"""

import itertools
import random
from functools import lru_cache

import pytest

import toolgram
from tests.clauses import check, check_widely
from tests.derive.turns import template_of
from tests.fuzz import tools

MARKERS = {
    "a parenthesis": ("<tool_code>print(", ", ", ")</tool_code>"),
    "a brace": ("<<{", ", ", "}>>"),
    "a bracket after the list": ("<calls>[", ", ", "]]</calls>"),
    "a line": ("<tool_code>\nprint(", "\n", ")\n</tool_code>"),
}
SYMBOLS = ("a", "1", " ", ",", "(", ")", "]", "}", "'", "=", ">")


@lru_cache
def derived(kind: str) -> toolgram.Format:
    before, between, after = map(repr, MARKERS[kind])
    arguments = "$EACH{{ k }}={{ v|tojson }}{{ ', ' if not loop.last }}$END"
    call = f"$NAME({arguments}){{{{ {between} if not loop.last }}}}"
    return toolgram.derive_format(
        template_of(call, "{{ m.content or '' }}", f"{{{{ {before} }}}}", f"{{{{ {after} }}}}")
    )


@pytest.mark.parametrize("kind", MARKERS)
def test_the_calls_are_read(kind: str) -> None:
    before, between, after = MARKERS[kind]
    for arguments in ("", "a=2", "a='x'", "a=True, b=[1]", "a={'k': (1, 2)}"):
        text = f"{before}f({arguments}){between}g(a=1){after}"
        message = derived(kind).parse(text)
        assert [(call.name, call.status) for call in message.tool_calls] == [("f", "complete"), ("g", "complete")]
        assert check(derived(kind), text)[0] is None


@pytest.mark.parametrize("kind", MARKERS)
def test_every_short_string_inside_a_call(kind: str) -> None:
    before, _, after = MARKERS[kind]
    symbols = (*SYMBOLS, after, after[:-1], after[0])
    for beginning in ("f(", "f(a=2", "f(a='x", "f(a='x'y", "f(a=[1", "f()", "f(a=True)"):
        for row in itertools.chain.from_iterable(itertools.product(symbols, repeat=size) for size in (1, 2)):
            failure, _ = check(derived(kind), before + beginning + "".join(row))
            assert failure is None, failure


@pytest.mark.parametrize("kind", MARKERS)
def test_broken_outputs(kind: str) -> None:
    before, between, after = MARKERS[kind]
    chosen = random.Random(kind)
    for _ in range(300):
        calls = [f"{name}(a={chosen.choice(['2', 'None', repr('x)'), '[1, 2]'])})" for name in "fg"]
        row = list(before + between.join(calls) + after)
        for _ in range(chosen.choice((1, 2, 3))):
            at, size = chosen.randrange(len(row)), chosen.choice((0, 1, 2, 5))
            row[at : at + size] = chosen.choice(([], [chosen.choice((*SYMBOLS, after, after[:-1]))]))
        failure = check_widely(derived(kind), "".join(row), tools())
        assert failure is None, failure
