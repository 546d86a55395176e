"""Reasoning that the prompt opened, and markers of reasoning where they mean nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import toolgram
from tests.streams import CUT_SIZES, check_events, cut, merged
from toolgram.events import Event

MARKERS = {
    "granite_3": ("<think>", "</think>"),
    "hermes": ("<think>", "</think>"),
    "lfm2": ("<think>", "</think>"),
    "mistral_v11": ("[THINK]", "[/THINK]"),
    "qwen3_coder": ("<think>", "</think>"),
}
CALLS = {
    "granite_3": '<|tool_call|>[{"name": "f", "arguments": {}}]',
    "hermes": '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>',
    "lfm2": "<|tool_call_start|>[f()]<|tool_call_end|>",
    "mistral_v11": "[TOOL_CALLS]f[ARGS]{}",
    "qwen3_coder": "<tool_call>\n<function=f>\n</function>\n</tool_call>",
}
TEMPLATES = Path(__file__).parents[1] / "derive" / "templates"


def opened(name: str) -> toolgram.Format:
    """A format whose own prompt opens a thought."""
    return toolgram.Format(replace(toolgram.get_format(name).spec, generation_prompt=f"{MARKERS[name][0]}\n"))


def read(
    fmt: toolgram.Format,
    text: str,
    *,
    prefix: str | None = "",
    strict: bool = False,
    finish_reason: str | None = None,
) -> toolgram.Message:
    """The message of an output, which is the same however the text is split into deltas."""
    seen: list[tuple[list[Event], toolgram.Message]] = []
    for size in CUT_SIZES:
        parser = fmt.parser(prefix=prefix, call_ids=str, strict=strict)
        events = [event for delta in cut(text, size) for event in parser.feed(delta)]
        events += parser.close(finish_reason)
        check_events(events, text)
        seen.append((merged(events), parser.message))
    assert all(each == seen[0] for each in seen)
    return seen[0][1]


def kinds(message: toolgram.Message) -> list[str]:
    return [anomaly.kind for anomaly in message.anomalies]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", MARKERS)
def test_a_closing_marker_that_nothing_opened(name: str, strict: bool) -> None:
    """Inside of an answer it is text if the prompt is known to have opened no thought."""
    fmt, (start, end), call = toolgram.get_format(name), MARKERS[name], CALLS[name]
    for text, content, calls, count in (
        (f"Yes.{end}", "Yes.", 0, 1),
        (f"{end}\n\nYes.", "Yes.", 0, 1),
        (f"Yes.{end}{end} \n", "Yes.", 0, 2),
        (f"{start}Hm.{end}{end}Yes.", "Yes.", 0, 1),
        (f"Yes.\n{end}\n\nNo.", f"Yes.\n{end}\n\nNo.", 0, 0),
        (f"Yes.{end}{end}No.", f"Yes.{end}{end}No.", 0, 0),
        (f"Yes. {end} No.{end}", f"Yes. {end} No.", 0, 1),
        (f"{start}Hm.{end}Yes.{end}No.", f"Yes.{end}No.", 0, 0),
        (f"Yes.{end}\n{call}", "Yes.", 1, 1),
        (f"{call}\n{end}\nYes.", "Yes.", 1, 1),
    ):
        message = read(fmt, text, strict=strict)
        assert message.content == content, text
        assert [call.status for call in message.tool_calls] == ["complete"] * calls, text
        assert kinds(message) == ["unopened_reasoning"] * count, text


@pytest.mark.parametrize("name", MARKERS)
def test_if_the_prompt_is_unknown_the_marker_is_dropped_everywhere(name: str) -> None:
    (start, end), fmt = MARKERS[name], toolgram.get_format(name)
    begun = "" if fmt.program.spec.generation_prompt else start
    for prefix in (None, start):
        opened = "" if prefix else begun
        message = read(fmt, f"{opened}Hm.{end}Yes.\n{end}\n\nNo.", prefix=prefix)
        assert (message.reasoning, message.content) == ("Hm.", "Yes. No.")
        assert kinds(message) == ["unopened_reasoning"]


@pytest.mark.parametrize("name", MARKERS)
def test_a_thought_that_is_opened_again(name: str) -> None:
    start, end = MARKERS[name]
    for text in (f"{start}a{start}b{end}Yes.", f"{start}{start}a b{end}Yes."):
        message = read(toolgram.get_format(name), text)
        assert (message.reasoning, message.content) == ("a b", "Yes.")
        assert not message.anomalies
    message = read(opened(name), f"{start}\na b{end}Yes.", prefix=None)
    assert (message.reasoning, message.content) == ("a b", "Yes.")
    assert not message.anomalies


@pytest.mark.parametrize("name", MARKERS)
def test_the_default_prompt_opens_a_thought(name: str) -> None:
    fmt, end, call = opened(name), MARKERS[name][1], CALLS[name]
    message = read(fmt, f"Hm.\n{end}\n\nYes.", prefix=None)
    assert (message.reasoning, message.content, message.anomalies) == ("Hm.", "Yes.", [])
    message = read(fmt, f"Hm.{end}", prefix=None)
    assert (message.reasoning, message.content, message.anomalies) == ("Hm.", None, [])
    message = read(fmt, f"Hm.{end}{call}", prefix=None)
    assert (message.reasoning, message.content, message.anomalies) == ("Hm.", None, [])
    assert fmt.parse(f"Hm.{end}Yes.").reasoning == "Hm."


@pytest.mark.parametrize("name", MARKERS)
def test_an_assumed_thought_that_nothing_closes(name: str) -> None:
    fmt, call = opened(name), CALLS[name]
    stop = next(fmt.program.literals[trigger] for trigger in fmt.spec.stop or ())
    for text, calls in (("Yes.", 0), (f"Yes.{stop}", 0), (f"Yes.\n{call}", 1)):
        message = read(fmt, text, prefix=None, finish_reason="stop")
        assert (message.reasoning, message.content, len(message.tool_calls)) == ("Yes.", None, calls)
        assert kinds(message) == ["assumed_reasoning"], text
    assert kinds(read(fmt, "", prefix=None)) == []
    assert kinds(read(fmt, "Yes.", prefix=MARKERS[name][0])) == []  # the caller has said so


@pytest.mark.parametrize("name", MARKERS)
def test_a_snapshot_knows_that_the_thought_is_assumed(name: str) -> None:
    fmt, end = opened(name), MARKERS[name][1]
    for text, expected in (("Hm. ", ["assumed_reasoning"]), (f"Hm.{end}Yes.", [])):
        first = fmt.parser()
        first.feed("Hm")
        parser = fmt.restore(first.snapshot())
        parser.feed(text[2:])
        parser.close()
        assert kinds(parser.message) == expected


def test_a_derived_format_starts_behind_its_own_prompt() -> None:
    template = (TEMPLATES / "thinking_opened.jinja").read_text(encoding="utf-8")
    fmt = toolgram.derive_format(template, eos_token="</s>")
    assert fmt.report is not None
    assert fmt.report.analysis is not None
    assert fmt.generation_prompt == fmt.report.analysis.prompts["unset"].opened != ""
    message = read(fmt, "Hm.\n</think>\n\nYes.", prefix=None)
    assert (message.reasoning, message.content, message.anomalies) == ("Hm.", "Yes.", [])


def test_a_format_of_two_files_says_its_prompt(tmp_path: Path) -> None:
    home = toolgram.formats.grammar_home()
    (tmp_path / "own.lark").write_text((home / "hermes.lark").read_text(encoding="utf-8"), encoding="utf-8")
    machine = (home.parent / "machines" / "hermes.yaml").read_text(encoding="utf-8")
    machine = machine.replace("  python_json:", '  generation_prompt: "<think>\\n"\n  python_json:')
    (tmp_path / "own.yaml").write_text(machine, encoding="utf-8")
    fmt = toolgram.load_format(tmp_path / "own.lark", tmp_path / "own.yaml")
    assert fmt.generation_prompt == "<think>\n"
    assert fmt.parse("Hm.</think>Yes.").reasoning == "Hm."
