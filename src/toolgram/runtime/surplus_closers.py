"""Closers that close nothing: behind a complete call, a bracket, a fence or a closing marker too many.

Strategy: a complete call sets a mark, and the next text takes it away.  While it stands, the next characters are looked
up here first, in one table per format (`Program.closers`).  A closer whose opener is the end of the text before the
call (`See ({...}) ok`) is text, and so is its opener.
"""

from __future__ import annotations

import re

from toolgram.compile import FENCE, StateProgram
from toolgram.islands import OpenBrackets
from toolgram.islands.error_recovery import ErrorRecovery
from toolgram.runtime.event_buffer import SYNTAX
from toolgram.runtime.stream import WAIT, RejectedValue, Stream, symbol_why
from toolgram.spec import UNCLOSED

_BLANKS = re.compile(r"\s*+").match
_MOST_BLANKS = 64  # between a call and a closer
# A member, where the arguments are closed already.
_KEY = r"""(?:"[^"\\\n]{1,64}"|'[^'\\\n]{1,64}')"""
_member = re.compile(rf",\s{{0,64}}+{_KEY}\s{{0,64}}+:").match
_member_begun = re.compile(rf""",\s{{0,64}}+(?:["'][^"'\\\n]{{0,64}}|{_KEY}\s{{0,64}}+)?\Z""").match
# Another call, as in a list, where objects stand without the brackets of one.
_object = re.compile(rf",\s{{0,64}}+\{{\s{{0,64}}+({_KEY})\s{{0,64}}+:").match
_object_begun = re.compile(rf""",\s{{0,64}}+(?:\{{\s{{0,64}}+(?:["'][^"'\\\n]{{0,64}}|{_KEY}\s{{0,64}}+)?)?\Z""").match
_unmarked = re.compile(rf"([,;]?)\s{{0,64}}+\{{\s{{0,64}}+({_KEY})\s{{0,64}}+:").match
_unmarked_begun = re.compile(
    rf"""(?:[,;]\s{{0,64}}+)?(?:\{{\s{{0,64}}+(?:["'][^"'\\\n]{{0,64}}|{_KEY}\s{{0,64}}+)?)?\Z"""
).match
_notated_member = re.compile(r",\s{0,64}+\w{1,64}+:").match
_notated_begun = re.compile(r",\s{0,64}+\w{0,64}+\Z").match
_MEMBER_WHY = "a member behind the arguments, which are closed"
_OPENERS = {"}": "{", "]": "[", ")": "("}
_OPEN_AT_END = re.compile(r"(?:[({\[]|```\w{0,16}|\s)*+\Z")  # no groups: in such a repeat, `re` may raise for them


def read_surplus_closer(stream: Stream, text: str, pos: int, final: bool) -> int | None:
    """Drop a surplus closer that stands at `pos`: the position behind it, or WAIT. None where something else does."""
    events, state, closers = stream.events, stream.state, stream.program.closers
    if state.held or not closers or stream.source.prefix_characters:
        return None
    blank = _BLANKS(text, pos)
    assert blank is not None
    begin = blank.end() if state.is_text else pos
    window = text[begin : begin + stream.program.longest_closer + 1]
    if not window or (not final and state.may_become(text, begin)):
        return None
    if window[0].isspace():
        return None  # between markers, the state reads blanks itself
    if window[0] == "," and state.is_text and state.meaning == "content" and not state.closed:
        notated = stream.program.notation and stream.calls.unclosed
        if (_notated_member if notated else _member)(text, begin):
            return _read_member(stream, text, pos, begin)
        if not final and (_notated_begun if notated else _member_begun)(text, begin):
            events.say("content", text[pos:begin])
            stream.buffer = text[begin:]
            return WAIT
        if "start_map item" in state.row and "," not in state.literals:
            object_begun = _object(text, begin)
            if object_begun is not None and _is_key_of_call(state, object_begun[1][1:-1]):
                events.say("content", text[pos:begin])
                events.drop(",", SYNTAX)
                events.note("repaired_json", ",")
                return begin + 1
            if object_begun is None and not final and _object_begun(text, begin):
                events.say("content", text[pos:begin])
                stream.buffer = text[begin:]
                return WAIT
    if (
        window[0] in ",;{"
        and state.meaning == "content"
        and state.announces
        and not (state.closed or events.behind_call)
    ):
        behind = _read_unmarked_call(stream, text, pos, begin, final)
        if behind is not None:
            return behind
    if any(text.startswith(marker, begin) for marker in state.literals):
        if state.is_text and window.startswith(FENCE) and is_open_in_text(stream, FENCE):
            stream.unexpected_input()  # the fence around the call is text, its end as its beginning
            events.behind_call = None
            return pos
        return None
    closer = max((each for each in closers if window.startswith(each)), key=len, default="")
    cut = begin + len(window) == len(text) and any(each.startswith(window) and each != window for each in closers)
    if closer == FENCE:
        cut = window == FENCE
        closer = "" if window[3:4].isalnum() or window[3:4] == FENCE[0] else closer  # else it opens another
    if closer and len(text) - begin > len(closer) and (cut or state.may_become(text, begin)):
        closer = ""  # it begins a longer marker, which is cut off
    if sum(map(len, events.blanks)) + begin - pos > _MOST_BLANKS or (closer and is_open_in_text(stream, closer)):
        events.behind_call = None
        return None
    if closer and closers[closer].trigger and UNCLOSED in state.row:
        return None  # a marker that closes what is not closed yet
    if cut and not final:
        events.say("content", text[pos:begin])
        stream.buffer = text[begin:]
        return WAIT
    if closer and (not closers[closer].special or stream.was_emitted(closers[closer])):
        events.say("content", text[pos:begin])
        events.drop(closer, symbol_why(closers[closer]))
        events.note("surplus_closer", closer)
        return begin + len(closer)
    if cut and final and not closer and len(window) > 1:
        events.say("content", text[pos:begin])
        events.drop(window, "cut off")
        events.note("unfinished_marker", window)
        stream.calls.forget_owed()
        return len(text)
    events.behind_call = None
    return None


def _read_unmarked_call(stream: Stream, text: str, pos: int, begin: int, final: bool) -> int | None:
    """Another call as an object, where nothing closes a call, without the marker that announces it."""
    state, events = stream.state, stream.events
    found = _unmarked(text, begin)
    if found is None:
        if final or not _unmarked_begun(text, begin):
            return None
        events.say("content", text[pos:begin])
        stream.buffer = text[begin:]
        return WAIT
    if not _is_key_of_call(state.row[state.announces].dest, found[2][1:-1]):
        return None
    events.say("content", text[pos:begin])
    stream.fire(state.announces, "")
    events.drop(found[1], SYNTAX)
    events.note("unusual_form", found[1])
    return begin + len(found[1])


def _is_key_of_call(state: StateProgram, key: str) -> bool:
    """Whether an object that the state takes as a call may have this key."""
    behind = state.row["start_map item"].dest
    return behind.any_key or f"item.{key}" in behind.key_paths


def _read_member(stream: Stream, text: str, pos: int, begin: int) -> int:
    """What was to be an argument, up to the bracket that closes the arguments once more, is malformed."""
    stream.events.say("content", text[pos:begin])
    stream.events.behind_call = None
    stream.island = ErrorRecovery(OpenBrackets("{"))
    stream.rejected, stream.reader = RejectedValue("malformed", _MEMBER_WHY, False), "rejected_rest"
    return begin


def is_open_in_text(stream: Stream, closer: str) -> bool:
    """Whether the text before the call has opened what `closer` closes. Not before the call's own closing marker:
    what stands there is of the call."""
    calls = stream.calls
    if calls.owed or (calls.unclosed and stream.state.unclosed):
        return False
    found = _OPEN_AT_END.search(stream.events.tail)
    opened = found.group().rstrip() if found is not None else ""
    if closer == FENCE:
        return FENCE in opened and not opened.endswith(tuple(_OPENERS.values()))
    return opened[-1:] == _OPENERS.get(closer, " ")
