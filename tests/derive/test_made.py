"""Templates made of independent pieces: what is read wrongly is never silent."""

import pytest

import toolgram
from tests.derive.made import CALLS, THOUGHTS, Made, made, outputs, twin, unreadable, wrong_rows
from tests.derive.turns import report_of
from tests.properties.selection import quarter

GROUPS, EACH = 16, 6  # a run takes a quarter of the groups
WORST = 0.1  # of the rows of a group that can be read: eight templates are few; 600 have 2%


@pytest.mark.parametrize("group", quarter(range(GROUPS), "test_no_row_is_silently_wrong"))
def test_no_row_is_silently_wrong(group: int) -> None:
    """`python -m benchmarks.made_templates --first N --count M` tries more of them."""
    rows = missed = 0
    for number in range(group * EACH, (group + 1) * EACH):
        template = made(number)
        fmt = toolgram.derive_format(template.source, bos_token="<s>", eos_token="</s>")
        wrong = wrong_rows(template, fmt)
        assert not (report_of(fmt).ok and wrong), (number, template.parts)
        rows += len(list(outputs(template)))
        missed += sum(not unreadable(template, name) for name, _, _ in wrong)
    assert missed <= WORST * rows, f"{missed} of {rows} rows that can be read are not"


def test_rows_that_no_parser_can_read_have_a_reason() -> None:
    """What is called unreadable is so by the text alone: the rows beside it are read."""
    template = next(each for each in map(made, range(100)) if each.parts["calls"] == "python_print")
    reasons = {name: unreadable(template, name) for name, _, _ in outputs(template)}
    assert (reasons["content"], reasons["nested"]) == ("", "Python cannot read the text")


def test_a_message_that_is_rendered_as_another_one_is_found() -> None:
    """Templates that leave a thought out, and the blanks at the edges of content."""
    for row, printed in (("thought and content", "m.content"), ("code", "m.tool_calls[0].function.arguments.language")):
        source = "{% for m in messages %}{{ m.content }}{{ " + printed + " if m.role == 'assistant' }}{% endfor %}"
        assert twin(Made(0, {}, source, ""), row) is not None
    assert twin(made(1), "one call") is None


def test_the_pieces_are_what_they_say() -> None:
    """A template prints what its parts are: else nothing would be tried."""
    printed = [(made(number), dict(each[::2] for each in outputs(made(number)))) for number in range(40)]
    for template, rows in printed:
        assert {"content", "markup", "one letter"} <= rows.keys()
        if CALLS[template.parts["calls"]][3]:
            assert "get_weather" in rows["one call"]
        if THOUGHTS[template.parts["thoughts"]][0]:
            assert "So: look it up" in rows["thought and content"]
