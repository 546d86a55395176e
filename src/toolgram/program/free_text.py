"""What a grammar declares and the machine defines: free text, thoughts, values, and the strings of a notation.

Strategy: free text is whatever does not begin a marker of its state, and a value whatever does not begin what ends it.
Both are known once the format is compiled.  A grammar with these definitions is what Lark, `check` and the reference
parser read; the runtime needs none of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from toolgram.program.compiling import compile_spec
from toolgram.program.state import Program
from toolgram.program.values import value_ends
from toolgram.spec.data import Literal, Spec
from toolgram.spec.declarations import FREE_TEXT, with_definitions
from toolgram.spec.grammar_file import with_imports

_NOWHERE = r"(?!)[\s\S]"  # of a specification without the states that read it


def whole_grammar(spec: Spec) -> str:
    """Return the grammar that Lark parses outputs with: declared terminals are defined, overridden names imported."""
    text = with_imports(spec.grammar_text, spec.grammar_path, spec.import_paths)
    if not spec.declared:
        return text
    priority = ".-1" if spec.parser == "lalr" else ""  # if a marker may follow, it is not text
    return with_definitions(text, spec.declared, free_text(spec), priority)


def free_text(spec: Spec) -> dict[str, str]:
    """Return the regular expression of each terminal that may be declared."""
    program = compile_spec(spec)
    ends: dict[str, list[str]] = {}
    for name, state in program.states.items():
        if state.meaning == "content" and state.loops:
            ends.setdefault("TEXT", []).extend(_markers(spec, state.row))
        elif state.meaning == "reasoning" and state.loops:
            ends.setdefault("THOUGHT", []).extend(_markers(spec, state.row))
        elif state.meaning == "value" and "value_end" not in state.row:
            ends.setdefault("VALUE", []).extend(value_ends(spec, program, name))
            ends["VALUE"] += [re.escape("<![CDATA[")] if state.typed == "xml" else []
    strings = any(state.typed == "string" for state in program.states.values())
    found = {name: f"{_any_but(each, strings)}+" for name, each in ends.items()}
    return {**dict.fromkeys(FREE_TEXT, _NOWHERE), **found, **_notated_string(spec, program)}


def _markers(spec: Spec, triggers: Iterable[str]) -> list[str]:
    shapes = (spec.terminals.get(trigger) for trigger in triggers)
    return [shape.pattern for shape in shapes if isinstance(shape, Literal)]


def _any_but(ends: Iterable[str], strings: bool = False) -> str:
    """Return one character with which none of `ends` begins, or in `strings` of JSON an escaped one."""
    unlike = "|".join(dict.fromkeys(ends))
    escaped = r"\\.|" if strings else ""
    return rf"(?:{escaped}(?!{unlike})[\s\S])" if unlike else r"[\s\S]"


def _notated_string(spec: Spec, program: Program) -> dict[str, str]:
    for name, state in program.states.items():
        if state.typed == "notated":
            opening, closing = map(re.escape, spec.notation)
            return {"NOTATED_STRING": f"{opening}{_any_but([closing, *value_ends(spec, program, name)])}*{closing}"}
    return {}
