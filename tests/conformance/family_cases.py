"""What other parsers' tests expect of a model family's outputs, as rows that any format can be held to.

Strategy: the rows are read where they stand (`family-cases.jsonl`, `dynamo-cases.jsonl` beside the repository).  A row
has one or more readings, each of a named peer.  They are evidence, not truth: where ours is none of them, `REASONS`
says which rule of ours decides, by the class of the difference and not by the row.  Blanks at the ends of a text are
left out of the comparison, since the seam rule drops them and peers disagree about them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import toolgram

FAMILY, DYNAMO = "family-cases.jsonl", "dynamo-cases.jsonl"


@dataclass(frozen=True)
class Reading:
    """What a parser makes of an output; calls are (name, arguments as data, or as text where they are no JSON)."""

    content: str
    reasoning: str
    calls: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Row:
    """One output, with what peers read in it. `kind` says what a peer was asked for: `tool` or `reason`."""

    id: str
    family: str
    kind: str
    text: str
    tools: list[Any] | None
    peers: Mapping[str, Reading]


def rows(shared: Path, families: Mapping[str, object]) -> Iterator[Row]:
    """The rows of these families: classes of vLLM and SGLang, or families of Dynamo."""
    for line in (shared / "data" / FAMILY).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["class"] in families:
            kind = "tool" if row["peer_calls"] is not None else "reason"
            read = _reading(row["peer_content"], row["peer_reasoning"], row["peer_calls"] or [])
            yield Row(row["id"], row["class"], kind, row["text"], row["tools"], {row["peer"]: read})
    for line in (shared / "data" / DYNAMO).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["family"] in families:
            kind = "tool" if row["kind"] == "toolcalling" else "reason"
            peers = {
                name: _reading(said.get("normal_text"), said.get("reasoning_text"), said.get("calls") or [])
                for name, said in row["peers"].items()
                if isinstance(said, dict) and "normal_text" in said
            }
            yield Row(f"{row['family']} {row['id']}", row["family"], kind, row["text"], row["tools"], peers)


def _reading(content: str | None, reasoning: str | None, calls: list[Any]) -> Reading:
    found = tuple((call["name"], _data(call["arguments"])) for call in calls)
    return Reading((content or "").strip(), (reasoning or "").strip(), found)


def _data(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def read(fmt: toolgram.Format, row: Row, prefix: str | None, by: int | None = None) -> Reading:
    """What this package reads in a row's text, whole or in deltas of `by` characters; only calls that are complete."""
    parser = fmt.parser(row.tools, prefix)
    for start in range(0, len(row.text), by or max(1, len(row.text))):
        parser.feed(row.text[start : start + (by or len(row.text))])
    parser.close()
    message = parser.message
    calls = tuple((call.name, _data(call.arguments)) for call in message.tool_calls if call.status == "complete")
    return Reading((message.content or "").strip(), (message.reasoning or "").strip(), calls)


Rule = Callable[[Row, Reading, Reading], bool]


def _text_behind_calls(row: Row, ours: Reading, theirs: Reading) -> bool:
    mine = _asked(row, ours)
    return ours.calls == theirs.calls and _begins(ours.content, theirs.content) and mine.reasoning == theirs.reasoning


def _no_call_is_text(row: Row, ours: Reading, theirs: Reading) -> bool:
    """The markup of what is no call, and no call either way."""
    return not theirs.calls and not ours.calls and len(ours.content) > len(theirs.content)


def _one_call_is_text(row: Row, ours: Reading, theirs: Reading) -> bool:
    """The peer gives a call whose arguments are no JSON, or without a name; here its text is content."""
    good = tuple(call for call in theirs.calls if isinstance(call[1], dict) and call[0])
    return good != theirs.calls and ours.calls == good


def _repaired(row: Row, ours: Reading, theirs: Reading) -> bool:
    """The peer drops a call, or gives what is no JSON; here one repair makes it whole."""
    names = [name for name, _ in theirs.calls]
    bad = any(not isinstance(arguments, dict) for _, arguments in theirs.calls)
    more = len(ours.calls) > len(theirs.calls)
    return (bad and [name for name, _ in ours.calls] == names) or (
        more and set(names) <= {name for name, _ in ours.calls}
    )


def _begins(text: str, start: str) -> bool:
    return not start or text.startswith(start)


def _thought_left_in(row: Row, ours: Reading, theirs: Reading) -> bool:
    """A tool parser alone leaves the thought, and the marker that ends it, in the text."""
    words = _MARKER.sub(" ", theirs.content).split()
    return bool(ours.reasoning) and ours.calls == theirs.calls and words == f"{ours.reasoning} {ours.content}".split()


def _nothing_announced(row: Row, ours: Reading, theirs: Reading) -> bool:
    return not ours.calls and row.text.lstrip()[:1] in ("[", "{") and row.text.strip() == ours.content


def _cut_off_before_arguments(row: Row, ours: Reading, theirs: Reading) -> bool:
    sure = tuple(call for call in theirs.calls if call[1] != {})
    return sure != theirs.calls and ours.calls == sure and _begins(ours.content, theirs.content)


_MARKER = re.compile(r"</?think>")


def _stand_ins(row: Row, ours: Reading, theirs: Reading) -> bool:
    content, reasoning = (
        " ".join(text.replace("<bos>", "").replace("<eos>", "").split()) for text in (ours.content, ours.reasoning)
    )
    return "<bos>" in row.text and (content, reasoning, ours.calls) == (theirs.content, theirs.reasoning, theirs.calls)


# By class, in this order: a rule, and why what it describes is right here.
REASONS: tuple[tuple[Rule, str], ...] = (
    (
        _stand_ins,
        "`<bos>` and `<eos>` are special tokens of the test's own tokenizer, which no model of the family has",
    ),
    (_thought_left_in, "the peer was asked for calls alone; here reasoning is reasoning"),
    (_nothing_announced, "JSON that no marker of the family announces is text, whatever closes it"),
    (_text_behind_calls, "text after, between and before calls is content; peers drop some of it"),
    (
        _no_call_is_text,
        "what was never certain to be a call is text as it stands; peers drop its markers, or all of it",
    ),
    (_cut_off_before_arguments, "an output that ends before arguments begin has no call: its name may be half a name"),
    (_one_call_is_text, "a call without a name, or with arguments that are no JSON, is no call: its text is content"),
    (_repaired, "one reading is possible: the call is whole, with an anomaly; peers drop it or hand on broken JSON"),
)


def judge(row: Row, ours: Reading) -> str:
    """How a reading of ours stands to the peers': "" where it is one of theirs, the reason of its class, or "?"."""
    wanted = [_asked(row, reading) for reading in row.peers.values()]
    mine = _asked(row, ours)
    if mine in wanted:
        return ""
    for rule, reason in REASONS:
        if any(rule(row, ours, theirs) for theirs in wanted):
            return reason
    return "?"


def _asked(row: Row, reading: Reading) -> Reading:
    """A reading without what no peer was asked for: a row about calls alone says nothing of reasoning."""
    if row.kind == "tool" and not any(each.reasoning for each in row.peers.values()):
        return Reading(reading.content, "", reading.calls)
    return reading
