"""The terminals of free text that a grammar has to say and that follow from the machine: TEXT, THOUGHT, VALUE, and the
strings of a notation.

Strategy: free text is whatever no marker of its state begins in, and a value whatever nothing begins in that ends one.
Both are known once the format is compiled. `python -m tests.generators.free_text NAME ...` writes them into grammars.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import toolgram
from toolgram.derive.format_builder import slashed
from toolgram.program.compiling import compile_spec, value_ends
from toolgram.spec.data import Literal, Spec

LINE = re.compile(r"^(?:%override )?(TEXT|THOUGHT|VALUE|NOTATED_STRING)(?:\.-?\d+)?: /(.*)/$", re.MULTILINE)


def free_text(spec: Spec) -> dict[str, str]:
    """The regular expressions of these terminals, where the format has them, as they stand between slashes."""
    program = compile_spec(spec)
    found: dict[str, list[str]] = {"TEXT": [], "THOUGHT": [], "VALUE": []}
    roles = {"content": "TEXT", "reasoning": "THOUGHT"}
    for name, state in program.states.items():
        if state.meaning in roles and state.loops:
            markers = [trigger for trigger in state.row if isinstance(spec.terminals.get(trigger), Literal)]
            found[roles[state.meaning]] += [spec.terminals[marker].pattern for marker in markers]
        elif state.meaning == "value" and "value_end" not in state.row:
            found["VALUE"] += value_ends(spec, program, name)
            found["VALUE"] += [re.escape("<![CDATA[")] if state.typed == "xml" else []
    said = {name: f"(?:(?!{'|'.join(dict.fromkeys(ends))})[\\s\\S])+" for name, ends in found.items() if ends}
    for name, state in program.states.items():
        if state.typed == "notated":
            opening, closing = map(re.escape, spec.notation)
            ends = "|".join([closing, *value_ends(spec, program, name)])
            said["NOTATED_STRING"] = f"{opening}(?:(?!{ends})[\\s\\S])*{closing}"
    return {name: slashed(each) for name, each in said.items()}


def written(path: Path, spec: Spec) -> str:
    """The text of a grammar file with these terminals in it."""
    said = free_text(spec)
    return LINE.sub(
        lambda line: line[0].replace(f"/{line[2]}/", f"/{said[line[1]]}/") if line[1] in said else line[0],
        path.read_text("utf-8"),
    )


if __name__ == "__main__":
    for each in sys.argv[1:]:
        spec = toolgram.get_format(each).spec
        path = Path(spec.grammar_path)
        path.write_text(written(path, spec), "utf-8")
