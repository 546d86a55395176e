"""In a notation whose strings have quotes, what is spelled as a number is one, inside lists and objects as well."""

from __future__ import annotations

import json

import pytest

import toolgram
from tests.streams import cut, run

NUMBERS = ["0", "-0", "7", "-12", "1.50", "0.5e+3", "9.000009E5", "1e5", "12345678901234567890"]
TEXTS = ["007", "1.2.3", "5 apples", "1e", "- 4", ".5", "+1"]


@pytest.mark.parametrize("written", [*NUMBERS, *TEXTS])
@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("name", ["functiongemma", "gemma4"])
def test_a_value_without_quotes_inside_another(name: str, written: str, size: int) -> None:
    call = {"functiongemma": "<start_function_call>{}<end_function_call>", "gemma4": "<|tool_call>{}<tool_call|>"}[name]
    text = call.replace("{}", f"call:f{{a:{{b:{written}}},c:[{written}]}}")
    _, message = run(toolgram.get_format(name), cut(text, size))
    (found,) = message.tool_calls
    value = written if written in TEXTS else json.loads(written)
    assert json.loads(found.arguments) == {"a": {"b": value}, "c": [value]}
