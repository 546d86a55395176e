"""Markers with the suffix of another checkpoint, which the special tokens or the prompt tell."""

import json
import pickle

import pytest

import toolgram
from tests.integrations.tokenizers_for_tests import Pieces
from tests.streams import assert_same_however_split, calls_of
from toolgram.events import ToolCallDelta
from toolgram.integrations.served import Served

FORMATS = [name for name in toolgram.format_names() if toolgram.get_format(name).spec.suffix]
OTHER = ":b71c_9-d"
EXAMPLE = "They want the weather."


@pytest.fixture(params=FORMATS)
def fmt(request: pytest.FixtureRequest) -> toolgram.Format:
    return toolgram.get_format(request.param)


def other(fmt: toolgram.Format, text: str) -> str:
    return text.replace(fmt.spec.suffix, OTHER)


def test_special_tokens_tell(fmt: toolgram.Format) -> None:
    tokens = {other(fmt, text): number for number, text in enumerate(fmt.program.literals.values())}
    parser = fmt.parser(special_tokens=tokens)
    parser.feed(other(fmt, fmt.example))
    parser.close("stop")
    wanted, found = fmt.parse(fmt.example, finish_reason="stop"), parser.message
    assert wanted.tool_calls
    assert (found.content, found.reasoning, calls_of(found)) == (wanted.content, wanted.reasoning, calls_of(wanted))


def test_the_last_marker_of_the_prompt_tells(fmt: toolgram.Format) -> None:
    output = other(fmt, fmt.example).split(f"<think{OTHER}>", 1)[-1]
    for before in ("", "<think:of-a-user>", f"<think{fmt.spec.suffix}>"):
        message = fmt.parse(output, prefix=f"{before}<think{OTHER}>", finish_reason="stop")
        assert (message.reasoning or "").strip() == EXAMPLE
        assert [call.status for call in message.tool_calls] == ["complete"] * 2
    assert_same_however_split(fmt.with_suffix_of([f"<think{OTHER}>"]), other(fmt, fmt.example))


def test_a_snapshot_has_the_suffix_that_the_prompt_told(fmt: toolgram.Format) -> None:
    prefix, output = f"<think{OTHER}>", other(fmt, fmt.example).split(f"<think{OTHER}>", 1)[-1]
    wanted = fmt.parse(output, prefix=prefix, finish_reason="stop").tool_calls
    for at in range(0, len(output), 7):
        parser = fmt.parser(prefix=prefix)
        events = parser.feed(output[:at])
        parser = fmt.restore(json.loads(json.dumps(parser.snapshot())))
        events += [*parser.feed(output[at:]), *parser.close("stop")]
        assert "".join(event.source for event in events) == output
        arguments = "".join(event.arguments for event in events if isinstance(event, ToolCallDelta))
        assert arguments == "".join(call.arguments for call in wanted)


def test_a_format_stays_itself_where_nothing_else_is_told(fmt: toolgram.Format) -> None:
    for texts in ([], [""], [f"<think{fmt.spec.suffix}>"], ["<think>"], [f"<else{OTHER}>"], [f"<think{OTHER}"]):
        assert fmt.with_suffix_of(texts) is fmt
    assert toolgram.get_format("hermes").with_suffix_of(["<think:a>"]) is toolgram.get_format("hermes")
    assert fmt.with_suffix_of(["<think:" + "a" * 65 + ">", "<think:a b>", "<think:</arg_key>"]) is fmt


def test_the_other_format_is_a_whole_one(fmt: toolgram.Format) -> None:
    found = fmt.with_suffix_of([f"<think{OTHER}>"])
    assert (found.name, found.example) == (fmt.name, other(fmt, fmt.example))
    assert found.with_suffix_of([f"<tool_call{fmt.spec.suffix}>"]).example == fmt.example
    assert pickle.loads(pickle.dumps(found)).example == found.example
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    exported = fmt.export("gbnf", tools=tools, tool_choice="required", prefix=f"<think{OTHER}>").text
    assert OTHER in exported
    assert fmt.spec.suffix not in exported


def test_a_server_knows_it_from_its_tokenizer(fmt: toolgram.Format) -> None:
    texts = [other(fmt, text) for text in fmt.program.special.values()]
    served = Served(Pieces(texts), fmt.name)
    assert served.fmt is not None
    assert served.fmt.spec.suffix == OTHER
    assert {text for text in served.special_tokens if OTHER in text} == {text for text in texts if OTHER in text}
