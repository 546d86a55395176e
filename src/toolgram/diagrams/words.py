"""Triggers in words: what a model writes if a transition fires (`[TOOL_CALLS]`, `key "name"`)."""

from __future__ import annotations

import json
import re

from toolgram.spec.data import END, TEXT, Literal, Run, Spec, Transition

_OBJECT = ("object_start", "object_end", "object_empty")
_WORDS = {
    TEXT: "text",
    END: "end of output",
    "malformed": "does not fit",
    "recovered": "fits again",
    "unclosed": "not closed",
    "value_end": "end of value",
    "map_key": "any other key",
    "start_array": "[",
    "end_array": "]",
}
_JSON = {"start_map": "{", "end_map": "}", "start_array": "[", "end_array": "]", "string": '"..."'}


def trigger_in_words(spec: Spec, transition: Transition) -> str:
    """Return what a model writes if this transition fires: the text of a marker, a key, a bracket."""
    trigger = transition.trigger
    terminal = spec.terminals.get(trigger)
    if isinstance(terminal, Literal):
        return visible(terminal.text)
    if isinstance(terminal, Run):
        return "blanks" if _only_blanks(terminal) else terminal.name
    if trigger in _WORDS:
        return _WORDS[trigger]
    if trigger.startswith("object_"):
        python = spec.states[transition.source].python or spec.states[transition.dest].python
        # Empty arguments need not lead to a state that reads arguments: the whole format decides their notation.
        python = python or (trigger == "object_empty" and any(state.python for state in spec.states.values()))
        return dict(zip(_OBJECT, ("(", ")", "()") if python else ("{", "}", "{}"), strict=True))[trigger]
    return _json_event_in_words(spec, trigger)


def visible(text: str) -> str:
    """Return the text of a marker, with visible blanks and control characters."""
    escaped = printable(text)
    return escaped if escaped.strip() == escaped else escaped.replace(" ", "\N{SYMBOL FOR SPACE}")


def printable(text: str) -> str:
    """Return a text in which what cannot be seen is written as an escape."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def filled(words: list[str], width: int, between: str) -> list[str]:
    """Return words on lines of limited width, with `between` between two on a line; no word is broken."""
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + len(between) + len(word) <= width:
            lines[-1] += f"{between}{word}"
        else:
            lines.append(word)
    return lines


def _json_event_in_words(spec: Spec, trigger: str) -> str:
    event, path, *value = trigger.split(" ", 2)
    if path.endswith(".*") and event == "map_key":
        return "a key, which is the name"
    if event == "map_key":
        spellings = [path, *(other for other, same in spec.same_path.items() if same == path)]
        keys = dict.fromkeys(json.dumps(spelling.rpartition(".")[2]) for spelling in spellings)
        return f"key {'/'.join(keys)}"
    if value:
        return json.dumps(value[0], ensure_ascii=False) if event == "string" else value[0]
    return _JSON.get(event, event)


def _only_blanks(run: Run) -> bool:
    pattern = re.compile(run.pattern)
    return not any(pattern.match(chr(code)) for code in range(0x21, 0x250) if not chr(code).isspace())
