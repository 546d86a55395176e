"""Readers outside any island: free text up to a marker, and one required token."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import cast

from toolgram.islands import Island, OpenBrackets, island_class
from toolgram.islands.error_recovery import ErrorRecovery
from toolgram.islands.escapes import ESCAPES
from toolgram.islands.json_envelope import Envelope
from toolgram.islands.python_repairs import Around
from toolgram.limits import BLANKS, MOST_BLANKS, MOST_THOUGHT_CLOSERS
from toolgram.program.closing_markers import FENCE
from toolgram.program.state import CALL, ENVELOPE, TERMINAL, Move, StateProgram, Symbol, next_symbol
from toolgram.runtime.calls import NONE
from toolgram.runtime.event_buffer import INSIDE, SYNTAX
from toolgram.runtime.following import ZERO_WIDTH, end_of_blanks
from toolgram.runtime.mentions import ends_message, is_mention, is_quoted, may_be_mention
from toolgram.runtime.position import THOUGHTLESS, WAIT
from toolgram.runtime.stream import Stream, symbol_why
from toolgram.runtime.surplus_closers import read_surplus_closer
from toolgram.runtime.withheld import SPELLED

_FENCES = ("```json", "```")
_fence = re.compile(rf"```(?:json)?+{BLANKS}(?!j)").match


def read_text(stream: Stream, text: str, pos: int, final: bool) -> int:
    """Read free text up to the next symbol, with one match per delta. A possible prefix of a marker waits."""
    if stream.events.after_call is not None:
        after = read_surplus_closer(stream, text, pos, final)
        if after is not None:
            return after
    start, begin, end, symbol = _next_marker(stream, text, pos, final)
    if stream.state.typed and symbol is None and not final:
        begin = min(begin, ESCAPES[stream.state.typed].begun(text, start))
    if final and begin == end:
        _say_last(stream, text[start:])
    elif begin > start:
        stream.say(text[start:begin])
    if symbol is not None:
        return _found(stream, symbol, text, begin, end)
    return end if begin == end else stream.wait(text[begin:])


def _next_marker(stream: Stream, text: str, pos: int, final: bool) -> tuple[int, int, int, Symbol | None]:
    """Find the next symbol that is neither text nor mentioned, as `next_symbol` does. Return the beginning of the text
    that is still to be emitted before it, first."""
    state, start, plain = stream.state, pos, pos
    find = state.find_final if final else state.find
    while True:
        begin, end, symbol = next_symbol(state, find, text, pos)
        plain = ESCAPES[state.typed].after(text, plain, begin) if state.typed else begin
        if plain > begin:  # it is in a token of escaped text
            pos = plain
            continue
        if symbol is None:
            return start, begin, end, None
        before = text[start:begin]
        again = begin < stream.events.quoted_to
        is_text = 0 if again else _closes_nothing(stream, symbol, before, text, end, final)
        if is_text == WAIT:
            return start, begin, end, None
        counts = not is_text and _counts(stream, symbol, text, begin, end)
        if may_be_mention(stream, symbol, text[start:begin], begin):
            stream.say(text[start:begin])
            start = begin
            counts = not (is_mention(stream, symbol, text, begin) if counts else is_quoted(stream, symbol)) and counts
        if counts:
            return start, begin, end, symbol
        if symbol.opens == CALL and not stream.is_marker(symbol, text, begin, end):
            stream.say(text[start:end])
            stream.events.before, start = SPELLED, end
        pos = end


def _counts(stream: Stream, symbol: Symbol, text: str, begin: int, end: int) -> bool:
    """Return whether a symbol counts: a special token was emitted, and a name that begins a call is a function's."""
    move = stream.state.row.get(symbol.trigger)
    if move is not None and (stream.refuses(move, text[begin:end]) or _is_damaged(stream, move, text[begin:end])):
        return False
    return stream.is_marker(symbol, text, begin, end)


_beside_name = re.compile(r"\A\W+|\W*(?:[\s=].*)?\Z", re.DOTALL).sub


def _is_damaged(stream: Stream, move: Move, name: str) -> bool:
    """Return whether a name or a key has two readings: a declared one is in it, beside characters that no name has."""
    known: Collection[str] = stream.calls.names if "name" in move.actions else ()
    declared = stream.calls.declared() if "argument_key" in move.actions else None
    if declared is not None and not declared.open:
        known = declared.types
    return len(known) > 0 and name.strip() not in known and _beside_name("", name) in known


def _closes_nothing(stream: Stream, symbol: Symbol, before: str, text: str, end: int, final: bool) -> int:
    """Return 1 if a symbol, up to `end`, closes a thought and is text: the prompt opened no thought, and content comes
    `before` and after it. Return 0 if not, WAIT if undecided."""
    state = stream.state
    if stream.prompt != THOUGHTLESS or "unopened_reasoning" not in state.row[symbol.trigger].actions:
        return 0
    if stream.events.place != INSIDE and not before.strip():
        return 0
    find = state.find_final if final else state.find
    for _ in range(MOST_THOUGHT_CLOSERS):
        after = end_of_blanks(text, end)
        if after - end > MOST_BLANKS:
            return 1
        if after == len(text):
            return 0 if final else WAIT
        begin, end, again = next_symbol(state, find, text, after)
        if begin > after:
            return 1
        if again is None:
            return 1 if begin == end else WAIT
        if again.kind != TERMINAL or not stream.is_marker(again, text, begin, end):
            return 1
        if "unopened_reasoning" not in state.row[again.trigger].actions:
            return 0
    return 1


def _say_last(stream: Stream, text: str) -> None:
    """Emit the end of the output, without the beginning of a marker."""
    whole = len(text) - _half_a_closer(stream, text)
    if whole:
        stream.say(text[:whole])
    if whole < len(text):
        stream.events.drop_and_tell(text[whole:], "cut off", "unfinished_marker")


_LEAST_OF_STOP = 4  # characters: less of a token that ends the turn may be prose


def _half_a_closer(stream: Stream, text: str) -> int:
    """Return how much of the end of `text` is a cut-off marker: one that closes the reasoning, something opened in the
    content, or the turn. Never a single character, and never the end of a whole marker."""
    state, program, sections = stream.state, stream.program, stream.calls.markers.in_text
    if program.strict and state.meaning != "reasoning":
        return 0
    sizes = [0]
    for symbol, literal in zip(state.symbols, state.literals, strict=False):
        closes, least = symbol.trigger in sections, len(literal)
        if state.meaning == "reasoning":
            closes = state.row[symbol.trigger].dest.meaning == "content"
        elif symbol.trigger in program.stop:
            least = _LEAST_OF_STOP
        if not text.endswith(literal):
            sizes += (size for size in range(2 if closes else least, len(literal)) if text.endswith(literal[:size]))
    return max(sizes)


def read_token(stream: Stream, text: str, pos: int, final: bool) -> int:
    """Read one token. In a state that free text would leave, hold the blanks before it."""
    after = None
    if stream.events.after_call is not None:
        after = read_surplus_closer(stream, text, pos, final)
        if after is not None:
            return after
    if stream.state.is_text:
        pos = _hold_blanks(stream, text, pos, final)
        if pos == len(text):
            return pos
    if text[pos] in ZERO_WIDTH and _is_inside_markup(stream):
        stream.events.drop_and_tell(stream.source.take(text, pos, pos + 1), SYNTAX, "unusual_form")
        return pos + 1
    after = _read_symbol(stream, text, pos, final)
    if after is None and text[pos] == "`" and _may_be_fenced(stream):
        after = _read_fence(stream, text, pos, final)
    if after is None and stream.state.entered_by:
        after = _read_marker_again(stream, text, pos, final)
    return _refuse(stream, text, pos) if after is None else after


def _refuse(stream: Stream, text: str, pos: int) -> int:
    """Handle anything that does not fit."""
    if text[pos] in '"[' and "object_start" in stream.state.row:
        stream.island = ErrorRecovery(OpenBrackets(""))  # a value of another type than arguments have
    stream.unexpected_input()
    return pos


def _is_inside_markup(stream: Stream) -> bool:
    """Return whether only markers, a function's name or JSON may follow, where characters of no width mean nothing."""
    state = stream.state
    if stream.program.strict:
        return False
    return (state.held or not state.is_text) and state.meaning not in ("argument_key", "value")


def _hold_blanks(stream: Stream, text: str, pos: int, final: bool) -> int:
    """Read blanks before a token, and return the position after them. A line end may be part of the token."""
    end = end_of_blanks(text, pos)
    if stream.program.line_calls and end > pos and _line_begins(stream.state, text, end - 1, final):
        end -= 1
    if end > pos:
        stream.events.put_blanks(text[pos:end])
    return end


def _read_symbol(stream: Stream, text: str, pos: int, final: bool) -> int | None:
    """Read a symbol of the state. Return the position after it, or WAIT; None for anything else."""
    state = stream.state
    match = state.match(text, pos)
    if match is None:
        return _read_beginning(stream, text, pos, final) if state.may_become(text, pos) else None
    symbol, end = state.symbols[cast(int, match.lastindex) - 1], match.end()
    grows = symbol.most and end == len(text) and end - pos < symbol.most
    if not final and (grows or state.may_become(text, pos)):  # a longer run, or a longer marker
        return stream.wait(text[pos:])
    if final and _is_cut_off(stream, symbol, text, pos, end):
        return _cut_off(stream, text, pos)
    if not _counts(stream, symbol, text, pos, end):
        return None
    decides = symbol.opens != "" or ends_message(stream, symbol)
    if decides and may_be_mention(stream, symbol, "", pos) and is_mention(stream, symbol, text, pos):
        return None
    return _found(stream, symbol, text, pos, end)


def _read_beginning(stream: Stream, text: str, pos: int, final: bool) -> int | None:
    """Read the beginning of a symbol at the end of the text."""
    if not final:
        return stream.wait(text[pos:])
    return _cut_off(stream, text, pos) if _is_open(stream) or stream.has_announced_name else None


def _is_cut_off(stream: Stream, symbol: Symbol, text: str, pos: int, end: int) -> bool:
    """Return whether a symbol at the end of the output may be part of a longer one."""
    state, move = stream.state, stream.state.row[symbol.trigger]
    named = _is_named_by(state, symbol)
    if end < len(text):
        return (named or move.dest.meaning in ("argument_key", "value")) and state.may_become(text, pos)
    if not symbol.most or stream.ended:
        return False
    is_name = named and text[pos:end] not in stream.calls.names
    return is_name or _is_open(stream) or "argument_key" in move.actions


def _read_fence(stream: Stream, text: str, pos: int, final: bool) -> int | None:
    """Drop an opening code fence. Return the position after it, or WAIT; None for anything else."""
    fence = _fence(text, pos)
    if fence is not None and (fence.end() < len(text) or final):
        stream.events.drop(stream.source.take(text, pos, fence.end()), SYNTAX)
        stream.events.note("repaired_json", FENCE)
        markers = stream.calls.markers
        stream.calls.markers = markers._replace(in_text=markers.in_text | stream.program.fences)
        return fence.end()
    if not final and (fence is not None or any(each.startswith(text[pos:]) for each in _FENCES)):
        return stream.wait(text[pos:])
    return None


def _read_marker_again(stream: Stream, text: str, pos: int, final: bool) -> int | None:
    """Drop a repeated marker. Return the position after it, or WAIT; None for anything else."""
    markers = stream.state.entered_by
    again = max((marker for marker in markers if text.startswith(marker, pos)), key=len, default="")
    rest = text[pos:] if len(text) - pos < max(map(len, markers)) else ""
    if rest and not final and any(marker.startswith(rest) and marker != rest for marker in markers):
        return stream.wait(rest)
    end = pos + len(again)
    if not again or not stream.is_marker(markers[again], text, pos, end):
        return None
    stream.events.drop(stream.source.take(text, pos, end), symbol_why(markers[again]))
    stream.events.note("unusual_form", again)
    return end


def _line_begins(state: StateProgram, text: str, at: int, final: bool) -> bool:
    """Return whether the line end at `at` is part of a marker, or may be."""
    return text[at] == "\n" and (
        (not final and state.may_become(text, at)) or any(text.startswith(each, at) for each in state.literals)
    )


def _may_be_fenced(stream: Stream) -> bool:
    """Return whether only JSON is expected, after a marker: a code fence around it is left out."""
    row = stream.state.row
    begins = "object_start" in row or "start_map item" in row or "start_array" in row
    python = "object_start" in row and row["object_start"].dest.python
    return begins and stream.state.held and not python and stream.may_repair_call


def _is_open(stream: Stream) -> bool:
    """Return whether a call has begun in which the end of the output is not a mistake of the model."""
    return stream.calls.index is not None and stream.events.held is None


def _is_named_by(state: StateProgram, symbol: Symbol) -> bool:
    """Return whether a symbol is the name of a call that a marker announced; in text, it is a word."""
    move = state.row[symbol.trigger]
    return "name" in move.actions and not state.is_text and not move.dest.is_text


def _cut_off(stream: Stream, text: str, pos: int) -> int:
    """Hold a token at the end of the output, which may be part of a longer one."""
    stream.source.hold(text, pos, len(text))
    return len(text)


def _found(stream: Stream, symbol: Symbol, text: str, begin: int, end: int) -> int:
    if symbol.kind == TERMINAL:
        _fire(stream, symbol, text[begin:end])
        return end
    if stream.events.held is None:
        stream.hold()
    if symbol.kind == ENVELOPE:
        stream.island = Envelope(in_list=text[begin] == "[", repairs=stream.may_repair)
        stream.reader = "envelope"
        return begin
    stream.source.opening = stream.source.take(text, begin, end)
    if stream.state.row["object_start"].dest.python:
        stream.island = _python_arguments(stream)
        stream.reader = "python"
    elif text[begin:end] == '"':
        stream.island = island_class("json_string")(stream.may_repair_call)
        stream.reader = "string"
    else:
        stream.reader = "object"
    return end


def _fire(stream: Stream, symbol: Symbol, text: str) -> None:
    events, program, trigger = stream.events, stream.program, symbol.trigger
    after_call = events.after_call is not None
    if text in program.closers or (after_call and (trigger in program.sections or trigger in program.stop)):
        _close(stream, symbol, text)
        return
    if after_call and not symbol.most and not _stays_after_call(stream, symbol):
        events.after_call = None
    stream.fire(trigger, text, symbol_why(symbol))


def _stays_after_call(stream: Stream, symbol: Symbol) -> bool:
    """Return whether text after a marker still comes directly after the call, because the marker also closes it."""
    move = stream.state.row[symbol.trigger]
    inside = move.dest.meaning is None or (move.dest.meaning == "content" and stream.state.held)
    return "unopened_reasoning" in move.actions or (inside and not move.dest.held)


def _close(stream: Stream, symbol: Symbol, closer: str) -> None:
    """Read a marker that may close a call, what is around it, or the turn. It closes nothing if it already came after
    the same call, if the turn has ended, or if nothing opened it."""
    events, row, trigger = stream.events, stream.state.row, symbol.trigger
    dest = None if stream.state.held else row[trigger].dest
    closes = dest is not None and (dest.meaning == "content" or (dest.meaning is None and not dest.held))
    surplus = closes and not stream.program.strict and _is_surplus(stream, trigger)
    stream.fire(trigger, closer, symbol_why(symbol))
    if events.after_call is not None:
        events.after_call = events.after_call | {trigger} if closes else NONE
        if surplus:
            events.note("surplus_closer", closer, -len(closer))


def _is_surplus(stream: Stream, trigger: str) -> bool:
    """Return whether a marker after a call closes nothing."""
    after, program = stream.events.after_call, stream.program
    if after is None or trigger in program.stop:
        return False
    unopened = trigger in program.sections and trigger not in stream.calls.markers.in_text
    return unopened or trigger in after or not program.stop.isdisjoint(after)


def _separators(after: StateProgram) -> set[str]:
    """Return the first characters of what may be between calls, except the brackets and commas of Python."""
    return {literal.strip()[0] for literal in after.literals if literal.strip()}.difference("()[]{},")


def _python_arguments(stream: Stream) -> Island:
    """Return the island of Python arguments, with repairs if they are allowed."""
    after = stream.state.row["object_start"].dest.row["object_end"].dest
    listed = not {",", "]"}.isdisjoint(after.literals)
    if not stream.may_repair_call:
        island = island_class("python")()
        island.listed = listed
        return cast(Island, island)
    lines = any("name" in move.actions for move in after.row.values())
    stops = "".join(sorted({marker[0] for marker in stream.markers_in_values()} | _separators(after)))
    return cast(Island, island_class("repaired_python")(around=Around(listed, lines, stops)))
