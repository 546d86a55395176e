"""What the README shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import toolgram
from toolgram.page_tables import refreshed


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
