"""The page of a format says what its two files, the parser and `check` say: all of it, and the same every time."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

import toolgram
from tests.own_format import MARKER, load_own
from tests.properties import selection
from toolgram.pages.formats import Finding, page, page_name, picture_name, stale_pages, write_pages
from toolgram.pages.tables import refreshed


def agreed(fmt: toolgram.Format) -> Sequence[Finding]:
    return [
        SimpleNamespace(name="grammar = machine", ok=True, detail="decided over `NAME` and *all*"),
        SimpleNamespace(name="drivers", ok=False, detail=fmt.spec.machine_path),
    ]


@pytest.fixture(params=[*selection.formats_of("test_spec_pages"), "own"])
def fmt(request: pytest.FixtureRequest, tmp_path: Path) -> toolgram.Format:
    if request.param == "own":
        return load_own(tmp_path)
    return toolgram.get_format(request.param)


def cells(row: str) -> list[str]:
    """The cells of a table row, as a reader sees them."""
    return [shown(cell.strip()) for cell in row.strip("|").split("|")]


def shown(cell: str) -> str:
    cell = cell.removeprefix("<code>").removesuffix("</code>").strip("`")
    return html.unescape(cell).replace("␠", " ").replace("␤", "\n")


def table(text: str, heading: str) -> list[list[str]]:
    """The rows of the first table under a heading."""
    section = text.partition(f"\n## {heading}")[2].partition("\n## ")[0]
    rows = re.search(r"\|---.*\n((?:\|.*\n)*)", section)
    assert rows is not None
    return [cells(row) for row in rows[1].splitlines()]


def test_every_character_of_the_example_has_one_event(fmt: toolgram.Format) -> None:
    rows = table(page(fmt, agreed), "An output, and the event of each character")
    assert "".join(characters for characters, owner, _ in rows if characters != "none") == fmt.example
    message = fmt.parse(fmt.example)
    for number, call in enumerate(message.tool_calls, 1):
        assert call.name in [given for _, _, given in rows]
        assert call.arguments == "".join(
            given for _, owner, given in rows if owner == f"the arguments of call {number}"
        )


def test_both_files_stand_in_it_verbatim_and_the_diagram_beside_it(fmt: toolgram.Format, tmp_path: Path) -> None:
    text = page(fmt, agreed)
    for inner, language in ((fmt.grammar_text, "lark"), (fmt.machine_text, "yaml")):
        fence = re.search(rf"^(`+){language}\n{re.escape(inner.rstrip())}\n(`+)$", text, re.M)
        assert fence is not None
        assert fence[1] == fence[2]
        assert fence[1] not in inner
    write_pages([fmt], tmp_path, agreed)
    picture = re.search(r"!\[.+\]\((.+)\)", text)
    assert picture is not None
    assert (tmp_path / picture[1]).read_text(encoding="utf-8") == fmt.diagram("svg")


def test_findings_are_told_as_they_are_and_without_paths(fmt: toolgram.Format) -> None:
    text = page(fmt, agreed)
    assert "* grammar = machine: decided over `NAME` and &#42;all&#42;\n" in text
    assert f"* **Not proved:** drivers: {Path(fmt.spec.machine_path).name}\n" in text
    assert str(Path(fmt.spec.machine_path).parent) not in text


def test_a_hostile_marker_cannot_break_a_cell(tmp_path: Path) -> None:
    text = page(load_own(tmp_path), agreed)
    rows = [row for row in table(text, "Machine") if row[4] == "OPEN"]
    assert [row[3] for row in rows] == [MARKER]


def test_written_pages_are_current_until_a_file_changes(fmt: toolgram.Format, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "pages"
    place = folder / page_name(fmt)
    assert stale_pages([fmt], folder, agreed) == [place, folder / picture_name(fmt)]
    assert write_pages([fmt], folder, agreed) == [place]
    assert stale_pages([fmt], folder, agreed) == []
    place.write_text(place.read_text(encoding="utf-8").replace("structure", "text", 1), encoding="utf-8")
    assert stale_pages([fmt], folder, agreed) == [place]


def test_a_page_is_stale_when_check_finds_otherwise(tmp_path: Path) -> None:
    fmt = toolgram.get_format("mistral_v11")
    write_pages([fmt], tmp_path, agreed)
    assert stale_pages([fmt], tmp_path, lambda _: []) == [tmp_path / "mistral_v11.md"]


@pytest.mark.parametrize("ending", ["md", "svg"])
def test_every_shipped_format_has_its_page_and_no_other_does(root: Path, ending: str) -> None:
    pages = {place.stem for place in (root / "docs/specs").glob(f"*.{ending}")} - {"README"}
    assert pages == set(toolgram.format_names())


def test_an_embedded_table_is_refreshed_and_the_rest_is_left_alone() -> None:
    text = "before\n<!-- toolgram vocabulary ACTIONS -->\nold\n<!-- /toolgram vocabulary -->\nafter `[x]`\n"
    new = refreshed(text)
    assert new.startswith("before\n<!-- toolgram vocabulary ACTIONS -->\n\n| word | means |\n|---|---|\n| `name` | ")
    assert new.endswith(" |\n\n<!-- /toolgram vocabulary -->\nafter `[x]`\n")
    assert "old" not in new
    assert refreshed(new) == new


def test_embedding_needs_a_place_and_a_known_table() -> None:
    with pytest.raises(toolgram.ToolgramError, match="no place for a table"):
        refreshed("nothing here")
    for unknown in ("NOBODY", "Key", ""):
        with pytest.raises(toolgram.ToolgramError, match=r"no table of toolgram\.spec\.vocabulary"):
            refreshed(f"<!-- toolgram vocabulary {unknown} -->\n<!-- /toolgram vocabulary -->")
