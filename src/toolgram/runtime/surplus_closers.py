"""Closers that close nothing: after a complete call, a surplus bracket, fence or closing marker.

Strategy: a complete call sets a mark, and the next text removes it. As long as it is set, the next characters are
looked up here first, in one table per format (`Program.closers`). A closer whose opener ends the text before the call
(`See ({...}) ok`) is text, and so is its opener.

A call may also come after the end of its list: `<tool_calls>{...}</tool_calls>{...}</tool_calls>`, `[{...}], {...}]`.
Nothing shows whether such an object is a call or an example, so it is not read as a call. But the model closed the list
too early, or too often, and that is reported: the object, with a comma before it, is malformed text. If calls are
Python, `f(a=1)` is treated the same way.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import cast

from toolgram.islands import OpenBrackets
from toolgram.islands.error_recovery import ErrorRecovery
from toolgram.limits import BLANKS, LONGEST_WORD, MOST_BLANKS
from toolgram.program.closing_markers import FENCE
from toolgram.program.look_ahead import partial_pattern
from toolgram.program.state import INNER, TERMINAL, Program, Symbol
from toolgram.runtime.event_buffer import SYNTAX, HeldRegion
from toolgram.runtime.following import end_of_blanks
from toolgram.runtime.position import RejectedValue
from toolgram.runtime.stream import LATE_CALL, Stream, symbol_why
from toolgram.spec.data import UNCLOSED

# A member after the arguments were closed.
_SPACE = rf"\s{{0,{MOST_BLANKS}}}+"
_WORD = f"{{0,{LONGEST_WORD}}}"
_KEY = rf"""(?:"[^"\\\n]{{1,{LONGEST_WORD}}}"|'[^'\\\n]{{1,{LONGEST_WORD}}}')"""
_member = re.compile(rf",{_SPACE}{_KEY}{_SPACE}:").match
_member_begun = re.compile(rf""",{_SPACE}(?:["'][^"'\\\n]{_WORD}|{_KEY}{_SPACE})?\Z""").match
# Another call, without the marker that announces it, or as in a list without brackets.
_unmarked = re.compile(rf"([,;]?){_SPACE}\{{{_SPACE}({_KEY}){_SPACE}:").match
_unmarked_begun = re.compile(rf"""(?:[,;]{_SPACE})?(?:\{{{_SPACE}(?:["'][^"'\\\n]{_WORD}|{_KEY}{_SPACE})?)?\Z""").match
_notated_member = re.compile(rf",{_SPACE}\w{{1,{LONGEST_WORD}}}+:").match
_notated_begun = re.compile(rf",{_SPACE}\w{{0,{LONGEST_WORD}}}+\Z").match
_NAME = rf"[A-Za-z_][\w.]{{0,{LONGEST_WORD - 1}}}+"
_IDENTIFIER = rf"[A-Za-z_]\w{{0,{LONGEST_WORD - 1}}}+"
LATE_MEMBER = "a member after the arguments, which are closed"
_ELEMENT = Symbol("", INNER)
_OPENERS = {"}": "{", "]": "[", ")": "("}
_OPEN_AT_END = re.compile(r"(?:[({\[]|```\w{0,16}|\s)*+\Z")  # no groups: in such a repeat, `re` may raise for them


def read_surplus_closer(stream: Stream, text: str, pos: int, final: bool) -> int | None:
    """Drop a surplus closer at `pos`. Return the position after it, or WAIT; None for anything else."""
    events, state = stream.events, stream.state
    if state.held or not stream.program.surplus:
        return None
    begin = end_of_blanks(text, pos) if state.is_text else pos
    window = text[begin : begin + stream.program.longest_closer + 1]
    if not window or window[0].isspace() or (not final and state.may_become(text, begin)):
        return None  # between markers, the state reads blanks itself
    own = max((len(marker) for marker in state.literals if text.startswith(marker, begin)), default=0)
    after = _read_another(stream, text, pos, begin, bool(own), final)
    if after is not None:
        return after
    closer, cut = _find_closer(stream, text, begin)
    longer = cut and window[:3] != FENCE and (not final or len(window) > own)
    if not own or own < len(closer) or longer:
        return _read_closer(stream, text, pos, begin, closer, cut, final)
    if state.is_text and window.startswith(FENCE) and is_open_in_text(stream, FENCE):
        stream.unexpected_input()  # the fence around the call is text, its end like its beginning
        events.after_call = None
        return pos
    return None


def _read_another(stream: Stream, text: str, pos: int, begin: int, marked: bool, final: bool) -> int | None:
    """Read the beginning of another call, or a member that comes too late. `marked`: a marker of the state is there."""
    state, after = stream.state, None
    is_content = state.meaning == "content" and not state.closed
    if text[begin] == "," and is_content and state.is_text:
        after = _read_comma(stream, text, pos, begin, final)
    unmarked = is_content and state.announces and not stream.events.after_call
    if after is None and not marked and unmarked and text[begin] in ",;{":
        after = _read_unmarked_call(stream, text, pos, begin, final)
    if after is None and not marked:
        after = _read_late_call(stream, text, pos, begin, final)
    return after


def _read_closer(stream: Stream, text: str, pos: int, begin: int, closer: str, cut: bool, final: bool) -> int | None:
    """Drop a closer ("" for none) after blanks from `pos` on. `cut`: the text may end in a part of a longer one."""
    events, program = stream.events, stream.program
    if sum(map(len, events.blanks)) + begin - pos > MOST_BLANKS or (closer and is_open_in_text(stream, closer)):
        events.after_call = None
        return None
    symbol = program.surplus.get(closer, _ELEMENT)
    if closer and symbol.trigger and symbol.kind == TERMINAL and UNCLOSED in stream.state.row:
        return None  # it closes an envelope that is still open
    if cut and not final:
        return _wait_after_blanks(stream, text, pos, begin)
    if closer and stream.is_marker(symbol, text, begin, begin + len(closer)):
        events.say("content", text[pos:begin])
        events.drop_and_tell(closer, symbol_why(symbol), "surplus_closer")
        return begin + len(closer)
    window = text[begin : begin + program.longest_closer + 1]
    if cut and not closer and len(window) > 1:
        return _read_half(stream, text, pos, begin, window)
    if not window.startswith(program.thought_ends):  # dropped, if nothing has opened it
        events.after_call = None
    return None


def _read_half(stream: Stream, text: str, pos: int, begin: int, window: str) -> int:
    """Drop the beginning of a closer at the end of the output."""
    stream.events.say("content", text[pos:begin])
    stream.events.drop_and_tell(text[begin:], "cut off", "unfinished_marker")
    if any(each.startswith(window) for each in stream.program.surplus):
        stream.calls.forget_markers()
    return len(text)


def _read_unmarked_call(stream: Stream, text: str, pos: int, begin: int, final: bool) -> int | None:
    """Read another call as an object: without its marker, in a format whose calls have no closing marker, or without
    the brackets of a list. Return the position at its brace, or WAIT; None for anything else."""
    state = stream.state
    listed = "start_map item" in state.row
    found = _unmarked(text, begin)
    if found is None:
        begun = not final and _unmarked_begun(text, begin)
        return _wait_after_blanks(stream, text, pos, begin) if begun else None
    after = (state if listed else state.row[state.announces].dest).row["start_map item"].dest
    if not after.any_key and f"item.{found[2][1:-1]}" not in after.key_paths:
        return None
    stream.events.say("content", text[pos:begin])
    if not listed:
        stream.fire(state.announces, "")
        cast(HeldRegion, stream.events.held).announced = False  # so its function has to be declared
    separator = found[1]
    stream.events.drop(separator, SYNTAX)
    stream.events.note("repaired_json" if listed else "unusual_form", separator)
    return begin + len(separator)


def _read_comma(stream: Stream, text: str, pos: int, begin: int, final: bool) -> int | None:
    """Read a late member, or the next call of a list without brackets. Return the position, or WAIT; None for text."""
    state = stream.state
    notated = stream.program.spec.notation and stream.calls.markers.overdue
    if (_notated_member if notated else _member)(text, begin):
        return _read_member(stream, text, pos, begin)
    if not final and (_notated_begun if notated else _member_begun)(text, begin):
        return _wait_after_blanks(stream, text, pos, begin)
    if "start_map item" not in state.row or "," in state.literals:
        return None
    return _read_unmarked_call(stream, text, pos, begin, final)


def _wait_after_blanks(stream: Stream, text: str, pos: int, begin: int) -> int:
    """Emit the blanks between `pos` and `begin`, and keep the text after them until more has come."""
    stream.events.say("content", text[pos:begin])
    return stream.wait(text[begin:])


def _find_closer(stream: Stream, text: str, begin: int) -> tuple[str, bool]:
    """Return the closer at `begin`, or "", and whether the text may end in the beginning of a longer one."""
    program = stream.program
    window = text[begin : begin + program.longest_closer + 1]
    element, begun = _end_of_element(program.element_ends, text, begin)
    if element and element not in stream.state.literals:
        return element, False
    closer = max((each for each in program.surplus if window.startswith(each)), key=len, default="")
    if closer == FENCE:
        cut = window == FENCE
        closer = "" if window[3:4].isalnum() or window[3:4] == FENCE[0] else closer  # it opens another one
    else:
        is_all = begin + len(window) == len(text)
        cut = begun or (is_all and any(each.startswith(window) and each != window for each in program.endings))
    if closer and len(text) - begin > len(closer) and (cut or stream.state.may_become(text, begin)):
        closer = ""  # it begins a longer marker, which is cut off
    return closer, cut


@lru_cache(maxsize=256)
def _elements(ends: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the pattern of an element's closing tag, and that of its beginning."""
    tag = "|".join(map(re.escape, ends))
    return re.compile(rf"(?:{tag})[^<>\s]{{1,{LONGEST_WORD}}}+>"), re.compile(
        rf"(?:{partial_pattern(list(ends))}|(?:{tag})[^<>\s]{{0,{LONGEST_WORD}}}+)\Z"
    )


def _end_of_element(ends: tuple[str, ...], text: str, begin: int) -> tuple[str, bool]:
    """Return the closing tag of an element at `begin`, or "", and whether the text ends in the beginning of one."""
    if not ends:
        return "", False
    whole, begun = _elements(ends)
    found = whole.match(text, begin)
    return (found.group(), False) if found is not None else ("", begun.match(text, begin) is not None)


def _read_member(stream: Stream, text: str, pos: int, begin: int) -> int:
    """Read a late argument as malformed, up to the bracket that closes the arguments once more."""
    stream.events.say("content", text[pos:begin])
    stream.events.after_call = None
    stream.island = ErrorRecovery(OpenBrackets("{"))
    stream.rejected, stream.reader = RejectedValue("malformed", LATE_MEMBER), "rejected_rest"
    return begin


def is_open_in_text(stream: Stream, closer: str) -> bool:
    """Return whether the text before the call, but not the call itself, opened what `closer` closes."""
    if stream.calls.markers.overdue:
        return False
    found = _OPEN_AT_END.search(stream.events.tail)
    opened = found.group().rstrip() if found is not None else ""
    if closer == FENCE:
        return FENCE in opened and not opened.endswith(tuple(_OPENERS.values()))
    return opened[-1:] == _OPENERS.get(closer, " ")


@lru_cache(maxsize=256)
def _late_calls(program: Program) -> tuple[re.Pattern[str], re.Pattern[str]] | None:
    """Return the patterns of a certain late call, up to its bracket, and of what may become one."""
    states, found, parts = program.states.values(), [], []
    if any("start_map item" in state.row for state in states):
        keys = {path.split(".")[1] for state in states for path in state.key_paths if path.count(".") == 1}
        key = "|".join(re.escape(key) for key in sorted(keys)) or "(?!)"
        found.append(rf'(,{BLANKS}\{{)(?={BLANKS}{_KEY}{BLANKS}:)|(\{{)(?={BLANKS}"(?:{key})"{BLANKS}:)')
        parts.append(rf"""(?:,{BLANKS})?(?:\{{{BLANKS}(?:["'][^"'\\\n]{{0,{LONGEST_WORD}}}|{_KEY}{BLANKS})?)?\Z""")
    if any(state.python for state in states):
        comma = rf"(?:,{BLANKS})" + ("?" if program.line_calls else "")
        found.append(rf"({comma}{_NAME}\()(?={BLANKS}(?:\)|{_IDENTIFIER}{BLANKS}=[^=]))")
        parts.append(rf"(?:{comma}(?:{_NAME}(?:\({BLANKS}(?:{_IDENTIFIER}{BLANKS}=?)?)?)?|,{BLANKS})\Z")
    return (re.compile("|".join(found)), re.compile("|".join(parts))) if found else None


def _read_late_call(stream: Stream, text: str, pos: int, begin: int, final: bool) -> int | None:
    """Read a late call at `begin`, after blanks from `pos` on. Return the position after its bracket, WAIT, or None."""
    state, patterns = stream.state, _late_calls(stream.program)
    if patterns is None or not state.is_text or state.meaning != "content" or "start_map item" in state.row:
        return None
    if sum(map(len, stream.events.blanks)) + begin - pos > MOST_BLANKS:
        return None
    if not state.loops and state.match(text, begin):
        return None
    whole, begun = patterns
    found = whole.match(text, begin)
    if found is None:
        if final or begun.match(text, begin) is None:
            return None
        return stream.wait(text[pos:])
    opened = found.group()
    if opened.rstrip("(").strip(", \t\r\n") in stream.calls.names:
        return None  # it may be read as a call, at the beginning of a line
    stream.events.say("content", text[pos:begin])
    if not state.loops:
        stream.unexpected_input()  # there was text
    stream.events.say("malformed", opened, LATE_CALL)
    stream.island = ErrorRecovery(OpenBrackets(opened[-1], python=opened[-1] == "("))
    stream.rejected, stream.reader = RejectedValue("malformed", LATE_CALL), "rejected_rest"
    return found.end()
