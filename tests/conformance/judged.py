"""Every case of other parsers' tests, judged row by row: agree, peers disagree, we differ and why.

    python -m tests.conformance.judged --write docs/deviations-judged.md

Strategy: the rows are read from `family-cases.jsonl` and `dynamo-cases.jsonl` beside the repository. A row has one or
more readings, each of a named peer. They are evidence, not truth. Blanks at the ends of a text are left out of the
comparison, since the seam rule drops them and peers disagree about them. A row's format follows from the class or
family that it is a case of, or else from the markers in its text. What a prompt has written is not part of a row, so a
row agrees if it does with one of the prompts that its family has. If ours is no peer's reading, the first of `REASONS`
that fits says why, by the class of the difference and not by the row; a row that none fits is shown as open.
"""

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import toolgram
from tests.json_prefix import value_of
from tests.page_parts import write_part

SHARED = Path(__file__).parents[3] / "shared"
PROMPTS = (None, "", "<think>", "<seed:think>", "[THINK]", "<|channel>thought\n", "<|plamo:begin_think:plamo|>")
PART = "<!-- judged -->", "<!-- /judged -->"  # of the page
FAMILY, DYNAMO = "family-cases.jsonl", "dynamo-cases.jsonl"
AGREE, DISAGREE, OPEN, NONE = "agree", "peers disagree", "open", "no format"

# By format, the classes and families that it reads. What is in no list is found by its markers, the first one found
# in the text; these go before the class where the class has several formats.
_TOLD = json.loads((Path(__file__).parent / "judged.json").read_text(encoding="utf-8"))
FORMATS: Mapping[str, str] = {family: name for name, families in _TOLD["classes"].items() for family in families}
MARKERS: Mapping[str, str] = _TOLD["markers"]
SEVERAL = {"mistral", "MistralDetector", "Parser", "TestParser", "GraniteThinkingParser"}
REPAIRS = {
    "unclosed_value", "unclosed_envelope", "unclosed_arguments", "surplus_closer", "unfinished_marker", "repaired_json",
    "repaired_python", "unusual_form",
}  # fmt: skip


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


def rows_of(shared: Path) -> Iterator[Row]:
    """The rows of all families: classes of vLLM and SGLang, and families of Dynamo."""
    for row in _lines(shared / "data" / FAMILY):
        kind = "tool" if row["peer_calls"] is not None else "reason"
        read = _reading(row["peer_content"], row["peer_reasoning"], row["peer_calls"])
        yield Row(row["id"], row["class"], kind, row["text"], row["tools"], {row["peer"]: read})
    for row in _lines(shared / "data" / DYNAMO):
        kind = "tool" if row["kind"] == "toolcalling" else "reason"
        peers = {
            name: _reading(said.get("normal_text"), said.get("reasoning_text"), said.get("calls"))
            for name, said in row["peers"].items()
            if isinstance(said, dict) and "normal_text" in said
        }
        yield Row(f"{row['family']} {row['id']}", row["family"], kind, row["text"], row["tools"], peers)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    return map(json.loads, path.read_text(encoding="utf-8").splitlines())


def _reading(content: str | None, reasoning: str | None, calls: list[Any] | None) -> Reading:
    found = tuple((call["name"], value_of(call["arguments"])) for call in calls or ())
    return Reading((content or "").strip(), (reasoning or "").strip(), found)


def read(fmt: toolgram.Format, row: Row, prefix: str | None) -> Reading:
    """What this package reads in a row's text; only calls that are complete."""
    message = fmt.parse(row.text, row.tools, prefix)
    complete = [each for each in message.to_dict()["tool_calls"] if each["status"] == "complete"]
    return _reading(message.content, message.reasoning, complete)


@dataclass(frozen=True)
class Judged:
    """A row, the format that read it, what became of it, and for a row that is open what was read."""

    row: Row
    name: str
    verdict: str
    ours: Reading | None = None


def _loose(value: object) -> object:
    if isinstance(value, str):
        try:
            return _loose(json.loads(value))
        except ValueError:
            return value.strip().lower()
    if isinstance(value, dict):
        return {key: _loose(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_loose(each) for each in value]
    return str(value).strip().lower()


def asked(row: Row, reading: Reading) -> Reading:
    """A reading without what no peer was asked for: a row about calls alone says nothing of reasoning."""
    if row.kind == "tool" and not any(each.reasoning for each in row.peers.values()):
        return Reading(reading.content, "", reading.calls)
    return reading


def judged(shared: Path = SHARED) -> list[Judged]:
    """All rows, in the order of the data. Of their functions those that are more than a name: a few have no others."""
    rows = ((row, [tool for tool in row.tools or () if isinstance(tool, dict)]) for row in rows_of(shared))
    return [_judge(replace(row, tools=tools or None)) for row, tools in rows]


def _judge(row: Row) -> Judged:
    name = format_of(row)
    if name not in toolgram.format_names():
        return Judged(row, name, NONE)
    fmt = toolgram.get_format(name)
    readings = [read(fmt, row, prefix) for prefix in PROMPTS]
    wanted = [asked(row, each) for each in row.peers.values()]
    for reading in readings:
        mine = asked(row, reading)
        if mine in wanted:
            return Judged(row, name, AGREE if all(each == mine for each in wanted) else DISAGREE)
    for rule, reason in REASONS:
        for mine in (asked(row, each) for each in readings):
            if any(rule(row, mine, theirs) for theirs in wanted):
                return Judged(row, name, reason)
    return Judged(row, name, OPEN, asked(row, readings[0]))


def format_of(row: Row) -> str:
    """The name of the format that reads a row; empty where nothing tells."""
    by_marker = next((name for marker, name in MARKERS.items() if marker in row.text), "")
    if row.family in SEVERAL or row.family not in FORMATS:
        return by_marker or FORMATS.get(row.family, "")
    return FORMATS[row.family]


def _read(row: Row) -> toolgram.Message:
    return toolgram.get_format(format_of(row)).parse(row.text, row.tools)


# --- why we differ: is ours this reading, if theirs is that one? --------------------------------------------------


def _anomalies(row: Row) -> set[str]:
    return {each.kind for each in _read(row).anomalies}


def _names(reading: Reading) -> list[str]:
    return [name for name, _ in reading.calls]


def _same_words(row: Row, ours: Reading, theirs: Reading) -> bool:
    """blanks beside markers are dropped, and segments of text are joined by one"""
    texts = [("".join(each.content.split()), "".join(each.reasoning.split())) for each in (ours, theirs)]
    return texts[0] == texts[1] and ours.calls == theirs.calls


def _stand_ins(row: Row, ours: Reading, theirs: Reading) -> bool:
    """`<bos>` and `<eos>` are special tokens of the test's own tokenizer, which no model of the family has"""
    content, reasoning = (" ".join(re.sub("<[be]os>", "", text).split()) for text in (ours.content, ours.reasoning))
    return "<bos>" in row.text and Reading(content, reasoning, ours.calls) == theirs


def _thought_left_in(row: Row, ours: Reading, theirs: Reading) -> bool:
    """the peer was asked for calls alone; here reasoning is reasoning"""
    words = re.sub("</?think>", " ", theirs.content).split()
    return bool(ours.reasoning) and ours.calls == theirs.calls and words == f"{ours.reasoning} {ours.content}".split()


def _nothing_announced(row: Row, ours: Reading, theirs: Reading) -> bool:
    """JSON that no marker of the family announces is text, whatever closes it"""
    return not ours.calls and row.text.lstrip()[:1] in ("[", "{") and row.text.strip() == ours.content


def _text_after_calls(row: Row, ours: Reading, theirs: Reading) -> bool:
    """text after, between and before calls is content; peers drop some of it"""
    same = ours.calls == theirs.calls and asked(row, ours).reasoning == theirs.reasoning
    return same and ours.content.startswith(theirs.content)


def _cut_off(row: Row, ours: Reading, theirs: Reading) -> bool:
    """a call that was cut off is `truncated`; peers drop it, show its text, or close it in silence"""
    truncated = "truncated" in [call.status for call in _read(row).tool_calls]
    return truncated and (ours.calls == theirs.calls[: len(ours.calls)] or not theirs.calls)


def _repaired(row: Row, ours: Reading, theirs: Reading) -> bool:
    """one reading is possible: repaired, with an anomaly; peers drop the call or hand on broken JSON"""
    return bool(_anomalies(row) & REPAIRS) and bool(ours.calls)


def _markers_shown(row: Row, ours: Reading, theirs: Reading) -> bool:
    """markup is never content where it was read; peers leave it in the text"""
    return ours.calls == theirs.calls and len(ours.content) < len(theirs.content)


def _types(row: Row, ours: Reading, theirs: Reading) -> bool:
    """a value is of the type that the schema declares, else as written; peers convert by other rules"""
    mine, other = ([(name, _loose(given)) for name, given in each.calls] for each in (ours, theirs))
    return mine == other and ours.calls != theirs.calls


def _more_calls(row: Row, ours: Reading, theirs: Reading) -> bool:
    """a whole call is a call in any place; peers read the first, or none beside text"""
    return not _anomalies(row) and len(ours.calls) > len(theirs.calls)


def _undeclared(row: Row, ours: Reading, theirs: Reading) -> bool:
    """an argument that was not declared is passed on, with an anomaly; peers drop it"""
    return "undeclared_argument" in _anomalies(row) and _names(ours) == _names(theirs)


def _unknown_schema(row: Row, ours: Reading, theirs: Reading) -> bool:
    """the schema of the peer's test is not recorded; if nothing is declared, the text decides"""
    mine, other = ({word.lstrip("0") for word in re.findall(r"\w+", str(each.calls))} for each in (ours, theirs))
    same = mine == other - {"item"}  # how a list's items are called, which peers take for a member
    return row.tools is None and _names(ours) == _names(theirs) and same


def _filtered(row: Row, ours: Reading, theirs: Reading) -> bool:
    """a call of a function that the request has not declared is a call, with the anomaly `unknown_tool`"""
    return 0 < len(theirs.calls) < len(ours.calls) and {*map(str, theirs.calls)} <= {*map(str, ours.calls)}


def _not_in_the_text(row: Row, ours: Reading, theirs: Reading) -> bool:
    """a forced call is arguments alone, and the request says of which function; a text does not"""
    return bool(theirs.calls) and not any(name in row.text for name in _names(theirs))


def _broken_name(row: Row, ours: Reading, theirs: Reading) -> bool:
    """a name that is broken or cut off begins no call; peers make a call without arguments of it"""
    return ours.calls == tuple(call for call in theirs.calls if call[1] or call in ours.calls) != theirs.calls


def _nothing_promoted(row: Row, ours: Reading, theirs: Reading) -> bool:
    """nothing inside a call that failed is promoted to a call"""
    return not ours.calls and ours.content == row.text.strip() and bool(theirs.calls)


def _foreign_tokens(row: Row, ours: Reading, theirs: Reading) -> bool:
    """tokens of the test's own tokenizer, even inside a marker, are text to every other model"""
    return "<bos>" in row.text or "reserved_" in row.text


def _plain(row: Row, ours: Reading, theirs: Reading) -> bool:
    """without a marker, text is content or a thought as the prompt has opened one; peers assume one"""
    return row.kind == "reason" and row.text.strip() in (ours.content, ours.reasoning)


def _thoughts(row: Row, ours: Reading, theirs: Reading) -> bool:
    """a thought is reasoning once it is closed; peers lose its end or its beginning"""
    return row.kind == "reason" and bool(ours.reasoning) and ours.reasoning in (theirs.reasoning, theirs.content)


def _unclosed(row: Row, ours: Reading, theirs: Reading) -> bool:
    """a value ends at its own closing marker: without it, the call has failed; peers end it at an opener"""
    opened, closed = (len(re.findall(marker, row.text)) for marker in (r"<[\w:]*parameter[ =]", r"</[\w:]*parameter>"))
    return opened > closed and bool(_read(row).malformed) and not ours.calls and bool(theirs.calls)


# The first that fits says why; the page has the docstrings.
REASONS = tuple((rule, rule.__doc__ or "") for rule in (
    _same_words, _stand_ins, _thought_left_in, _nothing_announced, _text_after_calls, _cut_off, _repaired,
    _markers_shown, _types, _more_calls, _undeclared, _unknown_schema, _filtered, _not_in_the_text,
    _broken_name, _nothing_promoted, _foreign_tokens, _plain, _thoughts, _unclosed,
))  # fmt: skip


# --- the page -----------------------------------------------------------------------------------------------------


def page(rows: list[Judged]) -> str:
    """The page: the classes with their numbers, then every row."""
    counts = Counter(each.verdict for each in rows)
    lines = [
        "| verdict | rows |",
        "|---|---:|",
        f"| all peers of the row read what we read | {counts[AGREE]} |",
        f"| peers disagree among themselves, and one reads what we read | {counts[DISAGREE]} |",
        *(f"| we differ: {reason} | {counts[reason]} |" for _, reason in REASONS),
        f"| open: no class fits | {counts[OPEN]} |",
        f"| no shipped format reads the family | {counts[NONE]} |",
        f"| all | {len(rows)} |",
        "",
    ]
    families: dict[str, list[Judged]] = defaultdict(list)
    for each in rows:
        families[each.row.family].append(each)
    short = {AGREE: "agree", DISAGREE: "peers disagree", OPEN: "**open**", NONE: "no format"}
    numbers = {reason: f"differ {number}" for number, (_, reason) in enumerate(REASONS, 1)}
    lines += ["## Why we differ", "", *(f"{number}. {reason}" for number, (_, reason) in enumerate(REASONS, 1)), ""]
    for family, group in sorted(families.items(), key=lambda item: item[0].lower()):
        names = ", ".join(sorted({f"`{each.name}`" for each in group if each.name})) or "none"
        lines += [f"## {family}", "", f"Read by {names}.", ""]
        by_verdict: dict[str, list[str]] = defaultdict(list)
        for each in group:
            by_verdict[short.get(each.verdict) or numbers[each.verdict]].append(_label(each.row))
        lines += [f"* {verdict}: {', '.join(labels)}" for verdict, labels in sorted(by_verdict.items())]
        lines.append("")
    return "\n".join(lines)


def _label(row: Row) -> str:
    label = row.id.removeprefix(f"{row.family} ").rpartition("::")[2].rpartition(f"{row.family}:")[2]
    return f"`{label}`"


def main() -> int:
    """The command; 1 where a row is open."""
    about = (__doc__ or "").split("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.judged", description=about)
    parser.add_argument("--write", type=Path, help="the page to write; without it, what is open is printed")
    parser.add_argument("--shared", type=Path, default=SHARED, help="the folder that has the data")
    chosen = parser.parse_args()
    if not (chosen.shared / "data").is_dir():
        parser.error(f"no data in {chosen.shared}; name the folder with --shared")
    rows = judged(chosen.shared)
    if chosen.write:
        write_part(chosen.write, *PART, page(rows))
    for each in rows:
        if each.verdict == OPEN:
            print(f"{each.row.family} ({each.name}) {each.row.id}\n  text {each.row.text!r}\n  ours {each.ours}")
            for peer, reading in each.row.peers.items():
                print(f"  {peer} {reading}")
    print(Counter(each.verdict for each in rows))
    return int(any(each.verdict == OPEN for each in rows))


if __name__ == "__main__":
    sys.exit(main())
