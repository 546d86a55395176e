"""`toolgram grammar`: the file, and what Lark parses."""

from __future__ import annotations

from pathlib import Path

from lark import Lark
from typer.testing import CliRunner, Result

import toolgram
from tests.own_format import write_own_format
from toolgram.cli.app import app


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["grammar", *map(str, arguments)])


def test_the_file_is_printed_as_it_is(root: Path, tmp_path: Path) -> None:
    assert run("hermes").stdout == (root / "grammars/hermes.lark").read_text(encoding="utf-8")
    grammar, machine = write_own_format(tmp_path)
    assert run("--grammar", grammar, "--machine", machine).stdout == grammar.read_text(encoding="utf-8")


def test_the_whole_grammar_is_one_that_lark_parses(root: Path) -> None:
    fmt = toolgram.get_format("hermes")
    result = run("hermes", "--whole")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == fmt.whole_grammar_text
    assert "%declare" not in result.stdout
    Lark(result.stdout, parser="lalr", import_paths=[str(root / "grammars")]).parse(fmt.example)
