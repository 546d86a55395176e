"""What the policy says of every format alike, in every shipped format: from the examples in its machine file.

Strategy: an example is cut, or the value of its first argument is replaced. What must be true then follows from what
the example says when it is whole.
"""

import json
from collections.abc import Iterator

import pytest

import toolgram
from tests.examples import BARE, examples_of, with_calls
from tests.json_prefix import is_object
from tests.properties.selection import quarter
from tests.properties.test_derived import NAMES as DERIVED
from tests.properties.test_derived import derived
from tests.streams import CUT_SIZES, assert_same_however_split, cut, run, statuses
from toolgram.events import ToolCallDelta, ToolCallEnd, ToolCallStart
from toolgram.limits import MOST_BLANKS
from toolgram.message import Message

NAMES = toolgram.format_names()
PARAMETERS = {"type": "object", "properties": {"city": {"type": "integer"}, "days": {"type": "integer"}}}
INTEGER = [{"name": name, "parameters": PARAMETERS} for name in ("get_weather", "get_time")]
REASONS = ("stop", "tool_calls", "length", None)


def whole_arguments(name: str, prefix: str, text: str) -> Iterator[tuple[int, int, str]]:
    """Of each call: where its arguments are whole, where the next call may begin, and what they are."""
    parser = toolgram.get_format(name).parser(prefix=prefix)
    written, closed = "", 0
    for at, character in enumerate(text, 1):
        for event in parser.feed(character):
            if isinstance(event, ToolCallStart):
                written, closed = "", 0
            if isinstance(event, ToolCallDelta):
                written += event.arguments
                closed = at if written.startswith("{") and is_object(written) else 0
            if isinstance(event, ToolCallEnd) and closed:
                yield closed, at, written


@pytest.mark.parametrize("name", NAMES)
def test_whole_arguments_make_a_whole_call(name: str) -> None:
    """However much of what is around them is missing at the end of the output."""
    fmt = toolgram.get_format(name)
    for prefix, text in with_calls(name):
        for number, (closed, ended, arguments) in enumerate(whole_arguments(name, prefix, text)):
            for end in range(closed, ended + 1):
                for reason in REASONS:
                    if name in BARE and reason == "length":
                        continue  # without a marker it may have been prose
                    call = fmt.parse(text[:end], prefix=prefix, finish_reason=reason).tool_calls[number]
                    assert (call.arguments, call.status) == (arguments, "complete"), (text[:end], reason)


@pytest.mark.parametrize("digits", [4300, 4301, 5000])
@pytest.mark.parametrize("name", NAMES)
def test_an_integer_that_python_refuses_is_in_no_complete_call(name: str, digits: int) -> None:
    fmt, number = toolgram.get_format(name), "9" * digits
    for prefix, text in with_calls(name):
        for written in ('"Paris"', "'Paris'", "Paris"):
            if written not in text:
                continue
            for tools in (INTEGER, None):
                message = fmt.parse(text.replace(written, number, 1), tools, prefix=prefix)
                for call in message.tool_calls:
                    assert call.status == "complete"
                    assert isinstance(json.loads(call.arguments), dict)
                if digits == 4300 and tools:
                    assert any(number in call.arguments for call in message.tool_calls), written
            break


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_made_by_who_asks_for_them(name: str) -> None:
    """By a parser and by `parse` alike; an id that the model wrote is kept."""
    fmt = toolgram.get_format(name)
    for prefix, text in with_calls(name):
        made = [f"own-{number}" for number in range(9)]
        left, more = iter(made), iter(made)
        whole = fmt.parse(text, prefix=prefix, call_ids=lambda left=left: next(left))  # type: ignore[misc]
        parser = fmt.parser(prefix=prefix, call_ids=lambda more=more: next(more))  # type: ignore[misc]
        parser.feed(text)
        parser.close()
        assert [call.id for call in whole.tool_calls] == [call.id for call in parser.message.tool_calls]
        for call in whole.tool_calls:
            assert call.id in made or call.id in text or call.id.rpartition(".")[2] in text
            assert call.model_id is None or call.model_id in text


@pytest.mark.parametrize("name", quarter(NAMES, "closers too many are"))
def test_closers_too_many_are_no_content(name: str) -> None:
    """Brackets directly after the arguments of a JSON call, and the closing marker of any call, once more."""
    fmt = toolgram.get_format(name)
    for prefix, text in with_calls(name):
        wanted = fmt.parse(text, prefix=prefix)
        for closed, _, _ in whole_arguments(name, prefix, text):
            if text[closed - 1] != "}" or text[closed - 2 : closed] == ">}":
                continue
            for closers in ("}", "}}") if name in BARE else ("}", "}}", "]"):
                broken = text[:closed] + closers + text[closed:]
                message = assert_same_however_split(fmt, broken, prefix=prefix)
                assert statuses(message) == [(call.name, "complete") for call in wanted.tool_calls], broken
                if not text[closed:].startswith(', "'):  # else members follow an object that is closed
                    assert message.content == wanted.content, broken
                assert [anomaly.kind for anomaly in message.anomalies], broken


def test_half_a_surrogate_pair_is_no_name() -> None:
    text = '<tool_call>\n{"name": "\\ud800", "arguments": {}}\n</tool_call>'
    message = assert_same_however_split(toolgram.get_format("hermes"), text)
    assert (message.content, message.reasoning, message.tool_calls) == (text, None, [])


# --- a closer that nothing opened, after blanks ---------------------------------------------------------------------
# It is dropped after a call, as far away from it as blanks between two parts may be.

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("closer", ["}", "</tool_call>"])
@pytest.mark.parametrize(("blanks", "is_dropped"), [(0, True), (MOST_BLANKS, True), (MOST_BLANKS + 1, False)])
def test_a_surplus_closer_after_blanks(closer: str, blanks: int, is_dropped: bool, size: int) -> None:
    _, message = run(toolgram.get_format("hermes"), cut(CALL + " " * blanks + closer, size))
    assert [call.status for call in message.tool_calls] == ["complete"]
    assert (message.content or "").strip() == ("" if is_dropped else closer)
    assert [each.kind for each in message.anomalies] == ["surplus_closer"] * is_dropped


# --- outputs whose lines end in `\r\n` say what the same outputs say with `\n` --------------------------------------
# Strategy: the line ends of a format's own examples are replaced, all of them and each by itself, however the text is
# split. A line end inside a value is the model's: it stays as it is.


def said(message: Message) -> object:
    r"""What an output says, its line ends as `\n`."""
    calls = [(call.name, plain(call.arguments), call.status) for call in message.tool_calls]
    return calls, plain(message.content), plain(message.reasoning), [each.kind for each in message.anomalies]


def plain(text: str | None) -> str | None:
    return text and text.replace("\r\n", "\n").replace("\\r\\n", "\\n")


def with_other_ends(text: str) -> Iterator[str]:
    """The text with all line ends replaced, and with each."""
    yield text.replace("\n", "\r\n")
    places = [at for at, character in enumerate(text) if character == "\n"]
    yield from (f"{text[:at]}\r{text[at:]}" for at in places if len(places) > 1)


def assert_says_the_same(fmt: toolgram.Format, prefix: str, text: str) -> None:
    expected = said(fmt.parse(text, prefix=prefix))
    for changed in with_other_ends(text):
        for size in CUT_SIZES:
            _, message = run(fmt, cut(changed, size), prefix=prefix)
            assert said(message) == expected, (changed, size)
            assert not any("\\r" in call.arguments for call in message.tool_calls), (changed, size)


@pytest.mark.parametrize("name", quarter(toolgram.format_names(), "line ends of shipped"))
def test_line_ends_of_shipped_formats(name: str) -> None:
    fmt = toolgram.get_format(name)
    for prefix, text in examples_of(fmt):
        assert_says_the_same(fmt, prefix, text)


@pytest.mark.parametrize("name", quarter(DERIVED, "line ends"))
def test_line_ends_of_derived_formats(name: str) -> None:
    fmt, _ = derived(name)
    for prefix, text in examples_of(fmt):
        assert_says_the_same(fmt, prefix, text)
