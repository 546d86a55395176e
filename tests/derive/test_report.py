"""What a report says: `ok` only where nothing is left open, and in words and data that can be read."""

import json
from pathlib import Path

import pytest

import toolgram
from tests.derive.turns import calls_of, filled, report_of
from tests.own_format import load_own
from tests.tables import table
from toolgram.check.advice import warnings_of
from toolgram.derive.analysis import analyse
from toolgram.derive.messages import write_messages
from toolgram.derive.rendering import ChatTemplate
from toolgram.derive.result import Written

START, END = "{% for m in messages %}<|{{ m.role }}|>", "{% endfor %}"
AS_USER = START.replace("{{ m.role }}", "{{ 'user' if m.role == 'tool' else m.role }}")
PROMPT = "{% if add_generation_prompt %}<|assistant|>{% endif %}"
CONTENT = "{{ m.content if m.content }}"
CALLS = "{% for c in m.tool_calls %}<call>{{ c.function|tojson }}</call>{% endfor %}"
ANSWERS = START + CONTENT + "<|end|>" + END + PROMPT
WHOLE = ANSWERS.replace(CONTENT, CONTENT + CALLS)
REFUSING = "{% if m.tool_calls %}{{ raise_exception('no calls') }}{% endif %}"
TOLD = "{% if tools %}Write <tool_call>{'name': <function-name>, 'arguments': <args>}</tool_call>.{% endif %}"


def prompting(opening: str) -> str:
    """The template, whose generation prompt ends in a text."""
    return WHOLE.replace("<|assistant|>{% endif", f"<|assistant|>{opening}{{% endif")


@pytest.mark.parametrize(
    ("template", "words"),
    [
        (ANSWERS.replace(CONTENT, REFUSING + CONTENT), "refused every message with calls"),
        (TOLD + ANSWERS, "are those of hermes is taken from what it tells"),
        (TOLD.replace("tool_call", "x") + ANSWERS, "tells the model of tools"),
        (TOLD.replace("name", "?") + ANSWERS, "tells the model of tools"),
        (ANSWERS.replace(START, AS_USER), "prints what a tool answers and no calls"),
        (prompting("<|secret|>"), "ends in '<|secret|>'"),
        (prompting("<|thoughts|>"), "<|thoughts|>"),  # no mirror closes it
        (prompting("<|channel|>x<|message|>"), "<|channel|>x<|message|>"),
        (WHOLE.replace(CONTENT, CONTENT * 2), "is printed twice"),
        (WHOLE.replace(CONTENT, "{% if m.content and m.tool_calls %}{{ raise_exception('x') }}{% endif %}" + CONTENT),
         "refused a message of calls and content"),
    ],
)  # fmt: skip
def test_what_is_left_open_is_not_ok(template: str, words: str) -> None:
    report = report_of(toolgram.derive_format(template))
    assert not report.ok
    assert any(words in each for each in report.unexplained), report.unexplained
    with pytest.raises(toolgram.FormatError):
        toolgram.derive_format(template, strict=True)


def test_what_is_understood_is_ok() -> None:
    """Its report is data; so is that of a template that has no calls and tells of none."""
    report = report_of(toolgram.derive_format(WHOLE, strict=True))
    assert (report.ok, report.unexplained, report.next_step) == (True, (), "")
    assert str(report).splitlines()[0] == "ok, derived from the template"
    data = json.loads(json.dumps(report.to_dict()))
    assert (data["ok"], data["next_step"], data["found"]["calls"]) == (True, "", "json_native")
    assert data["found"]["markers"]["per_call_start"] == "<call>"
    assert all(probe["problem"] == "" for probe in data["probes"])
    report = report_of(toolgram.derive_format(ANSWERS))
    assert report.ok
    assert any("prints no tool calls" in warning for warning in report.warnings)


def test_a_report_can_be_read() -> None:
    """One that is not ok ends with the next step."""
    lines = str(report_of(toolgram.derive_format(TOLD + ANSWERS))).splitlines()
    assert lines[0].startswith("not ok, the shipped format hermes: ")
    assert any(line.startswith("unexplained: the template prints no calls") for line in lines)
    assert len(lines) < 20
    assert max(map(len, lines)) < 240
    told = report_of(toolgram.derive_format(TOLD.replace("tool_call", "x") + ANSWERS))
    assert str(told).splitlines()[-1].startswith("next:        compare with an output of the model")
    assert told.to_dict()["next_step"] in str(told)


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("<think>\n", "</think>"), ("<x:think>", "</x:think>"), ("[THINK]", "[/THINK]"),
        ("<|think_start|>", "<|think_end|>"), ("<|begin_of_thought|>", "<|end_of_thought|>"),
        ("<|START_THINKING|>", "<|END_THINKING|>"),
    ],
)  # fmt: skip
def test_what_the_prompt_opens_and_no_turn_prints_closes_with_its_mirror(opening: str, closing: str) -> None:
    fmt = toolgram.derive_format(prompting(opening))
    text = f'They greet.\n{closing}\n\nHello.<call>{{"name": "f", "arguments": {{}}}}</call>'
    message = fmt.parse(text, prefix="<|assistant|>" + opening)
    assert ((message.reasoning or "").strip(), message.content) == ("They greet.", "Hello.")
    assert [call.name for call in message.tool_calls] == ["f"]
    assert any("it is taken to be" in warning for warning in report_of(fmt).warnings)


def test_the_files_have_what_is_known_of_calls_that_are_not_read() -> None:
    """Tagged arguments come before the name: no skeleton writes them, and a person may."""
    each = "{% for k, v in c.function.arguments.items() %}<{{ k }}>{{ v }}</{{ k }}>{% endfor %}"
    call = "{% for c in m.tool_calls %}<c>" + each + "<n>{{ c.function.name }}</c>{% endfor %}"
    fmt = toolgram.derive_format(ANSWERS.replace(CONTENT, CONTENT + call))
    assert not report_of(fmt).ok
    assert "// Not read yet: calls." in fmt.grammar_text
    assert "'<c>', '{arguments}', '<n>', '{name}', '</c>'" in fmt.grammar_text
    assert "toolgram check" in report_of(fmt).next_step


def test_check_lists_what_is_open(tmp_path: Path) -> None:
    """Each comment of the grammar that says so, with its line, until it is deleted."""
    fmt = toolgram.derive_format(prompting("<|secret|>"))
    done = "".join(line for line in fmt.grammar_text.splitlines(keepends=True) if not line.startswith("// open: "))
    for text, count in ((fmt.grammar_text, len(report_of(fmt).unexplained)), (done, 0)):
        found = [each for each in warnings_of(load_own(tmp_path, text, fmt.machine_text)) if ": open: " in each]
        assert len(found) == count
        place = tmp_path / "own.lark"
        assert all(each.startswith(f"{place}:{at}: open: the generation prompt") for at, each in enumerate(found, 1))


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


# --- what is not `ok` although it looks so: calls that are lost or changed ------------------------------------------
# `report.ok` is a statement of coverage: what a template prints of a message comes back, or the report says that not.
# Strategy: templates whose calls the analysis misreads in a way that no comparison of single calls shows. Each once
# had a report that was `ok` while calls were lost or changed.

WITH_CALLS = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% if m.tool_calls %}@{% endif %}<|e|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
TAGGED = filled("$CALLS<c=$NAME>$EACH@$END</c>$END")
LOSING = table(__file__, "losing")


@pytest.mark.parametrize("shape", LOSING)
def test_what_is_lost_is_named(shape: str) -> None:
    template, case = LOSING[shape]
    report = report_of(toolgram.derive_format(WITH_CALLS.replace("@", filled(template)), eos_token="<|e|>"))
    assert not report.ok
    assert case in {probe.case for probe in report.failed}


@pytest.mark.parametrize("which", ["0", "-1"])
def test_a_part_that_changes_nothing_is_not_asked_for(which: str) -> None:
    """A template that prints one call of several loses the others before any format could read them."""
    call = "<c>{{ m.tool_calls[@].function.name }}|{{ m.tool_calls[@].function.arguments|tojson }}</c>"
    template = WITH_CALLS.replace("@", call.replace("@", which))
    report = report_of(toolgram.derive_format(template, eos_token="<|e|>"))
    assert report.ok, str(report)
    assert "two calls" not in {each.case.name for each in written(template)}


def test_the_values_of_the_proof_are_the_same_in_every_run() -> None:
    template = WITH_CALLS.replace("@", TAGGED.replace("@", "<p={{ k }}>{{ v }}</p>"))
    first, second = ([(each.case, each.output) for each in written(template)] for _ in range(2))
    assert first == second
    texts = "".join(json.dumps([dict(call.arguments) for call in case.calls]) for case, _ in first)
    assert all(sign in texts for sign in ('\\"', "\\\\", "\\u0001", "\\t", "lorem ipsum"))


@pytest.mark.parametrize("argument", ["[k={{ k }}]{{ v }}[/k]", "[{{ k }}]={{ v }}[/]"])
def test_the_two_files_load_whatever_ends_a_key(argument: str, tmp_path: Path) -> None:
    fmt = toolgram.derive_format(WITH_CALLS.replace("@", TAGGED.replace("@", argument)), eos_token="<|e|>")
    assert "the two files" in {probe.case for probe in report_of(fmt).probes}
    assert not [probe for probe in report_of(fmt).failed if probe.case == "the two files"]
    loaded = load_own(tmp_path, fmt.grammar_text, fmt.machine_text)
    output = next(probe.output for probe in report_of(fmt).probes if probe.case == "one call")
    assert calls_of(loaded.parse(output)) == [("find_city", {"place": "Oslo", "limit": 2})]


def written(template: str) -> tuple[Written, ...]:
    compiled = ChatTemplate(template, "", "<|e|>")
    return write_messages(compiled, analyse(compiled))
