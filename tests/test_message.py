"""Messages: a fold over events, kept or not."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

import toolgram
from tests.streams import without_ids
from toolgram.anomalies import KINDS

CALL = '[TOOL_CALLS]f[ARGS]{"a": 1}'
TOOLS = [{"type": "function", "function": {"name": "g", "parameters": {}}}]


def test_a_message_is_a_copy() -> None:
    parser = toolgram.get_format("mistral_v11").parser(tools=TOOLS)
    parser.feed(CALL)
    first = parser.message
    first.tool_calls[0].name = "changed"
    first.anomalies[0].text = "changed"
    assert parser.message.tool_calls[0].name == "f"
    assert parser.message.anomalies[0].text == "f"


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


@pytest.mark.parametrize("name", ["hermes", "mistral_v11", "qwen3_coder", "lfm2"])
def test_a_delta_may_be_none_and_no_bytes(name: str) -> None:
    """Servers send a delta without text as None. Bytes are an error that says what to do, and change nothing."""
    fmt = toolgram.get_format(name)
    text = fmt.example
    parser, plain = fmt.parser(), fmt.parser()
    events, wanted = [], []
    for at in range(0, len(text), 3):
        events += parser.feed(None)
        with pytest.raises(TypeError, match="a delta is str, not bytes: decode"):
            parser.feed(text[at : at + 3].encode())  # type: ignore[arg-type]
        events += parser.feed(text[at : at + 3])
        wanted += plain.feed(text[at : at + 3])
    assert without_ids([*events, *parser.close("stop")]) == without_ids([*wanted, *plain.close("stop")])
