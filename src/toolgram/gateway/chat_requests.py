"""Requests of OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolgram.gateway.asking import (
    Ask,
    checked,
    choice_of,
    function_tools,
    given,
    items,
    limit,
    sampling,
    stops,
    text_of,
)
from toolgram.gateway.errors import Refusal, unsupported
from toolgram.limits import MOST_ANSWERS

_ROLES = {"developer": "system", "function": "tool"}
_REASONING = ("reasoning_content", "reasoning")


def read_chat(body: Mapping[str, Any]) -> Ask:
    """Read a request for a chat completion. Raises Refusal."""
    for name in ("logprobs", "top_logprobs"):
        if body.get(name):
            raise unsupported(name, "the probabilities of tokens are not those of the parts of a message")
    for name in ("audio", "prediction", "web_search_options"):
        if body.get(name):
            raise unsupported(name, "this model reads and writes text")
    if given(body, "modalities", list, ["text"]) != ["text"]:
        raise unsupported("modalities", "this model reads and writes text")
    if body.get("functions") or body.get("function_call"):
        raise unsupported("functions", "it was replaced by tools and tool_choice")
    tools = function_tools(items(body, "tools"))
    options = given(body, "stream_options", dict, {})
    answers = given(body, "n", int, 1)
    if not 1 <= answers <= MOST_ANSWERS:
        raise Refusal(f"n is a number from 1 to {MOST_ANSWERS}", param="n")
    effort = given(body, "reasoning_effort", str)
    template = dict(given(body, "chat_template_kwargs", dict, {}))
    if effort is not None and effort != "none":
        template.setdefault("reasoning_effort", effort)
    return checked(
        Ask(
            "chat",
            body,
            [chat_message(each, f"messages[{at}]") for at, each in enumerate(items(body, "messages"))],
            tools,
            chat_choice(body.get("tool_choice"), tools),
            given(body, "parallel_tool_calls", bool, True),
            schema_of(given(body, "response_format", dict), "response_format"),
            stops(body, "stop"),
            limit(body, "max_completion_tokens", "max_tokens"),
            sampling(body),
            answers,
            given(body, "stream", bool, False),
            bool(options.get("include_usage")),
            None if effort is None else effort != "none",
            template,
        )
    )


def chat_choice(choice: Any, tools: list[dict[str, Any]]) -> str | dict[str, Any]:
    """Return the tool choice. Raises Refusal."""
    if choice is None:
        return "auto"
    if choice in ("auto", "required", "none"):
        return str(choice)
    kind = choice.get("type") if isinstance(choice, dict) else None
    if kind == "function" and isinstance(choice.get("function"), dict):
        return choice_of(choice["function"].get("name"), tools)
    if kind == "allowed_tools" and isinstance(choice.get("allowed_tools"), dict):
        return allowed(choice["allowed_tools"], tools)
    raise Refusal("tool_choice is auto, required, none, or names a function", param="tool_choice")


def allowed(said: Mapping[str, Any], tools: list[dict[str, Any]]) -> str:
    """Keep only the allowed tools of those that were declared. Raises Refusal if none is left."""
    names = [given(given(tool, "function", dict, tool), "name", str) for tool in items(said, "tools")]
    tools[:] = [tool for tool in tools if tool["function"]["name"] in names]
    if not tools:
        raise Refusal("tool_choice allows no tool that is declared", param="tool_choice")
    return "required" if said.get("mode") == "required" else "auto"


def schema_of(said: Mapping[str, Any] | None, where: str) -> Mapping[str, Any] | None:
    """Return the JSON Schema of the answer, or None for text. Raises Refusal."""
    kind = "text" if said is None else said.get("type")
    if said is None or kind == "text":
        return None
    if kind == "json_object":
        return {"type": "object"}
    if kind == "json_schema":
        schema = said.get("schema", given(said, "json_schema", dict, {}).get("schema"))
        if isinstance(schema, dict):
            return schema
        raise Refusal(f"{where} has no schema", param=where)
    raise Refusal(f"{where}.type is text, json_object or json_schema", param=where)


def chat_message(message: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return one message, as a chat template takes it. Raises Refusal."""
    role = given(message, "role", str, "")
    role = _ROLES.get(role, role)
    if role not in ("system", "user", "assistant", "tool"):
        raise Refusal(f"{where}.role is system, user, assistant or tool", param=f"{where}.role")
    types = ("text", "refusal") if role == "assistant" else ("text",)
    made: dict[str, Any] = {"role": role, "content": text_of(message.get("content"), f"{where}.content", types)}
    if role == "tool":
        made["tool_call_id"] = given(message, "tool_call_id", str, "")
    if name := given(message, "name", str):
        made["name"] = name
    if role == "assistant":
        if thought := next((message[key] for key in _REASONING if isinstance(message.get(key), str)), ""):
            made["reasoning_content"] = thought
        if calls := items(message, "tool_calls"):
            made["tool_calls"] = [_call(call, f"{where}.tool_calls[{at}]") for at, call in enumerate(calls)]
    return made


def _call(call: Mapping[str, Any], where: str) -> dict[str, Any]:
    function = given(call, "function", dict)
    if function is None or not isinstance(function.get("name"), str):
        raise Refusal(f"{where} has no function with a name", param=where)
    arguments = function.get("arguments")
    if not isinstance(arguments, (str, dict)) and arguments is not None:
        raise Refusal(f"{where}.function.arguments is JSON as text", param=where)
    return {
        "id": given(call, "id", str, ""),
        "type": "function",
        "function": {"name": function["name"], "arguments": "{}" if arguments is None else arguments},
    }
