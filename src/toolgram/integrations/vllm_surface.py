"""Everything that toolgram imports from vLLM, and where each version keeps it. No other module imports vLLM's classes.

Strategy: need little, and name what was not found and which versions are known to work. vLLM moves its modules without
leaving aliases, so a missing name usually means a new version.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

TESTED = "0.33.0"
OLDEST = "0.31"  # the newest and the two minor releases before it are supported

_PROTOCOL = "vllm.entrypoints.generate.base.protocol"
_TOOLS = "vllm.tool_parsers"


class UnknownSurface(ImportError):
    """This vLLM does not have what toolgram plugs into."""


def find(name: str, module: str) -> Any:
    """Return what a module of vLLM has under a name. Raise UnknownSurface with what was looked for."""
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UnknownSurface(
            f"this version of vLLM has no {name} where toolgram looks for it ({module}: {error}); toolgram was tested "
            f"with vLLM {TESTED} and needs {OLDEST} or newer: update toolgram, or use vLLM's own parsers"
        ) from error


ToolParser = find("ToolParser", _TOOLS)
ToolParserManager = find("ToolParserManager", _TOOLS)
ReasoningParser = find("ReasoningParser", "vllm.reasoning")
ReasoningParserManager = find("ReasoningParserManager", "vllm.reasoning")
DelegatingParser = find("DelegatingParser", "vllm.parser.abstract_parser")
DeltaMessage = find("DeltaMessage", _PROTOCOL)
DeltaToolCall = find("DeltaToolCall", _PROTOCOL)
DeltaFunctionCall = find("DeltaFunctionCall", _PROTOCOL)
ExtractedToolCallInformation = find("ExtractedToolCallInformation", _PROTOCOL)
ToolCall = find("ToolCall", _PROTOCOL)
FunctionCall = find("FunctionCall", _PROTOCOL)

if not hasattr(ToolParser, "engine_based_streaming"):
    raise UnknownSurface(
        f"this version of vLLM has no engine-based streaming; toolgram needs vLLM {OLDEST} or newer, and was tested "
        f"with {TESTED}"
    )


def check_constraint(asked: Any) -> None:
    """Check with xgrammar what vLLM's parameters ask of an answer. Raise if xgrammar cannot enforce it."""
    sampling = find("SamplingParams", "vllm.sampling_params")
    find("validate_xgrammar_grammar", "vllm.v1.structured_output.backend_xgrammar")(sampling(structured_outputs=asked))


def as_constraint(tag: Any) -> Any:
    """Return a structural tag as vLLM's parameters of an answer."""
    return find("StructuredOutputsParams", "vllm.sampling_params")(structural_tag=tag.model_dump_json())


def as_ebnf(grammar: str) -> str:
    """Return a grammar as xgrammar's rules, converted if vLLM takes it for Lark; "" if xgrammar cannot read it."""
    try:
        if not find("grammar_is_likely_lark", "vllm.v1.structured_output.utils")(grammar):
            return grammar
        return str(import_module("xgrammar").Grammar.from_lark(grammar))
    except Exception:  # vLLM reports it
        return ""


class Ended(DeltaMessage):  # type: ignore[misc, valid-type]
    """The last delta of a stream, with arguments of a call that was open before, and what follows them."""

    @classmethod
    def of(cls, message: Any) -> Any:
        """Return a message as the last delta of a stream."""
        names = ("role", "content", "reasoning", "tool_calls")
        return cls.model_construct(**{name: value for name in names if (value := getattr(message, name, None))})

    def parts(self) -> list[Any]:
        """Return messages in order: the arguments of the open call, then the rest."""
        first = [call for call in self.tool_calls if not call.id]
        rest = [call for call in self.tool_calls if call.id]
        fields = {name: getattr(self, name) for name in ("reasoning", "content") if getattr(self, name)}
        if rest:
            fields["tool_calls"] = rest
        return [DeltaMessage(tool_calls=first), *([DeltaMessage(**fields)] if fields else [])]


def content_delta(text: str) -> Any:
    """Return a delta of content."""
    return DeltaMessage(content=text)


def reasoning_delta(text: str) -> Any:
    """Return a delta of reasoning."""
    return DeltaMessage(reasoning=text)


def arguments_delta(index: int, arguments: str) -> Any:
    """Return a delta of one call's arguments."""
    return DeltaMessage(tool_calls=[DeltaToolCall(index=index, function=DeltaFunctionCall(arguments=arguments))])
