"""What models say over HTTP: real chat templates and shipped formats, each with a writer of its notation.

A `Shape` is one model: its template (`make templates` fetches the real ones), the tokens of its vocabulary that are
markers, and a writer that knows nothing of toolgram. The same turns are written in every shape; what a client has
to get is the turn itself.
"""

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
from tests.integrations.writers import WRITERS, Turn, can_write
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
    name: str
    parser: str  # toolgram's, for both flags
    calls: Callable[[Turn], str] | None  # content, calls and the text after them; None if nothing writes them
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
        return self.thinks or bool(self.think[1])

    def template_text(self) -> str:
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
        if self.calls is None or not self.can_write(turn):
            return None
        if turn.reasoning and (state == CLOSED or not self.reasons):
            return None
        if self.whole is None:
            opening, closing = self.think
            told = f"{opening}{turn.reasoning}{closing}" if turn.reasoning else ""
            return {OPEN: f"{turn.reasoning}{closing}", CLOSED: ""}.get(state, told) + self.calls(turn)
        if self.begun and not self.opens_message and bool(turn.reasoning) != (state == OPEN):
            return None  # where the prompt begins a thought, a model thinks in no other way
        return self.whole(turn).removeprefix(self.begun)


def _joined(name: str, between: str, turn: Turn) -> str:
    """Content, the calls in the notation of a shipped format, and the text after them."""
    return between.join(part for part in (turn.content, WRITERS[name](Turn("", calls=turn.calls)), turn.after) if part)


def _functions_and_line(turn: Turn) -> str:
    return _joined("qwen3_coder", "\n\n", turn) + ("\n" if turn.calls and not turn.after else "")


def _nemo(turn: Turn) -> str:
    made = [{"name": name, "arguments": given, "id": f"callid{at:03}"} for at, (name, given) in enumerate(turn.calls)]
    return turn.content + (f"[TOOL_CALLS]{json.dumps(made, ensure_ascii=False)}" if made else "") + turn.after


def _shipped(name: str) -> Callable[[Turn], str]:
    """The notation of a shipped format, without reasoning."""
    return lambda turn: WRITERS[name](replace(turn, reasoning=""))


_LIKE_A_TOKEN = re.compile(r"<[|｜]\w+[|｜]>")
_QWEN = ("<|im_start|>", "<|im_end|>")
_THINK = ("<think>", "</think>")
_OWN: dict[str, Callable[[Turn], str]] = {
    "functions": partial(_joined, "qwen3_coder", "\n\n"), "functions_and_line": _functions_and_line,
    "minimax": partial(_joined, "minimax_m2", "\n"), "nemo": _nemo,
}  # fmt: skip


def _read(value: Any) -> Any:
    """JSON data with its lists as tuples, which no shape can change."""
    if isinstance(value, dict):
        return {key: _read(each) for key, each in value.items()}
    return tuple(_read(each) for each in value) if isinstance(value, list) else value


# Models with templates of their own, and what vLLM's own parsers want of a model of a shipped format: fields of its
# shape. The pair of parsers is named where the table of names has another, or none that reads its thoughts. Granite 3.2
# thinks in words, and follows a plain prompt, because no package has its template.
_MODELS = _read(json.loads((Path(__file__).parent / "http_models.json").read_text(encoding="utf-8")))
REAL = tuple(Shape(**{**each, "calls": _OWN.get(each["calls"]) or _shipped(each["calls"])}) for each in _MODELS["real"])
_FOR_THEIRS: dict[str, dict[str, Any]] = _MODELS["for_theirs"]
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
        f"toolgram_{name}", f"toolgram_{name}",
        (lambda turn: writer(replace(turn, reasoning=""))) if writer is not None else None, "<|im_end|>",
        tuple(text for text in specials if text.startswith(("<", "["))), _QWEN,
        **{"theirs": _theirs(name, thinks), **_FOR_THEIRS.get(name, {})},
        examples=tuple(prefix + output for prefix, output in pairs), whole=writer, can_write=partial(can_write, name),
        thinks=thinks, begun=begun,
        around_text=(*_around_text(writer), *_AROUND_MESSAGES.get(name, ())) if writer is not None else (),
        begins_with_name=name == "glm4",  # in its own template the role is a token
        sibling=name in _siblings(),
    )  # fmt: skip


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
