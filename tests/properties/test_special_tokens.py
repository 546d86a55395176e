"""Special tokens by id: a special token is a marker only at the place of its own id.

Strategy: an output is a list of pieces `(text, id)`.  What is quoted has the ids of its characters, what is meant has
those of its special tokens.  However the pieces are fed, and by whichever path they are read, the events are the same.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.generators.broken_outputs import fragments
from tests.properties.selection import every_format
from tests.strategies import chunkings, well_formed
from tests.streams import merged, sources, without_ids
from tests.work import at_most
from toolgram.events import Event
from toolgram.runtime.special_tokens import Piece

NO_TOKEN = 1  # the id of a piece that is no special token
MOST_CALLS = 200_000  # for a few tokens, expressions compiled; what never ends makes more


@lru_cache(maxsize=128)
def special(name: str) -> dict[str, int]:
    """The special tokens of a format, and what looks like them in its markers, with ids."""
    program = toolgram.get_format(name).program
    inner = re.findall(r"<[|｜][^<>|｜]+[|｜]>|｜DSML｜", " ".join(program.literals.values()))
    return {text: 1_000 + at for at, text in enumerate(dict.fromkeys([*program.special.values(), *inner]))}


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
    return without_ids(merged(events + parser.close("stop"))), parser.message


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
        text = draw(st.sampled_from([*fragments(name), *special(name)]) | well_formed(name).map(lambda o: o.text))
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
def test_without_ids_the_text_decides(name: str, data: st.DataObject) -> None:
    """Pieces of unknown ids, deltas without ids, and a parser that knows no special tokens read the same."""
    chunks = data.draw(chunkings(data.draw(well_formed(name)).text))
    events, _ = read(name, [[(chunk, None) for chunk in chunks]])
    assert read(name, chunks)[0] == events
    plain = toolgram.get_format(name).parser(prefix="")
    told = [event for chunk in chunks for event in plain.feed([(chunk, NO_TOKEN)])]
    assert without_ids(merged(told + plain.close("stop"))) == events


@every_format
def test_what_follows_the_end_of_the_turn_is_read_to_its_end(name: str) -> None:
    """Special tokens and their spellings after a token that ends the turn: bounded work, and nothing lost."""
    fmt, ids = toolgram.get_format(name), special(name)
    stops = [text for trigger in fmt.program.stop if (text := fmt.program.literals.get(trigger)) in ids]
    pieces = [(text, number) for text in [*ids][:8] for number in (ids[text], NO_TOKEN)] + [("so", NO_TOKEN)]
    for stop, first, second in product(stops, pieces, pieces):
        for deltas in ([[(stop, ids[stop])], [first, second]], [[(stop, ids[stop]), first], [second]]):
            with at_most(MOST_CALLS):
                events, _ = read(name, deltas)
            assert sources(events) == stop + first[0] + second[0]
