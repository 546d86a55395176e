"""The text of exports, what they say besides it, and what is refused."""

import json
import os
import subprocess
import sys
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

import toolgram
from tests.cli.running import check_row, rows_beside, run
from tests.export.measuring import TOOLS, tool
from tests.properties.selection import every_format, formats_of
from tests.tables import table
from toolgram.export import TARGETS


def test_what_comes_with_the_text() -> None:
    made = toolgram.get_format("mistral_v11").export("llguidance", TOOLS)
    assert (made.target, made.triggers, made.stop) == ("llguidance", ("[TOOL_CALLS]",), ("</s>",))
    assert "[ARGS]" in made.preserved_tokens
    assert all("is closed" in note or "order of their schema" in note for note in made.notes)
    assert json.loads(json.dumps(made.to_dict()))["text"] == made.text


@every_format
def test_every_format_exports_without_tools(name: str) -> None:
    for target in TARGETS:
        made = toolgram.get_format(name).export(target)
        assert made.text
        assert made.triggers == ()


@pytest.mark.parametrize(("schema", "told"), [({"type": "array"}, True), ({"type": "string"}, False)])
def test_a_note_says_that_no_line_end_is_between_elements(schema: dict[str, Any], told: bool) -> None:
    notes = toolgram.get_format("minimax_m3").export("gbnf", [tool("f", {"a": schema})]).notes
    assert any("no line end is written between them" in note for note in notes) == told


def test_the_text_does_not_depend_on_the_process() -> None:
    chosen = formats_of("test_the_text_does_not_depend_on_the_process")[:2]
    code = (
        "import toolgram, hashlib\nfrom tests.export.measuring import TOOLS\n"
        f"for name in {[*chosen]}:\n for target in {tuple(TARGETS)!r}:\n"
        "  text = toolgram.get_format(name).export(target, TOOLS).text\n"
        "  print(name, target, hashlib.sha256(text.encode()).hexdigest())\n"
    )
    root, command = Path(__file__).parents[2], [sys.executable, "-c", code]
    environments = ({**os.environ, "PYTHONHASHSEED": seed} for seed in "12")
    assert len({subprocess.check_output(command, env=each, cwd=root, text=True) for each in environments}) == 1


def test_the_core_exports_every_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """No engine is asked, for any target, and nothing is left out for the lack of one."""
    for module in ("xgrammar", "llguidance", "torch"):
        monkeypatch.setitem(sys.modules, module, None)
    for target in TARGETS:
        made = toolgram.get_format("mistral_v11").export(target, TOOLS)
        assert "celsius" in made.text
        assert "search_docs" in made.text
        assert not any("installed" in note for note in made.notes)


DEEP = reduce(lambda made, _: [made], range(3000), list[Any]())  # a list in a list in a list


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        *table(__file__, "one_clear_error"),
        ({"tools": [tool("f", {"a": {"const": DEEP}})]}, "nests deeper than 128"),
        ({"tools": [tool("f", {"\ud800": {"type": "string"}})]}, "surrogates not allowed"),
        ({"tools": [tool("f\ud800", {})]}, "half a character"),
        ({"json_schema": {"const": {1, 2}}}, "not a JSON Schema"),
    ],
)
def test_one_clear_error(request_: dict[str, Any], words: str) -> None:
    wanted = {"target": "llguidance", "tools": TOOLS, **request_}
    with pytest.raises(toolgram.ToolgramError, match=words) as caught:
        toolgram.get_format("mistral_v11").export(**wanted)
    assert "\n" not in str(caught.value)


def test_a_name_that_a_format_cannot_write() -> None:
    with pytest.raises(toolgram.ToolgramError, match="cannot be called in functionary_v3_2"):
        toolgram.get_format("functionary_v3_2").export("gbnf", [tool("a>>>b", {})])
    toolgram.get_format("hermes").export("xgrammar", [tool("two words", {})])  # a name in JSON is any text


# --- the command; `commands.yaml` has what fits in a row ----------------------------------------------------------


def test_the_help_names_every_target() -> None:
    result = run("export", "--help")
    assert result.exit_code == 0
    assert all(target in result.stdout for target in TARGETS)


def test_a_file_and_the_options_of_an_export(tmp_path: Path) -> None:
    tools, grammar = tmp_path / "tools.json", tmp_path / "hermes.gbnf"
    declared = [tool("f", {"a": {"type": "string", "maxLength": 3}})]
    tools.write_text(json.dumps(declared), encoding="utf-8")
    result = run("export", "hermes", "-t", "gbnf", "--tools", tools, "--open-objects", "-o", grammar)
    assert (result.exit_code, result.stdout) == (0, "")
    made = toolgram.get_format("hermes").export("gbnf", declared, open_objects=True)
    assert grammar.read_text(encoding="utf-8") == made.text
    assert "is closed" not in result.stderr


@pytest.mark.parametrize("row", rows_beside(__file__), ids=lambda row: row["run"])
def test_the_command(row: dict[str, Any], root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_row(row, root, tmp_path, monkeypatch)
