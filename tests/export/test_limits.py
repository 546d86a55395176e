"""Whatever a request asks for, an export is a grammar that its engine takes, or one clear error, after bounded work."""

import json
import tracemalloc
from typing import Any

import pytest

import toolgram
from tests.export.engines import NEEDED, plain_engines
from tests.export.measuring import WRITTEN, tool
from tests.export.schema_pool import TEXT, chained, nested
from toolgram import ToolgramError
from toolgram.limits import MOST_COUNTED

pytestmark = NEEDED

MOST_TEXT, MOST_MEMORY = 2_000_000, 30_000_000


def with_one(schema: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a function with one argument."""
    return {"type": "object", "properties": {"a": schema}}


def properties(count: int, needed: int = 0) -> dict[str, Any]:
    """An object with many properties."""
    names = [f"p{at}" for at in range(count)]
    return {"type": "object", "properties": dict.fromkeys(names, TEXT), "required": names[:needed]}


def text_of(name: str, target: str, parameters: dict[str, Any]) -> str:
    """The grammar for one function."""
    function = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    return toolgram.get_format(name).export(target, [function]).text


TOO_LARGE = {
    "objects 2,000 deep": nested(2000), "lists 2,000 deep": with_one(nested(2000, array=True)),
    "references 2,000 deep": chained(2000), "20,000 properties": with_one(properties(20_000)),
}  # fmt: skip
LARGE = {
    "objects 120 deep": nested(120), "lists 120 deep": with_one(nested(120, array=True)),
    "references 120 deep": chained(120), "3,000 properties": with_one(properties(3000)),
    "100 required properties": with_one(properties(100, 100)),
    "a pattern of 1 MB": with_one({"type": "string", "pattern": "ab" * 500_000}),
    "many items": with_one({"type": "array", "minItems": 100_000}),
    "many names": with_one({"type": "object", "minProperties": 10**6, "maxProperties": 10**7}),
    "a large bound": with_one({"type": "number", "minimum": 1e22}),
    "a large whole bound": with_one({"type": "integer", "minimum": 1e22}),
}  # fmt: skip


@pytest.mark.parametrize("kind", TOO_LARGE)
def test_what_is_too_large_is_one_clear_error(kind: str) -> None:
    for target in WRITTEN:
        with pytest.raises(ToolgramError, match=r"nests deeper than 128|has more than 5,000 names"):
            text_of("hermes", target, TOO_LARGE[kind])


@pytest.mark.parametrize("kind", LARGE)
def test_what_is_large_is_a_grammar(kind: str) -> None:
    engines = plain_engines()
    for target in WRITTEN:
        text = text_of("hermes", target, LARGE[kind])
        assert len(text) < MOST_TEXT
        engines.load(target, text).begin()


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder"])
def test_the_text_grows_with_the_properties(name: str) -> None:
    """As many characters for each property, required or not."""
    for needed in (0, 200):
        for target in WRITTEN:
            sizes = [len(text_of(name, target, properties(count, min(needed, count)))) for count in (100, 200, 400)]
            assert sizes[2] - sizes[1] < 2.5 * (sizes[1] - sizes[0]), (target, needed, sizes)


def test_many_functions() -> None:
    tools = [tool(f"get_page_{at}", {"a": TEXT}, ["a"]) for at in range(80)]
    tracemalloc.start()
    for target in WRITTEN:
        assert len(toolgram.get_format("minimax_m2").export(target, tools).text) < MOST_TEXT // 10
    assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY
    tracemalloc.stop()


def test_a_large_count_is_not_enforced_and_said_so() -> None:
    many = {"a": {"type": "array", "items": TEXT, "minItems": MOST_COUNTED + 2}}
    notes = toolgram.get_format("hermes").export("gbnf", [tool("f", many)]).notes
    assert any(f"more than {MOST_COUNTED}" in note for note in notes)


def test_of_many_optional_members_each_may_be_written() -> None:
    """They may be repeated, and come in any order; required ones come in their order."""
    schema = {"type": "object", "properties": {f"p{at}": TEXT for at in range(70)}, "required": ["p1", "p3"]}
    for target in ("gbnf", "structural_tag"):
        made = toolgram.get_format("hermes").export(target, [tool("f", {"a": schema}, ["a"])], "required")
        assert any("more than 64 members" in note for note in made.notes)
        engine = plain_engines().load(target, made.text)
        for names, fits in ((["p1", "p3"], True), (["p0", "p1", "p2", "p3", "p69"], True), (["p1"], False),
                            (["p3", "p1"], False), (["p0"], False)):  # fmt: skip
            call = {"name": "f", "arguments": {"a": dict.fromkeys(names, "x")}}
            assert engine.accepts(f"<tool_call>\n{json.dumps(call)}\n</tool_call>") == fits, (target, names)
