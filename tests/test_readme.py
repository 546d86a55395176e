"""What the README shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import toolgram


@pytest.fixture(scope="module")
def readme(root: Path) -> str:
    return (root / "README.md").read_text(encoding="utf-8")


def test_the_first_example_runs(readme: str, capsys: pytest.CaptureFixture[str]) -> None:
    example = readme.split("```python\n", 1)[1].split("```", 1)[0]
    exec(example, {})
    shown = capsys.readouterr().out
    assert "text      Let me see.\ncall      0 add\narguments 0 {" in shown
    assert "'status': 'complete'" in shown


def test_the_table_lists_what_ships(readme: str) -> None:
    rows = re.findall(r"^\| `(\w+)` \| .+ \| `(.+)` \|$", readme, flags=re.MULTILINE)
    shipped = [(name, toolgram.get_format(name).example.replace("\n", r"\n")) for name in toolgram.format_names()]
    assert sorted((name, example.replace(r"\|", "|")) for name, example in rows) == sorted(shipped)
