"""The page of the last answers: only on this machine, or with the key."""

from __future__ import annotations

from typing import Any

from tests.gateway.servers import Script, gateway_to, get, post
from toolgram.gateway.recording import LONGEST_RECENT, MOST_RECENT

CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1,}}\n</tool_call>'
TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}]
BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "secret question"}], "tools": TOOLS}


def test_each_character_in_the_colour_of_its_event() -> None:
    with gateway_to(Script(["<b>See.", CALL])) as (address, gateway):
        assert "None yet." in get(address).text
        post(f"{address}/v1/chat/completions", json=BODY)
        response = get(address)
        assert response.headers["content-type"].startswith("text/html")
        assert '<span class="content">&lt;b&gt;See.</span>' in response.text
        assert '<span class="name">&#34;add&#34;</span>' in response.text
        assert "<b>repaired_json</b>" in response.text
        assert "secret question" not in response.text
        assert "<script" not in response.text
        assert get(address, headers={"Host": "example.com"}).status_code == 400
        for _ in range(MOST_RECENT + 1):
            post(f"{address}/v1/chat/completions", json=BODY)
        assert len(gateway.recent) == MOST_RECENT


def test_the_key_of_the_page() -> None:
    with gateway_to(Script(), api_key="k\u00e9y") as (address, _):
        assert get(address).status_code == 401
        assert get(address, params={"key": "no"}).status_code == 401
        assert get(address, params={"key": "k\u00e9y"}).status_code == 200


def test_a_long_answer_is_cut() -> None:
    with gateway_to(Script(["x" * LONGEST_RECENT, "y" * 9])) as (address, gateway):
        post(f"{address}/v1/chat/completions", json=BODY)
        (answer,) = gateway.recent
        assert (answer.text, answer.cut) == ("x" * LONGEST_RECENT, True)
        assert "…</pre>" in get(address).text
        assert "y" * 9 not in get(address).text
