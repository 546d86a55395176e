"""Free text: what must not stand in it, where it begins and where it ends, in every target."""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toolgram
from tests.export.engines import Engines
from tests.export.measuring import PROMPTS, TOOLS, WRITTEN, tool
from tests.export.writing import random_output
from tests.properties.selection import formats_of
from toolgram.export import export_request, expression
from toolgram.export.dispatches import Dispatch, dispatch_of, fixed_words
from toolgram.export.expressions import (
    EMPTY,
    Choice,
    Forbidden,
    Lit,
    Seq,
    Star,
    Step,
    Text,
    Token,
    children,
)
from toolgram.export.passes import characters_behind_texts
from toolgram.export.texts import BLANKS, literal_pattern, reaches_into, takes, text_automaton

for package in ("llguidance", "tvm_ffi", "numpy"):
    pytest.importorskip(package, reason="the engines are not here: make test installs them")


def accepts(name: str, target: str, text: str, tools: Any = TOOLS, **request: Any) -> bool:
    """Whether the export of a format accepts a text."""
    return Engines().load(target, toolgram.get_format(name).export(target, tools, **request).text).accepts(text)


def taken(forbidden: Forbidden, text: str) -> bool:
    """Whether the automaton of texts takes one."""
    states, at = text_automaton(forbidden, ""), 0
    for char in text:
        move = next((each for each in states[at].moves if takes(each, char)), None)
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
    known = (*literal_pattern("to="), Step(frozenset(" "), True, True), *literal_pattern("<|message|>"))
    message = literal_pattern("<|message|>")
    phrases = tuple(map(literal_pattern, ("Here is my thought process:", "Here's my thought process:")))
    assert fixed_words(Forbidden((message,))) == ("<|message|>",)
    assert fixed_words(Forbidden((message,), (message,))) is None
    for forbidden, words in (
        (Forbidden((marked, literal_pattern("<end>"))), ("<end>", "<calls>")),
        (Forbidden((known, message)), ("<|mes",)),  # it holds what is excluded
        (Forbidden((literal_pattern("\nf("),), (literal_pattern("f("),)), ("f(",)),
        (Forbidden(phrases), ("thought process:",)),
    ):
        found = dispatch_of(forbidden)
        assert found is not None
        assert found.words == words
        assert not found.states
        assert len(found.notes) == 1


def test_names_behind_a_head_are_one_state() -> None:
    """Where what ends a name there is prose behind the head itself, and behind a blank."""
    letter, word = Step(frozenset(" \t\r\n()[],<|1"), True), Step(frozenset(" \t\r\n()[],<|"), True, True)
    called = (*literal_pattern("["), BLANKS, letter, word, *literal_pattern("("))
    found = dispatch_of(Forbidden((called, literal_pattern("<|end|>"))))
    assert found is not None
    assert len(found.states) == 1
    for text in ("[", "[(1, 2)]", "[a b]", "[a (b)]", "[ (", "[[(a)]", "[a](b)", "[x]f(", "[1] f(", "f(x)", "[a, f(x)"):
        assert dispatch_takes(found, text), text
    for text in ("[f(", "[ f(x)", "x [[f(", "[a [f(", "[(a) [f(", "[a (b) [ f(", "[a <|end"):
        assert not dispatch_takes(found, text), text
    assert taken(Forbidden((called,)), "[a f(x)")  # which is told
    assert not dispatch_takes(found, "[a f(x)")
    assert "text holds no name with '(' behind '[' and other names" in found.notes


def test_prose_is_followed_only_behind_the_head_of_a_pattern() -> None:
    listed = (*literal_pattern("functools"), BLANKS, *literal_pattern("["))
    found = dispatch_of(Forbidden((listed, literal_pattern("<|end|>"))))
    assert found is not None
    assert found.words == ("|end",)
    assert found.heads == (("functools", 0),)
    for text in ("functools", "import functools", "functools.wraps", "functools is [1]", "[1]", "a < b"):
        assert dispatch_takes(found, text), text
    for text in ("functools [", "functools\n\n[", "x <|end", "functools <|end|>", "functools<|end|>"):
        assert not dispatch_takes(found, text), text
    assert dispatch_of(Forbidden(((BLANKS, *literal_pattern("[")),))) is None  # no head
    assert dispatch_of(Forbidden((listed, literal_pattern("ols(")))) is None  # which may begin inside of the head


def dispatch_takes(found: Dispatch, text: str) -> bool:
    """Whether a dispatch takes a text, as the engine reads it: all that may be going on, each a part of the text with a
    state, or what the text has read, or the character that must come."""
    parts = [found.first or found, found]
    begin = (0, 0 if parts[0].begins else None, "", "")
    here: set[tuple[int, int | None, str, str]] = {begin}
    for at, char in enumerate(text):
        there: set[tuple[int, int | None, str, str]] = (
            {begin} if not text[: at + 1].strip(found.lead or "\0") else set()
        )
        for part, state, read, due in here:
            heads, passed = dict(parts[part].heads), parts[part].passed
            if due:
                there |= {(part, None, "", "")} if char == due else set()
            elif state is None:
                read += char
                head = next((each for each in heads if read.endswith(each)), None)
                if head is not None:
                    there |= {
                        (part, heads[head], "", ""),
                        *((part, 0, "", last) for each, _, last in passed if each == head),
                    }
                elif part == 0 and found.first is not None and char in found.exits:
                    there.add((1, None, "", ""))
                elif not read.endswith(parts[part].words):
                    there.add((part, None, read, ""))
            else:
                moves = [each for each in parts[part].states[state] if takes(each, char)]
                there |= {(part, each.dest, "", "") for each in moves}
                there |= {
                    (part, 0, "", last)
                    for head, before, last in passed
                    if heads[head] == state and (char in before or char == head)
                }
        here = there
    return any(not due for _, _, _, due in here)


def test_a_text_that_may_begin_with_a_name_has_a_first_part() -> None:
    """Up to a character that is in no name, it holds no line that goes on as a call does behind its name."""
    letter, word = Step(frozenset("abgt_")), Step(frozenset(" \t\r\n:,!?`(*<|{"), True, True)
    named = (BLANKS, letter, word, *literal_pattern("\n"), BLANKS, *literal_pattern("{"))
    forbidden = Forbidden((literal_pattern("<|end|>"),), (named,))
    found = dispatch_of(forbidden)
    assert found is not None
    assert found.first is not None
    assert (found.words, found.first.words, found.exits, found.lead) == (("<|end",), ("|end",), ":,!?`(*", "\n")
    for text in ("", "{", "\n\n{", "a", "a\n", "a\nb", "a: b\n{", "\na, b\n{", "a {", "`a\n{", "a|end", "a: |end"):
        assert taken(forbidden, text), text
        assert dispatch_takes(found, text) == (text != "a|end"), text  # a word whose first character a rule may read
    for text in ("a\n{", "\n a\n \n{", "a\nb\n{"):
        assert not dispatch_takes(found, text), text
    assert not dispatch_takes(found, "a: <|end|>")
    assert any("before the first of the characters : , ! ? ` ( *" in note for note in found.notes)
    colon = Forbidden(forbidden.patterns, ((*named[:3], *literal_pattern(":"), *named[4:]),))
    assert dispatch_of(colon).exits == ",!?`(*"  # type: ignore[union-attr]
    for other in ((BLANKS, *literal_pattern("g\n{")), (BLANKS, Step(frozenset(":"), True), *named[2:])):
        whole = dispatch_of(Forbidden((), (other,)))
        assert whole is None or whole.first is None  # another form, and a name that begins as what is behind it


def test_texts_that_differ_in_a_phrase_are_one() -> None:
    """Granite's first text must not hold the phrase before reasoning; behind a call it would be prose."""
    markers, phrase = (
        tuple(map(literal_pattern, ("<think>", "<|end|>"))),
        literal_pattern("Here is my thought process:"),
    )
    few, more, other = (dispatch_of(Forbidden(each)) for each in (markers, (*markers, phrase), markers[:1]))
    assert few is not None
    assert more is not None
    assert other is not None
    assert more.covers(few)
    assert not few.covers(more)
    assert not few.covers(few)
    assert not few.covers(other)  # which may hold a marker
    named = dispatch_of(Forbidden(markers, (literal_pattern("get_time("),)))
    assert named is not None
    assert not named.covers(few)  # reasoning may name a call
    tag = toolgram.get_format("granite_3").export("structural_tag", TOOLS, reasoning=False).text
    assert tag.count("TagDispatch") == 1
    assert tag.count("thought process:") == 1


def test_of_a_name_its_last_word_is_excluded() -> None:
    names = tuple(map(literal_pattern, ("get_page_3(", "search_12(", "list(", "_x(")))
    found = dispatch_of(Forbidden((literal_pattern("<|end|>"),), names))
    assert found is not None
    assert found.words == ("_3(", "_12(", "list(", "_x(", "<|end")


def test_a_marker_that_rules_do_not_begin_is_read_as_far_as_an_underscore() -> None:
    listed = (*literal_pattern("["), BLANKS, *literal_pattern("{"))
    markers = tuple(map(literal_pattern, ('{"tool_calls":', "<tool_call>")))
    found = dispatch_of(Forbidden((listed, *markers)))
    assert found is not None
    assert found.words == ('{"tool_', "_call>")


CALLS_BEHIND_TEXT = {
    # format: outputs that are accepted, and others that are not
    "llama3_json": (
        ['{{"name": "get_time", "parameters": {}}', 'so {x} {"name": "get_time", "parameters": {}}', "{", "a { b"],
        ['{ "name": "get_time", "parameters": {}}', '{"name": "get_time", "parameters": {}} {x}'],
    ),
    "llama4_pythonic": (
        [
            "[[get_time()]", "[a [get_time()]", "[", "[a", "[(a) (b)]", "[a <|python_start|>[get_time()]<|python_end|>",
            "a[get_time()]<|python_end|>b[get_time()]\n", "<|python_start|>[get_time()]<|python_end|>[a",
        ],
        [
            "[get_time()][get_time()]", "[get_time()]<|python_start|>[get_time()]", "[other()]", "[get_time()]a",
            "<|python_start|>a", "[ other()]", "<|python_start|>[get_time()]",
        ],
    ),
    "xlam": (
        ['1 {"tool_calls": [{"name": "get_time", "arguments": {}}]}', "[x {", "[[x] {x}"],
        [
            "[", '[[{"name": "get_time", "arguments": {}}]',  # where a note says that text does not end
            "[{x", "[\n  { x",
            '[{"tool_calls": [{"name": "get_time", "arguments": {}}]}',
            '[{"name": "get_time", "arguments": {}}]{"tool_calls": [{"name": "get_time", "arguments": {}}]}',
        ],
    ),
    "phi4_mini": (
        [
            'functools. <|tool_call|>[{"name": "get_time", "arguments": {}}]<|/tool_call|>', "import functools x; ",
            "functools x {",
        ],
        [
            "import functools",  # where a note says that text does not end
            "functools {x",  # an object behind a marker is a call, however it goes on
            'functools[{"name": "get_time", "arguments": {}}]<|tool_call|>[{"name": "get_time", "arguments": {}}]',
            '<|tool_call|>[{"name": "get_time", "arguments": {}}]',
            'functools <|tool_call|>[{"name": "get_time", "arguments": {}}]<|/tool_call|>',  # read as one marker
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS_BEHIND_TEXT)
def test_calls_behind_text(name: str) -> None:
    """A call may come behind any text, one that begins as a call does as well; and behind a call what may follow it."""
    made = toolgram.get_format(name).export("structural_tag", TOOLS)
    engine = Engines().load("structural_tag", made.text)
    accepted, refused = CALLS_BEHIND_TEXT[name]
    for text in accepted:
        assert engine.accepts(text), text
    for text in refused:
        assert not engine.accepts(text), text
    assert any("text does not end behind" in note for note in made.notes) == (name in ("phi4_mini", "xlam"))


@pytest.mark.parametrize("name", ["hermes", "mistral_v11", "qwen3_coder"])
def test_what_many_names_begin_with_is_one_piece(name: str) -> None:
    """llguidance reads it once, and not once for each name; no name is lost, and none is added."""
    names = ["files_get", "files_get_all", "files_list", "files_", "files_search", "other"]
    made = toolgram.get_format(name).export("llguidance", [tool(each, {}) for each in names], "required")
    engine = Engines().load("llguidance", made.text)
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
    engine = Engines().load("llguidance", fmt.export("llguidance", tools, prefix=PROMPTS.get(name)).text)
    root, _ = expression(fmt, export_request(tools, "auto"), PROMPTS.get(name), lambda words: None)
    rng = random.Random(0)
    for _ in range(20):
        text = random_output(root, rng)
        assert engine.accepts(text), text


def test_what_follows_a_text_is_told_to_the_engine() -> None:
    text, other = Text(Forbidden((literal_pattern("<x>"),))), Text(Forbidden((literal_pattern("<y>"),)))
    token = Token("<t>", 7)
    loop = Star(Seq((Lit("<a>"), text)))
    assert characters_behind_texts(Seq((text, loop, Choice((Lit("[b"), EMPTY))))) == {text: frozenset("<[")}
    assert characters_behind_texts(Choice((text, Seq((text, token))))) == {text: None}
    assert characters_behind_texts(Seq((text, other))) == {text: None, other: frozenset()}


@lru_cache(maxsize=1)
def texts_of_formats() -> list[Forbidden]:
    """What the texts of all shipped formats must not contain."""
    found: dict[Forbidden, None] = {}
    for name in toolgram.format_names():
        try:
            root, _ = expression(toolgram.get_format(name), export_request(TOOLS, "auto"), None, lambda words: None)
        except toolgram.ToolgramError:
            continue
        pending, seen = [root], set()
        while pending:
            here = pending.pop()
            if here not in seen:
                seen.add(here)
                pending += children(here)
                if isinstance(here, Text):
                    found[here.forbidden] = None
    return list(found)


PIECES = (
    *" \n\"'{}[]<>|`(:fnTx\u00e9",
    '{"',
    ">>>",
    "functools",
    "[TOOL",
    "_CALLS]",
    "``",
    "json",
    "get_weather",
    "f1",
)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_dispatch_takes_nothing_that_is_forbidden(data: st.DataObject) -> None:
    """It may exclude more, and says so; what it takes, the automaton takes."""
    forbidden = data.draw(st.sampled_from(texts_of_formats()))
    found = dispatch_of(forbidden)
    assert found is not None  # every shipped format compiles fast
    words = [word[:at] for word in found.words for at in (1, 2, len(word))]
    text = "".join(data.draw(st.lists(st.sampled_from([*PIECES, *words]), max_size=10)))
    if dispatch_takes(found, text):
        assert taken(forbidden, text)
    elif taken(forbidden, text):
        assert found.notes


def test_a_pattern_may_be_complete_in_the_closer() -> None:
    listed = (*literal_pattern("["), BLANKS, *literal_pattern("{"), BLANKS, *literal_pattern('"'))
    assert reaches_into(Forbidden((listed,)), '{"tool_calls": [')
    assert not reaches_into(Forbidden((listed,)), '[{"')


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
