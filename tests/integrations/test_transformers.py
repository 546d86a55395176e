"""The streamer in transformers' own `generate`, with a tiny model; `make test-vllm` has transformers."""

from importlib import import_module
from typing import Any

import pytest

import toolgram
from tests.integrations.tokenizers_for_tests import byte_tokens

HERE = "transformers is not here: make test-vllm installs it"
pytest.importorskip("tokenizers", reason=HERE)  # of the two others, tests of exports have stand-ins
transformers: Any = pytest.importorskip("transformers", reason=HERE)
torch: Any = pytest.importorskip("torch", reason=HERE)
plugin: Any = import_module("toolgram.integrations.transformers")

OUTPUT = 'Adding ü🎈. <tool_call>\n{"name": "add", "arguments": {"a": "ü"}}\n</tool_call>'
FMT = toolgram.get_format("hermes")
TOKENS = byte_tokens("<|im_end|>", ["<|im_start|>"])


def put_all(streamer: Any, prompt: list[int], output: list[int]) -> None:
    streamer.put(torch.tensor([prompt]))
    for token in output:
        streamer.put(torch.tensor([token]))
    streamer.end()


def test_events_come_while_tokens_come() -> None:
    seen: list[Any] = []
    prompt = TOKENS("<|im_start|>assistant\n")["input_ids"]
    output = TOKENS(OUTPUT)["input_ids"]
    streamer = plugin.EventStreamer(TOKENS, FMT, seen.append)
    put_all(streamer, prompt, output)
    message = streamer.parser.message
    assert "".join(event.source for event in seen) == OUTPUT
    assert message.content == "Adding ü🎈."
    assert [(call.name, call.arguments) for call in message.tool_calls] == [("add", '{"a": "ü"}')]
    assert len(seen) > 5
    whole = plugin.parse_tokens(TOKENS, FMT, [*prompt, *output], len(prompt))
    assert (whole.content, [call.arguments for call in whole.tool_calls]) == (message.content, ['{"a": "ü"}'])


def test_a_thought_that_the_prompt_opened() -> None:
    prompt = TOKENS("<|im_start|>assistant\n<think>\n")["input_ids"]
    output = TOKENS("so\n</think>\n\nyes")["input_ids"]
    streamer = plugin.EventStreamer(TOKENS, toolgram.get_format("qwen3_coder"), lambda event: None)
    put_all(streamer, prompt, output)
    assert (streamer.parser.message.reasoning, streamer.parser.message.content) == ("so", "yes")


def test_in_generate() -> None:
    seen: list[Any] = []
    sizes: Any = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.LlamaConfig(vocab_size=len(TOKENS), eos_token_id=TOKENS.eos_token_id, **sizes)
    model = transformers.LlamaForCausalLM(config)
    prompt = TOKENS("<|im_start|>assistant\n", return_tensors="pt")
    streamer = plugin.EventStreamer(TOKENS, FMT, seen.append)
    made = model.generate(
        input_ids=prompt["input_ids"], attention_mask=prompt["attention_mask"], max_new_tokens=40, do_sample=True,
        streamer=streamer, pad_token_id=TOKENS.eos_token_id,
    )  # fmt: skip
    said = TOKENS.decode(made[0][prompt["input_ids"].shape[1] :], skip_special_tokens=False)
    assert "".join(event.source for event in seen) == said
