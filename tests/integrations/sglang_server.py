"""SGLang's own server on a CPU, and a tiny model of random weights for it.

    python -m tests.integrations.sglang_server --model-path FOLDER --port 30000 --tool-call-parser toolgram

All of it is SGLang's: plug-ins, arguments, HTTP server, tokenizer, scheduler, detokenizer, grammar backend. A model of
the GPT-2 architecture runs, because SGLang computes it with PyTorch alone; others need kernels for a GPU. torchvision,
which SGLang imports and a text model does not use, asks for two operators when it is imported, and its wheel brings
them only together with CUDA's libraries: they are declared here, without an implementation.
"""

import importlib.util
import sys
from pathlib import Path
from typing import Any

END = "<|im_end|>"


def declare_operators() -> None:
    """Before torchvision is imported, in each process, once."""
    if _KEPT or importlib.util.find_spec("torchvision") is None or "torchvision" in sys.modules:
        return
    import torch

    library = torch.library.Library("torchvision", "DEF")
    _KEPT.append(library)
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


_KEPT: list[Any] = []  # operators live as long as their library


def write_model(folder: Path, chat_template: str, special: list[str], added: list[str]) -> None:
    """A model that writes noise, with a tokenizer of one token per byte and these markers."""
    import torch
    from tokenizers import AddedToken
    from transformers import GPT2Config, GPT2LMHeadModel

    from tests.integrations.tokenizers_for_tests import byte_tokens

    tokenizer = byte_tokens(END, special)
    tokenizer.add_tokens([AddedToken(text, special=False, normalized=False) for text in added])
    tokenizer.chat_template = chat_template
    tokenizer.save_pretrained(folder)
    torch.manual_seed(7)
    sizes = {"vocab_size": len(tokenizer), "n_embd": 64, "n_layer": 1, "n_head": 4, "n_positions": 4096}
    config = GPT2Config(eos_token_id=tokenizer.eos_token_id, bos_token_id=tokenizer.eos_token_id, **sizes)
    GPT2LMHeadModel(config).to(torch.bfloat16).save_pretrained(folder)


FLAGS = [
    *("--device", "cpu", "--attention-backend", "torch_native", "--sampling-backend", "pytorch"),
    *("--max-total-tokens", "20000", "--disable-overlap-schedule", "--host", "127.0.0.1"),
]

declare_operators()  # also in the processes that SGLang starts, which import this module again

if __name__ == "__main__":
    from sglang.srt.plugins import load_plugins

    load_plugins()
    from sglang.launch_server import run_server
    from sglang.srt.server_args import prepare_server_args

    run_server(prepare_server_args([*FLAGS, *sys.argv[1:]]))
