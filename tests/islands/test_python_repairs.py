"""Python arguments that are wrong in one place: repaired if one reading is possible, and else malformed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.clauses import check_widely
from tests.json_prefix import is_json_prefix
from tests.properties.selection import quarter
from tests.streams import assert_same_however_split
from toolgram.events import ToolCallDelta
from toolgram.limits import LONGEST_FIRST_ITEM, MAX_DIGITS, MAX_UNDECIDED, MOST_CANDIDATES

LISTED = "<|tool_call_start|>[f(%s), g(b=2)]<|tool_call_end|>"
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]

REPAIRED: list[tuple[str, dict[str, Any], int]] = [
    ("x=0x1F, y=-0b11, z=1_0, n=[0, 0o17, 0.5]", {"x": 31, "y": -3, "z": 10, "n": [0, 15, 0.5]}, 0),
    ("x={'a', 'b'}, y={1}, z=[{'c'}], n={True, 0x1}", {"x": ["a", "b"], "y": [1], "z": [["c"]], "n": [True, 1]}, 4),
    ("x={}, y={'a': {}}, z={1: 2}", {"x": {}, "y": {"a": {}}, "z": {"1": 2}}, 0),
    ("x={a: 1, 'b': 2}", {"x": {"a": 1, "b": 2}}, 1),
    (f"x={{'{'a' * 2 * LONGEST_FIRST_ITEM}': 1}}", {"x": {"a" * 2 * LONGEST_FIRST_ITEM: 1}}, 0),
    ("x='a' y=2", {"x": "a", "y": 2}, 1),
    ("x=1 y=True z='c'", {"x": 1, "y": True, "z": "c"}, 2),
    ("x='', y=None, from=''", {"x": "", "y": None, "from": ""}, 0),
    (f"x={'9' * 4300}", {"x": int("9" * 4300)}, 0),
    ("{'x': 1}", {"x": 1}, 0),
    ("", {}, 0),
]
# Quotes inside a string.
DAMAGED: list[tuple[str, dict[str, Any]]] = [
    ("c='sed -n '1,9p' f', y=2", {"c": "sed -n '1,9p' f", "y": 2}),
    ("c='it's', y=\"x\"", {"c": "it's", "y": "x"}),
    ('y=1, c="say "x" now"', {"y": 1, "c": 'say "x" now'}),
    ('c="print("a", b)", y=2', {"c": 'print("a", b)', "y": 2}),
    ('c="if x == ")": y()"', {"c": 'if x == ")": y()'}),
    ('c="sep = ", "", y=(1, "z")', {"c": 'sep = ", "', "y": [1, "z"]}),
    (r'c="re.compile("\d+")"', {"c": r're.compile("\d+")'}),
    ("x=['it's', 'b']", {"x": ["it's", "b"]}),
    ("x={'a': 'it's', 'b': 1}, y=2", {"x": {"a": "it's", "b": 1}, "y": 2}),
    ('c=""a", b"', {"c": '"a", b'}),
]
REFUSED = [
    "p=1/6",
    "x=a + b, y=2",
    "x=10-5",
    "x=y",
    "x=lambda z: z",
    "x=f'{y}'",
    "x=g(y, z=[1, 2])",
    "city=New York",
    "m=07",
    "x={1: a}",
    "'x'",
    "x='a' 'b'",
    "x='a''b'",
    "x='a' + 'b'",
    "x='a' if y else 'b'",
    "x='%s' % 'a'",
    "x='a'.join(y)",
    "x='a' # y",
    "x=[1 2]",
    "x={'a': 1, b}",
    "x={'a', 'b': 1}",
    "x={'a': 1 'b': 2}",
    "x=(1 + 2) * 3",
    "x=[1, {'b': 2])",
    "x=['a')",
    f"x={'9' * 4301}",
]
# Quotes inside a string whose end is not certain.
UNCERTAIN = [
    'c="it"s", y="it"s"',  # two values
    'c="print("a", end="b")"',  # an argument of the code, or of the call
    r'c="print("a\n")"',  # an escape
    r'c="a\n" or "b" if x"',
    "x={'it's': 1}",  # a key
    "c='it's' + 'x'), y='z",
    f'c="it"s, {"y" * MAX_UNDECIDED}',
    'c="it"s' + '", z=1' * MOST_CANDIDATES,
]


def arguments_so_far(text: str) -> list[str]:
    """The deltas of the first call, read by character."""
    parser = toolgram.get_format("lfm2").parser()
    events = [event for character in text for event in parser.feed(character)] + parser.close()
    return [event.arguments for event in events if isinstance(event, ToolCallDelta) and event.index == 0]


@pytest.mark.parametrize(
    ("written", "meant", "count"), [*REPAIRED, *((written, meant, 1) for written, meant in DAMAGED)]
)
def test_repairs(written: str, meant: dict[str, Any], count: int) -> None:
    message = assert_same_however_split(toolgram.get_format("lfm2"), LISTED % written)
    assert [(call.name, json.loads(call.arguments), call.status) for call in message.tool_calls] == [
        ("f", meant, "complete"),
        ("g", {"b": 2}, "complete"),
    ]
    assert [each.kind for each in message.anomalies] == ["repaired_python"] * count
    assert [each.call for each in message.anomalies] == [0] * count
    assert is_json_prefix("".join(arguments_so_far(LISTED % written)))


@pytest.mark.parametrize("written", REFUSED)
def test_an_element_that_is_no_literal_is_malformed_and_its_neighbours_are_read(written: str) -> None:
    text = (LISTED % written).replace("[f(", "[h(), f(")
    message = assert_same_however_split(toolgram.get_format("lfm2"), text)
    assert [call.name for call in message.tool_calls if call.status == "complete"] == ["h", "g"]
    assert [call.name for call in message.malformed] == ["f"]


@pytest.mark.parametrize("written", UNCERTAIN)
def test_a_string_without_a_certain_end_is_malformed(written: str) -> None:
    message = assert_same_however_split(toolgram.get_format("lfm2"), LISTED % written)
    assert not message.tool_calls
    assert [call.name for call in message.malformed] == ["f"]
    assert (message.content or "").startswith("<|tool_call_start|>[f(")


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_what_is_cut_off_is_truncated(reason: str) -> None:
    fmt = toolgram.get_format("lfm2")
    text = (LISTED % "c=\"print('a', \"b\")\", y='z'").removesuffix("<|tool_call_end|>")
    meant = fmt.parse(text + "<|tool_call_end|>").tool_calls[0].arguments
    for at in range(text.index("(") + 5, text.index("), g")):
        for call in fmt.parse(text[:at], finish_reason=reason).tool_calls[:1]:
            assert call.status == "truncated"
            assert meant.startswith(call.arguments)


@pytest.mark.parametrize(
    "written", [written for written, _, count in REPAIRED if count] + [each for each, _ in DAMAGED]
)
def test_strict_parsers_repair_nothing(written: str) -> None:
    message = toolgram.get_format("lfm2").parse(LISTED % written, strict=True)
    assert "f" not in [call.name for call in message.tool_calls]
    assert "repaired_python" not in [each.kind for each in message.anomalies]


def test_a_snapshot_keeps_what_is_held() -> None:
    fmt = toolgram.get_format("lfm2")
    for written, meant, count in [*REPAIRED, *((written, meant, 1) for written, meant in DAMAGED)]:
        text = LISTED % written
        for at in range(len(text) if len(text) < 200 else 0):
            first = fmt.parser()
            events = first.feed(text[:at])
            parser = fmt.restore(json.loads(json.dumps(first.snapshot())))
            events += parser.feed(text[at:]) + parser.close()
            arguments = "".join(
                event.arguments for event in events if isinstance(event, ToolCallDelta) and event.index == 0
            )
            assert json.loads(arguments) == meant, text[:at]
            assert len(first.take_anomalies() + parser.take_anomalies()) == count


@pytest.mark.parametrize("size", [MAX_DIGITS, MAX_DIGITS + 1])
@pytest.mark.parametrize(
    "written",
    quarter(["a=%s", "a=-%s", "a=[1, %s], b=2", "a=%s.5", "a={%s: 1}", "a={%s, 1}", "%s=1"], "digits"),
)
def test_the_limit_of_digits_does_not_depend_on_the_deltas(written: str, size: int) -> None:
    for digits in ("1" * size, "9_" * (size - 1) + "9"):
        failure = check_widely(toolgram.get_format("lfm2"), LISTED % (written % digits), TOOLS)
        assert failure is None, failure.kind


@given(st.lists(st.sampled_from(["a", "it's", "x=", '"', "'", ", ", "b='c'", ")", "]", "\\d", "\\n", "1", "(", "g("])))
def test_quotes_and_brackets_in_any_order(pieces: list[str]) -> None:
    message = assert_same_however_split(toolgram.get_format("lfm2"), LISTED % ("x='" + "".join(pieces) + "'"))
    for call in message.tool_calls:
        if call.status == "complete":
            assert isinstance(json.loads(call.arguments), dict)


@given(st.text("a1.0'\"{}[](),:= \\\\\nx_TrueNone+-", max_size=24))
def test_nothing_is_retracted_whatever_is_written(written: str) -> None:
    message = assert_same_however_split(toolgram.get_format("lfm2"), LISTED % written)
    for call in message.tool_calls:
        if call.status == "complete":
            assert isinstance(json.loads(call.arguments), dict)
    assert is_json_prefix("".join(arguments_so_far(LISTED % written)))
