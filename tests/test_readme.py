"""What the README shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import toolgram
from tests import recording
from toolgram.pages.tables import refreshed

LONGEST = 180  # lines
LONGEST_ROUTE = 8  # lines of the part of a route that a reader copies


@pytest.fixture(scope="module")
def readme(root: Path) -> str:
    return (root / "README.md").read_text(encoding="utf-8")


def test_it_is_short_and_names_the_two_commands_that_set_everything_up(readme: str) -> None:
    assert len(readme.splitlines()) <= LONGEST
    top = readme.partition("\n## Use")[0]
    assert "- `make demo` " in top
    assert "- `make test` " in top


def test_every_route_is_short(readme: str) -> None:
    routes = re.findall(r"^```(?:sh|python)\n(.*?)^```", readme.partition("\n## Use")[2], re.M | re.S)
    assert len(routes) >= 5
    assert [route for route in routes if len(route.splitlines()) > LONGEST_ROUTE] == []


def test_the_first_example_runs(readme: str, capsys: pytest.CaptureFixture[str]) -> None:
    example = readme.split("```python\n", 1)[1].split("```", 1)[0]
    exec(example, {})
    shown = capsys.readouterr().out
    assert "Content(text='Hm.'" in shown
    assert "name='get_weather', arguments='{\"city\": \"Paris\"}', status='complete'" in shown


def test_the_models_of_the_table_are_those_of_the_formats(readme: str) -> None:
    """A reader looks for the name of a model: each row has one that the format declares."""
    rows = re.findall(r"^\| (.+) \| \[`(\w+)`\]\(docs/specs/\2\.md\) \|$", readme, re.M)
    assert len(rows) == 10
    for models, name in rows:
        fmt = toolgram.get_format(name)
        first = re.split(r",| and | \(", models)[0]
        assert any(first.lower() in model.lower() for model in (*fmt.models, fmt.title)), (first, name)


def test_the_first_page_of_the_site_has_the_same_models(readme: str, root: Path) -> None:
    table = re.compile(r"^\| model \| format \|\n(?:\|.*\n)+", re.M)
    home, here = table.search((root / "docs/index.md").read_text(encoding="utf-8")), table.search(readme)
    assert home is not None
    assert here is not None
    assert home[0] == here[0].replace("(docs/", "(")


def test_the_recording_is_what_the_command_prints_now() -> None:
    written = recording.PICTURE.read_text(encoding="utf-8")
    assert recording.picture(recording.lines()) == written, "run make recording"


def test_the_table_of_formats_lists_what_ships(root: Path) -> None:
    pages = (root / "docs/specs/README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \[`(\w+)`\]\(\w+\.md\) \|", pages, flags=re.MULTILINE) == toolgram.format_names()
    assert refreshed(pages) == pages, "run make docs"
