"""The bench of `make certain` counts what it says: not what the parser does, but what the rows know of it.

Strategy: small samples whose calls are written here, and parsers that are wrong on purpose.
"""

from __future__ import annotations

import importlib
import json
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

import toolgram
from tests.certain import rows, samples
from tests.certain.rows import ROWS
from tests.certain.samples import Calls, Sample, complete_calls, ids_in, read, shown, special_ids, verdict
from tests.properties.selection import quarter

bench = importlib.import_module("tests.certain.__main__")

PARIS = ("get_weather", '{"city": "Paris"}')
ROME = ("get_weather", '{"city": "Rome"}')
HERMES = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'


@pytest.mark.parametrize(
    ("made", "calls", "expected"),
    [
        ((), (), "right"),
        ((PARIS,), (PARIS,), "right"),
        ((PARIS,), (), "lost"),
        ((PARIS, ROME), (ROME,), "lost"),
        ((), (PARIS,), "wrong"),
        ((PARIS,), (ROME,), "wrong"),
        ((PARIS,), (PARIS, PARIS), "wrong"),
        ((PARIS, ROME), (ROME, PARIS), "wrong"),
    ],
)
def test_a_call_that_was_not_made_is_wrong_and_one_that_is_not_read_is_lost(
    made: Calls, calls: Calls, expected: str
) -> None:
    assert verdict(Sample("hermes", "", made), calls) == expected


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
    assert bench.count(iter(made)).verdicts == {"wrong": len(made)}
    monkeypatch.setattr(bench, "read", lambda sample: never)
    found = bench.count(iter(made)).verdicts
    assert found["wrong"] == 0
    assert (found["lost"], found["right"]) == (with_calls, len(made) - with_calls)


def test_a_line_of_code_is_in_the_text_and_in_the_call_that_was_made() -> None:
    for python in (False, True):
        found = [*rows.lines(python, random.Random(3), 0.01)]
        for sample in found:
            name, arguments = sample.made[0]
            line = json.loads(arguments)["city"]
            assert name == "get_weather"
            assert '"' in line
            assert json.dumps(line, ensure_ascii=False)[1:-1].replace('\\"', '"') in sample.text
        assert len({sample.format for sample in found}) >= (4 if python else 25)


def test_a_cut_knows_the_calls_whose_arguments_were_closed() -> None:
    text = HERMES + "\n" + HERMES.replace("Paris", "Rome")
    ends, calls = rows._closed_at("hermes", "", text)
    assert calls == (PARIS, ROME)
    assert [text[:end][-8:] for end in ends] == ['"Paris"}', ' "Rome"}']


def test_tagged_arguments_are_closed_by_the_closer_of_the_call() -> None:
    text = "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>"
    ends, calls = rows._closed_at("qwen3_coder", "", text)
    assert calls == (PARIS,)
    assert text[: ends[0]].endswith("</function>")


def test_the_parts_of_every_format_are_found() -> None:
    thoughts = 0
    for name in toolgram.format_names():
        parts = shown(name)
        calls = complete_calls(read(Sample(name, parts.calls, tools=samples.TOOLS)))
        assert calls, name
        assert samples.quoted(parts.calls) != parts.calls, name
        thoughts += parts.thought is not None
    assert thoughts > 40


def test_ids_are_those_of_the_special_tokens() -> None:
    special = special_ids("hermes")
    assert ids_in("hermes", f"Hi {HERMES}") == (7, special["<tool_call>"], 7, special["</tool_call>"])


def test_arguments_that_are_torn_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    cut = Sample("hermes", HERMES[: HERMES.index("ris")], reason="length")
    whole = replace(cut, text=HERMES)
    monkeypatch.setattr(toolgram, "format_names", lambda: ["hermes"])
    monkeypatch.setattr(bench, "shown", lambda name: samples.Shown((("", HERMES),), HERMES, None))
    assert bench.torn(iter([cut, whole])).verdicts == {"right": 2}
    torn = toolgram.get_format("hermes").parse(cut.text.replace("Pa", "Pa</"), finish_reason="length")
    monkeypatch.setattr(bench, "read", lambda sample: torn if sample is cut else read(sample))
    assert bench.torn(iter([cut])).verdicts == {"wrong": 1}


def test_a_real_output_that_loses_its_call_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    before = json.loads(bench.READ.read_text("utf-8"))
    assert {name: len(digits) for name, digits in before.items()} == dict.fromkeys(rows.REAL.values(), 500)
    now = {**before, "hermes": before["hermes"].replace("1", "0", 1)}
    monkeypatch.setattr(bench, "calls_read", lambda: now)
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
