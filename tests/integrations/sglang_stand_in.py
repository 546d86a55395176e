"""A stand-in for the part of SGLang 0.5.23 that the plug-in touches, for tests that run everywhere.

Tables of names and classes, base classes, results, and the two classes that drive a detector. `make test-sglang` holds
the same tests to the real thing.
"""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tests.integrations.stand_in_modules import in_place


@dataclass
class ToolCallItem:
    tool_index: int
    name: str | None = None
    parameters: str = ""


@dataclass
class CallResult:
    normal_text: str = ""
    calls: list[ToolCallItem] = field(default_factory=list)


@dataclass
class ThoughtResult:
    normal_text: str = ""
    reasoning_text: str = ""


class BaseFormatDetector:
    pass


class BaseReasoningFormatDetector:
    def __init__(
        self, think_start_token: str, think_end_token: str, force_reasoning: bool = False,
        stream_reasoning: bool = True, reasoning_default: str = "always", force_nonempty_content: bool = False,
    ) -> None:  # fmt: skip
        self.think_start_token, self.think_end_token = think_start_token, think_end_token
        self.stream_reasoning, self.reasoning_default = stream_reasoning, reasoning_default
        self._in_reasoning = force_reasoning
        self._force_nonempty_content = force_nonempty_content
        self._accumulated_reasoning = ""

    def detect_and_parse(self, text: str) -> Any:
        found: Any = self._detect_and_parse_impl(text)  # type: ignore[attr-defined]
        if self._force_nonempty_content and not found.normal_text:
            found.normal_text, found.reasoning_text = found.reasoning_text, found.normal_text
        return found

    def parse_streaming_increment(self, new_text: str) -> Any:
        found: Any = self._parse_streaming_increment_impl(new_text)  # type: ignore[attr-defined]
        if self._force_nonempty_content:
            thought = self._accumulated_reasoning + found.reasoning_text
            self._accumulated_reasoning = thought if self._in_reasoning else ""
        return found


def _made(kind: Any, tokenizer: Any, **options: Any) -> Any:
    known = inspect.signature(kind).parameters
    if tokenizer is not None:
        options["tokenizer"] = tokenizer
    return kind(**{name: value for name, value in options.items() if name in known})


class FunctionCallParser:
    ToolCallParserEnum: ClassVar[dict[str, Any]] = {}

    def __init__(self, tools: list[Any], tool_call_parser: str, tokenizer: Any = None) -> None:
        self.tools = tools
        self.detector = _made(self.ToolCallParserEnum[tool_call_parser], tokenizer)

    def has_tool_call(self, text: str) -> bool:
        return bool(self.tools) and bool(self.detector.has_tool_call(text))

    def parse_non_stream(self, full_text: str) -> tuple[str, list[Any]]:
        if not self.tools:
            return full_text, []
        called = self.detector.has_tool_call(full_text)
        found = self.detector.detect_and_parse(full_text, self.tools)
        return (found.normal_text, found.calls) if called or found.calls else (full_text, [])

    def parse_stream_chunk(self, chunk_text: str) -> tuple[str, list[Any]]:
        if not self.tools:
            return chunk_text, []
        found = self.detector.parse_streaming_increment(chunk_text, self.tools)
        return found.normal_text, found.calls

    def parse_stream_end(self) -> tuple[str, list[Any]]:
        if not self.tools:
            return "", []
        found = self.detector.finish(self.tools)
        return found.normal_text, found.calls


class ReasoningParser:
    DetectorMap: ClassVar[dict[str, Any]] = {}

    def __init__(
        self, model_type: str, stream_reasoning: bool = True, force_reasoning: bool | None = None, request: Any = None,
        tokenizer: Any = None, tool_call_parser_active: bool = False,
    ) -> None:  # fmt: skip
        options: dict[str, Any] = {"stream_reasoning": stream_reasoning}
        if force_reasoning is not None:
            options["force_reasoning"] = force_reasoning
        if (getattr(request, "chat_template_kwargs", None) or {}).get("force_nonempty_content"):
            options["force_nonempty_content"] = True
        if tool_call_parser_active:
            options["tool_call_parser_active"] = True
        self.detector = _made(self.DetectorMap[model_type], tokenizer, **options)

    def parse_non_stream(self, full_text: str) -> tuple[str, str]:
        found = self.detector.detect_and_parse(full_text)
        return found.reasoning_text, found.normal_text

    def parse_stream_chunk(self, chunk_text: str) -> tuple[str, str]:
        found = self.detector.parse_streaming_increment(chunk_text)
        return found.reasoning_text, found.normal_text

    def parse_stream_end(self) -> tuple[str, str]:
        found = self.detector.finish()
        return found.reasoning_text, found.normal_text


class HookRegistry:
    hooks: ClassVar[list[tuple[str, Any]]] = []

    @classmethod
    def register(cls, target: str, hook: Any) -> None:
        cls.hooks.append((target, hook))


@contextmanager
def installed() -> Iterator[None]:
    """SGLang's modules for as long as the block runs; ours are imported anew, and gone after it."""
    contents: dict[str, dict[str, Any]] = {
        "sglang": {},
        "sglang.srt": {},
        "sglang.srt.function_call": {},
        "sglang.srt.function_call.base_format_detector": {"BaseFormatDetector": BaseFormatDetector},
        "sglang.srt.function_call.core_types": {"ToolCallItem": ToolCallItem, "StreamingParseResult": CallResult},
        "sglang.srt.function_call.parser_names": {"TOOL_CALL_PARSER_NAMES": ["hermes"]},
        "sglang.srt.function_call.function_call_parser": {"FunctionCallParser": FunctionCallParser},
        "sglang.srt.parser": {},
        "sglang.srt.parser.reasoning_parser": {
            "ReasoningParser": ReasoningParser,
            "BaseReasoningFormatDetector": BaseReasoningFormatDetector,
            "StreamingParseResult": ThoughtResult,
        },
        "sglang.srt.parser.reasoning_parser_names": {"REASONING_PARSER_NAMES": ["qwen3"]},
        "sglang.srt.sampling": {},
        "sglang.srt.sampling.sampling_params": {"REQUEST_REASONING_IN_GRAMMAR_KEY": "in grammar"},
        "sglang.srt.plugins": {},
        "sglang.srt.plugins.hook_registry": {"HookRegistry": HookRegistry},
    }
    tables: tuple[Any, ...] = (FunctionCallParser.ToolCallParserEnum, ReasoningParser.DetectorMap, HookRegistry.hooks)
    try:
        with in_place(contents, ("sglang", "sglang_detectors")):
            yield
    finally:
        for table in tables:
            table.clear()
