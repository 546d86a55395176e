"""Events while `generate` of transformers runs; needs transformers and torch, and neither a model's weights nor a GPU.

    pip install toolgram transformers torch
    python examples/transformers_streamer.py

The model is a tiny one of random weights that is made to write a text, token by token, through transformers' own
`generate`. With a real one, only the lines in `main` matter.
"""

from __future__ import annotations

from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, LogitsProcessor, PreTrainedTokenizerFast

import toolgram
from toolgram.integrations.transformers import EventStreamer

TEXT = '<think>Simple.</think>Adding. <tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>\n"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}'
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tiny() -> tuple[Any, Any]:
    """A tokenizer of one token per byte, and a model of random weights."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(models.BPE({letter: number for number, letter in enumerate(letters)}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<|im_end|>")
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    tokenizer.chat_template = TEMPLATE
    end = tokenizer.eos_token_id
    config = GPT2Config(
        vocab_size=len(tokenizer), n_embd=32, n_layer=1, n_head=2, n_positions=512, eos_token_id=end, bos_token_id=end
    )
    return tokenizer, GPT2LMHeadModel(config)


class Written(LogitsProcessor):  # type: ignore[misc]
    """Leaves the model no choice but the next token of a text."""

    def __init__(self, tokens: list[int], prompt: int) -> None:
        self._tokens, self._prompt = tokens, prompt

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        held = torch.full_like(scores, float("-inf"))
        held[:, self._tokens[input_ids.shape[1] - self._prompt]] = 0.0
        return held


def main() -> None:
    tokenizer, model = tiny()
    messages = [{"role": "user", "content": "1 + 2?"}]
    inputs = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    written = Written([*tokenizer(TEXT)["input_ids"], tokenizer.eos_token_id], inputs["input_ids"].shape[1])

    streamer = EventStreamer(tokenizer, toolgram.get_format("hermes"), print)
    model.generate(**inputs, streamer=streamer, max_new_tokens=300, logits_processor=[written])
    print(streamer.parser.message)


if __name__ == "__main__":
    main()
