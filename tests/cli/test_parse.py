"""The command line as its users meet it: what is printed where, when, and with which exit status."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

import toolgram
from tests.cli.running import OUTPUT, V11, WAIT, Start, line_of, on_terminal, run, write


@pytest.mark.parametrize("options", [(), *(("--chunk", size) for size in ("1", "2", "7", "1000"))])
def test_the_message_is_that_of_the_library(options: tuple[str, ...]) -> None:
    message = json.loads(run(*V11, *options, text=OUTPUT).stdout)
    expected = toolgram.get_format("mistral_v11").parse(OUTPUT).to_dict()
    for either in (message, expected):
        for call in either["tool_calls"]:
            call.pop("id")
    assert message == expected


def test_a_person_gets_indentation(start: Start) -> None:
    shown = on_terminal(start, *V11, text=OUTPUT.encode())
    assert b'{\r\n  "content": "Adding."' in shown
    assert json.loads(shown)["reasoning"] == "easy"


def test_the_sources_of_events_give_the_input_back() -> None:
    result = run(*V11, "--events", "--chunk", "5", text=OUTPUT)
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 0
    assert "".join(event["source"] for event in events) == OUTPUT
    assert {"reasoning", "content", "dropped", "tool_call_start", "tool_call_delta", "tool_call_end"} == {
        event["type"] for event in events
    }


def test_events_come_while_the_model_writes(start: Start) -> None:
    process = start(*V11, "--events")
    seen: list[dict[str, Any]] = []
    for written, awaited in (
        (b"Good mor", ("content", "Good mor")),
        (b"ning caf\xc3", ("content", "ning caf")),
        (b"\xa9.", ("content", "é.")),
        (b'[TOOL_CALLS]add[ARGS]{"', ("tool_call_delta", '"')),
        (b'a": 12', ("tool_call_delta", 'a": 12')),
    ):
        write(process, written)
        while not (seen and _payload(seen[-1], awaited[0]).endswith(awaited[1])):
            seen.append(json.loads(line_of(process.stdout)))
    rest, complaint = process.communicate(timeout=WAIT)
    assert (process.returncode, complaint) == (0, b"")
    assert [event["name"] for event in seen if event["type"] == "tool_call_start"] == ["add"]
    assert json.loads(rest.splitlines()[-1])["status"] == "truncated"


def _payload(event: dict[str, Any], kind: str) -> str:
    if event["type"] != kind:
        return ""
    return str(event.get("text") or event.get("name") or event.get("arguments") or "")


def test_reader_that_goes_away(start: Start) -> None:
    process = start(*V11, "--events", "--chunk", "1")
    write(process, b"word " * 50)
    line_of(process.stdout)
    process.stdout.close()
    process.stdout = None
    _, complaint = process.communicate(b"word " * 50_000, timeout=WAIT)
    assert (process.returncode, complaint) == (141, b"")


def test_ctrl_c(start: Start) -> None:
    # tests that run in the background of a shell ignore the signal, and so would what they start
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = start(*V11, "--events")
    finally:
        signal.signal(signal.SIGINT, before)
    write(process, b"word")
    line_of(process.stdout)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=WAIT) == 130
    assert process.stderr.read() == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_full_disk_is_said(start: Start) -> None:
    with open("/dev/full", "wb") as full:
        process = start(*V11, stdout=full)
        _, complaint = process.communicate(b"text", timeout=WAIT)
    assert process.returncode == 1
    assert complaint == b"toolgram: cannot write: No space left on device (see reference/errors/BadFile/)\n"
