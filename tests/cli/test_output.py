"""The command line as its users meet it: messages, events and logs, what is printed where and when, and exit statuses.

Raw model output is shown and never obeyed: colours are ours, and nothing commands the terminal.
"""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

import toolgram
from tests.cli.running import CALL, HOSTILE, OUTPUT, V11, WAIT, Start, line_of, on_terminal, run, write
from toolgram.bulk.json_rows import CONTROLS
from toolgram.cli.terminal import spelled_out


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


ROWS = (
    b'{"id": 1, "out": {"texts": ["hi"]}}\n\nnot json\n[1]\n{"out": {"texts": []}}\n{"out": {"texts": [null]}}\n'
    b'{"out": "\xff"}\n{"out": {"texts": ["caf\\u00e9 \\ud800"]}}\n%b\n{"out.texts.0": "literal key"}'
) % (b"[" * 100_000)


def test_bad_rows_keep_their_place() -> None:
    result = run(*V11, "--jsonl", "out.texts.0", text=ROWS)
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 1
    assert [answer["line"] for answer in answers] == [1, 3, 4, 5, 6, 7, 8, 9, 10]
    assert {answer["line"]: answer.get("error") or answer["message"]["content"] for answer in answers} == {
        1: "hi", 3: "not JSON: Expecting value at character 1",
        4: "a row must be an object, not a list",
        5: "no field 'out.texts.0'; the row has 'out'",
        6: "field 'out.texts.0' is null, not text",
        7: "not UTF-8: byte 10",
        8: "café \ud800", 9: "not JSON that can be read: too deep, or a number too long", 10: "literal key",
    }  # fmt: skip
    assert [answer["line"] for answer in answers if "message" in answer] == [1, 8, 10]
    said = result.stderr.splitlines()
    assert said[0] == "toolgram: 6 of 9 rows could not be read"
    assert "toolgram: 1 x not UTF-8: byte N" in said


def test_rows_are_answered_one_by_one(start: Start) -> None:
    process = start(*V11, "--jsonl", "x")
    for number in (1, 2):
        write(process, b'{"x": "hi"}\n')
        assert json.loads(line_of(process.stdout))["line"] == number


def test_progress_is_for_terminals(start: Start) -> None:
    rows = b'{"x": "hi"}\n' * 3
    assert b"rows" in on_terminal(start, *V11, "--jsonl", "x", text=rows, stream="stderr")
    _, complaint = start(*V11, "--jsonl", "x").communicate(rows, timeout=WAIT)
    assert complaint == b""


def test_characters_that_control_a_terminal() -> None:
    result = run(*V11, "--jsonl", "x", "--keep", "x", text=json.dumps({"x": HOSTILE}))
    assert not CONTROLS.search(result.stdout.removesuffix("\n"))
    assert json.loads(result.stdout)["x"] == HOSTILE


def test_files_to_a_file(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / "logs" / name).write_text(json.dumps({"x": CALL, "id": name}) + "\n[]\n")
    out, errors, report = tmp_path / "out.jsonl", tmp_path / "errors", tmp_path / "report.html"
    arguments = ("--jsonl", "x", tmp_path / "logs", "-o", out, "--keep", "id", "--workers", "2")
    result = run(*V11, *arguments, "--errors", errors, "--report", report)
    assert (result.exit_code, result.stdout) == (1, "")
    answers = [json.loads(line) for line in out.read_text().splitlines()]
    bad = (None, 2, "a row must be an object, not a list")
    assert [(answer.get("id"), answer["line"], answer.get("error")) for answer in answers] == [
        ("a.jsonl", 1, None), bad, ("b.jsonl", 1, None), bad,
    ]  # fmt: skip
    assert len(errors.read_text().splitlines()) == 2
    assert "<meter" in report.read_text()
    said = result.stderr.splitlines()
    assert said[0] == "toolgram: 4 rows, 2 that could not be read; 2 with calls, 0 with repairs"
    assert said[-2:] == ["toolgram: 2 of 4 rows could not be read", "toolgram: 2 x a row must be an object, not a list"]


def test_colour_on_a_terminal(start: Start) -> None:
    shown = on_terminal(start, *V11, "--pretty", text=OUTPUT.encode())
    assert b"\x1b[3;35measy\x1b[0m" in shown
    assert b"\x1b[1;36madd\x1b[0m" in shown
    assert b"[arguments]" not in shown


@pytest.mark.parametrize("extra", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_where_it_is_not_wanted(start: Start, extra: dict[str, str]) -> None:
    shown = on_terminal(start, *V11, "--pretty", text=OUTPUT.encode(), extra=extra)
    assert b"\x1b" not in shown
    assert b"[name]       add" in shown


def test_colour_by_request_in_a_pipe(start: Start) -> None:
    process = start(*V11, "--pretty", extra={"FORCE_COLOR": "1"})
    shown, _ = process.communicate(OUTPUT.encode(), timeout=WAIT)
    assert b"\x1b[1;36madd\x1b[0m" in shown


@pytest.mark.parametrize("mode", [(), ("--events",), ("--pretty",)])
def test_nothing_commands_the_terminal(mode: tuple[str, ...]) -> None:
    shown = run(*V11, *mode, text=f'{HOSTILE}[TOOL_CALLS]add[ARGS]{{"a": "\x9b2J"}}').stdout
    assert CONTROLS.search(shown) is None
    assert "bidi" in shown


def test_colour_is_ours_alone(start: Start) -> None:
    shown = on_terminal(start, *V11, "--pretty", text=HOSTILE.encode())
    assert rb"\x1b[31m bell \x07 title \x1b]0;owned\x07" in shown
    assert [each for each in ("\x1b[31m", "\x1b]", "\u202e", "\x9b") if each.encode() in shown] == []


def test_spelling() -> None:
    assert spelled_out("a\x1bb\x9b\u202e\ud800\U000e0041") == r"a\x1bb\x9b\u202e\ud800\U000e0041"
    assert spelled_out("né 日本語 👩\u200d🚀\t\n") == "né 日本語 👩\u200d🚀\t\n"


def test_a_locale_without_the_characters(start: Start) -> None:
    plain = {"PYTHONIOENCODING": "ascii"}
    shown, complaint = start(*V11, "--pretty", extra=plain).communicate("né\n".encode(), timeout=WAIT)
    assert (shown.splitlines()[-1], complaint) == (rb"[content]    n\xe9\u2424", b"")
    shown, _ = start(*V11, extra=plain).communicate("né".encode(), timeout=WAIT)
    assert json.loads(shown)["content"] == "né"
