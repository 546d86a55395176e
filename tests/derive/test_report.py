"""What a report says: `ok` only where nothing is left open, and in words and data that can be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import toolgram
from toolgram.check.advice import warnings_of
from toolgram.derive.report import DeriveReport

START, END = "{% for m in messages %}<|{{ m.role }}|>", "{% endfor %}"
AS_USER = START.replace("{{ m.role }}", "{{ 'user' if m.role == 'tool' else m.role }}")
PROMPT = "{% if add_generation_prompt %}<|assistant|>{% endif %}"
CONTENT = "{{ m.content if m.content }}"
CALLS = "{% for c in m.tool_calls %}<call>{{ c.function|tojson }}</call>{% endfor %}"
WHOLE = START + CONTENT + CALLS + "<|end|>" + END + PROMPT
REFUSING = "{% if m.tool_calls %}{{ raise_exception('no calls') }}{% endif %}"
TOLD = "{% if tools %}Write <tool_call>{'name': <function-name>, 'arguments': <args>}</tool_call>.{% endif %}"


def report_of(template: str) -> DeriveReport:
    report = toolgram.derive_format(template).report
    assert report is not None
    return report


def test_what_is_understood_is_ok() -> None:
    report = report_of(WHOLE)
    assert report.ok
    assert not report.unexplained
    assert toolgram.derive_format(WHOLE, strict=True).report is report


def test_a_template_that_has_no_calls_and_tells_of_none_is_ok() -> None:
    report = report_of(START + CONTENT + "<|end|>" + END + PROMPT)
    assert report.ok
    assert any("prints no tool calls" in warning for warning in report.warnings)


@pytest.mark.parametrize(
    ("template", "words"),
    [
        (START + REFUSING + CONTENT + "<|end|>" + END + PROMPT, "refused every message with calls"),
        (TOLD + START + CONTENT + "<|end|>" + END + PROMPT, "are those of hermes is taken from what it tells"),
        (TOLD.replace("tool_call", "x") + START + CONTENT + "<|end|>" + END + PROMPT, "tells the model of tools"),
        (TOLD.replace("name", "?") + START + CONTENT + "<|end|>" + END + PROMPT, "tells the model of tools"),
        (AS_USER + CONTENT + "<|end|>" + END + PROMPT,
         "prints what a tool answers and no calls"),
        (WHOLE.replace("<|assistant|>{% endif", "<|assistant|><|secret|>{% endif"), "ends in '<|secret|>'"),
        (WHOLE.replace(CONTENT, CONTENT * 2), "is printed twice"),
        (WHOLE.replace(CONTENT, "{% if m.content and m.tool_calls %}{{ raise_exception('x') }}{% endif %}" + CONTENT),
         "refused a message of calls and content"),
    ],
)  # fmt: skip
def test_what_is_left_open_is_not_ok(template: str, words: str) -> None:
    report = report_of(template)
    assert not report.ok
    assert any(words in each for each in report.unexplained), report.unexplained
    with pytest.raises(toolgram.FormatError):
        toolgram.derive_format(template, strict=True)


def test_a_report_can_be_read() -> None:
    report = report_of(TOLD + START + CONTENT + "<|end|>" + END + PROMPT)
    lines = str(report).splitlines()
    assert lines[0].startswith("not ok, the shipped format hermes: ")
    assert any(line.startswith("unexplained: the template prints no calls") for line in lines)
    assert len(lines) < 20
    assert max(map(len, lines)) < 240
    assert str(report_of(WHOLE)).splitlines()[0] == "ok, derived from the template"


def test_a_report_is_data() -> None:
    data = json.loads(json.dumps(report_of(WHOLE).to_dict()))
    assert data["ok"] is True
    assert data["found"]["calls"] == "json_native"
    assert data["found"]["markers"]["per_call_start"] == "<call>"
    assert all(probe["problem"] == "" for probe in data["probes"])


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("<think>\n", "</think>"),
        ("<x:think>", "</x:think>"),
        ("[THINK]", "[/THINK]"),
        ("<|think_start|>", "<|think_end|>"),
        ("<|begin_of_thought|>", "<|end_of_thought|>"),
        ("<|START_THINKING|>", "<|END_THINKING|>"),
    ],
)
def test_what_the_prompt_opens_and_no_turn_prints_closes_with_its_mirror(opening: str, closing: str) -> None:
    fmt = toolgram.derive_format(WHOLE.replace("<|assistant|>{% endif", f"<|assistant|>{opening}{{% endif"))
    text = f'They greet.\n{closing}\n\nHello.<call>{{"name": "f", "arguments": {{}}}}</call>'
    message = fmt.parse(text, prefix="<|assistant|>" + opening)
    assert (message.reasoning or "").strip() == "They greet."
    assert message.content == "Hello."
    assert [call.name for call in message.tool_calls] == ["f"]
    assert fmt.report is not None
    assert any("it is taken to be" in warning for warning in fmt.report.warnings)


@pytest.mark.parametrize("opening", ["<|thoughts|>", "<|channel|>x<|message|>"])
def test_what_the_prompt_opens_and_has_no_mirror_is_not_explained(opening: str) -> None:
    report = report_of(WHOLE.replace("<|assistant|>{% endif", f"<|assistant|>{opening}{{% endif"))
    assert not report.ok
    assert report.found.reasoning == "none"


def test_a_report_that_is_not_ok_ends_with_the_next_step() -> None:
    told = report_of(TOLD.replace("tool_call", "x") + START + CONTENT + "<|end|>" + END + PROMPT)
    assert str(told).splitlines()[-1].startswith("next:        compare with an output of the model")
    assert told.to_dict()["next_step"] in str(told)
    assert (report_of(WHOLE).next_step, report_of(WHOLE).to_dict()["next_step"]) == ("", "")


def test_the_files_have_what_is_known_of_calls_that_are_not_read() -> None:
    """Tagged arguments come before the name: no skeleton writes them, and a person may."""
    each = "{% for k, v in c.function.arguments.items() %}<{{ k }}>{{ v }}</{{ k }}>{% endfor %}"
    call = "{% for c in m.tool_calls %}<c>" + each + "<n>{{ c.function.name }}</c>{% endfor %}"
    fmt = toolgram.derive_format(START + CONTENT + call + "<|end|>" + END + PROMPT)
    assert fmt.report is not None
    assert not fmt.report.ok
    assert "// Not read yet: calls." in fmt.grammar_text
    assert "'<c>', '{arguments}', '<n>', '{name}', '</c>'" in fmt.grammar_text
    assert "toolgram check" in fmt.report.next_step


def test_check_lists_what_is_open(tmp_path: Path) -> None:
    """Each comment of the grammar that says so, with its line, until it is deleted."""
    fmt = toolgram.derive_format(WHOLE.replace("<|assistant|>{% endif", "<|assistant|><|secret|>{% endif"))
    assert fmt.report is not None
    grammar, machine = tmp_path / "f.lark", tmp_path / "f.yaml"
    machine.write_text(fmt.machine_text, encoding="utf-8")
    for text, count in ((fmt.grammar_text, len(fmt.report.unexplained)), (_done(fmt.grammar_text), 0)):
        grammar.write_text(text, encoding="utf-8")
        found = [each for each in warnings_of(toolgram.load_format(grammar, machine)) if ": open: " in each]
        assert len(found) == count
        assert all(each.startswith(f"{grammar}:{at}: open: the generation prompt") for at, each in enumerate(found, 1))


def _done(grammar: str) -> str:
    return "".join(line for line in grammar.splitlines(keepends=True) if not line.startswith("// open: "))


@pytest.mark.parametrize(
    "source",
    [
        "{{ if .System }}<|im_start|>system\n{{ .System }}<|im_end|>{{ end }}<|im_start|>user\n{{ .Prompt }}<|im_end|>",
        "{{- range .Messages }}<|{{ .Role }}|>{{ .Content }}{{- end }}",
    ],
)
def test_a_template_of_another_language_is_called_one(source: str) -> None:
    with pytest.raises(toolgram.ToolgramError, match=r"is a Go template.*tokenizer_config\.json"):
        toolgram.derive_format(source)
