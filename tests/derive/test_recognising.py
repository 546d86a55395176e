"""A shipped format is taken where it reads all that a template renders and the analysis does not explain it."""

from __future__ import annotations

from pathlib import Path

import pytest

import toolgram
from tests.derive.turns import calls_of, derived, report_of
from toolgram.observing.probes import TOOLS

HEAD = "{% for m in messages %}<|{{ m.role }}|>{{ m.content if m.content }}"
VALUE = "{{ '\n' + v + '\n' if v is string and '\n' in v else v if v is string else v|tojson }}"
CALLS = (
    "{% for c in m.tool_calls %}<tool_call>\n<function={{ c.function.name }}>\n"
    "{% for k, v in c.function.arguments.items() %}<parameter={{ k }}>" + VALUE + "</parameter>\n{% endfor %}"
    "</function>\n</tool_call>{% endfor %}"
)
END = "<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"


def test_a_format_that_reads_all_that_is_rendered() -> None:
    """Text is written in two ways, which no finding explains; the shipped format reads both."""
    fmt = toolgram.derive_format(HEAD + CALLS + END)
    report = report_of(fmt)
    assert report.shipped == "qwen3_coder"
    assert report.why.startswith("it is near the template, and reads")
    assert report.ok, str(report)
    arguments = "<parameter=a>x</parameter>\n<parameter=b>\ny\nz\n</parameter>\n"
    text = f"<tool_call>\n<function=f>\n{arguments}</function>\n</tool_call>"
    assert calls_of(fmt.parse(text)) == [("f", {"a": "x", "b": "y\nz"})]


def test_nothing_is_taken_where_one_message_is_read_otherwise() -> None:
    broken = CALLS.replace("</parameter>", "</param>")
    report = report_of(toolgram.derive_format(HEAD + broken + END))
    assert report.shipped is None
    assert not report.ok
    assert report_of(derived("key_value_lines")).shipped is None


FAMILIES = Path(__file__).with_name("families")


@pytest.mark.parametrize(
    ("name", "failed", "left_open"),
    [("minicpm5", set(), ["printed as Python"]), ("minimax_m3", {"nested arguments"}, [])],
)
def test_a_family_is_recognised_by_what_its_template_renders(name: str, failed: set[str], left_open: list[str]) -> None:
    """Elements do not tell empty lists, objects and texts apart, nor what is Python from a text; all else is proved."""
    report = report_of(toolgram.derive_format((FAMILIES / f"{name}.jinja").read_text(encoding="utf-8")))
    assert report.shipped == name
    assert {each.case for each in report.failed} == failed, str(report)
    assert [words in each for words, each in zip(left_open, report.unexplained, strict=True)] == [True] * len(left_open)


def test_a_family_whose_template_is_explained_is_read_as_its_shipped_format_reads_it() -> None:
    """Nothing is asked of shipped formats where derivation leaves nothing open: several may read the same messages."""
    fmt = toolgram.derive_format((FAMILIES / "muse.jinja").read_text(encoding="utf-8"))
    report = report_of(fmt)
    assert report.ok, str(report)
    shipped = toolgram.get_format("muse")
    for probe in report.probes:
        derived_one, shipped_one = (each.parse(probe.output, TOOLS) for each in (fmt, shipped))
        assert (derived_one.content, derived_one.reasoning) == (shipped_one.content, shipped_one.reasoning)
        assert calls_of(derived_one) == calls_of(shipped_one)
