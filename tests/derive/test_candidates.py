"""The shipped format of a family is taken for a template that writes its calls, and its recoveries apply."""

from __future__ import annotations

import pytest

import toolgram
from tests.derive.turns import calls_of, report_of
from tests.tables import table

END = "<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
HEAD = "{% for m in messages %}<|{{ m.role }}|>{{ m.content if m.content }}"
EACH = "{% for c in m.tool_calls %}@{% endfor %}"
JSON = '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments|tojson }}}'
HERMES = HEAD + EACH.replace("@", f"<tool_call>\n{JSON}\n</tool_call>") + END
OTHER_TAGS = HEAD + EACH.replace("@", f"<my_call>{JSON}</my_call>") + END


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
    report = report_of(toolgram.derive_format(OTHER_TAGS))
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
    call = (
        "<function={{ c.function.name }}>\n{% for k, v in c.function.arguments.items() %}<parameter={{ k }}>\n"
        "{{ v if v is string else v|tojson }}\n</parameter>\n{% endfor %}</function>"
    )
    report = report_of(toolgram.derive_format(HEAD + EACH.replace("@", call) + END))
    assert report.shipped is None
    assert any("by a repair, unusual_form" in each for each in report.asked)
