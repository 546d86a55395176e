"""Read what a client got from a row of a log: OpenAI's chat and Responses, Anthropic, completions, and raw text.

Strategy: logs wrap the same few shapes in their own envelopes (a batch file has `response.body`, LiteLLM has `response`
as JSON text). So envelopes are removed, up to a limit, and the shape is recognised by its fields. A log that also has
the raw text of the model shows the most, so the raw text is looked for beside the answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_ENVELOPES = ("response", "response_body", "response_obj", "body", "result", "completion_response", "original_response")
_REQUESTS = ("request", "request_body", "model_parameters", "optional_params", "kwargs")
_RAW = ("raw", "raw_output", "raw_text", "output", "text", "completion", "generated_text")
_MOST_LEVELS = 8


class Call(NamedTuple):
    """A call as it was returned. Its arguments are JSON text for every API."""

    name: str
    arguments: str


@dataclass(slots=True)
class Served:
    """One answer. `raw` is the model's text if the log has it. `calls` is None if the log does not show which calls
    were returned."""

    raw: str | None = None
    content: str = ""
    reasoning: str = ""
    calls: list[Call] | None = None
    reason: str | None = None
    model: str = ""
    id: str = ""
    format: str = ""
    prefix: str | None = None
    tools: list[Any] | None = field(default=None)

    @property
    def text(self) -> str:
        """The text from which a format can be recognised."""
        return self.content if self.raw is None else self.raw


def served(row: Any) -> Iterator[Served]:
    """Yield the answers in a row, one for each choice. Yield nothing if the row has an unknown shape."""
    if not isinstance(row, Mapping):
        return
    levels = list(_levels(row))
    raw = next((row[name] for name in _RAW if isinstance(row.get(name), str)), None)
    answers = list(next((found for level in levels if (found := _shape(level)) is not None), ()))
    if not answers and raw is not None:
        answers = [Served(reason=_text(row.get("finish_reason")) or None)]
    tools, prefix = _found(levels, "tools"), row.get("prefix")
    for each in answers:
        each.raw = raw if each.raw is None and len(answers) == 1 else each.raw
        each.tools = tools if isinstance(tools, list) else None
        each.model, each.format = _text(_found(levels, "model")), _text(row.get("format"))
        each.id = _text(_found(levels, "id") or _found(levels, "custom_id"))
        each.prefix = prefix if isinstance(prefix, str) else None
        yield each


def _levels(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the row, and the answers and requests that are wrapped in it, the outermost first."""
    levels = [row]
    for level in levels:
        yield level
        if len(levels) < _MOST_LEVELS:
            inner = (_unpacked(level.get(name)) for name in (*_ENVELOPES, *_REQUESTS))
            levels += [each for each in inner if isinstance(each, Mapping)]


def _found(levels: Iterable[Mapping[str, Any]], name: str) -> Any:
    return next((level[name] for level in levels if level.get(name)), None)


def _unpacked(value: Any) -> Any:
    """Decode a value that some logs have as JSON text."""
    if isinstance(value, str) and value.startswith("{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _dicts(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _call(said: Mapping[str, Any], arguments: str) -> Call:
    given = said.get(arguments)
    return Call(_text(said.get("name")), given if isinstance(given, str) else json.dumps(given or {}))


def _message(said: Mapping[str, Any], reason: Any) -> Served:
    """Read a message of chat completions, or of Ollama."""
    calls = [_call(_dicts([each.get("function")])[0], "arguments") for each in _dicts(said.get("tool_calls"))
             if isinstance(each.get("function"), Mapping)]  # fmt: skip
    thought = _text(said.get("reasoning_content")) or _text(said.get("reasoning")) or _text(said.get("thinking"))
    return Served(None, _text(said.get("content")), thought, calls, _text(reason) or None)


def _choices(row: Mapping[str, Any]) -> Iterator[Served]:
    for choice in _dicts(row.get("choices")):
        if isinstance(choice.get("message"), Mapping):
            made = _message(choice["message"], choice.get("finish_reason"))
            verbose = row.get("__verbose")  # llama.cpp: the text before it was parsed
            made.raw = _text(verbose.get("content")) or None if isinstance(verbose, Mapping) else None
            yield made
        elif isinstance(choice.get("text"), str):
            yield Served(choice["text"], reason=_text(choice.get("finish_reason")) or None)


def _blocks(items: Any, reason: Any) -> Served:
    """Read the items of Responses, or the blocks of Anthropic: text, thoughts and calls in one list."""
    made = Served(calls=[], reason=_text(reason) or None)
    calls: list[Call] = []
    for item in _dicts(items):
        kind = item.get("type")
        if kind in ("function_call", "tool_use"):
            calls.append(_call(item, "arguments" if kind == "function_call" else "input"))
        elif kind in ("reasoning", "thinking"):
            parts = _dicts(item.get("content")) or _dicts(item.get("summary"))
            made.reasoning += _text(item.get("thinking")) + "".join(_text(part.get("text")) for part in parts)
        else:
            made.content += _text(item.get("text"))
            made.content += "".join(_text(part.get("text")) for part in _dicts(item.get("content")))
    made.calls = calls
    return made


def _shape(row: Mapping[str, Any]) -> Iterable[Served] | None:
    """Return the answers of a row without an envelope, or None if the row has an unknown shape."""
    content, text, response, message = (row.get(name) for name in ("content", "text", "response", "message"))
    if isinstance(row.get("choices"), list):
        return _choices(row)
    if isinstance(row.get("output"), list):
        return [_blocks(row["output"], row.get("status"))]
    if isinstance(content, list):
        return [_blocks(content, row.get("stop_reason"))]
    if isinstance(content, str) and ("stop_type" in row or "tokens_predicted" in row):  # llama.cpp
        return [Served(content, reason="length" if row.get("stop_type") == "limit" else "stop")]
    if isinstance(text, str) and "meta_info" in row:  # SGLang
        return [Served(text)]
    if isinstance(response, str) and "done" in row:  # Ollama
        return [Served(response, reason=_text(row.get("done_reason")) or None)]
    if isinstance(message, Mapping):
        return [_message(message, row.get("done_reason"))]
    if "tool_calls" in row or row.get("role") == "assistant":
        return [_message(row, row.get("finish_reason"))]
    return None
