"""Shapes that were gaps: each is read, or its reason stands in the report, in the words of the page."""

from __future__ import annotations

from pathlib import Path

import pytest

import toolgram
from tests.derive.test_shapes import report_of
from toolgram.check import check_format

START, TURN_END = "{% for m in messages %}<|{{ m.role }}|>", "<|end|>{% endfor %}"
PROMPT = "{% if add_generation_prompt %}<|assistant|>{% endif %}"
CONTENT = "{{ m.content if m.content }}"
NAME, ARGUMENTS = "{{ c.function.name }}", "{{ c.function.arguments|tojson }}"
VALUE = "{{ v if v is string else v|tojson }}"
PAGE = Path(__file__).parents[2] / "docs" / "guides" / "read-any-model.md"


def with_calls(call: str, before: str = "", behind: str = "", content: str = CONTENT) -> str:
    calls = "{% if m.tool_calls %}" + before + "{% for c in m.tool_calls %}" + call + "{% endfor %}" + behind
    return START + content + calls + "{% endif %}" + TURN_END + PROMPT


def each(argument: str) -> str:
    return "{% for k, v in c.function.arguments.items() %}" + argument + "{% endfor %}"


QUOTED = "{{ '\"' ~ v ~ '\"' if v is string else v|tojson }}"
COMMA = "{{ ', ' if not loop.last }}"
ITEMS = "{% for x in v %}<i>{{ x }}</i>{% endfor %}"
ELEMENTS = "{% if v is string or v is number or v is none %}{{ v }}{% else %}" + ITEMS + "{% endif %}"
ON_A_LINE, BELOW = (
    "$ " + NAME + each(" --{{ k }} " + VALUE) + "\n",
    "@call " + NAME + "\n" + each("{{ k }}=" + VALUE + "\n"),
)
PYTHON = "print(" + NAME + "(" + each("{{ k }}={{ v|tojson }}{{ ', ' if not loop.last }}") + "))\n"
READ = {
    "two print lines in a section": with_calls(PYTHON, "<code>\n", "</code>"),
    "a counter in a marker": with_calls("<c{{ loop.index }} " + NAME + ">" + ARGUMENTS + "</c{{ loop.index }}>"),
    "a type suffix on keys": with_calls(
        "<c>" + NAME + each("<{{ k }}:{{ 's' if v is string else 'j' }}>" + VALUE + "</>") + "</c>"
    ),
    "quotes around text, and a type before it": with_calls(
        '<c n="' + NAME + '">' + each('<p k="{{ k }}" text="{{ v is string }}">' + QUOTED + "</p>") + "</c>"
    ),
    "text with the short marker that ends it": with_calls(
        "<do " + NAME + " " + each('{{ k }}="' + VALUE + '"{{ " " if not loop.last }}') + "/>"
    ),
    "bare words in what looks like Python, in markers": with_calls(
        NAME + "(" + each("{{ k }}=" + VALUE + COMMA) + "){{ ', ' if not loop.last }}", "<all>[", "]</all>"
    ),
    "a bar before arguments, and if there are none": with_calls(
        "<c>" + NAME + "|" + each("{{ k }}={{ v|tojson }}{{ '|' if not loop.last }}") + "</c>"
    ),
    "blanks inside an element": with_calls("<c>" + NAME + each("<{{ k }}> " + VALUE + " </{{ k }}>") + "</c>"),
    "an end of turn between two calls": with_calls(
        "<c>" + NAME + ARGUMENTS + "</c>{{ '<|end|>' if not loop.last }}", content=""
    ).replace("{% endif %}<|end|>", "{% endif %}" + CONTENT + "<|end|>"),
    "a word before answers and calls, which a thought ends in as well": with_calls(
        "<c>" + NAME + ARGUMENTS + "</c>",
        content="{% if m.role == 'assistant' %}{{ 'Thought: ' ~ m.reasoning_content ~ '\n' if m.reasoning_content }}"
        "Answer: {% endif %}{{ '<a>' ~ m.content ~ '</a>' if m.content }}",
    ),
    "a thought that every turn closes, and the header before each part": with_calls(
        "<c>" + NAME + ARGUMENTS + "</c>{{ '<|end|><|assistant|>' if not loop.last }}",
        content="{% if m.role == 'assistant' %}{{ m.reasoning_content }}</think>"
        "{{ '<|end|><|assistant|>' if m.reasoning_content }}{% endif %}" + CONTENT,
    ),
}
NAMES_APART = (
    "{% if m.tool_calls %}<names>{{ m.tool_calls|map(attribute='function.name')|join(',') }}</names><inputs>["
    "{% for c in m.tool_calls %}" + ARGUMENTS + "{{ ', ' if not loop.last }}{% endfor %}]</inputs>{% endif %}"
)
NAMED = {
    "arguments before the name": (
        with_calls("<c>" + ARGUMENTS + "<n>" + NAME + "</c>"), "the arguments come before the name",
    ),
    "a call that a line end closes": (with_calls(ON_A_LINE), "nothing closes a call"),
    "lines below a call": (with_calls(BELOW), "nothing closes a call"),
    "names in a header, arguments in a list": (
        START + CONTENT + NAMES_APART + TURN_END + PROMPT, "two calls, and not one after the other",
    ),
    "names in ids": (with_calls("<c>{{ c.id }}<a>" + ARGUMENTS + "</c>"), "a call shows no name"),
    "elements inside values": (
        with_calls("<c>" + NAME + each("<{{ k }}>" + ELEMENTS + "</{{ k }}>") + "</c>"),
        "how an argument of the type array is written was not understood",
    ),
}  # fmt: skip
TEXT_OR_JSON = "(v if v is string else v|tojson)"
THOUGHT = "{% if m.reasoning_content %}<think>{{ m.reasoning_content|@ }}</think>{% endif %}"
THOUGHT += "{{ m.content|@ if m.content }}"
EMPTY = "{{ '<think></think>' if m.role == 'assistant' and not m.reasoning_content }}"
CALL = "<c>" + NAME + ARGUMENTS + "</c>"
# What is escaped, each with the tag that says how it is.
ESCAPED = {
    "values for HTML": (
        with_calls("<c " + NAME + ">" + each("<p n={{ k }}>{{ " + TEXT_OR_JSON + "|e }}</p>") + "</c>"), "value, html",
    ),
    "values for HTML, in elements": (
        with_calls("<c>" + NAME + each("<{{ k }}>{{ " + TEXT_OR_JSON + "|e }}</{{ k }}>") + "</c>"),
        "value, html, echo",
    ),
    "values for URLs": (
        with_calls(
            "<c>" + NAME + "?" + each("{{ k }}={{ " + TEXT_OR_JSON + "|urlencode }}{{ '&' if not loop.last }}") + "</c>"
        ),
        "value, url",
    ),
    "quotes around values, for HTML": (
        with_calls("<c " + NAME + ">" + each("<p n={{ k }}>{{ (" + QUOTED[3:-3] + ")|string|e }}</p>") + "</c>"),
        "value, html",
    ),
    "content for HTML": (with_calls(CALL, content="{{ m.content|e if m.content }}"), "content, html"),
    "content for a URL": (with_calls(CALL, content="{{ m.content|urlencode if m.content }}"), "content, url"),
    "thoughts for a URL": (with_calls(CALL, content=THOUGHT.replace("@", "urlencode")), "reasoning, url"),
    "content for HTML, in markers": (
        with_calls(CALL, content="{% if m.content %}<a>{{ m.content|e }}</a>{% endif %}"), "content, html",
    ),
    "thoughts for HTML": (with_calls(CALL, content=THOUGHT.replace("@", "e")), "reasoning, html"),
    "content as JSON": (with_calls(CALL, content="{{ m.content|tojson if m.content }}"), "content, string"),
    "thoughts as JSON, in markers that are there without one": (
        with_calls(CALL, content=EMPTY + THOUGHT.replace("@", "tojson")), "content, string",
    ),
    "thoughts as JSON": (with_calls(CALL, content=THOUGHT.replace("@", "tojson")), "reasoning, string"),
    "a message as one JSON object": (
        START + "{{ {'role': 'assistant', 'content': m.content, 'tool_calls': m.tool_calls or []}|tojson "
        + "if m.role == 'assistant' else m.content }}" + TURN_END + PROMPT,
        "content, string",
    ),
    "a message as one JSON object, with its thought": (
        START + "{{ {'thought': m.reasoning_content or '', 'content': m.content, 'tool_calls': m.tool_calls or []}"
        + "|tojson if m.role == 'assistant' else m.content }}" + TURN_END + PROMPT,
        "reasoning, string",
    ),
}  # fmt: skip
FAILING = {
    "a prefix on each line": with_calls(
        "<c>" + NAME + ARGUMENTS + "</c>",
        content="{% for line in (m.content or '').split('\n') %}> {{ line }}\n{% endfor %}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", ESCAPED)
def test_what_is_escaped_comes_back(shape: str, tmp_path: Path) -> None:
    """The two files say how it is escaped; they load, and `check` has nothing to say."""
    template, tags = ESCAPED[shape]
    fmt = toolgram.derive_format(template, eos_token="<|end|>")
    report = report_of(fmt)
    assert report.ok, (report.failed, report.unexplained)
    assert f"tags: [{tags}]" in fmt.machine_text
    for name, text in (("made.lark", fmt.grammar_text), ("made.yaml", fmt.machine_text)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    checked = check_format(toolgram.load_format(tmp_path / "made.lark", tmp_path / "made.yaml"))
    assert checked.ok, [each for each in checked.findings if not each.ok]


@pytest.mark.parametrize("shape", FAILING)
def test_what_is_encoded_does_not_come_back(shape: str) -> None:
    assert report_of(toolgram.derive_format(FAILING[shape], eos_token="<|end|>")).failed


@pytest.mark.parametrize("shape", READ)
def test_a_shape_that_was_a_gap_is_read(shape: str) -> None:
    report = report_of(toolgram.derive_format(READ[shape], eos_token="<|end|>"))
    assert not report.failed, report.failed
    assert report.ok, report.unexplained


@pytest.mark.parametrize("shape", NAMED)
def test_a_shape_that_is_not_read_has_its_reason_in_the_report_and_on_the_page(shape: str) -> None:
    template, reason = NAMED[shape]
    report = report_of(toolgram.derive_format(template, eos_token="<|end|>"))
    assert any(reason in each for each in report.unexplained), report.unexplained
    assert reason in " ".join(PAGE.read_text(encoding="utf-8").split())
