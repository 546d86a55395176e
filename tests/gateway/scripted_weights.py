"""A model whose weights are a script: a character of the prompt chooses what it says. Its files are safetensors.

Strategy: where a server takes no grammar, random weights never write a call. So the weights of a Llama of one layer are
written by hand. An embedding has a 1 in the dimension of its token; attention looks at all tokens alike and carries on
only which scripts were chosen; the last matrix makes the token that follows in a script the most likely, and among the
tokens that follow in several scripts, that of the chosen one. The tokens are bytes, the markers, and for each script
its own pieces, so that no token of a script has two successors. Sampled greedily, the model says its script, through
all of a server's own code.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.integrations.tokenizers_for_tests import byte_tokens

BEGIN, END = "<|im_start|>", "<|im_end|>"
_ONE_HEAD = 64
_FOLLOWS, _CHOSEN, _CARRIED = 1_000.0, 10.0, 100.0


class Script(NamedTuple):
    """What is said after a prompt that has the character `key` and ends with a line break.

    No piece is twice in a script. With `circles` the last one is said for ever.
    """

    key: str
    pieces: Sequence[str]
    circles: bool = False


# What the models of the tests say, by the character in the prompt.
ARGUMENTS = {"day": "monday", "note": "Grüße, 世界"}
_CALL = ('\n{"na', 'me": "bo', 'ok", "argum', 'ents": {"d', 'ay": "mon', 'day", "note": "Gr', "üße, 世", '界"}}\n')
TEXT, CALL, THOUGHT, ENDLESS, OPENED = "^", "~", "`", "@", "$"
SCRIPTS = (
    Script(TEXT, ("It is ", "sunny in ", "Zürich", ", and warm.")),
    Script(CALL, ("I book", " it.\n", "<tool_call>", *_CALL, "</tool_call>")),
    Script(THOUGHT, ("<think>", "\nMonday", " is free.\n", "</think>", "\n\nLet me", " book.")),
    Script(ENDLESS, ("Once ", "upon ", "a time, ", "again "), circles=True),
    Script(OPENED, ("Tuesday", " is not.\n", "</think>", "\n\nMonday, then.\n", "<tool_call>", *_CALL, "</tool_call>")),
)
MARKERS = ("<think>", "</think>", "<tool_call>", "</tool_call>")
STRING = {"type": "string"}
FUNCTION: dict[str, Any] = {
    "name": "book",
    "description": "d",
    "parameters": {"type": "object", "properties": {"day": STRING, "note": STRING}},
}
TOOLS: Any = [{"type": "function", "function": FUNCTION}]


def write_model(folder: Path, scripts: Sequence[Script], markers: Sequence[str], template: str) -> None:
    """The files of a model. `markers` are tokens of the vocabulary, each of them one piece where a script says it."""
    from tokenizers import AddedToken
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    letters = bytes_to_unicode()

    def spelled(piece: str) -> str:
        return piece if piece in (*markers, END) else "".join(letters[each] for each in piece.encode())

    own = [spelled(piece) for script in scripts for piece in script.pieces if piece not in markers]
    tokenizer = byte_tokens(END, [BEGIN], own)
    tokenizer.add_tokens([AddedToken(text, special=False, normalized=False) for text in markers])
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    ids = tokenizer.get_vocab()
    spoken = {}
    for script in scripts:
        said = ["\n", *script.pieces, script.pieces[-1] if script.circles else END]
        spoken[script.key] = [ids[spelled(piece)] for piece in said]
    _save(folder, len(ids), spoken, {key: ids[spelled(key)] for key in spoken}, ids[END])


def _save(folder: Path, size: int, spoken: Mapping[str, Sequence[int]], keys: Mapping[str, int], end: int) -> None:
    """The weights, and the configuration that goes with them."""
    from safetensors.numpy import save_file

    width = -(-(size + len(spoken)) // _ONE_HEAD) * _ONE_HEAD
    embedding = np.eye(size, width, dtype=np.float32)
    last = np.zeros((size, width), np.float32)
    value = np.zeros((width, width), np.float32)
    for place, (key, tokens) in enumerate(spoken.items()):
        value[size + place, keys[key]] = 1
        for before, after in pairwise(tokens):
            last[after, before] = _FOLLOWS
            last[after, size + place] = _CHOSEN
    nothing = np.zeros((width, width), np.float32)
    one = np.ones(width, np.float32)
    layer = "model.layers.0"
    tensors = {
        "model.embed_tokens.weight": embedding, "model.norm.weight": one, "lm_head.weight": last,
        f"{layer}.input_layernorm.weight": one, f"{layer}.post_attention_layernorm.weight": one,
        f"{layer}.self_attn.q_proj.weight": nothing, f"{layer}.self_attn.k_proj.weight": nothing,
        f"{layer}.self_attn.v_proj.weight": value,
        f"{layer}.self_attn.o_proj.weight": np.eye(width, dtype=np.float32) * _CARRIED,
        **{f"{layer}.mlp.{name}_proj.weight": nothing for name in ("gate", "up", "down")},
    }  # fmt: skip
    made = {name: np.ascontiguousarray(each) for name, each in tensors.items()}
    save_file(made, folder / "model.safetensors", {"format": "pt"})
    heads = {f"num_{kind}_heads": width // _ONE_HEAD for kind in ("attention", "key_value")}
    sizes = {"hidden_size": width, "intermediate_size": width, "num_hidden_layers": 1, "vocab_size": size, **heads}
    more = {"rms_norm_eps": 1e-6, "max_position_embeddings": 8192, "tie_word_embeddings": False, "eos_token_id": end}
    named = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "float32"}
    (folder / "config.json").write_text(json.dumps({**named, **sizes, **more}), encoding="utf-8")
