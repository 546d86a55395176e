"""What goes wrong in servers, clients and between them: streams end, errors say what happened, nothing stays open.

Whatever the server does, every stream ends with one final event, and every whole answer is one or an error.
"""

import asyncio
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest
from hypothesis import settings

from tests.cli.running import run
from tests.gateway.faults import FAULTS, Fault, faulty_server, rows
from tests.gateway.servers import (
    BODIES,
    CHAT,
    MESSAGES,
    RESPONSES,
    TEMPLATE,
    Script,
    gateway_to,
    gateways_before,
    get,
    open_stream,
    post,
    running,
    text_of_stream,
)
from toolgram.errors import ToolgramError
from toolgram.gateway.answering import Limits, Turn
from toolgram.gateway.engine import NoServer
from toolgram.gateway.loading import TemplateFiles
from toolgram.gateway.observing import _Lines
from toolgram.gateway.recording import Recorder
from toolgram.gateway.serving import Settings, application, is_loopback


def stream_of(address: str, path: str) -> list[dict[str, Any]]:
    """The data of a streamed answer, which ends by itself."""
    with open_stream("POST", address + path, json={**BODIES[path], "stream": True}, timeout=60) as response:
        assert response.status_code == 200, response.read()
        lines = [line.removeprefix("data: ") for line in response.iter_lines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def test_the_clients_hear_of_it() -> None:
    with (
        gateway_to(Script(texts=["some ", "text"], ends=False)) as (address, _),
        openai.OpenAI(base_url=f"{address}/v1", api_key="x", max_retries=0) as chat,
        anthropic.Anthropic(base_url=address, api_key="x", max_retries=0) as other,
    ):
        text = ""
        with pytest.raises(openai.APIError, match="broke off"):  # noqa: PT012
            for chunk in chat.chat.completions.create(model="m", stream=True, **BODIES[CHAT]):
                text += chunk.choices[0].delta.content or ""
        assert text == "some text", "nothing of what came is lost"
        with pytest.raises(anthropic.APIError, match="broke off"):
            for _ in other.messages.create(model="m", stream=True, **BODIES[MESSAGES]):
                pass


def test_a_server_that_is_gone() -> None:
    with gateway_to(Script()) as (address, gateway):
        gateway.client.base_url = httpx.URL("http://127.0.0.1:9")
        for path in BODIES:
            for streamed in (False, True):
                response = post(address + path, json={**BODIES[path], "stream": streamed})
                assert response.status_code == 502
                assert "http://127.0.0.1:9 does not answer" in response.json()["error"]["message"]
        health = get(f"{address}/health")
        assert (health.status_code, health.json()["status"]) == (503, "the server does not answer")


@pytest.mark.parametrize(
    ("client", "path"), [*(("leaves", path) for path in BODIES), ("does not wait", CHAT), ("does not read", CHAT)]
)
def test_the_server_sees_that_a_client_has_gone(client: str, path: str) -> None:
    """After the first bytes of a stream, before a whole answer is there, or while a stream is open."""
    script = Script(texts=["word "] * 10_000, pause=0.01)
    if client == "does not read":
        script = Script(texts=["word " * 2_000] * 5_000)
    with gateway_to(script, limits=Limits(slow=0.5)) as (address, _):
        if client == "does not wait":
            with pytest.raises(httpx.TimeoutException):
                post(address + path, json=BODIES[path], timeout=2)  # by then the server is asked
        else:
            with open_stream("POST", address + path, json={**BODIES[path], "stream": True}) as response:
                assert next(response.iter_bytes()) if client == "leaves" else script.hung_up.wait(30)
        assert script.hung_up.wait(30)
        _wait_for(lambda: "toolgram_answers_in_flight 0.0" in get(f"{address}/metrics").text)


def _wait_for(condition: Any) -> None:
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.05)


STREAMS = 2_000 if settings().max_examples > 99 else 200  # all of them in make test-deep


def test_many_streams_two_hundred_at_once() -> None:
    script = Script(texts=["one ", "two ", "three"], together=200)

    async def run(address: str) -> list[str]:
        limits, at_once = httpx.Limits(max_connections=None), asyncio.Semaphore(200)
        async with httpx.AsyncClient(limits=limits, timeout=120) as client:

            async def one(number: int) -> str:
                path = (CHAT, RESPONSES, MESSAGES)[number % 3]
                body = {**BODIES[path], "stream": True}
                async with at_once, client.stream("POST", address + path, json=body) as response:
                    lines = [line async for line in response.aiter_lines() if line.startswith("data: {")]
                return text_of_stream(json.loads(line[6:]) for line in lines)

            return await asyncio.gather(*(one(number) for number in range(STREAMS)))

    with gateway_to(script) as (address, _):
        assert asyncio.run(run(address)) == ["one two three"] * STREAMS
    assert script.most_open == 200


def test_too_many_at_once() -> None:
    script = Script(texts=["word "] * 100, pause=0.05)
    with gateway_to(script, limits=Limits(concurrent=1)) as (address, _):
        with open_stream("POST", address + CHAT, json={**BODIES[CHAT], "stream": True}) as response:
            pieces = response.iter_bytes()  # kept: the connection is closed with it
            next(pieces)
            full = post(address + MESSAGES, json=BODIES[MESSAGES])
            assert full.status_code == 429
            assert full.json()["error"]["type"] == "rate_limit_error"
            assert full.headers["retry-after"]
        script.texts = ["word"]
        _wait_for(lambda: post(address + CHAT, json=BODIES[CHAT]).status_code == 200)


def test_nothing_is_recorded_unless_asked(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with gateway_to(Script(texts=["an answer"])) as (address, _):
        post(address + CHAT, json=BODIES[CHAT])
    assert "hi" not in capfd.readouterr().err
    path, template = tmp_path / "raw.jsonl", TEMPLATE.replace("<tool_call>", "<act>").replace("</tool_call>", "</act>")
    call = '<act>\n{"name": "f", "arguments": {"a": 1}}\n</act>'
    with gateway_to(Script(texts=["an ", call]), record=str(path), files=TemplateFiles(template)) as (address, _):
        post(address + CHAT, json=BODIES[CHAT])
        stream_of(address, MESSAGES)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["output"] for row in rows] == [f"an {call}"] * 2
    assert path.stat().st_mode & 0o077 == 0
    (derived,) = {row["format"] for row in rows}  # it does not ship, and is beside the record
    assert derived.startswith("derived_")
    assert run("parse", "--jsonl", "output", path).stdout.count('"name":"f"') == 2
    assert "1 call (f)" in run("explain", path).stdout
    shutil.rmtree(f"{path}.formats")
    assert f"unknown format '{derived}'; one that does not ship" in run("parse", "--jsonl", "output", path).stdout


def test_a_line_for_each_answer(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "toolgram.gateway")
    with gateway_to(Script(texts=["</think>a secret answer"])) as (address, _):
        post(address + CHAT, json=BODIES[CHAT])
        stream_of(address, MESSAGES)
        stream_of(address, RESPONSES)
    records = [record for record in caplog.records if record.name == "toolgram.gateway"]
    fields: list[dict[str, Any]] = [record.__dict__["fields"] for record in records]
    assert [each["api"] for each in fields] == ["chat", "messages", "responses"]
    assert len({each["id"] for each in fields}) == 3
    assert (fields[0]["model"], fields[0]["format"], fields[0]["finish"]) == ("tiny.gguf", "hermes", "stop")
    text, said = (_Lines(as_json).format(records[0]) for as_json in (False, True))
    assert "calls=0 malformed=0 repairs=1" in text
    assert json.loads(said)["tokens"] == 1
    assert "secret" not in text + said


def test_a_full_disk_harms_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    with gateway_to(Script(texts=["an answer"]), record="/dev/full") as (address, _):
        for _ in range(2):
            assert post(address + CHAT, json=BODIES[CHAT]).status_code == 200
        assert stream_of(address, MESSAGES)[-1]["type"] == "message_stop"
        assert "toolgram_records_lost 3.0" in get(f"{address}/metrics").text
    assert [record.levelname for record in caplog.records if "--record" in record.message] == ["WARNING"]


def test_a_row_of_which_a_part_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends before the next row begins, so that only it is lost."""
    path, write, room = tmp_path / "raw.jsonl", os.write, [5, 10_000]
    record = Recorder(str(path))
    monkeypatch.setattr(os, "write", lambda handle, line: write(handle, line[: room.pop(0)]))
    for number in range(2):
        record({"output": number})
    assert record.lost == 1
    assert path.read_text().splitlines() == ['{"out', '{"output": 1}']


def test_a_mistake_of_the_gateway_ends_a_stream(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Turn, "_note", lambda *_: 1 / 0)
    with gateway_to(Script()) as (address, _):
        for path in BODIES:
            last = stream_of(address, path)[-1]
            assert "internal error: ZeroDivisionError" in last.get("response", last)["error"]["message"]
            assert post(address + path, json=BODIES[path]).status_code == 500
    logged = [record for record in caplog.records if record.name == "toolgram.gateway" and record.exc_info]
    assert len(logged) >= len(BODIES)


def test_what_cannot_begin() -> None:
    for given, said in (
        (Settings("file:///etc/passwd", wait=0), "is an address"),
        (Settings("http://127.0.0.1:9", "mainframe", wait=0), "unknown kind"),
    ):
        with pytest.raises(ToolgramError, match=said):
            asyncio.run(application(given))
    assert [is_loopback(host) for host in ("localhost", "::1", "example.com")] == [True, True, False]
    with pytest.raises(ToolgramError, match="--model-files"), gateway_to(Script(kind="openai")):
        pass
    with pytest.raises(NoServer, match="loading its model"), gateway_to(Script(loading=True)):
        pass
    with running(Script().app()) as upstream, pytest.raises(ToolgramError, match="two models have one name"):
        asyncio.run(application(Settings(upstream, name="a"), Settings(upstream, name="a")))


ASKED = {**BODIES, CHAT: {**BODIES[CHAT], "stream_options": {"include_usage": True}}}
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
            return stack.enter_context(gateways_before(settings))[0]

        def play(fault: Fault) -> str:
            server.steps = fault.steps
            return gateway(fault.kind, fault.waits)

        yield play


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.what for fault in FAULTS])
def test_a_fault(address_for: Callable[[Fault], str], fault: Fault) -> None:
    address = address_for(fault)
    with ThreadPoolExecutor(6) as pool:
        streams = [pool.submit(a_stream, address, path, fault) for path in ASKED]
        wholes = [pool.submit(a_whole_answer, address, path, fault) for path in ASKED]
        for each in [*streams, *wholes]:
            each.result()
    assert "toolgram_answers_in_flight 0.0" in get(f"{address}/metrics").text


def a_whole_answer(address: str, path: str, fault: Fault) -> None:
    response = post(address + path, json=ASKED[path])
    said = response.json()
    if fault.said:
        assert response.status_code == fault.status, said
        assert fault.said in said["error"]["message"]
        return
    assert response.status_code == 200, said
    if path == CHAT:
        texts = [said["choices"][0]["message"]["content"] or ""]
    else:
        texts = [part["text"] for item in said.get("output", [said]) for part in item["content"]]
    assert "".join(texts) == fault.text
    counted = said["usage"].get("completion_tokens", said["usage"].get("output_tokens"))
    assert counted == fault.usage


def a_stream(address: str, path: str, fault: Fault) -> None:
    """The invariant: after the last event nothing is open, and the last event says how it ended."""
    with open_stream("POST", address + path, json={**ASKED[path], "stream": True}) as response:
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
        assert text_of_stream(json.loads(each) for each in sent if each != "[DONE]") == fault.text


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


def test_the_matrix_is_published() -> None:
    assert len(FAULTS) >= 32
    published = (Path(__file__).parents[2] / "docs/faults.md").read_text(encoding="utf-8")
    assert "\n".join(rows()) in published
