"""Templates that refuse some messages: they are asked in another usual form, or the report says what they refuse."""

import itertools

import pytest

import toolgram
from tests.derive.turns import analysis_of, calls_of, report_of, template_of
from tests.properties.selection import quarter
from tests.tables import table
from toolgram.derive.errors import TemplateError

REFUSALS = table(__file__, "refusals")
# No usual template does this: the calls are not asked for in a form of their own, nor is the content.
NOT_ASKED = table(__file__, "not_asked")
# Two of these refuse every message with calls, with a thought, or with content, or all that they need is not asked for.
CONTRADICTORY = [
    {"calls without tools", "tools without calls"},
    {"arguments that are no text", "calls without content"},
    {"calls without content", "a thought beside content"},
    {"calls without content", "calls beside content"},
    {"calls without content", "calls with content that is not null"},
    {"calls with content that is not null", "content that is no text"},
    {"calls without tools", "tools"},
    {"arguments that are no text", "arguments that are text"},
]
ARGUMENTS = "{{ c.function.arguments if c.function.arguments is string else c.function.arguments|tojson }}"
TURN = (
    "{% if m.role == 'assistant' %}<|assistant|>{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n"
    "</think>\n\n{% endif %}{{ m.content or '' }}{% for c in m.tool_calls or [] %}<tool_call>\n"
    '{"name": "{{ c.function.name }}", "arguments": ' + ARGUMENTS + "}\n</tool_call>{% endfor %}<|end|>\n"
    "{% else %}<|{{ m.role }}|>{{ m.content }}<|end|>\n{% endif %}"
)
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'


def derived(*names: str) -> toolgram.Format:
    raised = {name: f"{{{{ raise_exception('refused: {name}') }}}}" for name in names}
    refused = "".join((REFUSALS | NOT_ASKED)[name].replace("R", raised[name]) for name in names)
    prompt = "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    return toolgram.derive_format("{% for m in messages %}" + refused + TURN + "{% endfor %}" + prompt)


def is_read(*names: str) -> None:
    fmt = derived(*names)
    message = fmt.parse(f"<think>\nHm.\n</think>\n\n{CALL}<|end|>")
    assert (message.reasoning, message.content, calls_of(message)) == ("Hm.", None, [("f", {"a": 1})])
    message = fmt.parse("<think>\nHm.\n</think>\n\nYes.<|end|>")
    assert (message.reasoning, message.content) == ("Hm.", "Yes.")
    assert not report_of(fmt).failed
    analysis = analysis_of(fmt)
    assert analysis.prints_calls == "yes"
    if names == ("an answer at the end",):
        assert any("a user's message after it" in finding.found for finding in analysis.report.findings)


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_refused_is_asked_otherwise(name: str) -> None:
    is_read(name)


@pytest.mark.parametrize("name", quarter([*REFUSALS], "test_two_refusals_together"))
def test_two_refusals_together(name: str) -> None:
    for other in itertools.islice(REFUSALS, list(REFUSALS).index(name)):
        if {name, other} not in CONTRADICTORY:
            is_read(name, other)


@pytest.mark.parametrize("name", NOT_ASKED)
def test_calls_that_no_usual_template_refuses_are_left_open_and_content_is_its_own_error(name: str) -> None:
    if name.startswith(("calls", "ids")):
        assert not report_of(derived(name)).ok
        return
    with pytest.raises(TemplateError, match=f"refused: {name}"):
        derived(name)


def test_refused_is_not_absent() -> None:
    """A template that prints no calls and one that refuses them all are told apart, and the second is not `ok`."""
    absent = toolgram.derive_format(template_of("", "{{ m.content }}"))
    refused = derived("calls without content", "calls beside content")
    for fmt, prints, ok in ((absent, "no", True), (refused, "refused", False)):
        assert (analysis_of(fmt).prints_calls, report_of(fmt).ok) == (prints, ok)
    assert any("refused every message with calls" in each for each in report_of(refused).unexplained)
