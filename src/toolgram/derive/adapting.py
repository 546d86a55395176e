"""Adapt a shipped format to a template: to its own prompt, blanks, and tokens that end a turn.

Strategy: the two files of the shipped format, with what the template adds written into them.  A token that ends a turn
is added beside one that the format knows: in the grammar it may be wherever that one may, in the machine it follows
from `stop:`.  The specification is changed in the same places, not read back from the files, which would cost more than
the derivation; a test reads them back for every shipped format, and proves them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from toolgram.derive.format_builder import quoted
from toolgram.formats import Format, get_format, grammar_home
from toolgram.program.look_ahead import TooManyWays
from toolgram.spec.data import Literal, Spec
from toolgram.spec.declarations import slashed
from toolgram.spec.faults import faults

_NAME = "TURN_END"
_DEFINED = re.compile(r"(?:%(?:override|extend) )?[?!]?(_*[A-Za-z]\w*)(?:\.-?\d+)?:")
_PIECE = re.compile(r"%import \.common\.(\w+) \(([^)]*)\)")
_STOP = re.compile(r"^  stop: \[[^\]\n]*\]$", re.MULTILINE)
_SPECIAL = re.compile(r"^  special_tokens: .*\n(?:    .*\n)*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a template has around an output: the end of its prompt, the blanks with which a turn begins, those before
    the token that ends one, and tokens that do. `special` are texts that are tokens of their own, if a format has
    them."""

    generation_prompt: str = ""
    turn_start: str = ""
    turn_end: str = ""
    ends: tuple[str, ...] = ()
    special: tuple[str, ...] = ()


@lru_cache(maxsize=64)
def adapted(name: str, around: Surroundings) -> Format | None:
    """Return the shipped format of this name, adapted; None if a token that ends turns cannot be added."""
    fmt = get_format(name)
    spec, machine = fmt.spec, fmt.machine_text
    for text in around.ends:
        if text not in _literals(spec).values():
            added = _with_end(spec, machine, text)
            if added is None:
                return None
            spec, machine = added
    said: dict[str, Any] = {key: getattr(around, key) for key in ("generation_prompt", "turn_start", "turn_end")}
    also = [name for name, text in _literals(spec).items() if text in around.special]
    said["special_tokens"] = (*spec.special_tokens, *(name for name in also if name not in spec.special_tokens))
    if spec is fmt.spec and all(getattr(spec, key) == value for key, value in said.items()):
        return fmt
    machine_json = json.dumps(_saying(spec.machine_dict, said), ensure_ascii=False)
    changed = Format(replace(spec, **said, machine_json=machine_json), _with_lines(machine, said))
    if not around.ends:
        return changed
    try:
        _ = changed.program
    except TooManyWays:  # a token may begin as another marker does, or lead on in too many ways
        return None
    return changed if next(faults(changed.spec), None) is None else None


def named(fmt: Format, name: str) -> Format:
    """Return a format under another name, in its machine file as well."""
    if fmt.name == name:
        return fmt
    data = fmt.machine_dict
    data["machine"] = {**data["machine"], "name": name}
    line = f"  name: {json.dumps(name, ensure_ascii=False)}\n"
    machine = re.sub(r"^machine:\n", lambda match: match[0] + line, fmt.machine_text, count=1, flags=re.MULTILINE)
    spec = replace(fmt.spec, name=name, machine_json=json.dumps(data, ensure_ascii=False))
    return Format(spec, machine, fmt.report)


def _literals(spec: Spec) -> dict[str, str]:
    return {name: shape.text for name, shape in spec.terminals.items() if isinstance(shape, Literal)}


def _with_end(spec: Spec, machine: str, text: str) -> tuple[Spec, str] | None:
    """Return the specification and the machine file with one more end of turn; None if no known one shows its place."""
    number = sum(name.startswith(_NAME) for name in spec.terminals) + 1
    name = f"{_NAME}_{number}"
    elsewhere = _SPECIAL.sub("", _STOP.sub("", machine))
    for known in map(spec.terminals.get, spec.stop or () if _STOP.search(machine) else ()):
        if not isinstance(known, Literal) or re.search(rf"\b{known.name}\b", elsewhere):
            continue  # it has rows besides those that follow from `stop:`
        grammar = _grammar_with(spec.grammar_text, known, Literal(name, text))
        if grammar is not None:
            lists = {"stop": [*(spec.stop or ()), name], "special_tokens": [*spec.special_tokens, name]}
            data = _saying(spec.machine_dict, lists)
            rows = data["machine"]["transitions"]
            rows += [{**row, "trigger": name} for row in rows if row["trigger"] == known.name]
            more = (row._replace(trigger=name) for row in spec.transitions if row.trigger == known.name)
            changed = replace(
                spec,
                stop=tuple(lists["stop"]),
                special_tokens=tuple(lists["special_tokens"]),
                transitions=(*spec.transitions, *more),
                terminals={**spec.terminals, name: Literal(name, text)},
                grammar_text=grammar,
                machine_json=json.dumps(data, ensure_ascii=False),
            )
            return changed, _with_lines(machine, lists)
    return None


def _grammar_with(grammar: str, known: Literal, new: Literal) -> str | None:
    """Return the grammar in which a new terminal may be wherever a known one may, and no text contains it; None if no
    rule names the known one. What comes from pieces and names it is written out."""
    lines = [_also(line, known, new) for line in _statements(grammar)]
    own = {_symbol(line) for line in lines}
    for at, line in enumerate(lines[:]):
        piece = _PIECE.match(line)
        if piece is None:
            continue
        names = dict.fromkeys(piece[2].split(", "))
        for said in _statements((grammar_home() / "common" / f"{piece[1]}.lark").read_text(encoding="utf-8")):
            symbol, changed = _symbol(said), _also(said, known, new)
            if changed != said and symbol not in own:
                own.add(symbol)
                lines.append(f"%override {changed}")
                used = re.findall(r"\b_*[A-Za-z]\w*\b", said.partition("//")[0])
                names |= dict.fromkeys(used if _is_rule(symbol) else [symbol])
        lines[at] = f"%import .common.{piece[1]} ({', '.join(names)})"
    if not any(_is_rule(_symbol(line)) and re.search(rf"\b{new.name}\b", line) for line in lines):
        return None
    return "\n".join([*lines, f"{new.name}: {quoted(new.text)}"]) + "\n"


def _also(line: str, known: Literal, new: Literal) -> str:
    """Return a line of a grammar in which the new terminal may stand for the known one, or a text without either."""
    symbol = _symbol(line)
    if _is_rule(symbol):
        return re.sub(rf"\b{known.name}\b", f"({known.name} | {new.name})", line)
    found, added = (slashed(re.escape(shape.text)) for shape in (known, new))
    return line.replace(found, f"(?:{found}|{added})") if symbol and "/" in line else line


def _statements(grammar: str) -> list[str]:
    """Return the lines of a grammar, those of one rule joined."""
    return re.sub(r"\n[ \t]+\|", " |", grammar).splitlines()


def _symbol(line: str) -> str:
    """Return the rule or terminal that a line of a grammar defines; "" if it defines none."""
    match = _DEFINED.match(line)
    return match[1] if match else ""


def _is_rule(symbol: str) -> bool:
    return symbol.lstrip("_")[:1].islower()


def _saying(data: dict[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """Return a machine as data with other entries in `format:`; what is empty is left out."""
    about = {key: value for key, value in {**data["format"], **said}.items() if key not in said or value}
    return {**data, "format": about}


def _with_lines(machine: str, said: Mapping[str, str | Sequence[str]]) -> str:
    """Return the text of a machine file with other entries in `format:`, each on a line; what is empty is left out."""
    for key in said:
        machine = re.sub(rf"^  {key}: .*\n(?:    .*\n)*", "", machine, flags=re.MULTILINE)
    lines = "".join(f"  {key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in said.items() if value)
    return re.sub(r"^format:\n", lambda match: match[0] + lines, machine, count=1, flags=re.MULTILINE)
