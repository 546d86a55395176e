"""A message that is made without events is the one that events add up to: outputs that are nearly the examples."""

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.examples import examples
from tests.properties.selection import every_format
from toolgram.runtime.whole_outputs import whole_message

PROPERTIES = {
    "city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"enum": ["celsius", 7]},
    "ratio": {"type": "number"}, "exact": {"type": ["boolean", "null"]}, "tags": {"type": "array"}, "any": {},
}  # fmt: skip
DECLARED = [
    {"name": name, "parameters": {"type": "object", "properties": PROPERTIES, "required": required}}
    for name, required in (("get_weather", []), ("f", ["city"]))
]
_CALL = re.compile(r'\{"name": "(\w+)", "(arguments|parameters)": (\{[^{}]*\})\}')
_OBJECT = re.compile(r"\{[^{}]*\}")
REASONS = (None, "stop", "tool_calls", "length", "content_filter")


def check(name: str, text: str, tools: Any, reason: str | None, *, strict: bool = False) -> None:
    fmt = toolgram.get_format(name)
    ids, others = iter(range(10**6)), iter(range(10**6))
    parser = fmt.parser(tools, call_ids=lambda: f"id-{next(ids)}", strict=strict)
    parser.feed(text)
    parser.close(reason)
    assert fmt.parse(text, tools, None, reason, strict, call_ids=lambda: f"id-{next(others)}") == parser.message


def known_examples(name: str) -> list[str]:
    """The examples of a format, and the same with other orders of keys and in Python's spelling."""
    found = examples(toolgram.get_format(name).program)
    swapped = [_CALL.sub(r'{"\2": \3, "name": "\1"}', text) for text in found]
    python = [_OBJECT.sub(lambda each: each[0].replace('"', "'"), text) for text in (*found, *swapped)]
    return list(dict.fromkeys([*found, *swapped, *python, *(text.replace('"', "'") for text in found)]))


TOOLS = st.sampled_from([None, DECLARED])


@every_format
@given(data=st.data())
def test_examples_with_text_around_them(name: str, data: st.DataObject) -> None:
    """Text, blanks and reasoning before, between and after the format's own examples."""
    texts = known_examples(name)
    around = st.sampled_from([
        "", " ", "\n", "Hm.", "See (", "`x", "\n\nIt is. \n", "<think>\nHm.\n</think>\n\n", "</think>", "}", "é", "[",
        "<",
    ])  # fmt: skip
    pieces = [data.draw(around)]
    for _ in range(data.draw(st.integers(0, 3))):
        pieces += [data.draw(st.sampled_from(texts)) * data.draw(st.sampled_from([1, 1, 7])), data.draw(around)]
    check(name, "".join(pieces), data.draw(TOOLS), data.draw(st.sampled_from(REASONS)))


@every_format
@given(data=st.data())
def test_examples_with_other_arguments(name: str, data: st.DataObject) -> None:
    """The values, names and keys of the format's own examples, exchanged for others of every kind."""
    text = data.draw(st.sampled_from(known_examples(name)))
    values = [call.name for call in toolgram.get_format(name).parse(text).tool_calls]
    values += [word for word in ("Paris", "Oslo", "celsius", "city", "days", "unit", "3", "2") if word in text]
    others = st.one_of(
        st.sampled_from(
            ["f", "get_weather", "city", "days", "unit", "ratio", "exact", "tags", "any", "a b", "true", "True", "null",
             "None", "7", "07", "-1", "1e5", "1.50", "9" * 30, "NaN", "[1]", '{"a": 1}', "[1, 2", "'x'", '"x"', "\\n",
             "\\", '"', "'", "é\u2028", " x ", "\n", "", "</", "<x>", "{", "}", "]", ")", ",", "=", ":",
             "x</parameter>", "\x01", "\ud800", "#"]
        ),
        st.text(max_size=6),
    )  # fmt: skip
    for _ in range(data.draw(st.integers(1, 3))):
        if values:
            word, other = data.draw(st.sampled_from(values)), data.draw(others)
            text = text.replace(word, other, data.draw(st.sampled_from([1, 99])))
    check(name, text, data.draw(TOOLS), data.draw(st.sampled_from(REASONS)))


@every_format
@given(data=st.data())
def test_examples_that_are_changed_a_little(name: str, data: st.DataObject) -> None:
    """Blanks, brackets, quotes, markers and other names, at some places of the format's own examples."""
    text = data.draw(st.sampled_from(known_examples(name))) * data.draw(st.sampled_from([1, 1, 7]))
    inserted = st.sampled_from([" ", "\n\t ", " " * 17, "{", "}", "]", ",", '"', "\\", "x", "", "0", "é", "<", "}}"])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        removed = data.draw(st.sampled_from([0, 0, 1, 3]))
        text = text[:at] + data.draw(inserted) + text[at + removed :]
    check(name, text, data.draw(TOOLS), data.draw(st.sampled_from(REASONS)), strict=data.draw(st.booleans()))


@every_format
def test_names_that_are_words_of_the_format(name: str) -> None:
    """In the place of a name, such a word may mean something else: the readers decide."""
    fmt = toolgram.get_format(name)
    words = [text for text in fmt.program.literals.values() if text[0].isalnum()]
    for text in known_examples(name):
        for call in fmt.parse(text, prefix="").tool_calls:
            for word in words:
                check(name, text.replace(call.name, word), None, None)
                check(name, text.replace(call.name, word + "s"), None, None)


@every_format
def test_an_example_needs_no_parser(name: str) -> None:
    program = toolgram.get_format(name).program
    plain = [text for text in examples(program) if whole_message(program, text, None, str, "stop") is not None]
    assert plain or name in ("inkling", "minimax_m3")  # several texts, or elements inside a value
