"""Local deviations in JSON are repaired on the way, and never retracted."""

from __future__ import annotations

import json

import pytest

import toolgram
from tests.page_parts import part
from tests.repairs_table import PAGE, PART, counts, table
from tests.streams import cut, run, sources

OUTPUTS = {
    "hermes": '<tool_call>\n{"name": "f", "arguments": %s}\n</tool_call>',
    "mistral_v11": "[TOOL_CALLS]f[ARGS]%s",
    "mistral_v3": '[TOOL_CALLS][{"name": "f", "arguments": %s}]',
    "granite_3": '<|tool_call|>[{"name": "f", "arguments": %s}]',
    "llama3_json": '<|python_tag|>{"name": "f", "parameters": %s}',
}


@pytest.mark.parametrize("digits", [4299, 4300, 4301, 5000])
@pytest.mark.parametrize("name", ["mistral_v11", "llama3_json"])
@pytest.mark.parametrize("size", [1, 3, 4, 16, 17, 10_000])
def test_an_integer_that_python_refuses_is_no_argument(digits: int, name: str, size: int) -> None:
    text = OUTPUTS[name] % ('{"a": [12, -%s], "b": 3}' % ("7" * digits))
    _, message = run(toolgram.get_format(name), cut(text, size))
    if digits <= 4300:
        (call,) = message.tool_calls
        assert (call.status, len(call.arguments)) == ("complete", digits + 22)
    else:
        (failed,) = message.malformed
        assert not message.tool_calls
        assert len(failed.arguments) == 4300 + 12


def test_work_on_what_waits_is_bounded() -> None:
    """A comma with a long run of blanks after it is decided after 64 of them."""
    parser = toolgram.get_format("mistral_v11").parser()
    parser.feed('[TOOL_CALLS]f[ARGS]{"a": 1,')
    for _ in range(1000):
        parser.feed(" ")
        assert len(json.dumps(parser.snapshot())) < 1500


def test_the_page_beside_json_repair_is_not_older_than_the_code() -> None:
    assert part(PAGE, *PART) == table(counts())


@pytest.mark.parametrize("size", [1, 3, 10_000])
def test_a_repair_in_a_list_ends_where_its_call_does(size: int) -> None:
    """A missing comma after arguments, and then no colon: the call before it is read, and the list is read on."""
    text = '[TOOL_CALLS][{"name": "a", "arguments": "{}"\n "f" , "arguments": "{}"}, {"name": "b", "arguments": {}}]'
    events, message = run(toolgram.get_format("mistral_v3"), cut(text, size))
    assert sources(events) == text
    assert [(call.name, call.status) for call in message.tool_calls][:1] == [("a", "complete")]


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("written", ['{"a": %s}', '{"a": [%s], }', "{'a': %s}", '"{\\"a\\": %s}"'])
def test_an_integer_that_python_refuses_is_malformed(name: str, written: str) -> None:
    if written[0] == '"' and name == "mistral_v11":
        return  # whose arguments are never a string
    for count, statuses in ((4300, ["complete"]), (4301, [])):
        message = toolgram.get_format(name).parse(OUTPUTS[name] % (written % ("9" * count)))
        assert [call.status for call in message.tool_calls] == statuses
