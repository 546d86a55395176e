"""Ids of another shape than a format's own: a call whose name and arguments are whole is not lost for its id.

Strategy: every format that reads an id before the arguments is found from its machine. An id without blanks and
markers is the id, whatever it is; where nothing stands in its place, one is made, and the call says so.
"""

from __future__ import annotations

import json
import re

import pytest

import toolgram
from tests.deviations.test_every_format import examples
from tests.streams import CUT_SIZES, cut, run

NAMES = toolgram.format_names()
MADE = re.compile(r"(?:call_)?[A-Za-z0-9]{9,24}").fullmatch
BEHIND_MARKERS = {  # the output, and what stands before and behind an id
    "mistral_v11": '[TOOL_CALLS]f[CALL_ID]{}[ARGS]{"a": 1}',
    "mistral_v3": '[TOOL_CALLS]f[CALL_ID]{}[ARGS]{"a": 1}',
    "solar_open": '<|tool_call:begin|>{}<|tool_call:name|>f<|tool_call:args|>{"a": 1}<|tool_call:end|>',
}
NAMED = "<|tool_calls_section_begin|><|tool_call_begin|>functions.f{}<|tool_call_argument_begin|>"
NAMED += '{"a": 1}<|tool_call_end|><|tool_calls_section_end|>'
IDS = (
    "abc",
    "functions.f:0",
    "a.b",
    "a/b",
    "#1",
    '"abc"',
    "'1'",
    "x" * 64,
    "x" * 65,
    "x" * 1000,
    "é日本",
    "call_1",
    "-",
)


def reads_ids(name: str, json_ids: bool) -> bool:
    spec = toolgram.get_format(name).spec
    found = {row.trigger for row in spec.transitions if {"call_id", "call_id_part"} & {*row.actions}}
    return ("string item.id" in found) if json_ids else any(each in spec.terminals for each in found)


def assert_called(name: str, text: str, call_id: str | None, kinds: set[str]) -> None:
    """However the text is split, there is one call, with this id, or with one that was made."""
    for size in CUT_SIZES:
        _, message = run(toolgram.get_format(name), cut(text, size))
        assert [(call.name, call.arguments, call.status) for call in message.tool_calls] == [
            ("f", '{"a": 1}', "complete")
        ], (text, size)
        (call,) = message.tool_calls
        assert call.id == call_id if call_id is not None else MADE(call.id)
        assert message.content is None
        assert {anomaly.kind for anomaly in message.anomalies} == kinds


def test_every_format_that_reads_ids_behind_markers_is_here() -> None:
    assert [name for name in NAMES if reads_ids(name, False)] == sorted([*BEHIND_MARKERS, "kimi_k2"])


@pytest.mark.parametrize("call_id", IDS)
@pytest.mark.parametrize("name", BEHIND_MARKERS)
def test_any_text_is_an_id(name: str, call_id: str) -> None:
    habit = {"unusual_form"} if name == "mistral_v3" else set()
    assert_called(name, BEHIND_MARKERS[name].replace("{}", call_id, 1), call_id, habit)


@pytest.mark.parametrize("blanks", [" ", "\n", "\r\n\t"])
@pytest.mark.parametrize("name", BEHIND_MARKERS)
def test_blanks_around_an_id_are_no_part_of_it(name: str, blanks: str) -> None:
    habit = {"unusual_form"} if name == "mistral_v3" else set()
    assert_called(name, BEHIND_MARKERS[name].replace("{}", f"{blanks}a.b{blanks}", 1), "a.b", habit)


@pytest.mark.parametrize("nothing", ["", " ", "\n"])
@pytest.mark.parametrize("name", BEHIND_MARKERS)
def test_an_id_is_made_where_there_is_none(name: str, nothing: str) -> None:
    assert_called(name, BEHIND_MARKERS[name].replace("{}", nothing, 1), None, {"unusual_form"})


@pytest.mark.parametrize("name", BEHIND_MARKERS)
def test_an_id_in_words_is_told(name: str) -> None:
    assert_called(name, BEHIND_MARKERS[name].replace("{}", "a b", 1), "a b", {"unusual_form"})


@pytest.mark.parametrize("call_id", ["a.b:0", "", " "])
@pytest.mark.parametrize("name", ["mistral_v11", "mistral_v3"])
def test_an_object_right_behind_an_id(name: str, call_id: str) -> None:
    text = BEHIND_MARKERS[name].replace("{}", call_id, 1).replace("[ARGS]", "")
    habit = {"unusual_form"} if name == "mistral_v3" or not call_id.strip() else set()
    assert_called(name, text, call_id.strip() or None, habit)


@pytest.mark.parametrize("rest", [":abc", ":0:1", ":a.b", ":-1", ":#1", ":", ":123456789", "#1", ':"0"', ":0/1"])
def test_a_name_in_an_id(rest: str) -> None:
    assert_called("kimi_k2", NAMED.replace("{}", rest, 1), f"functions.f{rest}", {"unusual_form"})


@pytest.mark.parametrize("rest", [": 0", ":0 1", ": abc "])
def test_a_name_in_an_id_with_blanks(rest: str) -> None:
    kinds = set() if rest == ": 0" else {"unusual_form"}
    assert_called("kimi_k2", NAMED.replace("{}", rest, 1), f"functions.f{rest}".strip(), kinds)


@pytest.mark.parametrize("name", [*BEHIND_MARKERS, "kimi_k2"])
def test_strict_parsers_take_no_missing_id(name: str) -> None:
    text = BEHIND_MARKERS.get(name, NAMED.replace("{}", ":{}", 1)).replace("{}", "", 1)
    assert toolgram.get_format(name).parse(text, prefix="", strict=True).tool_calls == []


@pytest.mark.parametrize("name", BEHIND_MARKERS)
def test_exports_write_plain_ids(name: str) -> None:
    """A model that is constrained writes letters and digits, whatever a parser reads."""
    text = toolgram.get_format(name).export("gbnf", tools=TOOLS).text
    assert "A-Z" in text
    assert "functions.f:0" not in text


TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
CALL = '{"name": "f", "arguments": {"a": 1}}'
OTHERS = {  # whose examples write calls in another way
    "dots": [("", f"<dots_function_call>{CALL}</dots_function_call>")],
    "k2_horizon": [("", f"<ifm|tool_calls><ifm|tool_call>{CALL}</ifm|tool_call></ifm|tool_calls>")],
    "lfm2": [("", f"<|tool_call_start|>[{CALL}]<|tool_call_end|>")],
    "mistral_v11": [("", f"[TOOL_CALLS][{CALL}]")],
}
MEMBER = re.compile(r'\{\s*(?="(?:tool_)?name")|\{\s*"(?:tool_call_)?id": "[^"]*", *')


def in_tags(name: str) -> list[tuple[str, str]]:
    """A call as JSON in the tags of calls that are written otherwise."""
    literals = toolgram.get_format(name).program.literals
    opening, closing = literals.get("TOOL_CALL"), literals.get("TOOL_CALL_END")
    return [("", f"{opening}{CALL}{closing}")] if opening and closing else []


@pytest.mark.parametrize(
    ("written", "read"), [("1", "1"), ("-1.5", "-1.5"), ("null", None), ("true", None), ('""', None)]
)
@pytest.mark.parametrize("name", [name for name in NAMES if reads_ids(name, True)])
def test_an_id_that_is_no_text_in_json(name: str, written: str, read: str | None) -> None:
    fmt = toolgram.get_format(name)
    tried = 0
    for prefix, text in [*examples(name), *OTHERS.get(name, in_tags(name))]:
        whole = fmt.parse(text, prefix=prefix)
        if not whole.tool_calls:
            continue
        changed, count = MEMBER.subn(f'{{"id": {written}, ', text, count=1)
        tried += count
        for size in CUT_SIZES if count else ():
            _, message = run(fmt, cut(changed, size), prefix=prefix)
            calls = [(call.name, json.loads(call.arguments), call.status) for call in message.tool_calls]
            assert calls == [(call.name, json.loads(call.arguments), call.status) for call in whole.tool_calls], changed
            first = message.tool_calls[0].id
            assert first == read if read is not None else MADE(first)
            told = [anomaly.kind for anomaly in whole.anomalies] + ["unusual_form"] * (written != '""')
            assert sorted(anomaly.kind for anomaly in message.anomalies) == sorted(told)
    assert tried
