"""The ways through a server that the tests of the plug-in compare, and what each of them has to give.

Imports vLLM; a test asks for it with `pytest.importorskip` first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from vllm.reasoning import ReasoningParser

import toolgram
from tests.integrations.cases import TOOLS
from tests.integrations.tokenizers_for_tests import Pieces
from tests.integrations.vllm_driver import GROUPS, Server
from tests.integrations.vllm_heard import Heard
from toolgram.events import Content, Event, Malformed, Reasoning, ToolCallDelta, ToolCallStart
from toolgram.integrations.served import served

OLD = not hasattr(ReasoningParser, "set_prompt_token_ids")  # before 0.33: what it lacks is in docs/vllm.md
HERMES = (
    "<think>Hm.</think>Let me look.\n"
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>'
)
BOTH = [("get_weather", '{"city": "Paris"}'), ("get_time", "{}")]


def specials_of(name: str) -> list[str]:
    return list(toolgram.get_format(name).program.special.values())


def marked(tokenizer: Any, text: str, specials: Sequence[str]) -> list[int]:
    """The ids of a text, markers as their tokens, for tokenizers that would spell them."""
    ids: list[int] = []
    while text:
        place, marker = min(((text.find(each), each) for each in specials if each in text), default=(len(text), ""))
        if place:
            ids += tokenizer.encode(text[:place], add_special_tokens=False)
        if marker:
            ids.append(tokenizer.get_vocab()[marker])
        text = text[place + len(marker) :]
    return ids


def told(message: toolgram.Message) -> tuple[Any, Any, list[tuple[str, str]]]:
    return message.content, message.reasoning, [(call.name, call.arguments) for call in message.tool_calls]


def told_as_it_came(events: Iterable[Event]) -> tuple[Any, Any, list[tuple[str, str]]]:
    """What a client makes of a stream: what was sent of a call that failed cannot be taken back."""
    content = "".join(event.text for event in events if isinstance(event, (Content, Malformed)))
    reasoning = "".join(event.text for event in events if isinstance(event, Reasoning))
    calls: list[list[str]] = []
    for event in events:
        if isinstance(event, ToolCallStart):
            calls.append([event.name, ""])
        elif isinstance(event, ToolCallDelta):
            calls[event.index][1] += event.arguments
    return content or None, reasoning or None, [(name, arguments) for name, arguments in calls]


def meant_ways(
    fmt: toolgram.Format, text: str, prefix: str | None, finish: str | None, tokenizer: Any = None
) -> tuple[Any, Any]:
    """What a format makes of an answer: in one message, and as it came. With a tokenizer, by the ids of its tokens."""
    special = served(tokenizer, fmt.name).special_tokens if tokenizer is not None else None
    parser = fmt.parser(TOOLS, prefix, None, special)
    pieces = [(tokenizer.decode([token]), token) for token in tokenizer.encode(text)] if tokenizer is not None else text
    events = [*parser.feed(pieces), *parser.close(finish)]
    return told(parser.message), told_as_it_came(events)


def heard_everywhere(
    server: Server, ids: list[int], prompt: list[int], finish: str = "stop", groups: Sequence[int] = GROUPS
) -> Iterator[tuple[str, Heard]]:
    """The answer in one message, and streamed in groups of tokens."""
    end = server.tokenizer.eos_token_id if finish == "stop" else None
    limit = {"max_tokens": len(ids)} if finish == "length" else {}
    yield "whole", server.whole(ids, server.request(TOOLS, **limit), prompt, finish, end)
    for group in groups:
        request = server.request(TOOLS, stream=True, **limit)
        yield f"groups of {group}", server.stream(ids, request, group, prompt, finish, end)


def hermes_server() -> Server:
    return Server(Pieces(["<|im_end|>"], specials_of("hermes")), "toolgram_hermes", "toolgram_hermes")


def both_ways(server: Server, text: str, tools: Any = TOOLS, **options: Any) -> Heard:
    """What is heard of a text, the same in every way."""
    tokenizer = server.tokenizer
    ids = tokenizer.encode(text)
    finish = options.pop("finish", "stop")
    prompt = options.pop("prompt", [0])
    end = tokenizer.eos_token_id if finish == "stop" else None
    whole = server.whole(ids, server.request(tools, **options), prompt, finish, end)
    for group in GROUPS:
        streamed = server.stream(ids, server.request(tools, stream=True, **options), group, prompt, finish, end)
        assert (streamed.told(), streamed.finish_reason) == (whole.told(), whole.finish_reason), group
        assert OLD or streamed.reasoning_tokens == whole.reasoning_tokens
    return whole
