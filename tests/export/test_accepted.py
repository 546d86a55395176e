"""What the grammars of requests accept in their engines, a row each of `accepted.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import toolgram
from tests.export.engines import NEEDED
from tests.export.measuring import TOOLS, WRITTEN, accepts

pytestmark = NEEDED

TABLE: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("accepted.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("target", WRITTEN)
@pytest.mark.parametrize("row", TABLE["texts"], ids=lambda row: row["why"])
def test_texts(row: dict[str, Any], target: str) -> None:
    before, after = row.get("around", ("", ""))
    names = [row["format"]] if isinstance(row["format"], str) else row["format"]
    for name in names:
        for expected, key in ((True, "accepted"), (False, "refused")):
            for text in row.get(key, ()):
                found = accepts(name, target, f"{before}{text}{after}", row.get("tools", TOOLS), **row.get("ask", {}))
                assert found is expected, text


@pytest.mark.parametrize("target", WRITTEN)
@pytest.mark.parametrize("name", TABLE["formats"])
def test_requests(name: str, target: str) -> None:
    parts = {**TABLE["parts"], **TABLE["formats"][name]}
    parts["two"] = parts["call"] + parts["between"] + parts["other"]
    parts["open"] = parts["thought"][:-3]  # reasoning is closed before a call
    for row in TABLE["requests"]:
        for expected, key in ((True, "accepted"), (False, "refused")):
            for words in row.get(key, ()):
                text = "".join(parts[word] for word in words.split())
                assert accepts(name, target, text, **row["ask"]) is expected, (row, text)
    stops = toolgram.get_format(name).export(target, TOOLS).stop
    assert not stops or accepts(name, target, parts["call"] + stops[0], stop_tokens_inside=True)
    assert not stops or not accepts(name, target, parts["call"], stop_tokens_inside=True)
