"""Special tokens by id: a special token is a marker only at the place of its own id.

Strategy: an output is a list of pieces `(text, id)`.  What is quoted has the ids of its characters, what is meant has
those of its special tokens.  However the pieces are fed, and by whichever path they are read, the events are the same.
"""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.properties.selection import every_format
from tests.strategies import chunkings, fragments, well_formed
from tests.streams import CUT_SIZES, check_events, cut, merged, sources, without_ids
from toolgram.events import Event
from toolgram.runtime.special_tokens import Piece

NO_TOKEN = 1  # the id of a piece that is no special token


@lru_cache(maxsize=128)
def special(name: str) -> dict[str, int]:
    """The special tokens of a format, with ids."""
    return {text: 1_000 + at for at, text in enumerate(toolgram.get_format(name).program.special.values())}


def meant(name: str, text: str) -> list[Piece]:
    """A text as a model means it: its special tokens are tokens."""
    ids = special(name)
    texts = "|".join(map(re.escape, sorted(ids, key=len, reverse=True)))
    return [(piece, ids.get(piece, NO_TOKEN)) for piece in re.split(f"({texts})" if texts else "(?!)", text) if piece]


def quoted(text: str) -> list[Piece]:
    """A text in which no special token is one."""
    return [(text, NO_TOKEN)]


def read(name: str, deltas: Iterable[str | Sequence[Piece]], prefix: str = "") -> tuple[list[Event], toolgram.Message]:
    parser = toolgram.get_format(name).parser(prefix=prefix, special_tokens=special(name))
    events = [event for delta in deltas for event in parser.feed(delta)]
    events += parser.close("stop")
    return without_ids(merged(events)), parser.message


def quotation(name: str) -> str:
    """The example of a format, if its calls need a special token, else the special tokens alone."""
    fmt = toolgram.get_format(name)
    _, message = read(name, [quoted(fmt.example)])
    return " ".join(special(name)) if message.tool_calls or message.malformed else fmt.example


@st.composite
def outputs_in_pieces(draw: st.DrawFn, name: str) -> list[Piece]:
    """Pieces of any kind: meant, quoted, of unknown ids, of the id of another token, or of a token without text."""
    pieces: list[Piece] = []
    ids = [*special(name).values()]
    for _ in range(draw(st.integers(1, 4))):
        text = draw(
            st.sampled_from([*fragments(name), *special(name)]) | well_formed(name, small=True).map(lambda o: o.text)
        )
        kind = draw(st.integers(0, 9))
        if kind < 5:
            pieces += meant(name, text)
        elif kind < 8 or not ids:
            pieces += quoted(text)
        else:
            pieces.append((text if kind == 8 else "", draw(st.sampled_from([None, *ids]))))
    return pieces


@every_format
@given(data=st.data())
def test_events_do_not_depend_on_how_pieces_are_fed(name: str, data: st.DataObject) -> None:
    """Whole, per token, torn, and with snapshots and pickles between deltas."""
    fmt = toolgram.get_format(name)
    pieces = data.draw(outputs_in_pieces(name))
    events, _ = read(name, [pieces])
    check_events(events, "".join(text for text, _ in pieces))
    assert read(name, [[piece] for piece in pieces])[0] == events
    torn: list[Piece] = []
    for text, number in pieces:
        twice = any(text.count(marker) > 1 for marker in special(name)) and number not in (None, NO_TOKEN)
        torn += [(part, number) for part in ([text] if twice or not text else data.draw(chunkings(text)))]
    assert read(name, [[piece] for piece in torn])[0] == events
    parser, restored = fmt.parser(prefix="", special_tokens=special(name)), []
    stops = data.draw(st.sets(st.integers(0, len(torn)), max_size=4))
    for at, piece in enumerate(torn):
        if at in stops:
            state = json.loads(json.dumps(parser.snapshot()))
            parser = fmt.restore(state, special_tokens=special(name))
        elif at - 1 in stops:
            parser = pickle.loads(pickle.dumps(parser))
        restored += parser.feed([piece])
    restored += parser.close("stop")
    assert without_ids(merged(restored)) == events


@every_format
@given(data=st.data())
def test_without_ids_the_text_decides(name: str, data: st.DataObject) -> None:
    """Pieces of unknown ids, deltas without ids, and a parser that knows no special tokens read the same."""
    text = data.draw(well_formed(name, small=True)).text
    chunks = data.draw(chunkings(text))
    events, _ = read(name, [[(chunk, None) for chunk in chunks]])
    assert read(name, chunks)[0] == events
    plain = toolgram.get_format(name).parser(prefix="")
    told = [event for chunk in chunks for event in plain.feed([(chunk, NO_TOKEN)])]
    assert without_ids(merged(told + plain.close("stop"))) == events


# --------------------------------------------------------------------------------------------- ids beside a plain delta

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
    parser = toolgram.get_format("hermes").parser(
        special_tokens={"<tool_call>": OPEN, "</tool_call>": CLOSE}, keep_message=False
    )
    parser.feed("Hi. ", [OTHER])
    parser.feed(f"See {CALL} and {CALL}", BOTH)
    (told,) = parser.take_anomalies()
    assert (told.kind, told.start, told.text, told.call) == ("ambiguous_ids", 8, "<tool_call>", None)
    assert "pieces" in told.why


@pytest.mark.parametrize("bad", [["text"], [("text",)], [(b"text", 1)], [("a", 1), None]])
def test_what_is_no_piece_is_refused(bad: list[object]) -> None:
    parser = toolgram.get_format("hermes").parser()
    with pytest.raises(TypeError, match="a piece of a delta"):
        parser.feed(bad)  # type: ignore[arg-type]


def test_a_fast_path_notes_ids() -> None:
    """Text, arguments and values that need no reader: what they pass counts for the places of what comes after them."""
    end = "</arg_value>\n</tool_call>"
    call = f"<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>{{}}{end}"
    for size in CUT_SIZES:
        value = f"so {call.format(1)} and "
        output = [*quoted(f"I write {value}"), *meant("glm45", call.format("")[: -len(end)]), *quoted(value)]
        output += meant("glm45", end)
        deltas = [[(part, number)] for text, number in output for part in cut(text, size)]
        _, message = read("glm45", deltas)
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
