"""What the README shows is what happens."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import toolgram
from tests.scoreboard import one_output
from tests.scoreboard.__main__ import ask
from toolgram.pages.tables import refreshed


@pytest.fixture(scope="module")
def readme(root: Path) -> str:
    return (root / "README.md").read_text(encoding="utf-8")


def test_the_first_example_runs(readme: str, capsys: pytest.CaptureFixture[str]) -> None:
    example = readme.split("```python\n", 1)[1].split("```", 1)[0]
    exec(example, {})
    shown = capsys.readouterr().out
    assert "text      Let me see.\ncall      0 add\narguments 0 {" in shown
    assert "'status': 'complete'" in shown


def test_the_table_of_formats_lists_what_ships(root: Path) -> None:
    pages = (root / "docs/specs/README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \[`(\w+)`\]\(\w+\.md\) \|", pages, flags=re.MULTILINE) == toolgram.format_names()
    assert refreshed(pages) == pages, "run make docs"


def test_what_the_first_screen_says_of_the_llama_output(readme: str) -> None:
    output = readme.split("```text\n", 1)[1].split("\n```", 1)[0]
    message = toolgram.get_format("llama3_json").parse(output)
    (call,) = message.tool_calls
    assert f"| `{message.content}` | `{call.name}({call.arguments})` |" in readme


def test_toolgram_reads_the_first_output_as_its_row_says(readme: str) -> None:
    """The rows of the other parsers need their environments: `make readme-table`."""
    asked = one_output.question(one_output.output_of(readme))
    peer = ask("toolgram", sys.executable, [asked])
    rows = one_output.rows("toolgram", peer.version, one_output.FORMAT, peer.answers["one"]["runs"])
    assert len(rows) == 1
    assert rows[0] in readme.split(one_output.BEGIN)[1].split(one_output.END)[0]


def test_streams_that_gave_the_same_are_one_row() -> None:
    said = {"content": "a\nb ", "reasoning": "", "calls": []}
    called = {"content": "", "reasoning": "", "calls": [["f", "{}"]]}
    rows = one_output.rows("sglang", "1", "llama3", [said, said, called, said, {"raised": "E: no"}])
    assert rows == [
        "| SGLang 1, `llama3`, whole | `a b` | none |",
        "| SGLang 1, `llama3`, streamed, 2 of 7 ways to split it | `a b` | none |",
        "| SGLang 1, `llama3`, streamed, 1 of 7 ways to split it | none | `f({})` |",
        "| SGLang 1, `llama3`, streamed, 1 of 7 ways to split it | raised `E: no` |  |",
    ]
