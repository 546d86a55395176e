"""Samples of the bench, how they are read, and the parts of a format that its examples show.

Strategy: a format's calls and the tags of its thoughts are found in its own examples, so that no format is known here.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import toolgram
from tests.generators.suite_cases import special_ids
from toolgram.observing.paths import canonical_outputs

Calls = tuple[tuple[str, str], ...]  # names and arguments, in order

TYPES = {"city": "string", "days": "integer", "hours": "array", "zone": "string", "unit": "string"}
FUNCTIONS = {"get_weather": ("city", "days", "hours", "unit"), "get_time": ("zone",), "add": ("a", "b"), "now": ()}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {
        key: {"type": TYPES.get(key, "number")} for key in keys}}}}
    for name, keys in {**FUNCTIONS, "search_docs": ("exact",)}.items()
]  # fmt: skip
OTHER_TOOLS = [{"type": "function", "function": {"name": "other", "parameters": {"type": "object", "properties": {}}}}]


@dataclass(frozen=True)
class Sample:
    """An output of a format, and the calls that were made in it."""

    format: str
    text: str
    made: Calls = ()
    reason: str | None = "stop"
    prefix: str = ""
    tools: Sequence[Any] | None = field(default=None, repr=False)
    ids: tuple[int, ...] | None = None  # of the tokens of the text, which is one delta
    tokens: tuple[tuple[str, int], ...] = ()  # of the text, each a delta


def read(sample: Sample) -> toolgram.Message:
    """Return the message of a sample."""
    fmt = toolgram.get_format(sample.format)
    special = special_ids(sample.format) if sample.ids is not None or sample.tokens else None
    parser = fmt.parser(tools=sample.tools, prefix=sample.prefix, special_tokens=special)
    for text, number in sample.tokens:
        parser.feed(text, [number])
    if not sample.tokens:
        parser.feed(sample.text, sample.ids)
    parser.close(sample.reason)
    return parser.message


def complete_calls(message: toolgram.Message) -> Calls:
    """Return the complete calls of a message, their arguments in one form."""
    return tuple((c.name, one_form(json.loads(c.arguments))) for c in message.tool_calls if c.status == "complete")


def one_form(arguments: Any) -> str:
    """Return arguments as text, the same for the same arguments."""
    return json.dumps(arguments, sort_keys=True)


def verdict(sample: Sample, calls: Calls) -> str:
    """Return `right` if the calls are those that were made, `wrong` if there is another one, else `lost`."""
    if calls == sample.made:
        return "right"
    made = iter(sample.made)
    return "lost" if all(call in made for call in calls) else "wrong"


def tokens_in(name: str, text: str) -> tuple[tuple[str, int], ...]:
    """Return the tokens of a text: its special tokens with their ids, and what is between them with the id 7."""
    special = special_ids(name)
    pieces = re.split("(" + "|".join(map(re.escape, sorted(special, key=len, reverse=True))) + ")", text)
    return tuple((piece, special.get(piece, 7)) for piece in pieces if piece)


def ids_in(name: str, text: str) -> tuple[int, ...]:
    """Return the ids of the tokens of a text."""
    return tuple(number for _, number in tokens_in(name, text))


@dataclass(frozen=True)
class Shown:
    """What the examples of a format show: its outputs, a text that is calls and nothing else, and a thought's ends."""

    outputs: tuple[tuple[str, str], ...]  # prefix, output
    calls: str
    made: Calls  # what they are
    thought: tuple[str, str, str] | None  # prefix, opening, closing


@lru_cache(maxsize=256)
def shown(name: str) -> Shown:
    """Return the parts of a format's examples."""
    outputs = tuple((prefix, output) for prefix, output, _ in canonical_outputs(toolgram.get_format(name)))
    tails = [tail for prefix, output in outputs for tail in [_calls_alone(name, prefix, output)] if tail]
    thoughts = (_thought(name, prefix, output) for prefix, output in outputs)
    calls = next((tail for tail in tails if "Paris" in tail), tails[0])
    made = complete_calls(read(Sample(name, calls, tools=TOOLS)))
    return Shown(outputs, calls, made, next(filter(None, thoughts), None))


def _events(name: str, prefix: str, output: str) -> list[toolgram.Event]:
    parser = toolgram.get_format(name).parser(tools=TOOLS, prefix=prefix)
    return [*parser.feed(output), *parser.close("stop")]


def _calls_alone(name: str, prefix: str, output: str) -> str:
    """Return the longest end of an output that reads as its calls and nothing else; "" if there is none."""
    calls = complete_calls(read(Sample(name, output, prefix=prefix, tools=TOOLS)))
    at = 0
    for event in _events(name, prefix, output):
        message = read(Sample(name, output[at:], tools=TOOLS))
        plain = not (message.content or message.reasoning or message.anomalies)
        if calls and plain and complete_calls(message) == calls:
            return re.sub(r"^</[^>]+>", "", output[at:].strip()).strip()  # of a tag around the answer
        at += len(event.source)
    return ""


def _thought(name: str, prefix: str, output: str) -> tuple[str, str, str] | None:
    """Return what opens and closes the thought of an output, if that is a pair of tags."""
    events = _events(name, prefix, output)
    inside = [at for at, event in enumerate(events) if isinstance(event, toolgram.Reasoning)]
    if not inside:
        return None
    opening = "".join(event.source for event in events[: inside[0]])
    after = [event.source for event in events[inside[-1] + 1 :] if isinstance(event, toolgram.Dropped)]
    for count in range(1, min(len(after), 3) + 1):
        closing = "".join(after[:count])
        message = read(Sample(name, f"{opening}Hm.{closing}Hello!", prefix=prefix))
        if (message.reasoning, message.content) == ("Hm.", "Hello!"):
            return prefix, opening, closing
    return None


def quoted(text: str) -> str:
    """Return the text of calls with other arguments."""
    return text.replace("Paris", "Rome").replace("3.5", "7.5")
