"""Driving vLLM's real serving classes without a model: everything but HTTP and the engine is vLLM's own.

    tokens -> IncrementalDetokenizer -> deltas -> ChatStreamProcessor -> the chunks that a client gets
    tokens -> text -> Parser.parse -> assemble_chat_message_fields -> the message that a client gets

At the end are the ways through a server that the tests of the plug-in compare, and what each of them has to give.
Imports vLLM; a test asks for it with `pytest.importorskip` first.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from inspect import signature
from types import SimpleNamespace
from typing import Any, TypeAlias

from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser import ParserManager
from vllm.parser.abstract_parser import Parser
from vllm.plugins import load_general_plugins
from vllm.reasoning import ReasoningParser
from vllm.sampling_params import SamplingParams
from vllm.v1.engine.detokenizer import IncrementalDetokenizer

import toolgram
from tests.integrations.cases import TOOLS
from tests.integrations.tokenizers_for_tests import Pieces
from tests.integrations.vllm_heard import Heard
from toolgram.events import Content, Event, Malformed, Reasoning, ToolCallDelta, ToolCallStart

try:
    from vllm.entrypoints.openai.chat_completion.message_assembly import assemble_chat_message_fields
    from vllm.entrypoints.openai.chat_completion.stream_processor import ChatStreamProcessor
    from vllm.entrypoints.serve.utils.tool_calls_utils import resolve_finish_reason
except ImportError:  # before 0.33 this is written out in the serving layer, and cannot be called
    from tests.integrations.vllm_serving_0_24 import (
        ChatStreamProcessor,
        assemble_chat_message_fields,
        resolve_finish_reason,
    )

load_general_plugins()  # as vLLM does in each of its processes: toolgram registers its parsers

FIRST_AND_REST = -1
WHOLE = 0
Ids: TypeAlias = Sequence[int]
GROUPS = (1, 2, 3, 5, 8, FIRST_AND_REST, WHOLE)
OLD = not hasattr(ReasoningParser, "set_prompt_token_ids")  # before 0.33: what it lacks is in docs/vllm.md
HERMES = (
    "<think>Hm.</think>Let me look.\n"
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>'
)
BOTH = [("get_weather", '{"city": "Paris"}'), ("get_time", "{}")]


@dataclass
class Delta:
    text: str
    ids: list[int]
    last: bool


class Server:
    """One `vllm serve`: flags and a tokenizer."""

    def __init__(self, tokenizer: Any, tool_parser: str | None, reasoning_parser: str | None) -> None:
        self.tokenizer = tokenizer
        validated = {"tokenizer": tokenizer} if "tokenizer" in signature(ParserManager.get_parser).parameters else {}
        names = {"tool_parser_name": tool_parser, "reasoning_parser_name": reasoning_parser, "model_name": "model"}
        self.parser_cls = ParserManager.get_parser(enable_auto_tools=tool_parser is not None, **names, **validated)

    def request(self, tools: Sequence[dict[str, Any]] | None, **options: Any) -> Any:
        """A request as a client sends it."""
        fields: dict[str, Any] = {"model": "model", "messages": [{"role": "user", "content": "Go."}], **options}
        if tools:
            fields = {"tool_choice": "auto", **fields, "tools": list(tools)}
        return ChatCompletionRequest(**fields)

    def parser(self, request: Any, prompt: Sequence[int]) -> Any:
        """A parser for one answer, as the server makes it."""
        parser = self.made(request)
        if hasattr(parser, "set_prompt_token_ids"):
            parser.set_prompt_token_ids(list(prompt))
        return parser

    def made(self, request: Any) -> Any:
        """A parser that was not told the prompt."""
        more = {"model_config": None} if "model_config" in signature(Parser.__init__).parameters else {}
        return self.parser_cls(self.tokenizer, request.tools, chat_template_kwargs={}, **more)

    def adjusted(self, request: Any, prompt: Sequence[int]) -> Any:
        """The request as the renderer leaves it."""
        parsing = self.parser_cls.reasoning_parser_cls is not None or request.tool_choice != "none"
        return self.parser(request, prompt).adjust_request(request=request) if parsing else request

    def texts(self, ids: Sequence[int], prompt: Sequence[int], request: Any) -> list[str]:
        """The text that comes with each id, from vLLM's own incremental detokenizer."""
        parameters = SamplingParams(
            skip_special_tokens=request.skip_special_tokens is not False,
            spaces_between_special_tokens=request.spaces_between_special_tokens is not False,
        )
        given = {"prompt_token_ids": list(prompt), "prompt_embeds": None, "sampling_params": parameters}
        core: Any = SimpleNamespace(request_id="r", **given)
        detokenizer = IncrementalDetokenizer.from_new_request(self.tokenizer, core)
        texts = []
        for number in ids:
            detokenizer.update([number], False)
            texts.append(detokenizer.get_next_output_text(False, True))
        tail = detokenizer.get_next_output_text(True, True)
        if tail and texts:
            texts[-1] += tail
        return texts

    def stream(
        self, ids: Ids, request: Any, group: int, prompt: Ids = (0,), finish: str = "stop", end: int | None = None
    ) -> Heard:
        """The answer as a client adds it up from a stream."""
        request = self.adjusted(request.model_copy(deep=True), prompt)
        deltas = grouped(self.texts(ids, prompt, request), list(ids), group, end)
        parser = self.made(request)
        steps = ChatStreamProcessor(request, parser, enable_auto_tools=True, parser_cls=self.parser_cls)
        heard = Heard(content="", reasoning="")
        for delta in deltas:
            step = steps.step(delta.text, delta.ids, finish if delta.last else None, list(prompt))
            hear(heard, step.delta)
            heard.finish_reason = step.finish_reason
        heard.reasoning_tokens = reasoning_tokens(parser, ids)
        return tidied(heard)

    def whole(self, ids: Ids, request: Any, prompt: Ids = (0,), finish: str = "stop", end: int | None = None) -> Heard:
        """The answer as a client gets it in one message."""
        request = self.adjusted(request.model_copy(deep=True), prompt)
        text = "".join(self.texts(ids, prompt, request))
        parser = self.parser(request, prompt)
        all_ids = [*ids, *([end] if end is not None else ())]
        reasoning, content, calls = parser.parse(text, request, enable_auto_tools=True, model_output_token_ids=all_ids)
        flags = {"enable_auto_tools": True, "parser_cls": self.parser_cls}
        fields = assemble_chat_message_fields(request, reasoning, content, calls, **flags)
        heard = Heard(
            fields.content,
            fields.reasoning,
            [(call.function.name, call.function.arguments) for call in fields.tool_calls],
            [call.id for call in fields.tool_calls],
            resolve_finish_reason(finish, request, bool(fields.tool_calls)),
            reasoning_tokens(parser, ids),
        )
        return tidied(heard)


def reasoning_tokens(parser: Any, ids: Sequence[int]) -> int:
    """As the server counts them: the driver in 0.33, the reasoning parser before."""
    counter = parser if hasattr(parser, "count_reasoning_tokens") else parser.reasoning_parser
    return int(counter.count_reasoning_tokens(list(ids))) if counter is not None else 0


def grouped(texts: list[str], ids: list[int], group: int, end: int | None = None) -> list[Delta]:
    """Deltas of `group` tokens; the token that ends the turn comes with the last and has no text."""
    size = len(ids) if group == WHOLE else 1 if group == FIRST_AND_REST else group
    starts = list(range(0, len(ids), max(size, 1))) or [0]
    if group == FIRST_AND_REST:
        starts = starts[:2]
    spans = [*zip(starts, [*starts[1:], len(ids)], strict=True)]
    deltas = [Delta("".join(texts[a:b]), ids[a:b], False) for a, b in spans]
    if end is not None:
        deltas[-1].ids = [*deltas[-1].ids, end]
    deltas[-1].last = True
    return deltas


def hear(heard: Heard, delta: Any) -> None:
    """Add what a client gets, through the JSON that it gets."""
    if delta is None:
        return
    got = delta.model_dump(exclude_unset=True)
    heard.say(got.get("content"), got.get("reasoning"))
    for call in got.get("tool_calls", ()):
        index, function = call["index"], call.get("function") or {}
        while len(heard.calls) <= index:
            heard.begin("", "")
        name, arguments = heard.calls[index]
        heard.calls[index] = name + (function.get("name") or ""), arguments + (function.get("arguments") or "")
        heard.ids[index] += call.get("id") or ""


def tidied(heard: Heard) -> Heard:
    """Nothing but blanks is nothing."""
    heard.content = heard.content if heard.content and heard.content.strip() else None
    heard.reasoning = heard.reasoning if heard.reasoning and heard.reasoning.strip() else None
    return heard


# --- ways through a server -------------------------------------------------------------------------------------------


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
    heard = Heard()
    for event in events:
        if isinstance(event, (Content, Malformed)):
            heard.say(event.text)
        elif isinstance(event, Reasoning):
            heard.say(reasoning=event.text)
        elif isinstance(event, ToolCallStart):
            heard.begin(event.id, event.name)
        elif isinstance(event, ToolCallDelta):
            heard.go_on(event.arguments, event.index)
    return heard.told()


def meant_ways(fmt: toolgram.Format, text: str, prefix: str | None) -> tuple[Any, Any]:
    """What a format makes of an answer that ended by itself: in one message, and as it came."""
    parser = fmt.parser(TOOLS, prefix)
    events = [*parser.feed(text), *parser.close("stop")]
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


def hermes_server(tools: str = "toolgram_hermes", reasoning: str = "toolgram_hermes") -> Server:
    return Server(Pieces(["<|im_end|>"], specials_of("hermes")), tools, reasoning)


def both_ways(server: Server, text: str, prompt: Ids = (0,), **options: Any) -> Heard:
    """What is heard of a text, the same in every way."""
    ids, end = server.tokenizer.encode(text), server.tokenizer.eos_token_id
    whole = server.whole(ids, server.request(TOOLS, **options), prompt, end=end)
    for group in GROUPS:
        streamed = server.stream(ids, server.request(TOOLS, stream=True, **options), group, prompt, end=end)
        assert (streamed.told(), streamed.finish_reason) == (whole.told(), whole.finish_reason), group
        assert OLD or streamed.reasoning_tokens == whole.reasoning_tokens
    return whole
