"""Requests of Anthropic's messages: blocks become messages, and the results of calls messages of their own."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any

from toolgram.gateway.asking import (
    Ask,
    checked,
    choice_of,
    function_tools,
    given,
    items,
    kind_of,
    limit,
    sampling,
    stops,
    text_of,
)
from toolgram.gateway.errors import Refusal, unsupported


def read_messages(body: Mapping[str, Any], counting: bool = False) -> Ask:
    """Read a request for a message. With `counting`, only its tokens are counted. Raises Refusal."""
    most = limit(body, "max_tokens")
    if most is None and not counting:
        raise Refusal("max_tokens is required", param="max_tokens")
    for name in ("mcp_servers", "container"):
        if body.get(name):
            raise unsupported(name, "nothing runs on this server but the model")
    tools = function_tools(items(body, "tools"))
    choice = given(body, "tool_choice", dict, {})
    thinking = given(body, "thinking", dict, {})
    kind = thinking.get("type")
    if kind not in (None, "enabled", "disabled", "adaptive"):
        raise Refusal("thinking.type is enabled, disabled or adaptive", param="thinking")
    output = given(body, "output_config", dict, {})
    messages: list[dict[str, Any]] = []
    if system := text_of(body.get("system"), "system"):
        messages.append({"role": "system", "content": system})
    for at, message in enumerate(items(body, "messages")):
        _add(messages, message, f"messages[{at}]")
    continued = ""
    if messages and messages[-1]["role"] == "assistant":
        continued = _continued(messages.pop())
    return checked(
        Ask(
            "messages",
            body,
            messages,
            tools,
            _choice(choice, tools),
            not choice.get("disable_parallel_tool_use"),
            _schema(given(output, "format", dict)),
            stops(body, "stop_sequences"),
            most,
            sampling(body),
            1,
            given(body, "stream", bool, False),
            True,
            {"enabled": True, "disabled": False}.get(str(kind)),
            dict(given(body, "chat_template_kwargs", dict, {})),
            continued,
        )
    )


def _continued(message: Mapping[str, Any]) -> str:
    """Return the beginning of the answer, which the last message of a request may be."""
    if "tool_calls" in message or "reasoning_content" in message:
        raise unsupported("messages", "an answer that goes on can begin with text only")
    return str(message["content"])


def _choice(choice: Mapping[str, Any], tools: list[dict[str, Any]]) -> str | dict[str, Any]:
    kind = choice.get("type", "auto")
    if kind in ("auto", "none"):
        return str(kind)
    if kind == "any":
        return "required"
    if kind == "tool":
        return choice_of(choice.get("name"), tools)
    raise Refusal("tool_choice.type is auto, any, tool or none", param="tool_choice")


def _schema(said: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if said is None:
        return None
    if said.get("type") == "json_schema" and isinstance(said.get("schema"), dict):
        return dict(said["schema"])
    raise Refusal("output_config.format is a json_schema with its schema", param="output_config")


def _add(made: list[dict[str, Any]], message: Mapping[str, Any], where: str) -> None:
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant"):
        raise Refusal(f"{where}.role is user or assistant", param=where)
    if isinstance(content, str):
        made.append({"role": role, "content": content})
        return
    if not isinstance(content, list):
        raise Refusal(f"{where}.content must be text or a list of blocks, not {kind_of(content)}", param=where)
    turn: dict[str, Any] = {"role": role, "content": ""}
    for at, block in enumerate(items(message, "content")):
        _block(made, turn, block, f"{where}.content[{at}]")
    if turn["content"] or "tool_calls" in turn or "reasoning_content" in turn or role == "assistant":
        made.append(turn)


def _block(made: list[dict[str, Any]], turn: dict[str, Any], block: Mapping[str, Any], where: str) -> None:
    kind, role = block.get("type"), turn["role"]
    if kind == "text":
        text = given(block, "text", str, "")
        turn["content"] = f"{turn['content']}\n{text}" if turn["content"] else text
    elif kind == "tool_use" and role == "assistant":
        name, arguments = given(block, "name", str), given(block, "input", dict, {})
        if not name:
            raise Refusal(f"{where} has no name", param=where)
        call = {
            "id": given(block, "id", str, ""),
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }
        turn.setdefault("tool_calls", []).append(call)
    elif kind == "tool_result" and role == "user":
        result = text_of(block.get("content"), f"{where}.content")
        made.append({"role": "tool", "tool_call_id": given(block, "tool_use_id", str, ""), "content": result})
    elif kind == "thinking" and role == "assistant":
        turn["reasoning_content"] = given(block, "thinking", str, "")
    elif kind == "redacted_thinking" and role == "assistant":
        return  # what is in it only its author can read
    else:
        raise unsupported("messages", f"a block of the type {reprlib.repr(kind)} cannot be given to this model")
