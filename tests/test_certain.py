"""The bench of `make certain` counts what it says: not what the parser does, but what the rows know of it.

Strategy: small samples whose calls are written here, and parsers that are wrong on purpose.
"""

import importlib
import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import toolgram
from tests.certain import rows, samples
from tests.certain.rows import ROWS
from tests.certain.samples import Calls, Sample, complete_calls, read, verdict
from tests.properties.selection import quarter
from tests.tables import table

bench = importlib.import_module("tests.certain.__main__")

PARIS = ("get_weather", '{"city": "Paris"}')
HERMES = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'


@pytest.mark.parametrize(
    ("made", "calls", "expected"), table(__file__, "a_call_that_was_not_made_is_wrong_and_one_that_is_not_read_is_lost")
)
def test_a_call_that_was_not_made_is_wrong_and_one_that_is_not_read_is_lost(
    made: Calls, calls: Calls, expected: str
) -> None:
    assert verdict(Sample("hermes", "", made), calls) == expected


def verdicts(found: Any) -> Counter[str]:
    return Counter(kind for kind, *_ in found)


def test_only_complete_calls_count() -> None:
    whole = read(Sample("hermes", HERMES))
    cut = read(Sample("hermes", HERMES[: HERMES.index("ris")], reason="length"))
    assert complete_calls(whole) == (PARIS,)
    assert [call.status for call in cut.tool_calls] == ["truncated"]
    assert complete_calls(cut) == ()


@pytest.mark.parametrize("key", quarter([key for key in ROWS if key != "markdown"], "rows of certain calls"))
def test_a_parser_that_calls_everything_or_nothing_is_counted(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    made = [*ROWS[key][1](random.Random(1), 0.01)]
    with_calls = sum(bool(sample.made) for sample in made)
    assert len(made) > 30
    assert (with_calls > 0) is (key != "turns")

    always = toolgram.get_format("hermes").parse('<tool_call>{"name": "rm", "arguments": {}}</tool_call>')
    never = toolgram.get_format("hermes").parse("Hello.")
    monkeypatch.setattr(bench, "read", lambda sample: always)
    assert verdicts(bench.count(made)) == {"wrong": len(made)}
    monkeypatch.setattr(bench, "read", lambda sample: never)
    found = verdicts(bench.count(made))
    assert (found["wrong"], found["lost"], found["right"]) == (0, with_calls, len(made) - with_calls)


def test_arguments_that_are_torn_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    cut = Sample("hermes", HERMES[: HERMES.index("ris")], reason="length")
    whole = replace(cut, text=HERMES)
    monkeypatch.setattr(bench, "shown", lambda name: samples.Shown((("", HERMES),), HERMES, (PARIS,), None))
    assert verdicts(bench.torn([cut, whole])) == {"right": 2}
    torn = toolgram.get_format("hermes").parse(cut.text.replace("Pa", "Po"), finish_reason="length")
    monkeypatch.setattr(bench, "read", lambda sample: torn if sample is cut else read(sample))
    assert verdicts(bench.torn([cut])) == {"wrong": 1}


def test_a_real_output_that_loses_its_call_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    before = json.loads(bench.READ.read_text("utf-8"))
    assert {name: len(digits) for name, digits in before.items()} == dict.fromkeys(rows.REAL.values(), 500)
    monkeypatch.setattr(bench, "calls_read", lambda: {**before, "hermes": before["hermes"].replace("1", "0", 1)})
    _, lost, which = bench.real_row()
    assert (lost, which) == (1, [f"hermes line {before['hermes'].index('1') + 1}: 1 calls before, 0 now"])


@pytest.mark.parametrize(("found", "status"), [(Sample("hermes", HERMES), 1), (Sample("hermes", HERMES, (PARIS,)), 0)])
def test_the_command_fails_if_a_call_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], found: Sample, status: int
) -> None:
    row: Callable[[random.Random, float], object] = lambda rng, size: iter([found])  # noqa: E731
    monkeypatch.setitem(ROWS, "spans", ("a row", row))
    assert bench.main(["--row", "spans", "--show", "3"]) == status
    assert ("wrong: hermes" in capsys.readouterr().out) is bool(status)
