"""What other parsers' tests expect of a model family's outputs, as rows that `judged` holds formats to.

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


def rows(shared: Path) -> Iterator[Row]:
    """The rows of all families: classes of vLLM and SGLang, and families of Dynamo."""
    for line in (shared / "data" / FAMILY).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        kind = "tool" if row["peer_calls"] is not None else "reason"
        read = _reading(row["peer_content"], row["peer_reasoning"], row["peer_calls"] or [])
        yield Row(row["id"], row["class"], kind, row["text"], row["tools"], {row["peer"]: read})
    for line in (shared / "data" / DYNAMO).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
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


def read(fmt: toolgram.Format, row: Row, prefix: str | None) -> Reading:
    """What this package reads in a row's text; only calls that are complete."""
    message = fmt.parse(row.text, row.tools, prefix)
    calls = tuple((call.name, _data(call.arguments)) for call in message.tool_calls if call.status == "complete")
    return Reading((message.content or "").strip(), (message.reasoning or "").strip(), calls)


Rule = Callable[[Row, Reading, Reading], bool]


def _text_behind_calls(row: Row, ours: Reading, theirs: Reading) -> bool:
    mine = asked(row, ours)
    return ours.calls == theirs.calls and _begins(ours.content, theirs.content) and mine.reasoning == theirs.reasoning


def _begins(text: str, start: str) -> bool:
    return not start or text.startswith(start)


def _thought_left_in(row: Row, ours: Reading, theirs: Reading) -> bool:
    """A tool parser alone leaves the thought, and the marker that ends it, in the text."""
    words = _MARKER.sub(" ", theirs.content).split()
    return bool(ours.reasoning) and ours.calls == theirs.calls and words == f"{ours.reasoning} {ours.content}".split()


def _nothing_announced(row: Row, ours: Reading, theirs: Reading) -> bool:
    return not ours.calls and row.text.lstrip()[:1] in ("[", "{") and row.text.strip() == ours.content


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
)


def asked(row: Row, reading: Reading) -> Reading:
    """A reading without what no peer was asked for: a row about calls alone says nothing of reasoning."""
    if row.kind == "tool" and not any(each.reasoning for each in row.peers.values()):
        return Reading(reading.content, "", reading.calls)
    return reading
