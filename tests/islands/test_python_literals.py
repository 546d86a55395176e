"""Python arguments and values to JSON: every rule by example. `test_python_properties` has the contract's clauses."""

from __future__ import annotations

import pytest

from tests.islands.python_reading import Reading, load, read, read_by_character
from toolgram.islands.python_literals import PythonScanner


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
        ("'''a'b''c'''", "a'b''c"),
        ("'''\"'''", '"'),
        ('"""a"b""c\n"""', 'a"b""c\n'),
        ('"""a\\""""', 'a"'),
    ],
)
def test_strings(source: str, expected: str) -> None:
    assert load(f"a={source})") == {"a": expected}
    assert load(f"[{source} , {source}]", False) == [expected, expected]
    assert load(f"{{{source} : 1}})") == {expected: 1}


def test_surrogates_leave_as_escapes_where_they_came_as_escapes() -> None:
    assert read(r"a='\uD83D\ude00\uDEAD')").out == r'{"a": "\ud83d\ude00\udead"}'
    assert read("a='\udead')").out == '{"a": "\udead"}'


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
    ("a=0x1|G)", '{"a": 1'),
    ("a=0x|)", '{"a": '),
    ("a=0b12|)", '{"a": '),
    ("a=-0x1_|)", '{"a": -'),
    ("a=0x" + "f" * 63 + "|f)", '{"a": ' + str(int("f" * 63, 16))),
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
        ("a='x')", ["", "", '{"a": "', "x", '"', "}"]),
        ("a='' )", ["", "", '{"a": "', "", '"', "}"]),
        ("a='''''x'", ["", "", '{"a": "', "", "", "", "", "''x", ""]),
        ("a='\\n\\x41", ["", "", '{"a": "', "", "\\n", "", "", "", "A"]),
        ("a='\\08", ["", "", '{"a": "', "", "", "\\u00008"]),
        ("a=[1,2,]", ["", "", '{"a": [', "1", "", ", 2", "", "]"]),
        ("{'a':1}", ["", '{"', "a", '"', ": ", "1", "}"]),
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
    deep = "[" * 252  # with the call, the list, the object and the tuple, 256 deep
    assert read(f"a=[{{'b': ({deep}1{deep.replace('[', ']')})}}])").done
    over = read(f"a=[{{'b': (({deep}")
    assert (over.broken, over.pos, over.out) == (True, 262, '{"a": [{"b": [[' + deep[1:])
    assert read("{'a': " + "[" * 256, False).pos == 6 + 255
