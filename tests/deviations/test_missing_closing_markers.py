"""A call whose closing marker is missing is complete, and says so; one that has it says nothing."""

from dataclasses import replace
from pathlib import Path

import pytest

import toolgram
from tests.derive.turns import TEMPLATES, analysis_of, report_of, source
from tests.own_format import OWN, load_own
from tests.properties.selection import quarter
from tests.streams import assert_same_however_split, calls_of
from tests.tables import table

MISSED, FROM_OUTSIDE = table(__file__, "missed"), table(__file__, "closed_from_outside")


def missed(fmt: toolgram.Format) -> dict[str, frozenset[str]]:
    """By state: the texts of the markers that are missed there."""
    program = fmt.program
    found = {}
    for state in program.states.values():
        leaving = [each for each, move in state.row.items() if move.dest is not state and each in program.literals]
        texts = {program.literals[each] for each in leaving if state.row[each].closes}
        if state.leaves_owed and texts and state.meaning == "content":
            found[state.name] = frozenset(texts)
    return found


def kinds(fmt: toolgram.Format, text: str, reason: str | None) -> list[str]:
    return [each.kind for each in fmt.parse(text, finish_reason=reason).anomalies]


def check_missing(fmt: toolgram.Format, text: str, calls: list[tuple[str, str, str]]) -> None:
    """These calls are complete, and a marker is missed, at the end of the output and before the end of the turn."""
    assert {status for _, _, status in calls} == {"complete"}
    for end in ("", *(fmt.program.literals[each] for each in fmt.program.stop if each in fmt.program.literals)):
        for reason in (None, "stop", "length"):
            message = fmt.parse(text + end, finish_reason=reason)
            assert calls_of(message) == calls, (end, reason)
            assert [each.kind for each in message.anomalies].count("unclosed_envelope") == 1, (end, reason)


@pytest.mark.parametrize(
    "path", quarter(sorted(TEMPLATES.glob("*.jinja")), "missing closing markers"), ids=lambda path: path.stem
)
def test_what_a_template_writes_misses_nothing(path: Path) -> None:
    """Also not before what separates calls inside one pair of markers."""
    fmt = toolgram.derive_format(path.read_text(encoding="utf-8"), eos_token="</s>")
    read = [probe for probe in report_of(fmt).probes if not probe.problem]
    assert read
    for probe in read:
        assert "unclosed_envelope" not in kinds(fmt, probe.output, "stop"), probe.output


@pytest.mark.parametrize("name", MISSED)
def test_a_missing_marker_is_told(name: str) -> None:
    """At the end of the output, before the end of the turn, and before text; the calls are complete all the same."""
    fmt = toolgram.get_format(name)
    closers = frozenset().union(*missed(fmt).values())
    text = max(fmt.example.rpartition(closer)[0] for closer in closers)
    assert text
    check_missing(fmt, text, calls_of(fmt.parse(fmt.example)))
    assert kinds(fmt, text + "\nIt is sunny.", "stop").count("unclosed_envelope") == 1


@pytest.mark.parametrize("name", FROM_OUTSIDE)
def test_a_marker_around_a_call_closes_it(name: str) -> None:
    """Whatever follows: its arguments, which may be none, are closed."""
    fmt, (before, argument, after) = toolgram.get_format(name), FROM_OUTSIDE[name]
    for inside, arguments in (("", "{}"), (argument, '{"a": "x"}')):
        for text in (None, "It is sunny."):
            message = assert_same_however_split(fmt, f"{before}{inside}{after}{text or ''}", finish_reason="length")
            assert (calls_of(message), message.content) == ([("f", arguments, "complete")], text)
            assert "unclosed_envelope" in [each.kind for each in message.anomalies]


@pytest.mark.parametrize(("eos_token", "wanted"), [("<|im_end|>", []), ("</s>", ["unclosed_envelope"])])
def test_a_marker_that_may_end_the_turn_is_not_missed_at_the_end(eos_token: str, wanted: list[str]) -> None:
    """The server has cut it off. Where another token ends the turn, it is missed."""
    fmt = toolgram.derive_format(source("role_per_call"), eos_token=eos_token)
    call, other = '_call f\n{"a": 1}', "\n<|im_start|>assistant_call f\n{}"
    assert kinds(fmt, call, "stop") == wanted
    assert kinds(fmt, call + other + "<|im_end|>\n", "stop") == ["unclosed_envelope"]
    assert kinds(fmt, call + "<|im_end|>" + other + "<|im_end|>\n", "stop") == []


@pytest.mark.parametrize(("text", "missing"), table(__file__, "a_format_of_ones_own_reports_what_it_declares"))
def test_a_format_of_ones_own_reports_what_it_declares(text: str, missing: int, tmp_path: Path) -> None:
    grammar, machine = ((OWN / f"listed.{ending}").read_text("utf-8") for ending in ("lark", "yaml"))
    assert "unclosed_envelope" not in kinds(load_own(tmp_path, grammar, machine), text, "stop")
    declaring = machine.replace("call_ids: call_24}", "closed_by: {LIST: END_LIST, CALL: [END_CALL]}}")
    assert kinds(load_own(tmp_path, grammar, declaring), text, "stop").count("unclosed_envelope") == missing


def test_fragments_declare_pairs_under_the_names_that_an_import_gives() -> None:
    assert toolgram.get_format("plamo3").spec.closed_by == {
        "REQUEST": ("END_REQUEST",),  # the file goes before the fragment, which has END_ARGUMENTS here
        "ARGUMENTS": ("END_ARGUMENTS",),
        "REQUESTS": ("END_REQUESTS",),
    }
    pairs = toolgram.get_format("hy_v3").spec.closed_by
    assert pairs["TOOL_CALL_SUFFIXED"] == pairs["TOOL_CALL"] == ("TOOL_CALL_END", "TOOL_CALL_END_SUFFIXED")


# --- reasoning that the default prompt of a format opens ------------------------------------------------------------
# The suite has what closes and opens thoughts elsewhere.

MARKERS = table(__file__, "markers")
CALL_OF = table(__file__, "calls")


def opened(name: str) -> toolgram.Format:
    """A format whose own prompt opens a thought."""
    return toolgram.Format(replace(toolgram.get_format(name).spec, generation_prompt=f"{MARKERS[name][0]}\n"))


@pytest.mark.parametrize("name", MARKERS)
def test_the_default_prompt_opens_a_thought(name: str) -> None:
    fmt, (start, end), call = opened(name), MARKERS[name], CALL_OF[name]
    texts = {
        f"Hm.\n{end}\n\nYes.": "Yes.",
        f"{start}\nHm.{end}Yes.": "Yes.",
        f"Hm.{end}": None,
        f"Hm.{end}{call}": None,
    }
    for text, content in texts.items():
        message = assert_same_however_split(fmt, text, prefix=None)
        assert (message.reasoning, message.content, message.anomalies) == ("Hm.", content, [])
    assert fmt.parse(f"Hm.{end}Yes.").reasoning == "Hm."


@pytest.mark.parametrize("name", MARKERS)
def test_an_assumed_thought_that_nothing_closes(name: str) -> None:
    fmt, call = opened(name), CALL_OF[name]
    stop = next(fmt.program.literals[trigger] for trigger in fmt.spec.stop or ())
    for text, calls in (("Yes.", 0), (f"Yes.{stop}", 0), (f"Yes.\n{call}", 1)):
        message = assert_same_however_split(fmt, text, prefix=None, finish_reason="stop")
        assert (message.reasoning, message.content, len(message.tool_calls)) == ("Yes.", None, calls)
        assert [each.kind for each in message.anomalies] == ["assumed_reasoning"], text
    for text, prefix in (("", None), ("Yes.", MARKERS[name][0])):  # of the second, the caller has said so
        assert assert_same_however_split(fmt, text, prefix=prefix).anomalies == []


@pytest.mark.parametrize("name", MARKERS)
def test_a_snapshot_knows_that_the_thought_is_assumed(name: str) -> None:
    fmt, end = opened(name), MARKERS[name][1]
    for text, expected in (("Hm. ", ["assumed_reasoning"]), (f"Hm.{end}Yes.", [])):
        first = fmt.parser()
        first.feed("Hm")
        parser = fmt.restore(first.snapshot())
        parser.feed(text[2:])
        parser.close()
        assert [each.kind for each in parser.message.anomalies] == expected


def test_a_derived_format_starts_after_its_own_prompt() -> None:
    fmt = toolgram.derive_format(source("thinking_opened"), eos_token="</s>")
    assert fmt.generation_prompt == analysis_of(fmt).prompts["unset"].opened != ""
    message = assert_same_however_split(fmt, "Hm.\n</think>\n\nYes.", prefix=None)
    assert (message.reasoning, message.content, message.anomalies) == ("Hm.", "Yes.", [])


def test_a_format_of_two_files_says_its_prompt(tmp_path: Path) -> None:
    hermes = toolgram.get_format("hermes")
    machine = hermes.machine_text.replace("  python_json:", '  generation_prompt: "<think>\\n"\n  python_json:')
    fmt = load_own(tmp_path, hermes.grammar_text, machine)
    assert (fmt.generation_prompt, fmt.parse("Hm.</think>Yes.").reasoning) == ("<think>\n", "Hm.")
