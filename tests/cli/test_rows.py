"""The command line as its users meet it: logs, row by row."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.running import CALL, HOSTILE, V11, WAIT, Start, line_of, on_terminal, run, write
from toolgram.bulk.json_rows import CONTROLS

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
        1: "hi",
        3: "not JSON: Expecting value at character 1",
        4: "a row must be an object, not a list",
        5: "no field 'out.texts.0'; the row has 'out'",
        6: "field 'out.texts.0' is null, not text",
        7: "not UTF-8: byte 10",
        8: "café \ud800",
        9: "not JSON that can be read: too deep, or a number too long",
        10: "literal key",
    }
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
    assert said[-2:] == [
        "toolgram: 2 of 4 rows could not be read",
        "toolgram: 2 x a row must be an object, not a list",
    ]
