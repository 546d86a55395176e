"""Free text: what must not stand in it, where it begins and where it ends, in every target."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from tests.export.engines import Engines
from tests.export.measuring import TOOLS, tool
from toolgram.export import TARGETS
from toolgram.export.expressions import Forbidden, Step
from toolgram.export.texts import (
    BLANKS,
    excluded_words,
    fixed_words,
    joined_names,
    literal_pattern,
    reaches_into,
    text_automaton,
)

for package in ("llguidance", "tvm_ffi", "numpy"):
    pytest.importorskip(package, reason="the engines are not here: make test installs them")


def accepts(name: str, target: str, text: str, tools: Any = TOOLS, **request: Any) -> bool:
    """Whether the export of a format accepts a text."""
    return Engines().load(target, toolgram.get_format(name).export(target, tools, **request).text).accepts(text)


def taken(forbidden: Forbidden, text: str) -> bool:
    """Whether the automaton of texts takes one."""
    states, at = text_automaton(forbidden, ""), 0
    for char in text:
        move = next((each for each in states[at].moves if (char in each.characters) != each.negated), None)
        if move is None or move.dest is None:
            return False
        at = move.dest
    return True


def test_a_word_at_the_beginning() -> None:
    forbidden = Forbidden((literal_pattern("<x>"),), (literal_pattern("f("), (BLANKS, *literal_pattern("g\n{"))))
    assert all(taken(forbidden, text) for text in ("", "f", "f (", "see f(1)", "g\n", "g\nis", " f(", "af("))
    assert not any(taken(forbidden, text) for text in ("f(", "f(1)", "g\n{", " \n g\n{}", "f<x>"))


def test_words_say_what_patterns_do() -> None:
    blank = (BLANKS,)
    marked = (*literal_pattern("<calls>"), *blank, *literal_pattern("["))
    prose = (*literal_pattern("functools"), *blank, *literal_pattern("["))
    known = (*literal_pattern("to="), Step(frozenset(" "), True, True), *literal_pattern("<|message|>"))
    message = literal_pattern("<|message|>")
    assert fixed_words(Forbidden((message,))) == ("<|message|>",)
    assert fixed_words(Forbidden((message,), (message,))) is None
    assert excluded_words(Forbidden((marked, message))) == (("<|message|>", "<calls>"), ("<calls>",))
    assert excluded_words(Forbidden((prose,))) is None  # a word of prose is not taken away
    assert excluded_words(Forbidden((known, message))) == (("<|message|>",), ())  # it holds what is excluded
    assert excluded_words(Forbidden((literal_pattern("\nf("),), (literal_pattern("f("),))) == (("f(",), ())


def test_names_that_must_not_begin_a_line_are_one_pattern() -> None:
    called = tuple(literal_pattern(f"{name}(") for name in ("get_page", "get_time", "search", "sum"))
    lines = tuple((*literal_pattern("\n"), *each) for each in called)
    marked = literal_pattern("<x>")
    joined = joined_names(Forbidden((marked, *lines), called))
    assert (len(joined.patterns), len(joined.beginnings)) == (2, 1)
    assert len(text_automaton(joined, "")) < 12 < len(text_automaton(Forbidden((marked, *lines), called), ""))
    for text in ("get_page(", "a\nget_time(1)", "sum(", "a\n\nsearch(", "<x>", "a\nget_<x>"):
        assert not taken(joined, text), text
    for text in ("get_page", "see get_page(1)", "print(1)", "a\nprint(1)\nlen(2)", "get (", "a\nsumming up (1)", "f("):
        assert taken(joined, text), text
    assert joined_names(Forbidden(lines)) == Forbidden(lines)
    assert joined_names(Forbidden((marked,), called)) == Forbidden((marked,), called)
    few = Forbidden(lines[3:], called[3:])
    assert joined_names(few) == few


def test_a_pattern_may_be_complete_in_the_closer() -> None:
    listed = (*literal_pattern("["), BLANKS, *literal_pattern("{"), BLANKS, *literal_pattern('"'))
    assert reaches_into(Forbidden((listed,)), '{"tool_calls": [')
    assert not reaches_into(Forbidden((listed,)), '[{"')


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["lfm2", "llama4_pythonic", "olmo3", "minicpm3"])
def test_a_call_that_stands_alone_on_a_line_is_no_text(name: str, target: str) -> None:
    """The parser reads it, so a grammar that let it pass would let its arguments pass."""
    for text in ("get_time()", "Look:\nget_time()", "Look:\n\nget_weather(city=3)"):
        assert toolgram.get_format(name).parse(text, TOOLS).tool_calls
        assert not accepts(name, target, text)
        assert not accepts(name, target, text, tool_choice="none")
    for text in ("get_time", "Look: get_time is one", "I ask get_weather (for Paris).", "print(1)\nprint(2)"):
        assert accepts(name, target, text)


@pytest.mark.parametrize("target", TARGETS)
def test_text_does_not_begin_as_a_call_without_a_marker(target: str) -> None:
    """GLM-4: a name alone on the first line, with an object behind it, is a call, of whatever function."""
    for text in ("It rains.", "Paris\nis far", "Paris\n", "A list:\n{1}", "\nIt rains.", ""):
        assert accepts("glm4", target, text), text
        assert accepts("glm4", target, text, None), text
    for text in ('nothing\n{"a": 1}', 'get_weather\n{"city": 3}', "nothing\n\n {"):
        assert not accepts("glm4", target, text), text
    assert accepts("glm4", target, 'get_weather\n{"city": "Paris"}')
    assert not accepts("glm4", target, 'It rains.get_weather\n{"city": "Paris"}', tool_choice="required")


LINKED = tool(
    "f",
    {"head": {"anyOf": [{"$ref": "#/$defs/Cell"}, {"type": "null"}]}},
    ["head"],
    **{
        "$defs": {
            "Cell": {
                "type": "object",
                "properties": {
                    "v": {"type": "integer"},
                    "next": {"anyOf": [{"$ref": "#/$defs/Cell"}, {"type": "null"}]},
                },
                "required": ["v"],
            }
        }
    },
)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "value",
    [
        "None",
        "null",
        '{"v": 2, "next": null}',
        "{'v': 2, 'next': None}",
        '{"v": 2, "next": None}',
        '{"v":2,"next":null}',
    ],
)
def test_an_object_as_json_or_as_python_writes_it(value: str, target: str) -> None:
    """Where both may stand, a lexer must not take the blank of one for the end of the other."""
    text = f"<tool_call>\n<function=f>\n<parameter=head>\n{value}\n</parameter>\n</function>\n</tool_call>"
    assert accepts("qwen3_coder", target, text, [LINKED])
