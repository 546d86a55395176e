"""Free text: what must not stand in it, where it begins and where it ends, in every target."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.export.engines import plain_engines
from tests.export.measuring import PROMPTS, TOOLS, WRITTEN, accepts, tool
from tests.export.writing import random_output
from tests.properties.selection import formats_of
from toolgram.export import export_request, expression
from toolgram.export.ebnf import excluded, is_told_apart
from toolgram.export.expressions import Forbidden, Text
from toolgram.export.passes import texts_of
from toolgram.export.texts import reaches_into, text_automaton

for package in ("llguidance", "tvm_ffi", "numpy"):
    pytest.importorskip(package, reason="the engines are not here: make test installs them")


def taken(forbidden: Forbidden, text: str, closer: str = "") -> bool:
    """Whether the automaton of texts takes one."""
    states, at = text_automaton(forbidden, closer), 0
    for place, char in enumerate(text, 1):
        move = next((each for each in states[at] if (char in each.characters) != each.negated), None)
        if move is None or move.dest is None:
            return move is not None and place == len(text)
        at = move.dest
    return not closer


@given(
    words=st.lists(st.text("ab<", min_size=1, max_size=4), max_size=3),
    closer=st.text("ab<", max_size=3),
    text=st.text("ab<", max_size=10),
)
def test_the_automaton_takes_what_holds_no_word(words: list[str], closer: str, text: str) -> None:
    """A word may end where the closer does, if it is a part of it; nothing else of it may be in the text."""
    forbidden, whole = Forbidden(tuple(words)), text + closer
    ends = [(at + len(word), word) for word in words for at in range(len(whole)) if whole.startswith(word, at)]
    closed = not closer or whole.find(closer) == len(text)
    wrong = any(end < len(whole) or not closer.endswith(word) for end, word in ends)
    assert taken(forbidden, whole, closer) == (closed and not wrong)


def test_a_part_stands_for_a_word() -> None:
    names = ("get_page_3(", "search_12(", "list(", "_x(", '"get_time"')
    phrases = ("Here is my thought process:", "Here's my thought process:")
    for words, parts in (
        (names, ("_3(", "_12(", "list(", "_x(", '_time"')),
        (phrases, ("thought process:",)),
        (("<|message|>", "<x>", "a<x>b"), ("<|mes", "<x>")),  # it holds what is excluded
    ):
        notes: list[str] = []
        assert excluded(Text(Forbidden(words)), notes.append) == parts
        assert len(notes) == 1
    assert is_told_apart(Text(Forbidden(names), "[get_page_3("))
    assert not is_told_apart(Text(Forbidden(names), "[get_page_4("))
    assert excluded(Text(Forbidden(("<x>",)), "<y>"), str) == ("<x>", "<y>")


CALLS_BEHIND_TEXT = {
    # format: outputs that are accepted, and others that are not
    "llama3_json": (
        ['{{"name": "get_time", "parameters": {}}', 'so {x} {"name": "get_time", "parameters": {}}', "{", '{"a": 1}'],
        ['see "get_time"', '{"name": "get_time", "parameters": {}} {"name": "get_time"}'],
    ),
    "llama4_pythonic": (
        [
            "[[get_time()]", "[a [get_time()]", "[", "[a", "[(a) (b)]", "[a <|python_start|>[get_time()]<|python_end|>",
            "a[get_time()]<|python_end|>b[get_time()]\n", "<|python_start|>[get_time()]<|python_end|>[a", "[other()]",
        ],
        [
            "[get_time()][get_time()]", "[get_time()]<|python_start|>[get_time()]", "[get_time()]a",
            "<|python_start|>a", "see get_time()", "<|python_start|>[get_time()]",
        ],
    ),
    "xlam": (
        ['1 {"tool_calls": [{"name": "get_time", "arguments": {}}]}', "[x {", "[[x] {x}", '[{"a": 1}]'],
        [
            '[{"name": "get_time"}', "```json",
            '[{"name": "get_time", "arguments": {}}]{"tool_calls": [{"name": "get_time", "arguments": {}}]}',
        ],
    ),
    "phi4_mini": (
        ["import functions", '<|tool_call|>[{"name": "get_time", "arguments": {}}]<|/tool_call|>'],
        [
            "import functools",  # a marker
            'functools[{"name": "get_time", "arguments": {}}]<|tool_call|>[{"name": "get_time", "arguments": {}}]',
            '<|tool_call|>[{"name": "get_time", "arguments": {}}]',
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("target", WRITTEN)
@pytest.mark.parametrize("name", CALLS_BEHIND_TEXT)
def test_calls_behind_text(name: str, target: str) -> None:
    """A call may come behind any text, one that begins as a call does as well; and behind a call what may follow it."""
    made = toolgram.get_format(name).export(target, TOOLS)
    engine = plain_engines().load(target, made.text)
    accepted, refused = CALLS_BEHIND_TEXT[name]
    for text in accepted:
        assert engine.accepts(text), text
    for text in refused:
        assert not engine.accepts(text), text


@pytest.mark.parametrize("name", ["hermes", "mistral_v11", "qwen3_coder"])
def test_what_many_names_begin_with_is_one_piece(name: str) -> None:
    """llguidance reads it once, and not once for each name; no name is lost, and none is added."""
    names = ["files_get", "files_get_all", "files_list", "files_", "files_search", "other"]
    made = toolgram.get_format(name).export("llguidance", [tool(each, {}) for each in names], "required")
    engine = plain_engines().load("llguidance", made.text)
    written = {
        "hermes": '<tool_call>\n{{"name": "{}", "arguments": {{}}}}\n</tool_call>',
        "mistral_v11": "[TOOL_CALLS]{}[ARGS]{{}}",
        "qwen3_coder": "<tool_call>\n<function={}>\n</function>\n</tool_call>",
    }[name]
    assert '"files_"' in made.text
    assert not any(each in made.text for each in ("files_g", "files_l", "files_s"))
    for each in names:
        assert engine.accepts(written.format(each)), each
    for each in ("files_gets", "files", "files_get_", "files_other", "files_listfiles_list", "oth"):
        assert not engine.accepts(written.format(each)), each


@pytest.mark.parametrize("name", formats_of("names that begin alike"))
def test_names_that_begin_alike_are_read_beside_text(name: str) -> None:
    """Where text may stand as well, a name is no pieces: the lexer would go on with the text behind the first."""
    fmt = toolgram.get_format(name)
    tools = [tool(f"update_row_{at}", {}) for at in (1, 12, 2, 30, 38, 4)]
    engine = plain_engines().load("llguidance", fmt.export("llguidance", tools, prefix=PROMPTS.get(name)).text)
    root, _ = expression(fmt, export_request(tools, "auto"), PROMPTS.get(name), lambda words: None)
    rng = random.Random(0)
    for _ in range(20):
        text = random_output(root, rng)
        assert engine.accepts(text), text


def test_a_word_may_be_complete_in_the_closer() -> None:
    assert reaches_into(("[{",), "{a")
    assert not reaches_into(("[{",), "[{")


@pytest.mark.parametrize("target", WRITTEN)
@pytest.mark.parametrize("name", ["lfm2", "llama4_pythonic", "olmo3", "minicpm3"])
def test_a_call_that_stands_alone_on_a_line_is_no_text(name: str, target: str) -> None:
    """The parser reads it, so a grammar that let it pass would let its arguments pass."""
    for text in ("get_time()", "Look:\nget_time()", "Look:\n\nget_weather(city=3)"):
        assert toolgram.get_format(name).parse(text, TOOLS).tool_calls
        assert not accepts(name, target, text)
        assert not accepts(name, target, text, tool_choice="none")
    for text in ("get_time", "Look: get_time is one", "I ask get_weather (for Paris).", "print(1)\nprint(2)"):
        assert accepts(name, target, text)


@pytest.mark.parametrize("target", WRITTEN)
def test_text_does_not_name_a_function_as_a_call_without_a_marker_does(target: str) -> None:
    """GLM-4: a declared name alone on the first line, with an object after it, is a call."""
    for text in ("It rains.", "Paris\nis far", "Paris\n", "A list:\n{1}", "\nIt rains.", "", 'nothing\n{"a": 1}'):
        assert accepts("glm4", target, text), text
        assert accepts("glm4", target, text, None), text
    assert not accepts("glm4", target, 'get_weather\n{"city": 3}')
    assert accepts("glm4", target, 'get_weather\n{"city": "Paris"}')
    assert not accepts("glm4", target, 'It rains.get_weather\n{"city": "Paris"}', tool_choice="required")


# Texts of a form with alternatives: what follows them must stay behind each alternative.
FORMS: tuple[dict[str, Any], ...] = (
    {"type": "string", "pattern": "^(cat|dog)$"},
    {"type": "string", "pattern": "^cat$|^dog$"},
    {"type": "string", "format": "date"},
)


@pytest.mark.parametrize("target", WRITTEN)
@pytest.mark.parametrize("name", formats_of("closing markers of alternatives"))
def test_a_value_with_alternatives_keeps_its_closing_marker(name: str, target: str) -> None:
    for form in FORMS:
        tools = [tool("get_pet", {"a": form}, ["a"], additionalProperties=False)]
        root, _ = expression(
            toolgram.get_format(name), export_request(tools, "required"), PROMPTS.get(name), lambda words: None
        )
        closers = {text.closer for text in texts_of(root) if text.within is not None and text.closer}
        rng = random.Random(name)
        for _ in range(3 if closers else 0):  # else values of this format are no raw text
            output = random_output(root, rng)
            assert accepts(name, target, output, tools, tool_choice="required", prefix=PROMPTS.get(name)), output
            for closer in closers:
                without = output.replace(closer, "")
                assert not accepts(name, target, without, tools, tool_choice="required", prefix=PROMPTS.get(name))


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


@pytest.mark.parametrize("target", WRITTEN)
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
