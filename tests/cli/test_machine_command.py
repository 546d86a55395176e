"""`toolgram machine` and `toolgram grammar`: what is printed is what runs, and loads again."""

from __future__ import annotations

import re
from pathlib import Path

from lark import Lark

import toolgram
from tests.cli.running import run
from tests.own_format import write_own_format
from tests.properties.selection import every_format
from toolgram.diagrams import LEVELS


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


def test_the_source_is_the_file_as_it_is_and_diagrams_have_both_levels(tmp_path: Path) -> None:
    grammar, machine = write_own_format(tmp_path)
    mine = ("machine", "--grammar", grammar, "--machine", machine)
    assert run(*mine, "--source").stdout == machine.read_text(encoding="utf-8")
    assert "name: note it" in run(*mine).stdout
    for level, options in zip(LEVELS, ([], ["--whole"]), strict=True):
        assert run("diagram", "hermes", *options).stdout == toolgram.get_format("hermes").diagram(level=level)


def test_the_whole_grammar_is_one_that_lark_parses(root: Path) -> None:
    fmt = toolgram.get_format("hermes")
    result = run("grammar", "hermes", "--whole")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == fmt.whole_grammar_text
    assert "%declare" not in result.stdout
    Lark(result.stdout, parser="lalr", import_paths=[str(root / "grammars")]).parse(fmt.example)
