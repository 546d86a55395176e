"""Python arguments to JSON: when a call has begun, what is sent at once, and limits. The suite has the rules."""

from __future__ import annotations

import pytest

from tests.islands.python_reading import read
from tests.tables import table
from toolgram.islands.python_literals import PythonScanner


def test_surrogates_leave_as_escapes_where_they_came_as_escapes() -> None:
    assert read(r"a='\uD83D\ude00\uDEAD')").out == r'{"a": "\ud83d\ude00\udead"}'
    assert read("a='\udead')").out == '{"a": "\udead"}'


def test_nothing_is_read_after_the_end() -> None:
    for source, pos in (("a=1)b=2)", 4), ("a=1 b=2)", 4)):
        scanner = PythonScanner()
        assert scanner.read(source, 0) == pos
        assert scanner.read(source, 2) == 2
        assert scanner.out == ""


def test_reading_starts_at_the_given_position() -> None:
    scanner = PythonScanner()
    assert scanner.read("f(a=1", 2) == 5
    assert scanner.read("f(a=1)x", 5) == 6
    assert (scanner.out, scanner.done) == ("}", True)


@pytest.mark.parametrize("source", table(__file__, "started_as_soon_as_it_is_certain"))
def test_started_as_soon_as_it_is_certain(source: str) -> None:
    at = source.index(">")
    text = source.replace(">", "")
    starts = [read(text[:end]).started for end in range(len(text) + 1)]
    assert starts == [end >= at for end in range(len(text) + 1)]


@pytest.mark.parametrize("source", [")", "a=x", "a=-x", "a=None.x", "a=Nonexistent", "'a'", "{x", "{'a", "{1}", "a=="])
def test_what_is_no_literal_never_starts(source: str) -> None:
    assert not read(source).started


@pytest.mark.parametrize(
    ("source", "outs"),
    table(__file__, "prompt"),
)
def test_prompt(source: str, outs: list[str]) -> None:
    scanner = PythonScanner()
    said = []
    for character in source:
        scanner.read(character, 0)
        said.append(scanner.out)
    assert said == outs


def test_depth_is_capped() -> None:
    deep = "[" * 252  # with the call, the list, the object and the tuple, 256 deep
    assert read(f"a=[{{'b': ({deep}1{deep.replace('[', ']')})}}])").done
    over = read(f"a=[{{'b': (({deep}")
    assert (over.broken, over.pos, over.out) == (True, 262, '{"a": [{"b": [[' + deep[1:])
    assert read("{'a': " + "[" * 256).pos == 6 + 255
