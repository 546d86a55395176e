"""Templates that refuse some messages: they are asked otherwise until they print, and the report says what it took."""

from __future__ import annotations

import itertools

import pytest

import toolgram
from tests.derive.test_shapes import calls_of, report_of
from tests.properties.selection import quarter

EACH = "{% for c in m.tool_calls or [] %}{% if WHERE %}R{% endif %}{% endfor %}"
REFUSALS = {
    "calls without content": "{% if m.tool_calls and not m.content %}R{% endif %}",
    "calls beside content": "{% if m.tool_calls and m.content %}R{% endif %}",
    "calls with content that is not null": "{% if m.tool_calls and m.content is not none %}R{% endif %}",
    "content without calls": "{% if m.role == 'assistant' and m.content and not m.tool_calls %}R{% endif %}",
    "tools without calls": "{% if m.role == 'assistant' and tools and not m.tool_calls %}R{% endif %}",
    "calls without tools": "{% if m.tool_calls and not tools %}R{% endif %}",
    "tools": "{% if tools %}R{% endif %}",
    "ids that are not nine letters": EACH.replace("WHERE", "c.id|length != 9"),
    "ids that are not 24 letters": EACH.replace("WHERE", "c.id|length != 24"),
    "ids without their word": EACH.replace("WHERE", "not c.id.startswith('call_')"),
    "a user first": "{% if loop.first and m.role != 'system' %}R{% endif %}",
    "a system turn": "{% if m.role == 'system' %}R{% endif %}",
    "roles that do not alternate": (
        "{% set at = namespace(i=0) %}{% for x in messages %}{% if x.role in ('user', 'assistant') %}"
        "{% if (x.role == 'user') != (at.i % 2 == 0) %}R{% endif %}{% set at.i = at.i + 1 %}{% endif %}{% endfor %}"
    ),
    "calls without results": (
        "{% if m.tool_calls and (loop.last or messages[loop.index0 + 1].role != 'tool') %}R{% endif %}"
    ),
    "an answer at the end": "{% if loop.last and m.role == 'assistant' %}R{% endif %}",
    "content that is no text": "{% if m.content is not string %}R{% endif %}",
    "arguments that are no text": EACH.replace("WHERE", "c.function.arguments is not string"),
    "arguments that are text": EACH.replace("WHERE", "c.function.arguments is string"),
    "several calls": "{% if m.tool_calls and m.tool_calls|length > 1 %}R{% endif %}",
    "calls without a thought": "{% if m.tool_calls and not m.reasoning_content %}R{% endif %}",
    "a thought beside content": "{% if m.reasoning_content and m.content %}R{% endif %}",
}
# Two of these refuse every message with calls, with a thought, or with content, or every conversation.
CONTRADICTORY = [
    {"content without calls", "calls beside content"},
    {"content without calls", "calls with content that is not null"},
    {"calls without content", "a thought beside content"},
    {"content without calls", "a thought beside content"},
    {"calls without content", "calls beside content"},
    {"calls without content", "calls with content that is not null"},
    {"calls with content that is not null", "content that is no text"},
    {"calls without tools", "tools"},
    {"ids that are not nine letters", "ids that are not 24 letters"},
    {"ids that are not nine letters", "ids without their word"},
    {"a user first", "a system turn"},
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
    refused = "".join(REFUSALS[name].replace("R", f"{{{{ raise_exception('refused: {name}') }}}}") for name in names)
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


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("calls without content", "calls are printed beside content only"),
        ("calls without results", "results after them"),
        ("calls without a thought", "a thought"),
        ("ids that are not 24 letters", "ids like"),
        ("content without calls", "content is printed beside calls only"),
        ("an answer at the end", "a user's message after it"),
    ],
)
def test_the_report_says_what_was_needed(name: str, needed: str) -> None:
    analysis = report_of(derived(name)).analysis
    assert analysis is not None
    assert any(needed in finding.found for finding in analysis.report.findings)


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
