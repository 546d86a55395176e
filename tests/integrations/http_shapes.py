"""What models say over HTTP: real chat templates and shipped formats, each with a writer of its notation.

A `Shape` is one model: its template (`make templates` fetches the real ones), the tokens of its vocabulary that are
markers, and a writer that knows nothing of toolgram. The same turns are written in every shape; what a client has
to get is the turn itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import toolgram
from tests.integrations.cases import WRITERS, Call, Turn, can_reason

TEMPLATES = Path(__file__).parents[1] / "conformance" / "templates"
CHATML = (
    "{%- if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{%- endif %}{%- for m in messages %}"
    "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{%- endfor %}"
    "{%- if add_generation_prompt %}<|im_start|>assistant\n{%- endif %}"
)
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
    switch: str = "enable_thinking"  # the template's word for thinking on and off, where it has one
    text_with_calls: bool = field(default=True)  # whether the notation has text beside calls
    examples: tuple[str, ...] = ()  # of a shipped format; what they mean is what the package reads in them

    @property
    def reasons(self) -> bool:
        """Whether the model thinks."""
        return bool(self.think[1])

    def template_text(self) -> str:
        """The chat template."""
        if not self.template:
            return CHATML
        return (TEMPLATES / f"{self.template}.jinja").read_text(encoding="utf-8")

    def prompt_state(self, prompt: str) -> str:
        """Where a rendered prompt leaves reasoning."""
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
        if turn.calls and not self.text_with_calls and (turn.content or turn.after):
            return None
        before = {OPEN: f"{turn.reasoning}{closing}", CLOSED: ""}.get(
            state, f"{opening}{turn.reasoning}{closing}" if turn.reasoning else ""
        )
        return before + self.calls(turn)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _joined(turn: Turn, calls: str, between: str = "\n") -> str:
    return between.join(part for part in (turn.content, calls, turn.after) if part)


def _hermes(turn: Turn) -> str:
    made = [
        f'<tool_call>\n{{"name": "{name}", "arguments": {_json(given)}}}\n</tool_call>' for name, given in turn.calls
    ]
    return _joined(turn, "\n".join(made))


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


def _glm(turn: Turn) -> str:
    def call(name: str, given: dict[str, Any]) -> str:
        pairs = "".join(
            f"<arg_key>{key}</arg_key>\n<arg_value>{each if isinstance(each, str) else _json(each)}</arg_value>\n"
            for key, each in given.items()
        )
        return f"<tool_call>{name}\n{pairs}</tool_call>"

    return _joined(turn, "\n".join(call(*each) for each in turn.calls))


def _deepseek(turn: Turn) -> str:
    begin, end = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
    made = [f"<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{_json(given)}<｜tool▁call▁end｜>" for name, given in turn.calls]
    return turn.content + (f"{begin}{''.join(made)}{end}" if made else "") + turn.after


def _kimi(turn: Turn) -> str:
    made = [
        f"<|tool_call_begin|>functions.{name}:{place}<|tool_call_argument_begin|>{_json(given)}<|tool_call_end|>"
        for place, (name, given) in enumerate(turn.calls)
    ]
    section = f"<|tool_calls_section_begin|>{''.join(made)}<|tool_calls_section_end|>" if made else ""
    return turn.content + section + turn.after


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
    def write(turn: Turn) -> str:
        return WRITERS[name](Turn(turn.label, "", turn.content, turn.calls, turn.after))

    return write


_QWEN = ("<|im_start|>", "<|im_end|>")
_TOOL = ("<tool_call>", "</tool_call>")
_THINK = ("<think>", "</think>")
_LINES = ("<think>\n", "\n</think>\n\n")

REAL = (
    Shape(
        "Qwen3",
        "toolgram",
        _hermes,
        "<|im_end|>",
        (*_THINK, *_TOOL),
        _QWEN,
        _LINES,
        "Qwen-Qwen3-0.6B",
        "qwen",
        ("hermes", "qwen3"),
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
        _hermes,
        "<|im_end|>",
        (*_THINK, *_TOOL),
        _QWEN,
        _LINES,
        "Qwen-QwQ-32B",
        "qwen",
        ("hermes", "deepseek_r1"),
    ),
    Shape(
        "GLM-4.6",
        "toolgram",
        _glm,
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
        _deepseek,
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
        _kimi,
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
        template="meta-llama-Llama-3.1-8B-Instruct",
        theirs=("llama3_json", None),
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
)

_THEIRS: dict[str, tuple[str, str | None]] = {
    "hermes": ("hermes", "qwen3"),
    "qwen3_coder": ("qwen3_coder", "qwen3"),
    "llama3_json": ("llama3_json", None),
    "llama4_pythonic": ("llama4_pythonic", None),
    "lfm2": ("lfm2", "qwen3"),
    "granite_3": ("granite", "granite_thinking_parser"),
}


def _examples(name: str) -> tuple[str, ...]:
    """The canonical outputs of a format; what a prompt would have begun is written by the model."""
    given = toolgram.get_format(name).machine_dict["format"].get("canonical", ())
    return tuple(each if isinstance(each, str) else each["prefix"] + each["output"] for each in given)


def shipped() -> tuple[Shape, ...]:
    """The shipped formats, by name, behind a plain template: those without a writer say their own example outputs."""
    made = []
    for name in toolgram.format_names():
        specials = tuple(toolgram.get_format(name).program.special.values())
        think = ("", "")
        if name in WRITERS and can_reason(name):
            written = WRITERS[name](Turn("", reasoning="R", content="C"))
            before, _, rest = written.partition("R")
            think = (before, rest.removesuffix("C"))
        made.append(
            Shape(
                f"toolgram_{name}",
                f"toolgram_{name}",
                _shipped(name) if name in WRITERS else None,
                "<|im_end|>",
                tuple(text for text in specials if text.startswith(("<", "["))),
                _QWEN,
                think,
                theirs=_THEIRS.get(name, ("", None)),
                examples=_examples(name),
            )
        )
    return tuple(made)


def shapes(names: Sequence[str] = ()) -> list[Shape]:
    """All of them, or these."""
    return [each for each in (*REAL, *shipped()) if not names or each.name in names]


__all__ = ["CLOSED", "OPEN", "Call", "Shape", "shapes"]
