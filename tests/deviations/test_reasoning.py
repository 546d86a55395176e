"""Reasoning that the default prompt of a format opens. The suite has what closes and opens thoughts elsewhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import toolgram
from tests.own_format import load_own
from tests.streams import assert_same_however_split
from tests.tables import table

MARKERS = table(__file__, "markers")
CALLS = table(__file__, "calls")
TEMPLATES = Path(__file__).parents[1] / "derive" / "templates"


def opened(name: str) -> toolgram.Format:
    """A format whose own prompt opens a thought."""
    return toolgram.Format(replace(toolgram.get_format(name).spec, generation_prompt=f"{MARKERS[name][0]}\n"))


def read(fmt: toolgram.Format, text: str, prefix: str | None = None, reason: str | None = None) -> toolgram.Message:
    """The message of an output, which is the same however the text is split into deltas."""
    return assert_same_however_split(fmt, text, prefix=prefix, finish_reason=reason)


def kinds(message: toolgram.Message) -> list[str]:
    return [anomaly.kind for anomaly in message.anomalies]


@pytest.mark.parametrize("name", MARKERS)
def test_the_default_prompt_opens_a_thought(name: str) -> None:
    fmt, (start, end), call = opened(name), MARKERS[name], CALLS[name]
    for text, content in (
        (f"Hm.\n{end}\n\nYes.", "Yes."),
        (f"{start}\nHm.{end}Yes.", "Yes."),
        (f"Hm.{end}", None),
        (f"Hm.{end}{call}", None),
    ):
        message = read(fmt, text)
        assert (message.reasoning, message.content, message.anomalies) == ("Hm.", content, [])
    assert fmt.parse(f"Hm.{end}Yes.").reasoning == "Hm."


@pytest.mark.parametrize("name", MARKERS)
def test_an_assumed_thought_that_nothing_closes(name: str) -> None:
    fmt, call = opened(name), CALLS[name]
    stop = next(fmt.program.literals[trigger] for trigger in fmt.spec.stop or ())
    for text, calls in (("Yes.", 0), (f"Yes.{stop}", 0), (f"Yes.\n{call}", 1)):
        message = read(fmt, text, reason="stop")
        assert (message.reasoning, message.content, len(message.tool_calls)) == ("Yes.", None, calls)
        assert kinds(message) == ["assumed_reasoning"], text
    assert kinds(read(fmt, "")) == []
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


def test_a_derived_format_starts_after_its_own_prompt() -> None:
    template = (TEMPLATES / "thinking_opened.jinja").read_text(encoding="utf-8")
    fmt = toolgram.derive_format(template, eos_token="</s>")
    assert fmt.report is not None
    assert fmt.report.analysis is not None
    assert fmt.generation_prompt == fmt.report.analysis.prompts["unset"].opened != ""
    message = read(fmt, "Hm.\n</think>\n\nYes.")
    assert (message.reasoning, message.content, message.anomalies) == ("Hm.", "Yes.", [])


def test_a_format_of_two_files_says_its_prompt(tmp_path: Path) -> None:
    hermes = toolgram.get_format("hermes")
    machine = hermes.machine_text.replace("  python_json:", '  generation_prompt: "<think>\\n"\n  python_json:')
    fmt = load_own(tmp_path, hermes.grammar_text, machine)
    assert fmt.generation_prompt == "<think>\n"
    assert fmt.parse("Hm.</think>Yes.").reasoning == "Hm."
