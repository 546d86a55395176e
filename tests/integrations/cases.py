"""What models say, in every shipped format: the cases of the vLLM matrix.

A case is written down once, as reasoning, content and calls; a *writer* of `writers.py` puts it into a format's
notation.  What the package's own whole-text parse makes of the text is what every path through a server has to give,
and where a format has a writer, that parse is held to what was written.  A format without one is tried with its own
example.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import toolgram
from tests.integrations.writers import WRITERS, Call, Turn, can_write


@dataclass(frozen=True)
class Case:
    """A turn as a text of a format; `turn` is None where only the package's own parse says what it means."""

    format: str
    label: str
    text: str
    turn: Turn | None
    prefix: str = ""
    finish: str = "stop"


_WEATHER: Call = ("get_weather", {"city": "Paris"})
_TIME: Call = ("get_time", {"zone": "Europe/Paris"})
_FILE: Call = ("write_file", {"path": "/tmp/a.py", "content": 'def f(x):\n\treturn {"a": [x, \'b\', "\\\\"]}\n'})
_UNICODE: Call = ("write_file", {"path": "naïve/Übung.txt", "content": "日本語 🤔 é ✓ — “so”"})
_NESTED: Call = ("set_state", {"state": {"rows": [[1, 2], {"deep": {"er": [True, None, -3.5e2]}}], "empty": {}}})
_TYPES: Call = ("set_state", {"state": {"on": True, "off": None, "n": 3, "x": 3.25, "list": ["a", "b"]}})

TURNS = (
    Turn("content", content="It is sunny in Paris, {really}: 3 < 4 & [so] on."),
    Turn("unicode content", content="Grüße aus 東京 🤔🤔 — ça va?"),
    Turn("content that is JSON", content='{"temperature": 21, "name": "Paris"}'),
    Turn("content that is a list", content="[1, 2, 3] are numbers."),
    Turn("reasoning, content", reasoning="They want the weather. Is it {sunny}?", content="It is sunny."),
    Turn("call", calls=(_WEATHER,)),
    Turn("content, call", content="Let me look.", calls=(_WEATHER,)),
    Turn("reasoning, call", reasoning="They want the weather 🤔.", calls=(_WEATHER,)),
    Turn("reasoning, content, call", reasoning="Hm.", content="Let me look.", calls=(_WEATHER,)),
    Turn("two calls", calls=(_WEATHER, _TIME)),
    Turn("content, three calls", content="All three.", calls=(_WEATHER, _TIME, _FILE)),
    Turn("unicode call", calls=(_UNICODE,)),
    Turn("escapes", calls=(_FILE,)),
    Turn("nested", content="Set.", calls=(_NESTED, _TYPES)),
    Turn("no arguments", calls=(("get_time", {}),)),
    Turn("call, text after it", content="Before.", calls=(_WEATHER,), after="And that was that."),
)


def _tool(name: str, **properties: dict[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


TOOLS = [
    _tool("get_weather", city={"type": "string"}),
    _tool("get_time", zone={"type": "string"}),
    _tool("write_file", path={"type": "string"}, content={"type": "string"}),
    _tool("set_state", state={"type": "object"}),
]


def can_reason(name: str) -> bool:
    """Whether a format has reasoning."""
    states = toolgram.get_format(name).machine_dict["machine"]["states"]
    return any("reasoning" in state.get("tags", ()) for state in states if isinstance(state, dict))


def without_stop(fmt: toolgram.Format, text: str) -> str:
    """A turn without the marker that ends it: an engine stops there and asks no grammar."""
    ends = [fmt.program.literals[each] for each in fmt.spec.stop or () if each in fmt.program.literals]
    return text.removesuffix(next((end for end in ends if text.endswith(end)), ""))


def cases(name: str) -> list[Case]:
    """The cases of one format."""
    writer = WRITERS.get(name)
    example = toolgram.get_format(name).example
    found = [Case(name, "its own example", example, None)]
    found += [
        Case(name, f"its own example, cut {share}/4", example[: len(example) * share // 4], None, finish="length")
        for share in (1, 2, 3)
    ]
    if writer is None:
        return found
    for turn in TURNS:
        if (turn.reasoning and not can_reason(name)) or not can_write(name, turn):
            continue
        text = writer(turn)
        found.append(Case(name, turn.label, text, turn))
        if turn.label in ("content, call", "content, three calls"):
            found.append(Case(name, f"{turn.label}, cut off", text[: len(text) * 4 // 5], None, finish="length"))
        if turn.reasoning and turn.label in ("reasoning, content", "reasoning, content, call"):
            end = text.index(turn.reasoning)
            found.append(Case(name, f"{turn.label}, opened by the prompt", text[end:], turn, prefix=text[:end]))
            found.append(Case(name, f"{turn.label}, never closed", text[: end + len(turn.reasoning)], None))
    return found


def meant(case: Case) -> toolgram.Message:
    """What the package's own whole-text parse makes of a case; held to what was written, where that is known."""
    reason = "length" if case.finish == "length" else None
    message = toolgram.get_format(case.format).parse(case.text, TOOLS, case.prefix, reason)
    turn = case.turn
    if turn is not None:
        said = " ".join(part for part in (turn.content, turn.after) if part) or None
        assert message.content == said, case
        assert message.reasoning == (turn.reasoning or None), case
        calls = [(call.name, json.loads(call.arguments), call.status) for call in message.tool_calls]
        assert calls == [(name, arguments, "complete") for name, arguments in turn.calls], case
    return message
