"""Requests of OpenAI's Responses: items of input become messages."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any

from toolgram.gateway.asking import Ask, checked, choice_of, function_tools, given, items, limit, sampling, text_of
from toolgram.gateway.chat_requests import allowed, schema_of
from toolgram.gateway.errors import Refusal, unsupported

_STATE = ("previous_response_id", "conversation")
_TEXTS = ("input_text", "output_text", "text", "refusal")


def read_responses(body: Mapping[str, Any]) -> Ask:
    """Read a request for a response. Raises Refusal."""
    for name in _STATE:
        if body.get(name):
            raise unsupported(name, "nothing is kept between requests; send the whole conversation as input")
    if body.get("prompt"):
        raise unsupported("prompt", "there are no stored prompts here")
    if body.get("background"):
        raise unsupported("background", "an answer is given at once")
    if "message.output_text.logprobs" in given(body, "include", list, []):
        raise unsupported("include", "the probabilities of tokens are not those of the parts of a message")
    if body.get("top_logprobs"):
        raise unsupported("top_logprobs", "the probabilities of tokens are not those of the parts of a message")
    tools = function_tools(items(body, "tools"))
    text = given(body, "text", dict, {})
    reasoning = given(body, "reasoning", dict, {})
    effort = given(reasoning, "effort", str)
    template = dict(given(body, "chat_template_kwargs", dict, {}))
    if effort is not None and effort != "none":
        template.setdefault("reasoning_effort", effort)
    messages = _messages(body)
    if instructions := given(body, "instructions", str):
        messages.insert(0, {"role": "system", "content": instructions})
    return checked(
        Ask(
            "responses",
            body,
            messages,
            tools,
            _choice(body.get("tool_choice"), tools),
            given(body, "parallel_tool_calls", bool, True),
            schema_of(given(text, "format", dict), "text.format"),
            [],
            limit(body, "max_output_tokens"),
            sampling(body),
            1,
            given(body, "stream", bool, False),
            True,
            None if effort is None else effort != "none",
            template,
        )
    )


def _choice(choice: Any, tools: list[dict[str, Any]]) -> str | dict[str, Any]:
    if choice is None:
        return "auto"
    if choice in ("auto", "required", "none"):
        return str(choice)
    if isinstance(choice, dict) and choice.get("type") == "function":
        return choice_of(choice.get("name"), tools)
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        return allowed(choice, tools)
    raise Refusal("tool_choice is auto, required, none, or names a function", param="tool_choice")


def _messages(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    said = body.get("input")
    if isinstance(said, str):
        return [{"role": "user", "content": said}]
    if not isinstance(said, list):
        raise Refusal("input is text or a list of items", param="input")
    made: list[dict[str, Any]] = []
    for at, item in enumerate(items(body, "input")):
        _add(made, item, f"input[{at}]")
    return made


def _add(made: list[dict[str, Any]], item: Mapping[str, Any], where: str) -> None:
    """Add one item: a separate message, or a part of the assistant's message that is being built."""
    kind = item.get("type", "message")
    if kind == "message":
        role = given(item, "role", str, "")
        role = {"developer": "system"}.get(role, role)
        if role not in ("system", "user", "assistant"):
            raise Refusal(f"{where}.role is system, developer, user or assistant", param=where)
        text = text_of(item.get("content"), f"{where}.content", _TEXTS)
        if role != "assistant":
            made.append({"role": role, "content": text})
            return
        turn = _turn(made)
        turn["content"] = f"{turn['content']}\n{text}" if turn["content"] else text
    elif kind == "function_call":
        name, arguments = given(item, "name", str), given(item, "arguments", str, "{}")
        if not name:
            raise Refusal(f"{where} has no name", param=where)
        function = {"name": name, "arguments": arguments}
        call = {"id": given(item, "call_id", str, ""), "type": "function", "function": function}
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
