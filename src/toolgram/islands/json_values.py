"""JSON at character level: read a value up to its end, and check each character.

Strategy: a pushdown automaton written as one table (`json_table`). A delta has a few characters, for which a look-up
per character is cheaper than a regular expression. In longer texts, *skips* jump over text after which the table is in
the same state again: the inside of a string, whole members and elements.

Nothing is decoded, and only the state and the stack of open brackets are kept, so the model's own bytes (number
spelling, escapes, blanks) pass through and a snapshot is a few characters. Every accepted prefix is a prefix of some
valid JSON text.

Raw control characters inside strings are not JSON, but models that write code emit them; they are accepted and passed
on escaped. A run stops before the first of them (`met_control`), so that it can be reported.
"""

from __future__ import annotations

import re
from functools import cache
from operator import length_hint
from typing import TYPE_CHECKING, Any, NamedTuple

from toolgram.islands import OpenBrackets
from toolgram.islands.json_table import (
    AFTER_ITEM,
    AFTER_MEMBER,
    AFTER_SCALAR,
    BEFORE,
    BLANKS,
    BROKEN,
    COLON,
    DIGITS,
    DONE,
    FIRST_ITEM,
    FIRST_KEY,
    INTEGERS,
    ITEM,
    KEY,
    KEY_STRING,
    MEMBER_STRING,
    MEMBER_VALUE,
    POP,
    PUSH,
    RAW_CONTROL,
    ROWS,
    SCALARS,
    SIGNS,
    START,
    WRONG,
    escape_controls,
)
from toolgram.limits import MAX_DEPTH, MAX_DIGITS, MOST_BLANKS
from toolgram.program.expressions import FindMatch

if TYPE_CHECKING:
    from toolgram.islands.json_repairs import JsonRepairer

__all__ = [
    "AFTER_ITEM", "AFTER_MEMBER", "BROKEN", "COLON", "DONE", "FIRST_ITEM", "FIRST_KEY", "ITEM", "KEY", "KEY_STRING",
    "MEMBER_STRING", "MEMBER_VALUE", "SCALARS", "START", "JsonScanner", "MarkerSearches",
    "escape_controls", "leaves_string",
]  # fmt: skip

# Kinds of tokens that `step` reads.
BLANK, PUNCTUATION, OPEN, CLOSE, STRING_PART, STRING_END, SCALAR_PART, SCALAR_END, CONTROL, NOTHING = range(10)

# Skips lead from a state, over text, to the same state. They take only whole tokens without raw control characters; the
# table reads the rest. They are possessive throughout: nothing is tried twice at one place. A skip that fails after a
# long look has looked into the next value, which is then entered: brackets bound how often that happens. Blanks are
# skipped whatever follows them; else each window of a long run of blanks would look at all that are left.
_SPACE = rf"[{BLANKS}]*+"
_INSIDE = r'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+'
_WHOLE_NUMBER = rf"-?+(?:0|[1-9][0-9]{{0,{MAX_DIGITS - 1}}}+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+(?=[{BLANKS},}}\]])"
_SCALAR = rf'(?:"{_INSIDE}"|{_WHOLE_NUMBER}|true|false|null)'


def _members(value: str) -> str:
    return rf'"{_INSIDE}"{_SPACE}:{_SPACE}{value}'


def _several(part: str, closing: str) -> str:
    """Return the pattern of parts with commas between them, and the closing bracket."""
    return rf"{_SPACE}(?:{part}{_SPACE}(?:,{_SPACE}(?!{closing})|(?={closing})))*+{closing}"


def _values(depth: int) -> str:
    """Return the pattern of a value with brackets up to `depth` deep."""
    value = _SCALAR
    for _ in range(depth):
        value = rf"(?:{_SCALAR}|\[{_several(value, ']')}|\{{{_several(_members(value), '}')})"
    return value


_string_run = re.compile(_INSIDE).match
_unescaped_quotes = re.compile(r'(?<!\\)(?:\\\\)*+"').finditer
_BETWEEN_MEMBERS = ",}] \t\r\n"
leaves_string = re.compile(r'["\\\x00-\x1f]').search  # a character that is not plain text of a string
_DEPTHS = {0: 2, 4096: 5}  # characters that are left -> depth of a skip; a deep one takes 20 ms to compile, once


@cache
def _skipping(state: int, depth: int) -> Any:
    part = _values(depth) if state == AFTER_ITEM else _members(_values(depth))
    return re.compile(rf"{_SPACE}(?:,{_SPACE}{part}{_SPACE})*+").match


_SHORT = 16  # characters for which the table is as fast as a skip


def _skip(state: int, text: str, pos: int, room: int) -> int:
    """Return the position after a skip from `pos`, if `state` has one; `room` is how much deeper brackets may go."""
    match = None
    if state <= KEY_STRING:
        match = _string_run(text, pos)
    elif state in (AFTER_ITEM, AFTER_MEMBER):
        left = len(text) - pos
        depth = max(depth for least, depth in _DEPTHS.items() if left >= least)
        match = _skipping(state, depth)(text, pos) if depth <= room else None
    end: int = match.end() if match else pos
    return end


def _undecided(text: str, begin: int, pos: int, state: int) -> tuple[int, int]:
    """Return where the undecided end of `text[begin:pos]` begins (a comma or closing quote with the blanks after it, an
    incomplete escape, a sign), and the state there."""
    if state <= KEY_STRING:
        return pos, state
    if state < START:
        at = text.rfind("\\", begin, pos)
        return (at, state % 3) if at >= 0 else (pos, state)
    if state in SIGNS:
        return (pos - 1, SIGNS[state]) if pos > begin else (pos, state)
    before = BEFORE.get(state)
    if before is None:
        return pos, state
    mark, earlier = before
    at, least = pos - 1, max(begin, pos - MOST_BLANKS - 1)
    while at >= least and text[at] in BLANKS:
        at -= 1
    return (at, earlier) if at >= least and text[at] == mark else (pos, state)


def _digits_at_end(text: str, before: int) -> int:
    """Return how many digits end a text, after `before` digits that came before it."""
    digits = len(text) - len(text.rstrip(DIGITS))
    return digits + before if digits == len(text) else digits


def _through(window: str, state: int, stack: list[str], floor: int) -> tuple[int, int, int]:
    """Go through the table up to a character that it does not pass. Return the state before it, the state reached or
    else the verdict, and the number of characters passed."""
    characters, was = iter(window), state
    try:
        for character in characters:
            was, state = state, ROWS[state][character]
            if state >= 0:
                continue
            if state == POP and len(stack) > floor + 1:
                stack.pop()
                state = AFTER_MEMBER if stack[-1] == "{" else AFTER_ITEM
            elif state == PUSH and len(stack) < MAX_DEPTH:
                stack.append(character)
                state = FIRST_KEY if character == "{" else FIRST_ITEM
            else:
                return was, state, len(window) - length_hint(characters) - 1
    except KeyError:  # a character beyond ASCII, which fits in strings only
        taken = len(window) - length_hint(characters)
        return (state, state, taken) if state <= KEY_STRING else (state, WRONG, taken - 1)
    return was, state, len(window)


class MarkerSearches(NamedTuple):
    """Searches in a text with strings: for a marker (group 1) or the beginning of one at the end; for a quote that may
    open or end a string, or a place where a marker may begin; for a string that is opened and contains neither up to
    the end of the text; and, in a string, for what is not plain text of it, or may be a marker."""

    marker: FindMatch
    notable: FindMatch
    opens: FindMatch
    leaves: FindMatch


class JsonScanner:
    """A JSON object or list that is being read.

    `stack` holds the open brackets, `state` what is expected, `kind` what the last `step` read; `out` is what the last
    `run` passes on, and `end` where it stopped. `was` is the state in which a run broke.

    With `repairs`, a run stops before what is not decided and, if it breaks, before what a repair may change; `fault`
    is then the character that does not fit. `repairer` reads on from there.
    """

    __slots__ = (
        "_controls", "begun", "contains", "digits", "end", "escaped", "fault", "kind", "met_control",
        "out", "repairer", "repairs", "searches", "stack", "state", "was", "watches",
    )  # fmt: skip

    def __init__(self, repairs: bool = False) -> None:
        self.repairs = repairs
        self.repairer: JsonRepairer | None = None
        self.fault = 0
        self.digits = 0  # of the integer that is being read
        self.met_control = False  # the last run stopped before the first raw control character
        self._controls = False  # one was read or is accepted
        self.escaped = False  # the open string ends in an escaped quote and, perhaps, what may be after a member
        self.searches: MarkerSearches | None = None
        self.watches = False  # the next text of the string decides whether it may be a marker or has ended
        self.contains, self.begun = False, ""  # the open string contains a marker; it ends in what may become one
        self.state = self.was = START
        self.stack: list[str] = []
        self.kind = NOTHING
        self.out = ""
        self.end = 0

    @property
    def done(self) -> bool:
        """True if the outermost value is closed."""
        return self.state == DONE

    @property
    def broken(self) -> bool:
        """True if the character at the returned position cannot be part of the value."""
        return self.state == BROKEN

    @property
    def between(self) -> bool:
        """True if the next character is outside any token."""
        return START <= self.state <= AFTER_MEMBER

    @property
    def in_string(self) -> bool:
        """True if the next character is inside a string."""
        return self.state < START

    @property
    def in_plain_string(self) -> bool:
        """True if the next character is inside a string, outside an escape."""
        return self.state <= KEY_STRING

    @property
    def in_key(self) -> bool:
        """True if the next character is inside a key."""
        return self.state < START and self.state % 3 == KEY_STRING

    @property
    def broke_after_value(self) -> bool:
        """True if the last run broke after a whole value."""
        return self.was in (AFTER_ITEM, AFTER_MEMBER) or self.was in AFTER_SCALAR

    @property
    def is_after_value(self) -> bool:
        """True if the value before the next character is whole, or may be."""
        return self.state in (AFTER_ITEM, AFTER_MEMBER) or self.state in AFTER_SCALAR

    @property
    def closers(self) -> str:
        """The brackets that close those that are open."""
        return "".join("}" if bracket == "{" else "]" for bracket in reversed(self.stack))

    def run(self, text: str, pos: int, floor: int) -> bool:
        """Read on until the container at depth `floor` (0: the outermost) is closed, or the text ends or breaks.

        Return whether the text ended first, with all of it decided. `end` is the new position, `out` the JSON read.
        Cost: one look-up per character of a short text, about one match per member of a long one.
        """
        self.met_control = False
        state, stack, written, more = self.state, self.stack, "", True
        digits = self.digits if state in INTEGERS else 0
        begin = start = pos
        while more and pos < len(text):
            if len(text) - pos > _SHORT or not text.isascii():
                pos = _skip(state, text, pos, MAX_DEPTH - len(stack))
            window = text[pos : pos + _SHORT]
            after = window.lstrip(DIGITS) if digits else ""  # the integer part: a fraction has any number of digits
            if after and after[0] not in ".eE" and len(window) - len(after) > MAX_DIGITS - digits:
                was, state, taken = state, WRONG, len(window) - len(after)
            else:
                was, state, taken = _through(window, state, stack, floor)
            pos += taken
            integer = (state if state >= 0 else was) in INTEGERS
            digits = _digits_at_end(window[:taken], digits) if integer else 0
            if state < 0:
                more = state <= RAW_CONTROL and self._controls
                if more:
                    written += text[start:pos] + escape_controls(text[pos])
                    state, start, pos = RAW_CONTROL - state, pos + 1, pos + 1
                else:
                    pos += state == POP
                    state = self._stop(was, state)
        self.digits = digits
        if self.repairs and not (more and state <= KEY_STRING):  # nothing is undecided in a string
            pos, state = self._back_to_decided(text, begin, pos, state, more)
        if (self.was if state == BROKEN else state) < START:
            self._note_string(text, begin, pos, KEY_STRING < self.state < START)
        self.state, self.end = state, pos
        self.out = written + text[start:pos]
        return more and pos == len(text)

    def _note_string(self, text: str, begin: int, end: int, escaping: bool) -> None:
        """Note what a part of the text says of the string that is open after it: that it contains a marker, or that an
        escaped quote may have ended it. `escaping`: the part begins inside an escape."""
        searches = self.searches
        if searches is not None and not self.watches:
            if not searches.notable(text, begin, end):
                return
            if not escaping and searches.opens(text, begin, end):
                self.contains = self.escaped = False
                return
        read = "\\" * escaping + text[begin:end]
        opened = max((quote.end() for quote in _unescaped_quotes(read)), default=0)
        if opened:
            self.begun, self.contains, self.escaped = "", False, False
            read = read[opened:]
        if body := read.rstrip(_BETWEEN_MEMBERS):
            self.escaped = body[-1] == '"'
        if read and searches is not None:
            found = searches.marker(self.begun + read)
            self.begun = found.group() if found is not None and not found.lastindex else ""
            self.contains |= found is not None and found.lastindex is not None
        self.watches = self.escaped or self.begun != ""

    def passes(self, text: str, floor: int) -> bool:
        """Read a text that stays inside the container at depth `floor`. Return False, unchanged, for any other text."""
        before, stack = (self.state, self.digits, self._controls), self.stack[:]
        if self.run(text, 0, floor):
            return True
        (self.state, self.digits, self._controls), self.stack[:] = before, stack
        return False

    def waits(self, floor: int) -> bool:
        """Return whether the rest of the text waits for what follows, after a run that returned False."""
        return self.state != BROKEN and len(self.stack) > floor and not self.met_control

    def accept_controls(self) -> None:
        """Let no run stop before a raw control character."""
        self._controls = True

    def exact(self) -> None:
        """Repair nothing from here on, and let nothing wait."""
        self.repairs, self.repairer = False, None

    def repair(self, python_only: bool = False) -> None:
        """Go on from where a run broke: from here on, the scanner reads what a repairer writes."""
        if self.state == BROKEN:
            self.state = self.was
        self.exact()
        self.repairer = _repairer_class()(python_only=python_only)

    def _stop(self, was: int, verdict: int) -> int:
        """Stop at a character that the table does not pass, by its verdict; return the new state."""
        if verdict == POP:
            self.stack.pop()
            return self.after_value()
        if verdict <= RAW_CONTROL:
            self._controls = self.met_control = True
            return RAW_CONTROL - verdict
        self.was = was
        return BROKEN

    def _back_to_decided(self, text: str, begin: int, pos: int, state: int, more: bool) -> tuple[int, int]:
        """Return where a run from `begin` to `pos` stops, and the state there."""
        if self.met_control:
            return pos, state
        self.fault = pos
        if more:
            return _undecided(text, begin, pos, state)
        if state == BROKEN:
            pos, self.was = _undecided(text, begin, pos, self.was)
        return pos, state

    def step(self, text: str, pos: int) -> int:
        """Read one token outside strings, or as much of a string as there is, and return the new position. `kind` says
        what was read. A number or a word ends only at the character after it: that step reads nothing and has kind
        SCALAR_END. A raw control character in a string is a step of its own."""
        at, escaping = pos, KEY_STRING < self.state < START
        while True:
            at = self._step(text, at)
            state = self.state
            if self.kind != STRING_PART or at == len(text) or (state <= KEY_STRING and text[at] < " "):
                if state < START:
                    self._note_string(text, pos, at, escaping)
                return at

    def _step(self, text: str, pos: int) -> int:
        state = self.state
        if state <= KEY_STRING:
            end = _string_run(text, pos).end()  # type: ignore[union-attr]
            if end > pos:
                self.kind = STRING_PART
                return end
        following = ROWS[state].get(text[pos], state if state <= KEY_STRING else WRONG)
        word = text[pos].isalnum() or text[pos] == "_"  # which makes a scalar another word
        if state in AFTER_SCALAR and following < SCALARS and not word:
            self.state, self.kind = AFTER_SCALAR[state], SCALAR_END
            return pos
        if following >= 0:
            self.state, self.kind = following, _kind(state, following)
        elif following <= RAW_CONTROL:
            self.kind = CONTROL
        elif following == POP:
            self.stack.pop()
            self.state, self.kind = self.after_value(), CLOSE
        elif following > POP and len(self.stack) < MAX_DEPTH:
            self.stack.append(text[pos])
            self.state, self.kind = (FIRST_KEY if text[pos] == "{" else FIRST_ITEM), OPEN
        else:
            self.state, self.kind = BROKEN, NOTHING
        return pos + (self.state != BROKEN)

    def after_value(self) -> int:
        """Return the state after a value at this place."""
        if not self.stack:
            return DONE
        return AFTER_MEMBER if self.stack[-1] == "{" else AFTER_ITEM

    def before_key(self) -> JsonScanner:
        """Return a scanner that repairs nothing, before another key in the innermost bracket."""
        made = JsonScanner()
        made.accept_controls()
        made.stack, made.state = self.stack[:], KEY
        return made

    def read(self, text: str, pos: int, final: bool) -> int:
        """Read on to the end of the outermost value."""
        self.accept_controls()
        self.run(text, pos, 0)
        return self.end

    def open_brackets(self) -> OpenBrackets:
        """Return the open brackets and quote; in a damaged string neither is known, and a marker ends it."""
        repairer = self.repairer
        if self.done or (repairer is not None and repairer.damaged):
            return OpenBrackets("<")
        python = repairer is not None and repairer.spelled
        quote = repairer.quote if repairer is not None else '"'
        in_string = self.in_string and not (repairer is not None and repairer.at_quote)  # which is taken
        return OpenBrackets("".join(self.stack), quote if in_string else "", single_quotes=python)

    def dump(self) -> list[Any]:
        """Return the state as JSON-able data, a few characters."""
        repairing = self.repairer.dump() if self.repairer else None
        digits = self.digits if self.state in INTEGERS else 0
        string = [self.escaped, self.contains, self.begun] if self.in_string else [False, False, ""]
        return [self.state, "".join(self.stack), digits, self.repairs, self._controls, *string, repairing]

    @classmethod
    def load(cls, data: Any) -> JsonScanner:
        """Load what `dump` returned."""
        state, stack, digits, repairs, controls, escaped, contains, begun, repairing = data
        scanner = cls(repairs)
        scanner.state, scanner.stack, scanner.digits, scanner._controls = state, [*stack], digits, controls
        scanner.escaped, scanner.contains, scanner.begun = escaped, contains, begun
        scanner.watches = escaped or begun != ""
        if repairing is not None:
            scanner.repairer = _repairer_class().load(repairing, cls.load)
        return scanner


def _repairer_class() -> type[JsonRepairer]:
    """Return the class of repairers, loaded when it is first needed."""
    from toolgram.islands.json_repairs import JsonRepairer

    return JsonRepairer


def _kind(state: int, following: int) -> int:
    """Return the kind of token that a step from one state to the next reads."""
    if following < START:
        return STRING_PART
    if state < START:
        return STRING_END
    if following >= SCALARS:
        return SCALAR_PART
    if state >= SCALARS:
        return SCALAR_END
    return BLANK if following == state else PUNCTUATION
