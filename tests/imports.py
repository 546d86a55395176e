"""Which modules of the package import which, read from the sources; late imports and those for types alone count."""

from __future__ import annotations

import ast
from collections.abc import Collection
from pathlib import Path

Imports = dict[str, set[str]]


def imports_of(package: Path) -> Imports:
    """Return, per module, the modules of the same package that it names in an import anywhere in its file."""
    files = {_name(package, path): path for path in sorted(package.rglob("*.py"))}
    return {name: _imported(path, files.keys()) - {name} for name, path in files.items()}


def _name(package: Path, path: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def _imported(path: Path, modules: Collection[str]) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for each in node.names:
                whole = f"{node.module}.{each.name}"
                found.add(whole if whole in modules else node.module)
    return {each for each in found if each in modules}


def circles(imports: Imports) -> list[list[str]]:
    """Return every group of modules of which each imports, perhaps by way of others, all the others."""
    reached = {name: _reached(imports, name) for name in imports}
    groups = {tuple(sorted(each for each in reached[name] if name in reached[each])) for name in imports}
    return sorted(list(group) for group in groups if group)


def _reached(imports: Imports, start: str) -> set[str]:
    found: set[str] = set()
    left = [start]
    while left:
        fresh = imports[left.pop()] - found
        found |= fresh
        left += fresh
    return found


def one_way_round(imports: Imports, group: list[str]) -> str:
    """Return a shortest way from a module of a circle back to it, to be shown."""
    ways = [[group[0]]]
    for way in ways:
        for each in sorted(imports[way[-1]] & set(group)):
            if each == group[0]:
                return " -> ".join([*way, each])
            if each not in way:
                ways.append([*way, each])
    raise AssertionError(f"not a circle: {group}")
