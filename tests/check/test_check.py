"""`check` finds each class of defect, names it, and goes on."""

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import toolgram
from tests.cli.running import run
from tests.own_format import load_own, write_own_format
from tests.properties.selection import ALL, every_format, seed
from tests.streams import calls_of
from toolgram.check import Report, check_format, drivers, languages, sanity
from toolgram.check.exports import violations
from toolgram.errors import FormatError
from toolgram.export.building import Builder
from toolgram.spec.data import Spec, State, Transition
from toolgram.spec.machine_text import machine_text

WHOLE_CALL = ("start_call", "no_arguments", "end_call")


def own(tmp_path: Path, grammar: Callable[[str], str] = str, machine: Callable[[str], str] = str) -> toolgram.Format:
    """mistral_v11 under another roof, its two files changed."""
    fmt = toolgram.get_format("mistral_v11")
    return load_own(tmp_path, grammar(fmt.grammar_text), machine(fmt.machine_text))


def replaced(old: str, new: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)

    return change


def added(line: str) -> Callable[[str], str]:
    return replaced("  transitions:\n", f"  transitions:\n    - {line}\n")


def failure(report: Report, name: str) -> str:
    failed = {finding.name: finding.detail for finding in report.findings if not finding.ok}
    assert not report.ok
    assert name in failed, failed
    return failed[name]


def test_every_shipped_format_is_proved(root: Path) -> None:
    """The pages say so; `make docs-check` proves every format again and compares."""
    for name in toolgram.format_names():
        proved = (root / f"docs/specs/{name}.md").read_text("utf-8").partition("## What `toolgram check` proved\n")[2]
        repairs = any(row.repair for row in toolgram.get_format(name).spec.transitions)
        assert proved.count("\n* ") == 9 + repairs, name
        assert "Not proved" not in proved, name


def test_what_only_one_of_the_two_accepts(tmp_path: Path) -> None:
    fmt = own(tmp_path, grammar=replaced("start: (TEXT |", "start: (TEXT | ARGS |"))
    detail = failure(check_format(fmt), "grammar = machine")
    assert "the grammar accepts ARGS, the machine does not" in detail
    assert all(words in detail for words in ("'[ARGS]'", "own.lark", "own.yaml"))
    fmt = own(tmp_path, machine=added('{trigger: ARGS, source: WAITING_FOR_TOOL_START, dest: "="}'))
    detail = failure(check_format(fmt), "grammar = machine")
    assert "the machine accepts ARGS, the grammar does not" in detail


def test_the_counterexample_is_the_shortest(tmp_path: Path) -> None:
    fmt = own(tmp_path, grammar=replaced("(ARGS WS?)? bare_arguments", "ARGS WS? bare_arguments"))
    unlike = languages.difference(fmt.spec)
    assert unlike is not None
    assert unlike.accepted_by == "machine"
    assert unlike.word == ["TOOL_CALLS", "NAME", "arguments"]
    assert fmt.parse(unlike.example).tool_calls[0].status == "complete"


def test_recursion_outside_values_is_refused_by_name(tmp_path: Path) -> None:
    nested = "reasoning: THINK _thought* (END_THINK | call | repair_listed | EOS)"
    fmt = own(
        tmp_path,
        grammar=replaced(nested, "reasoning: THINK (_thought | reasoning)* (END_THINK | call | repair_listed | EOS)"),
    )
    detail = failure(check_format(fmt), "grammar = machine")
    assert re.search(r"own\.lark:\d+: rule reasoning is recursive", detail)
    assert "remedy" in detail


# --- the machine, one fault at a time (put in after the loader, which refuses most of them) ----------------------


def changed(transitions: Callable[[list[Transition]], list[Transition]] = list, **states: State) -> Spec:
    spec = toolgram.get_format("mistral_v11").spec
    rows = tuple(transitions([*spec.transitions]))
    return dataclasses.replace(spec, transitions=rows, states={**spec.states, **states})


def lone(name: str, meaning: str | None = None, held: bool = False) -> State:
    return State(name, meaning, held, False, 7)


@pytest.mark.parametrize("held", ["WAITING_FOR_TOOL", "PARSING_NAME", "WAITING_FOR_CALL_ID"])
def test_a_call_that_begins_and_ends_before_a_held_state_is_refused(tmp_path: Path, held: str) -> None:
    """What is held may become text, and a call cannot."""
    row = f"{{trigger: TOOL_CALLS, source: WAITING_FOR_OBJECT, dest: {held}, after: [{', '.join(WHOLE_CALL)}]}}"
    with pytest.raises(FormatError) as refused:
        own(tmp_path, machine=added(row))
    error = refused.value
    assert f"`TOOL_CALLS` in WAITING_FOR_OBJECT: a call starts and {held} is held" in str(error)
    lines = (tmp_path / "own.yaml").read_text(encoding="utf-8").splitlines()
    assert (error.path, row in lines[error.line - 1]) == (str(tmp_path / "own.yaml"), True)
    assert error.remedy == (
        f"let it lead to a state without the tag `held`, or write `- {{name: {held}}}`, without the tag"
    )


def test_such_a_call_before_a_state_of_text_is_loaded(tmp_path: Path) -> None:
    row = (
        f"{{trigger: EOS, source: WAITING_FOR_OBJECT, dest: WAITING_FOR_TOOL_START, after: [{', '.join(WHOLE_CALL)}]}}"
    )
    message = own(tmp_path, machine=added(row)).parse("[TOOL_CALLS]f[ARGS] </s>")
    assert calls_of(message) == [("f", "{}", "complete")]


def test_a_held_state_without_release_is_named() -> None:
    into = Transition("EOS", "REASONING", "LIMBO", (), 9)
    (problem,) = sanity.released(changed(lambda found: [*found, into], LIMBO=lone("LIMBO", held=True)))
    assert "held state LIMBO has no release" in problem


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        (r"/(?:[a-z]+)+/", "a repetition inside a repetition"),
        (r"/(?:a*b*)*c/", "a repetition inside a repetition"),
        (r"/(?:a?a?)+b/", "a repetition inside a repetition"),
        (r"/(?:(?!b[ ]*c)[^d])+/", "a repetition inside a repetition"),  # up to 256 blanks would be near enough
        (r"/(a)b\1/", "a backreference"),
        ("/[a-z]*/", ""),
    ],
)
def test_an_expression_that_may_backtrack_or_matches_nothing_is_named(tmp_path: Path, pattern: str, fault: str) -> None:
    spec = own(tmp_path).spec
    grammar = spec.grammar_text.replace("start: (TEXT", "start: (ODD | TEXT") + f"\nODD: {pattern}\n"
    look = sanity.terminals_linear if fault else sanity.terminals_not_empty
    (problem,) = look(dataclasses.replace(spec, grammar_text=grammar))
    assert f"terminal ODD {f'has {fault}' if fault else 'matches the empty string'}" in problem
    assert re.search(r"own\.lark:\d+:", problem)


# --- two drivers --------------------------------------------------------------------------------------------------


def test_a_table_that_goes_elsewhere_is_caught(tmp_path: Path) -> None:
    fmt = own(tmp_path)
    states = fmt.program.states
    states["REASONING"].row["END_THINK"].dest = states["REASONING"]
    result = drivers.replay(fmt, 4)
    assert "END_THINK" in result.problem
    assert "transitions makes END_THINK REASONING WAITING_FOR_TOOL_START" in result.problem


def test_an_action_that_is_missing_is_caught(tmp_path: Path) -> None:
    fmt = own(tmp_path)
    fmt.program.states["PARSING_ARGUMENTS"].row["object_end"].actions = ()
    result = drivers.replay(fmt, 4)
    assert "Lark reads" in result.problem


@every_format
def test_both_drivers_agree_on_longer_sequences(name: str) -> None:
    result = drivers.replay(toolgram.get_format(name), 8 if seed() == ALL else 7)
    assert not result.problem
    assert result.messages > 5, "there are complete outputs among them"


def test_a_call_in_code_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the rule that keeps it out, the proof shows outputs whose call is text: a thought quotes its end."""
    fmt = toolgram.get_format("hermes")
    assert not list(violations(fmt))
    monkeypatch.setattr(Builder, "_without_code", lambda builder, node, forbidden: forbidden)
    found = list(violations(fmt))
    assert [each.partition(":")[0] for each in found] == ["required", "required after text", "named"]
    assert "'<think>Hm `</think>" in found[0]
    assert all("no call is read in it" in each for each in found)


# --- the command: one error per fault, and the others go on ---------------------------------------------------------


def test_a_failing_format_does_not_stop_the_others(tmp_path: Path) -> None:
    fmt = toolgram.get_format("mistral_v11")
    machine = machine_text(fmt.machine_dict)  # with all rows written out
    broken = write_own_format(tmp_path, fmt.grammar_text, replaced("dest: REASONING", "dest: RESONING")(machine))
    result = run("check", "mistral_v11", *broken, "no_such_format")
    assert result.exit_code == 1
    for words in ("mistral_v11  proved", "own  not proved", "unknown format 'no_such_format'"):
        assert words in result.output


def test_what_is_checked_and_what_cannot_be() -> None:
    result = run("check", "mistral_v3", "--json")
    (report,) = json.loads(result.output)
    assert (result.exit_code, report["format"]) == (0, "mistral_v3")
    assert all(finding["ok"] and finding["detail"] for finding in report["findings"])
    for files, status, words in (
        (["own.lark"], 2, "two files"),
        (["no.lark", "no.yaml"], 1, "no.lark: cannot be read"),
    ):
        result = run("check", *files)
        assert (result.exit_code, words in result.output) == (status, True)
