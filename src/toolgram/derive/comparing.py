"""Compare renderings: the primitive that every phase of the analysis uses.

Strategy: there are only two ways to separate constant text from variable text. `compare` splits two renderings
into common prefix, left, right and common suffix, and never cuts a marker or a word in two. `find_slots` looks for
values that we chose ourselves, each of them unlike any text a template would contain; the text between them is
constant. If this is repeated with other values, text that is always constant is a marker, whatever its brackets.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import pairwise

from toolgram.derive.budget import look
from toolgram.limits import MAX_TEMPLATE_MARKER

# One marker: a bracketed run without blanks at its edges. The last two are cut off at a slot.
_MARKER = re.compile(
    r"<[^<>\s=](?:[^<>\n]*[^<>\s])?>|\[/?[A-Za-z_](?:[^\[\]\n\",:{}]*)\]|【[^【】\n]*】|\{\{[^{}\n]*\}\}|«[^«»\n]*»"
    r"|⟨[^⟨⟩\n]*⟩|`{3,}\w*|>{2,}|\[\[|\]\]"
    r"|<[^<>\s][^<>\n]*\Z|\A[\"'\w=:. -]*[\"'\w=:.-]>"
)
_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"<\|[^<>|\s]{1,40}\|>")
_pattern: ContextVar[re.Pattern[str]] = ContextVar("markers", default=_MARKER)  # of the current template


def learn_markers(turns: Sequence[str]) -> bool:
    """Learn what a marker is in these turns, and return whether it may be made of several tokens.

    That is so if some tokens open tags, others close them, and one ends them all: `<|open|>x<|sep|>`,
    `<|close|>x<|sep|>`.
    """
    _pattern.set(_MARKER)
    after: dict[str, list[tuple[str, str]]] = {}
    ends: dict[str, list[str]] = {}
    for turn in turns:
        tokens = list(_TOKEN.finditer(turn))
        for token, following in pairwise(tokens):
            gap = turn[token.end() : following.start()]
            after.setdefault(token.group(), []).append((following.group(), gap))
            ends.setdefault(following.group(), []).append(token.group())
    openers = {
        token: found[0][0]
        for token, found in after.items()
        if len({end for end, _ in found}) == 1 and len({gap for _, gap in found}) > 1
        if all(gap.strip() and len(gap) <= 80 and not set(gap) & set("<>\n") for _, gap in found)
    }
    for end in dict.fromkeys(openers.values()):
        tokens_before = sorted(token for token in openers if openers[token] == end)
        if len(tokens_before) > 1 and set(ends[end]) == set(tokens_before):
            opening = "|".join(map(re.escape, tokens_before))
            _pattern.set(re.compile(rf"(?:{opening})[^<>\n]{{1,80}}?{re.escape(end)}|{_MARKER.pattern}"))
            return True
    return False


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two texts as `prefix + left + suffix` and `prefix + right + suffix`."""

    prefix: str
    left: str
    right: str
    suffix: str


@dataclass(frozen=True, slots=True)
class Slot:
    """A value found in a text: which one, and where."""

    label: str
    start: int
    end: int


def compare(a: str, b: str) -> Comparison:
    """Split two texts into common prefix, left, right and common suffix, at the edges of markers and words."""
    prefix = common_prefix([a, b])
    suffix = common_suffix([a[len(prefix) :], b[len(prefix) :]])
    return Comparison(prefix, a[len(prefix) : len(a) - len(suffix)], b[len(prefix) : len(b) - len(suffix)], suffix)


def shared_length(texts: Sequence[str]) -> int:
    """Return how many characters all texts have in common at their beginnings."""
    return len(os.path.commonprefix(texts))  # noqa: RUF071 - of characters


def common_prefix(texts: Sequence[str]) -> str:
    """Return the longest common beginning that cuts no marker and no word of any text."""
    look()
    if not texts:
        return ""
    size = shared_length(texts)
    bad = set().union(*(_near(text, size) for text in texts))
    while size > 0 and size in bad:
        size -= 1
    return texts[0][:size]


def common_suffix(texts: Sequence[str]) -> str:
    """Return the longest common end that cuts no marker and no word of any text."""
    look()
    if not texts:
        return ""
    size = shared_length([text[::-1] for text in texts])
    bad = {len(text) - at for text in texts for at in _near(text, len(text) - size)}
    while size > 0 and size in bad:
        size -= 1
    return texts[0][len(texts[0]) - size :]


def _inside(text: str, low: int, high: int) -> set[int]:
    """Return the positions inside markers and words of `text` between these two."""
    bad: set[int] = set()
    for pattern in (_pattern.get(), _WORD):
        for match in pattern.finditer(text[low:high]):
            bad.update(range(low + match.start() + 1, low + match.end()))
    return bad


def _near(text: str, at: int) -> set[int]:
    """Return those that a search from `at` may meet."""
    return _inside(text, max(0, at - 400), at + 400)


def cuttable(text: str, low: int, high: int) -> list[int]:
    """Return the positions from `low` to `high` that are inside no marker and no word, or all if there are none."""
    look()
    inside, places = _inside(text, 0, len(text)), range(low, high + 1)
    return [at for at in places if at not in inside] or list(places)


def markers_of(text: str) -> list[str]:
    """Return the bracketed markers of `text`, and the runs of anything else between them, blanks stripped.

    Each is cut if it is longer than any marker.
    """
    look()
    parts: list[str] = []
    at = 0
    for match in _pattern.get().finditer(text):
        parts += [text[at : match.start()].strip(), match.group()]
        at = match.end()
    parts.append(text[at:].strip())
    return [part[:MAX_TEMPLATE_MARKER] for part in parts if part]


def first_marker(text: str) -> str:
    """Return `text` up to and including its first marker, or all of it if it has none."""
    match = _pattern.get().search(text)
    if match is None:
        return text
    return text[: match.start()] if text[: match.start()].strip() else text[: match.end()]


def find_slots(text: str, values: Iterable[tuple[str, str]], start: int = 0) -> list[Slot]:
    """Return every occurrence of the (label, value) pairs in `text` from `start` on, in order; longer values win."""
    look()
    labels = {value: label for label, value in values if value}
    pattern = re.compile("|".join(re.escape(value) for value in sorted(labels, key=len, reverse=True)))
    return [Slot(labels[match.group()], match.start(), match.end()) for match in pattern.finditer(text, start)]


def between(text: str, slots: Sequence[Slot]) -> list[str]:
    """Return the texts before, between and after the slots; one text more than there are slots."""
    edges = [0, *(edge for slot in slots for edge in (slot.start, slot.end)), len(text)]
    return [text[edges[at] : edges[at + 1]] for at in range(0, len(edges), 2)]


def split_junction(junction: str, before_first: str, after_last: str) -> tuple[str, str, str]:
    """Split the text between two items into (end of an item, separator, start of an item).

    The end is what the junction shares with the text after the last item, the start what it shares with the text before
    the first. If both claim the same characters, the start keeps them if more than blanks is left for both; otherwise
    the end keeps them.
    """
    end = common_prefix([junction, after_last])
    start = common_suffix([junction, before_first])
    both = len(end) + len(start) - len(junction)
    if both > 0:
        claimed = start[:both]
        if claimed.strip() and end[: len(end) - both].strip() and start[both:].strip():
            end = end[: len(end) - both]
        else:
            start = start[both:]
    return end, junction[len(end) : len(junction) - len(start)], start


_WORDS_OF_PAIRS = (("begin", "end"), ("start", "end"), ("open", "close"), ("BEGIN", "END"), ("START", "END"))


def mirror_of(opening: str) -> str:
    """Return the counterpart of a marker by its form: `</x>` of `<x>`, `<|x_end|>` of `<|x_start|>`; else ""."""
    for begins, ends in _WORDS_OF_PAIRS:
        word = re.compile(rf"(?<![A-Za-z]){begins}(?![A-Za-z])")
        if word.search(opening):
            return word.sub(ends, opening, count=1)
    match = re.fullmatch(r"([<\[])([A-Za-z_][\w:.-]*)([>\]])", opening)
    return f"{match[1]}/{match[2]}{match[3]}" if match and match[1] + match[3] in ("<>", "[]") else ""


def opening_of(closing: str) -> str:
    """Return the marker of which this is the counterpart by its form; else ""."""
    words = (re.sub(rf"(?<![A-Za-z]){ends}(?![A-Za-z])", begins, closing) for begins, ends in _WORDS_OF_PAIRS)
    return next((each for each in (closing.replace("/", "", 1), *words) if mirror_of(each) == closing), "")


_BEGINNINGS = re.compile(r"begin|start|open|prefix|^b(?=[a-z]*$)", re.IGNORECASE)
_ENDINGS = re.compile(r"end|stop|close|suffix", re.IGNORECASE)


def mirrors(opening: str, closing: str) -> bool:
    """Return whether `closing` is the counterpart of `opening`: `<a>` and `</a>`, `[BEGIN X]` and `[END X]`."""
    a, b = opening.strip(), closing.strip()
    if not a or not b or a == b:
        return False
    if b.replace("/", "", 1) == a and "/" in b:
        return True
    if _BEGINNINGS.sub("", a) == _ENDINGS.sub("", b) and _ENDINGS.search(b) is not None:
        return True
    name = re.match(r"<(\w[\w:.-]*)[\s=]", a)
    return name is not None and b == f"</{name.group(1)}>"
