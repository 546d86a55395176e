"""The page of judged cases is whole, and says what is open."""

from __future__ import annotations

from pathlib import Path

from tests.conformance import judged
from tests.conformance.judged import AGREE, DISAGREE, NONE, OPEN, REASONS

PAGE = Path(__file__).parents[2] / "docs" / "deviations-judged.md"
VERDICTS = {AGREE, DISAGREE, NONE, OPEN, *(reason for _, reason in REASONS)}


def test_every_row_has_a_verdict(shared: Path) -> None:
    rows = judged.judged(shared)
    assert len(rows) == 900
    assert {each.verdict for each in rows} <= VERDICTS
    agreed = [each for each in rows if each.verdict in (AGREE, DISAGREE)]
    assert len(agreed) > 250
    text = judged.page(rows)
    assert f"| all | {len(rows)} |" in text
    assert text.count("`") >= 2 * len(rows)


def test_the_page_leaves_nothing_open() -> None:
    assert "**open**" not in PAGE.read_text(encoding="utf-8")
