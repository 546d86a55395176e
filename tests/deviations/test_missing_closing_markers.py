"""A call whose closing marker is missing is complete, and says so; one that has it says nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import toolgram
from tests.derive.turns import TEMPLATES
from toolgram.formats import format_names
from toolgram.runtime.path_examples import examples

REASONS = (None, "stop", "length")
MISSED = [
    "apertus", "apriel", "cohere_command3", "cohere_command4", "deepseek_r1", "deepseek_v3", "deepseek_v31",
    "deepseek_v32",
    "deepseek_v4", "deepseek_v41", "dots", "ernie45", "functiongemma", "gemma4", "gigachat35", "hermes", "internlm2",
    "jamba",
    "kimi_k2", "kimi_k3", "kimi_vl", "longcat", "mimo", "minimax_m1", "minimax_m2", "minimax_m3", "nemotron_v2",
    "plamo3",
    "qwen3_coder", "seed_oss", "step3", "step5",
]  # fmt: skip


def missed(fmt: toolgram.Format) -> dict[str, frozenset[str]]:
    """By state: the texts of the markers that are missed there."""
    program = fmt.program
    found = {}
    for state in program.states.values():
        texts = {program.literals[each] for each in state.row if each in program.literals}
        if state.unclosed:
            found[state.name] = frozenset(text for text in texts if text in program.closers)
    return found


def kinds(fmt: toolgram.Format, text: str, reason: str | None) -> list[str]:
    return [each.kind for each in fmt.parse(text, finish_reason=reason).anomalies]


@pytest.mark.parametrize("name", format_names())
def test_examples_miss_nothing(name: str) -> None:
    fmt = toolgram.get_format(name)
    for text in examples(fmt.program):
        assert "unclosed_envelope" not in kinds(fmt, text, "stop")


@pytest.mark.parametrize("path", sorted(TEMPLATES.glob("*.jinja")), ids=lambda path: path.stem)
def test_what_a_template_writes_misses_nothing(path: Path) -> None:
    """Also not before what separates calls inside one pair of markers."""
    fmt = toolgram.derive_format(path.read_text(encoding="utf-8"), eos_token="</s>")
    assert fmt.report is not None
    read = [probe for probe in fmt.report.probes if not probe.problem]
    assert read
    for probe in read:
        assert "unclosed_envelope" not in kinds(fmt, probe.output, "stop"), probe.output


@pytest.mark.parametrize("name", MISSED)
def test_a_missing_marker_is_told(name: str) -> None:
    """At the end of the output, before the end of the turn, and before text; the calls are complete all the same."""
    fmt = toolgram.get_format(name)
    program = fmt.program
    closers = frozenset().union(*missed(fmt).values())
    text = max(fmt.example.rpartition(closer)[0] for closer in closers)
    assert text
    calls = [(call.name, call.arguments, "complete") for call in fmt.parse(fmt.example).tool_calls]
    ends = ["", *(program.literals[each] for each in program.stop if each in program.literals)]
    for end in ends:
        for reason in REASONS:
            message = fmt.parse(text + end, finish_reason=reason)
            assert [(call.name, call.arguments, call.status) for call in message.tool_calls] == calls, (end, reason)
            assert [each.kind for each in message.anomalies].count("unclosed_envelope") == 1, (end, reason)
    assert kinds(fmt, text + "\nIt is sunny.", "stop").count("unclosed_envelope") == 1


def test_a_marker_of_the_next_call_instead() -> None:
    call = '<tool_call>\n{"name": "f", "arguments": {}}\n'
    message = toolgram.get_format("hermes").parse(call + call + "</tool_call>")
    assert [each.status for each in message.tool_calls] == ["complete"] * 2
    assert [(each.kind, each.start) for each in message.anomalies] == [("unclosed_envelope", len(call) - 1)]


def test_calls_inside_one_pair_of_markers_miss_nothing() -> None:
    fmt = toolgram.get_format("kimi_k2")
    call = "<|tool_call_begin|>functions.f:{}<|tool_call_argument_begin|>{{}}<|tool_call_end|>"
    inside = call.format(0) + call.format(1)
    assert fmt.parse(f"<|tool_calls_section_begin|>{inside}<|tool_calls_section_end|>").anomalies == []


def test_a_snapshot_remembers_it() -> None:
    fmt = toolgram.get_format("hermes")
    parser = fmt.parser()
    parser.feed('<tool_call>\n{"name": "f", "arguments": {}}')
    restored = fmt.restore(parser.snapshot())
    restored.close("stop")
    assert [each.kind for each in restored.take_anomalies()] == ["unclosed_envelope"]
