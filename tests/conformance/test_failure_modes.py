"""The collected failure modes of other parsers, row by row.

Strategy: each row is run whole, one character at a time, in its own chunks and in pieces of 2, 3 and 5; all of them
agree with each other and with what the row expects. A truncated call is compared by completing its honest prefix as a
reader would. Rows that this project judges wrong are listed with the page that says why, and what holds instead.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import toolgram
from tests.conformance import judged
from tests.conformance.judged import AGREE, DISAGREE, OPEN
from tests.page_parts import part
from tests.streams import ROOT, SHARED, assert_same_however_split, run
from tests.suite_told import suite
from tests.tables import table

DATA = SHARED / "data" / "failure-modes.jsonl"
# What a row calls a format, and its name here.
FORMATS = table(__file__, "formats")

# The decision page for these rows; each maps to the message that holds here instead.
DECISION = "docs/decisions/0007-test-cases-judged-differently.md"
JUDGED_WRONG: dict[str, dict[str, Any]] = table(__file__, "judged_wrong")

# Two pieces of text around a call: we join them with one space, the row with the blanks it found.
JOINED = {"pyth-009", "mist-016"}


def rows() -> list[dict[str, Any]]:
    if not DATA.exists():
        return []
    found = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines() if line]
    return [row for row in found if row["format"] in FORMATS]


ROWS = rows()
needs_data = pytest.mark.skipif(not ROWS, reason="the case file ../shared/data/failure-modes.jsonl is absent")


def content_matches(row: dict[str, Any], content: str | None, expected: str) -> bool:
    found = content or ""
    if row["content_match"] == "exact":
        return found == expected
    if row["id"] in JOINED:
        return re.sub(r"\s+", " ", found).strip() == re.sub(r"\s+", " ", expected).strip()
    return found.strip() == expected.strip()


def is_as_expected(row: dict[str, Any], message: toolgram.Message, expected: dict[str, Any]) -> bool:
    calls = [
        (call.name, json.loads(call.arguments) if call.status == "complete" else suite.closed(call.arguments))
        for call in message.tool_calls
    ]
    return (
        json.dumps(calls) == json.dumps([(call["name"], call["arguments"]) for call in expected["tool_calls"]])
        and (message.reasoning or "").strip() == expected["reasoning"].strip()
        and content_matches(row, message.content, expected["content"])
    )


@needs_data
@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_row(row: dict[str, Any]) -> None:
    fmt = toolgram.get_format(FORMATS[row["format"]])
    prefix = "[THINK]" if row.get("initial_state") == "reasoning" else ""
    message = assert_same_however_split(fmt, row["output_text"], tools=row.get("tools"), prefix=prefix)
    if "chunks" in row:
        assert run(fmt, row["chunks"], tools=row.get("tools"), prefix=prefix)[1] == message
    if row["id"] in JUDGED_WRONG:
        accepted = [JUDGED_WRONG[row["id"]]]
        row = {**row, "content_match": "exact"}
    else:
        accepted = [row["expected"], *(row.get("also_ok", []) if row.get("doubtful") else [])]
    assert any(is_as_expected(row, message, expected) for expected in accepted), (
        f"{row['title']}\n text: {row['output_text'][:400]!r}\n found: {message}\n expected: {accepted}"
    )


@needs_data
def test_all_formats_with_rows_are_there() -> None:
    assert {row["format"] for row in ROWS} == set(FORMATS)
    assert len(ROWS) == 91


def test_rows_judged_wrong_have_a_page() -> None:
    page = (ROOT / DECISION).read_text(encoding="utf-8")
    for row in JUDGED_WRONG:
        assert row in page, f"{DECISION} does not say why {row} is judged wrong"


# --- every case of other parsers' tests -----------------------------------------------------------------------------

PAGE = Path(__file__).parents[2] / "docs" / "deviations-judged.md"


def test_every_row_has_the_verdict_that_the_page_says(shared: Path) -> None:
    rows = judged.judged(shared)
    assert len(rows) == 900
    assert [each.row.id for each in rows if each.verdict == OPEN] == []
    assert sum(each.verdict in (AGREE, DISAGREE) for each in rows) > 600
    assert judged.page(rows).strip() == part(PAGE, *judged.PART), "make judged"
