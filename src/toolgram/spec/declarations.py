"""Terminals that a grammar declares and does not define: `%declare TEXT THOUGHT`.

Strategy: free text and values follow from the machine, so a grammar only names them.  What they are is computed once
the machine is compiled (`program.free_text`).  This module knows their names, and writes their definitions into the
text of a grammar: in place of its declarations, or as `%override` if an imported file declares them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from toolgram.errors import FormatError
from toolgram.spec.data import State

# what may be declared -> the tag of the states that read it
FREE_TEXT = {"TEXT": "content", "THOUGHT": "reasoning", "VALUE": "value", "NOTATED_STRING": "notated"}

DECLARED = re.compile(r"^[ \t]*%declare\b([^/#\n]*)", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*%import[ \t]+(\.?[\w.]+)[ \t]*(\()?", re.MULTILINE)


def short_name(name: str) -> str:
    """Return the name of a rule or terminal, without the prefix of its import."""
    return name if name.startswith("__") else name.rpartition("__")[2]


def check_declared(names: Iterable[str], text: str, path: str) -> None:
    """Raise FormatError for a declared name that nothing defines: one that does not follow from a machine, or that
    comes from a file which the grammar does not import itself."""
    modules = _modules(text)
    for name in names:
        prefix, short = name.removesuffix(short_name(name)), short_name(name)
        if short not in FREE_TEXT:
            raise FormatError(
                path,
                f"`%declare` names {short}, which does not follow from a machine",
                f"define {short}, or declare one of {', '.join(FREE_TEXT)}",
                declared_line(text, short),
            )
        if prefix and prefix.islower() and prefix not in modules:
            raise FormatError(
                path,
                f"{short} is declared in a file that another imported file imports",
                f"import it there by its name: %import .other ({short})",
            )


def check_meanings(names: Iterable[str], states: Collection[State], text: str, path: str) -> None:
    """Raise FormatError for a declared name that no state of the machine reads."""
    read = {state.meaning for state in states} | {state.typed for state in states}
    for name in map(short_name, names):
        tag = FREE_TEXT[name]
        if tag not in read:
            raise FormatError(
                path,
                f"{name} is declared, and no state of the machine has the tag `{tag}`",
                f"remove {name} from `%declare`, and from the rules",
                declared_line(text, name),
            )


def declared_line(text: str, name: str) -> int:
    """Return the line on which a grammar declares `name`; 0 if it does not."""
    return next(
        (text.count("\n", 0, found.end()) + 1 for found in DECLARED.finditer(text) if name in found[1].split()), 0
    )


def with_definitions(text: str, declared: Iterable[str], expressions: Mapping[str, str], priority: str) -> str:
    """Return the text of a grammar with the regular expression of each declared terminal. TEXT has the priority."""
    return "\n".join([DECLARED.sub("", text).rstrip("\n"), *_definitions(text, declared, expressions, priority)]) + "\n"


def _definitions(text: str, declared: Iterable[str], expressions: Mapping[str, str], priority: str) -> Iterator[str]:
    own = {name for found in DECLARED.finditer(text) for name in found[1].split()}
    modules, taken = _modules(text), set(re.findall(r"^[ \t]*([A-Z]\w*)", text, re.MULTILINE)) | {*declared}
    for name in declared:
        short = short_name(name)
        prefix = name.removesuffix(short)
        if prefix in modules:
            name = short if short not in taken else f"{prefix.upper()}{short}"
            taken.add(name)
            yield f"%import {modules[prefix]}.{short} -> {name}"
        override = "" if name in own else "%override "
        yield f"{override}{name}{priority if short == 'TEXT' else ''}: /{slashed(expressions[short])}/"


def _modules(text: str) -> dict[str, str]:
    """Return the files from which a grammar imports, by the prefix that Lark gives to what it does not name."""
    found = {}
    for path, names in _IMPORT.findall(text):
        module = path if names else path.rpartition(".")[0]
        found[module.strip(".").replace(".", "__") + "__"] = module
    return found


_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def slashed(pattern: str) -> str:
    """Write a regular expression as Lark files do, between slashes."""
    pattern = re.sub(r"(?<!\\)((?:\\\\)*)/", r"\1\\/", pattern)
    return re.sub(r"\\?([\n\t\r])", lambda match: _ESCAPES[match.group(1)], pattern)
