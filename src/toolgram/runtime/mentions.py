"""Calls that the model only mentions: in inline code, in a code fence, in a thought (clause P3, in `suite/README.md`).

A call that opens in an inline code span is text, and so is the rest of the span. A closing marker, or the header of a
message, is text only if the span begins with it: a forgotten backtick must not merge one message into another.

A call in an open fence or thought counts if only blanks, closing markers and other calls follow it, up to the end of
the turn. Until that is known its events are withheld. If anything else follows, or the call fails, the events are
discarded and the text is read once more, from the earlier position of the stream, with the markers that open a call as
text. No text is read more than twice, since events that were withheld together are decided together.

A call at the beginning of a thought is not a mention: the model calls instead of thinking. In a message to the user, a
call counts if it is all of the message, and everything up to the end of the message is withheld in the same way. So is
the text after a token that ends the turn: the token is the end if nothing follows, or a message of another role.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import cast

from toolgram.program.state import CALL, HEADER, STOP, THOUGHT, Symbol
from toolgram.runtime.code_marks import FENCE, SPAN
from toolgram.runtime.following import end_of_blanks
from toolgram.runtime.stream import READ_AGAIN, Stream
from toolgram.runtime.withheld import NO_END, NO_TEXT, NotACall, Withheld


def may_be_mention(stream: Stream, symbol: Symbol, text: str, begin: int) -> bool:
    """Return whether what opens at `begin`, after `text`, may be only a mention of a call."""
    events, marks = stream.events, stream.events.marks
    if not stream.program.mentions:
        return False
    withheld = events.withheld
    if symbol.opens == STOP or (withheld is not None and (withheld.token != "" or withheld.in_message)):
        return True
    if "`" in text or marks.is_live or marks.place != "" or stream.state.meaning == "reasoning":
        return True
    return stream.state.to_user or _opens_fence(stream, symbol)


def is_mention(stream: Stream, symbol: Symbol, text: str, begin: int) -> bool:
    """Return whether what opens at `begin` is only mentioned; withhold the events if later text decides."""
    events = stream.events
    if ends_message(stream, symbol):
        if cast(Withheld, events.withheld).is_text:
            raise NotACall
        events.send_withheld()
    if is_quoted(stream, symbol) or (events.marks.place == FENCE and symbol.trigger.startswith("BARE ```")):
        return True
    if symbol.opens == STOP:
        return _is_no_end(stream, symbol, text, begin)
    if events.withheld is not None and symbol.opens and _is_withheld(stream, symbol):
        return False
    if not symbol.opens and begin < stream.events.quoted_to:
        return stream.state.meaning == "content" or not stream.closes_thought(symbol)
    if not _is_decided_later(stream, symbol):
        return False
    if begin < stream.events.quoted_to:
        return True
    if events.withheld is None:
        _withhold_call(stream, symbol, begin)
    return False


def _is_decided_later(stream: Stream, symbol: Symbol) -> bool:
    """Return whether the text that follows decides if what a symbol opens is only mentioned."""
    state, marks = stream.state, stream.events.marks
    if symbol.opens == HEADER:
        return marks.place == FENCE
    if symbol.opens != CALL:
        return False
    if state.to_user or marks.place == FENCE or _opens_fence(stream, symbol):
        return True
    return state.meaning == "reasoning" and not marks.is_blank


def _is_withheld(stream: Stream, symbol: Symbol) -> bool:
    """Return whether a symbol is withheld and decides nothing. After the end of the turn, a header begins a message."""
    withheld = cast(Withheld, stream.events.withheld)
    if withheld.token and symbol.opens != HEADER:
        raise NotACall
    if withheld.token:
        stream.events.send_withheld()
    return symbol.opens == HEADER and not withheld.token


def ends_message(stream: Stream, symbol: Symbol) -> bool:
    """Return whether a symbol ends a message to the user with a withheld call, and not only the call."""
    withheld = stream.events.withheld
    if withheld is None or not withheld.in_message or symbol.opens == CALL:
        return False
    return symbol.opens != "" or stream.state.row[symbol.trigger].dest.loops


def is_quoted(stream: Stream, symbol: Symbol) -> bool:
    """Return whether a symbol is in a code span, all of which is text."""
    marks = stream.events.marks
    if marks.place != SPAN or not (symbol.opens in (CALL, THOUGHT) or marks.quoted or marks.is_opened):
        return False
    marks.begin_quote()
    return True


def _opens_fence(stream: Stream, symbol: Symbol) -> bool:
    """Return whether a symbol is a fence with a call in it."""
    return stream.program.literals.get(symbol.trigger, "").startswith("```")


def _is_no_end(stream: Stream, symbol: Symbol, text: str, begin: int) -> bool:
    """Return whether a token that ends the turn is text. It is the end if its id is certain, if nothing follows it, or
    if a message of another role follows."""
    marker, ids = stream.program.literals[symbol.trigger], stream.ids
    is_certain = ids is not None and ids.is_certain(text, begin, begin + len(marker))
    again = begin < stream.events.quoted_to
    if again and not is_certain:
        return True
    withheld = stream.events.withheld or _withhold(stream, begin, symbol)
    withheld.is_over = withheld.token not in ("", marker)
    withheld.token = marker
    withheld.is_certain |= is_certain
    withheld.is_last = again
    return False


def withhold_after_turn(stream: Stream, begin: int) -> None:
    """Withhold the events from `begin` on: a token that ends the turn has closed a call, and only what follows shows
    whether it was the end."""
    events = stream.events
    if events.withheld is None and stream.program.mentions:
        _withhold(stream, begin).token = events.before
    events.before = ""


def read_after_turn(stream: Stream, withheld: Withheld, text: str, pos: int, final: bool) -> int | None:
    """Read on after the end of the turn. Return the position or WAIT; None if the state has to read on."""
    begin, roles = end_of_blanks(text, pos), stream.program.spec.other_roles
    rest = text[begin : begin + max(map(len, roles), default=0)]
    if begin == len(text):
        return None
    if not final and any(role.startswith(rest) and role != rest for role in roles):
        return stream.wait(text[pos:])
    ends = withheld.is_certain and (withheld.is_last or not _goes_on(stream, withheld, text, begin, final))
    if not ends and not rest.startswith(roles):
        markers = (*_literals(stream), *((symbol, closer) for closer, symbol in stream.program.surplus.items()))
        begun = [symbol for symbol, marker in markers if marker.startswith(text[begin : begin + len(marker)])]
        if not withheld.is_certain and begun and all(symbol.opens in (CALL, THOUGHT) for symbol in begun):
            raise NotACall(follows=begin - pos)  # what begins here shows that the turn had not ended
        return None
    stream.events.send_withheld()
    stream.events.put_blanks(text[pos:begin])
    stream.events.make_seam()
    stream.events.note("after_turn", withheld.token)
    stream.reader = "after_turn"
    return begin


def _goes_on(stream: Stream, withheld: Withheld, text: str, begin: int, final: bool) -> bool:
    """Return whether the turn continues with another message, or ends once more."""
    rest, goes_on = text[begin:], (STOP,) if withheld.is_over else (STOP, HEADER)
    markers = [(symbol, marker) for symbol, marker in _literals(stream) if symbol.opens in goes_on]
    if not final and any(marker.startswith(rest) and marker != rest for _, marker in markers):
        return True
    return any(
        rest.startswith(marker) and stream.is_marker(symbol, text, begin, begin + len(marker))
        for symbol, marker in markers
    )


def _literals(stream: Stream) -> Iterator[tuple[Symbol, str]]:
    """Return the symbols of the state that are fixed texts, with these."""
    return zip(stream.state.symbols, stream.state.literals, strict=False)


def drop_after_turn(stream: Stream, text: str, pos: int, final: bool) -> int:
    """Drop the text after the end of the turn."""
    stream.events.drop(text[pos:], "after the turn")
    return len(text)


def _withhold(stream: Stream, begin: int, symbol: Symbol | None = None) -> Withheld:
    """Withhold the events from `begin` on, where a symbol may be."""
    events = stream.events
    withheld = events.withheld = Withheld(_copied(stream), begin)
    events.out = withheld.events
    if symbol is not None:
        withheld.opening = len(stream.program.literals.get(symbol.trigger, " "))
        if stream.state.meaning == "reasoning":
            withheld.closers = tuple(text for each, text in _literals(stream) if stream.closes_thought(each))
    return withheld


def _withhold_call(stream: Stream, symbol: Symbol, begin: int) -> None:
    """Withhold the events from `begin` on, if the text after the call decides whether it counts."""
    withheld, to_user = _withhold(stream, begin, symbol), stream.state.to_user
    withheld.is_header = symbol.opens == HEADER
    withheld.is_fence = symbol.trigger.startswith("BARE ")
    withheld.in_message = to_user
    withheld.is_text = to_user and not stream.events.marks.is_blank


def give_up(stream: Stream, text: str, found: NotACall) -> tuple[str, int]:
    """Return to the position before the withheld events. Return the text to read from there, and the position in it."""
    events, withheld = stream.events, stream.events.withheld
    assert withheld is not None
    held = events.held.events if events.held is not None else []
    read = sum(len(event.source) for event in (*withheld.events, *held)) + sum(map(len, events.blanks))
    read += found.follows - sum(map(len, withheld.saved.events.blanks))
    read = read if found.at is None else found.at
    begin = withheld.begin
    if withheld.raw:
        text, begin = "".join(withheld.raw) + text[begin:], 0
    named = withheld.has_call
    if stream.trace is not None:
        stream.tell(READ_AGAIN, withheld.saved.state)
    _restore(stream, withheld)
    stream.events.quoted_to = begin + max(read, withheld.opening)
    if named:
        quoted = text[begin : stream.events.quoted_to - found.follows].rstrip(NO_TEXT)
        stream.events.note("quoted_call", quoted, sum(map(len, stream.events.blanks)))
    return text, begin


def _copied(stream: Stream) -> Stream:
    """Return a copy of a stream that is in text, with no call and no value open."""
    made = copy.copy(stream)
    made.source, made.buffer = type(stream.source)(), ""
    made.events = copy.copy(stream.events)
    made.events.blanks, made.events.marks = [*stream.events.blanks], stream.events.marks.copy()
    made.events.withheld, made.events.quoted_to = None, 0
    made.calls = stream.calls.copy(made.events)
    return made


def _restore(stream: Stream, withheld: Withheld) -> None:
    saved = withheld.saved
    for name in ("state", "reader", "buffer", "prompt", "source", "events", "calls"):
        setattr(stream, name, getattr(saved, name))
    if stream.events.before not in NO_END:
        stream.events.before = ""
    stream.island = stream.rejected = None
    stream.unfinished = ""
