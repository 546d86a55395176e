"""Free text as xgrammar's own dispatch: words that must not stand in it, and words behind which rules take over.

Strategy: the engine compiles a state of its dispatch in half a millisecond, a state of a rule that takes nearly any
character in fifteen.  So whatever words can say is words: whole markers, and of a long special token its beginning.  A
pattern that begins as prose may begin (`{`, `functools`) has a head, the fixed text at its beginning.  Behind the head
a few rules follow the pattern, until it cannot be complete any more; then the text goes on.  They are states of the
automaton of `texts`, over the patterns with a head alone.  A word may begin inside of these rules, where the dispatch
does not see it: there its first character is left out, or what would go on with it.  Where a text must not begin with a
name and what makes it a call, its first part is a dispatch of its own, in which nothing stands that goes on as behind a
name; it ends at a character that is in no name.  All of this excludes a little more than the patterns do, never less,
and notes say what.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from toolgram.export.expressions import Forbidden, Step
from toolgram.export.texts import (
    Items,
    Move,
    Pattern,
    advance,
    character,
    closed,
    is_character,
    kinds_of,
    literal_pattern,
    moves_of,
    reaches_into,
    spelled,
    takes,
)

_IS_MARKER = re.compile(r"(?=.*[^\W\d_]).*[<>\[\]{}|◁▷].{3,}|.{3,}[<>\[\]{}|◁▷].*|```\w+", re.DOTALL).fullmatch
_SPECIAL = re.compile(r"<｜|<\|[^\W\d_]\w\w")  # so much of a special token is read: nothing else begins so
_MARKER = re.compile(r"</?[^\W\d_]{3,}_|\[/?[A-Z]{3,}(?:_| [A-Z]{3,})|\{\"[^\W\d_]{3,}_")  # and of others
_PHRASE = re.compile(r"[\w' ]+ (\w[\w' ]{10,}[\w':])")  # of which words at the end are read
_IS_PROSE = re.compile(r"[\w' ]+ [\w' ]*[\w':]").fullmatch
_IS_TOLD = re.compile(r".*[<>\[\]{}|`\"=].*", re.DOTALL).fullmatch  # what is still no word of prose
_LONG_HEAD = 3  # characters of a head that is rare enough not to be followed by any name
_TOLD_APART = 2  # characters of a fixed text behind a head
_LAST_WORD = re.compile(r"_[^\W_]{4,}\W+\Z")  # of a marker whose beginning is not seen
_LAST_NAME = 2  # characters of the last word of a function's name, with its parenthesis
_EXITS = ":,!?`(*"  # characters that prose soon has, few of which are the first of a token
_MOST_STATES = 10
_NAMED = 3  # steps of blanks and a name at a beginning


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Text: `words` do not stand in it, and each of `heads` leads to one of `states`.

    A move without a destination leads back to the text. The text begins in the first state if `begins` says so.
    `passed` has heads, each with some characters and another one, which leads back to the text behind the head itself
    and, in its state, behind any of the characters. `patterns` are those that begin with a head, as they were; `notes`
    say what else is excluded. `first` is the text up to one of `exits`, in which more must not stand; any number of the
    characters `lead` may come before it.
    """

    words: tuple[str, ...]
    heads: tuple[tuple[str, int], ...] = ()
    states: tuple[tuple[Move, ...], ...] = ()
    begins: bool = False
    passed: tuple[tuple[str, str, str], ...] = ()
    patterns: tuple[Pattern, ...] = ()
    notes: tuple[str, ...] = ()
    first: Dispatch | None = None
    exits: str = ""
    lead: str = ""

    def may_end_behind_a_head(self, closers: Iterable[str]) -> bool:
        """Whether text may end where it follows a pattern: not if the pattern could be complete in a closer."""
        return not any(each and reaches_into(Forbidden(self.patterns), each) for each in closers if self.patterns)

    def covers(self, other: Dispatch) -> bool:
        """Whether this is the text of another dispatch without some phrases of prose, so that it may stand for it."""
        more = set(self.words) - set(other.words)
        plain = not any(each.states or each.first is not None for each in (self, other))
        return plain and set(other.words) < set(self.words) and all(map(_IS_PROSE, more))

    def excluded(self, closer: str) -> tuple[str, ...]:
        """The words, with the closer of the text, unless it is told apart already."""
        known = not closer or any(word in closer for word in (*self.words, *(head for head, _ in self.heads)))
        return self.words if known else (*self.words, closer)


@lru_cache(maxsize=512)
def fixed_words(forbidden: Forbidden) -> tuple[str, ...] | None:
    """The words that must not stand in a text; None where one of the patterns is no word."""
    if forbidden.beginnings:
        return None
    found = [_fixed(pattern) for pattern in forbidden.patterns]
    return None if None in found else tuple(dict.fromkeys(word for word in found if word is not None))


@lru_cache(maxsize=512)
def dispatch_of(forbidden: Forbidden) -> Dispatch | None:
    """Text without anything forbidden; None where too many rules would have to follow what begins as prose."""
    notes: list[str] = []
    markers, opened, wider = _divided(forbidden.patterns)
    called = [_last_words(word) for word in map(_fixed, forbidden.beginnings) if word is not None]
    begun = tuple(each for each in forbidden.beginnings if _fixed(each) is None)
    divided = _in_two_parts(forbidden, begun) if begun and not opened else None
    if divided is not None:
        return divided
    words = _shortest([*called, *markers], with_rules=bool(opened or begun))
    heads = tuple(dict.fromkeys(map(_head, opened)))
    if any(not head or _are_entangled(head, heads, words) for head in heads):
        return None
    followed = dict.fromkeys(_cut(each, notes) for each in opened if not _says_its_head_again(each))
    merged = {each: _merged(each, words, notes) for each in followed}
    found = _Following(words, heads, tuple(each for each, _ in merged.values()), begun, notes).dispatch()
    if found is None:
        return None
    passed = tuple((_head(each), before, character(each[-1])) for each, before in merged.values() if before)
    notes += _notes_on_words(found.words, markers, called, wider)
    headed = tuple(each for each in forbidden.patterns if heads and spelled(each).startswith(heads))
    return replace(found, passed=passed, patterns=headed, notes=tuple(dict.fromkeys(notes)))


def _notes_on_words(
    words: Iterable[str], markers: Collection[str], called: Collection[str], wider: Collection[str]
) -> Iterator[str]:
    """What text cannot hold although no marker or call is in it."""
    parts = [repr(word) for word in words if word not in markers and word not in called]
    if parts:
        yield f"text holds no part of a marker such as {' or '.join(parts)}, with the rest of it or without"
    for word in words:
        if word in wider:
            yield f"text holds no {word!r}, with a call behind it or without"
    if called:
        yield (
            "text holds no name of a function, nor its last words, with a parenthesis behind it, because a call that "
            "stands alone on a line is read as one"
        )


def _in_two_parts(forbidden: Forbidden, begun: tuple[Pattern, ...]) -> Dispatch | None:
    """Text that does not begin with blanks, a name and what makes it a call. The first part is everything that may be
    such a name, blanks and further lines included. None where what it must not begin with has another form.
    """
    if not all(len(each) > _NAMED and each[0].repeated and each[2].repeated for each in begun):
        return None
    named = [step for each in begun for step in each[:_NAMED]]
    ends = dict.fromkeys(each[_NAMED:] for each in begun)
    # what ends in another one is found by that: a line end in the longer one
    behind = tuple(each for each in ends if not any(each[at:] in ends for at in range(1, len(each))))
    fixed = tuple(each for each in forbidden.beginnings if each not in begun)
    later = dispatch_of(Forbidden(forbidden.patterns, fixed))
    first = dispatch_of(Forbidden((*forbidden.patterns, *behind), fixed))
    if later is None or first is None or not all(is_character(each[0]) for each in behind):
        return None
    known = "".join((*first.words, *later.words, *map(spelled, behind)))
    exits = "".join(char for char in _EXITS if char not in known and not any(takes(step, char) for step in named))
    lead = "".join(dict.fromkeys(character(each[_NAMED]) for each in begun if takes(each[0], character(each[_NAMED]))))
    if any(takes(each[1], char) for each in begun for char in lead):
        return None
    notes = (
        f"text holds no {spelled(each).replace(chr(0), '')!r}, with blanks in it or without, before the first of the "
        f"characters {' '.join(exits)}"
        for each in behind
    )
    said = tuple(dict.fromkeys((*later.notes, *first.notes, *notes)))
    return replace(later, notes=said, first=first, exits=exits, lead=lead)


# --- words --------------------------------------------------------------------------------------------------------


def _fixed(pattern: Pattern) -> str | None:
    return "".join(map(character, pattern)) if all(map(is_character, pattern)) else None


def _head(pattern: Pattern) -> str:
    return spelled(pattern).partition("\0")[0]


def _divided(patterns: tuple[Pattern, ...]) -> tuple[list[str], list[Pattern], list[str]]:
    """What words say, the patterns that begin as prose may, and the words that say more than their pattern does.

    A pattern that begins with a marker is that marker.
    """
    words = [word for word in map(_fixed, patterns) if word is not None]
    opened, wider = [], []
    for pattern in patterns:
        written = spelled(pattern)
        if any(word in written for word in words):
            continue
        word = written.partition("\0")[0]
        if not _IS_MARKER(word):
            opened.append(pattern)
            continue
        words.append(word)
        wider.append(word)
    return words, opened, wider


def _shortest(words: Iterable[str], with_rules: bool) -> tuple[str, ...]:
    """The words without those that hold another one; of a special token its beginning, of a phrase its last words."""
    found: dict[str, None] = {}
    for word in words:
        begun, ended = _SPECIAL.match(word) or (not with_rules and _MARKER.match(word)), _PHRASE.fullmatch(word)
        found[begun[0] if begun else ended[1] if ended else word] = None
    return _without_longer(found)


def _beginning_of(rest: str, word: str) -> str:
    """What is left of a word that rules may have begun to read; of a marker that they have not, its beginning."""
    marker = _MARKER.match(word) if rest == word else None
    return marker[0] if marker else rest


def _last_words(called: str) -> str:
    """A name and its parenthesis from its last underscore on: fewer characters, the first of which is rare."""
    at = called.rfind("_", 0, -_LAST_NAME)
    return called[at:] if at > 0 else called


def _without_longer(words: Iterable[str]) -> tuple[str, ...]:
    found = dict.fromkeys(words)
    return tuple(word for word in found if not any(each != word and each in word for each in found))


def _are_entangled(head: str, heads: Iterable[str], words: Iterable[str]) -> bool:
    """Whether a word may be read in part where a head ends, or a longer head."""
    for word in words:
        begins_inside = any(word.startswith(head[at:]) for at in range(1, len(head)))
        if head in word[1:] or (begins_inside and not word.startswith(head)):
            return True
    return any(each != head and each.startswith(head) for each in heads)


# --- patterns that begin as prose ---------------------------------------------------------------------------------


def _says_its_head_again(pattern: Pattern) -> bool:
    """Whether a head, and blanks, are followed by the same head: what must not follow that is said already."""
    head = _head(pattern)
    rest = pattern[len(head) :]
    return bool(rest) and rest[0].repeated and rest[1:] == literal_pattern(head)


def _cut(pattern: Pattern, notes: list[str]) -> Pattern:
    """A shorter pattern that is followed in fewer states: a long head takes no name behind it, and what tells a call
    (`[{`) no more blanks.
    """
    head = _head(pattern)
    rest = pattern[len(head) :]
    if len(head) >= _LONG_HEAD and not rest[0].repeated:
        notes.append(f"text holds no {head!r} with a letter behind it")
        return pattern[: len(head) + 1]
    behind = len(head) + (1 if rest[0].repeated else 0)
    fixed = 0
    while behind + fixed < len(pattern) and is_character(pattern[behind + fixed]):
        fixed += 1
    if fixed > _TOLD_APART:
        notes.append(f"text holds no {spelled(pattern[behind : behind + _TOLD_APART])!r} behind {head!r}")
        return pattern[: behind + _TOLD_APART]
    if behind > len(head) and fixed == 1 and behind + 1 < len(pattern) and _is_blank(pattern[behind + 1]):
        notes.append(f"text holds no {character(pattern[behind])!r} behind {head!r}")
        return pattern[: behind + 1]
    return pattern


def _is_blank(step: Step) -> bool:
    return step.repeated and not step.negated and "".join(step.characters).isspace()


def _merged(pattern: Pattern, words: Iterable[str], notes: list[str]) -> tuple[Pattern, str]:
    """Blanks, a name and a character behind a head are followed in one state, which the engine stays in.

    The blanks behind which the character is prose all the same; "" where the pattern stays as it is.
    """
    head = _head(pattern)
    rest = pattern[len(head) :]
    if len(rest) != 4 or [each.repeated for each in rest] != [True, False, True, False] or not is_character(rest[3]):
        return pattern, ""
    blanks, first, name, last = rest
    before, char = "".join(sorted(blanks.characters)), character(last)
    within = first.negated and name.negated and name.characters <= first.characters
    if blanks.negated or not within or char not in name.characters or any(word[0] in before + char for word in words):
        return pattern, ""
    notes.append(f"text holds no name with {char!r} behind {head!r} and other names")
    return (*pattern[: len(head)], Step(name.characters - blanks.characters, True, True), last), before


_State = tuple[Items, frozenset[str]]  # of the automaton, and the words of which one character was read


class _Following:
    """Builds the rules that follow patterns with a head."""

    def __init__(
        self,
        words: tuple[str, ...],
        heads: tuple[str, ...],
        opened: tuple[Pattern, ...],
        begun: tuple[Pattern, ...],
        notes: list[str],
    ) -> None:
        self.heads, self.opened, self.begun, self.notes = heads, opened, begun, notes
        self.patterns = (*opened, *begun)
        self.base = closed(self.patterns, ((which, 0) for which in range(len(opened))))
        self.partly = {self._after(head[:at]) for head in heads for at in range(1, len(head))}
        read = (literal_pattern(char) for word in (*words, *heads) for char in word[:2])
        self.kinds = kinds_of((*self.patterns, *read))
        self.numbers: dict[_State, int] = {}
        self.left_out: dict[str, None] = {}
        inside = self._inside()
        self.rests = {word: self._rest(word, inside) for word in words}
        self.whole = tuple(word for word, rest in self.rests.items() if rest == word)

    def dispatch(self) -> Dispatch | None:
        """The whole; None where there are too many states, or a word is lost in them."""
        if self.begun:
            self.numbers[self._beginning(), frozenset()] = 0
        heads = tuple((head, self._number((self._after(head), frozenset()))) for head in self.heads)
        if any(self._is_lost(word) for word in self.whole):
            return None
        states: list[tuple[Move, ...]] = []
        while len(states) < len(self.numbers):
            if len(self.numbers) > _MOST_STATES:
                return None
            states.append(tuple(self._moves(list(self.numbers)[len(states)])))
        if self.left_out:
            shown = " or ".join(map(repr, self.left_out))
            where = " or ".join(map(repr, self.heads)) or "the blanks, the name or the line with which it begins"
            self.notes.append(f"text holds no {shown} behind {where}")
        words = _without_longer(_beginning_of(rest, word) for word, rest in self.rests.items() if rest)
        return Dispatch(words, heads, tuple(states), bool(self.begun))

    # --- words that may begin inside of the rules ------------------------------------------------------------------

    def _inside(self) -> list[Items]:
        """What the rules behind heads, and those of a beginning, may have read, words aside."""
        found = dict.fromkeys(self._after(head) for head in self.heads)
        if self.begun:
            found[self._beginning()] = None
        pending = list(found)
        while pending and len(found) <= _MOST_STATES:
            items = pending.pop()
            for chars in self.kinds:
                after, complete = self._advance(items, chars[:1])
                if not complete and after != self.base and after not in self.partly and after not in found:
                    found[after] = None
                    pending.append(after)
        return list(found)

    def _rest(self, word: str, inside: list[Items]) -> str:
        """What the dispatch sees of a word that may begin inside of the rules, or with a head; "" for nothing at all.

        The whole word, where the rest is no marker any more.
        """
        if self.heads and word.startswith(self.heads) and not self._is_lost(word):
            return ""
        begins = [*inside, *([self.base] if self.heads and word.startswith(self.heads) else [])]
        read = max((self._read(items, word) for items in begins), default=0)
        rest = word[read:]
        if not read or len(rest) < _LONG_HEAD or not _IS_TOLD(rest) or any(head in rest for head in self.heads):
            return word
        last = _LAST_WORD.search(rest)
        return last[0] if last and _IS_TOLD(last[0]) else rest

    def _read(self, items: Items, word: str) -> int:
        """How much of a word is read before the text goes on; nothing if that cannot be."""
        for at, char in enumerate(word, 1):
            items, complete = self._advance(items, char)
            if complete:
                return 0
            if items == self.base:
                return at
        return len(word)

    def _is_lost(self, word: str) -> bool:
        """Whether a word begins with a head, and no pattern is complete in it."""
        return bool(self.heads) and word.startswith(self.heads) and not self._is_covered(self.base, word)

    # --- states --------------------------------------------------------------------------------------------------

    def _beginning(self) -> Items:
        return closed(self.patterns, ((which, 0) for which in range(len(self.patterns))))

    def _number(self, state: _State) -> int:
        return self.numbers.setdefault(state, len(self.numbers))

    def _after(self, read: str) -> Items:
        items = self.base
        for char in read:
            items, _ = self._advance(items, char)
        return items

    def _advance(self, items: Items, char: str) -> tuple[Items, frozenset[int]]:
        return advance(self.patterns, len(self.opened), items, char)

    def _moves(self, state: _State) -> Iterator[Move]:
        groups: dict[_State | None, list[str]] = {}
        for chars in self.kinds:
            after = self._next(state, chars[:1])
            if after is not None:
                groups.setdefault(None if after == (self.base, frozenset()) else after, []).append(chars)
        numbers = {each: self._number(each) for each in groups if each is not None}
        return moves_of(groups, numbers, self.kinds)

    def _next(self, state: _State, char: str) -> _State | None:
        """The state after a character; None where the character must not come."""
        items, begun = state
        after, complete = self._advance(items, char)
        if complete:
            return None
        if char in self.whole:  # a word of one character
            self.left_out[char] = None
            return None
        going = frozenset(word for word in self.whole if word[0] == char and not self._is_covered(items, word))
        if any(word[1] == char for word in begun):
            self.left_out[min(begun)[0] + char] = None
            return None
        if after in self.partly:
            self.left_out[char] = None
            return None
        return after, going

    def _is_covered(self, items: Items, word: str) -> bool:
        """Whether a pattern that is followed is complete before a word is."""
        for char in word:
            items, complete = self._advance(items, char)
            if complete:
                return True
        return False
