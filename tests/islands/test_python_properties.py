"""Python arguments and values to JSON: the contract's clauses as properties.

The oracle is Python's own writing and reading: a value is generated, written with `repr`, `json.dumps` or a writer
that draws its own quotes, blanks and commas, and what comes out must load as `json.dumps` would have said it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.islands.python_reading import load, read, read_by_character
from tests.json_prefix import is_json_prefix
from toolgram.islands import python_literals
from toolgram.islands.python_literals import PythonScanner

texts = st.text() | st.text(st.characters()) | st.text("ab'\"\\\n\r\t{}[](),:=x08uN ")
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
keys = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts


def containers(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.lists(children, max_size=4)
    return lists | lists.map(tuple) | st.dictionaries(keys, children, max_size=4)


values = st.recursive(scalars, containers, max_leaves=12)
names = st.from_regex(r"[^\W\d]\w{0,4}", fullmatch=True)
arguments = st.dictionaries(names, values, max_size=4)
blanks = st.text(" \t\n\r\f", max_size=2)


class Writer:
    """Writes a value as Python in one of the many ways there are; `draw` decides."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def value(self, value: Any) -> str:
        if isinstance(value, str):
            return self.string(value)
        if isinstance(value, dict):
            return "{" + self.items([self.value(k) + self.blank(":") + self.value(v) for k, v in value.items()]) + "}"
        if isinstance(value, list):
            return "[" + self.items([self.value(item) for item in value]) + "]"
        if isinstance(value, tuple):
            return "(" + self.items([self.value(item) for item in value]) + ")"
        return self.draw(st.sampled_from([repr(value), json.dumps(value)]))

    def items(self, items: list[str]) -> str:
        trailing = self.draw(st.sampled_from(["", ","])) if items else ""
        return self.draw(blanks) + self.blank(",").join(items) + self.draw(blanks) + trailing + self.draw(blanks)

    def blank(self, char: str) -> str:
        return f"{self.draw(blanks)}{char}{self.draw(blanks)}"

    def string(self, text: str) -> str:
        quote = self.draw(st.sampled_from(["'", '"', "'''", '"""']))
        return quote + "".join(self.character(c, quote[0]) for c in text) + quote

    def character(self, character: str, quote: str) -> str:
        code = ord(character)
        ways = [rf"\U{code:08x}"]
        if character not in (quote, "\\"):
            ways.append(character)
        if code < 0x10000:
            ways.append(rf"\u{code:04X}")
        if code < 0x100:
            ways.append(rf"\x{code:02x}")
        if code < 0o1000:
            ways.append(rf"\{code:03o}")
        if character in "\\'\"":
            ways.append("\\" + character)
        return self.draw(st.sampled_from(ways))


@st.composite
def freely_written(draw: st.DrawFn) -> tuple[dict[str, Any], str]:
    """Keyword arguments, and a way of writing them that ends with ")"."""
    writer = Writer(draw)
    given_arguments = draw(arguments)
    items = [name + writer.blank("=") + writer.value(value) for name, value in given_arguments.items()]
    return given_arguments, writer.items(items) + ")"


def as_json(value: Any) -> Any:
    """What Python's own JSON makes of the value: tuples are lists, keys are strings, surrogates pair up."""
    return json.loads(json.dumps(value))


@given(values)
def test_json_is_kept_as_it_is_but_for_blanks_and_escapes(value: Any) -> None:
    source = json.dumps(value, separators=(",", ":"))
    assert read(f"a={source})").out == json.dumps({"a": json.loads(source)}, ensure_ascii=False) or "\\ud" in source


@given(freely_written())
def test_any_way_of_writing_loads_as_the_same(case: tuple[dict[str, Any], str]) -> None:
    given_arguments, source = case
    assert load(source) == as_json(given_arguments)


syntax = st.lists(
    st.sampled_from([*"'\"\\{}[]()=,:.+-_#* \n\t\r0123eExuUjaTN", "True", "None", "null", "a=", "'a'", '"""', "'''"]),
    max_size=40,
).map("".join)
anything = st.tuples(st.sampled_from(["", "a=", "a=[", "{", "[", "a='", "{'a':", "a='''"]), syntax | texts).map("".join)


written = freely_written().map(lambda case: case[1])


@given(written | anything, st.data())
def test_any_text_is_read_the_same_however_it_is_cut(source: str, data: st.DataObject) -> None:
    whole = read(source)
    assert is_json_prefix(whole.out)
    assert not (whole.done and whole.broken)
    assert not whole.done or json.loads(whole.out, parse_int=str) is not None
    assert read_by_character(source) == whole
    assert read(source, data.draw(st.lists(st.integers(0, len(source)), max_size=5))) == whole
    if whole.broken:  # what was consumed is a fine beginning, and reads the same alone
        before = read(source[: whole.pos])
        assert not before.broken
        assert whole.out.startswith(before.out)


@given(written | anything)
def test_a_snapshot_goes_on_where_it_was_taken(source: str) -> None:
    straight, hopping = PythonScanner(), PythonScanner()
    for character in source:
        assert straight.read(character, 0) == hopping.read(character, 0)
        assert straight.out == hopping.out
        assert (straight.started, straight.done, straight.broken) == (hopping.started, hopping.done, hopping.broken)
        if straight.done or straight.broken:
            break  # what is over is not kept
        saved = json.dumps(straight.dump())
        assert saved == json.dumps(hopping.dump())
        hopping = PythonScanner.load(json.loads(saved))


LONG = 200_000


@pytest.mark.parametrize(
    ("source", "opaque"),
    [
        ("a='" + "x" * LONG + "')", True),
        ("a='''" + "x'\n" * (LONG // 3) + "''')", False),
        ("a='" + "\\u0041" * (LONG // 6) + "')", False),
        ("a=1." + "1" * LONG + ")", True),
        ("a=1.0" + "_0" * (LONG // 2) + ")", False),
        ("a=[" + "''," * (LONG // 3) + "])", False),
        ("a=[" + "1," * (LONG // 2) + "])", False),
        ("a=" + " " * LONG + "1)", True),
        ("x" * LONG + "=1)", True),
    ],
)
def test_work_is_linear_and_memory_is_what_is_held(source: str, opaque: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts reader calls: each does constant work but for one forward run, so calls per character bound the work."""
    calls = 0

    def counted(reader: Callable[[PythonScanner, str, int], int]) -> Callable[[PythonScanner, str, int], int]:
        def count(scanner: PythonScanner, text: str, pos: int) -> int:
            nonlocal calls
            calls += 1
            return reader(scanner, text, pos)

        return count

    for state, reader in python_literals.READERS.items():
        monkeypatch.setitem(python_literals.READERS, state, counted(reader))
    whole = read(source)
    assert whole.done
    assert calls < (20 if opaque else 3 * len(source))
    calls = 0
    scanner, out, largest = PythonScanner(), [], 0
    for index, character in enumerate(source):
        scanner.read(character, 0)
        out.append(scanner.out)
        if index % 1000 == 999:
            largest = max(largest, len(json.dumps(scanner.dump())))
    assert "".join(out) == whole.out
    assert calls < 3 * len(source)
    assert largest < 200 or source.startswith("xxx")


@pytest.mark.parametrize("size", range(1, 17))
def test_two_names_in_one_delta_are_two_names(size: int) -> None:
    for name in ("x", "y"):
        scanner = PythonScanner()
        text = f"z=0,{name}=1,b=2,{name}=3)"
        out = ""
        for at in range(0, len(text), size):
            scanner.run(text[at : at + size])
            out += scanner.out
        assert out == f'{{"z": 0, "{name}": 1, "b": 2, "{name}": 3}}'
