"""What models write by mistake, through the gateway: a client has what `parse` has, whole and streamed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import toolgram
from tests.adapters import clients
from tests.gateway.servers import TEMPLATE, Script, gateway_to, open_stream, post
from toolgram.anomalies import KINDS
from toolgram.gateway.loading import TemplateFiles

TOOLS = [
    {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}},
    {"type": "function", "function": {"name": "g", "parameters": {"type": "object", "properties": {}}}},
]
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
# An output for each kind of what a client can be told, with the server's finish reason; the suite has the others.
OUTPUTS = {
    "clean": (CALL, "stop"),
    "text around calls": (f"One {CALL} two {CALL} three", "stop"),
    "unclosed_envelope": ('<tool_call>\n{"name": "f", "arguments": {"a": 1}}', "stop"),
    "repaired_json": ('<tool_call>\n{"name": "f", "arguments": {\'a\': True, "b": 1,}}\n</tool_call>', "stop"),
    "malformed": (f"See {CALL.replace('1', ']')} then", "stop"),
    "malformed beside a call": (CALL + CALL.replace("1", "]"), "stop"),
    "truncated": (CALL[:45], "length"),
    "truncated after a call": (CALL + CALL[:45], "length"),
    "unopened_reasoning": (f"thought\n</think>\n\n{CALL}", "stop"),
    "reasoning that does not end": ("<think>\nso and so", "length"),
    "unknown_tool": (CALL.replace('"f"', '"h"'), "stop"),
    "nothing": ("", "stop"),
}
SCRIPT = Script(kind="openai")
ASKS: dict[str, dict[str, Any]] = {
    "chat": {"messages": [{"role": "user", "content": "x"}], "tools": TOOLS},
    "responses": {"input": "x", "tools": [{"type": "function", **each["function"]} for each in TOOLS]},  # type: ignore[dict-item]
    "messages": {"messages": [{"role": "user", "content": "x"}], "max_tokens": 9, "tools": TOOLS},
}
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[str, toolgram.Format]]:
    with gateway_to(SCRIPT, files=TemplateFiles(TEMPLATE, "", "<|im_end|>")) as (address, gateway):
        yield address, gateway.model.fmt


def streamed(address: str, api: str) -> list[dict[str, Any]]:
    with open_stream("POST", address + PATHS[api], json={**ASKS[api], "stream": True}, timeout=60) as response:
        lines = [line[6:] for line in response.iter_lines() if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("size", [1, 1_000])
@pytest.mark.parametrize("case", OUTPUTS)
def test_a_client_has_what_parse_has(served: tuple[str, toolgram.Format], case: str, size: int) -> None:
    address, fmt = served
    text, reason = OUTPUTS[case]
    SCRIPT.texts = [text[at : at + size] for at in range(0, len(text), size)]
    SCRIPT.reason = reason
    message = fmt.parse(text, tools=TOOLS, prefix="", finish_reason=reason)
    kind = case.split()[0]
    assert kind not in KINDS or kind in {anomaly.kind for anomaly in message.anomalies}, "the case is what it is called"
    clean = not message.malformed and all(call.status == "complete" for call in message.tool_calls)
    for api, whole, stream in (
        ("chat", clients.chat_whole, clients.chat_stream),
        ("responses", clients.responses_whole, clients.responses_stream),
        ("messages", clients.anthropic_whole, clients.anthropic_stream),
    ):
        answer = post(address + PATHS[api], json=ASKS[api], timeout=60).json()
        found = whole(answer)
        if api != "messages" or clean:
            assert found.content == (message.content or "")
            assert [call[1] for call in found.calls] == [call.name for call in message.tool_calls]
        assert found.reasoning == (message.reasoning or "")
        live = stream(streamed(address, api))
        if clean:
            assert (live.content, live.reasoning, live.reason) == (found.content, found.reasoning, found.reason)
            assert [call[1:] for call in live.calls] == [call[1:] for call in found.calls]
        else:
            assert live.reason not in ("tool_calls", "tool_use")
