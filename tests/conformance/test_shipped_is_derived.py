"""Where a family has a shipped format and a template, both read what the template renders as the same message."""

from __future__ import annotations

import json

import pytest

import toolgram
from tests.conformance.roundtrip import DATA, TEMPLATE_FOLDERS, TOOLS, Row, canonical, run_row
from tests.scoreboard.cases import TEMPLATES

# Where they differ, and why: the shipped format reads a model, and a template shows one way in which it writes.
APART = {
    ("ByteDance-Seed-OSS", "j_string_ws"): "models write a line end beside a value, and the shipped format drops it",
}


def rows(template: str) -> list[Row]:
    tools = json.loads(TOOLS.read_text(encoding="utf-8"))
    found = []
    for line in DATA.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["template"] == f"{template}.jinja":
            given = (row["bos_token"], row["eos_token"], tools[row["tools"]], row["prefix"], row["output"])
            found.append(Row(template, row["case"], *given, row["expected"], row["peer"]))
    return found


@pytest.mark.skipif(not DATA.exists(), reason="the recorded outputs in ../shared/data are absent")
@pytest.mark.parametrize("template", sorted(TEMPLATES))
def test_the_shipped_format_and_the_derived_one_agree(template: str) -> None:
    path = next(path for folder in TEMPLATE_FOLDERS if (path := folder / f"{template}.jinja").exists())
    recorded = rows(template)
    bos, eos = recorded[0].bos_token, recorded[0].eos_token
    derived = toolgram.derive_format(path.read_text(encoding="utf-8"), bos_token=bos, eos_token=eos)
    shipped = toolgram.get_format(TEMPLATES[template])
    apart = {}
    for row in recorded:
        one, other = (run_row(fmt, row).got for fmt in (shipped, derived))
        assert one is not None
        assert other is not None
        if canonical(one) != canonical(other):
            apart[template, row.case] = f"{canonical(one)[:200]} instead of {canonical(other)[:200]}"
    assert apart.keys() == {key for key in APART if key[0] == template}, apart
