"""Values between markers: every short text, whole and character by character."""

import json
from collections.abc import Callable, Iterable
from functools import partial
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.streams import cut, run
from tests.tables import table
from toolgram.islands import MarkedValue, plain_value
from toolgram.islands.escaped_values import EscapedValue
from toolgram.islands.tagged_values import TaggedValue
from toolgram.tools.parameters import Types

ALPHABET = "[]{}\"'\\,:1 tn-"
DECLARED: list[Types] = [None]
for types in ("string", "array", "object", "integer", "number", "boolean", "string null", "string integer",
              "array string", "object array"):  # fmt: skip
    DECLARED.append(frozenset(types.split()))


MADE: dict[str, Callable[[Types], MarkedValue]] = {
    "bare": TaggedValue, "quoted": partial(TaggedValue, quoted=True), "trimmed": partial(TaggedValue, trimmed=True),
    "xml": partial(EscapedValue, kind="xml"), "html": partial(EscapedValue, kind="html"),
    "url": partial(EscapedValue, kind="url"),
}  # fmt: skip
ALPHABETS = {
    "xml": ("<![CDATA[", "]]>", "&lt;", "&", "[", "]", '"', "\\", ",", "1", " ", "x", "<"),
    "html": ("&#34;", "&lt;", "&#3", "&", "[", "]", '"', "\\", ",", "1", " ", "x", ";"),
    "url": ("%22", "%5B", "%5D", "%C3%A9", "%C3", "%E2%80", "%F0%9F%8E%89", "%", "1", "%31", "%2C", "x"),
}


def read(pieces: Iterable[str], value: MarkedValue) -> tuple[str, int, int, str]:
    """What is written, how much is taken, how much of that has written something, and what the end adds."""
    written, taken, mark = "", 0, 0
    for piece in pieces:
        end = value.read(piece, 0, False)
        written += value.out
        if value.out:
            mark = taken + end - value.tail
        taken += end
        if value.broken:
            return written, taken, mark, "broken"
    rest = value.finish()
    return written, taken, mark, "broken" if value.broken else rest


@pytest.mark.parametrize("types", DECLARED, ids=lambda types: "any" if types is None else "-".join(sorted(types)))
@pytest.mark.parametrize("spelling", MADE)
def test_every_short_text(types: Types, spelling: str) -> None:
    for length in (1, 2, 3):
        for symbols in product(ALPHABETS.get(spelling, ALPHABET), repeat=length):
            text = "".join(symbols)
            whole = read([text], MADE[spelling](types))
            assert read(text, MADE[spelling](types)) == whole, text
            if whole[3] != "broken":
                json.loads(whole[0] + whole[3], strict=False)


def test_an_escaped_literal_that_breaks_or_is_cut_off_says_how_far_it_was_written() -> None:
    value = TaggedValue(frozenset({"array"}))
    assert read(["[\\", '"a', '\\"'], value)[:3] == ('["a', 6, 4)
    value = TaggedValue(frozenset({"array"}))
    assert read(["[\\x"], value) == ("[", 2, 1, "broken")


# --- a value that is plain is what its island reads -----------------------------------------------------------------

NAMES = ("string", "integer", "number", "boolean", "null", "array", "object")
TYPES: list[Types] = [None, *(frozenset(each) for size in (1, 2, 3) for each in combinations(NAMES, size))]
SPELLED = ("", "0", "-0", "7", "07", "-7", "1.5", "1.", "-0.25", "1e5", "9" * 40, "true", "True", "false", "null",
           "None", "nullable", "text", " 7", "7 ", " text ", "[1]", '"x"', "a\nb", "'x'", "\\n", "\x01", "é\u2028",
           "\ud800")  # fmt: skip


def check_plain(raw: str, types: Types, trimmed: bool) -> None:
    """A value that is plain is what its island reads: the same JSON, with nothing odd about it."""
    plain = plain_value("tagged", "trimmed" if trimmed else "", types, raw)
    value = TaggedValue(types, False, trimmed)
    written = read([raw] if raw else [], value)
    found = written[0] + written[3], value.odd, value.broken, value.repairs
    assert plain is None or found == (plain, False, False, [])


@pytest.mark.parametrize("trimmed", [False, True])
@given(raw=st.text(max_size=8) | st.floats().map(str) | st.integers().map(str), types=st.sampled_from(TYPES))
def test_any_plain_value(raw: str, types: Types, trimmed: bool) -> None:
    check_plain(raw, types, trimmed)


@pytest.mark.parametrize("trimmed", [False, True])
@pytest.mark.parametrize("raw", SPELLED, ids=ascii)
def test_plain_values_of_every_spelling(raw: str, trimmed: bool) -> None:
    for types in TYPES:
        check_plain(raw, types, trimmed)


def test_some_values_are_plain() -> None:
    assert plain_value("tagged", "", None, "7") == "7"
    assert plain_value("tagged", "", frozenset({"number"}), "1.5") == "1.5"
    assert plain_value("tagged", "", frozenset({"boolean"}), "true") == "true"
    assert plain_value("tagged", "", frozenset({"string"}), "true") == '"true"'
    assert plain_value("tagged", "json", None, "7") is None


# --- values with elements inside ------------------------------------------------------------------------------------

MARK = "]<]minimax[>["
SCHEMA = table(__file__, "schema")
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}]


def output(elements: str) -> str:
    """A call with these arguments, each tag with its mark."""
    return f'<tool_call>\n<invoke name="f">{elements}</invoke>\n</tool_call>'.replace("<", f"{MARK}<")


def test_elements_are_nested_no_deeper_than_a_limit() -> None:
    deep = "<n>" * 127 + "1" + "</n>" * 127
    fmt = toolgram.get_format("minimax_m3")
    assert [call.status for call in fmt.parse(output(f"<free>{deep}</free>"), TOOLS).tool_calls] == ["complete"]
    assert [call.name for call in fmt.parse(output(f"<free><n>{deep}</n></free>"), TOOLS).malformed] == ["f"]


def test_what_is_declared_is_sent_before_the_value_is_over() -> None:
    parser = toolgram.get_format("minimax_m3").parser(TOOLS)
    text = output("<rows><item><n>1</n></item><item><n>2").split("</invoke>")[0].removesuffix(MARK)
    written = "".join(event.arguments for event in parser.feed(text) if event.type == "tool_call_delta")
    assert written == '{"rows": [{"n": 1}, {"n": '


# --- what is spelled as a number in a notation whose strings have quotes --------------------------------------------

NUMBERS = ["0", "-0", "7", "-12", "1.50", "0.5e+3", "9.000009E5", "1e5", "12345678901234567890"]
TEXTS = ["007", "1.2.3", "5 apples", "1e", "- 4", ".5", "+1"]


@pytest.mark.parametrize("written", [*NUMBERS, *TEXTS])
@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("name", ["functiongemma", "gemma4"])
def test_a_value_without_quotes_inside_another(name: str, written: str, size: int) -> None:
    call = {"functiongemma": "<start_function_call>{}<end_function_call>", "gemma4": "<|tool_call>{}<tool_call|>"}[name]
    text = call.replace("{}", f"call:f{{a:{{b:{written}}},c:[{written}]}}")
    _, message = run(toolgram.get_format(name), cut(text, size))
    (found,) = message.tool_calls
    value = written if written in TEXTS else json.loads(written)
    assert json.loads(found.arguments) == {"a": {"b": value}, "c": [value]}
