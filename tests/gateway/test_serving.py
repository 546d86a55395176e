"""`toolgram serve`: the model from what is at hand, the process from its first line to the signal that ends it, and the
page of the last answers, which is there only on this machine, or with the key.
"""

import base64
import hashlib
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

import toolgram
from tests.cli.running import check_row, rows_beside
from tests.gateway.servers import TEMPLATE, Script, answers, free_port, gateway_to, get, open_stream, post, running
from tests.tables import table
from toolgram.derive import doctor
from toolgram.derive.sources import pretrained_source
from toolgram.gateway.engine import Found
from toolgram.gateway.loading import TemplateFiles, files_of, load_model, not_fitting
from toolgram.showing.answers import LONGEST_RECENT, MOST_RECENT

TOKENS = table(__file__, "tokens")


def test_a_directory_of_model_files_and_one_without_a_template(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({**TOKENS, "chat_template": TEMPLATE}))
    files = files_of(pretrained_source(tmp_path))
    assert files == TemplateFiles(TEMPLATE, "<s>", "<|im_end|>", ("<|im_end|>", "~~odd~~"))
    with pytest.raises(toolgram.ToolgramError, match="chat template"):
        files_of(pretrained_source(tmp_path / "nowhere"))


def test_a_format_that_is_named_goes_before_the_template() -> None:
    model = load_model(Found("openai"), TemplateFiles(TEMPLATE), toolgram.get_format("hermes"), "mine")
    assert (model.name, model.fmt.name) == ("mine", "hermes")
    assert model.takes_tools
    with pytest.raises(toolgram.ToolgramError, match="--model-files"):
        load_model(Found("openai"))
    with pytest.raises(toolgram.ToolgramError, match="template"):
        load_model(Found("openai"), TemplateFiles("{% if %}"))


def test_a_format_that_does_not_fit_the_template(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "format_names", lambda: ["hermes", "llama3_json"])
    found = Found("openai")
    assert not_fitting(load_model(found, TemplateFiles(TEMPLATE), toolgram.get_format("hermes"))) == ""
    said = not_fitting(load_model(found, TemplateFiles(TEMPLATE), toolgram.get_format("llama3_json")))
    assert said.startswith("llama3_json reads ")
    assert "hermes" in said


@pytest.mark.parametrize("row", rows_beside(__file__), ids=lambda row: row["run"])
def test_the_command(row: dict[str, Any], root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_row(row, root, tmp_path, monkeypatch)


CALL = ["<tool_call>\n", '{"name": "add", "arguments": {"a": 1,', ' "b": 2}}\n</tool_call>']
BROKEN = ["<tool_call>\n", '{"name": "add", "arguments": {"a": }}\n</tool_call>']
PARAMETERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
TOOLS: Any = [{"type": "function", "function": {"name": "add", "parameters": PARAMETERS}}]
START = 60  # seconds, on a machine that others use too


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "toolgram", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@contextmanager
def served(script: Script, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address of a gateway before a scripted server, and its process."""
    port = free_port()
    with running(script.app()) as upstream:
        command = [sys.executable, "-m", "toolgram", "serve", "--upstream", upstream, "--port", str(port), *options]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            try:
                until = time.monotonic() + START
                while not answers(f"http://127.0.0.1:{port}"):
                    assert process.poll() is None, process.communicate()[1]
                    assert time.monotonic() < until, "the gateway does not answer"
                    time.sleep(0.1)
                yield f"http://127.0.0.1:{port}", process
            finally:
                process.kill()


def test_one_command_from_start_to_end(tmp_path: Path) -> None:
    script, record = Script(texts=CALL), tmp_path / "raw.jsonl"
    with served(script, "--record", str(record)) as (address, process):
        client = openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)
        messages: Any = [{"role": "user", "content": "What is 1 + 2?"}]
        (choice,) = client.chat.completions.create(model="any", messages=messages, tools=TOOLS).choices
        script.texts = BROKEN
        (failed,) = client.chat.completions.create(model="any", messages=messages, tools=TOOLS).choices
        assert "server" not in get(f"{address}/v1/models").headers
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=30)[1]
    assert choice.finish_reason == "tool_calls"
    (call,) = choice.message.tool_calls or []
    assert call.type == "function"
    assert (call.function.name, json.loads(call.function.arguments)) == ("add", {"a": 1, "b": 2})
    assert (failed.finish_reason, process.returncode) == ("stop", 0)
    assert f"listening on {address}/v1" in said
    assert [each for each in ("What is", "Traceback") if each in said] == []
    # The record is read by the two commands that the help names.
    rows = [json.loads(line)["message"] for line in run("parse", "--jsonl", "output", str(record)).stdout.splitlines()]
    assert [(len(each["tool_calls"]), len(each["malformed"])) for each in rows] == [(1, 0), (0, 1)]
    told = run("explain", str(record))
    assert told.returncode == 1, "a call in it cannot be read"
    assert "malformed" in told.stdout.lower()


@pytest.mark.parametrize(("pause", "ended"), [(0.1, "[DONE]"), (5.0, "shutting down")])
def test_a_signal_lets_a_stream_end(pause: float, ended: str) -> None:
    """Within the grace time by itself, and after it with an error."""
    script = Script(texts=["one ", "two ", "three ", "four"], pause=pause)
    body = {"messages": [{"role": "user", "content": "hi"}], "stream": True}
    with served(script, "--grace", "1") as (address, process):
        with open_stream("POST", f"{address}/v1/chat/completions", json=body) as response:
            lines = response.iter_lines()
            next(lines)
            process.send_signal(signal.SIGTERM)
            rest = [line for line in lines if line]
        said = process.communicate(timeout=30)[1]
    assert ended in rest[-1]
    assert process.returncode == -signal.SIGTERM
    assert "Traceback" not in said


def test_a_port_that_is_taken() -> None:
    """Nothing says that it listens before it does."""
    with running(Script().app()) as upstream:
        taken = run("serve", "--upstream", upstream, "--port", upstream.rpartition(":")[2])
    assert taken.returncode == 1
    assert "listening" not in taken.stderr
    assert "address already in use" in taken.stderr


REPAIRED = '<tool_call>\n{"name": "add", "arguments": {"a": 1,}}\n</tool_call>'
BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "secret question"}], "tools": TOOLS}


def shown(address: str, at: int = 0, what: str = "read", **asked: Any) -> Any:
    """The page gets each answer, the newest first."""
    (group,) = get(f"{address}/answers", **asked).json()["groups"]
    return get(f"{address}/answers/{group['answers'][at]['id']}/{what}", **asked).json()


def test_each_character_has_its_event() -> None:
    with gateway_to(Script(["<b>See.", REPAIRED])) as (address, gateway):
        assert get(f"{address}/answers").json() == {"groups": [{"name": "None yet.", "answers": []}]}
        post(f"{address}/v1/chat/completions", json=BODY)
        events = [event for step in shown(address)["steps"] for event in step["events"]]
        assert "".join(event["source"] for event in events) == "<b>See." + REPAIRED
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
