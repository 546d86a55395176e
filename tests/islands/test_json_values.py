"""The table of JSON says what JSON is; skips only say it faster."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.page_parts import part
from tests.repairs_table import PAGE, PART, counts, table
from tests.strategies import chunkings
from tests.streams import cut, run, sources
from toolgram.islands import json_values
from toolgram.islands.json_values import BROKEN, JsonScanner
from toolgram.limits import MAX_DEPTH, MAX_DIGITS

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=30)
objects = st.dictionaries(st.text(), values)
INDENTS = st.sampled_from([None, 0, 1, 4])
ODD = st.sampled_from(list('{}[]",:\\x0123.eE+-tfn \n\t\x00é日\U0001f600u'))


@st.composite
def nearly_json(draw: st.DrawFn) -> str:
    """An object as JSON, often with a character put in, taken out or changed."""
    text = json.dumps(draw(objects), indent=draw(INDENTS), ensure_ascii=draw(st.booleans()))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.just("") | ODD) + text[at + draw(st.integers(0, 1)) :]
    return text


def read(pieces: list[str]) -> tuple[str, int, list[object]]:
    """What is passed on, how many characters are taken, and where the scanner is."""
    scanner = JsonScanner()
    scanner.accept_controls()
    out, taken = "", 0
    for piece in pieces:
        more = scanner.run(piece, 0, 0)
        out += scanner.out
        taken += scanner.end
        if not more:
            break
    return out, taken, scanner.dump()


@given(objects, INDENTS, st.booleans())
def test_all_of_json_is_read_and_passed_on(value: object, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    out, taken, _ = read([text + " more"])
    assert (taken, json.loads(out)) == (len(text), value)


@given(nearly_json(), st.data())
def test_any_deltas_are_read_alike_and_what_is_taken_is_a_prefix_of_json(text: str, data: st.DataObject) -> None:
    """A character is a look-up in the table: no skip is as short. Steps end where runs end."""
    whole = read([text])
    assert whole == read(list(text)) == read(data.draw(chunkings(text)))
    out, taken, place = whole
    scanner = JsonScanner()
    scanner.accept_controls()
    at = 0
    while at < len(text) and not scanner.done and not scanner.broken:
        at = scanner.step(text, at)
    assert (at, scanner.dump()) == (taken, place)
    assert_closed_is_json(out)


def assert_closed_is_json(out: str) -> None:
    """Closed as its state says, what was passed on loads."""
    scanner = JsonScanner()
    assert scanner.run(out, 0, 0) or scanner.done
    for _ in range(600):
        if scanner.done:
            break
        step = next(piece for piece in '"}]0:,realsu{' if _fits(scanner, piece))
        scanner.run(step, 0, 0)
        out += step
    json.loads(out)


def _fits(scanner: JsonScanner, piece: str) -> bool:
    other = JsonScanner.load(scanner.dump())
    return other.run(piece, 0, 0) or other.done


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_depth_is_bounded_with_and_without_skips(opening: str) -> None:
    deep = opening * (MAX_DEPTH + 1)
    assert read([deep]) == read(list(deep))
    assert read([deep])[2][0] == BROKEN
    enough = opening * MAX_DEPTH + ("[1], " * 10 if opening == "[" else "1, " * 10)
    assert read([enough]) == read(list(enough))


@given(
    nearly_json(), st.sampled_from([json_values.AFTER_ITEM, json_values.AFTER_MEMBER]), st.integers(0, 200), st.data()
)
def test_a_skip_takes_all_blanks(text: str, state: int, blanks: int, data: st.DataObject) -> None:
    """Or every window of a long run of blanks would look at all that are left of it."""
    at = data.draw(st.integers(0, len(text)))
    text = text[:at] + " " * blanks + text[at:]
    end = json_values._skip(state, text, at, MAX_DEPTH)
    assert text[end : end + 1] not in tuple(" \t\r\n")


# --- local deviations are repaired on the way, and never retracted --------------------------------------------------

OUTPUTS = {
    "hermes": '<tool_call>\n{"name": "f", "arguments": %s}\n</tool_call>',
    "mistral_v11": "[TOOL_CALLS]f[ARGS]%s",
    "mistral_v3": '[TOOL_CALLS][{"name": "f", "arguments": %s}]',
    "granite_3": '<|tool_call|>[{"name": "f", "arguments": %s}]',
    "llama3_json": '<|python_tag|>{"name": "f", "parameters": %s}',
}


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("written", ['{"a": [12, -%s], "b": 3}', '{"a": [%s], }', "{'a': %s}", '"{\\"a\\": %s}"'])
def test_an_integer_that_python_refuses_is_no_argument(name: str, written: str) -> None:
    if written[0] == '"' and name == "mistral_v11":
        return  # whose arguments are never a string
    for digits in (MAX_DIGITS - 1, MAX_DIGITS, MAX_DIGITS + 1, 5000):
        for size, rest in ((1, ""), (3, ""), (16, ""), (17, ""), (10_000, ""), (1, ".5"), (17, "e5"), (10_000, "E+7")):
            _, message = run(toolgram.get_format(name), cut(OUTPUTS[name] % (written % ("7" * digits + rest)), size))
            lengths = [(call.status, len(call.arguments)) for call in message.tool_calls]
            failed = [len(call.arguments) for call in message.malformed]
            assert [status for status, _ in lengths] == ["complete"] * (digits <= MAX_DIGITS or rest != "")
            if written.endswith("3}"):
                assert (lengths or failed) == ([("complete", digits + len(rest) + 22)] if lengths else [digits + 12])


def test_work_on_what_waits_is_bounded() -> None:
    """A comma with a long run of blanks after it is decided after 64 of them."""
    parser = toolgram.get_format("mistral_v11").parser()
    parser.feed('[TOOL_CALLS]f[ARGS]{"a": 1,')
    for _ in range(1000):
        parser.feed(" ")
        assert len(json.dumps(parser.snapshot())) < 1500


def test_the_page_beside_json_repair_is_not_older_than_the_code() -> None:
    assert part(PAGE, *PART) == table(counts())


@pytest.mark.parametrize(("size", "blank", "names"), [(1, "\n", "ab"), (9, "\n", "ab"), (1, " ", "b"), (9, " ", "b")])
def test_a_repair_in_a_list_ends_where_its_call_does(size: int, blank: str, names: str) -> None:
    """No comma after arguments, and no known key: on their line, they ended too early. The list is read on."""
    text = f'[TOOL_CALLS][{{"name": "a", "arguments": "{{}}"{blank}"f" , "x": 1}}, {{"name": "b", "arguments": {{}}}}]'
    events, message = run(toolgram.get_format("mistral_v3"), cut(text, size))
    assert sources(events) == text
    assert [(call.name, call.status) for call in message.tool_calls] == [(name, "complete") for name in names]
