"""The command line as its users meet it: what is printed where, when, and with which exit status."""

from __future__ import annotations

import gzip
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest
from typer.testing import CliRunner, Result

import toolgram
from toolgram.cli.app import app
from toolgram.cli.source import cut, pieces
from toolgram.cli.terminal import CONTROLS, spelled_out

CALL = '[TOOL_CALLS]add[ARGS]{"a": 3}'
OUTPUT = f"[THINK]easy[/THINK]Adding.{CALL}"
HOSTILE = "red \x1b[31m bell \x07 title \x1b]0;owned\x07 c1 \x9b2J bidi \u202e del \x7f"
V11 = ("parse", "--format", "mistral_v11")
WAIT = 20.0


def run(*arguments: str, text: str | bytes = "") -> Result:
    return CliRunner().invoke(app, list(arguments), input=text)


@pytest.fixture
def environment(root: Path) -> dict[str, str]:
    """For subprocesses: this source tree, and nothing about colour inherited from whoever runs the tests."""
    kept = {
        name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM"}
    }
    return kept | {"PYTHONPATH": str(root / "src"), "TERM": "xterm-256color", "COLUMNS": "100"}


@pytest.fixture
def start(environment: dict[str, str]) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start `toolgram` as a process; what still runs when the test is over is ended."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(*arguments: str, extra: dict[str, str] | None = None, **streams: Any) -> subprocess.Popen[bytes]:
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | streams
        command = [sys.executable, "-m", "toolgram", *arguments]
        started.append(subprocess.Popen(command, env=environment | (extra or {}), **pipes))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def on_terminal(start: Callable[..., subprocess.Popen[bytes]], *arguments: str, text: bytes, stream: str) -> bytes:
    """What the command writes to a terminal in place of one of its streams."""
    ours, theirs = pty.openpty()
    process = start(*arguments, **{stream: theirs})
    os.close(theirs)
    assert process.stdin is not None
    process.stdin.write(text)
    process.stdin.close()
    process.stdin = None
    shown = b""
    try:
        while data := os.read(ours, 1 << 16):
            shown += data
    except OSError:  # Linux says that nobody holds the other end by an error
        pass
    process.communicate(timeout=WAIT)
    os.close(ours)
    return shown


class TestMessage:
    def test_one_document_per_file(self, tmp_path: Path) -> None:
        first, second = tmp_path / "first.txt", tmp_path / "second.txt"
        first.write_text(OUTPUT, encoding="utf-8")
        second.write_text("Just text.", encoding="utf-8")
        result = run(*V11, str(first), str(second))
        assert result.exit_code == 0
        messages = [json.loads(line) for line in result.stdout.splitlines()]
        assert messages[0]["reasoning"] == "easy"
        assert messages[0]["content"] == "Adding."
        assert [(call["name"], json.loads(call["arguments"])) for call in messages[0]["tool_calls"]] == [
            ("add", {"a": 3})
        ]
        assert messages[1]["content"] == "Just text."

    @pytest.mark.parametrize("file", [(), ("-",)])
    def test_standard_input(self, file: tuple[str, ...]) -> None:
        result = run(*V11, *file, text=OUTPUT)
        assert result.exit_code == 0
        assert json.loads(result.stdout)["content"] == "Adding."
        assert result.stderr == ""

    def test_equals_the_library(self) -> None:
        message = json.loads(run(*V11, text=OUTPUT).stdout)
        expected = toolgram.get_format("mistral_v11").parse(OUTPUT).to_dict()
        for either in (message, expected):
            for call in either["tool_calls"]:
                call.pop("id")
        assert message == expected

    @pytest.mark.parametrize("size", ["1", "2", "7", "1000"])
    def test_chunk_does_not_change_the_message(self, size: str) -> None:
        message = json.loads(run(*V11, "--chunk", size, text=OUTPUT).stdout)
        assert (message["reasoning"], message["content"]) == ("easy", "Adding.")
        assert message["tool_calls"][0]["arguments"] == '{"a": 3}'

    def test_own_format_from_two_files(self, root: Path) -> None:
        grammar, machine = root / "grammars/mistral_v11.lark", root / "machines/mistral_v11.yaml"
        result = run("parse", "--grammar", str(grammar), "--machine", str(machine), text=OUTPUT)
        assert result.exit_code == 0, result.stderr
        assert json.loads(result.stdout)["tool_calls"][0]["name"] == "add"

    def test_prefix_starts_in_the_right_state(self) -> None:
        message = json.loads(run(*V11, "--prefix", "[THINK]", text="hm[/THINK]ok").stdout)
        assert (message["reasoning"], message["content"]) == ("hm", "ok")

    def test_finish_reason_is_passed_on(self) -> None:
        assert json.loads(run(*V11, "--finish-reason", "length", text="cut o").stdout)["finish_reason"] == "length"

    def test_tools_reach_the_parser(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        tools = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]
        (tmp_path / "tools.json").write_text(json.dumps(tools), encoding="utf-8")
        seen: list[Any] = []
        real = toolgram.Format.parser

        def recording(fmt: toolgram.Format, tools: Any = None, **options: Any) -> Any:
            seen.append(tools)
            return real(fmt, tools=tools, **options)

        monkeypatch.setattr(toolgram.Format, "parser", recording)
        assert run(*V11, "--tools", str(tmp_path / "tools.json"), text=OUTPUT).exit_code == 0
        assert seen == [tools]

    def test_a_person_gets_indentation(self, start: Callable[..., subprocess.Popen[bytes]]) -> None:
        shown = on_terminal(start, *V11, text=OUTPUT.encode(), stream="stdout")
        assert b'{\r\n  "content": "Adding."' in shown
        assert json.loads(shown)["reasoning"] == "easy"

    def test_bytes_that_are_not_text(self) -> None:
        result = run(*V11, text=b"caf\xe9 \xf0\x9f")
        assert result.exit_code == 0
        assert json.loads(result.stdout)["content"] == "caf\ufffd \ufffd"


class TestExitStatus:
    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("", "standard input: the output is empty"),
            (" \n ", "standard input: nothing but markers and blanks"),
            ("[TOOL_CALLS]", "standard input: nothing but"),
        ],
    )
    def test_nothing_usable(self, text: str, why: str) -> None:
        result = run(*V11, text=text)
        assert result.exit_code == 1
        assert result.stderr.startswith(f"toolgram: {why}")
        assert result.stderr.count("\n") == 1

    def test_unreadable_file_leaves_the_others(self, tmp_path: Path) -> None:
        (tmp_path / "good.txt").write_text("text", encoding="utf-8")
        result = run(*V11, str(tmp_path / "absent.txt"), str(tmp_path), str(tmp_path / "good.txt"))
        assert result.exit_code == 1
        assert json.loads(result.stdout)["content"] == "text"
        assert result.stderr.splitlines() == [
            f"toolgram: {tmp_path / 'absent.txt'}: cannot be read: No such file or directory",
            f"toolgram: {tmp_path}: cannot be read: Is a directory",
        ]

    def test_truncated_call_is_usable(self) -> None:
        result = run(*V11, text='[TOOL_CALLS]add[ARGS]{"a": 3')
        assert result.exit_code == 0
        assert json.loads(result.stdout)["tool_calls"][0]["status"] == "truncated"

    @pytest.mark.parametrize(
        ("arguments", "why"),
        [
            (("parse",), "say how to read the output"),
            (("parse", "--format", "mistral_v11", "--grammar", "x.lark"), "choose one"),
            (("parse", "--grammar", "x.lark"), "a format is two files"),
            (("parse", "--machine", "x.yaml"), "a format is two files"),
            (("parse", "--format", "mistral_v99"), "unknown format 'mistral_v99'"),
            (("parse", "--grammar", "no.lark", "--machine", "no.yaml"), "no."),
            ((*V11, "--events", "--pretty"), "--events and --pretty exclude one another"),
            ((*V11, "--events", "--jsonl", "x"), "--events and --jsonl exclude one another"),
            ((*V11, "--pretty", "--jsonl", "x"), "--pretty and --jsonl exclude one another"),
            ((*V11, "--events", "a.txt", "b.txt"), "--events reads one input"),
            ((*V11, "-", "-"), "standard input (-) can only be read once"),
            ((*V11, "--tools", "no.json"), "no.json: cannot be read: No such file"),
        ],
    )
    def test_mistakes_are_one_line(self, arguments: tuple[str, ...], why: str) -> None:
        result = run(*arguments)
        assert result.exit_code == 2
        assert result.stdout == ""
        assert why in result.stderr
        assert result.stderr.startswith("toolgram: ")
        assert result.stderr.count("\n") == 1

    @pytest.mark.parametrize("arguments", [(*V11, "--chunk", "0"), (*V11, "--no-such-option"), ("no-such-command",)])
    def test_usage(self, arguments: tuple[str, ...]) -> None:
        result = run(*arguments)
        assert result.exit_code == 2
        assert "Error: " in result.stderr

    @pytest.mark.parametrize(
        ("content", "why"),
        [("{", "not JSON"), ("{}", "tools are a list"), ("[1]", "tools[0]: it has no name"), ("\xff", "not JSON")],
    )
    def test_bad_tools(self, tmp_path: Path, content: str, why: str) -> None:
        path = tmp_path / "tools.json"
        path.write_text(content, encoding="latin-1")
        result = run(*V11, "--tools", str(path), text="text")
        assert result.exit_code == 2
        assert result.stderr.startswith(f"toolgram: {path}: ")
        assert why in result.stderr
        assert result.stderr.count("\n") == 1

    def test_a_format_that_does_not_hold_together(self, tmp_path: Path) -> None:
        grammar, machine = tmp_path / "x.lark", tmp_path / "x.yaml"
        grammar.write_text("start: ", encoding="utf-8")
        machine.write_text("- [", encoding="utf-8")
        result = run("parse", "--grammar", str(grammar), "--machine", str(machine), text="text")
        assert result.exit_code == 2
        assert result.stderr.startswith(f"toolgram: {tmp_path}")
        assert result.stderr.count("\n") == 1


class TestEvents:
    def test_sources_give_the_input_back(self) -> None:
        result = run(*V11, "--events", "--chunk", "5", text=OUTPUT)
        events = [json.loads(line) for line in result.stdout.splitlines()]
        assert result.exit_code == 0
        assert "".join(event["source"] for event in events) == OUTPUT
        assert {"reasoning", "content", "dropped", "tool_call_start", "tool_call_delta", "tool_call_end"} == {
            event["type"] for event in events
        }

    def test_events_come_while_the_model_writes(self, start: Callable[..., subprocess.Popen[bytes]]) -> None:
        process = start(*V11, "--events")
        assert process.stdin is not None
        assert process.stdout is not None
        seen: list[dict[str, Any]] = []
        for written, awaited in (
            (b"Good mor", ("content", "Good mor")),
            (b"ning caf\xc3", ("content", "ning caf")),
            (b"\xa9.", ("content", "é.")),
            (b'[TOOL_CALLS]add[ARGS]{"', ("tool_call_delta", '"')),
            (b'a": 12', ("tool_call_delta", 'a": 12')),
        ):
            process.stdin.write(written)
            process.stdin.flush()
            while not (seen and _payload(seen[-1], awaited[0]).endswith(awaited[1])):
                seen.append(json.loads(_line(process.stdout)))
        process.stdin.close()
        process.stdin = None
        rest, complaint = process.communicate(timeout=WAIT)
        assert (process.returncode, complaint) == (0, b"")
        assert [event["name"] for event in seen if event["type"] == "tool_call_start"] == ["add"]
        assert json.loads(rest.splitlines()[-1])["status"] == "truncated"

    def test_reader_that_goes_away(self, start: Callable[..., subprocess.Popen[bytes]]) -> None:
        process = start(*V11, "--events", "--chunk", "1")
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"word " * 50)
        process.stdin.flush()
        _line(process.stdout)
        process.stdout.close()
        process.stdout = None
        _, complaint = process.communicate(b"word " * 50_000, timeout=WAIT)
        assert complaint == b""
        assert process.returncode == 141

    def test_ctrl_c(self, start: Callable[..., subprocess.Popen[bytes]]) -> None:
        # tests that run in the background of a shell ignore the signal, and so would what they start
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            process = start(*V11, "--events")
        finally:
            signal.signal(signal.SIGINT, before)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"word")
        process.stdin.flush()
        _line(process.stdout)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=WAIT) == 130
        assert process.stderr is not None
        assert process.stderr.read() == b""

    def test_full_disk_is_said(self, start: Callable[..., subprocess.Popen[bytes]]) -> None:
        if not Path("/dev/full").exists():
            pytest.skip("no /dev/full on this system")
        with open("/dev/full", "wb") as full:
            process = start(*V11, stdout=full)
            _, complaint = process.communicate(b"text", timeout=WAIT)
        assert process.returncode == 1
        assert complaint == b"toolgram: cannot write: No space left on device\n"


class TestPretty:
    def test_labels_where_there_is_no_colour(self) -> None:
        result = run(*V11, "--pretty", "--chunk", "3", text=OUTPUT)
        assert result.exit_code == 0
        legend, painted = result.stdout.split("\n\n", 1)
        assert [line.split()[0] for line in legend.splitlines()] == [
            "[content]",
            "[reasoning]",
            "[name]",
            "[arguments]",
            "[dropped]",
            "[malformed]",
        ]
        assert painted.splitlines() == [
            "[dropped]    [THINK]",
            "[reasoning]  easy",
            "[dropped]    [/THINK]",
            "[content]    Adding.",
            "[dropped]    [TOOL_CALLS]",
            "[name]       add",
            "[dropped]    [ARGS]",
            '[arguments]  {"a": 3}',
        ]

    def test_blanks_are_drawn(self) -> None:
        painted = run(*V11, "--pretty", text=f"a\nb\n {CALL}").stdout
        assert "[content]    a␤b\n[dropped]    ␤␠[TOOL_CALLS]\n" in painted

    def test_several_files_have_headings(self, tmp_path: Path) -> None:
        paths = [tmp_path / "one.txt", tmp_path / "two.txt"]
        for path in paths:
            path.write_text(path.stem, encoding="utf-8")
        painted = run(*V11, "--pretty", *map(str, paths)).stdout
        assert f"== {paths[0]}\n[content]    one\n== {paths[1]}\n[content]    two\n" in painted

    def test_what_went_wrong_is_said(self) -> None:
        painted = run(*V11, "--pretty", text='[TOOL_CALLS]add[ARGS]{"a": ').stdout
        assert painted.splitlines()[-1].startswith("truncated 'add': ")

    def test_colour_on_a_terminal(self, start: Callable[..., subprocess.Popen[bytes]]) -> None:
        shown = on_terminal(start, *V11, "--pretty", text=OUTPUT.encode(), stream="stdout")
        assert b"\x1b[3;35measy\x1b[0m" in shown
        assert b"\x1b[1;36madd\x1b[0m" in shown
        assert b"[arguments]" not in shown

    @pytest.mark.parametrize("extra", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
    def test_no_colour_where_it_is_not_wanted(
        self, start: Callable[..., subprocess.Popen[bytes]], extra: dict[str, str]
    ) -> None:
        def begin(*arguments: str, **streams: Any) -> subprocess.Popen[bytes]:
            return start(*arguments, extra=extra, **streams)

        shown = on_terminal(begin, *V11, "--pretty", text=OUTPUT.encode(), stream="stdout")
        assert b"\x1b" not in shown
        assert b"[name]       add" in shown

    def test_colour_by_request_in_a_pipe(self, start: Callable[..., subprocess.Popen[bytes]]) -> None:
        process = start(*V11, "--pretty", extra={"FORCE_COLOR": "1"})
        shown, _ = process.communicate(OUTPUT.encode(), timeout=WAIT)
        assert b"\x1b[1;36madd\x1b[0m" in shown


class TestTerminalSafety:
    """Raw model output is shown and never obeyed."""

    @pytest.mark.parametrize("mode", [(), ("--events",), ("--pretty",)])
    def test_nothing_commands_the_terminal(self, mode: tuple[str, ...]) -> None:
        text = f'{HOSTILE}[TOOL_CALLS]add[ARGS]{{"a": "\x9b2J"}}'
        shown = run(*V11, *mode, text=text).stdout
        assert CONTROLS.search(shown) is None
        assert "bidi" in shown

    def test_colour_is_ours_alone(self, start: Callable[..., subprocess.Popen[bytes]]) -> None:
        shown = on_terminal(start, *V11, "--pretty", text=HOSTILE.encode(), stream="stdout")
        assert rb"\x1b[31m bell \x07 title \x1b]0;owned\x07" in shown
        assert b"\x1b[31m" not in shown
        assert b"\x1b]" not in shown
        assert "\u202e".encode() not in shown
        assert "\x9b".encode() not in shown

    def test_file_names_too(self) -> None:
        result = run(*V11, "no\x1b[31msuch")
        assert result.exit_code == 1
        assert "\x1b" not in result.stderr

    def test_json_means_the_same(self) -> None:
        assert json.loads(run(*V11, text=HOSTILE).stdout)["content"] == HOSTILE

    def test_spelling(self) -> None:
        assert spelled_out("a\x1bb\x9b\u202e\ud800\U000e0041") == r"a\x1bb\x9b\u202e\ud800\U000e0041"
        assert spelled_out("né 日本語 👩\u200d🚀\t\n") == "né 日本語 👩\u200d🚀\t\n"

    def test_a_locale_without_the_characters(self, start: Callable[..., subprocess.Popen[bytes]]) -> None:
        plain = {"PYTHONIOENCODING": "ascii"}
        shown, complaint = start(*V11, "--pretty", extra=plain).communicate("né\n".encode(), timeout=WAIT)
        assert (shown.splitlines()[-1], complaint) == (rb"[content]    n\xe9\u2424", b"")
        shown, _ = start(*V11, extra=plain).communicate("né".encode(), timeout=WAIT)
        assert json.loads(shown)["content"] == "né"


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
            5: "no field 'out.texts.0'",
            6: "field 'out.texts.0' is null, not text",
            7: "not UTF-8: byte 10",
            9: "not JSON that can be read: too deep, or a number too long",
        }
        assert result.stderr == "toolgram: 6 of 9 rows could not be read\n"

    def test_no_row_could_be_read(self) -> None:
        assert run(*V11, "--jsonl", "x", text="{}\n").exit_code == 1

    def test_no_rows(self) -> None:
        result = run(*V11, "--jsonl", "x", text="\n")
        assert (result.exit_code, result.stderr) == (1, "toolgram: no rows\n")

    def test_several_files_are_named(self, tmp_path: Path) -> None:
        paths = [str(tmp_path / name) for name in ("one.jsonl", "two.jsonl")]
        for path in paths:
            Path(path).write_text(json.dumps({"x": CALL}) + "\n", encoding="utf-8")
        result = run(*V11, "--jsonl", "x", "--chunk", "2", paths[0], str(tmp_path / "absent"), paths[1])
        answers = [json.loads(line) for line in result.stdout.splitlines()]
        assert [(answer["file"], answer["line"]) for answer in answers] == [(paths[0], 1), (paths[1], 1)]
        assert all(answer["message"]["tool_calls"][0]["name"] == "add" for answer in answers)
        assert result.exit_code == 1
        assert "absent: cannot be read" in result.stderr

    def test_rows_are_answered_one_by_one(self, start: Callable[..., subprocess.Popen[bytes]]) -> None:
        process = start(*V11, "--jsonl", "x")
        assert process.stdin is not None
        assert process.stdout is not None
        for number in (1, 2):
            process.stdin.write(b'{"x": "hi"}\n')
            process.stdin.flush()
            assert json.loads(_line(process.stdout))["line"] == number

    def test_progress_is_for_terminals(self, start: Callable[..., subprocess.Popen[bytes]]) -> None:
        rows = b'{"x": "hi"}\n' * 3
        assert b"rows" in on_terminal(start, *V11, "--jsonl", "x", text=rows, stream="stderr")
        _, complaint = start(*V11, "--jsonl", "x").communicate(rows, timeout=WAIT)
        assert complaint == b""

    @pytest.mark.parametrize(
        ("row", "kind"), [('{"x": 1}', "a number"), ('{"x": true}', "a truth value"), ('{"x": {}}', "an object")]
    )
    def test_kinds_are_named(self, row: str, kind: str) -> None:
        answer = json.loads(run(*V11, "--jsonl", "x", text=row).stdout)
        assert answer == {"line": 1, "error": f"field 'x' is {kind}, not text"}

    def test_byte_order_mark(self) -> None:
        answer = json.loads(run(*V11, "--jsonl", "x", text=b'\xef\xbb\xbf{"x": "hi"}').stdout)
        assert answer["message"]["content"] == "hi"

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
        assert "<svg" in report.read_text()
        said = result.stderr.splitlines()
        assert said[0] == "toolgram: 4 rows, 2 that could not be read; 2 with calls, 0 with repairs"
        assert said[-1] == "toolgram: 2 of 4 rows could not be read"

    def test_rows_that_name_their_format(self) -> None:
        text = json.dumps({"x": CALL, "f": "mistral_v11"}) + "\n" + json.dumps({"x": "hi"})
        result = run("parse", "--jsonl", "x", "--format-column", "f", text=text)
        call, none = [json.loads(line) for line in result.stdout.splitlines()]
        assert call["message"]["tool_calls"][0]["name"] == "add"
        assert none["error"] == "field 'f' names no format, and no other was given"

    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            (("-o", "x.jsonl"), "--output is for rows: say which field holds the output text, --jsonl FIELD"),
            (("--format-column", "f"), "a column is for rows"),
            (("--jsonl", "x", "--resume"), "--resume needs an output file"),
            (("--jsonl", "x", "--keep", "message"), "--keep message: the output has a column of this name already"),
        ],
    )
    def test_mistakes(self, arguments: tuple[str, ...], complaint: str) -> None:
        result = run(*V11, *arguments)
        assert result.exit_code == 2
        assert complaint in result.stderr

    def test_a_missing_package(self, environment: dict[str, str], tmp_path: Path) -> None:
        code = "import sys; sys.modules['pyarrow'] = None; from toolgram.cli import main; main()"
        (tmp_path / "x.jsonl").write_text("{}")
        for arguments in (
            [str(tmp_path / "x.jsonl"), "-o", str(tmp_path / "y.parquet")],
            [str(tmp_path / "x.parquet")],
        ):
            command = [sys.executable, "-c", code, *V11, "--jsonl", "x", *arguments]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 1
            assert 'needs pyarrow: pip install "toolgram[bulk]"' in done.stderr
            assert done.stderr.count("\n") == 1


class TestFormats:
    def test_lines_for_a_pipe(self) -> None:
        lines = run("formats").stdout.splitlines()
        assert [line.split("\t")[0] for line in lines] == toolgram.format_names()
        assert all(len(line.split("\t")) == 4 for line in lines)

    def test_json(self) -> None:
        shipped = json.loads(run("formats", "--json").stdout)
        assert [fmt["name"] for fmt in shipped] == toolgram.format_names()
        assert all(fmt["title"] and fmt["models"] and fmt["example"] for fmt in shipped)

    def test_table_on_a_terminal(self, start: Callable[..., subprocess.Popen[bytes]]) -> None:
        shown = on_terminal(start, "formats", text=b"", stream="stdout")
        assert all(name.encode() in shown for name in toolgram.format_names())
        assert b"[TOOL_CALLS]" in shown

    def test_every_example_parses_to_a_complete_call(self) -> None:
        for fmt in json.loads(run("formats", "--json").stdout):
            message = json.loads(run("parse", "--format", fmt["name"], text=fmt["example"]).stdout)
            assert message["tool_calls"], fmt["name"]
            assert all(call["status"] == "complete" for call in message["tool_calls"])


class TestTheRest:
    def test_version(self) -> None:
        result = run("--version")
        assert (result.exit_code, result.stdout) == (0, f"toolgram {toolgram.__version__}\n")

    @pytest.mark.parametrize("command", ["parse", "formats"])
    def test_help_shows_an_example(self, command: str) -> None:
        result = run(command, "--help")
        assert result.exit_code == 0
        assert f"toolgram {command}" in result.stdout.split("\n", 2)[2]

    @pytest.mark.parametrize("missing", ["typer", "rich"])
    def test_without_the_extra(self, environment: dict[str, str], missing: str) -> None:
        code = f"import sys; sys.modules[{missing!r}] = None; from toolgram.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1
        assert 'pip install "toolgram[cli]"' in done.stderr

    def test_the_library_does_not_load_the_command_line(self, environment: dict[str, str]) -> None:
        code = (
            "import sys, toolgram, toolgram.cli\n"
            f"toolgram.get_format('mistral_v11').parse({OUTPUT!r})\n"
            "print(sorted({'typer', 'rich', 'toolgram.cli.app'} & set(sys.modules)))"
        )
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout == "[]\n"

    def test_pieces_and_cuts(self, tmp_path: Path) -> None:
        path = tmp_path / "text"
        path.write_text("aé😀bc", encoding="utf-8")
        assert list(pieces(str(path))) == ["aé😀bc"]
        assert list(pieces(str(path), 2)) == ["aé", "😀b", "c"]
        assert list(cut(["a", "", "bcd", "e"], 2)) == ["ab", "cd", "e"]


def _payload(event: dict[str, Any], kind: str) -> str:
    if event["type"] != kind:
        return ""
    return str(event.get("text") or event.get("name") or event.get("arguments") or "")


def _line(stream: IO[bytes]) -> bytes:
    """One line, or a failed test instead of a test that hangs."""
    deadline = time.monotonic() + WAIT
    line = b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([stream], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"nothing was written within {WAIT} s after {line!r}"
        byte = os.read(stream.fileno(), 1)
        assert byte, f"the output ended after {line!r}"
        line += byte
    return line


def test_a_mistyped_name_is_answered_with_the_one_that_was_meant() -> None:
    result = CliRunner().invoke(app, ["parse", "--format", "hermez"])
    assert result.exit_code == 2
    assert "did you mean hermes" in result.stderr


def test_a_compressed_file_and_the_mark_of_an_editor(tmp_path: Path) -> None:
    text = "\ufeff" + toolgram.get_format("mistral_v11").example
    (tmp_path / "plain.txt").write_text(text, encoding="utf-8")
    packed = gzip.compress(text.encode())
    (tmp_path / "x.txt.gz").write_bytes(packed)
    (tmp_path / "cut.txt.gz").write_bytes(packed[:-12])
    answers = [
        CliRunner().invoke(app, ["parse", "-f", "mistral_v11", str(tmp_path / name)])
        for name in ("plain.txt", "x.txt.gz")
    ]
    messages = [json.loads(answer.stdout) for answer in answers]
    assert [message["content"] for message in messages] == ["Let me add."] * 2
    cut = CliRunner().invoke(app, ["parse", "-f", "mistral_v11", str(tmp_path / "cut.txt.gz")])
    assert cut.exit_code == 1
    assert "damaged or cut off" in cut.stderr
    assert cut.stderr.count("\n") == 1


def test_format_names_are_completed() -> None:
    environment = {"_TOOLGRAM_COMPLETE": "complete_bash", "COMP_WORDS": "toolgram diagram mistral_v", "COMP_CWORD": "2"}
    result = CliRunner().invoke(app, [], prog_name="toolgram", env=environment)
    assert result.stdout.split() == [name for name in toolgram.format_names() if name.startswith("mistral_v")]
