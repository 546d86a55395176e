"""The cases of the scoreboard: an output, what it means, how that is known, and which parser of each peer reads it.

Strategy: three sets, each with a truth of its own kind.

* rendered: a real chat template has written the output from a message.  That message is the truth; no parser has a say.
* tests: outputs in the tests of vLLM, SGLang and Dynamo.  The truth is what these expect, where all that are recorded
  for a case agree; where they do not, the case is left out, and counted.
* examples: the outputs in the files of the shipped formats.  The truth is what Lark makes of them with the grammar
  alone, which shares no code with the parser.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import toolgram
from tests.conformance import family_cases, judged
from tests.conformance.family_cases import Reading, Row
from tests.conformance.roundtrip import DATA, TEMPLATE_FOLDERS, TOOLS
from tests.streams import SHARED
from toolgram.check.reference import reference_grammar, reference_parse
from toolgram.derive.comparing import markers_of
from toolgram.export.response_templates import write_response_template
from toolgram.names import known_names
from toolgram.spec.data import Literal

SETS = {
    "rendered": "a real template has written the output from a known message",
    "vLLM's tests": "what tests of vLLM expect",
    "SGLang's tests": "what tests of SGLang expect",
    "Dynamo's tests": "what Dynamo, vLLM and SGLang all give, as recorded by tests of Dynamo",
    "our examples": "the outputs in the files of our formats, read by Lark with the grammar alone",
}

# The format that reads what a template writes; what is not here is read by no named parser of a server.
TEMPLATES = {
    "Apertus-8B-Instruct": "apertus", "ByteDance-Seed-OSS": "seed_oss", "GLM-4.6": "glm45", "GLM-4.7-Flash": "glm47",
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": "cohere_command3", "Kimi-K2-Instruct": "kimi_k2",
    "Kimi-K2-Thinking": "kimi_k2", "moonshotai-Kimi-K2": "kimi_k2", "MiniMax-M2": "minimax_m2",
    "Mistral-Small-3.2-24B-Instruct-2506": "mistral_v11", "mistralai-Ministral-3-14B-Reasoning-2512": "mistral_v11",
    "unsloth-mistral-Devstral-Small-2507": "mistral_v11", "mistralai-Mistral-Nemo-Instruct-2407": "mistral_v3",
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "qwen3_coder", "Qwen3-Coder": "qwen3_coder",
    "StepFun3.5-Flash": "qwen3_coder", "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": "hermes",
    "Qwen-QwQ-32B": "hermes", "deepseek-ai-DeepSeek-V3.1": "deepseek_v31",
    "ibm-granite-granite-3.3-2B-Instruct": "granite_3", "meta-llama-Llama-3.1-8B-Instruct": "llama3_json",
    "meta-llama-Llama-3.2-3B-Instruct": "llama3_json", "meta-llama-Llama-3.3-70B-Instruct": "llama3_json",
}  # fmt: skip

# The parsers that a user of a server names for a format, for calls and for reasoning, where `names.toml` has several.
CHOSEN: dict[tuple[str, str], tuple[str | None, str | None]] = {
    ("hermes", "vllm"): ("hermes", "qwen3"),
    ("hermes", "sglang"): ("qwen25", "qwen3"),
    ("qwen3_coder", "vllm"): ("qwen3_coder", "qwen3"),
    ("qwen3_coder", "sglang"): ("qwen3_coder", "qwen3"),
    ("mistral_v3", "vllm"): ("mistral", "mistral"),
    ("mistral_v3", "sglang"): ("mistral", "mistral"),
    ("deepseek_v31", "vllm"): ("deepseek_v31", "deepseek_v3"),
    ("deepseek_v31", "sglang"): ("deepseekv31", "deepseek-v3"),
    ("deepseek_v32", "vllm"): ("deepseek_v32", "deepseek_v3"),
    ("deepseek_v32", "sglang"): ("deepseekv32", "deepseek-v3"),
    ("glm47", "sglang"): ("glm47", "glm45"),
}
# Parsers that ask for a tokenizer of their own kind: with a stand-in they would be measured as what they are not.
OWN_TOKENIZER = {("mistral_v3", "vllm"), ("mistral_v11", "vllm"), ("gpt_oss", "vllm")}
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


@dataclass(frozen=True, slots=True)
class Case:
    """An output, and the message that it is."""

    id: str
    set: str
    format: str
    text: str
    tools: list[Any] | None
    prompt: str | None
    content: str | None  # None where it is not compared
    reasoning: str | None  # None where nobody was asked for it
    calls: tuple[tuple[str, Any], ...]
    template: str = ""
    llama_cpp: str = ""  # what llama.cpp's parser made of it, where that was recorded


def all_cases(left_out: Counter[str]) -> Iterator[Case]:
    """Every case, those without a truth left out and counted."""
    yield from _rendered()
    yield from _tests(left_out)
    yield from _examples(left_out)


def _rendered() -> Iterator[Case]:
    tools = json.loads(TOOLS.read_text(encoding="utf-8"))
    for number, line in enumerate(DATA.read_text(encoding="utf-8").splitlines()):
        row = json.loads(line)
        name = row["template"].removesuffix(".jinja")
        expected = row["expected"]
        calls = tuple((call["name"], call["arguments"]) for call in expected["tool_calls"])
        yield Case(
            f"rendered {number}",
            "rendered",
            TEMPLATES.get(name, ""),
            row["output"],
            tools[row["tools"]],
            row["prefix"],
            expected["content"],
            expected["reasoning"],
            calls,
            name,
            row["peer"],
        )


def _tests(left_out: Counter[str]) -> Iterator[Case]:
    for number, row in enumerate(family_cases.rows(SHARED, judged._Every())):
        name = judged.format_of(row)
        readings = [judged._asked(row, each) for each in row.peers.values()]
        if any(each != readings[0] for each in readings[1:]):
            left_out["the recorded peers disagree"] += 1
        elif name not in toolgram.format_names() or not readings:
            left_out["a test of what no format of ours is"] += 1
        else:
            yield _test(f"test {number}", row, name, readings[0])


def _test(name: str, row: Row, format_name: str, truth: Reading) -> Case:
    """A case of a test. What its prompt had written is not recorded: it follows from what is expected."""
    origin = row.id.partition(":")[0]
    thinks = row.kind == "reason" or any(each.reasoning for each in row.peers.values())
    begun = truth.reasoning[:20].strip()
    opened = bool(begun) and row.text.lstrip().startswith(begun)
    markers = _thought_markers(format_name)
    blurred = not thinks and any(marker in row.text for marker in markers)  # the thought is left in the content
    return Case(
        name,
        {"vllm": "vLLM's tests", "sglang": "SGLang's tests"}.get(origin, "Dynamo's tests"),
        format_name,
        row.text,
        judged._tools(row) or (_declared(truth.calls) if row.kind == "tool" else None),
        next(iter(markers), "") if opened else "",
        None if blurred else truth.content,
        truth.reasoning if thinks else None,
        truth.calls,
    )


@cache
def _thought_markers(name: str) -> list[str]:
    """The markers that begin and end a thought."""
    spec = toolgram.get_format(name).spec
    found: dict[str, None] = {}
    for row in sorted(spec.transitions, key=lambda row: spec.states[row.dest].meaning != "reasoning"):
        terminal = spec.terminals.get(row.trigger)
        between = {spec.states[row.source].meaning, spec.states[row.dest].meaning} == {"content", "reasoning"}
        if isinstance(terminal, Literal) and between:
            found[terminal.text] = None
    return list(found)


def _examples(left_out: Counter[str]) -> Iterator[Case]:
    for name in toolgram.format_names():
        fmt = toolgram.get_format(name)
        grammar = reference_grammar(fmt.spec)
        about = fmt.machine_dict["format"]
        outputs = [each if isinstance(each, str) else next(iter(each)) for each in about.get("canonical", ())]
        for number, text in enumerate(dict.fromkeys([fmt.spec.example, *outputs])):
            try:
                message = reference_parse(fmt.spec, grammar, text)
            except Exception:  # of Lark: the example deviates from its own grammar
                left_out["an example that is not in its grammar"] += 1
                continue
            calls = tuple((call.name, json.loads(call.arguments)) for call in message.tool_calls)
            yield Case(
                f"example {name} {number}",
                "our examples",
                name,
                text,
                _declared(calls),
                "",
                message.content or "",
                message.reasoning or "",
                calls,
            )


def _declared(calls: tuple[tuple[str, Any], ...]) -> list[Any]:
    """Tools that declare these calls, or some call, for a case that comes without."""
    tools: dict[str, dict[str, Any]] = {} if calls else {"get_weather": {"city": {"type": "string"}}}
    for name, arguments in calls:
        known = tools.setdefault(name, {})
        for key, value in arguments.items() if isinstance(arguments, dict) else ():
            known[key] = {"type": _TYPES[type(value)]} if type(value) in _TYPES else {}
    return [
        {
            "type": "function",
            "function": {"name": name, "parameters": {"type": "object", "properties": properties}},
        }
        for name, properties in tools.items()
    ]


class Questions:
    """What the workers are asked for each case."""

    def __init__(self) -> None:
        self._templates: dict[str, dict[str, Any] | None] = {}

    def of(self, case: Case) -> dict[str, Any]:
        """A case as a worker takes it."""
        fmt = toolgram.get_format(case.format)
        literals = [each.text for each in fmt.spec.terminals.values() if isinstance(each, Literal)]
        markers = dict.fromkeys(each for text in literals for each in markers_of(text) if each[0] in "<[\u3010")
        thinks = _thinks(case)
        return {
            "id": case.id,
            "format": case.format,
            "text": case.text,
            "tools": [_of_chat(tool) for tool in case.tools or ()] or None,
            "prompt": case.prompt,
            "markers": [each for each in markers if len(each) > 3],
            "opened": thinks and bool(case.prompt) and (case.prompt or "").rstrip().endswith(tuple(markers)),
            "switches": {"enable_thinking": thinks, "thinking": thinks},
            "vllm": _parsers(case, "vllm"),
            "sglang": _parsers(case, "sglang"),
            "response_template": self._response_template(case.template),
        }

    def _response_template(self, name: str) -> dict[str, Any] | None:
        """The response template of a chat template, where it can say how calls are written. toolgram writes it: none
        comes with transformers."""
        if name and name not in self._templates:
            paths = [folder / f"{name}.jinja" for folder in TEMPLATE_FOLDERS]
            source = next(path.read_text(encoding="utf-8") for path in paths if path.exists())
            fmt = toolgram.derive_format(source, bos_token="<s>", eos_token="</s>")
            template = write_response_template(fmt).template
            self._templates[name] = {"version": 1, **template} if "tool_calls" in template["fields"] else None
        return self._templates.get(name)


def _of_chat(tool: dict[str, Any]) -> dict[str, Any]:
    """A tool in the shape of chat completions, which every peer takes."""
    return tool if "function" in tool else {"type": "function", "function": {"parameters": {}, **tool}}


def _parsers(case: Case, server: str) -> tuple[str | None, str | None]:
    """A server's parsers of calls and of reasoning; the latter where there is reasoning, since some take all for it."""
    entry = known_names().entries.get(case.format)
    both = [entry.parsers.get((server, kind), ()) if entry else () for kind in ("tool", "reasoning")]
    if (case.format, server) in OWN_TOKENIZER:
        return None, None
    tool, reasoning = CHOSEN.get((case.format, server), tuple(names[0] if names else None for names in both))
    return tool if case.tools else None, reasoning if _thinks(case) else None


def _thinks(case: Case) -> bool:
    """There is reasoning or a marker of it, or a test of a parser for reasoning asks for it."""
    asked = case.reasoning is not None and case.set.endswith("tests")
    return bool(case.reasoning) or asked or any(marker in case.text for marker in _thought_markers(case.format))
