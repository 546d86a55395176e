"""Every kind of schema that tools have, in every engine: it loads, takes what fits, and writes nothing else."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest

import toolgram
from tests.export.engines import Engines, sample
from tests.export.measuring import DEEP, WRITTEN, problem_of, tool, words_of
from tests.export.writing import random_output
from toolgram.export import export_request, expression

for engine in ("llguidance", "tvm_ffi", "numpy", "jsonschema"):
    pytest.importorskip(engine, reason="the engines are not here: make test installs them")

_TEXT, _COUNT = {"type": "string"}, {"type": "integer"}
_NODE = {"type": "object", "properties": {"value": _TEXT, "next": {"$ref": "#/$defs/Node"}}, "required": ["value"]}
_EIGHT = dict.fromkeys("abcdefgh", _COUNT)


def _object(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


SCHEMAS: dict[str, dict[str, Any]] = {
    "references": {**_object("n", n={"$ref": "#/$defs/Node"}, k=_COUNT), "$defs": {"Node": _NODE}},
    "odd names": _object("naïve key", **{"x-y.z": {"type": "boolean"}, "naïve key": _TEXT, "日本": {"type": "null"}}),
    "quotes in names": _object('a"b', **{'a"b': _COUNT, "c\\d": _COUNT}),
    "mixed enum": _object("a", "b", a={"enum": [1, "two", None, True]}, b={"enum": ['q"uote', "back\\slash", "é"]}),
    "constants": _object("c", "d", c={"const": {"x": [1, {"y": None}]}}, d={"enum": ["s", [1, 2], {"k": "v"}]}),
    "patterns": _object("p", "q", "r", p={**_TEXT, "pattern": "^[a-z]{2,4}$"}, q={**_TEXT, "pattern": "[0-9]"},
                        r={**_TEXT, "pattern": "^[^x]+$"}),
    "escapes in patterns": _object("p", p={**_TEXT, "pattern": r"^(\+\d\s?)?\(?[\d']+\)?$"}),
    "lengths": _object("l", "m", l={**_TEXT, "minLength": 2, "maxLength": 5}, m={**_TEXT, "maxLength": 1}),
    "any type": {"type": "object", "properties": {"a": {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}, "b": {},
                 "c": True}, "required": ["a"]},
    "a map": {"type": "object", "additionalProperties": _COUNT},
    "nothing said": {},
    "deep": _object("o", o=_object("p", p={"type": "array", "items": _object("r", r={"type": "number"}, s=_TEXT)})),
    "many, few required": {**_object("a", "b", **_EIGHT)},
    "many required": _object(*_EIGHT, **_EIGHT),
    "all of": {"type": "object", "allOf": [{"properties": {"a": _TEXT}, "required": ["a"]}, {"required": ["b"]}]},
    "lists": _object("t", t={"type": "array", "prefixItems": [_COUNT, _TEXT], "minItems": 2, "maxItems": 3},
                     u={"type": "array", "items": _COUNT, "minItems": 1, "maxItems": 2}),
    "numbers": _object("n", "m", n={"type": "number", "minimum": -1.5, "exclusiveMaximum": 3},
                       m={"type": "integer", "minimum": -10, "maximum": 100000}),
    "nullable": _object("a", a={"type": ["string", "integer", "null"]}, b={**_TEXT, "nullable": True, "default": "x"}),
}  # fmt: skip

# Names that are no keyword of Python: a call that needs one cannot be written there.
UNWRITABLE = dict.fromkeys(("lfm2", "llama4_pythonic"), ("odd names", "quotes in names"))


@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("name", toolgram.format_names() if DEEP else ("hermes", "qwen3_coder", "lfm2"))
def test_every_kind_of_schema(name: str, kind: str) -> None:
    fmt = toolgram.get_format(name)
    parameters = SCHEMAS[kind]
    tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}, tool("other", {})]
    if kind in UNWRITABLE.get(name, ()):
        notes = fmt.export("ebnf", tools).notes
        assert any("cannot be written" in note for note in notes), notes
        return
    root, _ = expression(fmt, export_request(tools), None, lambda words: None)
    rng = random.Random(f"{name} {kind}")
    outputs = [text for _ in range(8) if not problem_of(fmt, text := random_output(root, rng), tools)]
    required = parameters.get("required", ["a"])
    for target in WRITTEN:
        made = fmt.export(target, tools)
        loose = any("not enforce" in note or "cannot be" in note for note in made.notes)
        engines = Engines(words_of(fmt, [tools[1]], [*made.triggers, *parameters.get("properties", ()), *required]))
        engine = engines.load(target, made.text)
        unescaped = any("JSON escapes" in note for note in made.notes)
        for text in outputs:
            if unescaped and "\\" in text:
                continue
            assert engine.accepts(text), (target, text)
        for _ in range(6):
            written = sample(engine, rng, made.triggers, required, 60)
            if written is not None and not loose:
                assert not problem_of(fmt, written, tools), (target, written)


@pytest.mark.parametrize("target", ["structural_tag", "ebnf", "gbnf"])
def test_a_string_is_what_json_reads(target: str) -> None:
    """In any combination of two: characters of every kind, escapes, and what is neither."""
    parts = [
        *"a/é𝄞'<",
        "\x7f",
        "\u2028",
        "\\n",
        "\\/",
        "\\u12aF",
        '\\"',
        "\\\\",
        "\\u12a",
        "\\x",
        "\\",
        "\x00",
        "\n",
        '"',
    ]
    made = toolgram.get_format("hermes").export(target, [tool("f", {"a": _TEXT}, ["a"])], "required")
    engine = Engines().load(target, made.text)
    for text in map("".join, itertools.product(parts, repeat=2)):
        try:
            fits = isinstance(json.loads(f'"{text}"'), str)
        except ValueError:
            fits = False
        written = f'<tool_call>\n{{"name": "f", "arguments": {{"a": "{text}"}}}}\n</tool_call>'
        assert engine.accepts(written) == fits, ascii(text)


@pytest.mark.parametrize("target", WRITTEN)
def test_a_tool_of_free_text_is_one_clear_error(target: str) -> None:
    """Its input is no JSON, so that no format writes it as arguments."""
    for tool_ in ({"type": "custom", "name": "code"}, {"type": "custom", "custom": {"name": "code"}}):
        with pytest.raises(toolgram.ToolgramError, match=r"tools\[0\]: 'code' has the type custom"):
            toolgram.get_format("hermes").export(target, [tool_])
    schema = {"type": "object", "properties": {}}
    assert toolgram.get_format("hermes").export(target, [{"type": "custom", "name": "f", "input_schema": schema}]).text
