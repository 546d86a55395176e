"""Nested elements: a value whose parts are elements named after them, and whose leaves are raw text.

    <tags><item>x</item><item>y</item></tags>    <point><x>1</x><y>2</y></point>    <note>any text</note>

Strategy: a stack with a frame for each open element. The schema of an element decides how it is written.

* Only text: all characters up to its own closing tag are text.
* An array: its elements are the items, whatever their names. An object: the elements that it declares are its members,
  written as they come.
* Either, or undeclared: the element has elements or text, whichever comes first. A repeated name makes a list of
  its values, and elements that are all called `item` are a list; so undeclared elements are kept until the element
  around them is closed.

A leaf is a tagged value of its place's types. Once text has begun it remains text: elements inside are part of it, and
are counted, so that a closing tag that matches none of them shows that one is missing. Text beside the members of an
object becomes a member `$text`, at the end. A tag that closes another element than the last breaks the value.

If tags are plain (`<x>`), text may contain such tags as well (`<br>`), which are never closed: inside a text, only
those with the name of an open element are counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from toolgram.islands.held_text import overlap
from toolgram.islands.tagged_values import TaggedValue
from toolgram.limits import LONGEST_ELEMENT_NAME, MAX_ELEMENT_DEPTH
from toolgram.tools.parameters import UNDECLARED, Place

BEGUN, LEAF, OBJECT, ARRAY, EITHER = "begun", "leaf", "object", "array", "either"
TEXT_BESIDE = "$text"

_BLANKS = " \t\r\n"
_NAME = re.compile(r"[^<>/\s][^<>\s]*+").match
_WRITTEN = {ARRAY: "[]", OBJECT: "{}"}


class _Frame:
    """An open element. `kept` is its JSON, if its parent keeps it; `members` are those that it keeps itself."""

    __slots__ = (
        "beside", "declared", "inside", "kept", "kind", "leaf", "members", "name", "place", "worded", "written",
    )  # fmt: skip

    def __init__(self, name: str, place: Place, kept: bool) -> None:
        self.name = name
        self.place = place
        self.kind = BEGUN
        self.kept: list[str] | None = [] if kept else None
        self.leaf: TaggedValue | None = None
        self.inside: list[str] = []  # elements that are open inside a text
        self.beside: list[str] = []  # text that is not a leaf: beside members, or leading blanks
        self.worded = False  # that text is more than blanks
        self.members: list[tuple[str, str]] = []
        self.declared: dict[str, None] = {}  # members already written
        self.written = False  # the opening bracket was written

    def dump(self) -> list[Any]:
        """Return the state as JSON-able data."""
        kept = None if self.kept is None else "".join(self.kept)
        leaf = None if self.leaf is None else self.leaf.dump()
        texts = [[*self.inside], "".join(self.beside), [[*member] for member in self.members], [*self.declared]]
        return [self.name, self.kind, kept, leaf, *texts, self.written]


class ElementsScanner:
    """A value that is being read, up to its closing tag. `notation` has the beginnings of opening and closing tags, the
    name of items and, if it is always the same, the name of the value's own element, which is else `key`. `out` is the
    JSON that the last `read` made certain."""

    __slots__ = (
        "_broken", "_frames", "_notation", "_parts", "_place", "back", "counts", "odd", "out", "repairs", "repeated",
        "stray", "tail",
    )  # fmt: skip

    def __init__(self, notation: tuple[str, ...], key: str = "", place: Place = UNDECLARED) -> None:
        self._notation = notation
        self._frames = [_Frame(notation[3] if len(notation) > 3 else key, place, False)]
        self._broken = False
        self._parts: list[str] = []
        self.counts: Callable[[str, int, int], bool] = lambda *place: True  # whether a tag is one, by its id
        self.odd = False
        self.stray = False  # what looked like a tag was text
        self.repairs: list[str] = []  # kinds of anomalies in literals
        self._place = 0  # place of the first repair in the last piece of text
        self.back = 0  # how far before the end of the last `read` the first repair is
        self.repeated: list[str] = []  # declared members that came twice
        self.out = ""
        self.tail = 0  # characters at the end of the last `read` that wrote nothing

    @property
    def done(self) -> bool:
        """True if the value is over."""
        return not self._frames

    @property
    def broken(self) -> bool:
        """True if the next character cannot be part of the value."""
        return self._broken

    @property
    def stops(self) -> str:
        """The characters that may begin a tag, in text that is passed on as it comes; else ""."""
        frame = self._frames[-1] if self._frames and not self._broken else None
        leaf = frame.leaf if frame is not None and frame.kind == LEAF else None
        plain = leaf is not None and leaf.is_text and all(each.kept is None for each in self._frames)
        return "".join(each[0] for each in self._notation[:2]) if plain else ""

    def read(self, text: str, pos: int, final: bool) -> int:
        """Read on from `pos`. Stop before an incomplete tag, and after a repaired one."""
        opening = self._notation[0]
        self._parts, mark, self.tail = [], pos, 0
        known, begin = len(self.repairs), pos
        while pos < len(text) and self._frames and not self._broken:
            written, begin, self._place = len(self._parts), pos, 0
            at = text.find(opening, pos)
            if at == pos:
                pos = self._tag(text, pos)
            else:
                end = at if at >= 0 else len(text) - overlap(text, pos, opening)
                pos += self._text(text[pos:end]) if end > pos else 0
            if len(self._parts) > written:
                mark = pos - self.tail
            if pos == begin or len(self.repairs) > known:
                break
        self.back = pos - begin - self._place
        self.out = "".join(self._parts)
        self.tail = pos - mark if self.out else 0
        return pos

    def _tag(self, text: str, pos: int) -> int:
        """Read a whole tag and return the position after it, or `pos` if it is incomplete. Anything else is text."""
        opening, closing = self._notation[:2]
        closes = text.startswith(closing, pos)
        if not closes and closing.startswith(text[pos:]):
            return pos
        begin = pos + len(closing if closes else opening)
        match = _NAME(text, begin)
        end = match.end() if match is not None else begin
        if end - begin <= LONGEST_ELEMENT_NAME and end == len(text):
            return pos
        if match is None or end - begin > LONGEST_ELEMENT_NAME or text[end] != ">" or not self.counts(text, pos, end):
            self.stray |= not self._is_plain
            return pos + self._text(text[pos:begin])
        self.tail = 0
        name = match.group()
        if closes:
            self._close_tag(name, text[pos : end + 1])
        else:
            self._open_tag(name, text[pos : end + 1])
        return pos if self._broken else end + 1

    def _open_tag(self, name: str, tag: str) -> None:
        frame = self._frames[-1]
        if frame.kind == BEGUN and frame.place.is_text:
            self._begin_leaf(frame)
        if len(self._frames) + len(frame.inside) >= MAX_ELEMENT_DEPTH:
            self._broken = True
        elif frame.kind == LEAF:
            if not self._is_plain or self._is_open(name):
                frame.inside.append(name)
            self.odd |= frame.place.is_text and not self._is_plain
            self._in_leaf(frame, tag)
        else:
            if frame.kind == BEGUN:
                frame.kind = frame.place.container or EITHER
                self.odd |= frame.place.has_no_parts
            self._broken = frame.kind == ARRAY and frame.worded
            if self._broken:
                return
            self._frames.append(self._child(frame, name))

    @property
    def _is_plain(self) -> bool:
        """True if text may contain such tags."""
        return self._notation[0] == "<"

    def _is_open(self, name: str) -> bool:
        return any(frame.name == name for frame in self._frames)

    def _child(self, frame: _Frame, name: str) -> _Frame:
        """Return the frame of an element inside another one; write what precedes its value."""
        if frame.kind == ARRAY:
            self._emit(", " if frame.written else "[")
            frame.written = True
            return _Frame(name, frame.place.item(), False)
        place = frame.place.member(name)
        if frame.kind == OBJECT and place.named:
            self._emit((", " if frame.written else "{") + json.dumps(name, ensure_ascii=False) + ": ")
            frame.written = True
            if name in frame.declared:
                self.repeated.append(name)
            frame.declared[name] = None
            return _Frame(name, place, False)
        if frame.kind == EITHER and name == self._notation[2]:
            place = frame.place.item()
        return _Frame(name, place, True)

    def _close_tag(self, name: str, tag: str) -> None:
        frame = self._frames[-1]
        if frame.kind == LEAF and self._is_plain and not self._is_open(name):
            self._in_leaf(frame, tag)
        elif frame.inside:
            self._broken = frame.inside.pop() != name
            if not self._broken:
                self._in_leaf(frame, tag)
        elif name != frame.name:
            self._broken = True
        else:
            self._close(frame)

    def _close(self, frame: _Frame) -> None:
        """Close an element: write the rest of its JSON, which its parent may keep."""
        if frame.kind == LEAF or (frame.kind == BEGUN and not self._is_empty(frame)):
            if frame.kind == BEGUN:
                self._begin_leaf(frame)
            leaf = frame.leaf
            assert leaf is not None
            self._emit(leaf.finish())
            self._broken = leaf.broken
            self.odd |= leaf.odd
            self.repairs += [kind for kind in leaf.repairs if kind not in self.repairs]
        elif frame.kind == BEGUN:
            self._emit(_WRITTEN[frame.place.container])
        else:
            self._end_container(frame)
        if self._broken:
            return
        self._frames.pop()
        if frame.kept is not None:
            self._frames[-1].members.append((frame.name, "".join(frame.kept)))

    @staticmethod
    def _is_empty(frame: _Frame) -> bool:
        """Return whether an element with nothing in it is an empty list or object."""
        return frame.place.container != "" and not (frame.place.may_be_text or frame.worded)

    def _end_container(self, frame: _Frame) -> None:
        beside = "".join(frame.beside).strip(_BLANKS)
        if frame.kind == ARRAY:
            self._emit("]")
            return
        members, item = frame.members, self._notation[2]
        if frame.kind == EITHER and not beside and all(name == item for name, _ in members):
            self._emit(f"[{', '.join(value for _, value in members)}]")
            return
        values: dict[str, list[str]] = {}
        for name, value in members:
            values.setdefault(name, []).append(value)
        pairs = [(name, each[0] if len(each) == 1 else f"[{', '.join(each)}]") for name, each in values.items()]
        if beside:
            pairs.append((TEXT_BESIDE, json.dumps(beside, ensure_ascii=False)))
        for name, value in pairs:
            self._emit(f"{', ' if frame.written else '{'}{json.dumps(name, ensure_ascii=False)}: {value}")
            frame.written = True
        self._emit("}" if frame.written else "{}")

    def _text(self, text: str) -> int:
        """Read text inside the last element. Return how much of it fits."""
        frame = self._frames[-1]
        blank = not text.strip(_BLANKS)
        if frame.kind == BEGUN and (frame.place.is_text or not (blank or self._is_beside(frame, text))):
            self._begin_leaf(frame)
        if frame.kind == LEAF:
            return self._in_leaf(frame, text)
        self.tail = 0
        if frame.kind == ARRAY and not blank:
            self._broken = True
            return len(text) - len(text.lstrip(_BLANKS))
        frame.beside.append(text)
        frame.worded |= not blank
        return len(text)

    @staticmethod
    def _is_beside(frame: _Frame, text: str) -> bool:
        """Return whether text at the beginning is beside members, because only elements or a literal are allowed."""
        if not frame.place.container or frame.place.may_be_text:
            return False
        return frame.worded or text.lstrip(_BLANKS)[0] not in "{["

    def _begin_leaf(self, frame: _Frame) -> None:
        frame.kind, frame.leaf = LEAF, TaggedValue(frame.place.types)
        before, frame.beside = "".join(frame.beside), []
        if before:
            known = len(self.repairs)
            self._in_leaf(frame, before)
            self._place -= len(before) if len(self.repairs) > known else 0

    def _in_leaf(self, frame: _Frame, text: str) -> int:
        """Read text of a leaf. Return how much of it fits."""
        leaf = frame.leaf
        assert leaf is not None
        fits = leaf.read(text, 0, False)
        self._broken, self.tail = leaf.broken, leaf.tail
        self._emit(leaf.out)
        new = [kind for kind in leaf.repairs if kind not in self.repairs]
        if new:
            self.repairs += new
            self._place = fits - leaf.back
        return fits

    def _emit(self, text: str) -> None:
        """Write JSON that is certain: to the innermost element that is kept, or to `out`."""
        if text:
            kept = next((frame.kept for frame in reversed(self._frames) if frame.kept is not None), self._parts)
            kept.append(text)

    def open_brackets(self) -> None:
        """Return None: a marker ends the rest of tagged arguments, and brackets do not count."""

    def declare(self, place: Place) -> None:
        """Set the declaration of the value again; a snapshot does not have it."""
        self._frames[0].place = place
        for outer, frame in zip(self._frames, self._frames[1:], strict=False):
            item = outer.kind == ARRAY or (outer.kind == EITHER and frame.name == self._notation[2])
            frame.place = outer.place.item() if item else outer.place.member(frame.name)

    def dump(self) -> list[Any]:
        """Return the state as JSON-able data."""
        frames = [frame.dump() for frame in self._frames]
        return [[*self._notation], frames, self.odd, [*self.repeated], [*self.repairs], self.stray]

    @classmethod
    def load(cls, data: Any) -> ElementsScanner:
        """Load what `dump` returned."""
        notation, frames, odd, repeated, repairs, stray = data
        value = cls((*notation,))
        value.odd, value.repeated, value.repairs, value.stray = odd, [*repeated], [*repairs], stray
        value._frames = [_loaded(frame) for frame in frames]
        return value


def _loaded(data: Any) -> _Frame:
    """Load a frame of a snapshot."""
    name, kind, kept, leaf, inside, beside, members, declared, written = data
    frame = _Frame(name, UNDECLARED, kept is not None)
    frame.kind, frame.written, frame.inside = kind, written, [*inside]
    frame.kept = [kept] if kept else frame.kept
    frame.beside, frame.worded = [beside] if beside else [], bool(beside.strip(_BLANKS))
    frame.members = [(key, value) for key, value in members]
    frame.declared = dict.fromkeys(declared)
    frame.leaf = None if leaf is None else TaggedValue.load(leaf)
    return frame
