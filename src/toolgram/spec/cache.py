"""Specifications of shipped formats that were read and checked before, when the package was built.

Strategy: reading the two files takes Lark, YAML and all checks, tens of milliseconds that no server should spend on
files that have not changed since the wheel was built.  The build writes each checked specification as JSON, with a hash
of everything that it came from: both files, what grammars import, and the code that read them.  A specification whose
hash does not fit (somebody edited a grammar) is not used, and the files are read as ever.
"""

from __future__ import annotations

import os
from functools import cache

from toolgram.spec.as_json import checksum, dump, load, sealed, unsealed
from toolgram.spec.data import Spec

_HERE = os.path.dirname(os.path.realpath(__file__))
_PACKAGE = os.path.dirname(_HERE)
_HOME = os.path.join(_PACKAGE, "specs")
_FROM_FILES = ("grammar_path", "grammar_text", "machine_path", "import_paths")  # what is known without reading


def kept_spec(name: str, grammar: str, machine: str) -> Spec | None:
    """Return the specification of a shipped format as the build left it, or None if the files have changed."""
    try:
        data = unsealed(_bytes_of(os.path.join(_HOME, f"{name}.json")).decode())
        if data["hash"] != _hash(grammar, machine):
            return None
        paths = {"grammar_path": grammar, "machine_path": machine, "import_paths": [os.path.dirname(grammar)]}
        with open(grammar, encoding="utf-8") as file:
            text = file.read()
        return load(Spec, {**data["spec"], **paths, "grammar_text": text})
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def keep_spec(spec: Spec) -> str:
    """Write the specification of a shipped format for `kept_spec`. Return its path."""
    data = dump(spec)
    for name in _FROM_FILES:
        del data[name]
    os.makedirs(_HOME, exist_ok=True)
    path = os.path.join(_HOME, f"{spec.name}.json")
    content = {"hash": _hash(spec.grammar_path, spec.machine_path), "spec": data}
    with open(path, "w", encoding="utf-8") as out:
        out.write(sealed(content))
    return path


def _hash(grammar: str, machine: str) -> str:
    """Return the hash of everything that the specification of a shipped format comes from."""
    paths = (grammar, machine, *_common(grammar, ".lark"), *_common(machine, ".yaml"))
    named = (piece for path in paths for piece in (os.path.basename(path).encode(), _bytes_of(path)))
    return checksum((readers_hash().encode(), *named))


def _common(path: str, ending: str) -> list[str]:
    """Return the files of this kind that those beside `path` import, sorted."""
    folder = os.path.join(os.path.dirname(path), "common")
    return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(ending))


def _bytes_of(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()


def readers() -> list[str]:
    """Return the files of the code that reads and checks: this package, and what it imports."""
    own = (os.path.join(_HERE, name) for name in sorted(os.listdir(_HERE)) if name.endswith(".py"))
    return [*own, *(os.path.join(_PACKAGE, name) for name in ("call_ids.py", "limits.py"))]


@cache
def readers_hash() -> str:
    """Return the hash of the code that reads and checks files."""
    return checksum(_bytes_of(path) for path in readers())
