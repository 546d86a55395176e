"""`toolgram diagram` and `toolgram docs`, as their users meet them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import toolgram
from tests.cli.running import run
from tests.own_format import write_own_format
from toolgram.late_imports import install_line


def own(folder: Path) -> tuple[str, str, str, str]:
    grammar, machine = write_own_format(folder)
    return "--grammar", str(grammar), "--machine", str(machine)


@pytest.mark.parametrize(
    ("ending", "start"),
    [("mmd", "---\n"), ("dot", "digraph"), ("svg", "<svg"), ("DOT", "digraph")],
)
def test_diagram_draws_into_a_file_whose_ending_says_how(tmp_path: Path, ending: str, start: str) -> None:
    place = tmp_path / f"x.{ending}"
    result = run("diagram", *own(tmp_path), "-o", place)
    assert (result.exit_code, result.output) == (0, "")
    assert place.read_text(encoding="utf-8").startswith(start)


def test_diagram_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "mermaid_render", None)
    result = run("diagram", "mistral_v11", "-o", tmp_path / "x.svg")
    assert result.exit_code == 1
    assert install_line("graphviz") in result.stderr
    assert not (tmp_path / "x.svg").exists()


def test_docs_writes_the_page_of_an_own_format_with_one_command(tmp_path: Path) -> None:
    result = run("docs", *own(tmp_path), "-o", tmp_path / "pages")
    place = tmp_path / "pages" / "own.md"
    assert (result.exit_code, result.stdout) == (0, f"{place}\n")
    assert "(own.svg)" in place.read_text(encoding="utf-8")
    assert (tmp_path / "pages" / "own.svg").exists()
    assert run("docs", *own(tmp_path), "-o", tmp_path / "pages", "--check").exit_code == 0


def test_docs_check_names_a_changed_and_a_missing_page_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolgram, "format_names", lambda: ["mistral_v3", "mistral_v11"])
    assert run("docs", "-o", tmp_path).exit_code == 0
    assert {place.stem for place in tmp_path.iterdir()} == set(toolgram.format_names())
    changed, missing = tmp_path / "mistral_v3.md", tmp_path / "mistral_v11.md"
    changed.write_text("changed", encoding="utf-8")
    missing.unlink()
    result = run("docs", "-o", tmp_path, "--check")
    assert result.exit_code == 1
    assert [line.partition(": ")[2] for line in result.stderr.splitlines()] == [
        f"{place}: out of date; run toolgram docs" for place in (changed, missing)
    ]
    assert changed.read_text(encoding="utf-8") == "changed"
    assert not missing.exists()


def test_docs_keeps_embedded_tables_current(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("<!-- toolgram formats -->\n<!-- /toolgram formats -->\n", encoding="utf-8")
    command = ("docs", "mistral_v3", "-o", tmp_path, "--embed", readme)
    stale = run(*command, "--check")
    assert stale.exit_code == 1
    assert "README.md: out of date" in stale.stderr
    assert run(*command).exit_code == 0
    assert "(mistral_v3.md)" in readme.read_text(encoding="utf-8")
