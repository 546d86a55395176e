"""From what was found out about a template to a format: which skeletons, put together how.

Strategy: text (content, reasoning, their wrappers) and calls are written by skeletons that know nothing of each other;
here they are put into one format.  Nothing of any model is known here: the findings decide, and if they do not suffice
the format reads text only and says so.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import Any

from toolgram.derive.format_builder import FormatBuilder
from toolgram.derive.json_skeleton import add_json_calls
from toolgram.derive.messages import shown_outputs
from toolgram.derive.python_skeleton import add_python_calls, is_lossy, is_python
from toolgram.derive.result import (
    CallsFormat,
    ContentMode,
    DiffAnalysisResult,
    MarkerRegistry,
    ReasoningMode,
    Tokens,
    ToolFormat,
    ValueEncoding,
    shown,
)
from toolgram.derive.tag_skeleton import add_tag_calls
from toolgram.derive.text_skeleton import TextSkeleton, thinks_first
from toolgram.spec.data import Literal


def synthesise(result: DiffAnalysisResult, name: str, tokens: Tokens) -> FormatBuilder:
    """Return the two files for a template. Raises NotExpressible if its calls cannot be read by any skeleton."""
    builder = FormatBuilder(name, title=f"Derived: {name}")
    text = TextSkeleton(builder, result, tokens)
    leaving: list[str] = []
    if result.calls is not None:
        leaving = _add_calls(builder, result, result.calls)
    _describe(builder, result, tokens, text.finish(leaving, calls=result.calls is not None), calls=True)
    return builder


def without_calls(result: DiffAnalysisResult, name: str, tokens: Tokens) -> FormatBuilder:
    """Return a format that reads content and reasoning, and takes calls for text."""
    builder = FormatBuilder(name, title=f"Derived: {name}")
    _describe(builder, result, tokens, TextSkeleton(builder, result, tokens).finish([], calls=False))
    if result.calls is not None:
        builder.comment += "\nNot read yet: calls. Complete the rules with what is known of them.\n" + sketch(
            result.calls
        )
    return builder


def sketch(calls: CallsFormat) -> str:
    """Return what is known of calls that no skeleton writes: the texts and slots of one, and what is around it."""
    lines = [f"  a call: {shown(calls.pattern)}"]
    lines += [f"  before all calls: {calls.section_start!r}, after them: {calls.section_end!r}"]
    if calls.arguments.pattern:
        argument = f"  an argument: {shown(calls.arguments.pattern)}, between two: {calls.arguments.separator!r}"
        lines.append(argument)
    return "\n".join([*lines, f"  between two calls: {calls.separator!r}"])


def text_alone(result: DiffAnalysisResult, name: str, tokens: Tokens) -> FormatBuilder:
    """Return a format that takes everything for content."""
    plain = replace(result, reasoning_mode=ReasoningMode.NONE, content_mode=ContentMode.PLAIN, calls=None)
    return without_calls(replace(plain, markers=MarkerRegistry(), shapes={}, escaped={}), name, tokens)


def _is_json(result: DiffAnalysisResult) -> bool:
    fields = result.json_fields
    holds_arguments = fields.name_is_key or bool(fields.name_field and fields.args_field)
    return result.tool_format is ToolFormat.JSON_NATIVE and not fields.flat_arguments and holds_arguments


def _add_calls(builder: FormatBuilder, result: DiffAnalysisResult, calls: CallsFormat) -> list[str]:
    """Add the calls with the first skeleton that fits, and return the states after a call, which text leaves."""
    if is_python(calls):
        return add_python_calls(builder, calls)
    return add_json_calls(builder, result) if _is_json(result) else add_tag_calls(builder, calls)


def _describe(
    builder: FormatBuilder, result: DiffAnalysisResult, tokens: Tokens, machine: Mapping[str, Any], calls: bool = False
) -> None:
    builder.comment = (
        f"{builder.name}: derived from a chat template.\n"
        f"Reasoning: {result.reasoning_mode.value}. Content: {result.content_mode.value}. "
        f"Calls: {result.tool_format.value}."
    )
    triggers = {row["trigger"] for row in machine["transitions"]}
    if special := _special_tokens(builder, (*result.preserved_tokens, *tokens.special), triggers):
        builder.about["special_tokens"] = special
    values = result.calls.arguments.values if result.calls else {}
    if unproven := [kind for kind, style in values.items() if style.encoding is ValueEncoding.UNKNOWN]:
        builder.about["unproven_types"] = unproven
    opened = result.header if thinks_first(result) else result.prompts["unset"].opened
    own = [] if thinks_first(result) or not result.header.strip() else [result.header.strip()]
    builder.about |= {key: said for key, said in {"generation_prompt": opened, "own_role": own}.items() if said}
    if result.calls is not None and calls:
        lossy = is_python(result.calls) and is_lossy(result.calls)
        if texts := [] if lossy else shown_outputs(result):
            builder.about["canonical"] = [{"prefix": opened, "output": text} if opened else text for text in texts]


def _special_tokens(builder: FormatBuilder, tokens: Iterable[str], triggers: Container[str]) -> list[str]:
    """Return the terminals that are one special token each."""
    texts = {name: shape.text for name, shape in builder.terminals.items() if isinstance(shape, Literal)}
    used = {text: name for name, text in texts.items()}
    named = [used[token] for token in tokens if used.get(token) in triggers]
    ending = [name for name in builder.terminals if name.startswith("TURN_")]
    several = {name for name, text in texts.items() if text.count("<|") > 1}
    return [name for name in dict.fromkeys([*named, *ending]) if name not in several]
