r"""Python arguments whose quotes and commas follow no rule: `f(city=New York, days="2", note="say "hi"" unit=C)`.

Some templates print the calls of a conversation like Python, but without quotes around text, with quotes around
everything, or without commas; models that have read many of these write both such calls and proper Python.  What is
declared tells arguments apart where the notation does not.

Strategy: a list of `name=value`, read as tagged arguments are.  The name of a parameter with its equals sign is the
marker that begins an argument; what follows is

* quoted: up to the quote after which a next argument or the closing parenthesis comes,
* a container, read by the scanner of Python,
* bare: up to a comma before the next argument, or to the parenthesis that nothing inside has opened.

A bare value, and a quoted one where quotes stand around everything (`quoted`), is what its declared type says, by the
rule of `tagged_values`.  Only text is passed on before its end; a value of another type is short, and bounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from json.encoder import encode_basestring
from typing import Any

from toolgram.islands import OpenBrackets, checked, dump_types, load_types
from toolgram.islands.python_literals import PythonScanner
from toolgram.islands.python_repairs import RepairingPythonScanner
from toolgram.islands.python_tokens import BLANKS, ESCAPE_PATTERN, always, is_short, more_of_escape, unescape
from toolgram.islands.tagged_values import TaggedValue
from toolgram.limits import MAX_LOOSE_VALUE, MOST_BETWEEN, MOST_LOOSE_NAMES
from toolgram.tools.parameters import TEXT_ONLY, Parameters, Types

_BLANK = rf"[{BLANKS}]*"
_name = always(rf"{_BLANK}(?:(?P<name>[^\W\d]\w*)|(?P<close>\)))?")
_rest_of_name = re.compile(r"\w+").match
_equals = always(rf"{_BLANK}(?P<equals>=)?")
_between = always(rf"{_BLANK}(?P<comma>,{_BLANK})?(?P<name>[^\W\d]\w*{_BLANK})?")
_blanks = always(_BLANK)
_ESCAPES = partial(re.sub, ESCAPE_PATTERN.removesuffix("?"), flags=re.DOTALL)
_bare_run = re.compile(r"[^,()=]+").match
_quoted_run = {quote: re.compile(rf"[^{quote}\\()]+").match for quote in "'\""}
_literal_then_name = re.compile(
    rf"(?P<value>true|false|null|True|False|None|[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?){_BLANK}(?P<name>[^\W\d]\w*){_BLANK}"
).fullmatch


class LoosePythonScanner:
    """Reads loose keyword arguments, from after the `(` of a call to its `)`, and writes JSON.

    It is used as `PythonScanner` is. `declared` are the parameters of the function, None if it is not known; with
    `quoted`, quotes stand around values of every type. `notes` is what was repaired since it was last emptied.
    """

    __slots__ = (
        "_blank", "_container", "_depth", "_escape", "_held", "_lead", "_name", "_names", "_opened", "_parts", "_quote",
        "_quoted", "_source", "_spaced", "_state", "_types", "alone", "broken", "declared", "done", "empty", "end",
        "mark", "notes", "out", "started",
    )  # fmt: skip

    def __init__(self, declared: Parameters | None = None, quoted: bool = False) -> None:
        self.declared = declared
        self.out = ""
        self.end = self.mark = 0
        self.started = self.empty = self.done = self.broken = self.alone = False
        self.notes: list[str] = []
        self._quoted = quoted
        self._state = "first"
        self._lead = "{"
        self._name = ""
        self._names: list[str] = []  # those that have had a value
        self._types: Types = None  # of the value that is read
        self._opened = False  # its quote is written, where it is text
        self._source = ""  # all of it, where it may be no text
        self._container: PythonScanner | None = None
        self._quote = ""
        self._escape = ""
        self._blank = ""  # in front of the value: text, but for one like that in front of the equals sign
        self._spaced = False
        self._held = ""  # behind a quote or from a comma on: the end of the value, or a part of it
        self._depth = 0  # parentheses that are open in the value
        self._parts: list[str] = []

    def run(self, text: str) -> bool:
        """Consume `text`, a whole delta. Returns whether there is more to come, and nothing to look at."""
        self.end = self.read(text, 0)
        return not (self.done or self.broken or self.notes)

    def read(self, text: str, pos: int, final: bool = False) -> int:
        """Consume `text` from `pos` on; return the position after what was consumed, and leave the JSON in `out`."""
        parts = self._parts
        parts.clear()
        self.mark, written, size = pos, 0, len(text)
        while pos < size and not (self.broken or self.done or self.notes):
            pos = _READERS[self._state](self, text, pos)
            if len(parts) > written:
                self.mark, written = pos, len(parts)
        self.out = "".join(parts)
        return pos

    def passes(self, text: str) -> bool:
        """Any text may end a value here."""
        return False

    def open_brackets(self) -> OpenBrackets:
        """The brackets that are open, that of the arguments first."""
        inner = self._container.open_brackets() if self._container is not None else OpenBrackets("")
        quote = self._quote[:1] if self._state == "string" else inner.quote
        return OpenBrackets("(" + inner.stack, quote, python=True)

    @property
    def in_string(self) -> bool:
        """Whether the next character is inside a value."""
        return self._state in ("string", "quote", "bare", "comma")

    # --- names ----------------------------------------------------------------------------------------------------

    def _begin(self, text: str, pos: int) -> int:
        match = _name(text, pos)
        if match["close"]:
            self.empty = self._state == "first"
            self._close()
        elif match["name"]:
            self._name, self._state, self._spaced = match["name"], "name", False
        else:
            self.broken = match.end() < len(text)
        return match.end()

    def _more_of_name(self, text: str, pos: int) -> int:
        match = _rest_of_name(text, pos)
        self._name += match.group() if match else ""
        self._state = "name" if match else "equals"
        return match.end() if match else pos

    def _after_name(self, text: str, pos: int) -> int:
        match = _equals(text, pos)
        if match["equals"]:
            self._state, self._spaced = "value", self._spaced or match.group() != "="
        else:
            self._spaced = self._spaced or bool(match.group())
            self.broken = match.end() < len(text)
        return match.end()

    def _may_have(self, name: str) -> bool:
        """Whether an argument of this name may come: one that is declared, or any that no parenthesis stands before."""
        if name in self._names:
            return False
        return not self._depth or (self.declared is not None and name in self.declared.types)

    # --- where a value begins -------------------------------------------------------------------------------------

    def _begin_value(self, text: str, pos: int) -> int:
        match = _blanks(text, pos)
        self._blank += match.group()
        at = match.end()
        if at == len(text):
            return at
        self._types = None if self.declared is None else self.declared.types_for(self._name)
        self._write_name()
        blank = self._blank[1:] if self._spaced else self._blank
        self._blank, self._spaced = "", False
        if text[at] in "'\"":
            self._quote, self._state = text[at], "opening"
            return at + 1
        if text[at] in "{[" and not self._is_text:
            self._container, self._state = RepairingPythonScanner(keywords=False), "container"
            return at
        self._state = "bare"
        if self._is_text:
            self._say(blank)
        return at

    def _write_name(self) -> None:
        self._parts += [self._lead, json.dumps(self._name, ensure_ascii=False), ": "]
        self._lead, self._depth = ", ", 0
        if len(self._names) < MOST_LOOSE_NAMES:
            self._names.append(self._name)
        self.started = self.started or self.declared is not None

    @property
    def _is_text(self) -> bool:
        """The value that is read is text, whatever it looks like."""
        if self._types == TEXT_ONLY:
            return True
        return bool(self._quote) and not (self._quoted or (self._types and "string" not in self._types))

    def _say(self, text: str, source: str = "") -> None:
        """More of a value, and how it is written where that is not the same: text is passed on, any other is held."""
        if self._is_text:
            self._open_text()
            self._parts.append(encode_basestring(text)[1:-1])
        else:
            self._source += source or text
            self.broken = len(self._source) > MAX_LOOSE_VALUE

    def _open_text(self) -> None:
        if not self._opened:
            self._parts.append('"')
            self._opened = True

    def _end_value(self) -> None:
        """The value is over: JSON of its type."""
        if self._is_text:
            self._open_text()
            self._parts.append('"')
        else:
            self._parts.append(_judged(self._source, self._types, bool(self._quote)))
        self._source, self._opened, self._quote, self._held, self._depth = "", False, "", "", 0
        self._name, self._types, self.started = "", None, True

    def _close(self) -> None:
        self._parts.append("{}" if self._lead == "{" else "}")
        self.done = True
        self.started = self.started or not self.empty

    # --- values ---------------------------------------------------------------------------------------------------

    def _more_of_container(self, text: str, pos: int) -> int:
        container = self._container
        assert container is not None
        pos = container.read(text, pos)
        if container.out:
            self._parts.append(container.out)
            self.started = True
        notes = getattr(container, "notes", [])
        self.notes += notes
        notes.clear()
        self.broken = container.broken
        if container.done:
            self._container, self._name, self._types, self._state = None, "", None, "after"
        return pos

    def _after_value(self, text: str, pos: int) -> int:
        """After a container, or a string in three quotes: the comma may be missing."""
        match = _blanks(text, pos)
        at = match.end()
        if at == len(text):
            return at
        if text[at] == ")":
            self._close()
        elif text[at] == ",":
            self._state = "next"
        elif text[at].isalpha() or text[at] == "_":
            self.notes.append(text[at])
            self._state = "next"
            return at
        else:
            self.broken = True
            return at
        return at + 1

    def _bare(self, text: str, pos: int) -> int:
        match = _bare_run(text, pos)
        if match is not None:
            self._say(match.group())
            return match.end()
        char = text[pos]
        if char == "=" and not self._is_text:
            return self._next_without_comma(pos)
        if char == ")" and not self._depth:
            self.notes += [self._name] if self._is_text else []
            self._end_value()
            self._close()
            return pos + 1
        if char == ",":
            self._state = "comma"
            return pos
        self._depth += {"(": 1, ")": -1}.get(char, 0)
        self._say(char)
        return pos + 1

    def _next_without_comma(self, pos: int) -> int:
        """An equals sign after a bare value: it ends with the name of the next argument, or this is no argument."""
        match = _literal_then_name(self._source)
        if match is None or not self._may_have(match["name"]):
            self._say("=")
            return pos + 1
        self._source = match["value"]
        self._go_on(match["name"], True)
        return pos + 1

    def _go_on(self, name: str, noted: bool) -> None:
        """The value is over, and the next argument has begun."""
        self.notes += [name] if noted else []
        self._end_value()
        self._name, self._state, self._spaced = name, "value", False

    # --- quotes ---------------------------------------------------------------------------------------------------

    def _opening(self, text: str, pos: int) -> int:
        """After a quote: two more make it a quote of three; two quotes are an empty text."""
        quote = self._quote[0]
        if text[pos] == quote and len(self._quote) < 3:
            self._quote += quote
            return pos + 1
        empty = len(self._quote) == 2
        self._quote = quote if empty else self._quote
        self._state = "quote" if empty else "string"
        self._held = quote if empty else ""
        return pos

    def _string(self, text: str, pos: int) -> int:
        quote = self._quote[0]
        if self._escape:
            return self._more_of_escape(text, pos)
        match = None if self._held else _quoted_run[quote](text, pos)
        if match is not None:
            self._say(match.group())
            return match.end()
        char = text[pos]
        if len(self._quote) == 3 and (self._held or char == quote):
            return self._three_quotes(char, pos)
        if char == "\\":
            self._escape = char
        elif char == quote:
            self._held, self._state = char, "quote"
        else:
            self._depth = max(0, self._depth + (1 if char == "(" else -1))
            self._say(char)
        return pos + 1

    def _three_quotes(self, char: str, pos: int) -> int:
        if char != self._quote[0]:
            held, self._held = self._held, ""
            self._say(held)
            return pos
        self._held += char
        if self._held == self._quote:
            self._end_value()
            self._state = "after"
        return pos + 1

    def _more_of_escape(self, text: str, pos: int) -> int:
        escape, end, grows = more_of_escape(self._escape, text, pos)
        self._escape = escape if grows else ""
        if not grows:
            self._say(_unescaped(escape), escape)
        return end

    # --- where a value ends ---------------------------------------------------------------------------------------

    def _behind(self, text: str, pos: int) -> int:
        """From a quote or a comma on: the next argument or the end; else this was a part of the value."""
        held = self._held + text[pos:]
        begun = 1 if self._state == "quote" else 0
        match = _between(held, begun)
        end, name = match.end(), (match["name"] or "").rstrip(BLANKS)
        if end == len(held) and end <= MOST_BETWEEN:
            self._held = held
            return len(text)
        back = pos - len(self._held)
        char = held[end : end + 1]
        if end <= MOST_BETWEEN and name and char == "=" and self._may_have(name) and (begun or match["comma"]):
            self._go_on(name, not match["comma"])
            self._spaced = name != match["name"]
            return back + end + 1
        if end <= MOST_BETWEEN and not name and char == ")" and not self._depth:
            self._end_value()
            self._close()
            return back + end + 1
        end = min(end, MOST_BETWEEN + 1)
        self._is_part(held[:end])
        return back + end

    def _is_part(self, text: str) -> None:
        """The quote or comma was a part of the value, and so is what follows it here."""
        if self._state == "quote":
            self.notes.append(text[0])
        self._state = "string" if self._state == "quote" else "bare"
        self._say(text)
        self._held = ""

    # --- snapshots ------------------------------------------------------------------------------------------------

    def dump(self) -> list[Any]:
        """All that the next `read` depends on but for what is declared, as JSON-able data."""
        container = None if self._container is None else self._container.dump()
        texts = [self._state, self._lead, self._name, self._source, self._quote, self._escape, self._blank, self._held]
        flags = [self.started, self._quoted, self._opened, self._spaced, self._depth, [*self._names], [*self.notes]]
        return [*texts, *flags, dump_types(self._types), container]

    @classmethod
    def load(cls, data: Any) -> LoosePythonScanner:
        """The inverse of `dump`; `declared` is set after it. Raises ValueError for anything else."""
        quotes, depths = ("", *(quote * count for quote in "'\"" for count in (1, 2, 3))), range(1_000_000_000)
        kinds = (tuple(_READERS), ("{", ", "), str, str, quotes, str, str, str, *[bool] * 4, depths, list, list)
        *values, types, container = checked(data, *kinds, (list, None), (list, None))
        texts, values = values[:8], values[8:]
        self = cls()
        self._state, self._lead, self._name, self._source, self._quote, self._escape, self._blank, self._held = texts
        self.started, self._quoted, self._opened, self._spaced, self._depth, self._names, self.notes = values
        for names in (self._names, self.notes):
            checked(names, *[str] * len(names))
        self._types = load_types(types)
        self._container = None if container is None else RepairingPythonScanner.load(container)
        fits = (self._container is not None) == (self._state == "container")
        fits &= bool(self._quote) or self._state not in ("opening", "string", "quote")
        fits &= not self._escape or self._escape[0] == "\\"
        fits &= self._state not in ("quote", "comma") or self._held[:1] in ("'", '"', ",", "")
        fits &= self._state != "quote" or self._held[:1] == self._quote[:1]
        if not fits:
            raise ValueError("no state of loose arguments")
        return self


def _judged(source: str, types: Types, escapes: bool) -> str:
    """JSON of a value that may have several types. One with `escapes` is a literal as it is, or without them."""
    found = _as_json(source, types)
    if found.startswith('"') and escapes and "\\" in source:
        found = _as_json(_ESCAPES(lambda match: _unescaped(match.group()), source), types)
    return found


def _as_json(source: str, types: Types) -> str:
    value = TaggedValue(types or frozenset())  # if no type is declared, a literal of Python is what it says
    value.read(source, 0, True)
    written = value.out
    if not value.broken:
        written += value.finish()
    if value.broken:
        written = json.dumps(source, ensure_ascii=False)
    return written


def _unescaped(escape: str) -> str:
    """What an escape stands for; one that is none is kept as it is."""
    if len(escape) < 2 or (escape[1] in "xuU" and is_short(escape)):
        return escape
    unescaped: str = json.loads(f'"{unescape(escape)}"')
    return unescaped


_READERS: dict[str, Callable[[Any, str, int], int]] = {
    "first": LoosePythonScanner._begin,
    "next": LoosePythonScanner._begin,
    "name": LoosePythonScanner._more_of_name,
    "equals": LoosePythonScanner._after_name,
    "value": LoosePythonScanner._begin_value,
    "container": LoosePythonScanner._more_of_container,
    "after": LoosePythonScanner._after_value,
    "bare": LoosePythonScanner._bare,
    "comma": LoosePythonScanner._behind,
    "opening": LoosePythonScanner._opening,
    "string": LoosePythonScanner._string,
    "quote": LoosePythonScanner._behind,
}
