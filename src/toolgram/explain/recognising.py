"""Which format wrote this? One ranked list, with reasons, for everything that has an output and no format.

Strategy: every shipped format reads the texts, and what each finds decides: complete calls, then calls that were cut
off, then the fewest broken calls, the least text left, the fewest anomalies. Formats that differ only in markers which
these texts do not hold read them alike. The list names such ties, and the format that most servers and models name
comes first among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from toolgram.explain.explanation import Candidate
from toolgram.formats import Format, format_names, get_format
from toolgram.message import Message
from toolgram.names import Entry, known_names
from toolgram.tools.reading import read_tools


def recognise(
    texts: Iterable[str],
    tools: Sequence[Any] | None = None,
    prefix: str | None = None,
    finish_reason: str | None = None,
    but: str = "",
) -> list[Candidate]:
    """Return the shipped formats, but one, by what each makes of all these outputs; the first reads the most."""
    outputs, found, declared = list(texts), [], read_tools(tools)
    for name in format_names():
        if name != but:
            fmt = get_format(name)
            messages = [_message(fmt, text, declared, prefix, finish_reason) for text in outputs]
            found.append(candidate(name, outputs, messages))
    found.sort(key=lambda each: (each.rank, _known(each.name)), reverse=True)
    for _, group in groupby(found, key=lambda each: each.rank):
        tied = list(group)
        for each in tied:
            each.alike = [other.name for other in tied if other is not each]
    return found


def _message(fmt: Format, text: str, tools: Any, prefix: str | None, finish_reason: str | None) -> Message:
    """Read a text with a format. `Format.parse` would prepare to read many more, for every format."""
    parser = fmt.parser(tools, prefix)
    parser.feed(text)
    parser.close(finish_reason)
    return parser.message


def candidate(name: str, outputs: Iterable[str], messages: Sequence[Message]) -> Candidate:
    """Return what a format has made of some outputs."""
    calls = [call for message in messages for call in message.tool_calls]
    complete = sum(call.status == "complete" for call in calls)
    # A prompt may make reasoning of any text, so reasoning is no reason to prefer a format.
    left = sum(_letters(message.content or "") + _letters(message.reasoning or "") for message in messages)
    return Candidate(
        name,
        complete,
        len(calls) - complete,
        sum(len(message.malformed) for message in messages),
        left,
        sum(len(message.anomalies) for message in messages),
        left < sum(map(_letters, outputs)),
    )


def is_found(found: Candidate) -> bool:
    """Return whether a format has found anything that makes it more likely than another."""
    return bool(found.calls + found.unfinished) or found.markers


def best_format(texts: Iterable[str], tools: Sequence[Any] | None = None) -> Format | None:
    """Return the format that reads the most of these outputs; None if none finds a call or a marker."""
    first = recognise(texts, tools)[0]
    return get_format(first.name) if is_found(first) else None


def _letters(text: str) -> int:
    return len("".join(text.split()))


def _known(name: str) -> int:
    """Return how many names of servers and models stand for this format."""
    entry = known_names().entries.get(name, Entry())
    return len(entry.aliases) + len(entry.models)
