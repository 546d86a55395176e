"""Formats whose markers end in a suffix that each checkpoint has of its own: `<think:opensource>`, `<think:6124c78e>`.

Strategy: the two files are written for one suffix, which the machine file names (`suffix:`).  For another one they are
read again with that in its place, so that parser, exported grammars and pages say the same.  Which suffix a server has,
its special tokens show, or the markers of a prompt: the last one, which the template has written after all messages.
A suffix is a few letters and digits, so nothing else of a file can change with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from toolgram.formats import Format, grammar_home
from toolgram.limits import LONGEST_WORD
from toolgram.spec.data import Literal
from toolgram.spec.files import spec_from_texts

_ANY = rf"[A-Za-z0-9_-]{{1,{LONGEST_WORD}}}"
_MOST_KEPT = 16  # formats with other suffixes
_SHORT = 2048  # characters: the special tokens of a server, which are the same for each request


def with_suffix_of(fmt: Format, texts: Iterable[str]) -> Format:
    """Return the format with the suffix of the last marker in these texts, or the format itself."""
    text = "\n".join(texts)  # which no marker holds
    return _as_told(fmt, text) if len(text) > _SHORT else _as_told_shortly(fmt, text)


def _as_told(fmt: Format, text: str) -> Format:
    suffix = _last_suffix(fmt, text) or fmt.spec.suffix
    return fmt if suffix == fmt.spec.suffix else _with_suffix(fmt, suffix)


_as_told_shortly = lru_cache(maxsize=_MOST_KEPT)(_as_told)


def _last_suffix(fmt: Format, text: str) -> str:
    """Return the suffix of the last marker in a text; "" without one."""
    suffix = ""
    for match in _markers(fmt).finditer(text):
        suffix = match[match.lastindex or 0]
    return suffix


@lru_cache(maxsize=_MOST_KEPT)
def _markers(fmt: Format) -> re.Pattern[str]:
    """Return an expression for the markers of a format with any suffix, which is the group that matches."""
    suffix = fmt.spec.suffix
    texts = [shape.text for shape in fmt.spec.terminals.values() if isinstance(shape, Literal)]
    parts = [text.partition(suffix) for text in texts if suffix in text]
    any_suffix = f"({re.escape(suffix[0])}{_ANY})"
    return re.compile("|".join(re.escape(head) + any_suffix + re.escape(tail) for head, _, tail in parts))


@lru_cache(maxsize=_MOST_KEPT)
def _with_suffix(fmt: Format, suffix: str) -> Format:
    spec = fmt.spec
    grammar, machine = (text.replace(spec.suffix, suffix) for text in (fmt.grammar_text, fmt.machine_text))
    written = spec_from_texts(grammar, spec.grammar_path, machine, spec.machine_path, (str(grammar_home()),))
    return Format(written, machine)
