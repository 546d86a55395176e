"""Messages: a fold over events, kept or not."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.streams import cut, without_ids
from tests.tables import table
from toolgram.anomalies import KINDS
from toolgram.call_ids import CallIds
from toolgram.message import Message
from toolgram.runtime.whole_outputs import whole_message
from toolgram.tools.repeated_keys import KeyWatch, repeated_keys

CALL = '[TOOL_CALLS]f[ARGS]{"a": 1}'
TOOLS = [{"type": "function", "function": {"name": "g", "parameters": {}}}]


def test_a_message_is_a_copy() -> None:
    parser = toolgram.get_format("mistral_v11").parser(tools=TOOLS)
    parser.feed(CALL)
    first = parser.message
    first.tool_calls[0].name = "changed"
    first.anomalies[0].text = "changed"
    assert (parser.message.tool_calls[0].name, parser.message.anomalies[0].text) == ("f", "f")


def test_every_kind_of_anomaly_is_on_the_page() -> None:
    page = (Path(__file__).resolve().parents[1] / "docs" / "anomalies.md").read_text(encoding="utf-8")
    for kind, says in KINDS.items():
        assert f"| [`{kind}`](reference/anomalies/{kind}.md) | {says} |" in page


def test_anomalies_can_be_taken_without_a_message() -> None:
    text = "".join(f'[TOOL_CALLS]f[ARGS]{{"a": {number}}}' for number in range(400))
    for keep in (True, False):
        parser = toolgram.get_format("mistral_v11").parser(tools=TOOLS, keep_message=keep)
        parser.feed("Hello. " + CALL)
        (anomaly,) = parser.take_anomalies()
        assert (anomaly.kind, anomaly.start, anomaly.text, anomaly.call) == ("unknown_tool", 19, "f", 0)
        assert parser.take_anomalies() == []
        parser.feed(text)
        parser.close()
        assert len(parser.take_anomalies()) == (400 if keep else 256)
        with nullcontext() if keep else pytest.raises(toolgram.ToolgramError, match="keep_message"):
            assert parser.message.content == "Hello."


def test_an_id_after_the_arguments_is_kept_beside_the_one_that_was_sent() -> None:
    fmt = toolgram.get_format("mistral_v3")
    calls = fmt.parse('[TOOL_CALLS] [{"name": "f", "arguments": {}, "id": "bbc5b7ede"}]').tool_calls
    assert [(len(call.id), call.model_id) for call in calls] == [(9, "bbc5b7ede")]
    calls = fmt.parse('[TOOL_CALLS] [{"id": "bbc5b7ede", "name": "f", "arguments": {}}]').tool_calls
    assert [(call.id, call.model_id) for call in calls] == [("bbc5b7ede", None)]


@pytest.mark.parametrize(("code", "error", "said"), table(__file__, "what_is_of_another_kind_is_refused"))
def test_what_is_of_another_kind_is_refused(code: str, error: str, said: str) -> None:
    with pytest.raises((TypeError, toolgram.ToolgramError), match=said) as raised:
        eval(code, {"toolgram": toolgram, "fmt": toolgram.get_format("hermes")})
    assert raised.typename == error


@pytest.mark.parametrize("name", ["hermes", "mistral_v11", "qwen3_coder", "lfm2"])
def test_a_delta_may_be_none_and_no_bytes(name: str) -> None:
    """A delta without text is None, one of a subclass is str. Bytes are an error that says what to do."""
    fmt = toolgram.get_format(name)
    text, parser, plain = fmt.example, fmt.parser(), fmt.parser()
    events, wanted = [], []
    for at in range(0, len(text), 3):
        events += parser.feed(None)
        with pytest.raises(TypeError, match="a delta is str, not bytes: decode"):
            parser.feed(text[at : at + 3].encode())  # type: ignore[arg-type]
        events += parser.feed(type("Text", (str,), {})(text[at : at + 3]))
        wanted += plain.feed(text[at : at + 3])
    assert without_ids([*events, *parser.close("stop")]) == without_ids([*wanted, *plain.close("stop")])
    assert {type(event.source) for event in events} == {str}
    with pytest.raises(toolgram.ToolgramError, match="the parser is closed"):
        parser.feed("")


# --- keys that come twice, in arguments that are kept and in those that are not -------------------------------------

SOME_KEYS = st.sampled_from(["a", "b", "c", 'q"', "back\\slash", "é", "{", ""])
VALUES = st.recursive(
    st.one_of(st.integers(), st.sampled_from(["", "a", '"a": 1, ', "\\", "}", "x\ny"])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(SOME_KEYS, inner, max_size=3)),
    max_leaves=8,
)


@given(members=st.lists(st.tuples(SOME_KEYS, VALUES), max_size=6), size=st.integers(1, 9), tight=st.booleans())
def test_fragments_say_what_the_whole_says(members: list[tuple[str, Any]], size: int, tight: bool) -> None:
    between = ("," if tight else " ,\n ", ":" if tight else " : ")
    text = "{" + between[0].join(json.dumps(key) + between[1] + json.dumps(value) for key, value in members) + "}"
    watch = KeyWatch()
    for fragment in cut(text, size):
        watch.append(fragment)
    assert [*watch.repeated] == repeated_keys(text)


def test_an_escape_is_the_character() -> None:
    watch = KeyWatch()
    for fragment in ('{"a": 1, "\\', "u00", '61": 2}'):
        watch.append(fragment)
    assert [*watch.repeated] == ["a"]


OUTPUTS = table(__file__, "outputs")


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("name", OUTPUTS)
def test_it_is_an_anomaly_with_and_without_a_message(name: str, size: int, keep: bool) -> None:
    parser = toolgram.get_format(name.partition(",")[0]).parser(keep_message=keep)
    found = []
    for delta in cut(OUTPUTS[name], size):
        parser.feed(delta)
        found += parser.take_anomalies()
    parser.close()
    found += parser.take_anomalies()
    found = [each for each in found if each.kind != "repaired_json"]
    assert [(each.kind, each.text, each.call) for each in found] == [("repeated_argument", "a", 0)]


def test_a_parser_does_not_read_the_plain_calls_before_a_damaged_one() -> None:
    fmt, read = toolgram.get_format("hermes"), list[str]()
    calls = [f'<tool_call>\n{{"name": "f{at}", "arguments": {{"a": {at}}}}}\n</tool_call>\n' for at in range(30)]

    def reader(text: str, ids: CallIds) -> Message:
        read.append(text)
        return fmt.parse(text, prefix="", finish_reason="length", call_ids=ids)

    text = f"Hm. {''.join(calls)}<tool_call>{{"
    message = whole_message(fmt.program, text, None, lambda: "id", "length", reader)
    assert message == fmt.parse(text, prefix="x", finish_reason="length", call_ids=lambda: "id")
    assert read == [f"Hm. {calls[0]}{calls[29]}<tool_call>{{"]
