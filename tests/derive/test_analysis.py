"""The analysis of templates written for these tests: each of a shape that some template has, or may have one day."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import toolgram
from tests.derive.turns import SHARED, TEMPLATES
from toolgram.derive import DiffAnalysisResult, TemplateError, analyse
from toolgram.derive.analysis import analyse_compiled
from toolgram.derive.messages import write_messages
from toolgram.derive.rendering import ChatTemplate
from toolgram.derive.result import (
    ArgumentsStyle,
    ContentMode,
    ReasoningMode,
    ToolFormat,
    ValueEncoding,
)

NAMES = sorted(path.stem for path in TEMPLATES.glob("*.jinja"))
REAL = sorted((SHARED / "data" / "templates").glob("*.jinja"))
TOLD = [path.stem for path in TEMPLATES.glob("told_*.jinja")]
# What is said of the templates that do not show everything, or not in a way that is understood.
WARNINGS = {
    "no_tools": "prints no tool calls",
    "id_only": "the id must carry the name",
    **dict.fromkeys(TOLD, "prints no tool calls"),
    "escaped_text": "arguments of these types is not understood",
    "type_tags": "arguments of these types is not understood",
}


def source(name: str) -> str:
    return (TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8")


def test_a_call_says_which_values_are_of_a_type_that_was_not_understood() -> None:
    fmt = toolgram.derive_format(source("escaped_text"))
    text = '<run tool="f"><with key="a">x</with><with key="b">2</with></run>'
    properties = {"a": {"type": "string"}, "b": {"type": "integer"}}
    parameters = {"type": "object", "properties": properties}
    tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}]
    for declared, unproven in ((tools, ["a"]), (None, ["a", "b"])):
        message = fmt.parse(text, declared)
        assert [call.status for call in message.tool_calls] == ["complete"]
        assert [each.text for each in message.anomalies if each.kind == "unproven_types"] == unproven


def analysed(name: str) -> DiffAnalysisResult:
    return analyse(source(name), "<s>", "</s>")


@pytest.mark.parametrize("name", NAMES)
def test_every_message_of_the_proof_is_rendered(name: str) -> None:
    template = ChatTemplate(source(name), "<s>", "</s>")
    result = analyse_compiled(template)
    written = {each.case.name for each in write_messages(template, result)}
    assert "content" in written
    if name in WARNINGS:
        assert any(WARNINGS[name] in warning for warning in result.report.warnings)
    else:
        assert written >= {"one call", "nested arguments", "no arguments"}
        assert not result.report.warnings


@pytest.mark.skipif(not REAL, reason="needs the real templates in ../shared/data/templates, which are absent")
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_real_templates_cost_few_renderings(path: Path) -> None:
    template = ChatTemplate(path.read_text(encoding="utf-8"), "<s>", "</s>")
    result = analyse_compiled(template)
    assert "content" in {each.case.name for each in write_messages(template, result)}
    assert result.renders < 60


FACTS: dict[str, dict[str, Any]] = {
    "single_tag_function": {"tool_format": ToolFormat.TAG_WITH_JSON, "per_call_start": "<function="},
    "single_tag_attribute": {"per_call_start": '<tool name="', "name_end": '">'},
    "openai_wrapper": {"tool_format": ToolFormat.JSON_NATIVE, "function_field": "function", "name_field": "name"},
    "id_before_name": {"call_id": "pre_func_name"},
    "id_after_arguments": {"call_id": "post_args"},
    "id_in_json": {"id_field": "id", "array_wrapped": True},
    "json_lines": {"tool_section_start": "<tool_calls>\n", "tool_section_end": "</tool_calls>"},
    "semicolon": {"call_separator": "; ", "tool_section_start": "[CALLS]"},
    "bare_lines": {"call_separator": "\n", "args_field": "parameters", "tool_section_start": ""},
    "key_value_lines": {"tool_format": ToolFormat.KEY_VALUE_LINES},
    "python_calls": {"tool_format": ToolFormat.PYTHON_CALLS, "argument_separator": ", "},
    "element_names": {"tool_format": ToolFormat.TAG_WITH_TAGGED},
    "name_as_key": {"name_is_key": True, "array_wrapped": True},
    "flat_json": {"flat_arguments": True, "name_field": "tool"},
    "counter_attribute": {"call_id": "none"},
    "reasoning_words": {"reasoning_start": "Thought: ", "reasoning_end": "\nAnswer: "},
    "reasoning_words_opened": {"reasoning_mode": ReasoningMode.FORCED_OPEN},
    "thinking_opened": {"reasoning_mode": ReasoningMode.FORCED_OPEN, "reasoning_end": "\n</think>\n\n"},
    "thinking_opened_stripped": {"reasoning_mode": ReasoningMode.FORCED_OPEN, "reasoning_end": "</think>"},
    "thinking_closed_when_off": {"reasoning_mode": ReasoningMode.FORCED_CLOSED, "switch": "enable_thinking"},
    "role_before_reasoning": {"reasoning_mode": ReasoningMode.DELIMITER, "reasoning_start": ""},
    "reasoning_with_calls_only": {"reasoning_mode": ReasoningMode.TOOLS_ONLY},
    "thought_blocks": {"reasoning_mode": ReasoningMode.TAG_BASED, "reasoning_start": "[T]"},
    "answer_always": {"content_mode": ContentMode.ALWAYS_WRAPPED, "content_end": "</answer>"},
    "answer_with_reasoning": {"content_mode": ContentMode.WRAPPED_WITH_REASONING, "content_start": "<answer>"},
    "section_per_call": {"tool_section_start": "<section>\n", "per_call_start": "<call>"},
    "no_tools": {"tool_format": ToolFormat.NONE},
    "own_eos": {"turn_end": "</s>"},
    "two_turn_ends": {"turn_end": "<|eot|>", "turn_end_after_calls": "<|eom|>"},
    "own_messages": {"content_start": "<|content|>", "reasoning_start": "<|think|>"},
    "python_tokens": {"tool_format": ToolFormat.PYTHON_CALLS},
    "string_attribute": {"tool_section_start": "\n\n<|D|function_calls>\n"},
    "answer_lines": {"content_mode": ContentMode.ALWAYS_WRAPPED, "reasoning_mode": ReasoningMode.FORCED_OPEN},
    "last_query": {"reasoning_mode": ReasoningMode.FORCED_CLOSED},
}


@pytest.mark.parametrize("name", FACTS)
def test_facts_have_their_names(name: str) -> None:
    result = analysed(name)
    for fact, value in FACTS[name].items():
        holders = (result, result.markers, result.json_fields)
        assert next(getattr(holder, fact) for holder in holders if hasattr(holder, fact)) == value, fact


@pytest.mark.parametrize(
    ("name", "encodings"),
    [
        ("element_names", {"string": ValueEncoding.RAW, "boolean": ValueEncoding.JSON}),
        ("python_calls", {"string": ValueEncoding.PYTHON_REPR, "null": ValueEncoding.PYTHON}),
        ("json_values_in_tags", {"string": ValueEncoding.JSON, "object": ValueEncoding.JSON}),
        ("null_omitted", {"null": ValueEncoding.OMITTED, "boolean": ValueEncoding.PYTHON}),
        ("typed_attribute", {"integer": ValueEncoding.JSON}),
        ("own_nesting", {"string": ValueEncoding.RAW, "object": ValueEncoding.NOTATION}),
        ("marked_elements", {"string": ValueEncoding.RAW, "array": ValueEncoding.ELEMENTS}),
    ],
)
def test_values_are_encoded_by_type(name: str, encodings: dict[str, ValueEncoding]) -> None:
    calls = analysed(name).calls
    assert calls is not None
    assert {kind: calls.arguments.values[kind].encoding for kind in encodings} == encodings


def test_arguments_as_a_json_string() -> None:
    calls = analysed("arguments_as_string").calls
    assert calls is not None
    assert calls.arguments.style is ArgumentsStyle.JSON_STRING


def test_two_styles_of_section() -> None:
    calls = analysed("two_section_styles").calls
    assert calls is not None
    assert (calls.section_start, calls.section_end, calls.single) == ("<call>[", "]</call>", ("<call>", "</call>"))


@pytest.mark.parametrize(
    ("name", "end"), [("thinking_opened_stripped", "</think>"), ("thinking_opened", "\n</think>\n\n")]
)
def test_what_a_model_writes_behind_a_prompt_that_opens_a_thought(name: str, end: str) -> None:
    template = ChatTemplate(source(name), "<s>", "</s>")
    written = {each.case.name: each for each in write_messages(template, analyse_compiled(template))}
    case, output = written["reasoning and content"].case, written["reasoning and content"].output
    assert output.startswith(f"{case.reasoning}{end}{case.content}")


def test_a_refusal_is_reported() -> None:
    report = analysed("null_content").report
    assert any("no content beside calls" in probe.error.problem for probe in report.failed)
    assert {finding.phase for finding in report.findings} >= {"R1-R3", "C1", "T1-T3", "T4-T7"}


def test_no_tools_is_said() -> None:
    result = analysed("no_tools")
    assert any("no tool calls" in warning for warning in result.report.warnings)
    assert result.calls is None


@pytest.mark.parametrize("eos", ["", "</s>", "<|end|>", "\n"])
def test_the_eos_token_changes_nothing_else(eos: str) -> None:
    for name in ("own_eos", "json_lines", "answer_always"):
        report = toolgram.derive_format(source(name), bos_token="<s>", eos_token=eos).report
        assert report is not None
        assert not report.failed


@pytest.mark.parametrize(
    "template",
    [
        "",
        "constant",
        "{% if",
        "{{ raise_exception('never') }}",
        "{% for m in messages %}{{ m.role }}{% endfor %}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    ],
)
def test_what_is_no_chat_template_is_an_error(template: str) -> None:
    with pytest.raises(TemplateError):
        analyse(template, "<s>", "</s>")
