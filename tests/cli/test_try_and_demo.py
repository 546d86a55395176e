"""`toolgram try` and `toolgram demo`, as someone would run them. `try --link` prints a link that holds the output."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

import toolgram
from tests.cli.running import run
from tests.properties.selection import quarter
from toolgram.cli.demo import MOST_LINES, screen
from toolgram.cli.playground_link import ADDRESS, BUILT_HERE, playground_link

SCREEN = 24


@pytest.mark.parametrize("name", quarter(toolgram.format_names(), "test_try_reads_all_of_an_example"))
def test_try_reads_all_of_an_example(name: str) -> None:
    # Several formats may read one example alike; none may be shown that reads less of it than its own does.
    fmt = toolgram.get_format(name)
    result = run("try", text=fmt.example)
    assert result.exit_code == 0
    shown = result.output.split()[1]
    ours = fmt.parse(fmt.example)
    found = toolgram.get_format(shown).parse(fmt.example)
    assert [(call.name, call.status) for call in found.tool_calls] == [
        (call.name, call.status) for call in ours.tool_calls
    ]
    assert f"toolgram explain --format {shown}" in result.output


@pytest.mark.parametrize("name", toolgram.format_names())
def test_a_format_fits_on_a_screen(name: str) -> None:
    lines = list(screen(toolgram.get_format(name)))
    assert MOST_LINES / 2 < len(lines) <= SCREEN - 2
    assert not any("\n" in line.plain for line in lines)
    assert any("complete" in line.plain for line in lines)


def state_of(link: str) -> dict[str, Any]:
    """Return what a link holds, read as `playground/state.mjs` reads it."""
    packed = link.partition("#")[2]
    raw = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
    state = json.loads(zlib.decompress(raw, -15))
    assert isinstance(state, dict)
    return state


def test_the_link_holds_the_output_the_format_and_the_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ADDRESS, "https://play.example/")
    text = toolgram.get_format("hermes").example + " ␤ é"
    (tmp_path / "output.txt").write_text(text, encoding="utf-8")
    done = run("try", "--link", tmp_path / "output.txt")
    assert done.exit_code == 0
    (link,) = done.stdout.split()
    assert link.startswith("https://play.example/#")
    state = state_of(link)
    assert (state["output"], state["format"]) == (text, "hermes")
    assert json.loads(state["expected"])["tool_calls"][0]["name"] == "get_weather"


def test_the_fields_are_those_of_the_page(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ADDRESS, raising=False)
    link = playground_link("x", "hermes", [{"name": "f"}], "", {"content": "x"})
    assert link.startswith(BUILT_HERE)
    page = (root / "playground" / "page.mjs").read_text(encoding="utf-8")
    fields = set(json.loads(page.partition("const FIELDS = ")[2].partition(";")[0]))
    assert set(state_of(link)) - {"view"} <= fields
    assert json.loads(state_of(link)["tools"]) == [{"name": "f"}]
