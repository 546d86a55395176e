"""Write the files of the suite's adapters: `python -m tests.generators.suite_parsers`.

Strategy: an adapter knows nothing of toolgram. Which parsers a user of a server names for a family, which markers its
tokenizer has as one token, and which response template reads it, is data in `suite/adapters/`.
"""

import json
from pathlib import Path
from typing import Any

import toolgram
from tests.tables import table
from toolgram.derive.comparing import markers_of
from toolgram.names import known_names
from toolgram.observing.observed import stop_tokens
from toolgram.response_templates import write_response_template
from toolgram.spec.data import Literal

# The parsers that a user of a server names for a format, for calls and for reasoning, if `names.toml` has several.
CHOSEN: dict[tuple[str, str], tuple[str | None, str | None]] = {
    ("hermes", "vllm"): ("hermes", "qwen3"), ("hermes", "sglang"): ("qwen25", "qwen3"),
    ("qwen3_coder", "vllm"): ("qwen3_coder", "qwen3"), ("qwen3_coder", "sglang"): ("qwen3_coder", "qwen3"),
    ("mistral_v3", "vllm"): ("mistral", "mistral"), ("mistral_v3", "sglang"): ("mistral", "mistral"),
    ("deepseek_v31", "vllm"): ("deepseek_v31", "deepseek_v3"),
    ("deepseek_v31", "sglang"): ("deepseekv31", "deepseek-v3"),
    ("deepseek_v32", "vllm"): ("deepseek_v32", "deepseek_v3"),
    ("deepseek_v32", "sglang"): ("deepseekv32", "deepseek-v3"), ("glm47", "sglang"): ("glm47", "glm45"),
}  # fmt: skip
# Parsers that ask for a tokenizer of their own kind: with a stand-in they would be measured as what they are not.
OWN_TOKENIZER = {("mistral_v3", "vllm"), ("mistral_v11", "vllm"), ("gpt_oss", "vllm")}
# The template of a model of the family among those that llama.cpp has for its own tests. The one of Mistral v3 prints
# ids and no blank, as no other of its family does.
OF_LLAMA_CPP = table(__file__, "of_llama_cpp")
ADAPTERS = Path(__file__).resolve().parents[2] / "suite" / "adapters"


def parsers(name: str) -> dict[str, Any]:
    """Return the parsers that servers have for a family, its markers, and what ends a turn."""
    entry = known_names().entries.get(name)
    found: dict[str, Any] = {}
    for server in ("vllm", "sglang"):
        both = [entry.parsers.get((server, kind), ()) if entry else () for kind in ("tool", "reasoning")]
        pair = CHOSEN.get((name, server), tuple(names[0] if names else None for names in both))
        if any(pair) and (name, server) not in OWN_TOKENIZER:
            found[server] = list(pair)
    if name in OF_LLAMA_CPP:
        found["llama_cpp"] = f"{OF_LLAMA_CPP[name]}.jinja"
    fmt = toolgram.get_format(name)
    terminals, ends = fmt.spec.terminals, stop_tokens(fmt.spec, fmt.observed_paths)
    texts = [mark for each in terminals.values() if isinstance(each, Literal) for mark in markers_of(each.text)]
    tokens = (each for each in texts if each[0] in "<[【" and len(each) > 3 and each.count("<") == each.count(">"))
    markers = list(dict.fromkeys(tokens))  # `<parameter name="` is no token of any tokenizer
    found["ends"] = [each.text for each in map(terminals.get, sorted(ends)) if isinstance(each, Literal)]
    return {**found, "markers": markers, "thoughts": thought_markers(name)}


def thought_markers(name: str) -> list[str]:
    """Return the markers that begin and end a thought; what begins one is first."""
    spec = toolgram.get_format(name).spec
    found: dict[str, None] = {}
    for row in sorted(spec.transitions, key=lambda row: spec.states[row.dest].meaning != "reasoning"):
        terminal = spec.terminals.get(row.trigger)
        between = {spec.states[row.source].meaning, spec.states[row.dest].meaning} == {"content", "reasoning"}
        if isinstance(terminal, Literal) and between:
            found[terminal.text] = None
    return list(found)


def response_template(name: str) -> dict[str, Any] | None:
    """Return the response template of a family, None if it cannot say how calls are written."""
    template = write_response_template(toolgram.get_format(name)).template
    return {"version": 1, **template} if "tool_calls" in template["fields"] else None


def write(folder: Path) -> None:
    """Write both files."""
    names = toolgram.format_names()
    templates = {name: template for name in names for template in [response_template(name)] if template is not None}
    for file, rows in (("parsers", {name: parsers(name) for name in names}), ("response_templates", templates)):
        lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(row, ensure_ascii=False)}" for key, row in rows.items())
        (folder / f"{file}.json").write_text("{\n" + lines + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    write(ADAPTERS)
