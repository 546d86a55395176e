"""Answer requests with vLLM's parsers, as its server builds and calls them. A stand-in knows the markers as tokens."""

from __future__ import annotations

import os
from functools import lru_cache
from importlib import import_module
from typing import Any

from protocol import Answer, Heard, Skip, answer, load, serve
from stand_in import Tokenizer, deltas_of, thinks

os.environ.setdefault("VLLM_LOGGING_LEVEL", "CRITICAL")
FAMILIES = load("parsers")


@lru_cache(maxsize=128)
def parser_class(family: str, thinking: bool) -> tuple[Any, Tokenizer]:
    """Return the class of a family's parser, and its tokenizer. Skips what cannot be made with a stand-in."""
    tool, reasoning = FAMILIES.get(family, {}).get("vllm", (None, None))
    if not tool:
        raise Skip("vLLM has no parser of calls for this family, or one that needs a tokenizer of its own kind")
    tokenizer = Tokenizer([each for each in FAMILIES[family]["markers"] if each not in ("<s>", "</s>")])
    manager = import_module("vllm.parser").ParserManager
    names = {"tool_parser_name": tool, "reasoning_parser_name": reasoning if thinking else None}
    try:
        made = manager.get_parser(**names, enable_auto_tools=True, model_name="model", tokenizer=tokenizer)
    except Exception as error:
        raise Skip(f"the parser cannot be made: {error}") from error
    return made, tokenizer


def read(asked: dict[str, Any]) -> Answer:
    """Return the message of a request: whole, or its deltas as a server streams them."""
    thinking = thinks(asked, FAMILIES.get(asked["family"], {}).get("thoughts", []))
    made, tokenizer = parser_class(asked["family"], thinking)
    switches = {"chat_template_kwargs": {"enable_thinking": thinking, "thinking": thinking}, "model_config": None}
    protocol = import_module("vllm.entrypoints.openai.chat_completion.protocol")
    about = {"model": "model", "messages": [{"role": "user", "content": "Go."}], "tools": asked.get("tools")}
    request = protocol.ChatCompletionRequest(**about, stream=True, tool_choice="auto" if about["tools"] else "none")
    request = made(tokenizer, request.tools, **switches).adjust_request(request)
    parser, heard = made(tokenizer, request.tools, **switches), Heard()
    prompt = tokenizer.encode(asked.get("prompt") or "Go.")
    deltas = deltas_of(asked, FAMILIES[asked["family"]]["markers"])
    if len(deltas) == 1:  # as for a request that does not stream
        parser.set_prompt_token_ids(prompt)
        thought, content, calls = parser.parse(deltas[0], request, bool(about["tools"]), tokenizer.encode(deltas[0]))
        return answer(content, thought, [(call.name, call.arguments) for call in calls or []])
    for at, text in enumerate(deltas, 1):
        said = parser.parse_delta(text, tokenizer.encode(text), request, prompt, finished=at == len(deltas))
        heard.content += (said and said.content) or ""
        heard.reasoning += (said and said.reasoning) or ""
        for call in (said and said.tool_calls) or []:
            heard.call(call.index, call.function.name, call.function.arguments)
    return heard.answer()


if __name__ == "__main__":
    import_module("vllm.parser")  # longer than a request may take, on a busy machine
    import_module("vllm.entrypoints.openai.chat_completion.protocol")
    serve("vllm", read)
