"""A shipped format behind a template: its two files say what was added, and grammar and machine stay the same."""

from dataclasses import replace

import pytest

import toolgram
from tests.properties.selection import every_format, quarter
from toolgram.check import check_format
from toolgram.derive.adapting import Surroundings, adapted, named
from toolgram.derive.keeping import as_data, from_data
from toolgram.derive.report import DeriveReport
from toolgram.formats import Format, grammar_home
from toolgram.spec.data import Spec
from toolgram.spec.files import spec_from_texts

END = "<|my/end|>"
BEHIND = Surroundings("X: ", "\n", " ", (END,))


def adapted_to(name: str, behind: Surroundings = BEHIND) -> Format:
    fmt = adapted(name, behind)
    assert fmt is not None
    return fmt


def gist(spec: Spec) -> tuple[object, ...]:
    rows = {(row.trigger, row.source, row.dest, row.actions, row.repair, row.of_calls) for row in spec.transitions}
    said = (spec.name, spec.stop, spec.special_tokens, spec.turn_start, spec.turn_end, spec.generation_prompt)
    return rows, said, dict(spec.terminals), set(spec.states)


@pytest.mark.parametrize("name", quarter(toolgram.format_names(), "test_reading_the_two_files_gives_the_same"))
def test_reading_the_two_files_gives_the_same(name: str) -> None:
    fmt = named(adapted_to(name), f"mine-1.0_{name}")
    spec = fmt.spec
    home = (str(grammar_home()),)
    read = spec_from_texts(fmt.grammar_text, spec.grammar_path, fmt.machine_text, spec.machine_path, home)
    assert gist(read) == gist(spec)
    assert fmt.machine_dict["format"]["stop"] == list(spec.stop or ())


@every_format
def test_grammar_and_machine_are_proved_the_same(name: str) -> None:
    found = check_format(adapted_to(name), length=2)
    assert found.ok, [finding.detail for finding in found.findings if not finding.ok]


@pytest.mark.parametrize("name", quarter(toolgram.format_names(), "test_what_was_added_is_dropped_behind_an_answer"))
def test_what_was_added_is_dropped_behind_an_answer(name: str) -> None:
    fmt, shipped = adapted_to(name), toolgram.get_format(name)
    for text in ("Good morning.", shipped.example):
        plain, ended = shipped.parse(text, prefix=""), fmt.parse(text + END, prefix="")
        assert (ended.content, ended.reasoning) == (plain.content, plain.reasoning)
        assert [call.arguments for call in ended.tool_calls] == [call.arguments for call in plain.tool_calls]


def test_what_is_added() -> None:
    """Nothing if all is known, tokens that are counted by id, and no token that begins as a marker."""
    hermes = toolgram.get_format("hermes")
    assert adapted_to("hermes", Surroundings(ends=("<|im_end|>",), special=("<think>", "<|other|>"))) is hermes
    assert named(hermes, "hermes") is hermes
    fmt = adapted_to("minimax_m1", Surroundings(special=("<tool_calls>", "</tool_calls>")))
    assert {"<tool_calls>", "</tool_calls>"} <= set(fmt.program.special.values())
    assert adapted("llama4_pythonic", Surroundings(ends=("[end]",))) is None


@pytest.mark.parametrize("behind", [BEHIND, Surroundings(special=("<tool_calls>",))])
def test_it_is_kept_as_data(behind: Surroundings) -> None:
    fmt = named(adapted_to("minimax_m1", behind), "mine")
    report = DeriveReport(None, "minimax_m1", "for a test", asked=("hermes, which ...",))
    again = from_data(as_data(Format(fmt.spec, fmt.machine_text, report)))
    assert again is not None
    assert (again.spec, again.machine_text) == (fmt.spec, fmt.machine_text)
    assert again.report == replace(report, found=again.report.found if again.report else report.found)
