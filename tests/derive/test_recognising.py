"""The shipped format of a family is taken for a template that writes its calls, if it reads all that is rendered."""

from pathlib import Path

import pytest

import toolgram
from tests.derive.turns import calls_of, derived, report_of, template_of
from tests.tables import table
from toolgram.observing.probes import TOOLS

JSON = '{"name": "$NAME", "arguments": $ARGUMENTS}'
HERMES = template_of(f"<tool_call>\n{JSON}\n</tool_call>")
VALUE = "{{ '\n' + v + '\n' if v is string and '\n' in v else v if v is string else v|tojson }}"
TAGGED = (
    f"<tool_call>\n<function=$NAME>\n$EACH<parameter={{{{ k }}}}>{VALUE}</parameter>\n$END</function>\n</tool_call>"
)
FAMILIES = Path(__file__).with_name("families")


@pytest.mark.parametrize(("template", "shipped", "habit"), table(__file__, "what_only_the_family_does_is_read"))
def test_what_only_the_family_does_is_read(template: str, shipped: str, habit: str) -> None:
    fmt = toolgram.derive_format(template)
    report = report_of(fmt)
    assert report.shipped == shipped
    assert report.ok, str(report)
    assert f"the shipped format {shipped}: it is near the template" in str(report)
    assert calls_of(fmt.parse(habit)) == [("f", {"a": "x"})]


def test_the_template_is_kept() -> None:
    """Its prompt, and the token that ends its turns, which the shipped format does not know."""
    fmt = toolgram.derive_format(HERMES, eos_token="<|finis|>", name="mine")
    assert (fmt.name, report_of(fmt).shipped) == ("mine", "hermes")
    for end in ("<|end|>", "<|finis|>", "<|im_end|>"):
        assert fmt.parse(f"Hello.{end}").content == "Hello."
    assert toolgram.get_format("hermes").parse("Hello.<|end|>").content == "Hello.<|end|>"


def test_no_format_is_near_without_its_markers() -> None:
    report = report_of(toolgram.derive_format(template_of(f"<my_call>{JSON}</my_call>")))
    assert (report.shipped, report.asked) == (None, ())


def test_one_that_reads_otherwise_is_not_taken() -> None:
    """An answer in tags of its own, which Hermes takes for text."""
    tagged = HERMES.replace("{{ m.content if m.content }}", "{% if m.content %}<say>{{ m.content }}</say>{% endif %}")
    fmt = toolgram.derive_format(tagged)
    report = report_of(fmt)
    assert report.shipped is None
    assert report.asked[0].startswith("hermes, which is near: content")
    assert "not taken:" in str(report)
    assert report.to_dict()["asked"] == list(report.asked)
    assert fmt.parse("<say>Hello.</say>").content == "Hello."


def test_a_form_that_is_read_by_a_repair_only_is_not_recognised() -> None:
    """Calls without the outer tag are a habit of models; here the template writes them."""
    call = "<function=$NAME>\n$EACH<parameter={{ k }}>\n$VALUE\n</parameter>\n$END</function>"
    report = report_of(toolgram.derive_format(template_of(call)))
    assert report.shipped is None
    assert any("by a repair, unusual_form" in each for each in report.asked)


def test_a_format_that_reads_all_that_is_rendered() -> None:
    """Text is written in two ways, which no finding explains; the shipped format reads both."""
    fmt = toolgram.derive_format(template_of(TAGGED))
    report = report_of(fmt)
    assert report.shipped == "qwen3_coder"
    assert report.why.startswith("it is near the template, and reads")
    assert report.ok, str(report)
    arguments = "<parameter=a>x</parameter>\n<parameter=b>\ny\nz\n</parameter>\n"
    text = f"<tool_call>\n<function=f>\n{arguments}</function>\n</tool_call>"
    assert calls_of(fmt.parse(text)) == [("f", {"a": "x", "b": "y\nz"})]


def test_nothing_is_taken_where_one_message_is_read_otherwise() -> None:
    report = report_of(toolgram.derive_format(template_of(TAGGED.replace("</parameter>", "</param>"))))
    assert (report.shipped, report.ok) == (None, False)
    assert report_of(derived("key_value_lines")).shipped is None


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
