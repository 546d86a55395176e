"""Names that a grammar overrides and need not import: `%override TOOL_CALL: "<call>"` says that a file has them.

Strategy: Lark overrides only what is imported by its name.  So each name that is overridden, or that an override uses,
is added to the list of the first import whose file has it, unless the text defines or imports it: text in, text out.
Lines keep their numbers.  An imported file is what it is, so that Lark itself can load the result.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import NamedTuple

from toolgram.errors import FormatError
from toolgram.spec.declarations import DECLARED

Load = Callable[[str | None, str], tuple[str, str]]

_NAME = r"[?!]{0,2}([A-Za-z_]\w*)"
_CHANGED = re.compile(rf"^[ \t]*%(?:override|extend)[ \t]+{_NAME}([^\n]*(?:\n[ \t]*\|[^\n]*)*)", re.MULTILINE)
_NO_NAME = re.compile(r'"(?:[^"\\\n]|\\.)*"i?|//[^\n]*|/(?:[^/\\\n]|\\.)+/[imslux]*|->[ \t]*\w+')
_DEFINED = re.compile(rf"^[ \t]*{_NAME}(?:\.-?\d+)?[ \t]*(?:\{{[^}}\n]*\}}[ \t]*)?:", re.MULTILINE)
_LISTED = re.compile(r"^[ \t]*%import[ \t]+(\.?)([\w.]+)[ \t]*\(([^)\n]*)\)", re.MULTILINE)
_SINGLE = re.compile(r"^[ \t]*%import[ \t]+[\w.]*?(\w+)[ \t]*(?:->[ \t]*(\w+))?[ \t]*(?://.*)?$", re.MULTILINE)


class _Import(NamedTuple):
    """An import with a list: where the list ends, the file as it is named, its path, its text, and its names."""

    end: int
    file: str
    path: str
    text: str
    names: frozenset[str]


def with_computed_imports(text: str, path: str, load: Load) -> str:
    """Return the text of a grammar that imports what it overrides. Raises FormatError for a name that no file has."""
    overrides = [*_CHANGED.finditer(text)]
    own = _own_names(text)
    if all(name in own for found in overrides for name in (found[1], *_used(found[2]))):
        return text
    imports, readable = _imports(text, path, load)
    added: dict[int, dict[str, None]] = {}
    for found in overrides:
        for name in (found[1], *_used(found[2])):
            end = next((each.end for each in imports if name in each.names), None)
            if name not in own and end is not None:
                added.setdefault(end, {})[name] = None
            elif name not in own and name == found[1] and readable:
                raise _unknown(name, path, text.count("\n", 0, found.start(1)) + 1, imports, load)
    for end, names in sorted(added.items(), reverse=True):
        before = text[:end].rstrip()
        text = f"{before}{'' if before.endswith(('(', ',')) else ', '}{', '.join(names)}{text[end:]}"
    return text


def _used(body: str) -> list[str]:
    """Return the names in the body of a rule or terminal."""
    return re.findall(r"\b(?!\d)\w+", _NO_NAME.sub(" ", body))


def _imports(text: str, path: str, load: Load) -> tuple[list[_Import], bool]:
    """Return the imports with a list, and whether all of their files can be read. Lark reports those that cannot."""
    found, readable = [], True
    for each in _LISTED.finditer(text):
        try:
            place, other = load(
                os.path.split(path)[0] if each[1] else None, os.path.join(*each[2].split(".")) + ".lark"
            )
        except OSError:
            readable = False
        else:
            found.append(_Import(each.end(3), each[1] + each[2], str(place), other, frozenset(_own_names(other))))
    return found, readable


def _own_names(text: str) -> set[str]:
    """Return the names that a file defines, declares or imports by name."""
    names = {found[1] for found in _DEFINED.finditer(text)} | {found[2] or found[1] for found in _SINGLE.finditer(text)}
    names |= {name for found in DECLARED.finditer(text) for name in found[1].split()}
    return names | {name.strip() for found in _LISTED.finditer(text) for name in found[3].split(",")}


def _unknown(name: str, path: str, line: int, imports: list[_Import], load: Load) -> FormatError:
    for each in imports:  # the imports of an imported file are not searched; a remedy may be in them
        inner = next((one for one in _imports(each.text, each.path, load)[0] if name in one.names), None)
        if inner is not None:
            file = each.file[: each.file.rindex(".")] + inner.file if inner.file[0] == "." else inner.file
            problem = f"{name} is overridden, and only a file that {each.file} imports has it"
            return FormatError(path, problem, f"add `%import {file} ({name})`", line)
    names = sorted({name for each in imports for name in each.names})
    near = get_close_matches(name[:100], names, 3)
    return FormatError(
        path,
        f"{name} is overridden, and no imported file has it",
        f"override {' or '.join(near)}, or define {name}" if near else f"define {name}, without `%override`",
        line,
    )
