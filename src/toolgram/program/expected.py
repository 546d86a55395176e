"""What a state waits for, in plain words: the reason that a broken call is given."""

from __future__ import annotations

import re
from collections.abc import Iterable

from toolgram.spec.data import Literal, Run, Spec


def what_follows(spec: Spec, triggers: Iterable[str]) -> str:
    """Return what a state that has these triggers was waiting for, in plain words."""
    wanted: list[str] = []
    for trigger in triggers:
        words = _in_words(spec, trigger)
        if words and words not in wanted:
            wanted.append(words)
    if not wanted:
        return "nothing could follow"
    listed = wanted[0] if len(wanted) == 1 else f"{', '.join(wanted[:-1])} or {wanted[-1]}"
    return f"expected {listed}"


def _in_words(spec: Spec, trigger: str) -> str:
    shape = spec.terminals.get(trigger)
    if isinstance(shape, Literal):
        return repr(shape.text)
    if isinstance(shape, Run):
        words = trigger.lower().replace("_", " ")
        return "a blank" if re.match(shape.first, " ") else f"a{'n' * (words[0] in 'aeiou')} {words}"
    event, _, path = trigger.partition(" ")
    key = path.rpartition(".")[2]
    if event == "map_key":
        return "a key that is the name" if key == "*" else f'the key "{key}"' if key else "another key"
    if event == "string" and " " in path:
        key, _, value = path.rpartition(".")[2].partition(" ")
        return f'"{value}" for "{key}"'
    if event in ("start_map", "start_array", "string", "null"):
        what = {"start_map": "an object", "start_array": "a list", "string": "a string", "null": "null"}[event]
        return f'{what} for "{key}"' if "." in path else what
    return {
        "object_start": "arguments",
        "object_end": "the end of the arguments",
        "end_map": "the end of the object",
        "end_array": "the end of the list",
    }.get(event, "")
