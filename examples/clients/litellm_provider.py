"""A custom provider of LiteLLM for a server of raw completions: `python litellm_provider.py URL`.

LiteLLM hands a request to the provider, which asks the server for raw text and answers with what toolgram reads in it.
"""

import sys
from collections.abc import Iterator
from typing import Any

import litellm
from litellm.types.utils import GenericStreamingChunk

import toolgram
from toolgram.adapters import CompletionTexts, evidence_in, to_chat_completion

PARAMETERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
TOOLS = [{"type": "function", "function": {"name": "add", "parameters": PARAMETERS}}]
MESSAGES = [{"role": "user", "content": "What is 1 + 2?"}]
FORMAT = toolgram.get_format("hermes")


class Raw(litellm.CustomLLM):  # type: ignore[misc]
    """Asks for raw text. A real prompt is rendered by the model's chat template."""

    def _texts(self, options: dict[str, Any]) -> CompletionTexts:
        prompt = "".join(f"<|im_start|>{each['role']}\n{each['content']}<|im_end|>\n" for each in options["messages"])
        body = {"model": options["model"], "prompt": f"{prompt}<|im_start|>assistant\n", "stream": True}
        response = litellm.module_level_client.post(f"{options['api_base']}/v1/completions", json=body, stream=True)
        return CompletionTexts(response.iter_bytes())

    def completion(self, *_: Any, **options: Any) -> litellm.ModelResponse:
        texts = self._texts(options)
        message = FORMAT.parse(
            "".join(texts), options["optional_params"].get("tools"), finish_reason=evidence_in(texts.finish_reason)
        )
        return litellm.ModelResponse(**to_chat_completion(message, options["model"]))

    def streaming(self, *_: Any, **options: Any) -> Iterator[GenericStreamingChunk]:
        texts, parser = self._texts(options), FORMAT.parser(options["optional_params"].get("tools"))
        called = False
        for text in texts:
            for event in parser.feed(text):
                called = called or event.type == "tool_call_start"
                yield from _chunks(event)
        for event in parser.close(evidence_in(texts.finish_reason)):
            yield from _chunks(event)
        reason = "tool_calls" if called else "stop"
        yield GenericStreamingChunk(text="", is_finished=True, finish_reason=reason, usage=None, index=0, tool_use=None)


def _chunks(event: toolgram.Event) -> Iterator[GenericStreamingChunk]:
    text, call = "", None
    match event:
        case toolgram.Content():
            text = event.text
        case toolgram.ToolCallStart():
            call = _call(event.index, event.id, event.name, "")
        case toolgram.ToolCallDelta():
            call = _call(event.index, None, None, event.arguments)
    if text or call:
        yield GenericStreamingChunk(text=text, is_finished=False, finish_reason="", usage=None, index=0, tool_use=call)


def _call(index: int, id: str | None, name: str | None, arguments: str) -> Any:
    return {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def main(url: str) -> None:
    litellm.custom_provider_map = [{"provider": "raw", "custom_handler": Raw()}]
    request: dict[str, Any] = {"model": "raw/m", "messages": MESSAGES, "tools": TOOLS, "api_base": url}
    whole = litellm.completion(**request)
    streamed = litellm.stream_chunk_builder([*litellm.completion(**request, stream=True)])
    for label, answer in (("whole", whole), ("streamed", streamed)):
        for call in answer.choices[0].message.tool_calls:
            print(f"{label}:", call.function.name, call.function.arguments)


if __name__ == "__main__":
    main(sys.argv[1]) if sys.argv[1:] else sys.exit(__doc__)
