"""Templates that refuse some messages: they are asked in another usual form, or the report says what they refuse."""

from __future__ import annotations

import itertools

import pytest

import toolgram
from tests.derive.test_shapes import calls_of, report_of
from tests.properties.selection import quarter
from toolgram.derive.errors import TemplateError

EACH = "{% for c in m.tool_calls or [] %}{% if WHERE %}R{% endif %}{% endfor %}"
REFUSALS = {
    "calls without content": "{% if m.tool_calls and not m.content %}R{% endif %}",
    "calls beside content": "{% if m.tool_calls and m.content %}R{% endif %}",
    "calls with content that is not null": "{% if m.tool_calls and m.content is not none %}R{% endif %}",
    "tools without calls": "{% if m.role == 'assistant' and tools and not m.tool_calls %}R{% endif %}",
    "calls without tools": "{% if m.tool_calls and not tools %}R{% endif %}",
    "tools": "{% if tools %}R{% endif %}",
    "ids that are not nine letters": EACH.replace("WHERE", "c.id|length != 9"),
    "a system turn": "{% if m.role == 'system' %}R{% endif %}",
    "roles that do not alternate": (
        "{% set at = namespace(i=0) %}{% for x in messages %}{% if x.role in ('user', 'assistant') %}"
        "{% if (x.role == 'user') != (at.i % 2 == 0) %}R{% endif %}{% set at.i = at.i + 1 %}{% endif %}{% endfor %}"
    ),
    "an answer at the end": "{% if loop.last and m.role == 'assistant' %}R{% endif %}",
    "content that is no text": "{% if m.content is not string %}R{% endif %}",
    "arguments that are no text": EACH.replace("WHERE", "c.function.arguments is not string"),
    "arguments that are text": EACH.replace("WHERE", "c.function.arguments is string"),
    "several calls": "{% if m.tool_calls and m.tool_calls|length > 1 %}R{% endif %}",
    "a thought beside content": "{% if m.reasoning_content and m.content %}R{% endif %}",
}
# No usual template does this: the calls are not asked for in a form of their own, nor is the content.
NOT_ASKED = {
    "content without calls": "{% if m.role == 'assistant' and m.content and not m.tool_calls %}R{% endif %}",
    "ids that are not 24 letters": EACH.replace("WHERE", "c.id|length != 24"),
    "a user first": "{% if loop.first and m.role != 'system' %}R{% endif %}",
    "calls without results": (
        "{% if m.tool_calls and (loop.last or messages[loop.index0 + 1].role != 'tool') %}R{% endif %}"
    ),
    "calls without a thought": "{% if m.tool_calls and not m.reasoning_content %}R{% endif %}",
}
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
    report = report_of(fmt)
    assert not report.failed
    assert report.analysis is not None
    assert report.analysis.prints_calls == "yes"


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_refused_is_asked_otherwise(name: str) -> None:
    is_read(name)


@pytest.mark.parametrize("name", quarter([*REFUSALS], "test_two_refusals_together"))
def test_two_refusals_together(name: str) -> None:
    for other in itertools.islice(REFUSALS, list(REFUSALS).index(name)):
        if {name, other} not in CONTRADICTORY:
            is_read(name, other)


def test_the_report_says_what_was_needed() -> None:
    analysis = report_of(derived("an answer at the end")).analysis
    assert analysis is not None
    assert any("a user's message after it" in finding.found for finding in analysis.report.findings)


@pytest.mark.parametrize("name", [name for name in NOT_ASKED if name.startswith(("calls", "ids"))])
def test_calls_that_no_usual_template_refuses_are_left_open(name: str) -> None:
    assert not report_of(derived(name)).ok


@pytest.mark.parametrize("name", [name for name in NOT_ASKED if not name.startswith(("calls", "ids"))])
def test_content_that_no_usual_template_refuses_is_its_own_error(name: str) -> None:
    with pytest.raises(TemplateError, match=f"refused: {name}"):
        derived(name)


def test_refused_is_not_absent() -> None:
    """A template that prints no calls and one that refuses them all are told apart, and the second is not `ok`."""
    absent = toolgram.derive_format(TURNS_WITHOUT_CALLS)
    refused = derived("calls without content", "calls beside content")
    assert (report_of(absent).analysis.prints_calls, report_of(absent).ok) == ("no", True)  # type: ignore[union-attr]
    assert (report_of(refused).analysis.prints_calls, report_of(refused).ok) == ("refused", False)  # type: ignore[union-attr]
    assert any("refused every message with calls" in each for each in report_of(refused).unexplained)


TURNS_WITHOUT_CALLS = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
