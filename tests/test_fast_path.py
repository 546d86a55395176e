"""Which deltas need no reader, and how little a stream is."""

from __future__ import annotations

import pytest

import toolgram
from tests.streams import without_ids
from toolgram.runtime.calls import Calls
from toolgram.runtime.event_buffer import EventBuffer
from toolgram.runtime.fast_path import Json, Python, Run
from toolgram.runtime.parser import Parser
from toolgram.runtime.position import Position
from toolgram.runtime.source import Source
from toolgram.runtime.stream import Stream

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}]


@pytest.mark.parametrize(
    ("name", "begun", "path"),
    [
        ("hermes", "It is sunny", Run),
        ("hermes", "<think>\nHm", Run),
        ("qwen3_coder", "<tool_call>\n<function=f>\n<parameter=a>\nPar", Run),
        ("kimi_k3", "", None),
        ("mistral_v11", '[TOOL_CALLS]f[ARGS]{"a": "Par', Json),
        ("hermes", '<tool_call>\n{"name": "f", "arguments": {"a": "Par', Json),
        ("llama4_pythonic", '<|python_start|>[f(a="Par', Python),
        ("hermes", "<tool_call>\n{", None),
    ],
)
def test_what_a_delta_is_in(name: str, begun: str, path: type | None) -> None:
    parser = toolgram.get_format(name).parser(TOOLS)
    parser.feed(begun)
    assert type(parser._path) is (type(None) if path is None else path)


def test_a_stream_has_few_slots() -> None:
    """What is rarely needed is made when it is needed."""
    always = (Parser, Stream, Position, EventBuffer, Calls, Source)
    assert sum(len(each.__slots__) for each in always) <= 45


@pytest.mark.parametrize("name", ["hermes", "mistral_v11", "qwen3_coder", "lfm2"])
def test_a_delta_may_be_none_and_no_bytes(name: str) -> None:
    """Servers send a delta without text as None. Bytes are an error that says what to do, and change nothing."""
    fmt = toolgram.get_format(name)
    text = fmt.example
    parser, plain = fmt.parser(), fmt.parser()
    events, wanted = [], []
    for at in range(0, len(text), 3):
        events += parser.feed(None)
        with pytest.raises(TypeError, match="a delta is str, not bytes: decode"):
            parser.feed(text[at : at + 3].encode())  # type: ignore[arg-type]
        events += parser.feed(text[at : at + 3])
        wanted += plain.feed(text[at : at + 3])
    assert without_ids([*events, *parser.close("stop")]) == without_ids([*wanted, *plain.close("stop")])
