"""Python arguments and values to JSON: every rule by example, then the contract's clauses as properties.

The oracle is Python's own writing and reading: a value is generated, written with `repr`, `json.dumps` or a writer
that draws its own quotes, blanks and commas, and what comes out must load as `json.dumps` would have said it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.json_prefix import JsonPrefix
from toolgram.islands import python_literals
from toolgram.islands.python_literals import PythonScanner


@dataclass
class Reading:
    """What a scanner said about a text, whatever pieces it came in."""

    out: str
    pos: int
    started: bool
    empty: bool
    done: bool
    broken: bool


def read(text: str, keywords: bool = True, cuts: list[int] | None = None, max_depth: int = 256) -> Reading:
    """Read `text`, cut before each position in `cuts`."""
    scanner = PythonScanner(keywords, max_depth)
    edges = [0, *sorted(cuts or []), len(text)]
    out = ""
    pos = 0
    for start, end in pairwise(edges):
        pos = start + scanner.read(text[start:end], 0)
        out += scanner.out
        assert start <= pos <= end
        assert (pos < end) <= (scanner.done or scanner.broken)
        if scanner.done or scanner.broken:
            break
    return Reading(out, pos, scanner.started, scanner.empty, scanner.done, scanner.broken)


def read_by_character(text: str, keywords: bool = True) -> Reading:
    return read(text, keywords, list(range(1, len(text))))


def load(text: str, keywords: bool = True) -> Any:
    """The value of a text that is read to its end."""
    reading = read(text, keywords)
    assert (reading.done, reading.broken, reading.pos) == (True, False, len(text))
    return json.loads(reading.out)


# Rules, by example


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (")", "{}"),
        (" \n )", "{}"),
        ("a=1)", '{"a": 1}'),
        ("a=1,)", '{"a": 1}'),
        ("a=1 , )", '{"a": 1}'),
        ("\n a\t=\r\n1\f,\n b = 'x'\n)", '{"a": 1, "b": "x"}'),
        ("from=1,import=2,_=3,né2=4,名=5)", '{"from": 1, "import": 2, "_": 3, "né2": 4, "名": 5}'),
        ("a=1, a=2)", '{"a": 1, "a": 2}'),
        ("a=[1,{'k':None}],b=())", '{"a": [1, {"k": null}], "b": []}'),
        ('a={"x":[true,false,null]})', '{"a": {"x": [true, false, null]}}'),
    ],
)
def test_keyword_arguments(source: str, expected: str) -> None:
    assert read(source) == Reading(expected, len(source), source.strip() != ")", expected == "{}", True, False)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("[]", "[]"),
        ("[ ]", "[]"),
        ("{}", "{}"),
        ("{ }", "{}"),
        ("[1,2 , 3,]", "[1, 2, 3]"),
        ("[()]", "[[]]"),
        ("[(1)]", "[[1]]"),
        ("[(1,)]", "[[1]]"),
        ("[(1,2),{},[[]]]", "[[1, 2], {}, [[]]]"),
        ("{'a' : 1 , 'b':2,}", '{"a": 1, "b": 2}'),
        ("{1:'a',-.5:'b',1_000:'c',5.:'d'}", '{"1": "a", "-0.5": "b", "1000": "c", "5.0": "d"}'),
        ("{True:1,None :2,false:3}", '{"true": 1, "null": 2, "false": 3}'),
        ("{'a' \"b\":1,'''c''':2,'\\n':3}", '{"ab": 1, "c": 2, "\\n": 3}'),
        ('{"a": [{"b": {}}]}', '{"a": [{"b": {}}]}'),
    ],
)
def test_container_values(source: str, expected: str) -> None:
    assert read(source, False) == Reading(expected, len(source), True, False, True, False)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{'a': 1})", '{"a": 1}'),
        (" { 'a' : 1 , } , )", '{"a": 1}'),
        ("{'a': {'b': (1,)}}\n)", '{"a": {"b": [1]}}'),
        ("{1: 2})", '{"1": 2}'),
        ("{})", "{}"),
    ],
)
def test_a_sole_dict_is_the_arguments(source: str, expected: str) -> None:
    assert read(source) == Reading(expected, len(source), True, False, True, False)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("''", ""),
        ('""', ""),
        ("''''''", ""),
        ('""""""', ""),
        ("'a'", "a"),
        ("'say \"hi\"'", 'say "hi"'),
        ('"it\'s"', "it's"),
        ("'a\nb\tc\r\x00\x1f\x7fd'", "a\nb\tc\r\x00\x1f\x7fd"),
        ("'é漢😀\u2028'", "é漢😀\u2028"),
        ("'\ud83d'", "\ud83d"),
        (r"'\n\t\r\\\'\"\a\b\f\v'", "\n\t\r\\'\"\a\b\f\v"),
        (r"'\0'", "\0"),
        (r"'\0a\18\1018\777'", "\0a\x018A8ǿ"),
        (r"'\x41\xe9\x0a'", "Aé\n"),
        (r"'\u0041\u00e9\u6F22'", "Aé漢"),
        (r"'\U0001f600\U00000041\U0010FFFF'", "😀A\U0010ffff"),
        (r"'\ud83d\ude00'", "😀"),
        (r"'\ud83d \ude00'", "\ud83d \ude00"),
        (r"'\U0000d83d'", "\ud83d"),
        ("'a\\\nb'", "ab"),
        ("'a\\\r\nb'", "ab"),
        ("'a\\\rb'", "ab"),
        (r"'\d\N{BULLET}\9\é'", r"\d\N{BULLET}\9\é"),
        ("\"a\" 'b'", "ab"),
        ("'a''b'", "ab"),
        ("'a'\n\n\"b\" '''c''' \"\" 'd'", "abcd"),
        ("'' ''", ""),
        ("'''a'b''c'''", "a'b''c"),
        ("'''\"'''", '"'),
        ('"""a"b""c\n"""', 'a"b""c\n'),
        ('"""a\\""""', 'a"'),
        ("'''a''''b'", "ab"),
        ('"a""""b"""', "ab"),
        ("''\"x\"", "x"),
    ],
)
def test_strings(source: str, expected: str) -> None:
    assert load(f"a={source})") == {"a": expected}
    assert load(f"[{source} , {source}]", False) == [expected, expected]
    assert load(f"{{{source} : 1}})") == {expected: 1}


def test_surrogates_leave_as_escapes_where_they_came_as_escapes() -> None:
    assert read(r"a='\uD83D\ude00\uDEAD')").out == r'{"a": "\ud83d\ude00\udead"}'
    assert read("a='\udead')").out == '{"a": "\udead"}'


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("0", "0"),
        ("-0", "-0"),
        ("7", "7"),
        ("1000", "1000"),
        ("1002003", "1002003"),
        ("-12.50", "-12.50"),
        ("0.5", "0.5"),
        ("0.05", "0.05"),
        ("0e1", "0e1"),
        ("1e5", "1e5"),
        ("1E+05", "1E+05"),
        ("1.5e-3", "1.5e-3"),
        ("+5", "5"),
        ("+.5", "0.5"),
        (".5", "0.5"),
        (".05e1", "0.05e1"),
        ("-.5", "-0.5"),
        ("5.", "5.0"),
        ("0.", "0.0"),
        ("-5.", "-5.0"),
        ("5.e3", "5.0e3"),
        ("1_000", "1000"),
        ("1_0_0.0_1e1_0", "100.01e10"),
    ],
)
def test_numbers(source: str, expected: str) -> None:
    assert read(f"a={source})").out == f'{{"a": {expected}}}'
    assert read(f"[{source},{source} ]", False).out == f"[{expected}, {expected}]"
    assert read(f"{{{source}:{source}}}", False).out == f'{{"{expected}": {expected}}}'


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("True", "true"),
        ("true", "true"),
        ("False", "false"),
        ("false", "false"),
        ("None", "null"),
        ("null", "null"),
    ],
)
def test_words(source: str, expected: str) -> None:
    for end in (")", " )", "\n)", ",)"):
        assert read(f"a={source}{end}").out == f'{{"a": {expected}}}'
    assert read(f"a=[{source}],b={{{source}:{source}}})").out == (
        f'{{"a": [{expected}], "b": {{"{expected}": {expected}}}}}'
    )
    waiting = read(f"a={source}")
    assert (waiting.out, waiting.started) == ('{"a": ', False)


BROKEN = [  # "|" stands in front of the character that does not fit, and what was written until then
    ("|,", ""),
    ("|'a')", ""),
    ("|1)", ""),
    ("|[1])", ""),
    ("|*args)", ""),
    ("|**{'a': 1})", ""),
    ("|# comment\n)", ""),
    ("x|)", ""),
    ("x|, y=1)", ""),
    ("x |y=1)", ""),
    ("x|.y=1)", ""),
    ("x|(1))", ""),
    ("x|: 1)", ""),
    ("a=|=1)", ""),
    ("a=|)", ""),
    ("a=|,)", ""),
    ("a=|x)", ""),
    ("a=|\\\n1)", ""),
    ("a=|\xa01)", ""),
    ("a=|r'x')", ""),
    ("a=|b'x')", ""),
    ("a=f|'x')", '{"a": '),
    ("a=1,|,)", '{"a": 1'),
    ("a=1, |2)", '{"a": 1'),
    ("a=1, |{'b': 1})", '{"a": 1'),
    ("a=1 |b=2)", '{"a": 1'),
    ("a=1|+2)", '{"a": 1'),
    ("a=1 |# one\n)", '{"a": 1'),
    ("a='x' |+ 'y')", '{"a": "x"'),
    ("a='x'|.upper())", '{"a": "x"'),
    ("a='x' |f'y')", '{"a": "x"'),
    ("a=1|]", '{"a": 1'),
    ("a=[1|)", '{"a": [1'),
    ("a=[|,]", '{"a": ['),
    ("a=[1,|,]", '{"a": [1'),
    ("a=(1|]", '{"a": [1'),
    ("a=[|x for x in y]", '{"a": ['),
    ("a=[|*x]", '{"a": ['),
    ("a=[1 |for", '{"a": [1'),
    ("a={1|, 2})", '{"a": {"1"'),
    ("a={'x'|})", '{"a": {"x"'),
    ("a={|[1]: 2})", '{"a": {'),
    ("a={|(1,): 2})", '{"a": {'),
    ("a={|**x})", '{"a": {'),
    ("a={'x':|})", '{"a": {"x": '),
    ("a={'x': 1|: 2})", '{"a": {"x": 1'),
    ("a=[1|: 2])", '{"a": [1'),
    ("{'a': 1}, |b=2)", '{"a": 1}'),
    ("{'a': 1},|,)", '{"a": 1}'),
    ("{'a': 1}|[0])", '{"a": 1}'),
    ("{'a'|})", '{"a"'),
    ("a=Non|sense)", '{"a": '),
    ("a=None|xistent)", '{"a": '),
    ("a=No|pe)", '{"a": '),
    ("a=None|.x)", '{"a": '),
    ("a=Tru|)", '{"a": '),
    ("a=True|_)", '{"a": '),
    ("a=True|'x')", '{"a": '),
    ("a=T|RUE)", '{"a": '),
    ("a=n|an)", '{"a": '),
    ("a=|Infinity)", ""),
    ("a=-|Infinity)", '{"a": -'),
    ("a=-|-1)", '{"a": -'),
    ("a=-| 1)", '{"a": -'),
    ("a=+|True)", '{"a": '),
    ("a=0|0)", '{"a": 0'),
    ("a=0|07)", '{"a": 0'),
    ("a=-0|7)", '{"a": -0'),
    ("a=0|_0)", '{"a": 0'),
    ("a=0|x1F)", '{"a": 0'),
    ("a=0|b1)", '{"a": 0'),
    ("a=1|j)", '{"a": 1'),
    ("a=1_|_0)", '{"a": 1'),
    ("a=1_|)", '{"a": 1'),
    ("a=1_|.5)", '{"a": 1'),
    ("a=1.5_|)", '{"a": 1.5'),
    ("a=1.|_5)", '{"a": 1.0'),
    ("a=.|)", '{"a": 0.'),
    ("a=.|_5)", '{"a": 0.'),
    ("a=.|.)", '{"a": 0.'),
    ("a=1.5|.5)", '{"a": 1.5'),
    ("a=1e|)", '{"a": 1e'),
    ("a=1e|_5)", '{"a": 1e'),
    ("a=1e+|)", '{"a": 1e+'),
    ("a=1e5_|)", '{"a": 1e5'),
    ("a=1e5|.0)", '{"a": 1e5'),
    ("a=1e5|e)", '{"a": 1e5'),
    ("a=1|１)", '{"a": 1'),
    (r"a='\x4|g')", '{"a": "'),
    (r"a='\x|')", '{"a": "'),
    (r"a='\u12|')", '{"a": "'),
    (r"a='b\U0|1000000')", '{"a": "b'),
    (r"a='\U001|1FFFF')", '{"a": "'),
    (r"a='\U00|200000')", '{"a": "'),
    (r"a='\U0010FFF|g')", '{"a": "'),
]


@pytest.mark.parametrize(("source", "out"), BROKEN)
def test_what_does_not_fit_breaks_where_it_stands(source: str, out: str) -> None:
    pos = source.index("|")
    text = source.replace("|", "")
    reading = read(text)
    assert (reading.broken, reading.done, reading.pos, reading.out) == (True, False, pos, out)
    assert read_by_character(text) == reading


@pytest.mark.parametrize("source", ["", "1", "'a'", "(1)", " [1]", "a", ")"])
def test_a_bare_value_starts_with_its_bracket(source: str) -> None:
    assert read(source, False) == Reading("", 0, False, False, False, source != "")


def test_nothing_is_read_after_the_end() -> None:
    for source, pos in (("a=1)b=2)", 4), ("a=1 b=2)", 4)):
        scanner = PythonScanner(True)
        assert scanner.read(source, 0) == pos
        assert scanner.read(source, 2) == 2
        assert scanner.out == ""


def test_reading_starts_at_the_given_position() -> None:
    scanner = PythonScanner(True)
    assert scanner.read("f(a=1", 2) == 5
    assert scanner.read("f(a=1)x", 5) == 6
    assert (scanner.out, scanner.done) == ("}", True)


@pytest.mark.parametrize(
    ("source", "keywords"),
    [  # ">" stands behind the first character that makes it certain
        ("a='>x')", True),
        ('a=  ">")', True),
        ("a=1>0)", True),
        ("a=-1>0)", True),
        ("a=+.1>0)", True),
        ("a=[>])", True),
        ("a=(>1)", True),
        ("a={>1: 2})", True),
        ("a=None)>", True),
        ("a=True >)", True),
        ("{'a': 1})>", True),
        ("{'''a''': 1}, )>", True),
        ("{'' : 1})>", True),
        ("{1:1})>", True),
        ("{None:1})>", True),
        ("{ })>", True),
        ("[ '>a']", False),
        ("[->1]", False),
        ("[N>one]", False),
        ("{1>: 2}", False),
        ("{ }>", False),
    ],
)
def test_started_as_soon_as_it_is_certain(source: str, keywords: bool) -> None:
    at = source.index(">")
    text = source.replace(">", "")
    starts = [read(text[:end], keywords).started for end in range(len(text) + 1)]
    assert starts == [end >= at for end in range(len(text) + 1)]


@pytest.mark.parametrize("source", [")", "a=x", "a=-x", "a=None.x", "a=Nonexistent", "'a'", "{x", "{'a", "{1}", "a=="])
def test_what_is_no_literal_never_starts(source: str) -> None:
    assert not read(source).started


@pytest.mark.parametrize(
    ("source", "outs"),
    [
        ("ab=1", ["", "", "", '{"ab": 1']),
        ("a=-.5", ["", "", '{"a": -', "0.", "5"]),
        ("a=5.)", ["", "", '{"a": 5', ".", "0}"]),
        ("a=1_0", ["", "", '{"a": 1', "", "0"]),
        ("a='x')", ["", "", '{"a": "', "x", "", '"}']),
        ("a='' 'y", ["", "", '{"a": "', "", "", "", "y"]),
        ("a='''''x'", ["", "", '{"a": "', "", "", "", "", "''x", ""]),
        ("a='\\n\\x41", ["", "", '{"a": "', "", "\\n", "", "", "", "A"]),
        ("a='\\08", ["", "", '{"a": "', "", "", "\\u00008"]),
        ("a=[1,2,]", ["", "", '{"a": [', "1", "", ", 2", "", "]"]),
        ("{'a':1}", ["", '{"', "a", "", '": ', "1", "}"]),
    ],
)
def test_prompt(source: str, outs: list[str]) -> None:
    scanner = PythonScanner(True)
    said = []
    for character in source:
        scanner.read(character, 0)
        said.append(scanner.out)
    assert said == outs


def test_depth_is_capped() -> None:
    assert load("[" * 256 + "]" * 256, False) is not None
    assert read("[" * 257, False).pos == 256
    assert read("a=[{'b': (1)}])", max_depth=4).done
    over = read("a=[{'b': ((1))}])", max_depth=4)
    assert (over.broken, over.pos, over.out) == (True, 10, '{"a": [{"b": [')
    assert read("{'a': []})", max_depth=2).done
    assert read("{'a': []})", max_depth=1).pos == 6


# Properties

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
            return " ".join(self.string(piece) for piece in self.pieces(value))
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

    def pieces(self, text: str) -> list[str]:
        cut = self.draw(st.integers(0, len(text)))
        return [text[:cut], text[cut:]] if cut else [text]

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


@given(arguments, st.sampled_from([repr, json.dumps]))
def test_written_arguments_load_as_what_they_were(given_arguments: dict[str, Any], write: Callable[[Any], str]) -> None:
    source = ", ".join(f"{name}={write(value)}" for name, value in given_arguments.items()) + ")"
    assert load(source) == as_json(given_arguments)


@given(st.lists(values) | st.dictionaries(keys, values), st.sampled_from([repr, json.dumps]))
def test_written_containers_load_as_what_they_were(value: Any, write: Callable[[Any], str]) -> None:
    assert load(write(value), False) == as_json(value)


@given(st.dictionaries(texts, values))
def test_written_sole_dicts_load_as_what_they_were(value: dict[str, Any]) -> None:
    assert load(repr(value) + ")") == as_json(value)


@given(values)
def test_json_is_kept_as_it_is_but_for_blanks_and_escapes(value: Any) -> None:
    source = json.dumps(value, separators=(",", ":"))
    assert read(f"a={source})").out == json.dumps({"a": json.loads(source)}, ensure_ascii=False) or "\\ud" in source


@given(freely_written())
def test_any_way_of_writing_loads_as_the_same(case: tuple[dict[str, Any], str]) -> None:
    given_arguments, source = case
    assert load(source) == as_json(given_arguments)


@given(freely_written())
def test_the_cut_does_not_matter(case: tuple[dict[str, Any], str]) -> None:
    source = case[1][:300]
    whole = read(source)
    assert read_by_character(source) == whole
    for cut in range(len(source) + 1):
        assert read(source, cuts=[cut]) == whole


@given(freely_written())
def test_every_prefix_of_the_output_is_a_json_prefix(case: tuple[dict[str, Any], str]) -> None:
    source = case[1]
    scanner, reader = PythonScanner(True), JsonPrefix()
    for character in source:
        assert not scanner.done
        assert not reader.is_whole
        scanner.read(character, 0)
        assert reader.read(scanner.out).error is None
    assert scanner.done
    assert reader.is_whole


syntax = st.lists(
    st.sampled_from([*"'\"\\{}[]()=,:.+-_#* \n\t\r0123eExuUjaTN", "True", "None", "null", "a=", "'a'", '"""', "'''"]),
    max_size=40,
).map("".join)
anything = st.tuples(st.sampled_from(["", "a=", "a=[", "{", "[", "a='", "{'a':", "a='''"]), syntax | texts).map("".join)


@given(anything, st.booleans(), st.data())
def test_any_text_is_read_the_same_however_it_is_cut(source: str, keywords: bool, data: st.DataObject) -> None:
    whole = read(source, keywords)
    assert JsonPrefix().read(whole.out).error is None
    assert not (whole.done and whole.broken)
    assert whole.done <= JsonPrefix().read(whole.out).is_whole
    assert read_by_character(source, keywords) == whole
    assert read(source, keywords, data.draw(st.lists(st.integers(0, len(source)), max_size=5))) == whole
    if whole.broken:  # what was consumed is a fine beginning, and reads the same alone
        before = read(source[: whole.pos], keywords)
        assert not before.broken
        assert whole.out.startswith(before.out)


@given(freely_written().map(lambda case: case[1]) | anything, st.booleans())
def test_a_snapshot_goes_on_where_it_was_taken(source: str, keywords: bool) -> None:
    straight, hopping = PythonScanner(keywords), PythonScanner(keywords)
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
        ("a=" + "'' " * (LONG // 3) + ")", False),
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
    scanner, out, largest = PythonScanner(True), [], 0
    for index, character in enumerate(source):
        scanner.read(character, 0)
        out.append(scanner.out)
        if index % 1000 == 999:
            largest = max(largest, len(json.dumps(scanner.dump())))
    assert "".join(out) == whole.out
    assert calls < 3 * len(source)
    assert largest < 200 or source.startswith("xxx")


SHORT = st.sampled_from(["a", "b", "c"])
NAMED = st.lists(st.tuples(SHORT, st.sampled_from(["1", "2", "''"])), min_size=3, max_size=6)


@given(st.lists(NAMED, min_size=2, max_size=6), st.integers(1, 16))
def test_a_delta_seen_before_is_read_alike_under_other_names(calls: list[list[tuple[str, str]]], size: int) -> None:
    """The transition cache learns from one call and is used in the next, whatever its arguments are called."""
    python_literals._CACHE.clear()
    for call in calls:
        text = "z=0," + ",".join(f"{name}={value}" for name, value in call) + ")"
        scanner, whole = PythonScanner(True), PythonScanner(True)
        out = ""
        for at in range(0, len(text), size):
            scanner.run(text[at : at + size])
            out += scanner.out
        whole.read(text, 0)
        assert scanner.done
        assert out == whole.out


@pytest.mark.parametrize("size", range(1, 17))
def test_two_names_in_one_delta_are_two_names(size: int) -> None:
    python_literals._CACHE.clear()
    for name in ("x", "y"):
        scanner = PythonScanner(True)
        text = f"z=0,{name}=1,b=2,{name}=3)"
        out = ""
        for at in range(0, len(text), size):
            scanner.run(text[at : at + size])
            out += scanner.out
        assert out == f'{{"z": 0, "{name}": 1, "b": 2, "{name}": 3}}'
