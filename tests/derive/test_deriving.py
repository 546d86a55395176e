"""`derive_format`: a template in, a format out that reads what the template writes, and can be read by people."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import toolgram
from tests import streams
from tests.derive.turns import TEMPLATES, analysis_of, derived, report_of, source
from tests.own_format import load_own
from tests.properties.selection import quarter, some
from tests.streams import run, sources
from tests.tables import table
from tests.work import at_most
from toolgram.check import check_format
from toolgram.derive import TemplateError, deriving
from toolgram.derive.deriving import derive_format
from toolgram.derive.result import ToolFormat
from toolgram.errors import FormatError
from toolgram.formats import grammar_home
from toolgram.observing.probes import TOOLS as DECLARED
from toolgram.pages.formats import page
from toolgram.spec.as_json import dump
from toolgram.spec.data import Spec
from toolgram.spec.files import spec_from_texts

NAMES = sorted(path.stem for path in TEMPLATES.glob("*.jinja"))
JSON_FRAGMENTS = {"json_call_list", "json_named_call_list"}
NO_PYTHON = "a history without quotes or commas, or with quotes around everything, is no Python; models write Python"
# Messages that do not come back, and why nothing that reads this text could tell: template -> (cases, reason).
LOST = {
    "key_value_lines": (None, "a line of raw text looks like the next argument"),
    "python_tokens": (None, NO_PYTHON),
    "role_before_reasoning": (
        {"reasoning and content", "reasoning and a call", "reasoning, content and a call"},
        "nothing marks the beginning of a thought, and turns without one begin the same way",
    ),
    "python_all_quoted": (None, NO_PYTHON),
    "python_bare_words": (None, NO_PYTHON),
    "python_no_commas": (None, NO_PYTHON),
    "python_single_quoted": (None, NO_PYTHON),
    "type_tags": (None, "a tag per type, which the analysis does not understand and warns of"),
}
# What is said of the templates that do not show everything, or not in a way that is understood.
WARNINGS = {name: "prints no tool calls" for name in NAMES if name == "no_tools" or name.startswith("told_")}


@pytest.mark.parametrize("name", NAMES)
def test_every_message_that_the_template_writes_comes_back(name: str) -> None:
    fmt = derived(name)
    report, warned = report_of(fmt), analysis_of(fmt).report.warnings
    lost, _ = LOST.get(name, (set(), ""))
    cases = {probe.case for probe in report.probes}
    if lost is not None:
        assert {probe.case for probe in report.failed} == lost, report.failed
    assert all(any(probe.case in warning for warning in report.warnings) for probe in report.failed)
    if name in WARNINGS:
        assert "content" in cases
        assert any(WARNINGS[name] in warning for warning in warned)
    else:
        assert cases >= {"content", "one call", "nested arguments", "no arguments"}
        assert not warned


@pytest.mark.parametrize("name", quarter(NAMES, "test_grammar_and_machine_are_proved_the_same"))
def test_grammar_and_machine_are_proved_the_same(name: str) -> None:
    found = check_format(derived(name), length=3)
    assert found.ok, [finding.detail for finding in found.findings if not finding.ok]


@pytest.mark.parametrize("name", quarter(NAMES, "test_the_two_files_are_the_specification"))
def test_the_two_files_are_the_specification(name: str, tmp_path: Path) -> None:
    """A derived format is made without reading its files; reading them gives the same."""
    fmt = derived(name)
    if report_of(fmt).shipped:
        return  # as in test_adapting
    spec = fmt.spec
    home = (str(grammar_home()),)
    read = spec_from_texts(fmt.grammar_text, spec.grammar_path, fmt.machine_text, spec.machine_path, home)
    assert _without_lines(read) == _without_lines(spec)
    loaded = load_own(tmp_path, fmt.grammar_text, fmt.machine_text)
    for probe in report_of(fmt).probes[:3]:
        assert loaded.parse(probe.output).content == fmt.parse(probe.output).content


@pytest.mark.parametrize("name", quarter(NAMES, "test_it_can_be_drawn_explained_and_described_like_a_shipped_one"))
def test_it_can_be_drawn_explained_and_described_like_a_shipped_one(name: str) -> None:
    fmt = derived(name)
    assert fmt.diagram("mermaid").startswith(("---", "stateDiagram", "%%"))
    assert f"`{fmt.spec.initial}`" in page(fmt, lambda _: [])
    for probe in report_of(fmt).probes[:4]:
        for text in (probe.output, probe.output[: len(probe.output) // 2]):
            assert "".join(piece.text for piece in fmt.explain(text).pieces) == text


@pytest.mark.parametrize("name", NAMES)
def test_the_machine_is_made_of_fragments_and_says_nothing_that_follows(name: str) -> None:
    fmt = derived(name)
    if report_of(fmt).shipped:
        return
    source_of_machine = yaml.safe_load(fmt.machine_text)["machine"]
    fragments = {entry["fragment"] for entry in source_of_machine.get("import", ())}
    triggers = {row["trigger"] for row in source_of_machine.get("transitions", ()) if isinstance(row["trigger"], str)}
    assert not triggers & {"recovered", "malformed"}
    if analysis_of(fmt).tool_format is ToolFormat.JSON_NATIVE and fragments & JSON_FRAGMENTS:
        said = [line for line in fmt.machine_text.splitlines() if not line.startswith("#")]
        assert len(said) <= 32  # one declares what closes a call, one the header
        assert "envelope:" not in fmt.grammar_text
        assert "envelope (call_list, envelope" in fmt.grammar_text


@pytest.mark.parametrize("keys", table(__file__, "keys_that_mean_something_else_in_other_formats"))
def test_keys_that_mean_something_else_in_other_formats(keys: dict[str, str]) -> None:
    template = re.sub('"(id|name|arguments)"', lambda match: f'"{keys.get(match[1], match[1])}"', source("id_in_json"))
    fmt = derive_format(template, eos_token="</s>")
    assert "fragment: json_call_list" in fmt.machine_text
    assert not report_of(fmt).failed
    assert check_format(fmt, length=2).ok
    written = {"id": "c1", "name": "f", "arguments": {"a": 1}}
    for order in itertools.permutations(written):
        call = json.dumps({keys.get(key, key): written[key] for key in order})
        (made,) = fmt.parse(f"<calls>[{call}]</calls>").tool_calls
        assert (made.name, made.arguments, made.status) == ("f", '{"a": 1}', "complete")


def test_the_key_of_the_wrapper_is_the_templates_own() -> None:
    fmt = derive_format(source("openai_wrapper").replace('"function": {', '"tool": {'), eos_token="</s>")
    assert "{fragment: json_function, item.function: item.tool}" in fmt.machine_text
    (call,) = fmt.parse('<call>{"tool": {"name": "f", "arguments": {}}}</call>').tool_calls
    assert (call.name, call.status) == ("f", "complete")
    assert not fmt.parse('<call>{"function": {"name": "f", "arguments": {}}}</call>').tool_calls


def _without_lines(spec: Spec) -> dict[str, Any]:
    data: dict[str, Any] = dump(spec)
    for part in (*data["states"].values(), *data["transitions"]):
        part["line"] = 0
    return data


def test_the_same_template_is_derived_once() -> None:
    template = source("json_lines") + "{# once #}"
    first = derive_format(template, eos_token="</s>")
    with at_most(calls=10_000):
        assert derive_format(template, eos_token="</s>") is first
    assert derive_format(template, eos_token="<|end|>") is not first


def test_formats_are_kept_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    template = source("named_pairs") + "{# kept #}"
    first = derive_format(template, eos_token="</s>", cache_dir=tmp_path)
    deriving._kept.clear()
    monkeypatch.setattr(deriving, "_derive", None)  # nothing may be derived any more
    again = derive_format(template, eos_token="</s>", cache_dir=tmp_path)
    assert again is not first
    assert (again.spec, again.grammar_text, again.machine_text) == (first.spec, first.grammar_text, first.machine_text)
    assert (report_of(again).probes, report_of(again).analysis) == (report_of(first).probes, None)
    probe = next(probe for probe in report_of(again).probes if probe.case == "two calls")
    assert len(again.parse(probe.output).tool_calls) == 2


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"version": 1}', '{"version": 1, "name": "x"}', "\x00\xff", "half of it", "more than it"],
)
def test_what_is_on_disk_is_not_trusted(tmp_path: Path, content: str) -> None:
    template = source("braces") + "{# spoiled #}"
    derive_format(template, cache_dir=tmp_path)
    for path in tmp_path.iterdir():
        kept = path.read_text(encoding="utf-8")
        others = {"half of it": kept[: len(kept) // 2], "more than it": f"{kept} "}
        path.write_text(others.get(content, content), encoding="utf-8")
    deriving._kept.clear()
    assert report_of(derive_format(template, cache_dir=tmp_path)).analysis is not None


def test_a_directory_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    assert derive_format(source("braces") + "{# blocked #}", cache_dir=blocked / "cache").report is not None


def test_strict_refuses_what_does_not_come_back() -> None:
    with pytest.raises(FormatError, match=r"(?s)do not come back.*fmt.report"):
        derive_format(source("key_value_lines"), eos_token="</s>", strict=True)
    assert derive_format(source("key_value_lines"), eos_token="</s>").report is not None
    derive_format(source("json_lines"), eos_token="</s>", strict=True)


def test_a_template_without_tools_says_so_and_reads_text() -> None:
    fmt = derived("no_tools")
    assert any("prints no tool calls" in warning for warning in report_of(fmt).warnings)
    text = 'Look: <tool_call>{"name": "f", "arguments": {}}</tool_call> [f(a=1)]'
    message = fmt.parse(text)
    assert (message.content, message.tool_calls) == (text, [])


@pytest.mark.parametrize(("template", "line"), table(__file__, "bad_templates_are_one_error_with_the_line"))
def test_bad_templates_are_one_error_with_the_line(template: str, line: int | None) -> None:
    with pytest.raises(TemplateError) as caught:
        derive_format(template)
    if line is not None:
        assert caught.value.line == line
    assert "chat template" in str(caught.value)


TOOLS = table(__file__, "tools")


def _call(*arguments: tuple[str, str], name: str = "book") -> toolgram.Message:
    """A call in the form of the fixture `null_omitted`: <f=name><a=key>value</a></f>."""
    body = "".join(f"<a={key}>{value}</a>" for key, value in arguments)
    return derived("null_omitted").parse(f"<f={name}>{body}</f>", tools=TOOLS)


@pytest.mark.parametrize(("key", "written", "meant", "told"), table(__file__, "values_are_typed_by_the_schema"))
def test_values_are_typed_by_the_schema(key: str, written: str, meant: object, told: list[str]) -> None:
    """Null where the schema does not allow it is text."""
    message = _call(("city", "x"), (key, written)) if key != "city" else _call((key, written))
    (call,) = message.tool_calls
    assert (call.status, json.loads(call.arguments)[key]) == ("complete", meant)
    assert type(json.loads(call.arguments)[key]) is type(meant)
    assert [anomaly.kind for anomaly in message.anomalies] == told


def test_an_undeclared_function_after_a_marker_that_prose_may_have_is_text() -> None:
    """`<f=` is too short for a marker, and no special token."""
    message = _call(("n", "1"), name="elsewhere")
    assert (message.content, message.tool_calls, message.anomalies) == ("<f=elsewhere><a=n>1</a></f>", [], [])


def test_a_value_is_streamed_as_soon_as_its_type_is_certain() -> None:
    fmt = derived("null_omitted")

    def told(*deltas: str) -> str:
        parser = fmt.parser(tools=TOOLS)
        events = [event for delta in deltas for event in parser.feed(delta)]
        return "".join(event.arguments for event in events if isinstance(event, toolgram.ToolCallDelta))

    assert told("<f=book><a=city>Par") == '{"city": "Par'
    assert told('<f=book><a=extra>{"a": [1, ') == '{"extra": {"a": [1'
    assert told("<f=book><a=any>{'a'") == '{"any": '  # may yet be text
    assert told("<f=book><a=any>so") == '{"any": "so'
    assert told("<f=book><a=days>12") == '{"days": '


@pytest.mark.parametrize("name", quarter(NAMES, "test_every_cut_of_every_message"))
def test_every_cut_of_every_message_is_conserved_and_honest(name: str) -> None:
    """An output that ends anywhere: nothing lost, and no call complete whose arguments are not all there."""
    fmt = derived(name)
    for probe in some(report_of(fmt).probes[:9], f"cuts {name}"):
        whole = fmt.parse(probe.output, finish_reason="stop")
        for end in range(len(probe.output)):
            for reason in (None, "length"):
                parser = fmt.parser()
                events = [*parser.feed(probe.output[:end]), *parser.close(reason)]
                assert "".join(event.source for event in events) == probe.output[:end]
            same = [] if probe.problem else whole.tool_calls  # of what does not come back, other calls may be left
            for call, other in zip(parser.message.tool_calls, same, strict=False):
                assert call.status != "complete" or call.arguments == other.arguments
                only_name = call.arguments == "{}"  # where a call may end behind its name, and nobody says that it does
                assert only_name or other.arguments.startswith(call.arguments), probe.output[:end]


@pytest.mark.parametrize("name", quarter(NAMES, "test_where_functions_are_declared_nothing_is_lost_at_the_beginning"))
def test_where_functions_are_declared_nothing_is_lost_at_the_beginning(name: str) -> None:
    """A call may begin at the beginning of a line, and the output begins one, whatever stands there."""
    fmt = derived(name)
    for text in ("Good morning.", *(probe.output for probe in report_of(fmt).probes[:6])):
        for prefix in (None, "", "<|user|>\nHello.<|end|>\n"):
            events, message = run(fmt, text, tools=DECLARED, prefix=prefix)
            parsed = fmt.parse(text, DECLARED, prefix)
            assert sources(events) == text
            assert (message.content, message.reasoning) == (parsed.content, parsed.reasoning)
            assert streams.calls_of(message) == streams.calls_of(parsed)


def test_a_closing_marker_repeats_the_whole_key() -> None:
    message = derived("element_names").parse("<use><book>\n<city>a</citylong>b</city>\n</book></use>", tools=TOOLS)
    assert json.loads(message.tool_calls[0].arguments) == {"city": "a</citylong>b"}


def test_many_arguments_cost_the_same_each() -> None:
    """More keys than are remembered: all are passed on, and repeated ones no longer noticed."""
    (call,) = _call(("city", "a"), *((f"k{number}", "x") for number in range(3000))).tool_calls
    assert (len(json.loads(call.arguments)), call.status) == (3001, "complete")


def test_a_call_says_which_values_are_of_a_type_that_was_not_understood() -> None:
    text = '<run tool="f"><with key="a">x</with><with key="b">2</with></run>'
    parameters = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}]
    fmt = derive_format(source("escaped_text").replace("&lt;", "&less;"), eos_token="</s>")  # no escape of HTML
    for declared, unproven in ((tools, ["a"]), (None, ["a", "b"])):
        message = fmt.parse(text, declared)
        assert [call.status for call in message.tool_calls] == ["complete"]
        assert [each.text for each in message.anomalies if each.kind == "unproven_types"] == unproven


@pytest.mark.parametrize("eos", ["", "</s>", "<|end|>", "\n"])
def test_the_eos_token_changes_nothing_else(eos: str) -> None:
    for name in ("own_eos", "json_lines", "answer_always"):
        assert not report_of(derive_format(source(name), bos_token="<s>", eos_token=eos)).failed
