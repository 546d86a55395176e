"""Exports compiled by `Export.compile`, and the logits processor: in the engines, and in transformers where it is."""

import sys
from importlib.metadata import distributions
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest

import toolgram
from tests.export.engines import END, Engines
from tests.export.measuring import TOOLS, WRITTEN, tool
from tests.integrations.tokenizers_for_tests import byte_tokens
from toolgram.errors import ToolgramError
from toolgram.export import running
from toolgram.export.running import LogitsProcessor

np = pytest.importorskip("numpy", reason="the engines are not here: make test installs them")
ENGINES = tuple(target for target in (*WRITTEN, "xgrammar") if target != "gbnf")
CALL = '<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>'


def compiled_for(target: str) -> tuple[running.Compiled, int]:
    """The export of a request that demands a call, over bytes, and the token that ends an output."""
    for package in ("llguidance", "xgrammar", "tvm_ffi"):
        pytest.importorskip(package, reason="the engines are not here: make test installs them")
    engines = Engines()
    made = toolgram.get_format("hermes").export(target, TOOLS, "required", prefix="")
    tokenizer = engines.llguidance.tokenizer if target == "llguidance" else engines.xgrammar.info
    return made.compile(tokenizer), engines.vocab.eos_token_id


@pytest.mark.parametrize("target", ENGINES)
def test_a_matcher_takes_what_is_allowed(target: str) -> None:
    compiled, end = compiled_for(target)
    matcher = compiled.begin()
    for token in [*CALL.encode(), end]:
        assert np.unpackbits(np.frombuffer(matcher.allowed(), "uint8"), bitorder="little")[token]
        assert matcher.take(token)
    assert matcher.allowed()  # after the end, an engine for a batch is still asked
    assert compiled.accepts(CALL.encode())
    assert not compiled.accepts(CALL.replace("time", "tome").encode())
    assert not compiled.begin().take(end)


class Scores:
    """As much of a tensor as a processor needs."""

    def __init__(self, rows: Any) -> None:
        self.rows = np.asarray(rows)
        self.shape = self.rows.shape

    def __add__(self, other: Self) -> Self:
        return self.new_tensor(self.rows + other.rows)

    def new_tensor(self, data: Any) -> Self:
        """A tensor of the same kind."""
        return type(self)(data)

    def tolist(self) -> Any:
        """The rows as lists."""
        return self.rows.tolist()


def test_a_tokenizer_of_transformers_is_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llguidance", reason="the engines are not here: make test installs them")
    monkeypatch.setitem(sys.modules, "llguidance.hf", SimpleNamespace(from_tokenizer=lambda given: given.engine))
    made = toolgram.get_format("hermes").export("llguidance", TOOLS, "required", prefix="")
    assert made.compile(SimpleNamespace(engine=Engines().llguidance.tokenizer)).accepts(CALL.encode())


@pytest.mark.parametrize("target", ENGINES)
def test_a_processor_masks_each_row_of_a_batch(target: str) -> None:
    compiled, end = compiled_for(target)
    processor = LogitsProcessor(compiled)
    prompt, call = [1, 2, 3], [*CALL.encode(), end]
    for at in range(len(call)):
        rows = [[*prompt, *call[:at]], [*prompt, *call[: at // 2], *[0] * (at - at // 2)]][: 1 if at > 8 else 2]
        scores = processor(Scores(rows), Scores(np.zeros((len(rows), end + 1)))).rows
        assert scores[0][call[at]] == 0
        assert scores[0][ord("?")] == (-np.inf if at < 40 else scores[0][ord("?")])
    swapped = processor(Scores([[*prompt, *b"<tool"]]), Scores(np.zeros((1, end + 1)))).rows  # as with beams
    assert np.flatnonzero(swapped[0] == 0).tolist() == [ord("_")]


def test_what_cannot_run_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    fmt = toolgram.get_format("hermes")
    with pytest.raises(ToolgramError, match=r"gbnf is read by llama\.cpp"):
        fmt.export("gbnf", TOOLS).compile(None)

    def missing(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(running, "import_module", missing)
    for target, engine in (("llguidance", "llguidance"), ("ebnf", "xgrammar")):
        with pytest.raises(ToolgramError, match=f"{engine} is needed to run this export"):
            fmt.export(target, TOOLS).compile(None)


@pytest.mark.parametrize("target", ["llguidance", "structural_tag"])
def test_the_recipe_for_transformers(target: str, tmp_path: Path) -> None:
    """The lines of the guide, with a tiny model of random weights (`make test-export-recipes`)."""
    if not {"torch", "transformers"} <= {each.name for each in distributions()}:
        pytest.skip("make test-export-recipes installs transformers")
    begin = "```python\n# no-run: make test-export-recipes runs it\n"
    guide = Path(__file__).parents[2] / "docs" / "export.md"
    recipe = guide.read_text(encoding="utf-8").partition(begin)[2].partition("```")[0]
    assert 5 < len(recipe.splitlines()) <= 15
    recipe = recipe.replace('"Qwen/Qwen3-0.6B"', repr(saved_model(tmp_path))).replace('"llguidance"', repr(target))
    told: dict[str, Any] = {"get_weather": tool("get_weather", {"unit": {"enum": ["C", "F"]}}, ["unit"])}
    exec(compile(recipe, "docs/export.md", "exec"), told)
    message = told["message"]
    assert [call.name for call in message.tool_calls] == ["get_weather"]
    assert message.tool_calls[0].status == "complete"


# --- a model of random weights with a byte-level tokenizer ----------------------------------------------------------

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
