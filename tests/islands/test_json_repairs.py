"""Local deviations in JSON are repaired on the way, and never retracted."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.generators.json_breakages import broken
from tests.json_prefix import JsonPrefix
from tests.repairs_table import PAGE, counts, page
from tests.strategies import chunkings
from tests.streams import assert_same_however_split, sources
from toolgram.events import Event, ToolCallDelta

OUTPUTS = {
    "hermes": '<tool_call>\n{"name": "f", "arguments": %s}\n</tool_call>',
    "mistral_v11": "[TOOL_CALLS]f[ARGS]%s",
    "mistral_v3": '[TOOL_CALLS][{"name": "f", "arguments": %s}]',
    "granite_3": '<|tool_call|>[{"name": "f", "arguments": %s}]',
    "llama3_json": '<|python_tag|>{"name": "f", "parameters": %s}',
}
BARE = '{"name": "f", "parameters": %s}'

# Strings whose quotes are not escaped. Where such a string ends is only known of arguments that are JSON themselves.
DAMAGED: list[tuple[str, dict[str, Any]]] = [
    ('{"a": "he said "hi" to me", "b": 1}', {"a": 'he said "hi" to me', "b": 1}),
    ('{"c": "print("hi")"}', {"c": 'print("hi")'}),
    ('{"a": "f("x", "y")", "b": [1, "z"]}', {"a": 'f("x", "y")', "b": [1, "z"]}),
    ('{"a": "{"k": "v"}", "b": 1}', {"a": '{"k": "v"}', "b": 1}),
    ('{"o": {"a": "d = {"k": [1, "v"]}"}, "b": 1}', {"o": {"a": 'd = {"k": [1, "v"]}'}, "b": 1}),
    ("{'a': 'it's \"x\"', 'b': [1]}", {"a": 'it\'s "x"', "b": [1]}),
    ('{"a": \'it\'s "x"\', "b": [1]}', {"a": 'it\'s "x"', "b": [1]}),
    ('{"a": "x = "y"", "b": 1}', {"a": 'x = "y"', "b": 1}),
]
REPAIRED: list[tuple[str, dict[str, Any]]] = [
    *DAMAGED,
    ('{"a": 1,}', {"a": 1}),
    ('{"a": "x" ,\n}', {"a": "x"}),
    ('{"a": [1, 2, ], }', {"a": [1, 2]}),
    ('{"a": {"b": 1,},}', {"a": {"b": 1}}),
    ('{"a": 1 "b": 2}', {"a": 1, "b": 2}),
    ('{"a": "x" "b": 2}', {"a": "x", "b": 2}),
    ('{"a": [{"z": 1} [2] 3 4 "x"]}', {"a": [{"z": 1}, [2], 3, 4, "x"]}),
    ('{"a": 1, // one\n "b": 2 # two\n}', {"a": 1, "b": 2}),
    ('{"a": 1/* one */2}', {}),
    ('{"a": /* * / one **/ 1, # two\n}', {"a": 1}),
    ("{'a': 'x', \"b\": 2}", {"a": "x", "b": 2}),
    ("{\"b\": 1, 'a': 'say \"x\"'}", {"b": 1, "a": 'say "x"'}),
    ('{a: 1, b_c : "x"}', {"a": 1, "b_c": "x"}),
    ('{"a": True, "b": None, "c": [False]}', {"a": True, "b": None, "c": [False]}),
    ('{"a": NaN, "b": [Infinity, -Infinity, -1]}', {"a": "NaN", "b": ["Infinity", "-Infinity", -1]}),
    (r'{"a": "\d+ \\ \u12 \u00e9"}', {"a": "\\d+ \\ \\u12 é"}),
    (r"""{"a": "it\'s", "b": ["\'", {"it\'s": 1}]}""", {"a": "it's", "b": ["'", {"it's": 1}]}),
    (r"""{"a": "it\'s \d", 'b': 'it\'s'}""", {"a": "it's \\d", "b": "it's"}),
    (r'{"a": "C:\temp\Users"}', {"a": "C:\temp\\Users"}),
    ('{"a": "x"' + " " * 64 + ', "b": 1,' + " " * 64 + "}", {"a": "x", "b": 1}),
    ('{"a": "tab\tline\n", "b": 1,}', {"a": "tab\tline\n", "b": 1}),
    ('{"a": ```json\n{"b": 1}\n``` }', {"a": {"b": 1}}),
    ('{"a": {{"b": 1}}, "c": [{"d": 2}, 3]}', {"a": {"b": 1}, "c": [{"d": 2}, 3]}),
]
# What the readers of an envelope see, and those of a string with arguments in it do not.
NOT_IN_STRINGS = ('{"a": ```json\n{"b": 1}\n``` }', *(written for written, _ in DAMAGED))
REFUSED = [
    '{"a": [1, 2}',  # of brackets, each must close the innermost one
    '{"a": {"b": 1]}',
    '{"a"": 1, "b"" : [2]}',
    "{'a'': 1, \"b\": 2}",
    '{"a": 1, b": "x"}',
    '{a": {b_c" : 1}}',
    '{"a": ["x" "y"]}',  # two readings
    '{"a": ["x "y" z"]}',
    '{"a": {{"b": 1}}, "c": [{{"d": 2}, 3]}',  # two values are damaged
    '{"a": "x "y" z", "b": "x "y" z"}',
    '{"a": "x "y" z", "b": [1}',
    '{"a": "x "y" z", "b": {{"c": 1}}}',
    '{"a": {{"b": 1}}, "c": "x "y" z"}',
    '{"a": "x "y" z", "b": 1,}',  # after it, nothing is repaired
    '{"a": "x "y" z"}}',
    '{"a": foo}',
    '{"a": 1,,"b": 2}',
    '{"a" 1}',
    '{"a": [1, 2}, "b": 3}',
    '{"a": [[1}, 2]}',
    '{"a": {"b": 1], "c": 2}}',
    '{"a": 1,' + " " * 65 + "}",
    '{"a": "x"' + " " * 65 + "y}",
    '{"a": "x" "b"}',
    '{"a": +1}',
    '{"a": "x"", "b": ""}',
    '{"a": ["x"", "y"]}',
    '{"a"b": 1}',
    '{"a""b": 1}',
    '{"a"" "b"}',
    '{"a:" "b"}',
    '{a"b": 1}',
    '{a" b": 1}',
    '{{{"a": 1}}}',
    '{"a": 01}',
]


def read(fmt: toolgram.Format, pieces: list[str], strict: bool = False) -> tuple[list[Event], toolgram.Message]:
    parser = fmt.parser(strict=strict)
    events = [event for piece in pieces for event in parser.feed(piece)]
    return events + parser.close(), parser.message


def deltas(events: list[Event]) -> list[str]:
    return [event.arguments for event in events if isinstance(event, ToolCallDelta)]


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize(("written", "meant"), [case for case in REPAIRED if case[1]])
def test_repairs(name: str, written: str, meant: dict[str, Any]) -> None:
    fmt, text = toolgram.get_format(name), OUTPUTS[name] % written
    message = assert_same_however_split(fmt, text, finish_reason="stop")
    (call,) = message.tool_calls
    assert (call.status, json.loads(call.arguments)) == ("complete", meant)
    assert {anomaly.kind for anomaly in message.anomalies} <= {"repaired_json"}
    assert message.anomalies or written == json.dumps(json.loads(written))


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("written", REFUSED + [written for written, meant in REPAIRED if not meant])
def test_what_has_several_readings_is_refused(name: str, written: str) -> None:
    for reason in ("stop", None, "length"):
        message = assert_same_however_split(toolgram.get_format(name), OUTPUTS[name] % written, finish_reason=reason)
        assert "complete" not in [call.status for call in message.tool_calls]


@pytest.mark.parametrize("written", [written for written, meant in REPAIRED if meant and "\t" not in written])
def test_bare_calls_and_strict_parsers_repair_nothing(written: str) -> None:
    message = assert_same_however_split(toolgram.get_format("llama3_json"), BARE % written)
    assert "complete" not in [call.status for call in message.tool_calls]
    for name in ("mistral_v11", "llama3_json"):
        _, message = read(toolgram.get_format(name), [OUTPUTS[name] % written], strict=True)
        assert "complete" not in [call.status for call in message.tool_calls]
        assert "repaired_json" not in [anomaly.kind for anomaly in message.anomalies]


@given(st.integers(), st.sampled_from([*OUTPUTS]), st.data())
def test_broken_arguments_keep_the_contract(seed: int, name: str, data: st.DataObject) -> None:
    _, written, _ = broken(random.Random(seed))
    fmt, text = toolgram.get_format(name), OUTPUTS[name] % written + " More text."
    events, message = read(fmt, [text])
    assert sources(events) == text
    pieces = data.draw(chunkings(text))
    for split in (pieces, list(text)):
        others, other = read(fmt, split)
        assert sources(others) == text
        assert other.to_dict()["anomalies"] == message.to_dict()["anomalies"]
        assert [(call.arguments, call.status) for call in other.tool_calls] == [
            (call.arguments, call.status) for call in message.tool_calls
        ]
    for failed in message.malformed:
        assert JsonPrefix().read(failed.arguments).error is None
    for call in message.tool_calls:
        prefix = JsonPrefix()
        assert prefix.read(call.arguments).error is None
        if call.status == "complete":
            assert isinstance(json.loads(call.arguments), dict)


@given(st.integers(), st.sampled_from([*OUTPUTS]), st.data())
def test_a_snapshot_may_be_taken_anywhere(seed: int, name: str, data: st.DataObject) -> None:
    _, written, _ = broken(random.Random(seed))
    fmt, text = toolgram.get_format(name), OUTPUTS[name] % written
    at = data.draw(st.integers(0, len(text)))
    parser = fmt.parser()
    events = parser.feed(text[:at])
    restored = fmt.restore(json.loads(json.dumps(parser.snapshot())))
    events += restored.feed(text[at:]) + restored.close()
    assert sources(events) == text
    assert "".join(deltas(events)) == "".join(deltas(read(fmt, [text])[0]))


@pytest.mark.parametrize("digits", [4299, 4300, 4301, 5000])
@pytest.mark.parametrize("name", ["mistral_v11", "llama3_json"])
@pytest.mark.parametrize("size", [1, 3, 4, 16, 17, 10_000])
def test_an_integer_that_python_refuses_is_no_argument(digits: int, name: str, size: int) -> None:
    text = OUTPUTS[name] % ('{"a": [12, -%s], "b": 3}' % ("7" * digits))
    _, message = read(toolgram.get_format(name), [text[at : at + size] for at in range(0, len(text), size)])
    if digits <= 4300:
        (call,) = message.tool_calls
        assert (call.status, len(call.arguments)) == ("complete", digits + 22)
    else:
        (failed,) = message.malformed
        assert not message.tool_calls
        assert len(failed.arguments) == 4300 + 12


def test_work_on_what_waits_is_bounded() -> None:
    """A comma with a long run of blanks behind it is decided after 64 of them."""
    parser = toolgram.get_format("mistral_v11").parser()
    parser.feed('[TOOL_CALLS]f[ARGS]{"a": 1,')
    for _ in range(1000):
        parser.feed(" ")
        assert len(json.dumps(parser.snapshot())) < 1500


def test_the_page_beside_json_repair_is_not_older_than_the_code() -> None:
    assert PAGE.read_text() == page(counts())


@pytest.mark.parametrize("size", [1, 3, 10_000])
def test_a_repair_in_a_list_ends_where_its_call_does(size: int) -> None:
    """A missing comma behind arguments, and then no colon: the call before stands, and the list is read on."""
    text = '[TOOL_CALLS][{"name": "a", "arguments": "{}"\n "f" , "arguments": "{}"}, {"name": "b", "arguments": {}}]'
    events, message = read(
        toolgram.get_format("mistral_v3"), [text[at : at + size] for at in range(0, len(text), size)]
    )
    assert sources(events) == text
    assert [(call.name, call.status) for call in message.tool_calls][:1] == [("a", "complete")]
