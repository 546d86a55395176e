"""SGLang's servers for the requests of `http_matrix.py`: the same turns, said by `sglang_models`, heard in chat.

A server of SGLang is a process with one model, and starts in half a minute. So there are few models, each of another
kind of notation, and one server at a time.
"""

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests.gateway.servers import started
from tests.integrations import sglang_server  # declares what torchvision asks for when it is imported
from tests.integrations.http_clients import CHAT, UNLIMITED
from tests.integrations.http_fleet import OURS, THEIRS, hear_all
from tests.integrations.http_fleet import make_model as make_folder
from tests.integrations.http_matrix import Model, Trial, wrong
from tests.integrations.http_shapes import MERGES, shapes
from tests.integrations.vllm_heard import Heard

# SGLang's own parsers of these models: of calls, of reasoning.
PARSERS = {
    "Qwen3": ("qwen25", "qwen3"), "Qwen3-Coder": ("qwen3_coder", None), "GLM-4.6": ("glm45", "glm45"),
    "DeepSeek-V3.1": ("deepseekv31", "deepseek-v3"), "Kimi-K2-Thinking": ("kimi_k2", "kimi_k2"),
    "Llama-3.1": ("llama3", None),
}  # fmt: skip
FLAGS = (
    "--load-format", "dummy", "--mem-fraction-static", "0.5", "--disable-radix-cache", "--chunked-prefill-size", "-1",
    "--context-length", "60000",
)  # fmt: skip
PACES = (None, 1)
LONG = 2_000  # tokens of a script; a longer one takes minutes on a CPU


def make_model(name: str, scratch: Path) -> tuple[Model, list[Trial]]:
    """Return a model whose scripts SGLang finds, and what is asked of it."""
    (shape,) = shapes([name])
    model = make_folder(replace(shape, merges=MERGES), scratch / name)
    model.paces = model.few = PACES
    trials = [_limited(each) for each in model.trials() if _fits(each)]
    model.write()
    for file, fields in (
        ("config.json", {"architectures": ["ScriptedForCausalLM"]}),
        ("generation_config.json", {"top_k": 1}),  # to sample from all tokens takes long on a CPU
    ):
        path = model.folder / file
        path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | fields), encoding="utf-8")
    return model, trials


def _fits(trial: Trial) -> bool:
    """Whether SGLang's server has the API, and no limit of its own decides."""
    ask = trial.ask
    return ask.api == CHAT and ask.pace in PACES and ask.limit != UNLIMITED and len(trial.script) < LONG


def _limited(trial: Trial) -> Trial:
    """The same with a limit: a grammar that refuses a script may lead the model where no answer ends by itself."""
    return replace(trial, ask=replace(trial.ask, limit=trial.ask.limit or len(trial.script) + 100))


@contextmanager
def serving(model: Model, way: str, scratch: Path) -> Iterator[int]:
    """The port of a server with toolgram's parsers or SGLang's own."""
    tools, reasoning = (model.shape.parser,) * 2 if way == OURS else PARSERS[model.shape.name]
    command = ["-m", sglang_server.__name__, "--model-path", str(model.folder), "--port", "{port}", *FLAGS]
    command += ["--served-model-name", "model", "--tool-call-parser", tools]
    command += ["--reasoning-parser", reasoning] if reasoning else []
    models = {"SGLANG_EXTERNAL_MODEL_PACKAGE": "tests.integrations.sglang_models"}
    with started(command, scratch / f"{way} {model.shape.name}.log", 400, **models) as address:
        yield int(address.rpartition(":")[2])


def try_all(port: int, trials: Sequence[Trial]) -> list[tuple[Trial, Heard]]:
    return asyncio.run(hear_all(port, trials, 300))


def wrong_in_sglang(heard: Heard, trial: Trial, specials: Sequence[str]) -> str:
    """Return what is wrong, "" for nothing. A grammar that refuses a script leads the model to another answer."""
    if trial.rule == "first" and not heard.error:
        return "" if len(heard.calls) == 1 or heard.finish_reason == "length" else "calls are not enforced"
    if trial.rule == "refused" and not heard.error:
        if trial.ask.form:
            return "" if "sunny" not in (heard.content or "") else "another form"
        return "" if heard.calls or heard.finish_reason == "length" else "calls are not enforced"
    if trial.kind == "named" and trial.calls:  # SGLang's finish reason of a call that the request has named
        trial = replace(trial, finish="tool_calls")
    found = wrong(heard, trial, specials)
    held = trial.ask.form or trial.kind in ("required", "named")  # then only a grammar leads to another answer
    return "a right answer is refused" if found and held and not heard.error else found


__all__ = ["OURS", "PARSERS", "THEIRS", "make_model", "serving", "try_all", "wrong_in_sglang"]
