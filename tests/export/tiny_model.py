"""A language model of random weights with a byte-level tokenizer, saved as transformers saves one."""

from __future__ import annotations

from pathlib import Path

from tests.export.engines import END
from tests.integrations.tokenizers_for_tests import byte_tokens

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def saved_model(folder: Path) -> str:
    """Save a model and its tokenizer in a folder, and return its path."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = byte_tokens(END)
    tokenizer.pad_token, tokenizer.chat_template = END, TEMPLATE
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=4096, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    return str(folder)
