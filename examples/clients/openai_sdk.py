"""OpenAI's own client, asking a server whose chat completions return raw text: `python openai_sdk.py URL`."""

import sys

import openai

import toolgram

PARAMETERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
TOOLS = [{"type": "function", "function": {"name": "add", "parameters": PARAMETERS}}]
MESSAGES = [{"role": "user", "content": "What is 1 + 2?"}]


def main(url: str) -> None:
    client = toolgram.wrap(openai.OpenAI(base_url=f"{url}/v1", api_key="none"), "hermes")
    answer = client.chat.completions.create(model="m", messages=MESSAGES, tools=TOOLS)
    for call in answer.choices[0].message.tool_calls:
        print("whole:", call.function.name, call.function.arguments)
    with client.chat.completions.stream(model="m", messages=MESSAGES, tools=TOOLS) as stream:
        for event in stream:
            if event.type == "tool_calls.function.arguments.done":
                print("streamed:", event.name, event.arguments)


if __name__ == "__main__":
    main(sys.argv[1]) if sys.argv[1:] else sys.exit(__doc__)
