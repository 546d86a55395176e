"""A model of llama.cpp's for tests: a real vocabulary, random weights, nine megabytes, half a second to write.

    python -m tests.gateway.tiny_model PATH

Strategy: what a model of random weights writes is noise, so whatever is valid in its answers comes from the grammar
that it was held to. The vocabulary is Mistral's, which ships inside `mistral-common`; the special tokens of the tested
formats come after it as tokens of their own.
"""

import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

_VOCABULARY = "data/mistral_instruct_tokenizer_240323.model.v3"
_NORMAL, _CONTROL = 1, 3
_WIDTH, _HIDDEN = 64, 128

# A conversation as plain lines, and a generation prompt that opens nothing: it goes with every format.
TEMPLATE = (
    "{% if tools %}Functions: {{ tools | tojson }}\n{% endif %}"
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


def real_pieces() -> list[tuple[str, float, int]]:
    """Text, score and type of each piece of the vocabulary: the first field of a SentencePiece model, repeated."""
    found = find_spec("mistral_common")
    assert found is not None
    assert found.origin is not None
    data = (Path(found.origin).parent / _VOCABULARY).read_bytes()
    pieces = []
    for number, value in _fields(data):
        if number == 1 and isinstance(value, bytes):
            said: dict[int, Any] = dict(_fields(value))
            score = np.frombuffer(said[2], "<f4")[0] if 2 in said else 0.0
            pieces.append((said[1].decode(), float(score), int(said.get(3, _NORMAL))))
    return pieces


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protobuf message: numbers, and the bytes of everything else."""
    at = 0
    while at < len(data):
        tag, at = _number(data, at)
        if tag & 7 == 0:
            value, at = _number(data, at)
            yield tag >> 3, value
            continue
        size, at = (8, at) if tag & 7 == 1 else (4, at) if tag & 7 == 5 else _number(data, at)
        yield tag >> 3, data[at : at + size]
        at += size


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


def write_model(path: Path, special: Sequence[str], seed: int = 0, template: str = TEMPLATE) -> None:
    """Write the model; `special` are further special tokens."""
    import gguf

    pieces = real_pieces()
    known = {text for text, *_ in pieces}
    kinds = [
        _CONTROL if text.startswith("[") and text.endswith("]") and len(text) > 2 else kind for text, _, kind in pieces
    ]
    more = [text for text in special if text not in known]
    size = len(pieces) + len(more)
    rng = np.random.default_rng(seed)

    def tensor(*shape: int) -> Any:
        return (rng.standard_normal(shape) * 0.2).astype(np.float16)

    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(8192)
    writer.add_embedding_length(_WIDTH)
    writer.add_feed_forward_length(_HIDDEN)
    writer.add_block_count(1)
    writer.add_head_count(4)
    writer.add_rope_dimension_count(_WIDTH // 4)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([*(text.encode() for text, *_ in pieces), *(text.encode() for text in more)])
    writer.add_token_scores([*(score for _, score, _ in pieces), *(0.0 for _ in more)])
    writer.add_token_types([*kinds, *(_CONTROL for _ in more)])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(template)
    writer.add_tensor("token_embd.weight", tensor(size, _WIDTH))
    writer.add_tensor("output.weight", tensor(size, _WIDTH))
    writer.add_tensor("output_norm.weight", np.ones(_WIDTH, np.float32))
    for name in ("attn_norm", "ffn_norm"):
        writer.add_tensor(f"blk.0.{name}.weight", np.ones(_WIDTH, np.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        writer.add_tensor(f"blk.0.{name}.weight", tensor(_WIDTH, _WIDTH))
    writer.add_tensor("blk.0.ffn_gate.weight", tensor(_HIDDEN, _WIDTH))
    writer.add_tensor("blk.0.ffn_up.weight", tensor(_HIDDEN, _WIDTH))
    writer.add_tensor("blk.0.ffn_down.weight", tensor(_WIDTH, _HIDDEN))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def serve(path: str, port: int) -> None:
    """llama.cpp's own server, until the process is ended."""
    import signal

    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.n_ctx = 8192
    parameters.n_parallel = 2
    parameters.warmup = parameters.ui = False
    parameters.endpoint_props = True
    for each in (parameters.cpuparams, parameters.cpuparams_batch):
        each.n_threads = 1  # two wait for one another on a busy machine
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    signal.pause()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
