"""How far a broken value reaches: to its own bracket, whatever else was left open, in constant work per character."""

import re

import pytest

import toolgram
from tests.streams import statuses
from toolgram.islands import OpenBrackets
from toolgram.islands.error_recovery import MORE, OVER, ErrorRecovery
from toolgram.limits import MAX_OPEN_BRACKETS

BRACKETS = re.compile(r"""(?P<bracket>["'{}\[\](),])""")


def recovering(opened: OpenBrackets) -> ErrorRecovery:
    recovery = ErrorRecovery(opened)
    recovery.search = BRACKETS.search
    return recovery


@pytest.mark.parametrize(
    ("stack", "text", "end"),
    [
        ("{", "x} y", 2),
        ("{{[", "}} y", 2),  # a bracket closes what was left open inside it
        ("{", "]]} y", 3),  # one without a partner closes nothing
        ("{", '"}" } y', 5),
        ("{", '"\\"}" } y', 7),
    ],
)
def test_where_it_is_over(stack: str, text: str, end: int) -> None:
    for size in (1, 2, 99):
        recovery, pos = recovering(OpenBrackets(stack)), 0
        for begin in range(0, len(text), size):
            pos = begin + recovery.read(text[begin : begin + size], 0, True)
            if recovery.reason == OVER:
                break
        assert (recovery.reason, pos) == (OVER, end)


def test_a_list_resumes_before_its_own_separator() -> None:
    recovery = recovering(OpenBrackets("[{", in_list=True))
    assert (recovery.read("x, [}, {", 0, True), recovery.reason) == (5, OVER)


def test_open_brackets_are_bounded() -> None:
    recovery = recovering(OpenBrackets("{"))
    recovery.read("[" * 3 * MAX_OPEN_BRACKETS + ")" * 10, 0, True)
    assert (recovery.reason, len(recovery.stack)) == (MORE, MAX_OPEN_BRACKETS)


def test_long_keys_and_many_closers_are_read_one_character_at_a_time() -> None:
    long_key = '{"name": "f", "parameters": {}, "' + "k" * 50_000
    closers = '{"name": "f", "parameters": {"a": x' + "{" * MAX_OPEN_BRACKETS + "]" * 50_000
    for text in (long_key, closers):
        parser = toolgram.get_format("llama3_json").parser()
        events = [event for character in text for event in parser.feed(character)] + parser.close()
        assert "".join(event.source for event in events) == text
        expected = "complete" if text is long_key else "malformed"  # whose arguments are whole, or not
        assert [status for _, status in statuses(parser.message)] == [expected]
