"""Strings in schemas, and what is refused as a tool, in every target."""

from __future__ import annotations

import itertools
import json

import pytest

import toolgram
from tests.export.engines import plain_engines
from tests.export.measuring import tool

for engine in ("llguidance", "tvm_ffi", "numpy", "jsonschema"):
    pytest.importorskip(engine, reason="the engines are not here: make test installs them")


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
    made = toolgram.get_format("hermes").export(target, [tool("f", {"a": {"type": "string"}}, ["a"])], "required")
    engine = plain_engines().load(target, made.text)
    for text in map("".join, itertools.product(parts, repeat=2)):
        try:
            fits = isinstance(json.loads(f'"{text}"'), str)
        except ValueError:
            fits = False
        written = f'<tool_call>\n{{"name": "f", "arguments": {{"a": "{text}"}}}}\n</tool_call>'
        assert engine.accepts(written) == fits, ascii(text)
