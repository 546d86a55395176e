"""Names of functions with a namespace before them, or written twice: the declared function with the last part."""

from __future__ import annotations

import pytest

import toolgram

FIND = {"type": "function", "function": {"name": "find", "parameters": {"type": "object", "properties": {}}}}
FORMATS = [name for name in toolgram.format_names() if toolgram.get_format(name).spec.namespaced_names]


def output(name: str, function: str) -> str:
    """The example of a format, with another function."""
    fmt = toolgram.get_format(name)
    first = fmt.parse(fmt.example).tool_calls[0].name
    return str(fmt.example.replace(first, function))


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_where_many_outputs_were_read_before(name: str) -> None:
    """Outputs that are read without events first take the name as it is written."""
    fmt, tools = toolgram.get_format(name), [FIND]
    for _ in range(120):
        assert fmt.parse(output(name, "find"), tools=tools).tool_calls[0].name == "find"
    assert fmt.parse(output(name, "find.find"), tools=tools).tool_calls[0].name == "find"
    assert fmt.parse(output(name, "tools.find"), tools=tools).tool_calls[0].name == "find"


@pytest.mark.parametrize("name", FORMATS)
def test_a_strict_parser_takes_names_as_they_are(name: str) -> None:
    message = toolgram.get_format(name).parse(output(name, "find.find"), tools=[FIND], strict=True)
    assert message.tool_calls[0].name == "find.find"
