"""What one delta may hold, what becomes of calls that failed, and what an operator sees: without a server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.integrations import stand_in
from tests.integrations.tokenizers_for_tests import Pieces
from toolgram.integrations import observing
from toolgram.integrations.answers import PlainThought
from toolgram.integrations.served import Served, Session

GOOD = '<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>'
BROKEN = '<tool_call>\n{"name": "get_weather", "arguments": {"city": [1, 2}, "day": }}\n</tool_call>'
CUT = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Pa'


@pytest.fixture(scope="module")
def deltas() -> Iterator[Any]:
    with stand_in.installed():
        yield import_module("toolgram.integrations.vllm_deltas")


def events_of(text: str, finish_reason: str | None = None) -> list[Any]:
    parser = toolgram.get_format("hermes").parser(keep_message=False)
    return [*parser.feed(text), *parser.close(finish_reason)]


def answer_of(deltas: Any, text: str, how: str) -> Any:
    """The message of a whole answer, under one setting."""
    session = Session(Served(Pieces(["<tool_call>", "</tool_call>"]), "hermes"))
    _, builder = session.whole(text, None, lambda closing: deltas.AnswerBuilder(closing, deltas.FAILED[how]))
    return builder.answer()


def told(message: Any) -> tuple[str | None, list[str]]:
    return message.content, [call.name for call in message.tool_calls or ()]


PIECES = st.sampled_from(["<think>", "</think>", "\n", " ", "a", "\n\n", GOOD, BROKEN])


@given(text=st.lists(PIECES, max_size=9).map("".join), sizes=st.lists(st.integers(1, 3), max_size=40))
def test_a_thought_is_text_however_its_events_come(text: str, sizes: list[int]) -> None:
    events = events_of(text)
    whole, pieces = PlainThought(frozenset({"<think>", "</think>"})), PlainThought(frozenset({"<think>", "</think>"}))
    found, at = [], 0
    for size in [*sizes, *[1] * len(events)]:
        found += pieces(events[at : at + size])
        at += size
    assert found == whole(events)


@pytest.mark.parametrize(
    ("output", "how", "names", "content"),
    [
        *((f"{before}{BROKEN} and {GOOD}", how, ["get_time"], f"{before}{BROKEN} and")
          for before in ("", "Hi. ") for how in ("text", "whole")),
        (f"{BROKEN} and {GOOD}", "call", ["get_weather", "get_time"], f"{BROKEN.rpartition('2')[2]} and"),
        (f"Hi. {CUT}", "text", ["get_weather"], "Hi."),
        (f"Hi. {CUT}", "whole", [], f"Hi. {CUT}"),
    ],
)  # fmt: skip
def test_a_call_that_failed_or_was_cut_off(output: str, how: str, names: list[str], content: str, deltas: Any) -> None:
    """It is the text that it was, or a call, as it is asked for."""
    assert told(answer_of(deltas, output, how)) == (content, names)


@given(text=st.lists(st.sampled_from([GOOD, BROKEN, CUT, "text", " ", "\n", "<tool_call>", "}"]), max_size=6))
def test_a_whole_answer_is_the_message(text: list[str]) -> None:
    with stand_in.installed():
        deltas = import_module("toolgram.integrations.vllm_deltas")
        output = "".join(text)
        message = toolgram.get_format("hermes").parse(output, finish_reason="length")
        assert told(answer_of(deltas, output, "text")) == told(message)
        for call in answer_of(deltas, output, "whole").tool_calls:
            assert isinstance(json.loads(call.arguments), dict)


def test_a_parser_that_fails_loses_nothing(deltas: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from toolgram.runtime.parser import Parser

    monkeypatch.setattr(Parser, "close", lambda *_: 1 / 0)
    assert told(answer_of(deltas, f"Hi. {GOOD}", "text")) == (f"Hi. {GOOD}", [])


def test_the_request_goes_before_the_server(deltas: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asking = SimpleNamespace(vllm_xargs={"toolgram_malformed_calls": "text"})
    monkeypatch.setenv(deltas.MALFORMED_VARIABLE, "call")
    assert deltas.malformed_calls(SimpleNamespace()) == "call"
    assert deltas.malformed_calls(asking) == "text"
    monkeypatch.setenv(deltas.MALFORMED_VARIABLE, "nonsense")
    assert deltas.malformed_calls(SimpleNamespace(vllm_xargs=None)) == "text"


# --- deltas ---------------------------------------------------------------------------------------------------------


def pieces(text: str, cuts: list[int]) -> list[str]:
    places = sorted({min(cut, len(text)) for cut in cuts})
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True) if a < b]


@given(
    text=st.lists(st.sampled_from([GOOD, BROKEN, CUT, " text ", "<think>Hm.</think>"]), min_size=1, max_size=5),
    cuts=st.lists(st.integers(0, 300), max_size=6),
)
def test_content_never_comes_behind_arguments_of_an_open_call(text: list[str], cuts: list[int]) -> None:
    with stand_in.installed():
        deltas = import_module("toolgram.integrations.vllm_deltas")
        parser = toolgram.get_format("hermes").parser(keep_message=False)
        outgoing = deltas.Outgoing()
        begun: set[int] = set()
        said: list[str] = []
        for piece in pieces("".join(text), cuts):
            events = parser.feed(piece)
            message = outgoing.delta(events) if events or outgoing.waiting else None
            if message is None:
                continue
            goes_on = any(call.index in begun for call in message.tool_calls)
            assert not (goes_on and (message.content or message.reasoning))
            assert goes_on == outgoing.carried
            begun |= {call.index for call in message.tool_calls}
            said.append(message.content or "")
        last = outgoing.last(parser.close("length"))
        said.append((last.content or "") if last is not None else "")
        whole = deltas.delta_of(events_of("".join(text), "length"))
        assert "".join("".join(said).split()) == "".join(((whole.content if whole else "") or "").split())


# --- what an operator sees ------------------------------------------------------------------------------------------


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The outcomes of the answers that were counted."""
    outcomes: list[str] = []
    monkeypatch.setattr(observing, "count", outcomes.append)
    return outcomes


@pytest.mark.parametrize(
    ("text", "outcome"), [(GOOD, "complete"), (BROKEN, "malformed"), (CUT, "truncated"), ("Hi.", "complete")]
)
def test_every_answer_is_counted_once(text: str, outcome: str, counted: list[str]) -> None:
    session = Session(Served(Pieces(["<tool_call>", "</tool_call>"]), "hermes"))
    for letter in text:
        session.feed(letter, None)
    session.close()
    assert counted == [outcome]
