"""vLLM's own serving layer with toolgram as its parser: no GPU, no model, no download.

What a server would stream to a client is printed delta by delta, for toolgram and for vLLM's own parser of the same
format. The model is a text; what makes a client's deltas of its tokens is vLLM's. Runs with vLLM 0.31 to 0.33, which
differ in what they tell a parser.

    make test-vllm                                     # builds .venv-vllm, once
    .venv-vllm/bin/python examples/vllm_offline.py
"""

from __future__ import annotations

import os
import sys
from inspect import signature
from typing import Any

os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")

ANSWER = (
    "<think>The user wants the weather.</think>A call starts with <tool_call>, like this one:\n"
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Zürich", "days": 3}}\n</tool_call>\n'
    "I will tell you as soon as I know."
)
QUOTED = ANSWER.index("<tool_call>")  # the first marker is talked about: ordinary tokens, not the special one
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
        },
    }
]
TOKENS_PER_DELTA = 12
MARKERS = ("<think>", "</think>", "<tool_call>", "</tool_call>")


class Letters:
    """A minimal tokenizer: each marker is a token, and so is every other character."""

    is_fast = False
    chat_template = None
    all_special_tokens = ("<|im_end|>",)
    all_special_ids = (0,)
    eos_token, eos_token_id = "<|im_end|>", 0

    def __init__(self) -> None:
        self.texts = ["<|im_end|>", *MARKERS, *map(chr, range(0x500))]

    def __len__(self) -> int:
        return len(self.texts)

    def get_vocab(self) -> dict[str, int]:
        """All tokens."""
        return {text: number for number, text in enumerate(self.texts)}

    def get_added_vocab(self) -> dict[str, int]:
        """The markers."""
        return {text: number for number, text in enumerate(self.texts[: len(MARKERS) + 1])}

    def spell(self, text: str) -> list[int]:
        """Every character as its token."""
        return [self.texts.index(letter) for letter in text]

    def encode(self, text: str, **options: Any) -> list[int]:
        """Markers as their tokens."""
        for marker in MARKERS:
            before, found, after = text.partition(marker)
            if found:
                return [*self.encode(before), self.texts.index(marker), *self.encode(after)]
        return self.spell(text)

    def decode(self, ids: list[int], skip_special_tokens: bool = False, **options: Any) -> str:
        """The inverse of both."""
        return "".join(self.texts[number] for number in ids if number or not skip_special_tokens)


def serve(tools: str, reasoning: str) -> None:
    """Stream the answer as `vllm serve --tool-call-parser tools --reasoning-parser reasoning` would."""
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.parser import ParserManager
    from vllm.parser.abstract_parser import Parser

    tokenizer = Letters()
    quoted = len("<tool_call>")
    ids = tokenizer.encode(ANSWER[:QUOTED]) + tokenizer.spell(ANSWER[QUOTED : QUOTED + quoted])
    ids += tokenizer.encode(ANSWER[QUOTED + quoted :])
    prompt = tokenizer.encode("What is the weather in Zurich?<|im_end|>\nassistant\n")

    parser_cls = ParserManager.get_parser(
        tool_parser_name=tools,
        reasoning_parser_name=reasoning,
        enable_auto_tools=True,
        model_name="model",
        **known_to(ParserManager.get_parser, tokenizer=tokenizer),
    )
    request = ChatCompletionRequest(
        model="model", messages=[{"role": "user", "content": "?"}], tools=TOOLS, tool_choice="auto", stream=True
    )
    options = {"chat_template_kwargs": {}, **known_to(Parser.__init__, model_config=None)}
    adjusting = parser_cls(tokenizer, request.tools, **options)
    if hasattr(adjusting, "set_prompt_token_ids"):
        adjusting.set_prompt_token_ids(prompt)
    request = adjusting.adjust_request(request=request)
    parser = parser_cls(tokenizer, request.tools, **options)

    print(f"\n--tool-call-parser {tools} --reasoning-parser {reasoning}\n")
    for start in range(0, len(ids), TOKENS_PER_DELTA):
        some = ids[start : start + TOKENS_PER_DELTA]
        last = start + TOKENS_PER_DELTA >= len(ids)
        text = tokenizer.decode(some)
        delta = parser.parse_delta(text, some, request, prompt, finished=last)
        print(f"  {text!r:34} {delta.model_dump_json(exclude_unset=True) if delta is not None else ''}")


def known_to(function: Any, **options: Any) -> dict[str, Any]:
    """Those of these options that the function of this version of vLLM has."""
    return {name: value for name, value in options.items() if name in signature(function).parameters}


def main() -> None:
    """toolgram, and vLLM's own."""
    try:
        from vllm.plugins import load_general_plugins
    except ModuleNotFoundError:
        sys.exit("vLLM is not installed here: `make test-vllm` builds an environment, .venv-vllm, that has it")
    load_general_plugins()  # as vLLM does in each of its processes: toolgram registers its parsers
    print(f"The answer:\n\n{ANSWER}")
    serve("toolgram_hermes", "toolgram_hermes")
    serve("hermes", "qwen3")


if __name__ == "__main__":
    main()
