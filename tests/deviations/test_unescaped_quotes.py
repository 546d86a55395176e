"""Strings whose quotes are not escaped: where one ends, what is held until that is known, and what ends the search."""

from __future__ import annotations

import json
import random

import pytest

import toolgram
from tests.deviations.test_json_forms import ARGUMENTS, BARE, JSON_FORMATS, TOOLS, examples
from tests.streams import assert_same_however_split
from toolgram.limits import LONGEST_TAIL

FORMATS = [name for name in JSON_FORMATS if name not in BARE]
LINES = [
    'print("hi")',
    'f("a", "b", c=["d"])',
    'd = {"a": "b"}',
    'x["k"] = "v" if y else ""',
    'assert s == "a" # "b"',
    r'print("a\\n")',
]
CALL = '<tool_call>{"name": "f", "arguments": %s}</tool_call>'


def text_of(name: str, arguments: str) -> tuple[str, str]:
    prefix, example = next(examples(name))
    return prefix, example.replace(ARGUMENTS, arguments, 1)


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("name", FORMATS)
def test_the_string_ends_where_the_rest_is_json(name: str, line: str) -> None:
    """First, in the middle, last, and in an object."""
    value = line.replace("\\\\", "\\")
    for written in ('{"c": "%s"}', '{"c": "%s", "n": 1}', '{"a": "x", "c": "%s"}', '{"o": {"c": "%s"}, "a": ["x"]}'):
        prefix, text = text_of(name, written % line)
        message = assert_same_however_split(
            toolgram.get_format(name), text, prefix=prefix, tools=TOOLS, finish_reason="stop"
        )
        call = message.tool_calls[0]
        meant = json.loads(written % json.dumps(value)[1:-1])
        assert (json.loads(call.arguments), call.status) == (meant, "complete")


def test_a_cut_gives_a_beginning() -> None:
    text, fmt = CALL % '{"c": "f("a", "b")", "d": 1}', toolgram.get_format("hermes")
    for at in range(text.index("a"), len(text)):
        if text[:at].endswith('f("'):
            continue  # as in JSON, that quote has ended the string
        for call in fmt.parse(text[:at], finish_reason="length").tool_calls:
            assert '{"c": "f(\\"a\\", \\"b\\")", "d": 1}'.startswith(call.arguments)


@pytest.mark.parametrize("size", [1, 100, 100_000])
def test_what_is_held_is_bounded(size: int) -> None:
    for rest in (
        ', "d": "' + "x" * 3 * LONGEST_TAIL,
        ' , "", ' * LONGEST_TAIL,
        '"},' * LONGEST_TAIL,
        " " * 3 * LONGEST_TAIL,
    ):
        parser = toolgram.get_format("hermes").parser()
        text = CALL[: CALL.index("%")] + '{"c": "f("a"' + rest
        for at in range(0, len(text), size):
            parser.feed(text[at : at + size])
            assert len(parser.snapshot()["buffer"]) <= LONGEST_TAIL + size
        parser.close()
        assert not [call for call in parser.message.tool_calls if call.status == "complete"]


def test_strict_repairs_nothing() -> None:
    fmt = toolgram.get_format("hermes")
    assert not fmt.parse(CALL % '{"c": "print("hi")"}', strict=True).tool_calls


@pytest.mark.parametrize("seed", range(5))
def test_a_snapshot_goes_on(seed: int) -> None:
    rng = random.Random(seed)
    name = rng.choice(FORMATS)
    prefix, text = text_of(name, f'{{"c": "{rng.choice(LINES)}", "n": 1}}')
    fmt = toolgram.get_format(name)
    for at in range(len(text)):
        parser = fmt.parser(TOOLS, prefix=prefix, call_ids=lambda: "id")
        for character in text[:at]:
            parser.feed(character)
        other = fmt.restore(json.loads(json.dumps(parser.snapshot())), TOOLS, call_ids=lambda: "id")
        rest = [[*each.feed(text[at:]), *each.close("stop")] for each in (parser, other)]
        assert rest[0] == rest[1]
