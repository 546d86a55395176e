"""A stand-in for the part of vLLM 0.33.0 that the plug-in touches, for tests that run everywhere.

Registries, base classes, message types, and a driver that calls a pair of parsers in the order in which vLLM's
`DelegatingParser` was traced to call one. `test_vllm_answers.py` holds the same cases to the real thing.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, make_dataclass
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

from tests.integrations.stand_in_modules import in_place
from toolgram.integrations.observing import warn_once

OURS = ("vllm", "vllm_surface", "vllm_answer_form", "vllm_deltas", "vllm_patches", "vllm_parsers")


def message(kind: str, /, **defaults: Any) -> Any:
    """A type of messages with these fields; `list` is a new list in each."""
    fields = [(key, Any, field(default_factory=list) if each is list else each) for key, each in defaults.items()]
    return make_dataclass(kind, fields, namespace={"model_construct": classmethod(lambda cls, **given: cls(**given))})


DeltaFunctionCall = message("DeltaFunctionCall", name=None, arguments=None)
DeltaToolCall = message("DeltaToolCall", index=0, id=None, type=None, function=None)
DeltaMessage = message("DeltaMessage", content=None, reasoning=None, tool_calls=list)
FunctionCall = message("FunctionCall", name="", arguments="")
ToolCall = message("ToolCall", id="", function=None, type="function")
Extracted = message("ExtractedToolCallInformation", tools_called=False, tool_calls=list, content=None)


class _AnyParser:
    engine_based_streaming = False

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        self.model_tokenizer = tokenizer

    def adjust_request(self, request: Any) -> Any:
        return request


class ReasoningParser(_AnyParser):
    pass


class ToolParser(_AnyParser):
    supports_required_and_named = True
    structural_tag_model = None

    def __init__(self, tokenizer: Any, tools: Any = None) -> None:
        super().__init__(tokenizer)
        self.tools = list(tools or ())


def registry(loaded: str) -> Any:
    """A registry of parsers, as both of vLLM's are: names to strings, and to classes once they were asked for."""

    class Manager:
        lazy_parsers: dict[str, tuple[str, str]] = {}  # noqa: RUF012

        @classmethod
        def register_lazy_module(cls, name: str, module_path: str, class_name: str) -> None:
            cls.lazy_parsers[name] = (module_path, class_name)

        @classmethod
        def list_registered(cls) -> list[str]:
            return sorted({*cls.lazy_parsers, *getattr(cls, loaded)})

        @classmethod
        def get(cls, name: str) -> Any:
            kept = getattr(cls, loaded)
            if name not in kept:
                module, class_name = cls.lazy_parsers[name]
                kept[name] = getattr(import_module(module), class_name)
            return kept[name]

    setattr(Manager, loaded, {})
    return Manager


class DelegatingParser:
    """What vLLM makes for one answer: both parsers, and the order in which they are called."""

    reasoning_parser_cls: Any = None
    tool_parser_cls: Any = None

    def __init__(self, tokenizer: Any, tools: Any = None, **kwargs: Any) -> None:
        self.reasoning_parser = self.reasoning_parser_cls(tokenizer, **kwargs) if self.reasoning_parser_cls else None
        self.tool_parser = self.tool_parser_cls(tokenizer, tools) if self.tool_parser_cls else None
        if self.reasoning_parser is None and self.tool_parser is not None:
            self.tool_parser.skip_reasoning_parsing = True
        self._ended: bool = False
        self._asked: bool = False

    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
        if self.reasoning_parser is not None:
            self.reasoning_parser.set_prompt_token_ids(prompt_token_ids)

    def finalize_generation(self, delta_message: Any, request: Any, state: Any) -> Any:
        if self.tool_parser is not None and delta_message is not None and delta_message.tool_calls:
            assert self.tool_parser.get_remaining_unstreamed_args() == ""
        return delta_message

    def parse(
        self, model_output: str, request: Any, enable_auto_tools: bool = False, model_output_token_ids: Any = ()
    ) -> tuple[str | None, str | None, list[tuple[str, str, str]]]:
        reasoning: str | None = None
        content: str | None = model_output
        if self.reasoning_parser is not None:
            reasoning, content = self.reasoning_parser.extract_reasoning(model_output, request)
        if self.tool_parser is None:
            return reasoning, content, []
        found = self.tool_parser.extract_tool_calls(content or "", request=request)
        if request.tool_choice == "none":
            return reasoning, found.content, []
        calls = [(call.id, call.function.name, call.function.arguments) for call in found.tool_calls]
        return reasoning, found.content or None, calls

    def is_reasoning_end(self, input_ids: list[int]) -> bool:
        return self.reasoning_parser is not None and self.reasoning_parser.is_reasoning_end(input_ids)

    def adjust_request(self, request: Any) -> Any:
        for parser in (self.reasoning_parser, self.tool_parser):
            request = request if parser is None else parser.adjust_request(request)
        return request

    def parse_delta(
        self, delta_text: str, delta_token_ids: list[int], request: Any, prompt_token_ids: list[int] | None = None, *,
        finished: bool,
    ) -> Any:  # fmt: skip
        text, ids, prompt = delta_text, delta_token_ids, prompt_token_ids
        if not self._asked and prompt is not None:
            self._asked = True
            self.set_prompt_token_ids(prompt)
            self._ended = self.reasoning_parser is None or self.reasoning_parser.is_reasoning_end(prompt)
        delta = None
        if not self._ended and self.reasoning_parser is not None:
            reasoning = self.reasoning_parser
            delta = reasoning.extract_reasoning_streaming("", text, text, [], ids, ids)
            if reasoning.has_engine_confirmed_reasoning_end():
                self._ended = True
                ids = reasoning.extract_content_ids(ids)
                flushed = reasoning.finish_streaming()
                text = ((delta.content if delta else None) or "") + ((flushed.content if flushed else None) or "")
                delta = self._tools(text, ids, request, delta)
        elif self._ended:
            delta = self._tools(text, ids, request, None)
        if finished:
            delta = self.finalize_generation(delta, request, None)
            for parser in (None if self._ended else self.reasoning_parser, self.tool_parser):
                flushed = parser.finish_streaming() if parser is not None else None
                delta = merged(delta, flushed)
        return delta

    def _tools(self, text: str, ids: list[int], request: Any, before: Any) -> Any:
        thought = before.reasoning if before else None
        if self.tool_parser is None:
            return DeltaMessage(content=text, reasoning=thought) if text or thought else None
        delta = self.tool_parser.extract_tool_calls_streaming("", text, text, [], ids, ids, request)
        if request.tool_choice == "none" and delta:
            delta.tool_calls = []
        if thought and delta is None:
            return DeltaMessage(reasoning=thought)
        if thought and not delta.reasoning:
            delta.reasoning = thought
        return delta


def merged(delta: Any, flushed: Any) -> Any:
    if delta is None or flushed is None:
        return delta or flushed
    delta.content = (delta.content or "") + (flushed.content or "") or None
    delta.reasoning = (delta.reasoning or "") + (flushed.reasoning or "") or None
    delta.tool_calls = [*delta.tool_calls, *flushed.tool_calls]
    return delta


def compose(tools: str | None, reasoning: str | None) -> Any:
    """The class that drives this pair, made as vLLM makes it."""
    t_cls: Any = import_module("vllm.tool_parsers").ToolParserManager.get(tools) if tools else None
    r_cls: Any = import_module("vllm.reasoning").ReasoningParserManager.get(reasoning) if reasoning else None
    return type("_Parser", (DelegatingParser,), {"reasoning_parser_cls": r_cls, "tool_parser_cls": t_cls})


def request(tools: Any, tool_choice: Any = "auto", **fields: Any) -> Any:
    """A request, as far as parsers look at it."""
    shaped = [SimpleNamespace(type="function", function=SimpleNamespace(**tool["function"])) for tool in tools or ()]
    choice = tool_choice if tools else "none"
    return SimpleNamespace(tools=shaped, tool_choice=choice, skip_special_tokens=True, **fields)


class _Messages:
    @classmethod
    def to_chat_completion_request(cls, anthropic_request: Any) -> Any:
        return anthropic_request


class OnlineRenderer:
    """Makes prompts. A request is adjusted in the event loop, in place."""

    async def preprocess_chat(self, request: Any, parser: Any, tokenizer: Any) -> Any:
        made = parser(tokenizer, request.tools)
        made.set_prompt_token_ids([0])
        made.adjust_request(request)
        return [], [{"prompt_token_ids": [0]}]


@contextmanager
def installed(protocol: str = "vllm.entrypoints.generate.base.protocol") -> Iterator[ModuleType]:
    """A process in which this vLLM is installed and toolgram's plug-in was not loaded yet."""
    kinds = (DeltaMessage, DeltaToolCall, DeltaFunctionCall, Extracted, ToolCall, FunctionCall)
    patched = {"OnlineRenderer": OnlineRenderer, "AnthropicServingMessages": _Messages}
    new = {name: type(name, (kind,), {}) for name, kind in patched.items()}
    contents: dict[str, dict[str, Any]] = {
        "vllm": {},
        "vllm.tool_parsers": {"ToolParser": ToolParser, "ToolParserManager": registry("tool_parsers")},
        "vllm.reasoning": {"ReasoningParser": ReasoningParser, "ReasoningParserManager": registry("reasoning_parsers")},
        "vllm.parser": {},
        "vllm.parser.abstract_parser": {"DelegatingParser": DelegatingParser},
        "vllm.entrypoints.openai.responses.serving": {"split_delta": lambda delta: [delta]},
        "vllm.entrypoints.anthropic.serving": new,
        "vllm.renderers.online_renderer": new,
        protocol: {kind.__name__: kind for kind in kinds},
    }
    with in_place(contents, OURS), patch.dict(os.environ):
        os.environ.pop("TOOLGRAM_VLLM_PATCHES", None)  # this vLLM has none of those that make ours unnecessary
        warn_once.cache_clear()
        yield import_module("vllm")
