"""A LangChain chain whose last part reads a model's raw text; needs langchain-core, and neither a model nor a GPU.

    pip install toolgram langchain-core
    python examples/langchain_chain.py

The model is a text. What is printed is what the chain streams, and the message that its chunks add up to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_core.runnables import RunnableGenerator

import toolgram
from toolgram.integrations.langchain import output_parser

TEXT = 'Adding. <tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>\n'
CUT_OFF = '<tool_call>\n{"name": "add", "arguments": {"a": 1'


def model(prompts: Iterator[str]) -> Iterator[str]:
    for prompt in prompts:
        text = CUT_OFF if "cut" in prompt else TEXT
        yield from (text[at : at + 6] for at in range(0, len(text), 6))


def main() -> None:
    chain: Any = RunnableGenerator(model) | output_parser(toolgram.get_format("hermes"))
    whole = None
    for chunk in chain.stream("1 + 2?"):
        print("chunk  ", repr(chunk.content), chunk.tool_call_chunks)
        whole = chunk if whole is None else whole + chunk
    assert whole is not None
    print("calls  ", whole.tool_calls)
    print("cut off", chain.invoke("cut").invalid_tool_calls)


if __name__ == "__main__":
    main()
