"""Everything that toolgram imports from vLLM, and where each version keeps it. No other module imports vLLM's classes.

Strategy: need little, look for it newest place first, and say plainly what was not found and which versions are known
to work.  vLLM moves its modules without leaving anything behind (`docs/vllm.md` has the list), so a missing name is
the normal way in which a new version announces itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

TESTED = "0.33.0"
OLDEST = "0.24"  # before it vLLM does not call `finish_streaming`, and the end of an answer would be lost

_PROTOCOL = (
    "vllm.entrypoints.generate.base.protocol",  # since 0.29
    "vllm.entrypoints.openai.engine.protocol",  # since 0.15
    "vllm.entrypoints.openai.protocol",
)
_TOOLS = ("vllm.tool_parsers", "vllm.entrypoints.openai.tool_parsers")


class UnknownSurface(ImportError):
    """This vLLM does not have what toolgram plugs into."""


def find(name: str, *modules: str) -> Any:
    """What the first of `modules` that has `name` has. Raises UnknownSurface, which names all that was tried."""
    tried = []
    for module in modules:
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            tried.append(f"{module}: {error}")
    raise UnknownSurface(
        f"this version of vLLM has no {name} where toolgram looks for it ({'; '.join(tried)}); toolgram was tested "
        f"with vLLM {TESTED} and needs {OLDEST} or newer: update toolgram, or use vLLM's own parsers"
    )


ToolParser = find("ToolParser", *_TOOLS)
ToolParserManager = find("ToolParserManager", *_TOOLS)
ReasoningParser = find("ReasoningParser", "vllm.reasoning")
ReasoningParserManager = find("ReasoningParserManager", "vllm.reasoning")
DeltaMessage = find("DeltaMessage", *_PROTOCOL)
DeltaToolCall = find("DeltaToolCall", *_PROTOCOL)
DeltaFunctionCall = find("DeltaFunctionCall", *_PROTOCOL)
ExtractedToolCallInformation = find("ExtractedToolCallInformation", *_PROTOCOL)
ToolCall = find("ToolCall", *_PROTOCOL)
FunctionCall = find("FunctionCall", *_PROTOCOL)

if not hasattr(ToolParser, "engine_based_streaming"):
    raise UnknownSurface(
        f"this version of vLLM has no engine-based streaming; toolgram needs vLLM {OLDEST} or newer, and was tested "
        f"with {TESTED}"
    )


# --- delta messages, made quickly -----------------------------------------------------------------------------------
#
# A server makes one per delta.  The constructor validates what the parser knows to be right, and costs 3 us for text
# and 8 us for arguments, as much as all the rest of vLLM's layer.  What it leaves behind is looked at once, at import,
# and copied from then on; where copying does not give an equal message, the constructor is used.


def _copy(kind: Any, values: dict[str, Any], names: set[str], extra: dict[str, Any] | None) -> Any:
    message = kind.__new__(kind)
    set_slot = object.__setattr__
    set_slot(message, "__dict__", values)
    set_slot(message, "__pydantic_fields_set__", names)
    set_slot(message, "__pydantic_extra__", extra)
    set_slot(message, "__pydantic_private__", None)
    return message


def checked_content(text: str) -> Any:
    """A delta of content, by the constructor."""
    return DeltaMessage(content=text)


def checked_reasoning(text: str) -> Any:
    """A delta of reasoning, by the constructor."""
    return DeltaMessage(reasoning=text)


def checked_arguments(index: int, arguments: str) -> Any:
    """A delta of one call's arguments, by the constructor."""
    return DeltaMessage(tool_calls=[DeltaToolCall(index=index, function=DeltaFunctionCall(arguments=arguments))])


def _quick() -> tuple[Any, Any, Any] | None:
    """The same three, made by copying; None where that does not give the same."""
    try:
        sample = checked_arguments(0, "{}")
        fields: dict[str, Any] = {**checked_content("").__dict__, "content": None}
        call_fields = {**sample.tool_calls[0].__dict__, "function": None}
        function_fields = dict(sample.tool_calls[0].function.__dict__)
        extras = [each.__pydantic_extra__ for each in (sample, sample.tool_calls[0], sample.tool_calls[0].function)]
    except (AttributeError, IndexError, TypeError):
        return None

    def extra(which: int) -> dict[str, Any] | None:
        return None if extras[which] is None else {}

    def content(text: str) -> Any:
        return _copy(DeltaMessage, {**fields, "content": text, "tool_calls": []}, {"content"}, extra(0))

    def reasoning(text: str) -> Any:
        return _copy(DeltaMessage, {**fields, "reasoning": text, "tool_calls": []}, {"reasoning"}, extra(0))

    def arguments(index: int, text: str) -> Any:
        function = _copy(DeltaFunctionCall, {**function_fields, "arguments": text}, {"arguments"}, extra(2))
        call = _copy(
            DeltaToolCall, {**call_fields, "index": index, "function": function}, {"index", "function"}, extra(1)
        )
        return _copy(DeltaMessage, {**fields, "tool_calls": [call]}, {"tool_calls"}, extra(0))

    pairs = (
        (content("a"), checked_content("a")),
        (reasoning("a"), checked_reasoning("a")),
        (arguments(1, '{"a'), checked_arguments(1, '{"a')),
    )
    try:
        alike = all(
            quick == slow
            and quick.model_dump_json(exclude_unset=True) == slow.model_dump_json(exclude_unset=True)
            and quick.model_dump() == slow.model_dump()
            for quick, slow in pairs
        )
    except (AttributeError, TypeError):
        return None
    return (content, reasoning, arguments) if alike else None


content_delta, reasoning_delta, arguments_delta = _quick() or (checked_content, checked_reasoning, checked_arguments)
