"""JSON with one local, decidable mistake, written as JSON while it arrives.

Strategy: the scanner's table breaks as for any wrong text, and only then this is put in front of it. It reads one
character at a time, looks at the state of the scanner, and decides what the scanner reads instead. All that it writes
passes the scanner, so the output remains a prefix of JSON whatever is repaired.

Undecided characters are held, at most 64 blanks, the letters of one word, or a short comment: a comma until no closing
bracket can follow, a quote until it is known what follows, an escape until it is whole. These have one reading:

* a comma before a closing bracket, and a missing one before a string that is a key, or between items,
* a second colon,
* comments: `// ...`, `# ...`, `/* ... */`; in one of a line, no bracket that may be that of the value,
* strings in single quotes, and Python's words; from there on, strings have Python's escapes: all of it is one repair,
* keys without quotes, `NaN` and `Infinity` (as strings),
* a backslash that begins no escape of JSON.

These faults are local, and all of them are repaired, however many there are. Damage to the structure is repaired in one
value only:

* a second opening brace of an object, and then the second closing one,
* quotes inside a string. The first is a quote that neither the end nor `,`, `:`, a closing bracket or a quote follows.
  The end is that of the output, or a marker of the format (`end_string`). A short comment without quotes is a blank.
  The reader of the call decides which later quote ends the string (`runtime.damaged_values`); without a reader, it is
  the first one that one of these follows.

What has several readings remains broken: a quote inside a key, or inside a string in a list, where the comma may be
part of it; two strings with nothing between them, or in a list only blanks, where one quote may be too many; a missing
colon, which may be the last character of the key; a second damaged value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import accumulate
from typing import Any, Protocol

from toolgram.islands.json_table import (
    AFTER_ITEM,
    AFTER_MEMBER,
    FIRST_ITEM,
    FIRST_KEY,
    ITEM,
    KEY,
    KEY_STRING,
    MEMBER_VALUE,
    SCALARS,
    START,
    escape_controls,
)
from toolgram.islands.python_tokens import is_short, json_text, more_of_escape, unescape
from toolgram.limits import LONGEST_REMARK, LONGEST_WORD, MOST_BLANKS, MOST_RIVALS

_BLANKS = " \t\r\n"
_QUOTES = "\"'"
_ENDS_STRING = ",:}]\"'"
_OPENERS = {"}": "{", "]": "["}
_ESCAPES = '"\\/bfnrt'
_IN_NUMBER = "0123456789+-.eE"
_HEX_DIGITS = "0123456789abcdefABCDEF"
PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}
WORDS = (
    PYTHON_WORDS
    | {word: word for word in ("true", "false", "null")}
    | {word: f'"{word}"' for word in ("NaN", "Infinity", "-Infinity")}
)
_SPELLINGS = ("", "'", "\\'", *PYTHON_WORDS)  # what is noted of Python's spelling, and nothing

# What is being read.
PLAIN, CLOSING, ESCAPE, WORD, COMMENT = "plain", "closing", "escape", "word", "comment"
_SWAPPED = str.maketrans("\"'", "'\"")
_runs = {quote: re.compile(rf"[^{quote}\"\\\x00-\x1f]*+").match for quote in _QUOTES}
EARLIER, HERE = 1, 2  # the place of the damage: a part already read, or the open string


class Scanner(Protocol):
    """The parts of the scanner that a repairer uses."""

    state: int
    stack: list[str]
    end: int
    escaped: bool
    contains: bool

    @property
    def in_key(self) -> bool:
        """True if the next character is inside a key."""

    @property
    def in_plain_string(self) -> bool:
        """True if the next character is inside a string, outside an escape."""

    @property
    def is_after_value(self) -> bool:
        """True if the value before the next character is whole, or may be."""

    @property
    def done(self) -> bool:
        """True if the outermost value is closed."""

    @property
    def broken(self) -> bool:
        """True if the character at `end` cannot be part of the value."""

    def after_value(self) -> int:
        """Return the state after a value at this place."""

    def before_key(self) -> Scanner:
        """Return a scanner that repairs nothing, before another key in the innermost bracket."""

    def run(self, text: str, pos: int, floor: int) -> bool:
        """Read on to the end of the container at depth `floor`, of the text, or to what does not fit."""

    def dump(self) -> list[Any]:
        """Return the state as JSON-able data."""


class JsonRepairer:
    """A filter that writes JSON instead of what the model wrote. `read` takes one character, or none if something held
    is decided first. Then `out` is the scanner's input, `note` a repair; `broken`: the character does not fit."""

    __slots__ = (
        "_comma", "_damage", "_doubled", "_held", "_mode", "_nested", "_phrase", "_rivals", "_symbols",
        "_tight", "ahead", "broken", "note", "out", "python_only", "quote", "spelled", "tail", "work",
    )  # fmt: skip

    def __init__(self, quote: str = '"', python_only: bool = False) -> None:
        self.python_only = python_only  # only Python's spelling is read; a repair of anything else breaks
        self._mode = PLAIN
        self._held = ""  # what is being read and not decided
        self._nested = 0  # brackets that a comment has opened
        self._comma = ""  # a comma and the blanks after it
        self.quote = quote  # of the open string
        self.spelled = False  # a single quote or a Python word was noted
        self._tight = False  # the last character closed a string
        self._damage = 0  # EARLIER or HERE
        self._phrase: str | None = None  # the text after the first quote in a damaged string, up to the second one
        self._symbols = False  # it has no letters and digits, and the second quote was the last character
        self._rivals: list[Scanner] = []  # each reads a quote in the string, and what follows, as further members
        self.tail: tuple[Any, int] | None = None  # a scanner of the text after a quote, and how much it has read
        self.ahead: tuple[Any, int, int, int] = None, 0, 0, 0  # a text, a place in it, the next marker's two ends
        self.work = 0  # the cost of looking for the end of the string
        self._doubled: list[int] = []  # depths of objects whose opening brace came twice
        self.out = ""
        self.note = ""
        self.broken = False

    def read(self, character: str, scanner: Scanner) -> bool:
        """Read a character. Return whether it was taken; if not, it is read again, or is `broken`."""
        self.out = self.note = ""
        self.broken = False
        if self._symbols and character.isalnum():
            return self._break()  # an operator is between two strings
        mode, self._symbols = self._mode, False
        taken = _READERS[mode](self, character, scanner)
        if taken and self._damage == HERE and CLOSING not in (mode, self._mode):
            self._note_part(character)
        if self.python_only and (self._damage or self.note not in _SPELLINGS):
            return self._break()
        return taken

    def passes(self, text: str) -> bool:
        """Return whether the repairer has nothing to do with this text of a string."""
        return (
            self._mode == PLAIN and not self._comma and "\\" not in text and self.quote not in text and '"' not in text
        )

    def end_of_run(self, text: str, pos: int) -> int:
        """Return up to where the text of a string, which begins at `pos`, is the same in JSON."""
        return _runs[self.quote](text, pos).end() if self.idle else pos  # type: ignore[union-attr]

    def _write(self, out: str) -> bool:
        self.out = self._comma + out
        self._comma = ""
        return True

    def _break(self) -> bool:
        self.broken = True
        return False

    # --- between tokens -------------------------------------------------------------------------------------------

    def _plain(self, character: str, scanner: Scanner) -> bool:
        state, tight, self._tight = scanner.state, self._tight, False
        if state < START:
            return self._in_string(character, state)
        if character in _BLANKS:
            return self._blank(character)
        if character in "#/":
            return self._comment_begins(character, scanner)
        if state >= SCALARS and not self._comma and character in _IN_NUMBER:
            return self._write(character)
        if self._closes_twice(character, len(scanner.stack)):
            return True
        state = _place(scanner)
        if self._comma:
            return self._after_comma(character, state)
        return self._break() if tight and character in _QUOTES else self._token(character, state, len(scanner.stack))

    def _closes_twice(self, character: str, depth: int) -> bool:
        """Return whether this is the second closing brace of an object whose opening brace came twice."""
        if not self._doubled or depth >= self._doubled[-1]:
            return False
        self._doubled.pop()
        self.note = character if character == "}" else self.note
        return character == "}"

    def _token(self, character: str, state: int, depth: int) -> bool:
        if state in (AFTER_ITEM, AFTER_MEMBER):
            return self._after_value(character, state)
        if state == FIRST_KEY and character == "{" and depth not in self._doubled[-1:]:
            if self._damage and not self._doubled:
                return self._break()
            self._doubled.append(depth)
            self._damage = EARLIER
            self.note = character
            return True
        if state in (KEY, FIRST_KEY):
            return self._key(character)
        if state in (MEMBER_VALUE, ITEM, FIRST_ITEM):
            return self._value(character, state)
        return self._write(character)

    def _blank(self, character: str) -> bool:
        if not self._comma:
            return self._write(character)
        if len(self._comma) > MOST_BLANKS:
            return self._write(character)
        self._comma += character
        return True

    def _after_comma(self, character: str, state: int) -> bool:
        if character in "}]":
            self.note, self._comma = self._comma, ""
            return False
        if character == ",":
            return self._break()  # something may be missing between them
        if state == AFTER_MEMBER and not (character in "\"'_$" or character.isalpha()):
            self._write("")  # not a key: an object may have been left unclosed
            return False
        return self._key(character) if state == AFTER_MEMBER else self._value(character, state)

    def _after_value(self, character: str, state: int) -> bool:
        if character == ",":
            self._comma = ","
            return True
        if state == AFTER_MEMBER and character in _QUOTES:
            self.note, self._comma = character, ", "
            return self._key(character)
        if state == AFTER_ITEM and character in "\"'{[0123456789":
            self.note, self._comma = character, ", "
            return self._value(character, state)
        return self._write(character)

    def _key(self, character: str) -> bool:
        if character in _QUOTES:
            return self._open(character)
        if character.isalpha() or character in "_$":
            return self._word_begins(character)
        return self._write(character)

    def _value(self, character: str, state: int) -> bool:
        if character == ":" and state == MEMBER_VALUE:
            self.note = character
            return True
        if character in _QUOTES:
            return self._open(character)
        return self._word_begins(character) if character.isalpha() or character == "-" else self._write(character)

    # --- words, comments ------------------------------------------------------------------------------------------

    def _word_begins(self, character: str) -> bool:
        self._mode, self._held = WORD, character
        return True

    def _is_key(self, scanner: Scanner) -> bool:
        state = _place(scanner)
        return state in (KEY, FIRST_KEY) or (state == AFTER_MEMBER and bool(self._comma))

    def bare_key(self, scanner: Scanner) -> str:
        """Return what was read of a key without quotes; "" if none is being read."""
        return self._held.rstrip(_BLANKS) if self._mode == WORD and self._is_key(scanner) else ""

    def _word(self, character: str, scanner: Scanner) -> bool:
        word = self._held
        if word == "-" and character.isdecimal():
            self._mode, self._held = PLAIN, ""
            self._write(word)
            return False
        is_key = self._is_key(scanner)
        if (character.isalnum() or character in "_$-") and word[-1] not in _BLANKS:
            if len(word) >= LONGEST_WORD:
                return self._break()
            self._held += character
            return True
        if is_key:  # only the colon confirms a key
            if character in _BLANKS and len(word) < LONGEST_WORD:
                self._held += character
                return True
            name = word.rstrip(_BLANKS)
            fits, written = character == ":", f'"{name}"{word[len(name) :]}'
        else:
            fits, written = word in WORDS, WORDS.get(word, "")
        if not fits:
            return self._break()
        self._mode, self._held = PLAIN, ""
        if word in PYTHON_WORDS:
            self._note_spelling(word)
        elif written != word:
            self.note = word
        self._write(written)
        return False

    def _comment_begins(self, opening: str, scanner: Scanner) -> bool:
        self._mode, self._held, self._nested = COMMENT, opening, 0
        self.note = opening if opening != "/" else ""
        if scanner.state >= SCALARS and self.note:
            self.out = " "  # or the text before and after it would be one number
        return True

    def _comment(self, character: str, scanner: Scanner) -> bool:
        """Read a comment. Hold its opening characters, and a star that may begin its end."""
        if self._held == "/":
            return self._comment_begins("/" + character, scanner) if character in "/*" else self._break()
        of_line = self._held[:2] != "/*"
        self._nested += (character in "{[") - (character in "}]")
        if of_line and self._nested < 0:
            return self._break()  # the bracket may be that of the value
        over = character in "\r\n" if of_line else self._held + character == "/**/"
        star = "*" if character == "*" and not of_line else ""
        self._mode, self._held = (PLAIN, "") if over else (COMMENT, self._held[:2] + star)
        return not (over and of_line)

    # --- strings --------------------------------------------------------------------------------------------------

    def _open(self, quote: str) -> bool:
        self.quote = quote
        if quote == "'":
            self._note_spelling(quote)
        return self._write('"')

    def _note_spelling(self, written: str) -> None:
        """Note the first place in Python's spelling: single quotes throughout and Python's words are one repair."""
        if not self.spelled:
            self.spelled, self.note = True, self.note or written

    def _in_string(self, character: str, state: int) -> bool:
        if state > KEY_STRING:  # in an escape that the scanner has begun
            return self._write(character)
        if character == "\\":
            self._mode, self._held = ESCAPE, character
            return True
        if character == self.quote:
            self._mode, self._held = CLOSING, character
            return True
        return self._write('\\"' if character == '"' else character)

    def _escape(self, character: str, scanner: Scanner) -> bool:
        if self.spelled or self.quote == "'":
            return self._python_escape(character)
        held = self._held + character
        if held == "\\'":
            return self._decided("'", held)
        if held[1] in _ESCAPES:
            return self._decided(held)
        if held[1] == "u" and (len(held) == 2 or character in _HEX_DIGITS):
            if len(held) == 6:
                return self._decided(held)
            self._held = held
            return True
        self._decided("\\" + self._held, self._held)
        return False

    def _python_escape(self, character: str) -> bool:
        """Read an escape after Python's spelling was seen; a wrong one is text, and JSON's slash is one in both."""
        escape, end, grows = more_of_escape(self._held, character, 0)
        if grows:
            self._held = escape
        elif escape[1] in "xuU" and is_short(escape):
            self._decided(json_text(escape), escape)
        else:
            self._decided("/" if escape == "\\/" else unescape(escape))
        return end == 1

    def _closing(self, character: str, scanner: Scanner) -> bool:
        """Read blanks and a comment after a quote, then decide whether the quote ends the string."""
        blanks, remark = self._after_quote()
        end = _end_of_comment(remark)
        decides = not remark or end > 0
        most = LONGEST_REMARK if remark else MOST_BLANKS
        if decides and (character in _ENDS_STRING or (character in _BLANKS and len(self._held) > most)):
            if (self._damage == HERE and self.has_rival()) or _closes_more(remark[:end]):
                return self._break()
            self._end_string(blanks + remark[end:], remark[:2].rstrip(_BLANKS))
            self._tight = not remark and (not blanks or scanner.stack[-1:] == ["["])
            return False
        fits = character in (_BLANKS if remark else _BLANKS + "/#")
        if not decides:
            fits = character not in "\"'\\" and (remark != "/" or character in "/*")
        if not fits or len(self._held) > most:
            return self._goes_on(scanner)
        self._held += character
        return True

    def _goes_on(self, scanner: Scanner) -> bool:
        """Make the quote that is held, and what is held after it, part of the string."""
        if scanner.in_key or self._damage == EARLIER or scanner.stack[-1] == "[":
            return self._break()  # in a list, the text between two strings may also be a string
        if (scanner.escaped or scanner.contains) and self._damage != HERE:
            return self._break()  # an escaped quote may be the end, after a backslash; or the end is before a marker
        note = "" if self._damage else self._held
        if not self._note_quote(scanner):
            return self._break()
        self._note_part(self._held[1:])
        quote = '\\"' if self.quote == '"' else self.quote
        self._decided(quote + escape_controls(self._held[1:]), note)
        return False

    def _note_quote(self, scanner: Scanner) -> bool:
        """Note a quote in a damaged string. Return False if two quotes surround an operator or a word, or if too many
        quotes may begin members."""
        phrase, self._phrase = self._phrase, None if self._damage == HERE else ""
        self._damage = HERE
        rival = scanner.before_key()
        self._rivals = [*self._rivals, rival]
        self._note_part(self.quote)
        if not phrase or len(self._rivals) > MOST_RIVALS:
            return len(self._rivals) <= MOST_RIVALS
        self._symbols = not any(map(str.isalnum, phrase))
        return not (phrase[0].isspace() and phrase[-1].isspace())

    def _note_part(self, text: str) -> None:
        """Note more text of a damaged string. Rivals that do not fit it are dropped, and those that are alike."""
        if self._phrase is not None and text != self.quote:
            self._phrase = self._phrase + text if len(self._phrase) < LONGEST_REMARK else None
        if not self._rivals:
            return
        written = text.translate(_SWAPPED) if self.quote == "'" else text
        alive = {}
        for each in self._rivals:
            each.run(written, 0, 0)
            if each.end == len(written) and not (each.broken or each.done):
                alive[each.state, *each.stack] = each
        self._rivals = [*alive.values()]

    def has_rival(self) -> bool:
        """Return whether a damaged string that the next quote ends may have ended earlier: the rest may be members."""
        return any(each.in_plain_string and not each.in_key for each in self._rivals)

    def _after_quote(self) -> tuple[str, str]:
        """Return the blanks held after a quote, and the comment after them."""
        rest = self._held[1:]
        remark = rest.lstrip(_BLANKS)
        return rest[: len(rest) - len(remark)], remark

    @property
    def idle(self) -> bool:
        """True if nothing is held."""
        return self._mode == PLAIN and not self._comma

    @property
    def at_quote(self) -> bool:
        """True if a quote is held, and the next character decides whether it ends the string."""
        return self._mode == CLOSING

    def crosses(self, character: str, scanner: Scanner) -> bool:
        """Return whether this closing bracket comes after a value and does not match the innermost open one."""
        after = character in _OPENERS and bool(scanner.stack) and self.idle and scanner.is_after_value
        return after and scanner.stack[-1] != _OPENERS[character]

    @property
    def damaged(self) -> bool:
        """True if the open string contains a quote."""
        return self._damage == HERE

    @property
    def in_damaged(self) -> bool:
        """True if the next character is in such a string, outside an escape."""
        return self._damage == HERE and self._mode == PLAIN

    def begin_call(self) -> None:
        """Forget the damage of another call."""
        self._damage = 0

    def keep_quote(self, scanner: Scanner) -> None:
        """Make the next quote part of a damaged string; `out` is the scanner's input."""
        self.broken = not self._note_quote(scanner)
        self._decided('\\"' if self.quote == '"' else self.quote)

    def end_string(self) -> None:
        """End the string with the quote that is held, or the next one; `out` is the scanner's input."""
        self.broken = False
        self._end_string(self._after_quote()[0])

    def _end_string(self, blanks: str, note: str = "") -> None:
        self.quote = '"'
        self._rivals, self._phrase, self._symbols = [], None, False
        self._damage, self.work, self.tail = min(self._damage, EARLIER), 0, None
        self._decided('"' + blanks, note)

    def _decided(self, out: str, note: str = "") -> bool:
        self._mode, self._held, self.note = PLAIN, "", note
        return self._write(out)

    def dump(self) -> list[Any]:
        """Return the state as JSON-able data."""
        nested = self._nested if self._mode == COMMENT else 0
        place = [self._mode, self._held, nested, self._comma, self.quote, [*self._doubled]]
        rivals = [rival.dump() for rival in self._rivals]
        return [*place, self._damage, self.work, self.spelled, self.python_only, self._phrase, self._symbols, rivals]

    @classmethod
    def load(cls, data: Any, load_scanner: Callable[[Any], Scanner]) -> JsonRepairer:
        """Load what `dump` returned. `load_scanner` does the same for a scanner."""
        mode, held, nested, comma, quote, doubled, damage, work, spelled, python_only, *string = data
        repairer = cls(quote, python_only)
        repairer._mode, repairer._held, repairer._nested = mode, held, nested
        repairer._comma, repairer._doubled = comma, [*doubled]
        repairer._damage, repairer.work, repairer.spelled = damage, work, spelled
        repairer._phrase, repairer._symbols, rivals = string
        repairer._rivals = [load_scanner(each) for each in rivals]
        return repairer


def _place(scanner: Scanner) -> int:
    """Return the state of a scanner, or the state after a number that may be over."""
    return scanner.after_value() if scanner.state >= SCALARS else scanner.state


def _closes_more(comment: str) -> bool:
    """Return whether a comment of a line has a bracket that may be that of the value before it."""
    depths = accumulate((each in "{[") - (each in "}]") for each in comment)
    return not comment.startswith("/*") and any(depth < 0 for depth in depths)


def _end_of_comment(text: str) -> int:
    """Return where the comment ends with which `text` begins, 0 if it goes on."""
    if text.startswith("/*"):
        return text.find("*/", 2) + 2 if "*/" in text[2:] else 0
    ends = [at for at in (text.find("\n"), text.find("\r")) if at > 0]
    return min(ends, default=0)


_READERS: dict[str, Callable[[JsonRepairer, str, Scanner], bool]] = {
    PLAIN: JsonRepairer._plain,
    CLOSING: JsonRepairer._closing,
    ESCAPE: JsonRepairer._escape,
    WORD: JsonRepairer._word,
    COMMENT: JsonRepairer._comment,
}
