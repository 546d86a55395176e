"""A model for SGLang that says what a test wrote: all else of the server is SGLang's own. `make test-sglang`.

A user message names a script, `Say script 17 by 3.`; the model finds these words in the prompt, and the logits of each
step prefer the next token of that script. SGLang samples from them, after it has applied the grammar of the request. If
that grammar refuses a token of the script, the model goes on with what ends an answer soon, so that a client hears
something else than the script.

SGLang finds the class by its environment variable `SGLANG_EXTERNAL_MODEL_PACKAGE`.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from sglang.srt.layers.logits_processor import LogitsProcessorOutput
from transformers import AutoTokenizer

ASKED = re.compile(r"Say script (\d+) by \d+\.")
ENDING = ('"', "}", "]", "</think>", "</tool_call>", "<tool_call>", ">", ")", "0", "C", "/")  # what leads to an end


class ScriptedForCausalLM(torch.nn.Module):  # type: ignore[misc]  # no stubs here
    """Has no weights. `scripts.json` in the folder of the model has the token ids of each script."""

    def __init__(self, config: Any, quant_config: Any = None, prefix: str = "") -> None:
        super().__init__()
        self.folder = Path(config._name_or_path)
        self.tokenizer = AutoTokenizer.from_pretrained(self.folder)
        self.size = config.vocab_size
        self.nothing = torch.nn.Parameter(torch.zeros(1), requires_grad=False)  # loaders ask a model for its device
        self.saying: dict[int, tuple[list[int], int]] = {}  # by the slot of a request: its script, where it begins

    def forward(self, input_ids: torch.Tensor, positions: torch.Tensor, forward_batch: Any) -> LogitsProcessorOutput:
        """Return the logits of the next token of each request."""
        slots, ends = forward_batch.req_pool_indices.tolist(), forward_batch.seq_lens.tolist()
        logits = torch.zeros((len(slots), self.size))
        is_prompt, begin = forward_batch.forward_mode.is_extend(), 0
        for row, (slot, end) in enumerate(zip(slots, ends, strict=True)):
            read = forward_batch.extend_seq_lens_cpu[row] if is_prompt else 1
            ids = input_ids[begin : begin + read].tolist()
            begin += read
            if is_prompt:
                self.saying[slot] = (self._script(ids), end)
            script, start = self.saying[slot]
            if end > start and ids != script[end - start - 1 : end - start]:
                script = [*script[: end - start - 1], *ids]  # a token was refused
                self.saying[slot] = (script, start)
            self._prefer(logits[row], script[end - start :], end)
        return LogitsProcessorOutput(next_token_logits=logits)

    def _script(self, prompt: list[int]) -> list[int]:
        found = ASKED.findall(self.tokenizer.decode(prompt))
        if not found:  # the server's own first request
            return []
        scripts = json.loads((self.folder / "scripts.json").read_text(encoding="utf-8"))
        return list(scripts[int(found[-1])])

    def _prefer(self, logits: torch.Tensor, rest: list[int], step: int) -> None:
        """Make the next token of a script the most likely, then the end, then each in turn of what leads to an end."""
        for place, text in enumerate(ENDING):
            logits[self.tokenizer.encode(text, add_special_tokens=False)[:1]] = 20.0 - (place + step) % len(ENDING)
        logits[self.tokenizer.eos_token_id] = 50.0
        if rest:
            logits[rest[0]] = 100.0

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> None:
        """Do nothing: there are none."""


EntryClass = ScriptedForCausalLM
