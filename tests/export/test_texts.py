"""Free text: what must not be in it, where it begins and where it ends, in every target."""

import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.export.engines import NEEDED, plain_engines
from tests.export.measuring import PROMPTS, TOOLS, WRITTEN, accepts, tool
from tests.export.writing import random_output, taken
from tests.properties.selection import formats_of
from toolgram.export import export_request, expression
from toolgram.export.ebnf import excluded, is_told_apart
from toolgram.export.expressions import Forbidden, Text, inside
from toolgram.export.texts import reaches_into

pytestmark = NEEDED


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


def test_a_part_in_place_of_a_word() -> None:
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


def test_a_word_may_be_complete_in_the_closer() -> None:
    assert reaches_into(("[{",), "{a")
    assert not reaches_into(("[{",), "[{")


# Texts of a form with alternatives: what follows them must stay after each alternative.
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
        fmt, request = toolgram.get_format(name), export_request(tools, "required")
        root, _ = expression(fmt, request, PROMPTS.get(name), lambda words: None)
        texts = [each for each in inside(root) if isinstance(each, Text)]
        closers = {text.closer for text in texts if text.within is not None and text.closer}
        rng = random.Random(name)
        for _ in range(3 if closers else 0):  # else values of this format are no raw text
            output = random_output(root, rng)
            assert accepts(name, target, output, tools, tool_choice="required", prefix=PROMPTS.get(name)), output
            for closer in closers:
                without = output.replace(closer, "")
                assert not accepts(name, target, without, tools, tool_choice="required", prefix=PROMPTS.get(name))


# --- what the grammars of requests accept, a row each of `accepted.yaml` --------------------------------------------
TABLE: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("accepted.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("target", WRITTEN)
@pytest.mark.parametrize("row", TABLE["texts"], ids=lambda row: row["why"])
def test_texts(row: dict[str, Any], target: str) -> None:
    before, after = row.get("around", ("", ""))
    names = [row["format"]] if isinstance(row["format"], str) else row["format"]
    for name in names:
        for expected, key in ((True, "accepted"), (False, "refused")):
            for text in row.get(key, ()):
                found = accepts(name, target, f"{before}{text}{after}", row.get("tools", TOOLS), **row.get("ask", {}))
                assert found is expected, text


@pytest.mark.parametrize("target", WRITTEN)
@pytest.mark.parametrize("name", TABLE["formats"])
def test_requests(name: str, target: str) -> None:
    parts = {**TABLE["parts"], **TABLE["formats"][name]}
    parts["two"] = parts["call"] + parts["between"] + parts["other"]
    parts["open"] = parts["thought"][:-3]  # reasoning is closed before a call
    for row in TABLE["requests"]:
        for expected, key in ((True, "accepted"), (False, "refused")):
            for words in row.get(key, ()):
                text = "".join(parts[word] for word in words.split())
                assert accepts(name, target, text, **row["ask"]) is expected, (row, text)
    stops = toolgram.get_format(name).export(target, TOOLS).stop
    assert not stops or accepts(name, target, parts["call"] + stops[0], stop_tokens_inside=True)
    assert not stops or not accepts(name, target, parts["call"], stop_tokens_inside=True)
