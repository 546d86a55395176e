"""Calls that a model only mentions: in inline code, in a fence, in a thought, after the end of the turn.

What is true of any text of this kind is a part of the other properties: `tests.strategies` mentions calls in some
outputs. Here is what counts, and what work it costs, as a call that is withheld is read again.
"""

from collections.abc import Iterable

import pytest

import toolgram
from tests.clauses import check_widely
from tests.fuzz import tools
from tests.generators.calls_in_halves import simple_call
from tests.properties.selection import every_format, some
from tests.strategies import OTHER_TOOLS, thought_markers
from tests.streams import calls_of, check_events, check_message, cut, run
from tests.work import at_most, calls_made
from toolgram.observing.paths import canonical_outputs

REASONS = (None, "stop", "tool_calls", "length", "")


@every_format
@pytest.mark.parametrize("place", ["fence", "thought"])
@pytest.mark.parametrize("size", [0, 1])
def test_a_call_that_text_follows_in_a_fence_or_a_thought_is_none(name: str, size: int, place: str) -> None:
    """A real one may come after it, in formats whose calls come after text."""
    fmt, call = toolgram.get_format(name), simple_call(name)[0]
    opener, closer = thought_markers(name)
    after_thought = fmt.parse(f"{opener}a{closer}{call}", prefix="", finish_reason="stop").tool_calls
    if place == "thought" and (not opener or closer in call or len(after_thought) != 1):
        return
    before, rest = {
        "fence": ("See:\n```\n", "\n```\nis how it is done. "),
        "thought": (f"{opener}I could write ", f" or wait. {closer}"),
    }[place]
    follows = bool(fmt.parse(f"Hi.\n{call}", prefix="", finish_reason="stop").tool_calls)
    for inner in (call, f"{call}\n{call}"):
        text = f"{before}{inner}{rest}"
        for reason in REASONS:
            events, message = run(fmt, cut(text, size), finish_reason=reason)
            check_events(events, text)
            assert message.tool_calls == []
        after = "\n" if place == "fence" else ""
        _, message = run(fmt, cut(f"{text}{after}{call}", size), finish_reason="stop")
        assert not follows or [status for _, _, status in calls_of(message)] == ["complete"]


@every_format
@pytest.mark.parametrize("size", [0, 1])
def test_a_call_of_an_undeclared_function_is_read_at_most_twice(name: str, size: int) -> None:
    fmt, call = toolgram.get_format(name), simple_call(name)[0]
    opener, closer = thought_markers(name)
    for text in (
        f"See:\n```\n{call}\n```\n",
        f"{opener}I could write {call}\n{call}",
        f"{opener}a {call}{closer}{call}",
    ):
        run(fmt, cut(text, size), tools=OTHER_TOOLS)  # what is computed once is not counted
        with at_most(300 * len(text) + 10_000):
            events, message = run(fmt, cut(text, size), tools=OTHER_TOOLS, finish_reason="stop")
        check_events(events, text)
        check_message(message, events)


def hostile_texts(name: str, size: int) -> Iterable[str]:
    """Texts whose length grows with `size`, in which much is withheld, refuted and read again."""
    call, (opener, closer) = simple_call(name)[0], thought_markers(name)
    head = call[: max(1, len(call) // 2)]
    marker = max(toolgram.get_format(name).program.markers, key=len, default="<")
    stops = [toolgram.get_format(name).program.literals[stop] for stop in toolgram.get_format(name).program.stop]
    units = [
        call, f"{call} x ", f"{call}\n", head, f"{head} x ", marker, "{", '{"a": ', "[", "`", "` ", "```\n", "```x\n",
    ]  # fmt: skip
    units += [f"{stop}{unit}" for stop in sorted(stops)[:1] for unit in ("", "x", call, f"x{call}")]
    for unit in units:
        for begin in ("", "```\nx ", "`x ", f"{opener}a "):
            yield begin + unit * max(1, size // len(unit))
    yield f"{opener}a {call} {closer}" * max(1, size // (len(opener) + len(call) + len(closer) + 4))
    yield f"```\n{call}\n```\nx\n" * max(1, size // (len(call) + 12))


@every_format
@pytest.mark.parametrize("size", [0, 1])
def test_work_is_linear_where_calls_are_mentioned(name: str, size: int) -> None:
    for short, long in some([*zip(hostile_texts(name, 800), hostile_texts(name, 3_200), strict=True)], name):
        few, many = calls_made(name, cut(short, size)), calls_made(name, cut(long, size))
        growth = len(long) / len(short)
        row = f"{short[:120]!r}: {few} calls for {len(short)} characters, {many} for {len(long)}"
        assert many <= growth * few * 1.25 + 1_000, row


# --- nothing inside arguments becomes a call ------------------------------------------------------------------------
# Also if they are in Python's spelling, and broken. A call without a marker may be prose, whose quotes do not count:
# there, only the declarations of functions tell (P3e).

FUZZED = tools()
PLAIN = '{"city": "Paris"}'
INNER = '{"name": "g", "arguments": {}, "parameters": {}}'
BROKEN = [
    "{'a': 1_0, 'b': '}}, CALL, '}", "{'a': (1, 2), 'b': ']}}, CALL'}", "{'a': [1}, 'b': '}}]}, [CALL'}",
    "{'a': '\\x4g', 'b': tru, 'c': '}}, CALL, '}",
]  # fmt: skip


@every_format
def test_a_call_in_a_string_of_a_broken_dict_is_none(name: str) -> None:
    fmt = toolgram.get_format(name)
    bare = not {"start_map item", "start_array"}.isdisjoint(fmt.program.initial.row)
    for prefix, output, _ in canonical_outputs(fmt):
        for broken in BROKEN if PLAIN in output else ():
            text = output.replace(PLAIN, broken.replace("CALL", INNER), 1)
            for declared in (FUZZED,) if bare else (None, FUZZED):
                for strict in (False, True):
                    message = fmt.parse(text, declared, prefix, "stop", strict)
                    assert "g" not in [call.name for call in message.tool_calls], text
            failure = check_widely(fmt, text, [])
            assert failure is None, failure
