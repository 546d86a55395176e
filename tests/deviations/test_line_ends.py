r"""Outputs whose lines end in `\r\n`: they say what the same outputs say with `\n`, in shipped and derived formats.

Strategy: the line ends of a format's own examples are replaced, all of them and each by itself, however the text is
split. A line end inside a value is the model's: it stays as it is.
"""

from collections.abc import Iterator

import pytest

import toolgram
from tests.examples import examples_of
from tests.properties.selection import quarter
from tests.properties.test_derived import NAMES as TEMPLATES
from tests.properties.test_derived import derived
from tests.streams import CUT_SIZES, cut, run
from toolgram.message import Message


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
def test_shipped(name: str) -> None:
    fmt = toolgram.get_format(name)
    for prefix, text in examples_of(fmt):
        assert_says_the_same(fmt, prefix, text)


@pytest.mark.parametrize("name", quarter(TEMPLATES, "line ends"))
def test_derived(name: str) -> None:
    fmt, _ = derived(name)
    for prefix, text in examples_of(fmt):
        assert_says_the_same(fmt, prefix, text)
