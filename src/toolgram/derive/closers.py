"""Closing markers that a template prints wrong, and what its models were taught: `</tool_call>` behind `<tool_call>`.

Strategy: what opens a call or a value and what closes it are matched from the inside out.  A closing tag that matches
nothing, or an opening one that is printed again in its place, stands where the counterpart of what is still open would
stand.  That is read there as well; what the template prints stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolgram.derive.comparing import markers_of, mirror_of, mirrors
from toolgram.derive.result import ArgumentsFormat, ArgumentSlot, ArgumentsStyle, CallsFormat, Slot

_TAG = re.compile(r"([<\[])([A-Za-z_][\w.:-]*)(?:[\s=][^<>\[\]]*)?([>\]])").fullmatch
_CLOSING = re.compile(r"[<\[]/([A-Za-z_][\w.:-]*)[>\]]").fullmatch
_ALIKE = 3  # letters that two names have in common


def wrong_closers(calls: CallsFormat) -> dict[str, str]:
    """The closing markers that match nothing, each with the one in whose place it stands."""
    found: dict[str, str] = {}
    for opening, closing in _around_arguments(calls):
        found |= match_closers(opening, closing)
    for opening, closing in _around_values(calls.arguments):
        # what opens a value again is a quote, and the tags of a value may be of its type
        wrong = match_closers(opening, closing).items()
        found |= {printed: meant for printed, meant in wrong if _alike(printed, meant) and printed not in opening}
    return found


def match_closers(opening: str, closing: str) -> dict[str, str]:
    """The same for what stands before something and behind it."""
    found: dict[str, str] = {}
    opened, closers = markers_of(opening), markers_of(closing)
    for number, marker in enumerate(closers):
        matching = [at for at, each in enumerate(opened) if mirrors(each, marker) or _is_part(marker, each)]
        same = [at for at, each in enumerate(opened) if each == marker and mirror_of(each)]
        tag = _CLOSING(marker)
        if matching:
            del opened[matching[-1] :]
        elif same:
            found[marker] = mirror_of(marker)
            del opened[same[-1] :]
        elif tag is not None:
            later = closers[number + 1 :]
            free = [(at, _official(each)) for at, each in enumerate(opened) if not any(mirrors(each, x) for x in later)]
            free = [(at, closer) for at, closer in free if closer[:1] == marker[:1]]
            alike = [row for row in free if _alike(row[1], marker)] or (free if len(free) == 1 else [])
            if alike:
                found[marker] = alike[-1][1]
                del opened[alike[-1][0] :]
    return found


def _around_arguments(calls: CallsFormat) -> Iterator[tuple[str, str]]:
    """What stands before and behind the arguments of a call."""
    at = calls.pattern.index(Slot.ARGUMENTS)
    before, after = (
        "".join(part if isinstance(part, str) else "x" for part in parts)
        for parts in (calls.pattern[:at], calls.pattern[at + 1 :])
    )
    sections = [(calls.section_start, calls.section_end), *([calls.single] if calls.single else [])]
    yield from ((start + before, after + end) for start, end in sections)


def _around_values(form: ArgumentsFormat) -> Iterator[tuple[str, str]]:
    """What stands before and behind a value of each type, where its closing tag does not repeat its key."""
    if form.style is ArgumentsStyle.TAGGED:
        key, value = form.pattern.index(ArgumentSlot.KEY), form.pattern.index(ArgumentSlot.VALUE)
        if ArgumentSlot.KEY not in form.pattern[value + 1 :]:
            prefix = "".join(part for part in form.pattern[:key] if isinstance(part, str))
            yield from ((f"{prefix}x{style.before}", style.after) for style in form.values.values())


def _official(opening: str) -> str:
    """The marker that closes an opening tag, with or without attributes; "" for what is no tag."""
    tag = _TAG(opening)
    return f"{tag[1]}/{tag[2]}{tag[3]}" if tag is not None else ""


def _is_part(closing: str, opening: str) -> bool:
    """Whether a closing tag has the name of an opening one that goes on: `</arg>` for `<arg:key>`."""
    one, other = _CLOSING(closing), _CLOSING(_official(opening))
    return one is not None and other is not None and re.match(rf"{re.escape(one[1])}[:.-]", other[1]) is not None


def _alike(one: str, other: str) -> bool:
    """Whether two closing tags have names that begin alike."""
    names = [match[1].lower() for match in map(_CLOSING, (one, other)) if match is not None]
    return len({name[:_ALIKE] for name in names}) == 1
