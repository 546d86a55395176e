"""Rows of real templates: turns that they rendered, and the messages that these were rendered from.

Strategy: recorded rows are data beside the repository. Of a template without them, turns are rendered here from the
messages of the recorded rows. A turn is what a template renders for one, after its own generation prompt, cut where the
turn ends. Nothing of derivation is used for that but the rendering environment, so that an error of the analysis cannot
hide itself. A message that a template refuses or does not print whole is no row.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from tests.conformance.fetch_templates import TEMPLATES
from tests.streams import SHARED
from toolgram.derive.comparing import shared_length
from toolgram.derive.errors import TemplateError
from toolgram.derive.rendering import ChatTemplate

DATA = SHARED / "data" / "roundtrip.jsonl"
TOOLS = SHARED / "data" / "tools.json"
TEMPLATE_FOLDERS = (SHARED / "data" / "templates", TEMPLATES)
HINT = "the recorded outputs ../shared/data/roundtrip.jsonl are absent"

USER = "Please look at this for me."
BOS, EOS = "<s>", "</s>"  # of a template that nothing was recorded of
_IDS = ("a1B2c3D4e", "f5G6h7I8j", "k9L0m1N2o")
_KEYS = ("reasoning_content", "thinking", "reasoning", "thought")

# Rows that no parser could read as their message, with the reason; each has a page in docs/decisions.
KNOWN: dict[tuple[str, str], str] = {
    ("CohereForAI-c4ai-command-r7b-12-2024-tool_use", "o2_content_ends_ws"): (
        "blanks beside a marker are dropped, whatever the template renders (docs/decisions/0017)"
    )
}


@dataclass(frozen=True, slots=True)
class Row:
    """An output that a template rendered, and the message that it must give."""

    template: str
    case: str
    bos_token: str
    eos_token: str
    tools: Sequence[dict[str, Any]]
    prefix: str
    output: str
    expected: dict[str, Any]
    peer: str

    @property
    def known(self) -> str:
        """Why this row cannot be read, if that is so."""
        return KNOWN.get((self.template, self.case), "")


def canonical(message: dict[str, Any]) -> str:
    """A message as text that is equal for equal messages: `1` is `1.0` and not `true`; the order of keys is nothing."""
    return json.dumps(_with_plain_numbers(message), sort_keys=True)


def _with_plain_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_plain_numbers(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_plain_numbers(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def read_rows() -> list[Row]:
    """All recorded rows, or an empty list if they are absent."""
    if not DATA.exists():
        return []
    tools = json.loads(TOOLS.read_text(encoding="utf-8"))
    lines = (json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines() if line)
    return [
        Row(
            Path(line["template"]).stem,
            line["case"],
            line["bos_token"],
            line["eos_token"],
            tools[line["tools"]],
            line["prefix"],
            line["output"],
            line["expected"],
            line["peer"],
        )
        for line in lines
    ]


def by_template(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of each template."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.template, []).append(row)
    return groups


def real_templates() -> dict[str, Path]:
    """Every real template that is here."""
    places = [place for folder in reversed(TEMPLATE_FOLDERS) for place in sorted(folder.glob("*.jinja"))]
    return {place.stem: place for place in places}


def template_text(name: str) -> str:
    """A real template, from wherever it is."""
    place = real_templates().get(name)
    if place is None:
        raise FileNotFoundError(f"no template {name}; `make templates` fetches it")
    return place.read_text(encoding="utf-8")


def messages() -> dict[str, dict[str, Any]]:
    """The message of every case of the recorded rows."""
    found: dict[str, dict[str, Any]] = {}
    for line in DATA.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found.setdefault(row["case"], {"expected": row["expected"], "tools": row["tools"]})
        if canonical(row["expected"]) != canonical(found[row["case"]]["expected"]):
            longer = max((row, found[row["case"]]), key=lambda each: len(canonical(each["expected"])))
            found[row["case"]] = {"expected": longer["expected"], "tools": longer["tools"]}
    return found


@dataclass(slots=True)
class Turns:
    """Renders the turns of one template."""

    template: ChatTemplate
    tools: Sequence[Any]
    forms: list[dict[str, Any]] = field(default_factory=list)

    def render(self, conversation: list[dict[str, Any]], prompt: bool, form: Mapping[str, Any]) -> str:
        if form.get("system"):
            conversation = [{"role": "system", "content": "Help."}, *conversation]
        if form.get("blocks"):
            conversation = [
                {**each, "content": [{"type": "text", "text": each["content"]}]} if each.get("content") else each
                for each in conversation
            ]
        tools = None if form.get("tools") is None else copy.deepcopy(list(self.tools))
        return self.template.render(copy.deepcopy(conversation), tools=tools, add_generation_prompt=prompt)


def assistant(expected: Mapping[str, Any], form: Mapping[str, Any]) -> dict[str, Any]:
    """The message in the form in which a template wants it."""
    message: dict[str, Any] = {"role": "assistant"}
    if expected["content"]:
        message["content"] = expected["content"]
    elif form["empty"] != "absent":
        message["content"] = form["empty"]
    if expected["reasoning"]:
        message |= dict.fromkeys(form["keys"], expected["reasoning"])
    if expected["tool_calls"]:
        message["tool_calls"] = [
            {
                "id": (_IDS[at] * 3)[: form["ids"]],
                "type": "function",
                "function": {
                    "name": call["name"],
                    "arguments": json.dumps(call["arguments"], ensure_ascii=False)
                    if form["as_string"]
                    else call["arguments"],
                },
            }
            for at, call in enumerate(expected["tool_calls"])
        ]
    return message


_FORMS: list[dict[str, Any]] = [
    dict(zip(("blocks", "tools", "system", "ids", "keys", "as_string", "empty"), each, strict=True))
    for each in product(
        (False, True), ("given", None), (False, True), (9, 24), [(key,) for key in _KEYS[:3]], (False, True),
        ("", None, "absent"),
    )
]  # fmt: skip


def rendered(path: Path) -> list[Row]:
    """The rows of a template that nothing was recorded of; none of one that refuses these messages."""
    try:
        return list(_rendered(path))
    except TemplateError:
        return []


def _rendered(path: Path) -> Iterator[Row]:
    tools = json.loads(TOOLS.read_text(encoding="utf-8"))
    template = ChatTemplate(path.read_text(encoding="utf-8"), BOS, EOS)
    turns = Turns(template, tools[0])
    form = _form(turns)
    if form is None:
        return
    end = _turn_end(turns, form)
    for case, given in messages().items():
        turns.tools = tools[given["tools"]]
        made = _output(turns, given["expected"], form, end)
        if made is not None:
            yield Row(path.stem, case, BOS, EOS, turns.tools, made[0], made[1], given["expected"], "")


_ANSWER = "Quick answer here"
_CONTENT: dict[str, Any] = {"content": _ANSWER, "reasoning": "", "tool_calls": []}
_CALL: dict[str, Any] = {
    "content": "",
    "reasoning": "",
    "tool_calls": [{"name": "get_weather", "arguments": {"city": "Paris"}}],
}
_THOUGHT: dict[str, Any] = {"content": "Quick answer here", "reasoning": "Secret musing", "tool_calls": []}


def _form(turns: Turns) -> Mapping[str, Any] | None:
    """The form in which the template prints the most: content, then calls, then reasoning."""
    best: tuple[int, Mapping[str, Any]] | None = None
    for form in _FORMS:
        score = 0
        for worth, (expected, words) in zip(
            (4, 2, 1),
            ((_CONTENT, ["Quick answer here"]), (_CALL, ["get_weather", "Paris"]), (_THOUGHT, ["Secret musing"])),
            strict=True,
        ):
            turn = _turn(turns, expected, form)
            if turn is not None and all(word in turn for word in words) and "None" not in turn:
                score += worth * (5 if '\\"' not in turn and "{'" not in turn else 4)
        if best is None or score > best[0]:
            best = score, form
        if score == 35:
            break
    return best[1] if best and best[0] >= 16 else None


def _turn(turns: Turns, expected: Mapping[str, Any], form: Mapping[str, Any]) -> str | None:
    return _after_user(turns, [assistant(expected, form)], False, form)


def _prompt(turns: Turns, form: Mapping[str, Any]) -> str | None:
    return _after_user(turns, [], True, form)


def _after_user(turns: Turns, more: list[dict[str, Any]], prompt: bool, form: Mapping[str, Any]) -> str | None:
    """What is rendered after the text of the user."""
    try:
        full = turns.render([{"role": "user", "content": USER}, *more], prompt, form)
    except TemplateError:
        return None
    at = full.rfind(USER)
    return full[at + len(USER) :] if at >= 0 else None


def _turn_end(turns: Turns, form: Mapping[str, Any]) -> str:
    turn = _turn(turns, _CONTENT, form) or ""
    return turn.partition(_ANSWER)[2]


def _output(turns: Turns, expected: Mapping[str, Any], form: Mapping[str, Any], end: str) -> tuple[str, str] | None:
    """The prompt's tail and what the model writes after it; None if the template does not print the message."""
    prompt, turn = _prompt(turns, form), _turn(turns, expected, form)
    if prompt is None or turn is None or not _prints(turn, expected):
        return None
    if turn.startswith(prompt):
        output = turn[len(prompt) :]
    else:
        shared = shared_length([prompt, turn])
        while shared and prompt[shared:] and (turn[shared - 1].isalnum() or turn[shared - 1] in "<|_["):
            shared -= 1
        rest, output = prompt[shared:], turn[shared:]
        close = {"<think>": "</think>", "<seed:think>": "</seed:think>"}.get(rest.strip())
        if rest.strip() and close is None:
            return None
        if close is not None:
            if expected["reasoning"]:
                return None
            output = f"\n{close}\n\n" + output
    if end and output.endswith(end):
        output = output[: len(output) - len(end)]
    elif end.strip() and end.strip() in output[-len(end) - 40 :]:
        output = output[: output.rindex(end.strip())]
    elif EOS in output:
        output = output[: output.rindex(EOS)]
    return prompt, output


def _prints(turn: str, expected: Mapping[str, Any]) -> bool:
    """Whether all parts of the message are there."""
    for part in ("content", "reasoning"):
        words = expected[part].split()
        if words and not all(word in turn for word in words[:3] + words[-1:]):
            return False
        if expected[part] and expected[part] not in turn:
            return False
    for call in expected["tool_calls"]:
        if turn.count(call["name"]) < sum(each["name"] == call["name"] for each in expected["tool_calls"]):
            return False
        if call["name"] not in turn or not all(key in turn for key in call["arguments"]):
            return False
    return True
