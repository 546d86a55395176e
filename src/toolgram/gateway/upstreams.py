"""The servers that the gateway can use: what each is sent, and how its stream is read.

Strategy: one row per kind of server. It writes the body of a request for raw text and reads one message of the stream.
Everything else (connections, time, errors) is in `engine`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from toolgram.adapters.usage import Usage
from toolgram.export.expressions import Export
from toolgram.gateway.asking import Ask
from toolgram.gateway.errors import Refusal
from toolgram.gateway.model import Model, Prompt
from toolgram.limits import MAX_COUNT, MOST_ANSWER_TOKENS


class Piece(NamedTuple):
    """What one message of a stream says: text, and at the end why it ended."""

    text: str = ""
    reason: str | None = None  # in the words of chat completions
    stopped_by: str | None = None  # the text at which it was stopped
    usage: Usage | None = None
    is_whole: bool = False  # `text` is all text so far


Body: TypeAlias = Callable[[Model, Prompt, Ask, Export | None], dict[str, Any]]
Read: TypeAlias = Callable[[Mapping[str, Any]], Piece]


@dataclass(frozen=True)
class Upstream:
    """A kind of server. `target` is the export that it takes."""

    path: str
    body: Body
    read: Read
    target: str | None = None
    count: tuple[str, str] | None = None  # the path that counts tokens, and the field of the text
    lines: bool = False  # its stream is lines of JSON, and no server-sent events


def _sampling(ask: Ask, *names: str) -> dict[str, Any]:
    return {name: ask.sampling[name] for name in names if name in ask.sampling}


_MOST_STOPS = 4  # that OpenAI's API takes, and vLLM's
_COMMON = ("temperature", "top_p", "top_k", "min_p", "seed", "presence_penalty", "frequency_penalty")


def _stops(model: Model, ask: Ask) -> list[str]:
    return list(dict.fromkeys([*model.stop, *ask.stop]))


def _usage(said: Any, prompt: str, output: str, cached: Any = None) -> Usage:
    return Usage(_number(said.get(prompt)), _number(said.get(output)), _number(cached))


def _without_bos(model: Model, prompt: Prompt) -> str:
    """Return the prompt for a server that puts the token for the beginning before every prompt itself."""
    return prompt.text.removeprefix(model.bos_token) if model.bos_token else prompt.text


def _reason(said: Any) -> str | None:
    if said in (None, ""):
        return None
    return "stop" if said in ("eos", "eos_token") else str(said)


def _number(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value <= MAX_COUNT else 0


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


# --- llama.cpp -------------------------------------------------------------------------------------------------------


def _llama_body(model: Model, prompt: Prompt, ask: Ask, grammar: Export | None) -> dict[str, Any]:
    body: dict[str, Any] = {
        "prompt": _without_bos(model, prompt),
        "n_predict": ask.limit or -1,
        "stream": True,
        "cache_prompt": True,
        "stop": _stops(model, ask),
        "preserved_tokens": list(model.preserved),
        **_sampling(ask, *_COMMON, "logit_bias"),
    }
    if "repetition_penalty" in ask.sampling:
        body["repeat_penalty"] = ask.sampling["repetition_penalty"]
    if "logit_bias" in body:
        body["logit_bias"] = [
            [int(key) if key.isdecimal() else key, value] for key, value in body["logit_bias"].items()
        ]
    if grammar is not None:
        body["grammar"] = grammar.text
    return body


def _llama_read(said: Mapping[str, Any]) -> Piece:
    if not said.get("stop"):
        return Piece(_text(said.get("content")))
    kind = said.get("stop_type")
    usage, word = _usage(said, "tokens_evaluated", "tokens_predicted"), _text(said.get("stopping_word")) or None
    return Piece(_text(said.get("content")), "length" if kind == "limit" else "stop", word, usage)


# --- completions as OpenAI has them ----------------------------------------------------------------------------------


def _completions_body(model: Model, prompt: Prompt, ask: Ask, grammar: Export | None) -> dict[str, Any]:
    return {
        **({"model": model.served} if model.served else {}),
        "prompt": prompt.text,
        "max_tokens": ask.limit or MOST_ANSWER_TOKENS,
        "stream": True,
        "stream_options": {"include_usage": True},
        "stop": _stops(model, ask)[:_MOST_STOPS],  # an answer is cut here as well
        **_sampling(ask, *_COMMON, "repetition_penalty", "logit_bias"),
    }


def _vllm_body(model: Model, prompt: Prompt, ask: Ask, grammar: Export | None) -> dict[str, Any]:
    body = _completions_body(model, prompt, ask, grammar)
    body |= {"skip_special_tokens": False, "spaces_between_special_tokens": False, "add_special_tokens": False}
    if grammar is not None:
        body["structured_outputs"] = {"structural_tag": grammar.text}
    return body


def _completions_read(said: Mapping[str, Any]) -> Piece:
    usage = said.get("usage")
    counted = None
    if isinstance(usage, Mapping):
        details = usage.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, Mapping) else 0
        counted = _usage(usage, "prompt_tokens", "completion_tokens", cached)
    choices = said.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else {}
    if not isinstance(choice, Mapping):
        return Piece(usage=counted)
    stopped = choice.get("stop_reason")
    word = stopped if isinstance(stopped, str) else None
    return Piece(_text(choice.get("text")), _reason(choice.get("finish_reason")), word, counted)


def _mlx_body(model: Model, prompt: Prompt, ask: Ask, grammar: Export | None) -> dict[str, Any]:
    """Return the body for MLX-LM, whose name for the model it was started with never changes.

    It compares stop strings as tokens, and continues if the model spells one differently. So it gets none of the
    request, and the gateway cuts.
    """
    body = _completions_body(model, prompt, ask, grammar)
    return body | {"model": model.served or "default_model", "stop": list(model.stop)}


# --- Ollama ----------------------------------------------------------------------------------------------------------


def _ollama_body(model: Model, prompt: Prompt, ask: Ask, grammar: Export | None) -> dict[str, Any]:
    options = _sampling(ask, *_COMMON)
    options |= {"stop": _stops(model, ask), "num_predict": ask.limit or -1}
    if "repetition_penalty" in ask.sampling:
        options["repeat_penalty"] = ask.sampling["repetition_penalty"]
    text = _without_bos(model, prompt)
    return {"model": model.served or model.name, "prompt": text, "raw": True, "stream": True, "options": options}


def _ollama_read(said: Mapping[str, Any]) -> Piece:
    if not said.get("done"):
        return Piece(_text(said.get("response")))
    usage = _usage(said, "prompt_eval_count", "eval_count")
    return Piece(_text(said.get("response")), _reason(said.get("done_reason")) or "stop", None, usage)


# --- SGLang ----------------------------------------------------------------------------------------------------------


def _sglang_body(model: Model, prompt: Prompt, ask: Ask, grammar: Export | None) -> dict[str, Any]:
    parameters = _sampling(
        ask, "temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty"
    )
    parameters |= {
        "max_new_tokens": ask.limit or MOST_ANSWER_TOKENS,
        "stop": _stops(model, ask),
        "skip_special_tokens": False,
        "spaces_between_special_tokens": False,
    }
    if "seed" in ask.sampling:
        parameters["sampling_seed"] = ask.sampling["seed"]
    if grammar is not None:
        parameters["structural_tag"] = grammar.text
    return {"text": _without_bos(model, prompt), "sampling_params": parameters, "stream": True}


def _sglang_read(said: Mapping[str, Any]) -> Piece:
    about = said.get("meta_info")
    about = about if isinstance(about, Mapping) else {}
    finish = about.get("finish_reason")
    if isinstance(finish, Mapping) and finish.get("type") == "abort":
        raise Refusal(f"the server gave up: {str(finish.get('message'))[:500]}", 502)
    reason, word, usage = None, None, None
    if isinstance(finish, Mapping):
        reason, word = _reason(finish.get("type")), _text(finish.get("matched")) or None
    if reason is not None:
        usage = _usage(about, "prompt_tokens", "completion_tokens", about.get("cached_tokens"))
    return Piece(_text(said.get("text")), reason, word, usage, is_whole=True)


UPSTREAMS: Mapping[str, Upstream] = {
    "llama.cpp": Upstream("/completion", _llama_body, _llama_read, "gbnf", ("/tokenize", "content")),
    "vllm": Upstream("/v1/completions", _vllm_body, _completions_read, "structural_tag", ("/tokenize", "prompt")),
    "sglang": Upstream("/generate", _sglang_body, _sglang_read, "structural_tag"),
    "ollama": Upstream("/api/generate", _ollama_body, _ollama_read, lines=True),
    "mlx": Upstream("/v1/completions", _mlx_body, _completions_read),
    "openai": Upstream("/v1/completions", _completions_body, _completions_read),
}
