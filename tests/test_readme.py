"""What the README shows is what happens."""

import json
import re
from pathlib import Path

import pytest

import toolgram
from tests import recording
from tests.figures import FOLDER, LINK, numbers, stated
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
    exec(readme.split("```python\n", 1)[1].split("```", 1)[0], {})
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
    assert recording.picture(recording.lines()) == recording.PICTURE.read_text(encoding="utf-8"), "run make recording"


def test_the_table_of_formats_lists_what_ships(root: Path) -> None:
    pages = (root / "docs/specs/README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \[`(\w+)`\]\(\w+\.md\) \|", pages, flags=re.MULTILINE) == toolgram.format_names()
    assert refreshed(pages) == pages, "run make docs"


# --- figures that pages state ---------------------------------------------------------------------------------------

# A figure that somebody measured: a share, a percentage, or a large number with its comma.
MEASURED = re.compile(r"\b\d[\d,]* of \d[\d,]*\b|\b\d+(?:\.\d+)?%|\b\d{1,3}(?:,\d{3})+\b")
NOT_PROSE = re.compile(r"```.*?```|`[^`\n]*`|<!--.*?-->", re.S)
SOLD = ("README.md", "docs/index.md")  # pages whose every figure has a file


def all_pages(root: Path) -> list[Path]:
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def test_every_figure_with_a_file_is_in_that_file(root: Path) -> None:
    found = 0
    for page in all_pages(root):
        for number, name in stated(page.read_text(encoding="utf-8")):
            found += 1
            values = json.loads((FOLDER / name).read_text(encoding="utf-8"))["figures"]
            assert number in numbers(values), f"{page.name}: {number} is not in docs/data/{name}"
    assert found >= 6


@pytest.mark.parametrize("name", SOLD)
def test_the_front_pages_state_no_figure_without_a_file(name: str, root: Path) -> None:
    assert MEASURED.findall(NOT_PROSE.sub("", LINK.sub("", (root / name).read_text(encoding="utf-8")))) == []


def test_a_data_file_says_what_made_it(root: Path) -> None:
    files = sorted(FOLDER.glob("*.json"))
    assert len(files) >= 3
    targets = (root / "Makefile").read_text(encoding="utf-8")
    for file in files:
        values = json.loads(file.read_text(encoding="utf-8"))
        assert set(values) == {"command", "date", "machine", "versions", "figures"}, file.name
        assert f"\n{values['command'].removeprefix('make ')}: " in targets, file.name
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", values["date"])
        assert values["machine"]
        assert values["versions"]["toolgram"]


def test_a_figure_that_its_file_does_not_have_is_found() -> None:
    assert numbers({"rows": 1234, "share": 62.5, "of": {"llama.cpp": "8 of 9"}}) == {"1,234", "62.5", "8", "9"}
    text = "Reads [1,234](docs/data/a.json), [8 of 10](../data/b.json) and 7."
    assert list(stated(text)) == [("1,234", "a.json"), ("8", "b.json"), ("10", "b.json")]


def test_the_summary_of_the_benchmarks_is_current(root: Path) -> None:
    from benchmarks.report import RESULTS
    from benchmarks.summary import DATA, summary

    written = DATA.read_text(encoding="utf-8")
    assert len(written.splitlines()) > 20
    assert summary(RESULTS.read_text(encoding="utf-8")) == written, "run python -m benchmarks.summary"
