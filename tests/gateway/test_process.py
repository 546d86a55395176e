"""`toolgram serve` as a process: what a reader types, from its first line to the signal that ends it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.servers import Script, answers, free_port, open_stream, running

pytest.importorskip("openai", reason="the official client is part of the extra dev")

import openai

CALL = ["<tool_call>\n", '{"name": "add", "arguments": {"a": 1,', ' "b": 2}}\n</tool_call>']
BROKEN = ["<tool_call>\n", '{"name": "add", "arguments": {"a": }}\n</tool_call>']
PARAMETERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
TOOLS: Any = [{"type": "function", "function": {"name": "add", "parameters": PARAMETERS}}]
START = 60  # seconds, on a machine that others use too


def toolgram(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "toolgram", *arguments]


def wait_for(address: str, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + START
    while not answers(address):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < until, "the gateway does not answer"
        time.sleep(0.1)


def test_one_command_from_start_to_end(tmp_path: Path) -> None:
    script, record, port = Script(texts=CALL), tmp_path / "raw.jsonl", free_port()
    with running(script.app()) as upstream:
        command = toolgram("serve", "--upstream", upstream, "--port", str(port), "--record", str(record))
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            wait_for(f"http://127.0.0.1:{port}", process)
            client = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0)
            messages: Any = [{"role": "user", "content": "What is 1 + 2?"}]
            (choice,) = client.chat.completions.create(model="any", messages=messages, tools=TOOLS).choices
            script.texts = BROKEN
            (failed,) = client.chat.completions.create(model="any", messages=messages, tools=TOOLS).choices
        finally:
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=30)[1]
    assert choice.finish_reason == "tool_calls"
    (call,) = choice.message.tool_calls or []
    assert call.type == "function"
    assert (call.function.name, json.loads(call.function.arguments)) == ("add", {"a": 1, "b": 2})
    assert failed.finish_reason == "stop"
    assert process.returncode == 0
    assert f"listening on http://127.0.0.1:{port}/v1" in said
    assert "What is" not in said
    assert "Traceback" not in said
    the_record_is_read(record)


def the_record_is_read(record: Path) -> None:
    """By the two commands that the help names."""
    run = subprocess.run(
        toolgram("parse", "--jsonl", "output", str(record)),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    messages = [json.loads(line)["message"] for line in run.stdout.splitlines()]
    assert [(len(each["tool_calls"]), len(each["malformed"])) for each in messages] == [(1, 0), (0, 1)]
    raw = record.with_name("failed.txt")
    raw.write_text(json.loads(record.read_text(encoding="utf-8").splitlines()[1])["output"], encoding="utf-8")
    told = subprocess.run(
        toolgram("explain", "--format", "hermes", str(raw)), capture_output=True, text=True, check=False
    )
    assert told.returncode == 1, "a call in it cannot be read"
    assert "malformed" in told.stdout.lower()


@pytest.mark.parametrize(("pause", "ended"), [(0.1, "[DONE]"), (5.0, "shutting down")])
def test_a_signal_lets_a_stream_end(pause: float, ended: str) -> None:
    """Within the grace time by itself, and after it with an error."""
    script, port = Script(texts=["one ", "two ", "three ", "four"], pause=pause), free_port()
    body = {"messages": [{"role": "user", "content": "hi"}], "stream": True}
    with running(script.app()) as upstream:
        command = toolgram("serve", "--upstream", upstream, "--port", str(port), "--grace", "1")
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            wait_for(f"http://127.0.0.1:{port}", process)
            with open_stream("POST", f"http://127.0.0.1:{port}/v1/chat/completions", json=body) as response:
                lines = response.iter_lines()
                next(lines)
                process.send_signal(signal.SIGTERM)
                rest = [line for line in lines if line]
            process.wait(timeout=30)
        finally:
            process.kill()
            said = process.communicate(timeout=30)[1]
    assert ended in rest[-1]
    assert process.returncode == -signal.SIGTERM
    assert "Traceback" not in said


def test_a_port_that_is_taken() -> None:
    """Nothing says that it listens before it does."""
    with running(Script().app()) as upstream:
        port = upstream.rpartition(":")[2]
        command = toolgram("serve", "--upstream", upstream, "--port", port)
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert run.returncode == 1
    assert "listening" not in run.stderr
    assert "address already in use" in run.stderr
