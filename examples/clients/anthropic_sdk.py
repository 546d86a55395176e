"""Anthropic's own client, asking a server whose messages hold raw text: `python anthropic_sdk.py URL`."""

import json
import sys

import anthropic

import toolgram

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
REQUEST = {
    "model": "m",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "What is 1 + 2?"}],
    "tools": [{"name": "add", "input_schema": SCHEMA}],
}


def main(url: str) -> None:
    client = toolgram.wrap(anthropic.Anthropic(base_url=url, api_key="none"), "hermes")
    with client.messages.stream(**REQUEST) as stream:
        streamed = stream.get_final_message()
    for label, message in (("whole", client.messages.create(**REQUEST)), ("streamed", streamed)):
        for block in message.content:
            if block.type == "tool_use":
                print(f"{label}:", block.name, json.dumps(block.input))


if __name__ == "__main__":
    main(sys.argv[1]) if sys.argv[1:] else sys.exit(__doc__)
