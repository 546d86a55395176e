"""`toolgram machine`: what is printed is the machine that runs, and loads again."""

from __future__ import annotations

import re
from pathlib import Path

from typer.testing import CliRunner, Result

import toolgram
from tests.own_format import write_own_format
from tests.properties.selection import every_format
from toolgram.cli.app import app
from toolgram.diagrams import LEVELS


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@every_format
def test_the_composed_machine_loads_again_as_the_same(name: str, tmp_path: Path) -> None:
    fmt = toolgram.get_format(name)
    result = run("machine", name)
    assert (result.exit_code, result.stderr) == (0, "")
    grammar, machine = tmp_path / f"{name}.lark", tmp_path / f"{name}.yaml"
    grammar.write_text(fmt.grammar_text, encoding="utf-8")
    machine.write_text(result.stdout, encoding="utf-8")
    again = toolgram.load_format(grammar, machine)
    assert "import:" not in result.stdout
    assert again.machine_dict == fmt.machine_dict
    rows = [[(t.source, t.trigger, t.dest, t.actions) for t in each.spec.transitions] for each in (fmt, again)]
    assert rows[0] == rows[1]


def test_a_comment_says_which_line_of_which_fragment_an_entry_is(root: Path) -> None:
    fragment = (root / "machines/common/json_call.yaml").read_text(encoding="utf-8").splitlines()
    found = re.findall(
        r"- \{(?:name|trigger): ([^,}]+).*  # common/json_call.yaml:(\d+)", run("machine", "hermes").stdout
    )
    assert len(found) > 20
    for name, line in found:
        # An entry may take several lines, and a fragment that is imported twice has a prefix for its names.
        assert name.removeprefix("BARE_") in " ".join(fragment[int(line) - 1 :][:3])


def test_the_source_is_the_file_as_it_stands(root: Path, tmp_path: Path) -> None:
    assert run("machine", "hermes", "--source").stdout == (root / "machines/hermes.yaml").read_text(encoding="utf-8")
    grammar, machine = write_own_format(tmp_path)
    mine = ("machine", "--grammar", grammar, "--machine", machine)
    assert run(*mine, "--source").stdout == machine.read_text(encoding="utf-8")
    assert "name: note it" in run(*mine).stdout


def test_diagram_draws_both_levels() -> None:
    fmt = toolgram.get_format("hermes")
    path, whole = (fmt.diagram(level=level) for level in LEVELS)
    assert run("diagram", "hermes").stdout == path
    assert run("diagram", "hermes", "--whole").stdout == whole
