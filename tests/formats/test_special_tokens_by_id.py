"""Ids beside a plain delta, ids of pieces, and what a parser keeps of them.

The property over all formats is in `tests/properties/test_special_tokens.py`. Here are the kinds of ids that a server
may give, on one format.
"""

import json
import pickle
from itertools import product

import pytest

import toolgram
from tests.properties.selection import quarter
from tests.properties.test_special_tokens import NO_TOKEN, meant, quotation, quoted, read, special
from tests.streams import CUT_SIZES, calls_of, cut, merged, sources, without_ids
from toolgram.events import Event

OPEN, CLOSE, OTHER = 7, 8, 9
CALL = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
Fed = list[tuple[str, "list[int] | None"]]
BOTH = [OPEN, OTHER, CLOSE]

PLAIN: dict[str, tuple[Fed, int, list[str]]] = {
    "a call": ([(CALL, BOTH)], 1, []),
    "a quoted call": ([(CALL, [OTHER])], 0, []),
    "two calls": ([(CALL * 2, BOTH * 2)], 2, []),
    "a quoted call and a call in one delta": ([(f"{CALL} so {CALL}", BOTH)], 0, ["ambiguous_ids"]),
    "fewer texts than ids": ([(CALL, [*BOTH, OPEN])], 0, ["ambiguous_ids"]),
    "a quoted call before a call": ([(f"{CALL} so ", [OTHER]), (CALL, BOTH)], 1, []),
    "a call before a quoted call": ([(CALL, BOTH), (f" so {CALL}", [OTHER])], 1, []),
    "ids before their text": ([("", [OPEN]), ("", [OTHER]), ("", [CLOSE]), (CALL, [])], 1, []),
    "ids before their text, which is split": ([("", BOTH), *((part, []) for part in CALL)], 1, []),
    "ids with the beginning of their text": ([("<tool", [OPEN]), (CALL[5:-12], []), (CALL[-12:], [CLOSE])], 1, []),
    "a quoted call and a call, which are split": (
        [("", BOTH), *((part, []) for part in f"{CALL} {CALL}")], 1, [],
    ),
    "stripped tokens": ([("", [OPEN]), ("f", [OTHER]), ("", [CLOSE]), ("so ", [OTHER]), (CALL, [OTHER])], 0, []),
    "stripped tokens, then at once a quoted call": ([("", [OPEN]), (CALL, [OTHER])], 0, ["ambiguous_ids"]),
    "stripped tokens, then a call": ([("", [OPEN]), ("f", [OTHER]), ("", [CLOSE]), (CALL, BOTH)], 1, []),
    "a quoted text that is split over ids": ([("<tool", [OTHER]), (CALL[5:], [OTHER, CLOSE])], 0, []),
    "a quoted call that began before": (
        [("<tool", [OTHER]), (CALL[5:] + CALL, BOTH)], 1, ["ambiguous_ids", "unclosed_envelope"],
    ),
    "ids that are unknown": ([("Hi ", [OTHER]), (CALL, None)], 1, []),
    "ids that are unknown at first": ([("<tool", None), (CALL[5:], [CLOSE])], 1, []),
    "unknown ids after ids without text": ([("", [OPEN]), ("Hi ", None), (CALL, [])], 0, []),
}  # fmt: skip


@pytest.mark.parametrize("what", PLAIN)
def test_ids_count_where_they_are_unambiguous(what: str) -> None:
    fed, calls, kinds = PLAIN[what]
    fmt = toolgram.get_format("hermes")
    for restores in (False, True):
        parser = fmt.parser(special_tokens={"<tool_call>": OPEN, "</tool_call>": CLOSE})
        events: list[Event] = []
        for delta, ids in fed:
            events += parser.feed(delta, ids)
            if restores:
                parser = pickle.loads(pickle.dumps(parser))
        events += parser.close("stop")
        assert sources(events) == "".join(delta for delta, _ in fed)
        assert [call.name for call in parser.message.tool_calls] == ["f"] * calls
        assert [each.kind for each in parser.message.anomalies] == kinds


def test_an_ambiguous_marker_is_told_once_for_a_delta_with_its_place() -> None:
    special_tokens = {"<tool_call>": OPEN, "</tool_call>": CLOSE}
    parser = toolgram.get_format("hermes").parser(special_tokens=special_tokens, keep_message=False)
    parser.feed("Hi. ", [OTHER])
    parser.feed(f"See {CALL} and {CALL}", BOTH)
    (told,) = parser.take_anomalies()
    assert (told.kind, told.start, told.text, told.call) == ("ambiguous_ids", 8, "<tool_call>", None)
    assert "pieces" in told.why


def test_a_fast_path_notes_ids() -> None:
    """Text, arguments and values that need no reader: what they pass counts for the places of what comes after them."""
    end = "</arg_value>\n</tool_call>"
    call = f"<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>{{}}{end}"
    for size in CUT_SIZES:
        value = f"so {call.format(1)} and "
        output = [*quoted(f"I write {value}"), *meant("glm45", call.format("")[: -len(end)]), *quoted(value)]
        output += meant("glm45", end)
        _, message = read("glm45", [[(part, number)] for text, number in output for part in cut(text, size)])
        assert message.content == f"I write {value}".rstrip()
        assert [(c.name, json.loads(c.arguments)) for c in message.tool_calls] == [("f", {"a": value})]


def test_what_a_prompt_has_begun_is_a_token() -> None:
    parser = toolgram.get_format("hermes").parser(prefix="<tool_", special_tokens={"<tool_call>": OPEN})
    parser.feed([(CALL[6:], NO_TOKEN)])
    parser.close("stop")
    assert [call.name for call in parser.message.tool_calls] == ["f"]


def test_places_are_forgotten() -> None:
    """What is kept of the ids is about the text that is still to be read, on every path."""
    for name, before in (("hermes", ""), ("hermes", CALL[:-4] + '"a": "'), ("glm45", "<think>")):
        parser = toolgram.get_format(name).parser(special_tokens=special(name), keep_message=False)
        parser.feed(meant(name, before))
        sizes = set()
        for _ in range(50):
            parser.feed([*meant(name, "<|im_end|>"), ("so", NO_TOKEN), ("so", None), *quoted("</think> <|im_end|>")])
            sizes.add(len(json.dumps(parser.snapshot())) // 100)
            parser.feed([("so", NO_TOKEN), ("so", None)] * 3)
        assert len(sizes) <= 2
        assert len(parser._stream.ids.places) < 16  # type: ignore[union-attr]


# --- calls whose markers are tokens, beside calls whose markers are only spelled ------------------------------------

CALLED = [name for name in toolgram.format_names() if toolgram.get_format(name).program.special]


@pytest.mark.parametrize("name", CALLED)
def test_exactly_what_is_meant_is_called(name: str) -> None:
    fmt = toolgram.get_format(name)
    text = f"I write so.\n\n{fmt.example}"
    wanted = calls_of(read(name, [meant(name, text)])[1])
    assert wanted == calls_of(fmt.parse(text, prefix="", finish_reason="stop"))
    output = [*quoted(f"I write {quotation(name)} so.\n\n"), *meant(name, fmt.example)]
    events, message = read(name, [output])
    assert (calls_of(message), sources(events)) == (wanted, "".join(text for text, _ in output))
    characters = [[(part, number)] for text, number in output for part in cut(text, 1 if number == NO_TOKEN else 99)]
    torn = [[(part, number)] for text, number in output for part in cut(text, 3)]
    for deltas in ([[piece] for piece in output], characters, torn):
        assert read(name, deltas)[0] == events


def test_a_quoted_call_is_no_call() -> None:
    """In these formats no call is without a special token, so that the whole example may be quoted."""
    assert len([name for name in CALLED if quotation(name) == toolgram.get_format(name).example]) >= 30


BARE = '{"name": "f", "arguments": {}}'
LISTS = (BARE, f"[{BARE}]", f"[{BARE}, {BARE}]", f"{BARE}\n{BARE}", f"({BARE})")


@pytest.mark.parametrize(("between", "calls"), quarter([*product(("", "\n ", " shows "), LISTS)], "spelled markers"))
def test_a_call_without_a_marker_is_text_directly_after_a_marker_that_is_only_spelled(between: str, calls: str) -> None:
    fmt = toolgram.get_format("hermes")
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    text = f"<tool_call>{between}{calls}\n</tool_call> so {BARE}"
    count = 1 if not between.strip() else text.count(BARE)
    first: list[Event] = []
    for size in CUT_SIZES:
        parser = fmt.parser(tools, prefix="", special_tokens=special("hermes"))
        events: list[Event] = []
        for at, piece in enumerate(cut(text, size)):
            events += parser.feed([(piece, NO_TOKEN)])
            if at % 3 == 0:
                parser = pickle.loads(pickle.dumps(parser))
        events = without_ids(merged(events + parser.close("stop")))
        first = first or events
        assert events == first
        assert [each.name for each in parser.message.tool_calls] == ["f"] * count
        assert count > 1 or parser.message.content == text.removesuffix(BARE).rstrip()
