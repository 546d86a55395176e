"""Rows of real templates: turns that they rendered, and the messages that these were rendered from.

Strategy: recorded rows are data beside the repository. Of a template without them, turns are rendered here from the
messages of the recorded rows. A turn is what a template renders for one, after its own generation prompt, cut where the
turn ends. Nothing of derivation is used for that but the rendering environment, so that an error of the analysis cannot
hide itself. A message that a template refuses or does not print whole is no row.
"""

import copy
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
_KEYS = ("reasoning_content", "thinking", "reasoning")

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
    same = ("case", "bos_token", "eos_token", "prefix", "output", "expected", "peer")
    return [
        Row(template=Path(line["template"]).stem, tools=tools[line["tools"]], **{key: line[key] for key in same})
        for line in _lines()
    ]


def _lines() -> Iterator[dict[str, Any]]:
    return map(json.loads, filter(None, DATA.read_text(encoding="utf-8").splitlines()))


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
    """The longest message of every case of the recorded rows, and its tools: a row."""
    found: dict[str, dict[str, Any]] = {}
    for row in _lines():
        known = found.setdefault(row["case"], row)
        if len(canonical(row["expected"])) > len(canonical(known["expected"])):
            found[row["case"]] = row
    return found


@dataclass(slots=True)
class Turns:
    """Renders the turns of one template, in the form in which it wants messages."""

    template: ChatTemplate
    tools: Sequence[Any]
    form: Mapping[str, Any]

    def prompt(self) -> str | None:
        """What is rendered after the text of the user, for the model to go on; None if the template refuses."""
        return self._after_user([], True)

    def turn(self, expected: Mapping[str, Any]) -> str | None:
        """What is rendered for a message after the text of the user."""
        return self._after_user([self._assistant(expected)], False)

    def _after_user(self, more: list[dict[str, Any]], prompt: bool) -> str | None:
        conversation = [{"role": "user", "content": USER}, *more]
        if self.form["system"]:
            conversation = [{"role": "system", "content": "Help."}, *conversation]
        if self.form["blocks"]:
            conversation = [
                {**each, "content": [{"type": "text", "text": each["content"]}]} if each.get("content") else each
                for each in conversation
            ]
        tools = copy.deepcopy(list(self.tools)) if self.form["tools"] else None
        try:
            full = self.template.render(copy.deepcopy(conversation), tools=tools, add_generation_prompt=prompt)
        except TemplateError:
            return None
        return full.rpartition(USER)[2] if USER in full else None

    def _assistant(self, expected: Mapping[str, Any]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant"}
        if expected["content"] or self.form["empty"] != "absent":
            message["content"] = expected["content"] or self.form["empty"]
        if expected["reasoning"]:
            message[self.form["key"]] = expected["reasoning"]
        calls = []
        for at, call in enumerate(expected["tool_calls"]):
            given = call["arguments"]
            written = json.dumps(given, ensure_ascii=False) if self.form["as_string"] else given
            function = {"name": call["name"], "arguments": written}
            calls.append({"id": (_IDS[at] * 3)[: self.form["ids"]], "type": "function", "function": function})
        return message | ({"tool_calls": calls} if calls else {})


_FORMS: list[dict[str, Any]] = [
    dict(zip(("blocks", "tools", "system", "ids", "key", "as_string", "empty"), each, strict=True))
    for each in product(
        (False, True), (True, False), (False, True), (9, 24), _KEYS, (False, True), ("", None, "absent")
    )
]


def rendered(path: Path) -> list[Row]:
    """The rows of a template that nothing was recorded of; none of one that refuses these messages."""
    try:
        return list(_rendered(path))
    except TemplateError:
        return []


def _rendered(path: Path) -> Iterator[Row]:
    tools = json.loads(TOOLS.read_text(encoding="utf-8"))
    turns = Turns(ChatTemplate(path.read_text(encoding="utf-8"), BOS, EOS), tools[0], {})
    form = _form(turns)
    if form is None:
        return
    turns.form = form
    end = (turns.turn(_CONTENT) or "").partition(_CONTENT["content"])[2]
    for case, given in messages().items():
        turns.tools = tools[given["tools"]]
        made = _output(turns, given["expected"], end)
        if made is not None:
            yield Row(path.stem, case, BOS, EOS, turns.tools, made[0], made[1], given["expected"], "")


_CONTENT: dict[str, Any] = {"content": "Quick answer here", "reasoning": "", "tool_calls": []}
_CALLS = [{"name": "get_weather", "arguments": {"city": "Paris"}}]
# What a form is worth that prints these words of a message.
_WORTH: tuple[tuple[int, dict[str, Any], tuple[str, ...]], ...] = (
    (4, _CONTENT, ("Quick answer here",)),
    (2, {**_CONTENT, "content": "", "tool_calls": _CALLS}, ("get_weather", "Paris")),
    (1, {**_CONTENT, "reasoning": "Secret musing"}, ("Secret musing",)),
)


def _form(turns: Turns) -> Mapping[str, Any] | None:
    """The form in which the template prints the most: content, then calls, then reasoning."""
    best: tuple[int, Mapping[str, Any]] = (15, {})
    for form in _FORMS:
        turns.form, score = form, 0
        for worth, expected, words in _WORTH:
            turn = turns.turn(expected)
            if turn is not None and all(word in turn for word in words) and "None" not in turn:
                score += worth * (5 if '\\"' not in turn and "{'" not in turn else 4)
        if score > best[0]:
            best = score, form
        if score == 35:
            break
    return best[1] or None


def _output(turns: Turns, expected: Mapping[str, Any], end: str) -> tuple[str, str] | None:
    """The prompt's tail and what the model writes after it; None if the template does not print the message."""
    prompt, turn = turns.prompt(), turns.turn(expected)
    if prompt is None or turn is None or not _prints(turn, expected):
        return None
    if turn.startswith(prompt):
        output = turn[len(prompt) :]
    else:
        shared = shared_length([prompt, turn])
        while shared and prompt[shared:] and (turn[shared - 1].isalnum() or turn[shared - 1] in "<|_["):
            shared -= 1
        rest, output = prompt[shared:].strip(), turn[shared:]
        close = {"<think>": "</think>", "<seed:think>": "</seed:think>"}.get(rest)
        if rest and (close is None or expected["reasoning"]):
            return None
        output = f"\n{close}\n\n{output}" if rest else output
    if end and output.endswith(end):
        output = output.removesuffix(end)
    elif end.strip() and end.strip() in output[-len(end) - 40 :]:
        output = output[: output.rindex(end.strip())]
    elif EOS in output:
        output = output[: output.rindex(EOS)]
    return prompt, output


def _prints(turn: str, expected: Mapping[str, Any]) -> bool:
    """Whether all parts of the message are there."""
    if not all(expected[part] in turn for part in ("content", "reasoning")):
        return False
    names = Counter(call["name"] for call in expected["tool_calls"])
    keys = (key for call in expected["tool_calls"] for key in call["arguments"])
    return all(turn.count(name) >= count for name, count in names.items()) and all(key in turn for key in keys)
