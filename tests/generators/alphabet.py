"""The critical alphabet of a format: the texts that decide how its output is read.

It is computed from the format's two files: each marker, whole and without its last character, that last character, and
the syntax of the embedded values. Of markers that the machine treats alike in every state, one is enough. `contexts`
are beginnings that lead into every state of the machine, so that short strings after them reach what only long
strings reach from the start.
"""

import random
from functools import lru_cache

import toolgram
from tests.generators.grammar_walks import OneValue, covering_words, walks
from toolgram.spec.data import Literal, Spec

COMMON = ("x", "1", " ")
JSON = ("{", "}", "[", "]", '"', "\\", ":", ",")
PYTHON = ("(", ")", "=", "'")
TAGGED = ("<", ">", "\n")


def markers(spec: Spec) -> list[str]:
    """The fixed terminals that the machine tells apart: one for each set of transitions that they trigger."""
    rows: dict[str, set[tuple[str, str, tuple[str, ...]]]] = {}
    for move in spec.transitions:
        rows.setdefault(move.trigger, set()).add((move.source, move.dest, move.actions))
    fixed = {name: shape.text for name, shape in spec.terminals.items() if isinstance(shape, Literal)}
    unlike: dict[object, str] = {}
    for name, text in fixed.items():
        nested = any(text != other and (text.startswith(other) or other.startswith(text)) for other in fixed.values())
        unlike.setdefault(name if nested else frozenset(rows.get(name, ())), text)
    return list(dict.fromkeys(unlike.values()))


@lru_cache(maxsize=256)
def critical_alphabet(name: str) -> tuple[str, ...]:
    """The symbols of a shipped format."""
    spec = toolgram.get_format(name).spec
    whole = markers(spec)
    torn = [part for marker in whole if len(marker) > 2 for part in (marker[:-1], marker[-1])]
    python = any(state.python for state in spec.states.values())
    tagged = any(state.meaning == "value" for state in spec.states.values())
    syntax = [*COMMON, *JSON, *(PYTHON if python else ()), *("'" if spec.python_json else "")]
    syntax += [*(TAGGED if tagged else ()), *("\n" if any("\n" in marker for marker in whole) else "")]
    return tuple(dict.fromkeys((*whole, *torn, *syntax)))


@lru_cache(maxsize=256)
def contexts(name: str) -> tuple[str, ...]:
    """The shortest beginnings of valid outputs that lead into each state of the machine, told apart by what came last.

    The empty one is not among them.
    """
    found, rng, values = walks(name), random.Random(0), OneValue(["x", {"b": 1}])
    fmt = toolgram.get_format(name)
    shortest: dict[tuple[str, str, int], str] = {}
    for word in covering_words(found):
        for _ in range(6):
            text = found.write(word, rng, values)
            parser = fmt.parser(prefix="", call_ids=str)
            depth = 0
            for at, character in enumerate(text, 1):
                parser.feed(character)
                depth += (character in "{[(") - (character in "}])")
                key = (parser.state, _kind(character), min(max(depth, 0), 3))
                if len(text[:at]) < len(shortest.get(key, text + " ")):
                    shortest[key] = text[:at]
    return tuple(sorted(set(shortest.values()), key=lambda text: (len(text), text)))


def _kind(character: str) -> str:
    if character in "{}[]()\"'\\:,=<>":
        return character
    return "blank" if character.isspace() else "other"
