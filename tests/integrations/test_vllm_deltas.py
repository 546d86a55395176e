"""What one delta may hold, what becomes of calls that failed, and what an operator sees: without a server.

And what a tag lets a model write where a prompt has not said whether it thinks: in every format.
"""

import json
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toolgram
from tests.integrations import stand_in
from tests.integrations.cases import TOOLS, without_stop
from tests.integrations.tokenizers_for_tests import Pieces
from tests.integrations.writers import WRITERS, Turn
from tests.properties.selection import every_format
from tests.strategies import chunkings
from toolgram.errors import ToolgramError
from toolgram.integrations import observing
from toolgram.integrations.answers import FAILED, AnswerBuilder, PlainThought
from toolgram.integrations.served import Served, Session
from toolgram.integrations.vllm_tags import tag_text, written
from toolgram.limits import MOST_TAGS
from toolgram.observing.paths import canonical_outputs

GOOD = '<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>'
BROKEN = '<tool_call>\n{"name": "get_weather", "arguments": {"city": [1, 2}, "day": }}\n</tool_call>'
CUT = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Pa'


def events_of(text: str, finish_reason: str | None = None) -> list[Any]:
    parser = toolgram.get_format("hermes").parser(keep_message=False)
    return [*parser.feed(text), *parser.close(finish_reason)]


def answer_of(text: str, how: str) -> Any:
    """The message of a whole answer, under one setting."""
    session = Session(Served(Pieces(["<tool_call>", "</tool_call>"]), "hermes"))
    _, builder = session.whole(text, None, lambda: AnswerBuilder(FAILED[how]))
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
def test_a_call_that_failed_or_was_cut_off(output: str, how: str, names: list[str], content: str) -> None:
    """It is the text that it was, or a call, as it is asked for."""
    assert told(answer_of(output, how)) == (content, names)


@given(text=st.lists(st.sampled_from([GOOD, BROKEN, CUT, "text", " ", "\n", "<tool_call>", "}"]), max_size=6))
def test_a_whole_answer_is_the_message(text: list[str]) -> None:
    output = "".join(text)
    message = toolgram.get_format("hermes").parse(output, finish_reason="length")
    assert told(answer_of(output, "text")) == told(message)
    for call in answer_of(output, "whole").tool_calls:
        assert isinstance(json.loads(call.arguments), dict)


def test_a_parser_that_fails_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolgram.runtime.parser.Parser.close", lambda *_: 1 / 0)
    assert told(answer_of(f"Hi. {GOOD}", "text")) == (f"Hi. {GOOD}", [])


def test_the_request_goes_before_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    asking = SimpleNamespace(vllm_xargs={"toolgram_malformed_calls": "text"})
    with stand_in.installed():
        deltas = import_module("toolgram.integrations.vllm_deltas")
        monkeypatch.setenv(deltas.MALFORMED_VARIABLE, "call")
        assert deltas.malformed_calls(SimpleNamespace()) == "call"
        assert deltas.malformed_calls(asking) == "text"
        monkeypatch.setenv(deltas.MALFORMED_VARIABLE, "nonsense")
        assert deltas.malformed_calls(SimpleNamespace(vllm_xargs=None)) == "text"


# --- deltas ---------------------------------------------------------------------------------------------------------


PARTS = st.lists(st.sampled_from([GOOD, BROKEN, CUT, " text ", "<think>Hm.</think>"]), min_size=1, max_size=5)


@given(PARTS.map("".join).flatmap(chunkings))
def test_content_never_comes_behind_arguments_of_an_open_call(pieces: list[str]) -> None:
    with stand_in.installed():
        deltas = import_module("toolgram.integrations.vllm_deltas")
        parser = toolgram.get_format("hermes").parser(keep_message=False)
        outgoing = deltas.Outgoing()
        begun: set[int] = set()
        said: list[str] = []
        for piece in pieces:
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
        whole = deltas.delta_of(events_of("".join(pieces), "length"))
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


CALL = (("get_weather", {"city": "Paris"}),)
FORM = {"type": "regex", "pattern": "[0-9]+"}


def asked(choice: Any) -> Any:
    return SimpleNamespace(tool_choice=choice, parallel_tool_calls=True)


@every_format
def test_a_call_or_an_answer_may_follow_a_thought_and_need_not(name: str) -> None:
    """Also if all examples of the format have the thought after a prompt that has begun it."""
    pytest.importorskip("tvm_ffi", reason="the engines are not here: make test installs them")
    from tests.export.engines import Xgrammar, vocabulary

    fmt = toolgram.get_format(name)
    paths = [*canonical_outputs(fmt)]
    if name not in WRITERS or not any(fmt.parse(out, TOOLS, prefix).reasoning for prefix, out, _ in paths):
        pytest.skip("nothing writes this format, or its models do not think")
    served = Served(Pieces([], list(fmt.program.special.values())), name)
    plain = WRITERS[name](Turn("", content="12"))
    begun = next((prefix for prefix, _, _ in paths if prefix and plain.startswith(prefix)), "")
    engine = Xgrammar(vocabulary())  # `begun` is what every prompt writes, before a message of any kind
    forced = engine.compile("structural_tag", tag_text(served, asked("required"), TOOLS, begun, None))
    formed = engine.compile("structural_tag", tag_text(served, asked("auto"), [], begun, None, FORM))
    for reasoning in ("", "They ask. Is it {so}?"):
        turns = (Turn("", reasoning, calls=CALL), *(Turn("", reasoning, said) for said in ("12", "It is sunny.")))
        call, answer, text = (without_stop(fmt, WRITERS[name](turn)).removeprefix(begun) for turn in turns)
        assert engine.accepts(forced, call), call
        assert not engine.accepts(forced, text), text
        assert engine.accepts(formed, answer), answer
        assert not engine.accepts(formed, text), text
        assert not engine.accepts(formed, call), call


def test_where_the_prompt_is_not_known_no_thought_is_added() -> None:
    """It may have begun one."""
    served = Served(Pieces([], ["<think>", "</think>"]), "minicpm5")
    request = asked("required")
    known, unknown = (tag_text(served, request, TOOLS, prefix, None) for prefix in ("", None))
    assert len(known) > len(unknown)


NAMES = [tool["function"]["name"] for tool in TOOLS]


@given(
    asks=st.lists(
        st.tuples(
            st.sampled_from(["required", "auto", *NAMES]),
            st.booleans(),
            st.lists(st.sampled_from(TOOLS), min_size=1, max_size=2, unique_by=lambda tool: tool["function"]["name"]),
            st.sampled_from([None, "", "<think>\n"]),
            st.sampled_from([None, False]),
            st.sampled_from([None, FORM]),
        ),
        max_size=4,
    )
)
@settings(max_examples=10, deadline=None)
def test_a_tag_from_the_cache_is_the_one_that_would_be_written(asks: list[Any]) -> None:
    served, fmt = Served(Pieces([], ["<think>", "</think>"]), "hermes"), toolgram.get_format("hermes")
    for choice, parallel, tools, prefix, reasoning, form in (*asks, *asks):
        name = tools[0]["function"]["name"]
        named = {"type": "function", "function": {"name": name}}
        words = choice in ("required", "auto")
        request = asked(choice if words else SimpleNamespace(function=SimpleNamespace(name=name)))
        request.parallel_tool_calls = parallel
        export = fmt.export(
            "structural_tag", tools, choice if words else named, parallel, text_before_calls=choice == "auto",
            answer_format=form, reasoning=reasoning, prefix=prefix,
        )  # fmt: skip
        assert tag_text(served, request, tools, prefix, reasoning, form) == export.text


def test_the_same_tools_are_exported_once() -> None:
    """In whatever objects they come; also if there is no tag."""
    served = Served(Pieces([], ["<think>", "</think>"]), "hermes")
    before = written.cache_info()
    for _ in range(5):
        tag_text(served, asked("required"), [json.loads(json.dumps(tool)) for tool in TOOLS], "", None)
        with pytest.raises(ToolgramError, match=r"no tools"):
            tag_text(served, asked("required"), [], "", None)
    after = written.cache_info()
    assert (after.misses - before.misses, after.hits - before.hits) == (2, 8)
    assert after.maxsize == MOST_TAGS
