"""Calls after the end of their list: `<tool_calls>{...}</tool_calls>{...}</tool_calls>`, `[{...}], {...}]`.

Nothing shows whether such an object is a call or an example, so it is not read as a call. But the model closed the list
too early, or too often, and that is reported: the object, with a comma before it, is malformed text. A second closer
after it is a surplus closer, as after any call. If calls are Python, `f(a=1)` is treated the same way.
"""

from __future__ import annotations

import re
from functools import lru_cache

from toolgram.islands import OpenBrackets
from toolgram.islands.error_recovery import ErrorRecovery
from toolgram.limits import BLANKS, LONGEST_WORD, MOST_BLANKS
from toolgram.program.state import Program
from toolgram.runtime.position import RejectedValue
from toolgram.runtime.stream import LATE_CALL, Stream

_KEY = rf"""(?:"[^"\\\n]{{1,{LONGEST_WORD}}}"|'[^'\\\n]{{1,{LONGEST_WORD}}}')"""
_NAME = rf"[A-Za-z_][\w.]{{0,{LONGEST_WORD - 1}}}+"
_WORD = rf"[A-Za-z_]\w{{0,{LONGEST_WORD - 1}}}+"
# Matches a certain late call, up to its bracket; matches what may become one.
_Patterns = tuple[re.Pattern[str], re.Pattern[str]]


@lru_cache(maxsize=256)
def _patterns(program: Program) -> _Patterns | None:
    states, found, parts = program.states.values(), [], []
    if any("start_map item" in state.row for state in states):
        keys = {path.split(".")[1] for state in states for path in state.key_paths if path.count(".") == 1}
        key = "|".join(re.escape(key) for key in sorted(keys)) or "(?!)"
        found.append(rf'(,{BLANKS}\{{)(?={BLANKS}{_KEY}{BLANKS}:)|(\{{)(?={BLANKS}"(?:{key})"{BLANKS}:)')
        parts.append(rf"""(?:,{BLANKS})?(?:\{{{BLANKS}(?:["'][^"'\\\n]{{0,{LONGEST_WORD}}}|{_KEY}{BLANKS})?)?\Z""")
    if any(state.python for state in states):
        comma = rf"(?:,{BLANKS})" + ("?" if program.line_calls else "")
        found.append(rf"({comma}{_NAME}\()(?={BLANKS}(?:\)|{_WORD}{BLANKS}=[^=]))")
        parts.append(rf"(?:{comma}(?:{_NAME}(?:\({BLANKS}(?:{_WORD}{BLANKS}=?)?)?)?|,{BLANKS})\Z")
    return (re.compile("|".join(found)), re.compile("|".join(parts))) if found else None


def read_late_call(stream: Stream, text: str, pos: int, begin: int, final: bool) -> int | None:
    """Read a late call at `begin`, after blanks from `pos` on. Return the position after its bracket, WAIT, or None."""
    state, patterns = stream.state, _patterns(stream.program)
    if patterns is None or not state.is_text or state.meaning != "content" or "start_map item" in state.row:
        return None
    if sum(map(len, stream.events.blanks)) + begin - pos > MOST_BLANKS:
        return None
    if not state.loops and state.match is not None and state.match(text, begin):
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
    stream.rejected, stream.reader = RejectedValue("malformed", LATE_CALL, False), "rejected_rest"
    return found.end()
