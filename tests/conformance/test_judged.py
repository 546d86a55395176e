"""Every case of other parsers' tests is read as a peer reads it, or by a rule of ours; the page says which."""

from __future__ import annotations

from pathlib import Path

from tests.conformance import judged
from tests.conformance.judged import AGREE, DISAGREE, OPEN
from tests.page_parts import part

PAGE = Path(__file__).parents[2] / "docs" / "deviations-judged.md"


def test_every_row_has_the_verdict_that_the_page_says(shared: Path) -> None:
    rows = judged.judged(shared)
    assert len(rows) == 900
    assert [each.row.id for each in rows if each.verdict == OPEN] == []
    assert sum(each.verdict in (AGREE, DISAGREE) for each in rows) > 600
    assert judged.page(rows).strip() == part(PAGE, *judged.PART), "make judged"
