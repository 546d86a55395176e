"""Markers that are tokens of the model: by id and by name, in a vocabulary that has them."""

import codecs
import random
import re
from collections.abc import Mapping, Sequence

import pytest

import toolgram
from tests.export.engines import NEEDED, Engine, Engines, sample_tokens
from tests.export.measuring import TOOLS, problem_in, required_of, tool, words_of
from tests.export.writing import random_output
from tests.integrations.writers import WRITERS, Turn
from tests.properties.selection import formats_of
from toolgram.errors import ToolgramError
from toolgram.export import export_request, expression
from toolgram.spec.data import Literal

pytestmark = NEEDED

# GBNF with tokens is llama.cpp's alone: xgrammar, which runs it elsewhere, does not read that form
BY_ID = ("llguidance", "structural_tag", "ebnf")


def special_of(fmt: toolgram.Format) -> tuple[str, ...]:
    """The special tokens that outputs of a format hold."""
    shapes = (fmt.spec.terminals[token] for token in sorted(fmt.spec.special_tokens))
    root, _ = expression(fmt, export_request(TOOLS), None, lambda words: None)
    rng = random.Random(fmt.name)
    written = "".join(random_output(root, rng) for _ in range(30))
    return tuple(shape.text for shape in shapes if isinstance(shape, Literal) and shape.text in written)


def ids_of(fmt: toolgram.Format) -> dict[str, int]:
    """The special tokens of a format, with the ids that they have after the bytes."""
    return {text: 256 + at for at, text in enumerate(special_of(fmt))}


FORMATS = tuple(name for name in formats_of("test_special_tokens") if special_of(toolgram.get_format(name)))
NAMED = tuple(
    name for name in FORMATS if all(text[0] == "<" for text in special_of(toolgram.get_format(name)))
)  # the others' markers look like `[TOOL_CALLS]`, which only a structural tag can name


def tokens_of(text: str, ids: Mapping[str, int]) -> list[int]:
    """The tokens of an output: markers as theirs, everything else byte by byte."""
    parts = re.split("(" + "|".join(map(re.escape, sorted(ids, key=len, reverse=True))) + ")", text)
    return [token for part in parts for token in ([ids[part]] if part in ids else part.encode())]


def is_under_masks(engine: Engine, tokens: Sequence[int]) -> bool:
    """Whether each token is in the mask before it: llguidance may take a token and have no mask after it."""
    matcher = engine.begin()
    for token in tokens:
        if token not in matcher.allowed():
            return False
        matcher.take(token)
    return engine.vocab.eos_token_id in matcher.allowed()


WAYS = [(name, target, "id") for name in FORMATS for target in BY_ID]
WAYS += [(name, target, "name") for name in NAMED for target in ("llguidance", "structural_tag")]
WAYS += [(name, "structural_tag", "name") for name in ("mistral_v3", "mistral_v11") if name not in NAMED]


@pytest.mark.parametrize(("name", "target", "given"), WAYS)
def test_what_is_a_token_is_taken_as_that_alone(name: str, target: str, given: str) -> None:
    """By its id, or by its name where the target has one; a structural tag names any token."""
    fmt = toolgram.get_format(name)
    ids = ids_of(fmt)
    special = tuple(ids)
    made = fmt.export(target, TOOLS, special_tokens=ids if given == "id" else special)
    assert given == "id" or not any("has no name" in note for note in made.notes)
    engine = Engines(special=special).load(target, made.text)
    root, _ = expression(fmt, export_request(TOOLS), None, lambda words: None)
    rng = random.Random(name)
    marked = 0
    for _ in range(30):
        text = random_output(root, rng)
        tokens = tokens_of(text, ids)
        assert engine.accepts(tokens), text
        if target == "llguidance":
            assert is_under_masks(engine, tokens), text
        if set(tokens) & set(ids.values()):
            marked += 1
            if target != "llguidance":  # there a marker that is spelled out is text
                assert not engine.accepts(list(text.encode())), "a marker that is spelled out is none"
    assert marked


@pytest.mark.parametrize("name", FORMATS)
def test_text_may_spell_out_a_token_where_the_engine_tells_them_apart(name: str) -> None:
    fmt = toolgram.get_format(name)
    ids = ids_of(fmt)
    special = tuple(ids)
    spelled = f"The marker is {special[0]}, as a text."
    header = WRITERS[name](Turn("", content="text")).partition("text")[0]  # of a message of its own, where that has one
    ways = [[*tokens_of(before, ids), *spelled.encode()] for before in {"", header}]
    for choice, expected in (("auto", True), ("required", False)):
        made = fmt.export("llguidance", TOOLS, choice, prefix="", special_tokens=ids)
        engine = Engines(special=special).load("llguidance", made.text)
        assert any(engine.accepts(way) for way in ways) is expected


@pytest.mark.parametrize("target", BY_ID)
@pytest.mark.parametrize("name", FORMATS)
def test_what_is_sampled_with_ids_is_read_with_ids(name: str, target: str) -> None:
    """A marker that is a token comes as that token: spelled out in other pieces, the parser would take it for text."""
    fmt = toolgram.get_format(name)
    ids = ids_of(fmt)
    special = tuple(ids)
    made = fmt.export(target, TOOLS, "required", prefix="", special_tokens=ids, length_limits=True)
    words = [each for each in words_of(fmt, TOOLS, made.triggers) if not any(text in each for text in special)]
    engine = Engines(words, special).load(target, made.text)
    rng = random.Random(f"{name} {target}")
    for _ in range(4):
        walks = (sample_tokens(engine, rng, made.triggers, required_of(TOOLS)) for _ in range(4))
        tokens = next(each for each in walks if each is not None)
        parser = fmt.parser(TOOLS, "", special_tokens=ids)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for token in tokens:
            parser.feed(decoder.decode(engine.vocab.tokens[token]), [token])
        parser.close("stop")
        text = b"".join(engine.vocab.tokens[token] for token in tokens).decode("utf-8", "replace")
        assert not problem_in(fmt, text, parser.message, TOOLS), text
        # A backtick directly before the marker that closes a thought quotes it (P3 a), and no mask forbids one.
        quoted = any(each.kind == "quoted_call" for each in parser.message.anomalies)
        assert parser.message.tool_calls or (quoted and any(f"`{mark}" in text for mark in fmt.program.markers)), text


def test_a_raw_value_ends_where_it_first_may() -> None:
    """Else llguidance would have no mask after the value, where nothing but a token may come."""
    fmt = toolgram.get_format("glm47")
    ids = ids_of(fmt)
    assert "</tool_call>" in ids
    text = "<tool_call>get_page<arg_key>url</arg_key><arg_value>Oslo </b></arg_value></tool_call>"
    tools = [tool("get_page", {"url": {"type": "string"}}, ["url"])]
    made = fmt.export("llguidance", tools, prefix="", special_tokens=ids)
    assert is_under_masks(Engines(special=tuple(ids)).load("llguidance", made.text), tokens_of(text, ids))


def test_what_has_no_name_is_text_and_said() -> None:
    fmt = toolgram.get_format("mistral_v11")
    for target in ("llguidance", "gbnf", "ebnf"):
        made = fmt.export(target, TOOLS, special_tokens=["[TOOL_CALLS]", "[ARGS]"])
        assert made.text == fmt.export(target, TOOLS).text
        note = f"{target} has no name for the tokens [TOOL_CALLS], [ARGS]; without an id they are written as text"
        assert note in made.notes


def test_gbnf_has_both_forms() -> None:
    fmt = toolgram.get_format("hermes")
    with pytest.raises(ToolgramError, match="'<tool_call>' has -1"):  # an id is a number of the vocabulary
        fmt.export("gbnf", TOOLS, special_tokens={"<tool_call>": -1})
    by_id = fmt.export("gbnf", TOOLS, "required", special_tokens={"<tool_call>": 7, "</tool_call>": 8}).text
    by_name = fmt.export("gbnf", TOOLS, "required", special_tokens=["<tool_call>", "</tool_call>"]).text
    for number, name in (("<[7]>", "<tool_call>"), ("<[8]>", "</tool_call>")):
        assert by_id.count(number) == by_name.count(name) > 0
    assert '"<tool_call>' not in by_name


def test_tokens_are_triggers_as_texts_are() -> None:
    fmt = toolgram.get_format("hermes")
    as_text = fmt.export("gbnf", TOOLS)
    as_token = fmt.export("gbnf", TOOLS, special_tokens=["<tool_call>", "</tool_call>"])
    assert as_text.triggers == as_token.triggers == ("<tool_call>",)
    assert not any("lazy" in note for note in (*as_text.notes, *as_token.notes))
    assert any("lazy" in note for note in toolgram.get_format("gpt_oss").export("gbnf", TOOLS).notes)
