"""`check` finds each class of defect, names it, and goes on."""

import dataclasses
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import toolgram
from tests.cli.running import run
from tests.own_format import load_own, write_own_format
from tests.properties.selection import ALL, every_format, seed
from tests.streams import calls_of
from tests.tables import table
from toolgram.check import Report, check_format, drivers, languages, sanity
from toolgram.check.advice import warnings_of
from toolgram.check.exports import violations
from toolgram.check.free_text import differences, written_by_hand
from toolgram.errors import FormatError
from toolgram.export.building import Builder
from toolgram.formats import Format
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
        assert proved.count("\n* ") == 9 + any(row.repair for row in toolgram.get_format(name).spec.transitions), name
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
    assert (unlike.accepted_by, unlike.word) == ("machine", ["TOOL_CALLS", "NAME", "arguments"])
    assert fmt.parse(unlike.example).tool_calls[0].status == "complete"


@pytest.mark.parametrize("pattern", ["[0-9]{1,20}", r"\d{1,20}", "[0-9a-f]{1,32}", "#[0-9]{1,9}", "[A-F]{8}"])
def test_an_id_of_any_characters_is_proved(tmp_path: Path, pattern: str) -> None:
    ids, shown = replaced(r"[^\s\[{]{1,1024}", pattern), replaced("[CALL_ID]a1B2c3D4e", "")
    assert check_format(own(tmp_path, grammar=ids, machine=shown)).ok


def test_recursion_outside_values_is_refused_by_name(tmp_path: Path) -> None:
    nested = "reasoning: THINK _thought* (END_THINK | call | repair_listed | EOS)"
    recursive = "reasoning: THINK (_thought | reasoning)* (END_THINK | call | repair_listed | EOS)"
    fmt = own(tmp_path, grammar=replaced(nested, recursive))
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
    other = f"write `- {{name: {held}}}`, without the tag"
    assert error.remedy == f"let it lead to a state without the tag `held`, or {other}"


def test_such_a_call_before_a_state_of_text_is_loaded(tmp_path: Path) -> None:
    call = ", ".join(WHOLE_CALL)
    row = f"{{trigger: EOS, source: WAITING_FOR_OBJECT, dest: WAITING_FOR_TOOL_START, after: [{call}]}}"
    assert calls_of(own(tmp_path, machine=added(row)).parse("[TOOL_CALLS]f[ARGS] </s>")) == [("f", "{}", "complete")]


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
    assert "Lark reads" in drivers.replay(fmt, 4).problem


@every_format
def test_both_drivers_agree_on_longer_sequences(name: str) -> None:
    result = drivers.replay(toolgram.get_format(name), 8 if seed() == ALL else 7)
    assert not result.problem
    assert result.messages > 5, "there are complete outputs among them"


def test_a_call_in_code_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the rule that keeps it out, the proof shows outputs whose call is text: a thought quotes its end."""
    fmt = toolgram.get_format("hermes")
    assert not list(violations(fmt))
    monkeypatch.setattr(toolgram.export, "_outline", toolgram.export._outline.__wrapped__)  # outlines are kept
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


# --- warnings: what is proved and may still be a mistake ------------------------------------------------------------

OWN = Path(__file__).parent.parent / "own"
GRAMMAR = (OWN / "tagged.lark").read_text("utf-8")
MACHINE = (OWN / "tagged.yaml").read_text("utf-8")
LINES = (OWN / "lines.lark").read_text("utf-8")
LINES_MACHINE = (OWN / "lines.yaml").read_text("utf-8")


@every_format
def test_no_shipped_format_has_a_warning(name: str) -> None:
    assert warnings_of(toolgram.get_format(name)) == []


def test_line_ends_and_names_are_named_with_their_lines(tmp_path: Path) -> None:
    line_end, name = warnings_of(load_own(tmp_path, LINES, LINES_MACHINE))
    assert r"own.lark:10: marker LINE_END refuses one of `\n` and `\r\n`; write LINE_END: /\r?\n/" in line_end
    assert "own.lark:7: NAME is the name of a function and refuses capitals, digits, `.`, `-`" in name
    remedied = LINES.replace(r'"\n"', r"/\r?\n/").replace("[a-z][a-z_]{0,63}", r"[\w.\-]{1,256}")
    assert warnings_of(load_own(tmp_path, remedied, LINES_MACHINE)) == []


@pytest.mark.parametrize("key", ["example", "canonical"])
def test_an_example_that_contradicts_a_declaration_is_named(tmp_path: Path, key: str) -> None:
    machine = MACHINE.replace("}}</tool>", "}}")
    assert warnings_of(load_own(tmp_path, GRAMMAR, MACHINE)) == []
    if key == "canonical":
        machine = machine.replace("  example: |-\n    Let me look.\n", "  canonical:\n    - |-\n      Let me look.\n  ")
    (warning,) = warnings_of(load_own(tmp_path, GRAMMAR, machine))
    line = machine[: machine.index("Let me look.")].count("\n") + 1
    assert f"own.yaml:{line}: the example has no END_TOOL_CALL after TOOL_CALL, which `closed_by` declares" in warning


def test_a_warning_is_printed_and_does_not_fail(tmp_path: Path) -> None:
    assert check_format(load_own(tmp_path, LINES, LINES_MACHINE)).ok
    result = run("check", str(tmp_path / "own.lark"), str(tmp_path / "own.yaml"))
    assert (result.exit_code, result.output.count("  warn ")) == (0, 2)
    assert '"warnings"' in run("check", str(tmp_path / "own.lark"), str(tmp_path / "own.yaml"), "--json").output


# --- keys of JSON that only one of the two files has, and examples that are not read --------------------------------

KEYS = (OWN / "keys.lark").read_text("utf-8")
KEYS_MACHINE = (OWN / "keys.yaml").read_text("utf-8")
SAME_PATH = "  same_path: {item.tool: item.name}\n"
CALL = '[CALLS]{"tool": "f", "arguments": {}}[/CALLS]'


def findings(tmp_path: Path, grammar: str, machine: str) -> tuple[dict[str, str], list[str]]:
    report = check_format(load_own(tmp_path, grammar, machine))
    return {each.name: each.detail for each in report.findings if not each.ok}, report.warnings


def test_a_key_that_the_grammar_lacks_is_named(tmp_path: Path) -> None:
    assert findings(tmp_path, KEYS, KEYS_MACHINE) == ({}, [])
    failed, _ = findings(tmp_path, KEYS.replace(r'("\"tool\"" | "\"name\"")', r'"\"name\""'), KEYS_MACHINE)
    words = "the machine reads the key 'tool', and no terminal of the grammar has it"
    assert words in failed["the grammar has the keys of JSON"]


def test_an_example_with_keys_that_the_machine_lacks_is_named(tmp_path: Path) -> None:
    machine = KEYS_MACHINE.replace(SAME_PATH, "")
    failed, warnings = findings(tmp_path, KEYS, machine)
    line = machine[: machine.index("example:")].count("\n") + 1
    detail = failed["the examples are read"]
    assert f'own.yaml:{line}: the parser cannot read the example from \'[CALLS]{{"tool"' in detail
    assert 'expected the key "name"' in detail
    assert detail.endswith("`same_path` declares other keys")
    assert len(warnings) == 1


@pytest.mark.parametrize("shown", ["", "[CALLS] is a marker"])
def test_an_example_without_a_call_is_a_warning(tmp_path: Path, shown: str) -> None:
    failed, warnings = findings(tmp_path, KEYS, KEYS_MACHINE.replace(CALL, shown))
    assert bool(failed) == bool(shown)
    assert any("no example has a call that is read; show one" in each for each in warnings)


# --- free text that is defined by hand is compared with what the parser reads ---------------------------------------

REPOSITORY = Path(__file__).parents[2]
TOOL_CALLS = r"\[TOOL_CALLS\]|\[\/TOOL_CALLS\]|\[THINK\]|\[\/THINK\]|<\/s>"
PIECES = {"qwen3_coder": "invoke_call", "glm45": "key_value_call", "hermes": "function_tag", "gemma4": "notated_call"}


def defining(tmp_path: Path, name: str, terminal: str, pattern: str) -> Format:
    """A shipped format with a definition in place of a declaration."""
    fmt = toolgram.get_format(name)
    grammar, machine = tmp_path / "grammars" / "own.lark", tmp_path / "machines" / "own.yaml"
    for path in (grammar, machine):
        shutil.copytree(REPOSITORY / path.parent.name / "common", path.parent / "common")
    declared = re.sub(rf"^(%declare.*) {terminal}\b", r"\1", fmt.grammar_text, flags=re.M)
    declared = re.sub(r"^%declare$", "", declared, flags=re.M)
    override = declared == fmt.grammar_text
    imported = f"%import .common.{PIECES[name]} ({terminal})\n%override " if override else ""
    priority = ".-1" if terminal == "TEXT" else ""
    grammar.write_text(f"{declared}\n{imported}{terminal}{priority}: /{pattern}/\n", encoding="utf-8")
    machine.write_text(fmt.machine_text, encoding="utf-8")
    return toolgram.load_format(grammar, machine)


@pytest.mark.parametrize(
    ("name", "terminal", "pattern", "problem"), table(__file__, "a_definition_that_differs_is_reported")
)
def test_a_definition_that_differs_is_reported(
    name: str, terminal: str, pattern: str, problem: str, tmp_path: Path
) -> None:
    fmt = defining(tmp_path, name, terminal, pattern)
    line = len(fmt.grammar_text.splitlines())
    first = next(differences(fmt, written_by_hand(fmt.spec)))
    assert first.startswith(f"{fmt.spec.grammar_path}:{line}: {terminal} {problem}")
    assert first.endswith(f"; declare it: %declare {terminal}")


def test_a_difference_is_a_finding(tmp_path: Path) -> None:
    findings = check_format(defining(tmp_path, "mistral_v11", "TEXT", "[^@]+")).findings
    (finding,) = (each for each in findings if each.name.startswith("free text"))
    assert not finding.ok
    assert "TEXT does not read 'x@x'" in finding.detail


def test_the_same_definition_in_other_words_is_none(tmp_path: Path) -> None:
    fmt = defining(tmp_path, "mistral_v11", "TEXT", rf"(?:[^\[<]|(?!{TOOL_CALLS})[\[<])+")
    assert list(written_by_hand(fmt.spec)) == ["TEXT"]
    assert list(differences(fmt, written_by_hand(fmt.spec))) == []
