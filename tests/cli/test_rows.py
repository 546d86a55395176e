"""The command line as its users meet it: logs, row by row."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.cli.running import CALL, HOSTILE, V11, WAIT, line_of, on_terminal, run
from toolgram.bulk.json_rows import CONTROLS


class TestRows:
    ROWS = b"".join(
        (
            b'{"id": 1, "out": {"texts": ["hi"]}}\n',
            b"\n",
            b"not json\n",
            b"[1]\n",
            b'{"out": {"texts": []}}\n',
            b'{"out": {"texts": [null]}}\n',
            b'{"out": "\xff"}\n',
            b'{"out": {"texts": ["caf\\u00e9 \\ud800"]}}\n',
            b"[" * 100_000 + b"\n",
            b'{"out.texts.0": "literal key"}',
        )
    )

    def test_bad_rows_keep_their_place(self) -> None:
        result = run(*V11, "--jsonl", "out.texts.0", text=self.ROWS)
        answers = [json.loads(line) for line in result.stdout.splitlines()]
        assert result.exit_code == 1
        assert [answer["line"] for answer in answers] == [1, 3, 4, 5, 6, 7, 8, 9, 10]
        assert {a["line"]: a["message"]["content"] for a in answers if "message" in a} == {
            1: "hi",
            8: "café \ud800",
            10: "literal key",
        }
        assert {answer["line"]: answer["error"] for answer in answers if "error" in answer} == {
            3: "not JSON: Expecting value at character 1",
            4: "a row must be an object, not a list",
            5: "no field 'out.texts.0'; the row has 'out'",
            6: "field 'out.texts.0' is null, not text",
            7: "not UTF-8: byte 10",
            9: "not JSON that can be read: too deep, or a number too long",
        }
        said = result.stderr.splitlines()
        assert said[0] == "toolgram: 6 of 9 rows could not be read"
        assert "toolgram: 1 x not UTF-8: byte N" in said

    def test_rows_are_answered_one_by_one(self, start: Callable[..., subprocess.Popen[bytes]]) -> None:
        process = start(*V11, "--jsonl", "x")
        assert process.stdin is not None
        assert process.stdout is not None
        for number in (1, 2):
            process.stdin.write(b'{"x": "hi"}\n')
            process.stdin.flush()
            assert json.loads(line_of(process.stdout))["line"] == number

    def test_progress_is_for_terminals(self, start: Callable[..., subprocess.Popen[bytes]]) -> None:
        rows = b'{"x": "hi"}\n' * 3
        assert b"rows" in on_terminal(start, *V11, "--jsonl", "x", text=rows, stream="stderr")
        _, complaint = start(*V11, "--jsonl", "x").communicate(rows, timeout=WAIT)
        assert complaint == b""

    def test_characters_that_control_a_terminal(self) -> None:
        result = run(*V11, "--jsonl", "x", "--keep", "x", text=json.dumps({"x": HOSTILE}))
        assert not CONTROLS.search(result.stdout.removesuffix("\n"))
        assert json.loads(result.stdout)["x"] == HOSTILE

    def test_files_to_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "logs").mkdir()
        for name in ("a.jsonl", "b.jsonl"):
            (tmp_path / "logs" / name).write_text(json.dumps({"x": CALL, "id": name}) + "\n[]\n")
        out, errors, report = tmp_path / "out.jsonl", tmp_path / "errors", tmp_path / "report.html"
        arguments = ("--jsonl", "x", str(tmp_path / "logs"), "-o", str(out), "--keep", "id", "--workers", "2")
        result = run(*V11, *arguments, "--errors", str(errors), "--report", str(report))
        assert (result.exit_code, result.stdout) == (1, "")
        answers = [json.loads(line) for line in out.read_text().splitlines()]
        assert [(answer.get("id"), answer["line"], answer.get("error")) for answer in answers] == [
            ("a.jsonl", 1, None),
            (None, 2, "a row must be an object, not a list"),
            ("b.jsonl", 1, None),
            (None, 2, "a row must be an object, not a list"),
        ]
        assert len(errors.read_text().splitlines()) == 2
        assert "<meter" in report.read_text()
        said = result.stderr.splitlines()
        assert said[0] == "toolgram: 4 rows, 2 that could not be read; 2 with calls, 0 with repairs"
        assert said[-2:] == [
            "toolgram: 2 of 4 rows could not be read",
            "toolgram: 2 x a row must be an object, not a list",
        ]
