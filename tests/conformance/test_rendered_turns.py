"""What the templates of real models write for an assistant's turn, read back by the shipped format of the model.

Strategy: each row is a turn that a template rendered, with the message that went into it and the generation prompt
before it. All come out exact, whole and in pieces; nothing is trimmed before it is compared.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolgram
from tests.streams import CUT_SIZES, SHARED, check_events, cut, merged, run

DATA = SHARED / "data" / "roundtrip.jsonl"
TOOLS = SHARED / "data" / "tools.json"
FORMATS = {
    "openai-gpt-oss-120b.jinja": "gpt_oss",
    "meetkai-functionary-medium-v3.2.jinja": "functionary_v3_2",
    "ibm-granite-granite-3.3-2B-Instruct.jinja": "granite_3",
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use.jinja": "hermes",
    "Qwen-QwQ-32B.jinja": "hermes",
}
pytestmark = pytest.mark.skipif(
    not (DATA.exists() and TOOLS.exists()),
    reason="needs ../shared/data/roundtrip.jsonl and ../shared/data/tools.json, which are absent",
)


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    found = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines() if line]
    return [row for row in found if row["template"] in FORMATS]


@pytest.fixture(scope="module")
def tools() -> list[list[dict[str, Any]]]:
    found: list[list[dict[str, Any]]] = json.loads(TOOLS.read_text(encoding="utf-8"))
    return found


def shown(message: toolgram.Message) -> dict[str, Any]:
    assert {call.status for call in message.tool_calls} <= {"complete"}
    return {
        "content": message.content or "",
        "reasoning": message.reasoning or "",
        "tool_calls": [{"name": call.name, "arguments": json.loads(call.arguments)} for call in message.tool_calls],
    }


@pytest.mark.parametrize("template", FORMATS)
def test_every_rendered_turn_is_read_back_exactly(
    template: str, rows: list[dict[str, Any]], tools: list[list[dict[str, Any]]]
) -> None:
    fmt = toolgram.get_format(FORMATS[template])
    of_template = [row for row in rows if row["template"] == template]
    assert len(of_template) > 20
    for row in of_template:
        text, prefix, given = row["output"], row["prefix"], tools[row["tools"]]
        whole, message = run(fmt, [text], tools=given, prefix=prefix)
        check_events(whole, text)
        assert shown(message) == row["expected"], row["case"]
        assert [anomaly.kind for anomaly in message.anomalies if anomaly.kind != "unknown_tool"] == [], row["case"]
        for size in CUT_SIZES[1:]:
            events, streamed = run(fmt, cut(text, size), tools=given, prefix=prefix)
            assert merged(events) == merged(whole), f"{row['case']}, cut every {size}"
            assert streamed == message
