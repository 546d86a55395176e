"""What models say over HTTP: real chat templates and shipped formats, each with a writer of its notation.

A `Shape` is one model: its template (`make templates` fetches the real ones), the tokens of its vocabulary that are
markers, and a writer that knows nothing of toolgram. The same turns are written in every shape; what a client has
to get is the turn itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import yaml

import toolgram
from tests.integrations.cases import TOOLS, without_stop
from tests.integrations.writers import WRITERS, Call, Turn, can_write
from tests.properties.selection import ALL, seed
from toolgram.names import KINDS, known_names

TEMPLATES = Path(__file__).parents[1] / "conformance" / "templates"
CHATML = (
    "{%- if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{%- endif %}{%- for m in messages %}"
    "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{%- endfor %}"
    "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{%- endif %}"
)
ASSISTANT = "assistant\n"  # of the header of an answer
MERGES = 20_000  # a server loads its tokenizer three times: with all merges, six seconds
OPEN, CLOSED = "open", "closed"  # where a prompt leaves reasoning; "" where it says nothing


@dataclass(frozen=True)
class Shape:
    """One model."""

    name: str
    parser: str  # toolgram's, for both flags
    calls: Callable[[Turn], str] | None  # content, calls and the text behind them; None where nothing writes them
    eos: str
    added: tuple[str, ...] = ()  # markers in the vocabulary
    special: tuple[str, ...] = ()  # those of them that a server leaves out of text unless told
    think: tuple[str, str] = ("", "")  # around reasoning, with the blanks that the model writes there
    template: str = ""  # a file of TEMPLATES; "" for a plain one
    tokenizer: str = "llama3"
    theirs: tuple[str, str | None] = ("", None)  # vLLM's own parsers: tools, reasoning
    others: tuple[tuple[str, str | None], ...] = ()  # more pairs that vLLM has for such models
    model: dict[str, Any] = field(default_factory=dict)  # what its config.json says besides
    files: dict[str, str] = field(default_factory=dict)  # and its tokenizer_config.json
    response_template: str = ""  # the type of model whose response template the tokenizer has; "" for none
    switch: str = "enable_thinking"  # the template's word for thinking on and off, where it has one
    told: dict[str, dict[str, Any]] = field(default_factory=dict)  # what requests say besides, thinking on and off
    whole: Callable[[Turn], str] | None = None  # writes a turn with its reasoning, where a prompt says nothing of it
    can_write: Callable[[Turn], bool] = lambda turn: True  # whether the notation has room for a turn
    thinks: bool = False  # with `whole`, whether it has reasoning
    begun: str = ""  # with `whole`, what a prompt that asks for thinking has begun
    around_text: tuple[str, ...] = ()  # markers around content
    begins_with_name: bool = False  # a word that the prompt writes behind its last marker would be read as a name
    merges: int | None = MERGES  # of the tokenizer, the most frequent ones; None for all
    examples: tuple[str, ...] = ()  # of a shipped format; what they mean is what the package reads in them
    sibling: bool = False  # another format of its family says everything; this one is spared the same again

    @property
    def reasons(self) -> bool:
        """Whether the model thinks."""
        return self.thinks or bool(self.think[1])

    def template_text(self) -> str:
        """The chat template."""
        if not self.template:
            when = "true" if self.opens_message else self.switch
            begun = f"{{%- if add_generation_prompt and {when} %}}{{{{ {self.begun!r} }}}}{{%- endif %}}"
            plain = CHATML.replace(ASSISTANT, "") if self.begins_with_name else CHATML
            return plain + (begun if self.begun else "")
        return (TEMPLATES / f"{self.template}.jinja").read_text(encoding="utf-8")

    @property
    def opens_message(self) -> bool:
        """Whether what the prompt begins is any message, and no thought."""
        return self.whole is not None and bool(self.begun) and self.whole(Turn("", content="C")).startswith(self.begun)

    def prompt_state(self, prompt: str) -> str:
        """Where a rendered prompt leaves reasoning."""
        if self.whole is not None:
            opened = self.begun and prompt.endswith(self.begun) and not self.opens_message
            return OPEN if opened else "" if self.thinks else CLOSED
        opening, closing = (part.strip() for part in self.think)
        end = prompt.rstrip()
        if not self.reasons:
            return CLOSED
        return OPEN if end.endswith(opening) else CLOSED if end.endswith(closing) else ""

    def write(self, turn: Turn, state: str) -> str | None:
        """What the model writes behind a prompt in this state; None where it cannot say that."""
        if self.calls is None:
            return None
        opening, closing = self.think
        if turn.reasoning and (state == CLOSED or not self.reasons):
            return None
        if not self.can_write(turn):
            return None
        if self.whole is not None:
            return self._behind_plain_prompt(turn, self.whole(turn), state)
        before = {OPEN: f"{turn.reasoning}{closing}", CLOSED: ""}.get(
            state, f"{opening}{turn.reasoning}{closing}" if turn.reasoning else ""
        )
        return before + self.calls(turn)

    def _behind_plain_prompt(self, turn: Turn, text: str, state: str) -> str | None:
        """A whole turn behind what the prompt has begun: a message, or a thought, and then a model thinks in no other
        way."""
        if not self.begun:
            return text
        if self.opens_message:
            return text.removeprefix(self.begun)
        if bool(turn.reasoning) != (state == OPEN):
            return None
        return text.removeprefix(self.begun)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _joined(turn: Turn, calls: str, between: str = "\n") -> str:
    return between.join(part for part in (turn.content, calls, turn.after) if part)


def _functions(turn: Turn) -> str:
    def call(name: str, given: dict[str, Any]) -> str:
        values = "".join(
            f"<parameter={key}>\n{each if isinstance(each, str) else _json(each)}\n</parameter>\n"
            for key, each in given.items()
        )
        return f"<tool_call>\n<function={name}>\n{values}</function>\n</tool_call>"

    return _joined(turn, "\n".join(call(*each) for each in turn.calls), "\n\n")


def _functions_and_line(turn: Turn) -> str:
    return _functions(turn) + ("\n" if turn.calls and not turn.after else "")


def _minimax(turn: Turn) -> str:
    def call(name: str, given: dict[str, Any]) -> str:
        values = "".join(
            f'<parameter name="{key}">{each if isinstance(each, str) else _json(each)}</parameter>\n'
            for key, each in given.items()
        )
        return f'<invoke name="{name}">\n{values}</invoke>\n'

    made = "".join(call(*each) for each in turn.calls)
    return _joined(turn, f"<minimax:tool_call>\n{made}</minimax:tool_call>" if made else "")


def _nemo(turn: Turn) -> str:
    made = [
        {"name": name, "arguments": given, "id": f"callid{place:03}"} for place, (name, given) in enumerate(turn.calls)
    ]
    return turn.content + (f"[TOOL_CALLS]{_json(made)}" if made else "") + turn.after


def _shipped(name: str) -> Callable[[Turn], str]:
    """The notation of a shipped format, without reasoning."""

    def write(turn: Turn) -> str:
        return WRITERS[name](Turn(turn.label, "", turn.content, turn.calls, turn.after))

    return write


_LIKE_A_TOKEN = re.compile(r"<[|｜]\w+[|｜]>")
_QWEN = ("<|im_start|>", "<|im_end|>")
_TOOL = ("<tool_call>", "</tool_call>")
_THINK = ("<think>", "</think>")
_LINES = ("<think>\n", "\n</think>\n\n")

REAL = (
    Shape(
        "Qwen3",
        "toolgram",
        _shipped("hermes"),
        "<|im_end|>",
        (*_THINK, *_TOOL),
        _QWEN,
        _LINES,
        "Qwen-Qwen3-0.6B",
        "qwen",
        ("hermes", "qwen3"),
        (("hf", "hf"),),
        response_template="qwen3",
        merges=None,
    ),
    Shape(
        "Qwen3-Coder",
        "toolgram",
        _functions,
        "<|im_end|>",
        _TOOL,
        _QWEN,
        ("", ""),
        "Qwen3-Coder",
        "qwen",
        ("qwen3_coder", None),
    ),
    Shape(
        "QwQ",
        "toolgram",
        _shipped("hermes"),
        "<|im_end|>",
        (*_THINK, *_TOOL),
        _QWEN,
        _LINES,
        "Qwen-QwQ-32B",
        "qwen",
        ("hermes", "deepseek_r1"),
        (("hermes", "holo2"),),
    ),
    Shape(
        "GLM-4.6",
        "toolgram",
        _shipped("glm45"),
        "<|user|>",
        (*_THINK, *_TOOL, "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
        ("[gMASK]", "<sop>", "<|system|>", "<|assistant|>", "<|user|>"),
        ("\n<think>", "</think>\n"),
        "GLM-4.6",
        theirs=("glm45", "glm45"),
    ),
    Shape(
        "DeepSeek-V3.1",
        "toolgram",
        _shipped("deepseek_v31"),
        "<｜end▁of▁sentence｜>",
        (
            *_THINK,
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁calls▁end｜>",
            "<｜tool▁call▁begin｜>",
            "<｜tool▁call▁end｜>",
            "<｜tool▁sep｜>",
        ),
        ("<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>"),
        ("<think>", "</think>"),
        "deepseek-ai-DeepSeek-V3.1",
        theirs=("deepseek_v31", "deepseek_v3"),
        switch="thinking",
    ),
    Shape(
        "Kimi-K2-Thinking",
        "toolgram",
        _shipped("kimi_k2"),
        "<|im_end|>",
        _THINK,
        (
            "<|im_end|>",
            "<|im_user|>",
            "<|im_assistant|>",
            "<|im_system|>",
            "<|im_middle|>",
            "<|tool_calls_section_begin|>",
            "<|tool_calls_section_end|>",
            "<|tool_call_begin|>",
            "<|tool_call_end|>",
            "<|tool_call_argument_begin|>",
        ),
        ("<think>", "</think>"),
        "Kimi-K2-Thinking",
        theirs=("kimi_k2", "kimi_k2"),
    ),
    Shape(
        "MiniMax-M2",
        "toolgram",
        _minimax,
        "[e~[",
        (*_THINK, "<minimax:tool_call>", "</minimax:tool_call>"),
        ("]~b]", "[e~[", "]~!b["),
        _LINES,
        "MiniMax-M2",
        theirs=("minimax_m2", "minimax_m2"),
    ),
    Shape(
        "Nemotron-3-Nano",
        "toolgram",
        _functions_and_line,
        "<|im_end|>",
        (*_THINK, *_TOOL),
        _QWEN,
        ("<think>\n", "\n</think>\n"),
        "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
        theirs=("qwen3_coder", "nemotron_v3"),
    ),
    Shape(
        "Llama-3.1",
        "toolgram",
        _shipped("llama3_json"),
        "<|eot_id|>",
        special=("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|python_tag|>"),
        template="meta-llama-Llama-3.1-8B-Instruct",
        theirs=("llama3_json", None),
        merges=None,
    ),
    Shape(
        "Mistral-Nemo",
        "toolgram",
        _nemo,
        "</s>",
        special=(
            "[TOOL_CALLS]",
            "[INST]",
            "[/INST]",
            "</s>",
            "[AVAILABLE_TOOLS]",
            "[/AVAILABLE_TOOLS]",
            "[TOOL_RESULTS]",
            "[/TOOL_RESULTS]",
        ),
        template="mistralai-Mistral-Nemo-Instruct-2407",
        theirs=("mistral", None),
    ),
    Shape(  # it thinks in words; behind a plain prompt, as its template is in no package
        "Granite-3.2",
        "toolgram_granite_3",
        _shipped("granite_3"),
        "<|end_of_text|>",
        ("<|tool_call|>",),
        (*_QWEN, "<|end_of_text|>"),
        ("Here is my thought process:\n", "\n\nHere is my response:\n"),
        theirs=("granite", "granite"),
    ),
)

_COHERE = {"architectures": ["Cohere2ForCausalLM"], "model_type": "cohere2"}
_EFFORT = {"on": {"reasoning_effort": "high"}, "off": {"reasoning_effort": "no_think"}}
# What vLLM's own parsers want of a model: fields of its shape. The pair of parsers is named where the table of names
# has another, or none that reads its thoughts.
_FOR_THEIRS: dict[str, dict[str, Any]] = {
    "cohere_command3": {"model": _COHERE},
    "cohere_command4": {"model": _COHERE},
    "deepseek_r1": {"theirs": ("hermes", "deepseek_r1"), "others": (("hermes", "olmo3"),), "merges": None},
    "deepseek_v31": {"theirs": ("deepseek_v31", "deepseek_v3")},
    "deepseek_v32": {"theirs": ("deepseek_v32", "deepseek_v3")},
    "dots": {"theirs": ("dots", "qwen3")},
    "gpt_oss": {"theirs": ("", None)},
    "granite_3": {"theirs": ("granite", "granite_thinking_parser")},
    "hermes": {"others": (("granite4", "qwen3"),)},
    "hy_v3": {"files": {"token_suffix": ":opensource"}, "told": _EFFORT},
    "hy_v4": {"files": {"token_suffix": ":6124c78e"}, "told": _EFFORT},
    "internlm2": {"theirs": ("internlm", "qwen3")},
    "lfm2": {"theirs": ("lfm2", "qwen3")},
    "llama4_pythonic": {"others": (("pythonic", None),)},
    "minicpm5": {"theirs": ("minicpm5", "qwen3")},
    "qwen3_coder": {
        "theirs": ("qwen3_coder", "qwen3"),
        "others": (
            ("qwen3_coder", "granite_thinking_parser"),
            ("qwen3_coder", "minicpmv"),
            ("step3p5", "step3p5"),
        ),
    },
}
_TOKENS = {"deepseek_v31": "think>", "k2_horizon": "ifm|"}  # texts of a format that its models have as tokens
_MORE_TOKENS = {"poolside_v1": ("<assistant>",)}  # and such that no answer has


_FUNCTIONS = [tool["function"]["name"] for tool in TOOLS]
_ADDRESSED = ("<|eom|>", "<|eot|>", "<|start|>assistant", *(f" to={name}<|message|>" for name in _FUNCTIONS))
_AROUND_MESSAGES = {  # where each part of a turn is a message: what is between them, and no part of any
    "beam": ("<|end|>", "<|call|>", "<|return|>", "<|start|>assistant"),
    "gpt_oss": ("<|end|>", "<|start|>assistant"),
    "inkling": ("<|message_model|>",),
    "muse": _ADDRESSED,
    "solar_open": ("<|begin|>assistant", "<|tool_calls|>"),
    "muse_glimmer": _ADDRESSED,
}


def _theirs(name: str, thinks: bool) -> tuple[str, str | None]:
    """vLLM's own parsers of a shipped format, as the table of names has them."""
    entry = known_names().entries.get(name)
    tools, reasoning = (entry.parsers["vllm", kind] for kind in KINDS) if entry else ((), ())
    own = next((each for each in tools if each == name), next(iter(tools), ""))
    return own, (next(iter(reasoning), None) if thinks else None)


def shipped() -> tuple[Shape, ...]:
    """The shipped formats, by name, behind a plain template. All of them say their own example outputs as well."""
    return tuple(_named(name) for name in toolgram.format_names())


def _named(name: str) -> Shape:
    fmt, writer = toolgram.get_format(name), _stopped(name)
    given = fmt.machine_dict["format"].get("canonical", ())
    pairs = [("", each) if isinstance(each, str) else (each["prefix"], each["output"]) for each in given]
    thinks = writer is not None and any(fmt.parse(output, TOOLS, prefix).reasoning for prefix, output in pairs)
    begun = next((prefix for prefix, _ in pairs if prefix), "")  # by the prompt of a model that thinks
    specials = tuple(fmt.program.special.values())
    specials += tuple(text for text in fmt.program.literals.values() if name in _TOKENS and _TOKENS[name] in text)
    specials += _MORE_TOKENS.get(name, ())
    if name not in _siblings():  # nearly every model that writes <think> has it as a token; siblings spell it
        literals = fmt.program.literals.values()
        specials = (*specials, *(text for text in _THINK if text in literals))
        specials = (*specials, *(each for text in literals for each in _LIKE_A_TOKEN.findall(text)))
    return Shape(
        f"toolgram_{name}",
        f"toolgram_{name}",
        (lambda turn: writer(replace(turn, reasoning=""))) if writer is not None else None,
        "<|im_end|>",
        tuple(text for text in specials if text.startswith(("<", "["))),
        _QWEN,
        **{"theirs": _theirs(name, thinks), **_FOR_THEIRS.get(name, {})},
        examples=tuple(prefix + output for prefix, output in pairs),
        whole=writer,
        can_write=partial(can_write, name),
        thinks=thinks,
        begun=begun,
        around_text=(*_around_text(writer), *_AROUND_MESSAGES.get(name, ())) if writer is not None else (),
        begins_with_name=name == "glm4",  # in its own template the role is a token
        sibling=name in _siblings(),
    )


def _stopped(name: str) -> Callable[[Turn], str] | None:
    """The writer of a format, without the marker that ends a turn: the engine stops at it, and gives no text for it."""
    writer, fmt = WRITERS.get(name), toolgram.get_format(name)
    return None if writer is None else lambda turn: without_stop(fmt, writer(turn))


def _around_text(writer: Callable[[Turn], str]) -> tuple[str, ...]:
    """The markers between which content stands, where it does; they may need a thought before them."""
    found = []
    for reasoning in ("", "R"):
        thought = writer(Turn("", reasoning=reasoning)) if reasoning else ""
        before, _, behind = writer(Turn("", reasoning=reasoning, content="C")).rpartition("C")
        if before.startswith(thought):
            found += [before.removeprefix(thought).strip(), behind.strip()]
    return tuple(dict.fromkeys(each for each in found if each))


@lru_cache(maxsize=1)
def _siblings() -> frozenset[str]:
    """Where a run takes all shipped formats, those that are not the first of their families."""
    return frozenset(name for family in families() for name in family[1:]) if seed() == ALL else frozenset()


def families() -> list[list[str]]:
    """The shipped formats by the fragments that their machines are composed of, reasoning aside."""
    found: dict[tuple[str, ...], list[str]] = {}
    for name in toolgram.format_names():
        imports = yaml.safe_load(toolgram.get_format(name).machine_text)["machine"].get("import", ())
        fragments = {each["fragment"] for each in imports} - {"reasoning"}
        found.setdefault(tuple(sorted(fragments)), []).append(name)
    return list(found.values())


def chosen(seed: str) -> list[str]:
    """The shipped formats of a run: one of each family, the next one with the next seed; all of them, or those named,
    where TOOLGRAM_FORMATS says so."""
    if not seed.isdecimal():
        return [name for name in toolgram.format_names() if seed == ALL or name in seed.split(",")]
    return sorted(family[int(seed) % len(family)] for family in families())


def shapes(names: Sequence[str] = ()) -> list[Shape]:
    """These; without names, the real ones and the shipped formats of this run."""
    taken = [each for each in shipped() if each.name.removeprefix("toolgram_") in chosen(seed())]
    return [each for each in (*REAL, *shipped()) if each.name in names] if names else [*REAL, *taken]


__all__ = ["CLOSED", "OPEN", "Call", "Shape", "shapes"]
