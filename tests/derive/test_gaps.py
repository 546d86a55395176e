"""Shapes that were gaps: each is read, or its reason stands in the report, in the words of the page."""

from __future__ import annotations

from pathlib import Path

import pytest

import toolgram
from tests.derive.turns import filled, report_of
from tests.tables import table
from toolgram.check import check_format

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "read-any-model.md"


def template(row: dict[str, str]) -> str:
    """The template of a row of `test_gaps.yaml`."""
    calls = ["{% if m.tool_calls %}", "{% for c in m.tool_calls %}", "{% endfor %}", "{% endif %}"]
    parts = (calls[0], row.get("before", ""), calls[1], row.get("call", ""), calls[2], row.get("after", ""), calls[3])
    turn = row.get("turn", row.get("content", "$CONTENT") + "".join(parts))
    prompt = "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    return "{% for m in messages %}<|{{ m.role }}|>" + filled(turn) + "<|end|>{% endfor %}" + prompt


def rows(kind: str) -> pytest.MarkDecorator:
    """The parameters of a test: the rows of this kind."""
    found = table(__file__, kind)
    return pytest.mark.parametrize("row", found.values(), ids=found.keys())


@rows("escaped")
def test_what_is_escaped_comes_back(row: dict[str, str], tmp_path: Path) -> None:
    """The two files say how it is escaped; they load, and `check` has nothing to say."""
    fmt = toolgram.derive_format(template(row), eos_token="<|end|>")
    report = report_of(fmt)
    assert report.ok, (report.failed, report.unexplained)
    assert f"tags: [{row['tags']}]" in fmt.machine_text
    for name, text in (("made.lark", fmt.grammar_text), ("made.yaml", fmt.machine_text)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    checked = check_format(toolgram.load_format(tmp_path / "made.lark", tmp_path / "made.yaml"))
    assert checked.ok, [each for each in checked.findings if not each.ok]


@rows("failing")
def test_what_is_encoded_does_not_come_back(row: dict[str, str]) -> None:
    assert report_of(toolgram.derive_format(template(row), eos_token="<|end|>")).failed


@rows("read")
def test_a_shape_that_was_a_gap_is_read(row: dict[str, str]) -> None:
    report = report_of(toolgram.derive_format(template(row), eos_token="<|end|>"))
    assert not report.failed, report.failed
    assert report.ok, report.unexplained


@rows("named")
def test_a_shape_that_is_not_read_has_its_reason_in_the_report_and_on_the_page(row: dict[str, str]) -> None:
    report = report_of(toolgram.derive_format(template(row), eos_token="<|end|>"))
    assert any(row["reason"] in each for each in report.unexplained), report.unexplained
    assert row["reason"] in " ".join(PAGE.read_text(encoding="utf-8").split())
