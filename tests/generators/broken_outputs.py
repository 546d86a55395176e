"""Breakages: what models write by mistake, as random operations on a valid output.

Strategy: an output is a row of pieces (symbols of its grammar, or characters), and a breakage drops, doubles, swaps or
cuts pieces, or puts in a fragment of the format's own syntax. Choices come from a `random.Random`, so that the fuzz
command and Hypothesis break outputs in the same ways.
"""

import random
import re
from collections.abc import Sequence
from functools import lru_cache

import toolgram
from tests.generators.alphabet import contexts, markers

SYNTAX = (
    *"{}[]()\"':,=;\\ \n\t-.0a", "1", "12.5e-3", "true", "None", "null", "f", "é", "\\u00e9", "\\n", '"name"', '"f"',
    '"arguments"', '"parameters"', '"id": "abc123def"', '"type": "function"', '{"name": "f", "parameters": {',
    '{"name": "f", "arguments": {', '"a": 1', "}}", "}]", "[f(a=", ", b='", ")]", "{}", "hello", *"\x00\u00a0\ufeff",
    '", "b": "', '" + "', "' + '", ', b="', '"}")', '"}}" ', " // c]", "# }\n", '\\"', '"x', "x'", '/* c */"x"', "{ }",
)  # fmt: skip
SHORT = 40  # characters of a context that is still a fragment


def grammar_literals(name: str) -> tuple[str, ...]:
    """The string literals of a grammar: its markers, and whatever else it spells out."""
    found = re.findall(r'"((?:[^"\\\n]|\\.)+)"', re.sub(r"//.*", "", toolgram.get_format(name).grammar_text))
    return tuple(dict.fromkeys(literal.replace('\\"', '"').replace("\\\\", "\\") for literal in found))


@lru_cache(maxsize=256)
def fragments(name: str) -> tuple[str, ...]:
    """The pieces a format has to worry about: its markers, whole and torn, the beginnings of calls, and syntax."""
    whole = tuple(dict.fromkeys((*markers(toolgram.get_format(name).spec), *grammar_literals(name))))
    torn = tuple(piece for m in whole if len(m) > 3 for piece in (m[: len(m) // 2], m[len(m) // 2 :], m[:-1]))
    openings = tuple(text for text in contexts(name) if len(text) < SHORT)[::3]
    return whole * 3 + torn + openings + SYNTAX


def broken(name: str, pieces: Sequence[str], rng: random.Random) -> str:
    """The pieces, broken in one to four places."""
    row = list(pieces)
    for _ in range(rng.choice((1, 1, 2, 3, 4))):
        at = rng.randint(0, len(row))
        length = rng.choice((1, 1, 1, 2, 5, 12))
        piece = row[at : at + length]
        match rng.choice(("drop", "insert", "double", "swap", "reverse", "cut")):
            case "drop":
                del row[at : at + length]
            case "insert":
                row[at:at] = [rng.choice(fragments(name))]
            case "double":
                row[at:at] = piece
            case "swap":
                other = rng.randint(0, len(row))
                del row[at : at + length]
                row[other:other] = piece
            case "reverse":
                row[at : at + length] = piece[::-1]
            case _:
                del row[at:]
    return "".join(row)
