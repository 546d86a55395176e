"""A chat completion of llama-cpp-python with toolgram as its chat handler; any GGUF file with a chat template, no GPU.

    pip install toolgram jinja2 llama-cpp-python
    python examples/llama_cpp_chat.py MODEL.gguf

The call is forced: the handler holds the model to a grammar, so its arguments are valid whatever the model is.
"""

from __future__ import annotations

import json
import sys

from llama_cpp import Llama

from toolgram.integrations.llama_cpp import ChatHandler

PARAMETERS = {
    "type": "object",
    "properties": {"day": {"enum": ["monday", "tuesday"]}, "urgent": {"type": "boolean"}},
    "required": ["day", "urgent"],
    "additionalProperties": False,
}
TOOLS = [{"type": "function", "function": {"name": "book", "description": "Book.", "parameters": PARAMETERS}}]


def main(path: str) -> None:
    llama = Llama(path, n_ctx=2048, verbose=False, chat_handler=ChatHandler(thinking=False))
    asked = {"messages": [{"role": "user", "content": "Book me a day."}], "tools": TOOLS, "tool_choice": "required"}
    for chunk in llama.create_chat_completion(**asked, stream=True, max_tokens=1000, temperature=0.8, seed=1):
        delta = chunk["choices"][0]["delta"]
        if delta.get("tool_calls"):
            print(json.dumps(delta["tool_calls"][0]))
            if delta["tool_calls"][0]["function"]["arguments"].rstrip().endswith("}"):
                break  # a model of random weights would write on
    llama.close()


if __name__ == "__main__":
    main(sys.argv[1]) if sys.argv[1:] else sys.exit(__doc__)
