"""Every stream ends with one final event, whatever the server does, and every whole answer is one or an error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.gateway import servers
from tests.gateway.faults import FAULTS, Fault, rows
from tests.gateway.faulty import faulty_server
from tests.gateway.servers import CHAT, MESSAGES, RESPONSES, TEMPLATE, application_for, get, open_stream, post, running
from toolgram.gateway.answering import Limits
from toolgram.gateway.loading import TemplateFiles
from toolgram.gateway.serving import Settings

BODIES = {**servers.BODIES, CHAT: {**servers.BODIES[CHAT], "stream_options": {"include_usage": True}}}
PATIENT, IMPATIENT = Limits(idle=30, seconds=30), Limits(idle=0.3, seconds=3)
FINAL = {
    RESPONSES: {"response.completed", "response.incomplete", "response.failed"},
    MESSAGES: {"message_stop", "error"},
}


@pytest.fixture(scope="module")
def address_for() -> Iterator[Callable[[Fault], str]]:
    """What plays a fault, and gives the address of the gateway before it: of each kind one that waits, and one that
    does not."""
    with ExitStack() as stack:
        server = stack.enter_context(faulty_server())

        @cache
        def gateway(kind: str, waits: bool) -> str:
            files, limits = TemplateFiles(TEMPLATE, "", "<|im_end|>"), IMPATIENT if waits else PATIENT
            settings = Settings(server.address, kind, files, limits=limits)
            app, _ = asyncio.run(application_for(settings))
            return stack.enter_context(running(app))

        def play(fault: Fault) -> str:
            server.steps = fault.steps
            return gateway(fault.kind, fault.waits)

        yield play


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.what for fault in FAULTS])
def test_a_fault(address_for: Callable[[Fault], str], fault: Fault) -> None:
    address = address_for(fault)
    with ThreadPoolExecutor(6) as pool:
        streams = [pool.submit(a_stream, address, path, fault) for path in BODIES]
        wholes = [pool.submit(a_whole_answer, address, path, fault) for path in BODIES]
        for each in [*streams, *wholes]:
            each.result()
    assert "toolgram_answers_in_flight 0.0" in get(f"{address}/metrics").text


def a_whole_answer(address: str, path: str, fault: Fault) -> None:
    response = post(address + path, json=BODIES[path])
    said = response.json()
    if fault.said:
        assert response.status_code == fault.status, said
        assert fault.said in said["error"]["message"]
        return
    assert response.status_code == 200, said
    assert text_of_whole(path, said) == fault.text
    counted = said["usage"].get("completion_tokens", said["usage"].get("output_tokens"))
    assert counted == fault.usage


def a_stream(address: str, path: str, fault: Fault) -> None:
    """The invariant: after the last event nothing is open, and the last event says how it ended."""
    with open_stream("POST", address + path, json={**BODIES[path], "stream": True}) as response:
        body = response.read().decode()
    if response.status_code != 200:
        assert fault.said in json.loads(body)["error"]["message"]
        assert response.status_code == fault.status
        return
    assert body.endswith("\n\n")
    sent = [line.removeprefix("data: ") for line in body.splitlines() if line.startswith("data: ")]
    failed = ends_once(path, sent)
    assert fault.said in failed
    if not fault.said:
        assert not failed
        assert servers.text_of_stream(json.loads(each) for each in sent if each != "[DONE]") == fault.text


def ends_once(path: str, sent: list[str]) -> str:
    """Assert that a stream has one final event, which is its last. The error in it, or ""."""
    said = [json.loads(each) for each in sent if each != "[DONE]"]
    if path == CHAT:
        errors = [each for each in said if "error" in each]
        assert (sent[-1] == "[DONE]") != (bool(errors) and errors[-1] == said[-1])
        assert sent.count("[DONE]") + len(errors) == 1
        reasons = [choice["finish_reason"] for each in said for choice in each.get("choices", ())]
        assert (sum(reason is not None for reason in reasons) == 1) or errors
        return str(errors[0]["error"]["message"]) if errors else ""
    kinds = [each["type"] for each in said]
    assert [kind for kind in kinds if kind in FINAL[path]] == kinds[-1:]
    last = said[-1]
    if path == RESPONSES:
        assert [each["sequence_number"] for each in said] == list(range(len(said)))
        return str(last["response"]["error"]["message"]) if last["type"] == "response.failed" else ""
    assert last["type"] == "error" or kinds.count("content_block_start") == kinds.count("content_block_stop")
    return str(last["error"]["message"]) if last["type"] == "error" else ""


def text_of_whole(path: str, said: dict[str, Any]) -> str:
    if path == CHAT:
        return said["choices"][0]["message"]["content"] or ""
    items = said["output"] if path == RESPONSES else [{"content": said["content"]}]
    return "".join(part["text"] for item in items for part in item["content"])


def test_the_matrix_is_published() -> None:
    assert len(FAULTS) >= 32
    published = (Path(__file__).parents[2] / "docs/faults.md").read_text(encoding="utf-8")
    assert "\n".join(rows()) in published
