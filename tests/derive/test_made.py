"""Templates made of independent pieces: what is read wrongly is never silent."""

from __future__ import annotations

import pytest

import toolgram
from tests.derive.made import CALLS, THOUGHTS, made, outputs, wrong_rows

GROUPS, EACH = 8, 6


@pytest.mark.parametrize("group", range(GROUPS))
def test_no_row_is_silently_wrong(group: int) -> None:
    """`python -m tests.derive.made --first N --count M` tries more of them."""
    for number in range(group * EACH, (group + 1) * EACH):
        template = made(number)
        fmt = toolgram.derive_format(template.source, bos_token="<s>", eos_token="</s>")
        assert fmt.report is not None
        if fmt.report.ok:
            assert not wrong_rows(template, fmt), (number, template.parts)


def test_the_pieces_are_what_they_say() -> None:
    """A template prints what its parts are: else nothing would be tried."""
    printed = [(made(number), dict(each[::2] for each in outputs(made(number)))) for number in range(40)]
    for template, rows in printed:
        assert {"content", "markup", "one letter"} <= rows.keys()
        if CALLS[template.parts["calls"]][3]:
            assert "get_weather" in rows["one call"]
        if THOUGHTS[template.parts["thoughts"]][0]:
            assert "So: look it up" in rows["thought and content"]
