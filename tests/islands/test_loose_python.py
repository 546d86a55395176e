"""Python arguments whose quotes and commas follow no rule: what is declared tells where each ends and what it is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.derive.turns import TEMPLATES
from tests.streams import assert_same_however_split, cut, merged, run
from toolgram.call_ids import random_call_ids
from toolgram.events import Event
from toolgram.islands.loose_python import LoosePythonScanner
from toolgram.limits import MAX_LOOSE_VALUE


def _derived(name: str) -> toolgram.Format:
    return toolgram.derive_format((TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8"))


BARE, QUOTED = _derived("python_bare_words"), _derived("python_all_quoted")
STRING, INTEGER, ANY = {"type": "string"}, {"type": "integer"}, {"type": ["string", "integer", "null"]}
PARAMETERS = {
    "type": "object",
    "properties": {
        "city": STRING,
        "code": STRING,
        "days": INTEGER,
        "exact": {"type": "boolean"},
        "tags": {"type": "array"},
        "filters": {"type": "object"},
        "value": ANY,
        "extra": {},
    },
}
TOOLS = [
    {"type": "function", "function": {"name": "f", "parameters": PARAMETERS}},
    {"type": "function", "function": {"name": "g", "parameters": {"type": "object", "properties": {}}}},
]

LOOSE: list[tuple[str, dict[str, Any]]] = [
    ("city=New York, days=2", {"city": "New York", "days": 2}),
    ("city=, days=2", {"city": "", "days": 2}),
    ("code=  indented\n\n, city=", {"code": "  indented\n\n", "city": ""}),
    ("code=123, city=true", {"code": "123", "city": "true"}),
    ('code={"a": [1, 2]}, city=null', {"code": '{"a": [1, 2]}', "city": "null"}),
    ('city=say "hi" \\ there\ttab, exact=True', {"city": 'say "hi" \\ there\ttab', "exact": True}),
    ("code=def h(x, y=2):\n  return (x, y), days=-7", {"code": "def h(x, y=2):\n  return (x, y)", "days": -7}),
    ("code=one, two, three, days=0", {"code": "one, two, three", "days": 0}),
    ("tags=['x', \"it's\"], filters={'a': {'b': [None]}}", {"tags": ["x", "it's"], "filters": {"a": {"b": [None]}}}),
    ("value=hello, extra={'z': 1}", {"value": "hello", "extra": {"z": 1}}),
    ("value=42, extra=word", {"value": 42, "extra": "word"}),
    ("value=None, extra=0.5", {"value": None, "extra": 0.5}),
    ('city="Paris"days=2', {"city": "Paris", "days": 2}),
    ('city="Paris" days=2 code="x"', {"city": "Paris", "days": 2, "code": "x"}),
    ('days=2city="Paris"', {"days": 2, "city": "Paris"}),
    ('exact=falsedays=7tags=[]filters={}city="a"', {"exact": False, "days": 7, "tags": [], "filters": {}, "city": "a"}),
    ('code="{\\"a\\": 1}"city="null"', {"code": '{"a": 1}', "city": "null"}),
    ("code='''a'b''c''', days=1", {"code": "a'b''c", "days": 1}),
    ("city='', code=\"\", days=1", {"city": "", "code": "", "days": 1}),
    ('code="print("a", 1)", days=3', {"code": 'print("a", 1)', "days": 3}),
    ("code='return [\"a\", 'b', {'k': \"v\"}]', city='x'", {"code": "return [\"a\", 'b', {'k': \"v\"}]", "city": "x"}),
    ('days="2", tags="[]"', {"days": 2, "tags": []}),
    ("city='\\u00fcber\\n\\x41', days=1,", {"city": "\u00fcber\nA", "days": 1}),
    ("city = New York , days = 2, code =  x", {"city": "New York ", "days": 2, "code": " x"}),
    ("", {}),
]

ALL_QUOTED: list[tuple[str, dict[str, Any]]] = [
    ('city="Paris", days="2", exact="True"', {"city": "Paris", "days": 2, "exact": True}),
    ('value="42", extra="{\'z\': 1}"', {"value": 42, "extra": {"z": 1}}),
    ('value="hello", extra="text"', {"value": "hello", "extra": "text"}),
    ('value="None", city="None"', {"value": None, "city": "None"}),
    ('city="naive "quoted" \\ tab", filters="{\'a\': [1]}"', {"city": 'naive "quoted" \\ tab', "filters": {"a": [1]}}),
    ("city='Paris', days=2, tags=['a']", {"city": "Paris", "days": 2, "tags": ["a"]}),
]


def _read(fmt: toolgram.Format, arguments: str) -> dict[str, Any]:
    marker = "<|calls|>" if fmt is QUOTED else ""
    text = f"Hm. {marker}[f({arguments}), g()]"
    assert_same_however_split(fmt, text, tools=TOOLS)
    message = fmt.parse(text, TOOLS)
    assert message.content == "Hm."
    assert [(call.name, call.status) for call in message.tool_calls] == [("f", "complete"), ("g", "complete")]
    read: dict[str, Any] = json.loads(message.tool_calls[0].arguments)
    return read


@pytest.mark.parametrize(("arguments", "meant"), LOOSE)
def test_bare_text_and_missing_commas(arguments: str, meant: dict[str, Any]) -> None:
    assert _read(BARE, arguments) == meant


@pytest.mark.parametrize(("arguments", "meant"), ALL_QUOTED)
def test_quotes_around_everything(arguments: str, meant: dict[str, Any]) -> None:
    assert _read(QUOTED, arguments) == meant


@pytest.mark.parametrize("name", ["python_raw_in_markers", "python_single_quoted"])
def test_other_templates_of_the_class(name: str) -> None:
    fmt = _derived(name)
    assert fmt.report is not None
    assert (fmt.report.ok, [each.problem for each in fmt.report.failed]) == (False, [])
    assert "loose_python: " in fmt.machine_text


def test_a_proper_python_template_is_not_loose() -> None:
    assert "loose_python" not in _derived("python_calls").machine_text


@pytest.mark.parametrize("arguments", ["city", "city=New York", "city=='a'", "1=2", f"extra=1{'0' * MAX_LOOSE_VALUE}"])
def test_what_does_not_fit_is_no_whole_call(arguments: str) -> None:
    text = f"[f({arguments}"
    assert_same_however_split(BARE, text, tools=TOOLS)
    assert all(call.status != "complete" for call in BARE.parse(text, TOOLS).tool_calls)


def test_strict_parsers_read_python_only() -> None:
    strict = BARE.parser(TOOLS, strict=True)
    strict.feed("[f(city=New York)]")
    strict.close()
    assert all(call.status != "complete" for call in strict.message.tool_calls)


@given(st.text("ab='\"(),=[]{}\\ \n1", max_size=24), st.booleans(), st.integers(1, 5))
def test_any_text_in_any_deltas_and_snapshots(text: str, quoted: bool, size: int) -> None:
    fmt = QUOTED if quoted else BARE
    output = ("<|calls|>" if quoted else "") + f"[f(city={text}, days=2)]"
    assert_same_however_split(fmt, output, tools=TOOLS)
    pieces = cut(output, size)
    ids = random_call_ids(seed=7)
    parser = fmt.parser(TOOLS, prefix="", call_ids=ids)
    events: list[Event] = []
    for piece in pieces:
        events += parser.feed(piece)
        parser = fmt.restore(json.loads(json.dumps(parser.snapshot())), TOOLS, ids)
    assert merged(events + parser.close()) == merged(run(fmt, pieces, tools=TOOLS)[0])


def test_a_snapshot_that_is_none_is_refused() -> None:
    data = LoosePythonScanner().dump()
    assert LoosePythonScanner.load(data).dump() == data
    for at in range(len(data)):
        with pytest.raises((ValueError, KeyError)):
            LoosePythonScanner.load([*data[:at], {"no": "value"}, *data[at + 1 :]])
    with pytest.raises(ValueError, match="no state"):
        LoosePythonScanner.load(["string", *data[1:]])
