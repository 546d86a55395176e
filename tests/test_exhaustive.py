"""The exhaustive command and the fuzz command, as short as `make test` can afford them, and what they find.

A format has strings of two symbols, one symbol after contexts, and a few broken outputs, and each run takes some of
them, of some formats. `make exhaustive` and `make fuzz` take the long texts of all.
"""

import random
import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import yaml

import toolgram
from tests import exhaustive, fuzz
from tests.clauses import Failure, Reading, Tally, broken, check, check_widely, difference, minimised, raised
from tests.fuzz import text_of, tools
from tests.generators.grammar_walks import walks
from tests.properties.selection import every_format, quarter, some
from tests.streams import calls_of, merged, without_ids
from toolgram.events import Content, Malformed
from toolgram.formats import Format, format_names
from toolgram.program.state import Program
from toolgram.spec.files import spec_from_texts


@every_format
def test_every_string_of_a_few_symbols(name: str) -> None:
    tally = Tally()
    for task in some([*exhaustive.tasks_from_start(name, 2), *exhaustive.tasks_after_contexts(name, 1)], name):
        tally.add(exhaustive.do(task))
    assert tally.texts > 100
    assert not tally.failures, str(tally.failures)


@every_format
def test_some_broken_outputs(name: str) -> None:
    tally = fuzz.do((name, "as in every run", 1_500))
    assert tally.characters >= 1_500
    assert not tally.failures, str(tally.failures)


# ------------------------------------------------------------------------------------- what is wrong is seen as wrong


def test_clauses_see_what_breaks_them(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, other = Reading([Content("ab", "ab")], ()), Reading([Malformed("ab", "why", "ab")], ())
    listed = Reading([Content("ab", "ab")], (("f", "[]", "complete"),))
    assert broken("ab", whole) is difference("ab", whole, whole, "by character") is None
    for found, kind in (
        (broken("abc", whole), "not conserved"),
        (difference("ab", whole, other, "by character"), "depends on the deltas: content / malformed(why)"),
        (broken("ab", listed), "complete, and its arguments are no object"),
        (broken("ab", whole, ((0, ("f", "{}", "complete")),)), "complete when cut off, and contradicted"),
        (raised("ab", ValueError("x")), "raised ValueError in ?"),
    ):
        assert _kind(found) == kind


def _kind(failure: Failure | None) -> str:
    assert failure is not None
    return failure.kind


@pytest.mark.parametrize(
    "look", [lambda fmt, text: check(fmt, text)[0], lambda fmt, text: check_widely(fmt, text, fuzz.tools())]
)
def test_a_parser_that_depends_on_the_deltas_is_caught(
    look: Callable[[toolgram.Format, str], Failure | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fmt = toolgram.get_format("hermes")
    assert look(fmt, "some text") is None
    length_told = lambda delta: [Content(f"{delta}{len(delta)}", delta)] if delta else []  # noqa: E731
    torn = SimpleNamespace(feed=length_told, close=lambda reason: [])
    monkeypatch.setattr(toolgram.Format, "parser", lambda self, **given: torn)
    found = look(fmt, "some text")
    assert _kind(found) == "depends on the deltas: content"
    assert found is not None
    assert len(minimised(found, lambda text: look(fmt, text)).text) == 2


def test_an_exception_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(parser: object, delta: str) -> None:
        raise KeyError(delta)

    monkeypatch.setattr(toolgram.Parser, "feed", refuse)
    fmt = toolgram.get_format("hermes")
    assert _kind(check(fmt, "x")[0]) == "raised KeyError in refuse"
    assert _kind(check_widely(fmt, "x", None)) == "raised KeyError in refuse"


@pytest.mark.parametrize("command", [exhaustive, fuzz])
def test_the_commands_say_what_they_read(
    command: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    short = ["--length", "1"] if command is exhaustive else ["--characters", "300"]
    monkeypatch.setattr(sys, "argv", ["command", *short, "--format", "mistral_v3", "--workers", "1"])
    main: Callable[[], int] = command.main  # type: ignore[attr-defined]
    assert main() == 0
    assert "mistral_v3: " in capsys.readouterr().out


# --- examples show a format and never decide how it is read ---------------------------------------------------------
# Each format is loaded again with one sentence in place of its examples. Its compiled table and its readings stay as
# they are: of outputs that are walked from its grammar, and of the same outputs broken.

SENTENCE = "One sentence, and no call."
OUTPUTS = 12


def without_examples(name: str) -> Format:
    """The format as it is read if its file shows one sentence and nothing else."""
    spec = toolgram.get_format(name).spec
    data = spec.machine_dict
    data["format"]["example"] = SENTENCE
    data["format"]["canonical"] = [SENTENCE]
    text = yaml.safe_dump(data, allow_unicode=True)
    return Format(spec_from_texts(spec.grammar_text, spec.grammar_path, text, spec.machine_path, spec.import_paths))


@pytest.mark.parametrize("name", quarter(format_names(), "examples"))
def test_examples_decide_nothing(name: str) -> None:
    shown, bare = toolgram.get_format(name), without_examples(name)
    assert_same_table(shown.program, bare.program)
    rng, found = random.Random(f"examples {name}"), walks(name)
    texts = [text_of(name, rng) for _ in range(OUTPUTS)]
    texts += ["".join(found.pieces(found.word(rng), rng)) for _ in range(OUTPUTS)]
    for text in texts:
        for reason in (None, "stop", "length"):
            assert _reading(shown, text, reason) == _reading(bare, text, reason)


def assert_same_table(shown: Program, bare: Program) -> None:
    """The compiled table is the same."""
    assert bare.spec.example == SENTENCE
    for state in shown.states.values():
        other = bare.states[state.name]
        assert (state.leaves_owed, state.closed) == (other.leaves_owed, other.closed)
        assert state.row.keys() == other.row.keys()
        for trigger, move in state.row.items():
            same = other.row[trigger]
            assert (move.opens, move.within, move.closes) == (same.opens, same.within, same.closes)


def _reading(fmt: Format, text: str, reason: str | None) -> tuple[object, ...]:
    """The events of a stream, and the message of the whole text with its anomalies."""
    parser = fmt.parser(tools())
    events = [event for at in range(0, len(text), 5) for event in parser.feed(text[at : at + 5])]
    events += parser.close(reason)
    message = fmt.parse(text, tools(), finish_reason=reason)
    return merged(without_ids(events)), message.content, message.reasoning, calls_of(message), message.anomalies
