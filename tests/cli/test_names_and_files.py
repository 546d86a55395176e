"""The command line as its users meet it: names of formats, files, and what else there is."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

import toolgram
from tests.cli.running import OUTPUT, Start, on_terminal, run
from toolgram.cli.app import app
from toolgram.cli.source import cut, pieces


def test_the_names_of_formats(start: Start) -> None:
    """Lines for a pipe, JSON, and a table for a terminal."""
    lines = [line.split("\t") for line in run("formats").stdout.splitlines()]
    assert [line[0] for line in lines] == toolgram.format_names()
    assert {len(line) for line in lines} == {4}
    shipped = json.loads(run("formats", "--json").stdout)
    assert [fmt["name"] for fmt in shipped] == toolgram.format_names()
    assert all(fmt["title"] and fmt["models"] and fmt["example"] for fmt in shipped)
    shown = on_terminal(start, "formats", text=b"")
    assert all(name.encode() in shown for name in [*toolgram.format_names(), "[TOOL_CALLS]"])


def test_version() -> None:
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"toolgram {toolgram.__version__}\n")


def test_only_what_runs_is_loaded(environment: dict[str, str]) -> None:
    """A command loads no other, and the library no command line."""
    assert "Did you mean 'parse'?" in run("pars").stderr
    command = "from toolgram.cli.app import app\ntry: app(['parse', '--format', 'hermes'])\nexcept SystemExit: pass"
    library = f"import toolgram, toolgram.cli\ntoolgram.get_format('mistral_v11').parse({OUTPUT!r})"
    for code, others in (
        (command, {"jinja2", "rich.progress", "toolgram.explain", "toolgram.audit"}),
        (library, {"typer", "rich", "toolgram.cli.app"}),
    ):
        code += f"\nimport sys\nprint(sorted({others} & set(sys.modules)))"
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, input="Hi", capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines()[-1] == "[]"


def test_pieces_and_cuts(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("aé😀bc", encoding="utf-8")
    assert list(pieces(str(path))) == ["aé😀bc"]
    assert list(pieces(str(path), 2)) == ["aé", "😀b", "c"]
    assert list(cut(["a", "", "bcd", "e"], 2)) == ["ab", "cd", "e"]


def test_a_compressed_file_and_the_mark_of_an_editor(tmp_path: Path) -> None:
    text = "\ufeff" + toolgram.get_format("mistral_v11").example
    (tmp_path / "plain.txt").write_text(text, encoding="utf-8")
    packed = gzip.compress(text.encode())
    (tmp_path / "x.txt.gz").write_bytes(packed)
    (tmp_path / "cut.txt.gz").write_bytes(packed[:-12])
    answers = [run("parse", "-f", "mistral_v11", tmp_path / name) for name in ("plain.txt", "x.txt.gz")]
    messages = [json.loads(answer.stdout) for answer in answers]
    assert [message["content"] for message in messages] == ["Let me add."] * 2
    cut = run("parse", "-f", "mistral_v11", tmp_path / "cut.txt.gz")
    assert cut.exit_code == 1
    assert "damaged or cut off" in cut.stderr
    assert cut.stderr.count("\n") == 1


def test_format_names_are_completed() -> None:
    environment = {"_TOOLGRAM_COMPLETE": "complete_bash", "COMP_WORDS": "toolgram diagram mistral_v", "COMP_CWORD": "2"}
    result = CliRunner().invoke(app, [], prog_name="toolgram", env=environment)
    assert result.stdout.split() == [name for name in toolgram.format_names() if name.startswith("mistral_v")]


def test_vllm_has_a_name_for_every_format() -> None:
    said = run("vllm").stdout
    assert [name for name in toolgram.format_names() if f"toolgram_{name} " not in said] == []
