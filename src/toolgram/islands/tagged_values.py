r"""Values between markers: raw text, or a JSON or Python literal, decided as early as possible.

Strategy: the types of the parameter decide how it is read, by one rule for every format.

* Only text: every character is passed on at once, as the inside of a JSON string.
* Never text: a bracket begins a literal if an object or a list is allowed; it is transcoded as it comes. A number or a
  word is held to its end, which is near. It is a literal if it fits an allowed type, in the order null, boolean,
  integer, number, object, list (`1` and `0` are booleans if no number is allowed); anything else is text, and odd.
* Either: from the first character that no literal of an allowed type can have, it is text. Until then it is held, and
  at its end it is a literal if it is whole and of an allowed type, else text.
* Unknown: the same, but only JSON that would be written the same way is a literal. `3.10` is text, because the number
  is written `3.1`.

A list or object that is certain and wrong in one place is repaired (`literal_repairs`); a code fence may be around it.
A closing marker closes what is open in it.

JSON escaped once too often (`[{\"a\": 1}]`) begins with a quote after a backslash, which nothing else does; it is
read without these backslashes. If a marker says that JSON follows (`quoted`), text is in quotes. A number is passed on
as written.

The scanner of Python literals reads all literals, JSON too: templates print both, and they differ only in words, quotes
and one escape (`\/`), which Python never writes.
"""

from __future__ import annotations

import json
import re
from json.encoder import encode_basestring
from typing import Any

from toolgram.islands.held_text import add_piece, take_pieces
from toolgram.islands.literal_repairs import FENCE, LiteralScanner, RepairedLiteral
from toolgram.islands.python_literals import PythonScanner
from toolgram.limits import BLANKS, MAX_DIGITS
from toolgram.tools.parameters import TEXT_ONLY, Types

BEGIN, TEXT, HELD, STREAMED, BROKEN = "begin", "text", "held", "streamed", "broken"

_OPENING = '{"_": '  # written by the scanner before the value of its only argument
_KINDS = {"{": "object", "[": "array", **dict.fromkeys("tTfF", "boolean"), **dict.fromkeys("nN", "null")}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?").fullmatch
_WHOLE = re.compile(r"-?[0-9]+(?:\.0+)?").fullmatch
_SHORT_NUMBER = re.compile(r"(?:0|-?[1-9][0-9]{0,14}|(-?(?:0|[1-9][0-9]{0,14})\.[0-9]{1,15}))").fullmatch
_PLAIN_WORDS = frozenset({"true", "false", "null"})
_BEGINS_TEXT = re.compile(r"[a-eg-mo-su-zA-EG-MO-SU-Z]").match  # and no word of JSON or Python
_ESCAPE = re.compile(r"\\(.)|[^\\]+", re.DOTALL).finditer
_ESCAPED = {'"': '"', "\\": "\\", "/": "/", "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_BEFORE_TOKEN = "[{ \t\r\n"
_BITS = {"1": "true", "0": "false"}
_BLANKS = " \t\r\n"
REPAIRED, UNCLOSED = "repaired_json", "unclosed_arguments"
_FENCE = re.compile(rf"```[ \t]?\w{{0,16}}{BLANKS}(?=[\[{{])").match
_FENCE_BEGUN = re.compile(rf"`{{1,2}}|```[ \t]?\w{{0,16}}{BLANKS}").fullmatch


def _is_written_so(text: str) -> bool:
    """Return whether a text is JSON whose numbers `json` would write the same way."""
    try:
        json.loads(text, parse_int=_exact_integer, parse_float=_exact_number, parse_constant=_no_number)
    except ValueError:
        return False
    return True


def _exact_integer(text: str) -> None:
    if text == "-0" or len(text) > MAX_DIGITS:
        raise ValueError(text)


def _exact_number(text: str) -> None:
    if repr(float(text)) != text:
        raise ValueError(text)


def _no_number(text: str) -> None:
    raise ValueError(text)


class TaggedValue:
    """A value that is being read. `types` are its JSON types, None for any; text is `quoted` or not. A `trimmed` one
    has no blanks at its ends.

    Pass the text between the markers to `read`, and take its `out`; then `finish` returns the rest. Together they are
    one JSON value, at any time a prefix of one, possibly empty. `broken`: a literal that was already passed on goes
    wrong at this place; `odd`: the value does not have a declared type.
    """

    __slots__ = (
        "_escapes", "_fenced", "_held", "_literal", "_mode", "_quoted", "_rest", "_scanner", "_tail", "_trimmed",
        "_types", "back", "odd", "out", "repairs", "tail",
    )  # fmt: skip

    def __init__(self, types: Types, quoted: bool = False, trimmed: bool = False) -> None:
        self._types = types
        self._quoted = quoted
        self._trimmed = trimmed
        self._tail: list[str] = []  # blanks that are text if more text follows them
        self.tail = 0  # characters that the last `read` took after those that wrote `out`
        self._escapes = ""  # of a streamed literal: "?" while only brackets have come, "\\" once it is escaped
        self._mode = BEGIN
        self._held: list[str] = []  # source of a literal that is not certain,
        self._literal: list[str] = []  # and its JSON, or that of the quote that opens a text
        self._scanner: PythonScanner | None = None
        self._fenced = False  # the literal is in a fence
        self._rest: RepairedLiteral | None = None  # reads a literal after the place where it is wrong
        self.repairs: list[str] = []  # kinds of anomalies in the literal
        self.back = 0  # how far before the end of the last `read` the first of them is
        self.out = ""
        self.odd = False
        if types == TEXT_ONLY and not quoted and not trimmed:
            self._mode = TEXT
            self._literal.append('"')

    @staticmethod
    def plain(raw: str, types: Types, trimmed: bool) -> str | None:
        """Return the JSON of a whole value that is certainly text, a number or a word; None if it has to be read."""
        if types == TEXT_ONLY:
            return encode_basestring(raw.strip(_BLANKS) if trimmed else raw)
        number = _SHORT_NUMBER(raw)
        if number is not None:
            if types is None:
                return raw if number[1] is None or repr(float(raw)) == raw else None
            fits = "number" in types or (number[1] is None and "integer" in types)
            return raw if fits else None
        if raw in _PLAIN_WORDS:
            return raw if types is None or _KINDS[raw[0]] in types else None
        if (types is None or "string" in types) and _BEGINS_TEXT(raw) is not None:
            return encode_basestring(raw.strip(_BLANKS) if trimmed else raw)
        return None

    @property
    def is_text(self) -> bool:
        """True if everything before the marker is text, and its opening quote is written."""
        return self._mode == TEXT and not self._literal and not self._trimmed

    @property
    def waits(self) -> list[str] | None:
        """The trailing blanks of trimmed text that has begun, which are text if more text follows; else None."""
        return self._tail if self._mode == TEXT and self._trimmed and not self._literal else None

    def wait(self, blanks: str) -> None:
        """Continue where trimmed text ends in these blanks."""
        self._tail = [blanks] if blanks else []

    @property
    def broken(self) -> bool:
        """True if the text that was passed on cannot be continued."""
        return self._mode == BROKEN

    @property
    def is_literal(self) -> bool:
        """True if the value is certainly a literal, which is passed on as it comes."""
        return self._mode == STREAMED

    @property
    def in_string(self) -> bool:
        """True if the next character is inside a string of a certain literal, so no marker can begin there."""
        reader = self._rest or self._scanner
        return self._mode == STREAMED and reader is not None and reader.in_string

    @property
    def in_damaged(self) -> bool:
        """True if this string contains a quote that is not escaped."""
        return self._rest is not None and self._rest.repairer.damaged

    @property
    def done(self) -> bool:
        """Return False: only a marker ends the value."""
        return False

    def read(self, text: str, pos: int, final: bool) -> int:
        """Read on from `pos`; `out` is the JSON that is now certain. Return where it breaks, or the end."""
        known = len(self.repairs)
        at = self.read_to_repair(text, pos, final)
        place = at - self.back
        while at < len(text) and not self.broken:
            out, tail, begin, fresh = self.out, self.tail, at, len(self.repairs) == known
            at = self.read_to_repair(text, begin, final)
            place = at - self.back if fresh else place
            self.tail = self.tail if self.out else tail + at - begin
            self.out = out + self.out
        self.back = at - place
        return at

    def read_to_repair(self, text: str, pos: int, final: bool) -> int:
        """Read on from `pos` like `read`, but stop at a place where the value is repaired."""
        piece, self.tail, self.back = text[pos:], 0, 0
        if self._mode == BEGIN and not self._fenced:
            bare = piece.lstrip(_BLANKS)
            if not bare:
                add_piece(self._held, piece)
                self.out = ""
                return len(text)
            self._fenced = bare[0] == "`" and self._is_certain("{") | self._is_certain("[")
            if not self._fenced:
                self._begin(bare[0])
            piece = bare if self._trimmed and self._mode == TEXT else piece
        if self._mode == BEGIN:
            return pos + self._fence(piece)
        if self._mode == TEXT:
            self.out = self._text(piece)
        elif self._mode == STREAMED:
            return pos + self._stream(piece)
        else:
            self._scan(piece)
            self.tail = 0
            add_piece(self._held, piece)
            add_piece(self._literal, self.out)
            self.out = "" if self._mode == HELD else self._as_text()
        return len(text)

    def finish(self) -> str:
        """Return the JSON that the closing marker makes certain."""
        mode, types = self._mode, self._types
        if mode == BROKEN:
            return ""
        if mode == STREAMED:
            return self._close()
        if mode == HELD:
            written = "".join(self._literal) + self._close()
            source = "".join(self._held).strip(_BLANKS)
            whole = self._mode != BROKEN and written
            if whole and self._fits(written, source):
                return written
            if whole and source in _BITS and self._types is not None and "boolean" in self._types:
                return _BITS[source]
        if mode in (BEGIN, HELD):
            self._mode = TEXT
            self.odd = types is not None and "string" not in types
            return self._as_text() + '"'
        return self._text("") + '"'

    def _is_certain(self, bracket: str) -> bool:
        """Return whether this bracket at the beginning certainly begins a literal: its type is allowed, text is not."""
        types = self._types
        return types is not None and "string" not in types and (not types or _KINDS[bracket] in types)

    def _fence(self, piece: str) -> int:
        """Read the opening fence of a code block, up to the bracket after it. Return how much of the piece fits."""
        add_piece(self._held, piece)
        text = "".join(self._held)
        bare = text.lstrip(_BLANKS)
        match = _FENCE(bare)
        self.out = ""
        if match is not None and self._is_certain(bare[match.end()]):
            self._held.clear()
            self._begin(bare[match.end()])
            self.repairs.append(REPAIRED)
            self.back = match.end()
            return len(piece) - len(bare) + match.end()  # the rest is read after the repair
        if match is not None or not _FENCE_BEGUN(bare):
            self._fenced = False
            self.out = self._as_text()
        return len(piece)

    def _begin(self, first: str) -> None:
        """Choose the mode by the first character that is not a blank."""
        types = self._types
        digits = "-0123456789" if types is None else "-+.0123456789"  # JSON, or Python as well
        kinds = {_KINDS.get(first, "number" if first in digits else "string")}
        if "number" in kinds:
            kinds |= {"integer", "boolean"} if first in "01" else {"integer"}
        literal = kinds != {"string"} or (self._quoted and first in "\"'")
        if literal and (not types or kinds & types):
            certain = first in "{[" and self._is_certain(first)
            self._mode = STREAMED if certain else HELD
            self._escapes = "?" if certain else ""
            self._held = [] if certain else self._held
            self._start(LiteralScanner if certain else PythonScanner)
        else:
            self._mode = TEXT
            self._literal = ['"', "" if self._trimmed else encode_basestring("".join(self._held))[1:-1]]
            self._held = []
            self.odd = types is not None and "string" not in types

    def _start(self, kind: type[PythonScanner]) -> None:
        self._scanner = kind()
        self._scanner.read("_=", 0)
        self._scanner.alone = True

    def _stream(self, text: str) -> int:
        """Pass on a certain literal, without the backslashes of an escaped one."""
        begin = 0
        if self._escapes == "?":
            begin = len(text) - len(text.lstrip(_BEFORE_TOKEN))
            if begin < len(text) and text[begin] != "\\":
                self._escapes = ""
            elif begin < len(text):
                self.out, self.tail = "", 0
                end = self._scan(text[:begin]) if begin else 0
                if end == begin and self._mode != BROKEN:
                    self._escapes = "\\"
                    self.repairs.append(REPAIRED)
                return end
        return self._without_escapes(text) if self._escaped else self._scan(text)

    def _without_escapes(self, text: str) -> int:
        """Pass on an escaped literal. Return how much of it fits."""
        waiting, written, mark = len(self._escapes) - 1, "", 0
        rest = "\\" * waiting + text
        end, self._escapes = len(text), "\\"
        for unit in _ESCAPE(rest):
            taken = self._scan(_ESCAPED.get(unit[1], unit[0]) if unit[1] else unit[0])
            written += self.out
            if self.out:
                mark = (unit.end() if unit[1] else unit.start() + taken) - waiting - self.tail
            if self._mode == BROKEN:
                end = max(0, unit.start() + (1 if unit[1] else taken) - waiting)
                break
        if self._mode != BROKEN and (len(rest) - len(rest.rstrip("\\"))) % 2:
            self._escapes = "\\\\"
        self.out, self.tail = written, max(0, end - mark)
        return end

    @property
    def _escaped(self) -> bool:
        """True if the literal was escaped once too often."""
        return self._escapes.startswith("\\")

    def _scan(self, text: str) -> int:
        """Pass text to the scanner of literals; return how much of it fits."""
        if self._rest is not None:
            return self._repair(self._rest, text, 0, [], 0)
        scanner = self._scanner
        assert scanner is not None
        end = scanner.read(text, 0)
        self.out = scanner.out.removeprefix(_OPENING)
        self.tail = end - scanner.mark
        if scanner.broken:
            rest = self._begin_repair()
            if rest is None:
                return end
            if REPAIRED not in self.repairs:
                self.repairs.append(REPAIRED)
                return end
            return self._repair(rest, text, end, [self.out], end - self.tail)
        return end

    def _begin_repair(self) -> RepairedLiteral | None:
        """Return the reader of the rest after the scanner of literals has broken, if one can go on."""
        scanner, rest = self._scanner, None
        if isinstance(scanner, LiteralScanner) and not self._escaped:
            rest = scanner.rest(FENCE if self._fenced else 0)
        if rest is None or rest.broken:
            self._mode = BROKEN
            return None
        self._rest, self._scanner = rest, None
        self.out += rest.out
        self.tail = 0 if rest.out else self.tail
        return rest

    def _repair(self, rest: RepairedLiteral, text: str, pos: int, parts: list[str], mark: int) -> int:
        """Read on from `pos`; the text before `mark` has written `parts`."""
        while pos < len(text) and not rest.broken:
            rest.read(text[pos])
            pos += not rest.broken
            if rest.out:
                parts.append(rest.out)
                mark = pos
        if rest.broken:
            self._mode = BROKEN
        self.out, self.tail = "".join(parts), pos - mark
        return pos

    def _close(self) -> str:
        """Return the rest of a literal that the scanner writes when nothing follows."""
        rest, scanner, written = self._rest, self._scanner, ""
        if scanner is not None:
            scanner.alone = False
            scanner.read(")", 0)
            if scanner.done:
                return scanner.out.removeprefix(_OPENING).removesuffix("}")
            if scanner.broken:
                written, self.out = scanner.out.removeprefix(_OPENING), ""
                rest = self._begin_repair()
            if rest is None:
                self._mode = BROKEN
                return ""
        assert rest is not None
        written += rest.finish()
        if rest.broken:
            self._mode = BROKEN
            return ""
        if rest.closers:
            self.repairs.append(UNCLOSED)
        return written

    @property
    def unclosed(self) -> bool:
        """True if a certain literal is not whole."""
        reader = self._rest or self._scanner
        return self._mode == STREAMED and reader is not None and not reader.is_whole

    def _fits(self, written: str, source: str) -> bool:
        """Return whether a held literal, now whole, has an allowed type."""
        types = self._types
        if types is None:
            return _is_written_so(source)
        if written[0] == '"':
            return self._quoted
        if written[0] in "{[tfn":
            return not types or _KINDS[written[0]] in types
        if _NUMBER(source) is None:
            return False  # numbers in Python only: `+49 30`, `1_000`
        return not types or "number" in types or ("integer" in types and _WHOLE(source) is not None)

    def _text(self, text: str) -> str:
        written = encode_basestring(self._without_tail(text) if self._trimmed else text)[1:-1]
        if self._literal:
            written = "".join(self._literal) + written
            self._literal.clear()
        return written

    def _without_tail(self, text: str) -> str:
        """Return the text up to its last character that is not a blank, with the blanks held before it."""
        kept = text.rstrip(_BLANKS)
        if not kept:
            add_piece(self._tail, text)
            self.tail = 0
            return ""
        before, rest = take_pieces(self._tail), text[len(kept) :]
        add_piece(self._tail, rest)
        self.tail = len(rest)
        return before + kept

    def _as_text(self) -> str:
        """Turn what was held into text, from its first character on."""
        self._mode = TEXT
        self._literal.clear()
        self._scanner = None
        text = "".join(self._held)
        self._held.clear()
        self.odd = self._types is not None and "string" not in self._types
        if self._trimmed:
            text = self._without_tail(text.lstrip(_BLANKS))
        return '"' + encode_basestring(text)[1:-1]

    def open_brackets(self) -> None:
        """Return None: a marker ends the rest of tagged arguments, and brackets do not count."""

    def dump(self) -> list[Any]:
        """Return the state as JSON-able data."""
        undecided = self._mode in (BEGIN, HELD)
        types = sorted(self._types) if undecided and self._types is not None else None
        scanner = self._scanner.dump() if self._scanner else None
        rest = self._rest.dump() if self._rest else None
        spelt = [undecided and self._quoted, self._trimmed, "".join(self._tail), self._escapes]
        read = [self._mode, "".join(self._held), "".join(self._literal), scanner, self.odd]
        return [types, *spelt, *read, self._fenced, rest, bool(self.repairs)]

    @classmethod
    def load(cls, data: Any) -> TaggedValue:
        """Load what `dump` returned."""
        value = cls(None)
        value._set(data)
        return value

    def _set(self, data: Any) -> None:
        """Set the state that was dumped."""
        types, self._quoted, self._trimmed, tail, self._escapes, self._mode, held, literal, *more = data
        scanner, self.odd, self._fenced, rest, repaired = more
        self._types = None if types is None else frozenset(types)
        self.wait(tail)
        self._held, self._literal = ([held] if held else []), ([literal] if literal else [])
        self.repairs = [REPAIRED] if repaired else []
        if rest is not None:
            self._rest = RepairedLiteral.load(rest)
        elif scanner is not None:
            self._scanner = (LiteralScanner if self._mode == STREAMED else PythonScanner).load(scanner)
