"""Requests of the three APIs: chat completions, Responses and Anthropic's messages, each read into an `Ask`.

Strategy: the three ask for the same things in other words. A function per API names the fields; how
fields are read is in `asking`.
"""

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
from toolgram.gateway.errors import Api, Refusal, unsupported
from toolgram.limits import MOST_ANSWERS

_PROBABILITIES = "the probabilities of tokens are not those of the parts of a message"
_TEXT_ONLY = "this model reads and writes text"
_NO_STATE = "nothing is kept between requests; send the whole conversation as input"
_REPLACED = "it was replaced by tools and tool_choice"
_ONLY_A_MODEL = "nothing runs on this server but the model"
_UNSUPPORTED: Mapping[Api, Mapping[str, str]] = {
    "chat": {
        **dict.fromkeys(("logprobs", "top_logprobs"), _PROBABILITIES),
        **dict.fromkeys(("audio", "prediction", "web_search_options"), _TEXT_ONLY),
        **dict.fromkeys(("functions", "function_call"), _REPLACED),
    },
    "responses": {
        **dict.fromkeys(("previous_response_id", "conversation"), _NO_STATE),
        "prompt": "there are no stored prompts here",
        "background": "an answer is given at once",
        "top_logprobs": _PROBABILITIES,
    },
    "messages": dict.fromkeys(("mcp_servers", "container"), _ONLY_A_MODEL),
}
_ROLES = {"developer": "system", "function": "tool"}
_REASONING = ("reasoning_content", "reasoning")
_TEXTS = ("input_text", "output_text", "text", "refusal")


def _begun(api: Api, body: Mapping[str, Any], *limits: str) -> Ask:
    """Return what all APIs say in the same words. Raises Refusal."""
    for name, why in _UNSUPPORTED[api].items():
        if body.get(name):
            raise unsupported(name, why)
    ask = Ask(api, body, [], function_tools(items(body, "tools")), limit=limit(body, *limits), sampling=sampling(body))
    ask.stream, ask.template = given(body, "stream", bool, False), dict(given(body, "chat_template_kwargs", dict, {}))
    return ask


def _set_effort(ask: Ask, effort: str | None) -> None:
    if effort is not None:
        ask.thinking = effort != "none"
    if ask.thinking:
        ask.template.setdefault("reasoning_effort", effort)


def _choice(choice: Any, tools: list[dict[str, Any]], nested: bool) -> str | dict[str, Any]:
    """Return the tool choice; what it names is `nested` below its type, or beside it. Raises Refusal."""
    if choice in (None, "auto", "required", "none"):
        return str(choice or "auto")
    kind = choice.get("type") if isinstance(choice, dict) else None
    said = (choice.get(kind) if nested else choice) if kind in ("function", "allowed_tools") else None
    if isinstance(said, dict):
        return choice_of(said.get("name"), tools) if kind == "function" else _allowed(said, tools)
    raise Refusal("tool_choice is auto, required, none, or names a function", param="tool_choice")


def _allowed(said: Mapping[str, Any], tools: list[dict[str, Any]]) -> str:
    """Keep only the allowed tools of those that were declared. Raises Refusal if none is left."""
    names = [given(given(tool, "function", dict, tool), "name", str) for tool in items(said, "tools")]
    tools[:] = [tool for tool in tools if tool["function"]["name"] in names]
    if not tools:
        raise Refusal("tool_choice allows no tool that is declared", param="tool_choice")
    return "required" if said.get("mode") == "required" else "auto"


def _schema(said: Mapping[str, Any] | None, where: str) -> Mapping[str, Any] | None:
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


def _called(said: Mapping[str, Any], id_name: str, name: Any, arguments: Any) -> dict[str, Any]:
    """Return a call, as a chat template takes it."""
    function = {"name": name, "arguments": arguments}
    return {"id": given(said, id_name, str, ""), "type": "function", "function": function}


def _named(said: Mapping[str, Any], where: str) -> str:
    name = given(said, "name", str)
    if not name:
        raise Refusal(f"{where} has no name", param=where)
    return str(name)


# --- chat completions -------------------------------------------------------------------------------------------------


def read_chat(body: Mapping[str, Any]) -> Ask:
    """Read a request for a chat completion. Raises Refusal."""
    ask = _begun("chat", body, "max_completion_tokens", "max_tokens")
    if given(body, "modalities", list, ["text"]) != ["text"]:
        raise unsupported("modalities", _TEXT_ONLY)
    ask.answers = given(body, "n", int, 1)
    if not 1 <= ask.answers <= MOST_ANSWERS:
        raise Refusal(f"n is a number from 1 to {MOST_ANSWERS}", param="n")
    _set_effort(ask, given(body, "reasoning_effort", str))
    ask.messages = [_chat_message(each, f"messages[{at}]") for at, each in enumerate(items(body, "messages"))]
    ask.tool_choice = _choice(body.get("tool_choice"), ask.tools, nested=True)
    ask.parallel = given(body, "parallel_tool_calls", bool, True)
    ask.json_schema = _schema(given(body, "response_format", dict), "response_format")
    ask.stop = stops(body, "stop")
    ask.usage = bool(given(body, "stream_options", dict, {}).get("include_usage"))
    return checked(ask)


def _chat_message(message: Mapping[str, Any], where: str) -> dict[str, Any]:
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
            made["tool_calls"] = [_chat_call(call, f"{where}.tool_calls[{at}]") for at, call in enumerate(calls)]
    return made


def _chat_call(call: Mapping[str, Any], where: str) -> dict[str, Any]:
    function = given(call, "function", dict)
    if function is None or not isinstance(function.get("name"), str):
        raise Refusal(f"{where} has no function with a name", param=where)
    arguments = function.get("arguments")
    if not isinstance(arguments, (str, dict)) and arguments is not None:
        raise Refusal(f"{where}.function.arguments is JSON as text", param=where)
    return _called(call, "id", function["name"], "{}" if arguments is None else arguments)


# --- Responses --------------------------------------------------------------------------------------------------------


def read_responses(body: Mapping[str, Any]) -> Ask:
    """Read a request for a response: items of input become messages. Raises Refusal."""
    ask = _begun("responses", body, "max_output_tokens")
    if "message.output_text.logprobs" in given(body, "include", list, []):
        raise unsupported("include", _PROBABILITIES)
    _set_effort(ask, given(given(body, "reasoning", dict, {}), "effort", str))
    ask.messages = _input(body)
    if instructions := given(body, "instructions", str):
        ask.messages.insert(0, {"role": "system", "content": instructions})
    ask.tool_choice = _choice(body.get("tool_choice"), ask.tools, nested=False)
    ask.parallel = given(body, "parallel_tool_calls", bool, True)
    ask.json_schema = _schema(given(given(body, "text", dict, {}), "format", dict), "text.format")
    ask.stop = stops(body, "stop")  # which OpenAI does not have here, and vLLM has
    return checked(ask)


def _input(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    said = body.get("input")
    if isinstance(said, str):
        return [{"role": "user", "content": said}]
    if not isinstance(said, list):
        raise Refusal("input is text or a list of items", param="input")
    made: list[dict[str, Any]] = []
    for at, item in enumerate(items(body, "input")):
        _add_item(made, item, f"input[{at}]")
    return made


def _add_item(made: list[dict[str, Any]], item: Mapping[str, Any], where: str) -> None:
    """Add one item: a separate message, or a part of the assistant's message that is being built."""
    kind = item.get("type", "message")
    if kind == "message":
        role = given(item, "role", str, "")
        role = "system" if role == "developer" else role
        if role not in ("system", "user", "assistant"):
            raise Refusal(f"{where}.role is system, developer, user or assistant", param=where)
        text = text_of(item.get("content"), f"{where}.content", _TEXTS)
        if role != "assistant":
            made.append({"role": role, "content": text})
            return
        turn = _turn(made)
        turn["content"] = f"{turn['content']}\n{text}" if turn["content"] else text
    elif kind == "function_call":
        call = _called(item, "call_id", _named(item, where), given(item, "arguments", str, "{}"))
        _turn(made).setdefault("tool_calls", []).append(call)
    elif kind == "function_call_output":
        output = text_of(item.get("output"), f"{where}.output", _TEXTS)
        made.append({"role": "tool", "tool_call_id": given(item, "call_id", str, ""), "content": output})
    elif kind == "reasoning":
        parts = [*items(item, "content")] or [*items(item, "summary")]
        thought = "".join(part["text"] for part in parts if isinstance(part.get("text"), str))
        if thought:
            _turn(made)["reasoning_content"] = thought
    else:
        raise unsupported("input", f"an item of the type {reprlib.repr(kind)} cannot be given to this model")


def _turn(made: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the assistant's message that the next item belongs to."""
    if not made or made[-1]["role"] != "assistant":
        made.append({"role": "assistant", "content": ""})
    return made[-1]


# --- messages ---------------------------------------------------------------------------------------------------------


def read_messages(body: Mapping[str, Any], counting: bool = False) -> Ask:
    """Read a request for a message of Anthropic's API. With `counting`, only its tokens are counted. Raises Refusal.

    Blocks become messages, and the results of calls messages of their own.
    """
    ask = _begun("messages", body, "max_tokens")
    if ask.limit is None and not counting:
        raise Refusal("max_tokens is required", param="max_tokens")
    choice = given(body, "tool_choice", dict, {})
    kind = given(body, "thinking", dict, {}).get("type")
    if kind not in (None, "enabled", "disabled", "adaptive"):
        raise Refusal("thinking.type is enabled, disabled or adaptive", param="thinking")
    ask.thinking = {"enabled": True, "disabled": False}.get(str(kind))
    if system := text_of(body.get("system"), "system"):
        ask.messages.append({"role": "system", "content": system})
    for at, message in enumerate(items(body, "messages")):
        _add_turn(ask.messages, message, f"messages[{at}]")
    if ask.messages and ask.messages[-1]["role"] == "assistant":
        ask.continued = _continued(ask.messages.pop())
    ask.tool_choice, ask.parallel = _anthropic_choice(choice, ask.tools), not choice.get("disable_parallel_tool_use")
    said = given(given(body, "output_config", dict, {}), "format", dict)
    if said is not None:
        if said.get("type") != "json_schema" or not isinstance(said.get("schema"), dict):
            raise Refusal("output_config.format is a json_schema with its schema", param="output_config")
        ask.json_schema = said["schema"]
    ask.stop = stops(body, "stop_sequences")
    return checked(ask)


def _continued(message: Mapping[str, Any]) -> str:
    """Return the beginning of the answer, which the last message of a request may be."""
    if "tool_calls" in message or "reasoning_content" in message:
        raise unsupported("messages", "an answer that goes on can begin with text only")
    return str(message["content"])


def _anthropic_choice(choice: Mapping[str, Any], tools: list[dict[str, Any]]) -> str | dict[str, Any]:
    kind = choice.get("type", "auto")
    if kind in ("auto", "none"):
        return str(kind)
    if kind == "any":
        return "required"
    if kind == "tool":
        return choice_of(choice.get("name"), tools)
    raise Refusal("tool_choice.type is auto, any, tool or none", param="tool_choice")


def _add_turn(made: list[dict[str, Any]], message: Mapping[str, Any], where: str) -> None:
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
        call = _called(block, "id", _named(block, where), given(block, "input", dict, {}))
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
