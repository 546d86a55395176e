"""`explain`: a verdict that answers, and evidence that agrees with what the parser says."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.cli.running import run
from tests.generators.broken_outputs import fragments
from tests.own_format import load_own
from tests.properties.selection import every_format, fewer
from tests.strategies import any_text, outputs
from tests.streams import calls_of
from toolgram.explain import Explanation, explain, recognise
from toolgram.explain.recognising import best_format, is_found

FORMATS = toolgram.format_names()

WELL_FORMED = {
    "llama3_json": 'Sure. {"name": "f", "parameters": {"a": 1}}',
    "llama4_pythonic": "Sure. <|python_start|>[f(a=1), g()]<|python_end|>",
    "mistral_v3": 'Sure. [TOOL_CALLS] [{"name": "f", "arguments": {"a": 1}}]',
    "mistral_v11": '[THINK]Hm.[/THINK]Sure. [TOOL_CALLS]f[ARGS]{"a": 1}',
}
VERDICTS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("verdicts.json").read_text(encoding="utf-8"))


def told(name: str, text: str, **options: Any) -> Explanation:
    """The explanation, checked for all that is true of every one of them."""
    fmt = toolgram.get_format(name)
    explanation = fmt.explain(text, **options)
    assert "".join(piece.text for piece in explanation.pieces) == text
    position = 0
    for piece in explanation.pieces:
        assert piece.start == position
        assert piece.meaning
        position += len(piece.text)
    for one, next_ in pairwise(explanation.path):
        assert one.dest == next_.source
        assert one.offset is None or (next_.offset is not None and one.offset <= next_.offset)
    assert all(step.offset is None or 0 <= step.offset <= len(text) for step in explanation.path)
    end = 0
    for region in explanation.held:
        assert end <= region.start <= region.end <= region.decided_at <= len(text)
        assert region.text == text[region.start : region.end]
        assert region.why
        assert fmt.program.states[region.state].held or region.outcome != "committed"
        end = region.end
    parsed = fmt.parse(text, **options)
    message = explanation.message
    assert (message.content, message.reasoning) == (parsed.content, parsed.reasoning)
    assert calls_of(message) == calls_of(parsed)
    assert (message.anomalies, message.finish_reason) == (parsed.anomalies, parsed.finish_reason)
    assert [(a.kind, a.text) for a in explanation.anomalies] == [(a.kind, a.text) for a in parsed.anomalies]
    assert all(a.offset is not None and 0 <= a.offset <= len(text) and a.words for a in explanation.anomalies)
    assert {a.name for a in explanation.alternatives} == set(FORMATS) - {name}
    ranks = [each.rank for each in explanation.alternatives]
    assert ranks == sorted(ranks, reverse=True)
    assert explanation.verdict.endswith(".")
    assert json.loads(json.dumps(explanation.to_dict()))["verdict"] == explanation.verdict
    return explanation


@every_format
def test_an_example_is_parsed_and_needs_no_explanation(name: str) -> None:
    explanation = told(name, toolgram.get_format(name).example)
    assert explanation.verdict.startswith("Everything was parsed: ")
    assert not explanation.anomalies
    assert not any(alternative.better for alternative in explanation.alternatives)
    assert explanation.path[-1].dest == "ALL_TOOLS_COMPLETE"


@pytest.mark.parametrize("row", VERDICTS, ids=lambda row: row["verdict"][:40])
def test_verdicts(row: dict[str, Any]) -> None:
    assert told(row["name"], row["text"], **row.get("options", {})).verdict == row["verdict"]


def test_a_key_that_no_call_has_is_named_by_those_it_has() -> None:
    (region,) = told("llama3_json", '{"tool": {"name": "f", "parameters": {}}}').held
    _, _, keys = region.why.partition("a call has only these keys here: ")
    known = {"name", "function", "args", "arguments", "id", "type", "parameters", "tool_calls"}
    assert set(keys.partition(".")[0].split(", ")) == known
    assert "nothing inside it is taken for a call" in region.why


def test_a_lost_call_beside_a_parsed_one_is_told() -> None:
    explanation = told("mistral_v11", '[TOOL_CALLS]f[TOOL_CALLS]g[ARGS]{"a": 1}')
    assert [(r.start, r.end, r.outcome) for r in explanation.held] == [(0, 13, "rejected"), (13, 33, "committed")]
    assert explanation.verdict.startswith("1 call was parsed (g). What begins at offset 0 ('[TOOL_CALLS]f') was taken")


def test_blanks_before_malformed_text_do_not_shift_its_offset() -> None:
    (oddity,) = told("mistral_v11", "See\n [TOOL_CALLS]f! There").anomalies
    words = "'[TOOL_CALLS]f' was left as text: expected a blank, '[CALL_ID]', '[ARGS]' or arguments"
    assert (oddity.offset, oddity.words) == (5, words)


def test_tolerated_deviations_have_offsets() -> None:
    text = '[TOOL_CALLS] [{"name": "f", "arguments": {}}{"name": "g", "arguments": {}}]'
    (oddity,) = told("mistral_v3", text).anomalies
    assert (oddity.kind, oddity.offset) == ("repaired_json", text.index('{"name": "g"'))


def test_the_prompt_moves_the_machine_without_offsets() -> None:
    explanation = told("mistral_v11", 'Hm.[/THINK][TOOL_CALLS]f[ARGS]{"a": 1}', prefix="[THINK]")
    assert [(step.offset, step.trigger) for step in explanation.path[:2]] == [(None, "THINK"), (10, "END_THINK")]
    assert explanation.pieces[0].owner == "reasoning"


def test_a_format_of_ones_own_is_compared_with_all_that_ship(tmp_path: Path) -> None:
    mistral = toolgram.get_format("mistral_v11")
    texts = (text.replace("mistral_v11", "own") for text in (mistral.grammar_text, mistral.machine_text))
    explanation = explain(load_own(tmp_path, *texts), WELL_FORMED["llama3_json"])
    assert {alternative.name for alternative in explanation.alternatives} == set(FORMATS)
    assert explanation.alternatives[0].name == "llama3_json"


@every_format
@fewer()
@given(data=st.data())
def test_any_text_is_explained(name: str, data: st.DataObject) -> None:
    text = data.draw(st.one_of(outputs(name), any_text()))
    told(name, text, finish_reason=data.draw(st.sampled_from([None, "stop", "length"])))


@every_format
@fewer()
@given(data=st.data())
def test_any_text_is_explained_after_any_prompt(name: str, data: st.DataObject) -> None:
    prefix = "".join(data.draw(st.lists(st.sampled_from(fragments(name)), max_size=4)))
    told(name, data.draw(outputs(name)), prefix=prefix)


# --- one recogniser: the format that wrote an output comes first ----------------------------------------------------

AROUND = [("", ""), ("Sure, I will look that up.\n", ""), ("I can do that: {ok}.\n\n", "\nThat is all.")]


@pytest.mark.parametrize("name", toolgram.format_names())
def test_the_family_comes_first_and_ties_are_named(name: str) -> None:
    example = toolgram.get_format(name).example
    for before, after in AROUND:
        first, *others = recognise([before + example + after])
        assert name in (first.name, *first.alike)
        assert is_found(first) or before, "bare text may be a call at the beginning only"
        assert sorted(first.alike) == sorted(each.name for each in others if each.rank == first.rank)


def test_many_outputs_are_read_together() -> None:
    """What one output does not tell, the others do."""
    plain, thought = "Hello.", "<think>so</think>yes"
    assert recognise([plain, thought, toolgram.get_format("kimi_k2").example])[0].name == "kimi_k2"
    assert best_format([plain]) is None
    assert not is_found(recognise([""])[0])


def test_try_and_explain_agree() -> None:
    text = 'Sure.\n<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
    for command, status, words in (("try", 0, "format hermes"), ("explain", 0, "format hermes: 1 complete call,")):
        result = run(command, text=text)
        assert (result.exit_code, words in result.output) == (status, True), result.output
    data = json.loads(run("explain", "--format", "mistral_v11", "--json", text=text).output)
    assert next(each["name"] for each in data["alternatives"] if each["better"]) == "hermes"
    result = run("explain", text="Hello.")
    assert (result.exit_code, "no shipped format finds" in result.output) == (1, True)


def test_the_help_says_which_command_when() -> None:
    said = run("try", "--help").output
    for command in ("`try` for", "`explain` for", "`doctor` for", "`audit` for"):
        assert command in " ".join(said.split())


def test_all_use_the_one_recogniser(root: Path) -> None:
    """Who recognises a format calls `recognise` or `best_format`, and nothing ranks formats by itself."""
    users = ("src/toolgram/cli/trying.py", "src/toolgram/explain/__init__.py", "src/toolgram/derive/doctor.py",
             "src/toolgram/audit/auditing.py", "src/toolgram/wrapping.py", "playground/bridge.py")  # fmt: skip
    for user in users:
        assert re.search(r"\b(recognise|best_format)\(", (root / user).read_text(encoding="utf-8")), user
