"""The scoreboard's own parts: deltas, verdicts, and a worker in a process of its own."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.conformance.roundtrip import DATA
from tests.scoreboard.__main__ import DEPENDS, NONE, RAISED, RIGHT, WRONG, ask, verdict
from tests.scoreboard.cases import Case
from tests.scoreboard.workers import cut

CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
CASE = Case("one", "our examples", "hermes", CALL, None, "", "", "", (("add", {"a": 1}),))
RUN: dict[str, Any] = {"content": " \n", "reasoning": "", "calls": [["add", '{"a":1.0}']]}
OTHER = {**RUN, "content": "Hm."}


@pytest.mark.parametrize("size", [1, 4, 17])
def test_deltas_are_the_text_and_end_in_no_marker(size: int) -> None:
    markers = ["<tool_call>", "</tool_call>"]
    deltas = cut(f"Hm. {CALL}", size, markers)
    assert "".join(deltas) == f"Hm. {CALL}"
    assert all(deltas)
    for marker in markers:
        assert sum(marker in delta for delta in deltas) == 1


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ({"runs": [RUN, RUN]}, RIGHT),
        ({"runs": [OTHER, OTHER]}, WRONG),
        ({"runs": [RUN, OTHER]}, DEPENDS),
        ({"runs": [RUN, {"raised": "ValueError: no"}]}, RAISED),
        ({"none": "no parser"}, NONE),
        (None, NONE),
    ],
)
def test_verdicts(answer: dict[str, Any] | None, wanted: str) -> None:
    assert verdict(CASE, answer)[0] == wanted


def test_a_worker_answers_and_says_its_version() -> None:
    question: dict[str, Any] = {
        "id": "one",
        "format": "hermes",
        "text": CALL,
        "tools": None,
        "prompt": "",
        "markers": [],
    }
    peer = ask("toolgram", sys.executable, [question])
    assert (peer.problem, bool(peer.version)) == ("", True)
    assert verdict(CASE, peer.answers["one"])[0] == RIGHT


def test_a_peer_that_is_not_installed_is_named() -> None:
    assert ask("sglang", sys.executable, []).problem == ""  # nothing is asked
    question = {"id": "one"}
    assert "not installed" in ask("sglang", sys.executable, [question]).problem
    assert "No such file" in ask("sglang", "/nowhere/python", [question]).problem


@pytest.mark.skipif(not DATA.exists(), reason="the recorded outputs in ../shared/data are absent")
def test_every_set_has_cases() -> None:
    from collections import Counter

    from tests.scoreboard.cases import SETS, _rendered, _tests

    left_out: Counter[str] = Counter()
    found = Counter(case.set for case in [*_rendered(), *_tests(left_out)])
    assert set(found) == set(SETS) - {"our examples"}
