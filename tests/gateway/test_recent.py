"""The page of the last answers: only on this machine, or with the key."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any

import pytest

from tests.gateway.servers import Script, gateway_to, get, post
from toolgram.showing.answers import LONGEST_RECENT, MOST_RECENT

CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1,}}\n</tool_call>'
TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}]
BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "secret question"}], "tools": TOOLS}


def shown(address: str, at: int = 0, what: str = "read", **asked: Any) -> Any:
    """The page gets each answer, the newest first."""
    (group,) = get(f"{address}/answers", **asked).json()["groups"]
    return get(f"{address}/answers/{group['answers'][at]['id']}/{what}", **asked).json()


def test_each_character_has_its_event() -> None:
    with gateway_to(Script(["<b>See.", CALL])) as (address, gateway):
        assert get(f"{address}/answers").json() == {"groups": [{"name": "None yet.", "answers": []}]}
        post(f"{address}/v1/chat/completions", json=BODY)
        events = [event for step in shown(address)["steps"] for event in step["events"]]
        assert "".join(event["source"] for event in events) == "<b>See." + CALL
        assert {"content", "tool_call_start", "tool_call_delta", "dropped"} <= {event["type"] for event in events}
        assert [each["kind"] for each in shown(address)["anomalies"]] == ["repaired_json"]
        assert shown(address, what="explain")["verdict"]
        assert "secret question" not in get(f"{address}/answers").text
        for _ in range(MOST_RECENT + 1):
            post(f"{address}/v1/chat/completions", json=BODY)
        assert len(gateway.recent) == MOST_RECENT
        numbers = [each["id"] for each in get(f"{address}/answers").json()["groups"][0]["answers"]]
        assert numbers == sorted(numbers, reverse=True)
        assert get(f"{address}/answers/{numbers[0] + 1}/read").status_code == 404
        assert get(f"{address}/answers/{numbers[0]}/other").status_code == 404


def test_the_page_is_one_document() -> None:
    """Its policy lets no script run but its own, and it asks nobody but the gateway."""
    with gateway_to(Script()) as (address, _):
        response = get(address)
        assert response.headers["content-type"].startswith("text/html")
        (script,) = re.findall(r'<script type="module">(.*?)</script>', response.text, re.S)
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"script-src 'sha256-{digest}'; connect-src 'self'" in response.text
        assert not re.findall(r'(?:src|href)="(?!data:)', response.text)
        assert get(address, headers={"Host": "example.com"}).status_code == 400
        assert get(f"{address}/answers", headers={"Host": "example.com"}).status_code == 400


@pytest.mark.parametrize("path", ["", "/answers", "/answers/1/read"])
def test_the_key_of_the_page(path: str) -> None:
    with gateway_to(Script(["x"]), api_key="k\u00e9y") as (address, _):
        assert get(address + path).status_code == 401
        assert get(address + path, params={"key": "no"}).status_code == 401
        assert get(address + path, params={"key": "k\u00e9y"}).status_code in (200, 404)


def test_a_long_answer_is_cut() -> None:
    with gateway_to(Script(["x" * LONGEST_RECENT, "y" * 9])) as (address, gateway):
        post(f"{address}/v1/chat/completions", json=BODY)
        (answer,) = gateway.recent
        assert (answer.text, answer.cut) == ("x" * LONGEST_RECENT, True)
        (row,) = get(f"{address}/answers").json()["groups"][0]["answers"]
        assert row["said"] == [["kept", "the first 20,000 characters"]]
        assert shown(address)["message"]["content"] == "x" * LONGEST_RECENT
