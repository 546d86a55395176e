"""GBNF in llama.cpp itself, where it has been built: `make test-llama-cpp`."""

import random

import pytest

import toolgram
from tests.export.llama_cpp_engine import TAKEN_FOR_AN_END, LlamaCppEngines
from tests.export.measuring import SAMPLES, TOOLS, measure, problem_of
from tests.export.schema_pool import READ_OTHERWISE, WRITTEN, standard
from tests.export.test_special_tokens import FORMATS, NAMED, special_of, tokens_of
from tests.export.writing import random_output
from toolgram.export import export_request, expression

for package in ("llama_cpp", "gguf", "jsonschema"):
    pytest.importorskip(package, reason="llama.cpp is not here: make test-llama-cpp builds it")


@pytest.mark.parametrize("name", toolgram.format_names())
def test_every_export(name: str) -> None:
    figures = measure(toolgram.get_format(name), "gbnf", SAMPLES * 4, engines=LlamaCppEngines)
    assert not figures.problems, "\n".join(figures.problems[:3])
    assert figures.counts["accepted"] == figures.counts["valid"] == SAMPLES * 4
    assert figures.counts["calls"]


@pytest.mark.parametrize("kind", [each for each in WRITTEN if each not in READ_OTHERWISE])
def test_every_kind_of_schema(kind: str) -> None:
    fmt = toolgram.get_format("hermes")
    tools = [{"type": "function", "function": {"name": "f", "parameters": standard(WRITTEN[kind])}}]
    made = fmt.export("gbnf", tools)
    engine = LlamaCppEngines().load("gbnf", made.text)
    unescaped = any("JSON escapes" in note for note in made.notes)
    root, _ = expression(fmt, export_request(tools), None, lambda words: None)
    rng = random.Random(kind)
    for _ in range(20):
        text = random_output(root, rng)
        if not problem_of(fmt, text, tools) and not (unescaped and "\\" in text):
            assert engine.accepts(text), text


@pytest.mark.parametrize("form", ["id", "name"])
@pytest.mark.parametrize("name", FORMATS)
def test_special_tokens(name: str, form: str) -> None:
    if form == "name" and name not in NAMED:
        return  # GBNF has no name for `[TOOL_CALLS]`, as test_special_tokens says
    fmt = toolgram.get_format(name)
    special = [text for text in special_of(fmt) if text not in TAKEN_FOR_AN_END]
    ids = {text: 256 + at for at, text in enumerate(special)}
    made = fmt.export("gbnf", TOOLS, special_tokens=ids if form == "id" else special)
    engine = LlamaCppEngines(special=special).load("gbnf", made.text)
    root, _ = expression(fmt, export_request(TOOLS), None, lambda words: None)
    rng = random.Random(name)
    for _ in range(30):
        text = random_output(root, rng)
        assert engine.accepts(tokens_of(text, ids)), text
        if any(each in text for each in special):
            assert not engine.accepts(text), "a marker that is spelled out is none"


@pytest.mark.parametrize("name", toolgram.format_names())
def test_a_lazy_grammar_begins_with_its_trigger(name: str) -> None:
    """llama.cpp can leave text alone until a trigger word, and then begins the grammar with that word."""
    fmt = toolgram.get_format(name)
    made = fmt.export("gbnf", TOOLS)
    engine = LlamaCppEngines().load("gbnf", made.text)
    root, _ = expression(fmt, export_request(TOOLS, reasoning=False), None, lambda words: None)
    rng = random.Random(name)
    begun = 0
    for _ in range(60):
        text = random_output(root, rng)
        found = [at for word in made.triggers if (at := text.find(word)) >= 0]
        if found:
            begun += 1
            assert engine.accepts(text[min(found) :]), text
    assert bool(begun) == bool(made.triggers)
