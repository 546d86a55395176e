"""The cases of the suite that deviate, read in other ways: by strict parsers, and from snapshots.

Strategy: `suite_told.jsonl` says which cases have anomalies. A strict parser repairs none of them, so it
reads no call that needs a repair. A snapshot may be taken after any delta: both parsers go on alike, each anomaly is
reported once, and the snapshot does not change.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

import toolgram
from tests import suite_told
from tests.properties.selection import some
from tests.streams import check_events, in_order, merged, sources
from toolgram.anomalies import Anomaly
from toolgram.events import Event

TOLD = suite_told.load()
CASES = [case for case in suite_told.suite.load_cases() if "anomalies" in TOLD.get(case["id"], {})]
FAMILIES = sorted({case["family"] for case in CASES})
REPAIRS = {
    "repaired_json", "repaired_python", "surplus_closer", "unclosed_arguments", "unclosed_envelope", "unclosed_value",
}  # fmt: skip
# What a strict parser tells as well, and reads alike.
TOLD_ALIKE = {"after_turn", "repeated_argument", "unexpected_type", "unknown_tool", "unopened_reasoning"}


def cases_of(family: str, test_name: str) -> list[dict[str, Any]]:
    """What this run takes of a family: a quarter of its cases."""
    return some([case for case in CASES if case["family"] == family], f"{test_name} {family}")


def parser_of(case: dict[str, Any], strict: bool = False) -> toolgram.Parser:
    fmt = toolgram.get_format(case["family"])
    special = case.get("special_tokens")
    return fmt.parser(case.get("tools"), case.get("prompt"), str, strict=strict, special_tokens=special)


def deltas_of(case: dict[str, Any]) -> list[tuple[str, list[int] | None]]:
    """The text by character, or its tokens."""
    if "pieces" in case:
        return [(text, [number]) for text, number in case["pieces"]]
    return [(character, None) for character in case["text"]]


def feed(parser: toolgram.Parser, deltas: list[tuple[str, list[int] | None]]) -> list[Event]:
    """What the parser tells of some deltas; those without ids come as one."""
    if all(ids is None for _, ids in deltas):
        return parser.feed("".join(text for text, _ in deltas))
    return [event for text, ids in deltas for event in parser.feed(text, ids)]


def is_repair(fmt: toolgram.Format, anomaly: Anomaly) -> bool:
    """Whether a strict parser never says this.

    It reads dicts of Python where a format writes them, drops members of other names beside those of a call, and tells
    that an output ended in an envelope or in a marker.
    """
    if anomaly.kind == "repaired_json":
        return not fmt.machine_dict["format"].get("python_json")
    if anomaly.kind == "unusual_form":
        return not anomaly.text.isidentifier()
    return anomaly.kind in REPAIRS - {"unclosed_envelope"}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_strict_parser_repairs_nothing(family: str) -> None:
    fmt = toolgram.get_format(family)
    for case in cases_of(family, "strict"):
        loose, strict = parser_of(case), parser_of(case, strict=True)
        feed(loose, deltas_of(case))
        loose.close(case["finish_reason"])
        events = feed(strict, deltas_of(case)) + strict.close(case["finish_reason"])
        check_events(events, case["text"])
        alike = {each.kind for each in loose.message.anomalies} <= TOLD_ALIKE
        assert not alike or strict.message == loose.message, case["id"]
        assert [each for each in strict.message.anomalies if is_repair(fmt, each)] == [], case["id"]
        repaired = {each.call for each in loose.message.anomalies if each.kind in REPAIRS and is_repair(fmt, each)}
        repaired |= {each.call for each in loose.message.anomalies if each.kind == "unclosed_envelope"}
        calls = [(call.name, call.arguments, getattr(call, "status", "malformed")) for call in in_order(loose.message)]
        sound = Counter(call for at, call in enumerate(calls) if at not in repaired)
        read = [(call.name, call.arguments, str(call.status)) for call in strict.message.tool_calls]
        found = Counter(read)
        for at, call in enumerate(calls):
            assert at not in repaired or call[2] != "complete" or found[call] <= sound[call], case["id"]


def folded(anomalies: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Kinds and places of anomalies, with text that a snapshot cuts in two as one: neighbours that are malformed.

    A restored parser begins a message, and knows no keys that came before.
    """
    found: list[tuple[str, int]] = []
    for kind, start in anomalies:
        if kind == "repeated_argument":
            continue
        if not found or (kind, found[-1][0]) != ("malformed", "malformed"):
            found.append((kind, start))
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_a_snapshot_goes_on_from_anywhere(family: str) -> None:
    for case in cases_of(family, "snapshots"):
        deltas = deltas_of(case)
        for at in random.Random(case["id"]).sample(range(len(deltas)), min(2, len(deltas))):
            parser = parser_of(case)
            before = feed(parser, deltas[:at])
            told = parser.take_anomalies()
            state = parser.snapshot()
            taken = json.dumps(state)
            special = case.get("special_tokens")
            other = toolgram.get_format(family).restore(json.loads(taken), case.get("tools"), str, special)
            rest, again = ([*feed(each, deltas[at:]), *each.close(case["finish_reason"])] for each in (parser, other))
            assert merged(before + rest) == merged(before + again), case["id"]
            assert sources(before + rest) == case["text"], case["id"]
            assert json.dumps(state) == taken, case["id"]
            found = [(each.kind, each.start) for each in told + other.take_anomalies()]
            assert folded(found) == folded((kind, start) for kind, start, *_ in TOLD[case["id"]]["anomalies"]), case[
                "id"
            ]
