"""A request that wants one call gets one, and its answer ends there."""

import toolgram
from toolgram.gateway.endings import CallLimit

CALL = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'


def test_the_answer_ends_before_a_second_call() -> None:
    parser, limit = toolgram.get_format("hermes").parser(), CallLimit(parallel=False)
    events = limit.events(parser.feed(f"One.{CALL}{CALL}") + parser.close("length"))
    assert limit.over
    assert [event.index for event in events if isinstance(event, toolgram.ToolCallStart)] == [0]
    message = limit.message(parser.message)
    assert [part for part in message.parts if isinstance(part, toolgram.ToolCall)] == message.tool_calls
    assert len(message.tool_calls) == 1
    assert message.content == "One."
    assert (parser.message.finish_reason, message.finish_reason) == ("length", "stop")


def test_one_call_is_the_whole_answer() -> None:
    for limit in (CallLimit(parallel=False), CallLimit(parallel=True)):
        parser = toolgram.get_format("hermes").parser()
        events = parser.feed(CALL) + parser.close("length")
        assert limit.events(events) == events
        assert not limit.over
        assert limit.message(parser.message) == parser.message
