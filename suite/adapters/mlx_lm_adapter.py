"""Answer requests with the tool parsers of mlx-lm, in the way of its server: the text between two markers is a call.

The parsers are loaded from their files, as the package itself imports MLX. They read whole calls: all deltas are
one text here; a thought is what is between the tags that mlx-lm knows.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.metadata import distribution
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

from protocol import Answer, Skip, answer, serve

PARSERS = {
    "functiongemma": "function_gemma", "gemma4": "gemma4", "glm45": "glm47", "glm47": "glm47", "hermes": "json_tools",
    "kimi_k2": "kimi_k2", "kimi_k3": "kimi_k3", "lfm2": "pythonic", "longcat": "longcat", "minicpm5": "minicpm5",
    "minimax_m2": "minimax_m2", "mistral_v11": "mistral", "muse": "muse_spark", "poolside_v1": "laguna",
    "qwen3_coder": "qwen3_coder",
}  # fmt: skip
THOUGHTS = {
    "gemma4": ("<|channel>thought", "<channel|>"), "kimi_k3": ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    "longcat": ("<longcat_think>", "</longcat_think>"),
}  # fmt: skip


@lru_cache(maxsize=64)
def parser(name: str) -> Any:
    """Return the module of a parser."""
    path = str(distribution("mlx-lm").locate_file(f"mlx_lm/tool_parsers/{name}.py"))
    spec = spec_from_file_location(f"mlx_tool_parser_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        raise Skip(f"the parser cannot be loaded without MLX: {error}") from error
    return module


def read(asked: dict[str, Any]) -> Answer:
    """Return the message of a request."""
    family = asked["family"]
    if family not in PARSERS:
        raise Skip("mlx-lm has no parser of calls for this family")
    module, text = parser(PARSERS[family]), "".join(delta["text"] for delta in asked["deltas"])
    opening, closing = THOUGHTS.get(family, ("<think>", "</think>"))
    thought, content, calls = "", "", []
    if (asked.get("prompt") or "").rstrip().endswith(opening):
        thought, _, text = text.partition(closing)
    elif text.lstrip().startswith(opening):
        thought, _, text = text.lstrip().removeprefix(opening).partition(closing)
    while asked.get("tools") and module.tool_call_start in text:
        before, _, rest = text.partition(module.tool_call_start)
        inside, _, text = rest.partition(module.tool_call_end) if module.tool_call_end else (rest, "", "")
        content += before
        made = module.parse_tool_call(inside, asked["tools"])
        calls += made if isinstance(made, list) else [made]
    return answer(content + text, thought, [(each["name"], each["arguments"]) for each in calls])


if __name__ == "__main__":
    serve("mlx-lm", read)
