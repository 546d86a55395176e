"""A request in one form, whatever API it came by, and how its fields are read.

Strategy: the three APIs ask for the same things. What each calls them is read in a module of its own; here is what
they share: the form, and readers of fields that say which field is wrong. Fields that a server may ignore are not
looked at. Those that would change what an answer means, and that are not supported, are refused.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolgram.errors import ToolgramError
from toolgram.gateway.errors import Api, Refusal, unsupported
from toolgram.limits import MAX_INTEGER, MOST_MESSAGES, MOST_STOPS
from toolgram.tools.reading import read_tools

_NUMBERS = ("temperature", "top_p", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty")
_INTEGERS = ("top_k", "seed")
_KINDS = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}


@dataclass
class Ask:
    """A request. `messages` and `tools` are as a chat template takes them."""

    api: Api
    body: Mapping[str, Any]
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] = field(default_factory=list)
    tool_choice: str | dict[str, Any] = "auto"
    parallel: bool = True
    json_schema: Mapping[str, Any] | None = None
    stop: list[str] = field(default_factory=list)
    limit: int | None = None
    sampling: dict[str, Any] = field(default_factory=dict)
    answers: int = 1
    stream: bool = False
    usage: bool = True  # whether a stream reports at its end how many tokens it took
    thinking: bool | None = None
    template: dict[str, Any] = field(default_factory=dict)  # variables for the template
    continued: str = ""  # the beginning of the answer, if the request has it
    size: int = 0  # bytes of the request

    @property
    def must_call(self) -> bool:
        """Whether the answer has to be a call."""
        return self.tool_choice not in ("auto", "none")


def given(body: Mapping[str, Any], name: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
    """Return a field of the right type, or its default if it is absent or null. Raises Refusal."""
    value = body.get(name)
    if value is None:
        return default
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise Refusal(f"{name} must be {_KINDS.get(kinds[0], 'a number')}, not {kind_of(value)}", param=name)
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise Refusal(f"{name} is out of range", param=name)
    return value


def kind_of(value: Any) -> str:
    """Return what a JSON value is, in words."""
    return _KINDS.get(type(value), "a number")


def items(body: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return a list of objects. Raises Refusal."""
    found = given(body, name, list, [])
    for at, item in enumerate(found):
        if not isinstance(item, dict):
            raise Refusal(f"{name}[{at}] must be an object, not {kind_of(item)}", param=name)
    return list(found)


def limit(body: Mapping[str, Any], *names: str) -> int | None:
    """Return the most tokens of an answer, from the first field that is present."""
    for name in names:
        if (value := given(body, name, int)) is not None:
            if value < 1:
                raise Refusal(f"{name} must be at least 1", param=name)
            return int(value)
    return None


def sampling(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers that control sampling. Raises Refusal for a number that is not finite."""
    found: dict[str, Any] = {}
    for name in (*_NUMBERS, *_INTEGERS):
        value = given(body, name, int if name in _INTEGERS else (int, float))
        if value is not None and not math.isfinite(value):
            raise Refusal(f"{name} must be a finite number", param=name)
        found |= {} if value is None else {name: value}
    bias = given(body, "logit_bias", dict)
    if bias:
        if not all(isinstance(each, (int, float)) and abs(each) <= MAX_INTEGER for each in bias.values()):
            raise Refusal("logit_bias maps ids of tokens to numbers", param="logit_bias")
        found["logit_bias"] = bias
    return found


def stops(body: Mapping[str, Any], name: str) -> list[str]:
    """Return the texts at which an answer ends. Raises Refusal."""
    value = given(body, name, (str, list), [])
    found = [value] if isinstance(value, str) else value
    if len(found) > MOST_STOPS or not all(isinstance(each, str) and each for each in found):
        raise Refusal(f"{name} is a text, or a list of at most {MOST_STOPS} texts", param=name)
    return list(found)


def function_tools(tools: Sequence[Any], where: str = "tools") -> list[dict[str, Any]]:
    """Return tools as chat completions declare them. Raises Refusal for an unknown shape, and for tools of a server."""
    try:
        declared = read_tools(tools)
        chat = [tool.as_chat() for tool in declared]
    except ToolgramError as error:
        raise Refusal(str(error), param=where) from None
    for tool in declared:
        if not tool.is_function:
            kind = str(tool.definition.get("type"))[:40]
            raise unsupported(where, f"a tool of the type {kind!r} runs on the server, and this one has none")
    for each in chat:  # templates read both without asking whether they are there
        each["function"] = {"description": "", "parameters": {"type": "object", "properties": {}}, **each["function"]}
    return chat


def choice_of(name: str | None, tools: Sequence[Mapping[str, Any]], param: str = "tool_choice") -> dict[str, Any]:
    """Return the choice of one function. Raises Refusal if it is not declared."""
    names = [tool["function"]["name"] for tool in tools]
    if name not in names:
        raise Refusal(f"{param} names the function {name!r}, which is not among the tools", param=param)
    return {"type": "function", "function": {"name": name}}


def checked(ask: Ask) -> Ask:
    """Return the request if its parts fit together. Raises Refusal."""
    if not ask.messages:
        raise Refusal("there are no messages", param="messages")
    if len(ask.messages) > MOST_MESSAGES:
        raise Refusal(f"there are more than {MOST_MESSAGES} messages", param="messages")
    if ask.tool_choice == "required" and not ask.tools:
        raise Refusal("a call is required, and there are no tools", param="tool_choice")
    return ask


def text_of(content: Any, where: str, types: Sequence[str] = ("text",)) -> str:
    """Return content that is text, or a list of text parts. Raises Refusal for anything else, such as an image."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise Refusal(f"{where} must be text or a list of parts, not {kind_of(content)}", param=where)
    texts = []
    for at, part in enumerate(content):
        if not isinstance(part, dict):
            raise Refusal(f"{where}[{at}] must be an object, not {kind_of(part)}", param=where)
        kind = part.get("type")
        if kind not in types:
            raise unsupported(where, f"a part of the type {reprlib.repr(kind)} cannot be given to this model")
        text = part.get("text", part.get("refusal"))
        if not isinstance(text, str):
            raise Refusal(f"{where}[{at}].text must be text, not {kind_of(text)}", param=where)
        texts.append(text)
    return "\n".join(texts)
