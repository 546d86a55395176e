"""Outputs as tokens with what they mean, and what a client hears from a server that reads them.

A reading is wrong if the client has another message than the case means. Blanks do not count, nor does how arguments
are spelled as JSON; of a call that was cut off, any beginning of its arguments will do that cannot be taken for the
whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import toolgram
from tests.integrations.cases import TOOLS, cases, meant
from tests.integrations.tokenizers_for_tests import llama3, mistral
from tests.integrations.vllm_driver import Server
from tests.integrations.vllm_heard import Heard, bare, value
from tests.integrations.writers import WRITERS, Turn

WHOLE_ANSWER = "whole"

# The parsers that vLLM has for a format: for tools, for reasoning, and the tokenizer to try them with.
THEIRS = {
    "mistral_v11": ("mistral", "mistral", "tekken_v13"),
    "mistral_v3": ("mistral", None, "tekken_v3"),
    "hermes": ("hermes", "qwen3", "llama3"),
    "qwen3_coder": ("qwen3_coder", "qwen3", "llama3"),
    "llama3_json": ("llama3_json", None, "llama3"),
    "llama4_pythonic": ("llama4_pythonic", None, "llama3"),
    "lfm2": ("lfm2", "qwen3", "llama3"),
    "granite_3": ("granite", "granite_thinking_parser", "llama3"),
}


@dataclass
class Trial:
    """A case as tokens, and what it means."""

    label: str
    ids: list[int]
    prompt: list[int]
    finish: str
    tools: list[dict[str, Any]] | None
    content: str | None
    reasoning: str | None
    calls: list[tuple[str, str, str]]
    text: str = ""
    prefix: str = ""  # what the prompt has begun


class Marked:
    """A tokenizer with a format's markers, as their tokens or spelled."""

    def __init__(self, name: str, kind: str, scratch: Path) -> None:
        self.specials = list(toolgram.get_format(name).program.special.values())
        spelled = [text for text in self.specials if text.startswith("<")]
        self.tokenizer = mistral(kind, scratch) if kind != "llama3" else llama3(added=spelled)
        vocabulary = self.tokenizer.get_vocab()
        self.known = {text: vocabulary[text] for text in self.specials if text in vocabulary}

    def spell(self, text: str) -> list[int]:
        """The ids of a text, every marker in ordinary tokens."""
        cut = [text]
        for marker in self.known:  # in two halves, so that no tokenizer sees it
            cut = [half for part in cut for half in halves(part, marker)]
        return [number for part in cut if part for number in self.tokenizer.encode(part, add_special_tokens=False)]

    def encode(self, text: str) -> list[int]:
        """The ids of a text, every marker as its token."""
        ids: list[int] = []
        while text:
            place, marker = min(
                ((text.find(each), each) for each in self.known if each in text), default=(len(text), "")
            )
            if place:
                ids += self.tokenizer.encode(text[:place], add_special_tokens=False)
            if marker:
                ids.append(self.known[marker])
            text = text[place + len(marker) :]
        return ids


def halves(text: str, marker: str) -> Iterator[str]:
    """The text, cut inside each occurrence of a marker."""
    while marker in text:
        place = text.index(marker) + len(marker) // 2
        yield text[:place]
        text = text[place:]
    yield text


def trials(name: str, marked: Marked) -> list[Trial]:
    """The cases of a format, and three that only tokens can tell."""
    prompt = [*marked.tokenizer.encode("Hi", add_special_tokens=False), marked.tokenizer.eos_token_id]
    found = []
    for case in cases(name):
        if any(text in case.text + case.prefix for text in marked.specials if text not in marked.known):
            continue
        if "its own example" in case.label:
            continue  # where a marker is cut off, what is left of it is a matter of taste
        message = meant(case)
        calls = [(call.name, call.arguments, str(call.status)) for call in message.tool_calls]
        whole = [*prompt, *marked.encode(case.prefix)]
        found.append(
            Trial(
                case.label,
                marked.encode(case.text),
                whole,
                case.finish,
                TOOLS,
                message.content,
                message.reasoning,
                calls,
                case.text,
                case.prefix,
            )
        )
    weather = Turn("", calls=(("get_weather", {"city": "Paris"}),))
    call = WRITERS[name](weather)
    marker = next((text for text in marked.known if text in call), "")
    if marker:
        text = f"A call begins with {marker} here."
        complete = [("get_weather", '{"city": "Paris"}', "complete")]
        ids = [*marked.spell(text + " "), *marked.encode(call)]
        found.append(Trial("marker quoted in content", ids, prompt, "stop", TOOLS, text, None, complete))
        turn = Turn("", calls=(("get_weather", {"city": f"see {marker}"}),))
        before, _, after = WRITERS[name](turn).partition(f"see {marker}")
        ids = [*marked.encode(before), *marked.spell(f"see {marker}"), *marked.encode(after)]
        complete = [("get_weather", json.dumps({"city": f"see {marker}"}), "complete")]
        found.append(Trial("marker quoted in arguments", ids, prompt, "stop", TOOLS, None, None, complete))
    ids = marked.spell(f"Write {call} and stop.")
    found.append(Trial("call quoted, no tools", ids, prompt, "stop", None, f"Write {call} and stop.", None, []))
    return found


def problem(heard: Heard, trial: Trial) -> str:
    """What is wrong with what was heard, in few words; "" for nothing."""
    if heard.error:
        return heard.error
    wrong = []
    cut = trial.finish == "length"
    if len(heard.calls) < len(trial.calls):
        wrong.append("call lost" if not cut else "cut-off call lost")
    elif len(heard.calls) > len(trial.calls):
        wrong.append("call invented")
    for (name, arguments), (wanted, expected, status) in zip(heard.calls, trial.calls, strict=False):
        if name != wanted:
            wrong.append("wrong name")
        elif status == "complete" and value(arguments) != value(expected):
            wrong.append("wrong arguments")
        elif status != "complete" and is_whole(arguments):
            wrong.append("cut-off call looks complete")
    for part, got, intended in (
        ("content", heard.content, trial.content),
        ("reasoning", heard.reasoning, trial.reasoning),
    ):
        if bare(got) == bare(intended):
            continue
        if len(bare(got)) < len(bare(intended)):
            wrong.append(f"{part} lost")
        else:
            wrong.append(f"markup in {part}" if any(mark in bare(got) for mark in "<[{") else f"{part} differs")
    return ", ".join(dict.fromkeys(wrong))


def is_whole(arguments: str) -> bool:
    """Whether a client would take these for arguments."""
    return isinstance(value(arguments), dict)


def hear(server: Server, trial: Trial, way: int | str) -> Heard:
    """The answer in one message or in groups of tokens; an exception is what is heard, too."""
    end = server.tokenizer.eos_token_id if trial.finish == "stop" else None
    limit = {"max_tokens": len(trial.ids)} if trial.finish == "length" else {}
    request = server.request(trial.tools, stream=way != WHOLE_ANSWER, **limit)
    try:
        if isinstance(way, str):
            return server.whole(trial.ids, request, trial.prompt, trial.finish, end)
        return server.stream(trial.ids, request, way, trial.prompt, trial.finish, end)
    except Exception as error:
        return Heard(error=type(error).__name__)
