"""Special tokens by id: where in the text they were emitted.

Strategy: each piece of text has the id of its token, so a list of places records what is known of the text. A marker
counts only if each special token that it spells, whether the format declares it or not, begins there by its own id; if
no ids are known, the text decides. Ids that come separately from the text of a delta have no places: they count if the
text contains each token as often as its id was given.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import itemgetter
from typing import TypeAlias

from toolgram.islands.held_text import overlap
from toolgram.program.compiling import compile_spec
from toolgram.program.state import Program
from toolgram.spec.data import with_other_roles

Piece: TypeAlias = tuple[str, "int | None"]  # text, and the id of its token or None

_place = itemgetter(0)


class EmittedIds:
    """What is known of the text: at each of `places`, the special token that begins there ("" for none, None if the ids
    are unknown from there on). `end` counts the characters of the output."""

    __slots__ = ("_spelled", "begun", "by_id", "end", "known", "owed", "places")

    def __init__(self, by_id: Mapping[int, str]) -> None:
        self.by_id = by_id
        self._spelled = _search(tuple(by_id.values()))
        self.places: list[tuple[int, str | None]] = []
        self.known = False  # the ids at the end are known
        self.end = 0
        self.owed: dict[str, int] = {}  # how many ids of a plain delta wait for their text,
        self.begun = ""  # and the end of the text since then, which may begin it

    def are_tokens(self, text: str, begin: int, end: int) -> bool:
        """Return whether tokens spelled in a part of `text`, the end of the output so far, are tokens, or may be."""
        return all(self._begun(text, at.start()) in (at.group(), None) for at in self._spelled(text, begin, end))

    def is_certain(self, text: str, begin: int, end: int) -> bool:
        """Return whether a part of `text` spells tokens, all by their own ids."""
        spelled = [self._begun(text, at.start()) == at.group() for at in self._spelled(text, begin, end)]
        return spelled != [] and all(spelled)

    def _begun(self, text: str, at: int) -> str | None:
        """Return the special token that begins at `at` in `text`: "" for none, None if that is unknown."""
        place = self.end - len(text) + at
        found = bisect_right(self.places, place, key=_place) - 1
        begin, token = self.places[found] if found >= 0 else (place, None)
        return token if begin == place or token is None else ""

    def forget(self, unread: int) -> None:
        """Forget the places before the last `unread` characters, which are still to be read."""
        passed = bisect_right(self.places, self.end - unread, key=_place) - 1
        if passed > 0:
            del self.places[:passed]

    def goes_on(self, delta: str, token_ids: Sequence[int] | None) -> bool:
        """Note a plain delta without a special token. Return False, and note nothing, if it may concern one."""
        if token_ids is None or not self.known or self.owed or len(self.places) > 1:
            return False
        if not self.by_id.keys().isdisjoint(token_ids):
            return False
        self.end += len(delta)
        return True

    def note_pieces(self, pieces: Iterable[Piece]) -> None:
        """Note the pieces of a delta."""
        self.owed = {}
        for text, token_id in pieces:
            marker = None if token_id is None else self.by_id.get(token_id)
            known = token_id is not None
            if known is not self.known:
                self._know(known)
            if marker is not None:
                at = text.find(marker)  # or one that is cut off at the end
                at = at if at >= 0 else len(text) - overlap(text, 0, marker)
                if at < len(text):
                    self.places.append((self.end + at, marker))
            self.end += len(text)

    def note(self, delta: str, token_ids: Sequence[int] | None) -> tuple[int, str] | None:
        """Note a plain delta with its ids. Return the place and the text of an ambiguous marker in it, or None."""
        known = token_ids is not None
        if known is not self.known:
            self._know(known)
        self.end += len(delta)
        if token_ids is None:
            self.owed = {}
        elif self.owed or not self.by_id.keys().isdisjoint(token_ids):
            return self._match(delta, token_ids)
        return None

    def _know(self, known: bool) -> None:
        """Note that ids are known from here on, or unknown."""
        self.places.append((self.end, "" if known else None))
        self.known = known

    def _match(self, delta: str, token_ids: Sequence[int]) -> tuple[int, str] | None:
        """Find the text of special tokens. A delta without ids belongs to earlier text, one without text to later text.
        Text that comes later than its ids is ambiguous."""
        owed = Counter(self.by_id[token_id] for token_id in token_ids if token_id in self.by_id)
        late = Counter(self.owed)
        if not (token_ids and delta):
            owed, late = owed + late, Counter()
        text, done = self.begun + delta, len(self.begun)
        ambiguous: list[tuple[int, str]] = []
        for marker in late | owed:
            begin = done if late and marker in owed else max(0, done - len(marker) + 1)
            places = re.compile(re.escape(marker)).finditer(text, begin)
            found = [(self.end - len(text) + each.start(), marker) for each in places]
            if found:
                (self.places if len(found) == owed.pop(marker, 0) else ambiguous).extend(found)
        self.places.sort(key=_place)
        self.owed = dict(owed)
        self.begun = text[max(0, len(text) + 1 - max(map(len, owed))) :] if owed else ""
        return min(ambiguous, default=None)


@lru_cache(maxsize=256)
def _search(texts: tuple[str, ...]) -> Callable[..., Iterable[re.Match[str]]]:
    """Return a search for tokens, of which the longest one counts where several begin."""
    return re.compile("|".join(map(re.escape, sorted(texts, key=len, reverse=True))) or "(?!)").finditer


def with_ids(program: Program, special_tokens: Mapping[str, int]) -> tuple[Program, EmittedIds]:
    """Return the program for an output with the ids of these tokens, and these ids, with none emitted yet. Cached,
    because a server always has the same tokens."""
    kept = program.by_id
    if kept is None or kept[0] != special_tokens:
        begun = ([text for text in special_tokens if role.startswith(text)] for role in program.spec.other_roles)
        roles = {max(texts, key=len) for texts in begun if texts}
        markers = "\0".join([*program.literals.values(), *program.spec.notation, *roles])
        found = {number: text for text, number in special_tokens.items() if text and text in markers}
        spec, made = with_other_roles(program.spec, roles), program
        if spec is not program.spec:
            made = replace(compile_spec(spec, program.strict), mentions=program.mentions)
        kept = program.by_id = (dict(special_tokens), made, found)
    return kept[1], EmittedIds(kept[2])
