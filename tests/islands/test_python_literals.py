"""Python arguments to JSON: when a call has begun, what is sent at once, and limits. The suite has the rules."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.clauses import check_widely
from tests.json_prefix import is_json_prefix
from tests.properties.selection import quarter
from tests.tables import table
from tests.work import at_most
from toolgram.islands.python_literals import PythonScanner
from toolgram.limits import MAX_DIGITS, MOST_BETWEEN


@dataclass
class Reading:
    """What a scanner said about a text, whatever pieces it came in."""

    out: str
    pos: int
    started: bool
    empty: bool
    done: bool
    broken: bool


def read(text: str, cuts: Iterable[int] = ()) -> Reading:
    """Read `text`, cut before each position in `cuts`."""
    scanner = PythonScanner()
    out, pos = "", 0
    for start, end in pairwise([0, *sorted(cuts), len(text)]):
        pos = start + scanner.read(text[start:end], 0)
        out += scanner.out
        assert start <= pos <= end
        assert (pos < end) <= (scanner.done or scanner.broken)
        if scanner.done or scanner.broken:
            break
    return Reading(out, pos, scanner.started, scanner.empty, scanner.done, scanner.broken)


def test_surrogates_leave_as_escapes_where_they_came_as_escapes() -> None:
    assert read(r"a='\uD83D\ude00\uDEAD')").out == r'{"a": "\ud83d\ude00\udead"}'
    assert read("a='\udead')").out == '{"a": "\udead"}'


def test_nothing_is_read_after_the_end() -> None:
    for source, pos in (("a=1)b=2)", 4), ("a=1 b=2)", 4)):
        scanner = PythonScanner()
        assert (scanner.read(source, 0), scanner.read(source, 2), scanner.out) == (pos, 2, "")


def test_reading_starts_at_the_given_position() -> None:
    scanner = PythonScanner()
    assert (scanner.read("f(a=1", 2), scanner.read("f(a=1)x", 5)) == (5, 6)
    assert (scanner.out, scanner.done) == ("}", True)


@pytest.mark.parametrize("source", table(__file__, "started_as_soon_as_it_is_certain"))
def test_started_as_soon_as_it_is_certain(source: str) -> None:
    at = source.index(">")
    text = source.replace(">", "")
    assert [read(text[:end]).started for end in range(len(text) + 1)] == [end >= at for end in range(len(text) + 1)]


@pytest.mark.parametrize("source", [")", "a=x", "a=-x", "a=None.x", "a=Nonexistent", "'a'", "{x", "{'a", "{1}", "a=="])
def test_what_is_no_literal_never_starts(source: str) -> None:
    assert not read(source).started


@pytest.mark.parametrize(("source", "outs"), table(__file__, "prompt"))
def test_prompt(source: str, outs: list[str]) -> None:
    scanner = PythonScanner()
    said = []
    for character in source:
        scanner.read(character, 0)
        said.append(scanner.out)
    assert said == outs


def test_depth_is_capped() -> None:
    deep = "[" * 252  # with the call, the list, the object and the tuple, 256 deep
    assert read(f"a=[{{'b': ({deep}1{deep.replace('[', ']')},)}}])").done
    over = read(f"a=[{{'b': (({deep}")
    assert (over.broken, over.pos, over.out) == (True, 262, '{"a": [{"b": [[' + deep[1:])
    assert read("{'a': " + "[" * 256).pos == 6 + 255


# --- properties: Python itself is asked -----------------------------------------------------------------------------
# The oracle is Python's own writing and reading: a value is generated, written with `repr`, `json.dumps` or a writer
# that draws its own quotes, blanks and commas, and what comes out must load as `json.dumps` would have said it.

texts = st.text() | st.text(st.characters()) | st.text("ab'\"\\\n\r\t{}[](),:=x08uN ")
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts


def containers(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.lists(children, max_size=4)
    return lists | lists.map(tuple) | st.dictionaries(scalars, children, max_size=4)


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
        if isinstance(value, list | tuple):
            begin, end = "[]" if isinstance(value, list) else "()"
            return begin + self.items([self.value(item) for item in value], begin == "(" and len(value) == 1) + end
        return self.draw(st.sampled_from([repr(value), json.dumps(value)]))

    def items(self, items: list[str], is_sole: bool = False) -> str:
        trailing = "," if is_sole else self.draw(st.sampled_from(["", ","])) if items else ""
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


@given(values)
def test_json_is_kept_as_it_is_but_for_blanks_and_escapes(value: Any) -> None:
    source = json.dumps(value, separators=(",", ":"))
    assert read(f"a={source})").out == json.dumps({"a": json.loads(source)}, ensure_ascii=False) or "\\ud" in source


@given(freely_written())
def test_any_way_of_writing_loads_as_the_same(case: tuple[dict[str, Any], str]) -> None:
    given_arguments, source = case
    reading = read(source)
    assert (reading.done, reading.broken, reading.pos) == (True, False, len(source))
    assert json.loads(reading.out) == json.loads(json.dumps(given_arguments)), "what Python's own JSON makes of them"


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
    assert read(source, range(1, len(source))) == whole
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


@pytest.mark.parametrize(
    ("begin", "unit", "end", "opaque"),
    [
        ("a='", "x", "')", True), ("a='''", "x'\n", "''')", False), ("a='", "\\u0041", "')", False),
        ("a=1.", "1", ")", True), ("a=1.0", "_0", ")", False), ("a=[", "'',", "])", False), ("a=[", "1,", "])", False),
        ("a=", " ", "1)", True), ("", "x", "=1)", True),
    ],
)  # fmt: skip
def test_work_is_linear_and_memory_is_what_is_held(begin: str, unit: str, end: str, opaque: bool) -> None:
    """Whole, what is opaque is read at once; by character, each costs the same."""
    source = begin + unit * (50_000 // len(unit)) + end
    with at_most(calls=300 if opaque else 20 * len(source)):
        whole = read(source)
    assert whole.done
    scanner, out, largest = PythonScanner(), [], 0
    with at_most(calls=30 * len(source)):
        for index, character in enumerate(source):
            scanner.read(character, 0)
            out.append(scanner.out)
            if index % 1000 == 999:
                largest = max(largest, len(json.dumps(scanner.dump())))
    assert "".join(out) == whole.out
    assert largest < 200 or unit == source[0]  # a name is held


# --- digits, of which Python itself reads no more than a limit ------------------------------------------------------

LISTED = "<|tool_call_start|>[f(%s), g(b=2)]<|tool_call_end|>"
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]


@pytest.mark.parametrize("size", [MAX_DIGITS, MAX_DIGITS + 1])
@pytest.mark.parametrize(
    "written", quarter(["a=%s", "a=-%s", "a=[1, %s], b=2", "a=%s.5", "a={%s: 1}", "a={%s, 1}", "%s=1"], "digits")
)
def test_the_limit_of_digits_does_not_depend_on_the_deltas(written: str, size: int) -> None:
    for digits in ("1" * size, "9_" * (size - 1) + "9"):
        failure = check_widely(toolgram.get_format("lfm2"), LISTED % (written % digits), TOOLS)
        assert failure is None, failure.kind
        read = toolgram.get_format("llama4_pythonic").parse(f"[f({written % digits})]", tools=TOOLS)
        assert read.malformed or size == MAX_DIGITS or not written.startswith("a=")


def test_a_key_without_quotes_waits_for_its_colon_up_to_a_limit() -> None:
    for size in (MOST_BETWEEN, MOST_BETWEEN + 1):
        parser = toolgram.get_format("lfm2").parser()
        for piece in ("<|tool_call_start|>[f(a={" + "k".ljust(size), ": 1})]<|tool_call_end|>"):
            parser.feed(piece)
        assert len(parser.message.tool_calls) == (size == MOST_BETWEEN)
