"""Clause 5, by brute force: what is held back is what some continuation could still change, and nothing more.

Strategy: after a beginning `t`, every continuation of a few tokens is tried, the end of the output among them. What
*all* of them say is certain, and a prompt parser has told it. The events are compared as rows of small items (one
per character of payload), so that half an event that is certain counts as well. Five things may wait although
their meaning is known: the blanks beside a marker, which go out together; a marker that may become a longer one; the
comma, colon and quote before a key or a late value of the JSON around a call, which go out with it; the header of a
message that calls only if its text is an object; and a call in Python, which goes out with its first value (`f()` with
what follows it), and a word after it, which may be a name.
What is left of a call or a marker that the beginning may have begun is one token, so that three reach every outcome.
A model also writes what belongs to no format. One such character is tried first as well: what may be repaired waits.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path

import toolgram
from tests.generators.broken_outputs import grammar_literals
from tests.generators.calls_in_halves import goals, scenes, tokens
from tests.properties.selection import every_format, some
from tests.streams import held_after, run
from toolgram.events import Content, Dropped, Event, Malformed, Reasoning, ToolCallDelta, ToolCallEnd, ToolCallStart

Item = tuple[str, ...]

# Written by hand, where they ask more of a format than what is made from its two files: a format needs none.
BY_HAND: dict[str, dict[str, list[str]]] = json.loads((Path(__file__).parent / "prompt_texts.json").read_text("utf-8"))
DEPTH = 3
BREAKAGES = ("'",)  # begins what is repaired after a backslash, and a value where JSON belongs
MOST_GOALS = 60  # that a row of three texts may begin with


def tokens_of(name: str) -> tuple[str, ...]:
    """The tokens of a format: written by hand where somebody did, else made from its files."""
    return tuple(BY_HAND["tokens"].get(name, ())) or tokens(name)


def goals_of(name: str) -> tuple[str, ...]:
    """Its goals: those of the files, and those by hand."""
    return tuple(dict.fromkeys((*BY_HAND["goals"].get(name, ()), *goals(name))))


def items_of(events: Sequence[Event]) -> Iterator[Item]:
    """The events as one item per character told, so that events cut in two compare as one."""
    for event in events:
        match event:
            case Content() | Reasoning() | Malformed():
                yield from ((event.type, character) for character in event.text)
            case Dropped():
                yield from (("dropped", character) for character in event.text)
            case ToolCallStart():
                yield ("start", str(event.index), event.name)
            case ToolCallDelta():
                yield from (("delta", str(event.index), character) for character in event.arguments)
            case ToolCallEnd():
                yield ("end", str(event.index), event.status)


@lru_cache(maxsize=200_000)
def _outcome(name: str, text: str) -> tuple[Item, ...]:
    return tuple(items_of(run(toolgram.get_format(name), [text])[0]))


def _told(name: str, text: str) -> tuple[Item, ...]:
    return tuple(items_of(toolgram.get_format(name).parser(prefix="").feed(text)))


def _common(first: tuple[Item, ...], second: tuple[Item, ...]) -> tuple[Item, ...]:
    for at, (a, b) in enumerate(zip(first, second, strict=False)):
        if a != b:
            return first[:at]
    return min(first, second, key=len)


def remainders(name: str, beginning: str) -> list[str]:
    """What is left of every goal that `beginning` may have begun, and whole goals: the few by hand, if there are."""
    every = (*goals_of(name), *grammar_literals(name), *toolgram.get_format(name).spec.other_roles)
    begun = [goal[at:] for goal in every for at in range(1, len(goal)) if beginning.endswith(goal[:at])]
    return [*dict.fromkeys((*begun, *grammar_literals(name), *BY_HAND["goals"].get(name, goals(name))))]


def certain_but_held(name: str, beginning: str) -> tuple[Item, ...]:
    """Items that every continuation agrees on and that `beginning` has not told; empty where holding is justified."""
    told = _told(name, beginning)
    certain = _outcome(name, beginning)
    first = (*remainders(name, beginning), *tokens_of(name), *BREAKAGES)
    for depth in range(DEPTH + 1):
        for continuation in product(first, *[tokens_of(name)] * (depth - 1)) if depth else ():
            certain = _common(certain, _outcome(name, beginning + "".join(continuation)))
            if len(certain) <= len(told):
                break
        assert certain[: len(told)] == told, f"{beginning!r}: told {told}, and a continuation means {certain}"
        if len(certain) == len(told) or _may_wait(name, beginning, certain[len(told)]):
            return ()
    return certain[len(told) :]


# A call in Python before its first value, of which a sign shows nothing; or a list of such calls, and a word.
_python_waits = re.compile(r"[\w.]+\s*\((?:\s*\w+\s*(?:=\s*-?)?)?\)?$|\]\s*\w+$").search
_header_waits = re.compile(r"<\|channel\|>[^<]* to=[^<]*<\|message\|>\s*\{?$").search


def _may_wait(name: str, beginning: str, item: Item) -> bool:
    held, states = held_after(name, beginning), toolgram.get_format(name).spec.states.values()
    if item[0] == "dropped" and (item[1] in ' \t\r\n,:"' or _may_grow(name, held) or _header_waits(held)):
        return True
    return item[0] != "malformed" and _python_waits(held) is not None and any(state.python for state in states)


def _may_grow(name: str, held: str) -> bool:
    """Whether what is held is a marker, and the beginning of a longer one (which is one event) or of another's turn."""
    literals = grammar_literals(name)
    begun = [short for short in literals if held.endswith(short)]
    turns = (role[:at] for role in toolgram.get_format(name).spec.other_roles for at in range(2, len(role)))
    return held.endswith((*turns,)) or any(
        long != short and long.startswith(short) for short in begun for long in literals
    )


def check_held(name: str, beginnings: Iterable[str]) -> None:
    """What is certain after each beginning has been told."""
    failures = [(text, held) for text in beginnings if (held := certain_but_held(name, text))]
    assert not failures, f"all continuations of {DEPTH} tokens, and the end, agree on what was not told"


@every_format
def test_nothing_certain_is_held_back(name: str) -> None:
    found = some((*BY_HAND["scenes"].get(name, ()), *scenes(name)), name)
    check_held(name, (scene[:end] for scene in found for end in range(1, len(scene) + 1)))


@every_format
def test_nothing_certain_is_held_back_after_any_two_tokens(name: str) -> None:
    tokens = tokens_of(name)
    check_held(name, map("".join, some([*((token,) for token in tokens), *product(tokens, repeat=2)], name)))


@every_format
def test_nothing_told_is_ever_changed(name: str) -> None:
    """The other half: what went out is a beginning of what every continuation means."""
    tokens, goals = tokens_of(name), goals_of(name)[:MOST_GOALS]
    for row in some([*product((*tokens, *goals), tokens, (*tokens, *goals[:3]))], name):
        text = "".join(row)
        for end in range(1, len(text)):
            told = _told(name, text[:end])
            assert _outcome(name, text)[: len(told)] == told, f"{text[:end]!r} then {text[end:]!r}"
