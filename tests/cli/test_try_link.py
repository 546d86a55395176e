"""`toolgram try --link`: the link holds the output, and what it was read as."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

import toolgram
from tests.cli.running import run
from toolgram.cli.playground_link import ADDRESS, BUILT_HERE, playground_link


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
