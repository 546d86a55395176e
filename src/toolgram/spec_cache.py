"""Specifications of shipped formats that were read and checked before, when the package was built.

Strategy: reading the two files takes Lark, YAML and all checks, tens of milliseconds that no server should spend on
files that have not changed since the wheel was built.  The build writes each checked specification as JSON, with a hash
of everything that it came from: both files, what grammars import, and the code that read them.  A specification whose
hash does not fit (somebody edited a grammar) is not used, and the files are read as ever.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from toolgram.spec import Spec
from toolgram.spec_data import dump_spec, load_spec, sealed, unsealed

_PACKAGE = Path(__file__).resolve().parent
_READERS = (
    "call_flow.py", "call_ids.py", "composition.py", "faults.py", "grammar_file.py", "grammar_size.py",
    "machine_checks.py", "machine_file.py", "spec.py", "spec_building.py", "spec_data.py", "spec_files.py",
    "vocabulary.py",
)  # fmt: skip
_HOME = _PACKAGE / "specs"
_FROM_FILES = ("grammar_path", "grammar_text", "machine_path", "import_paths")  # what is known without reading


def kept_spec(name: str, grammar: Path, machine: Path) -> Spec | None:
    """The specification of a shipped format as the build left it, or None if there is none for these very files."""
    try:
        data = unsealed((_HOME / f"{name}.json").read_text(encoding="utf-8"))
        if data["hash"] != _hash(grammar, machine):
            return None
        paths = {"grammar_path": str(grammar), "machine_path": str(machine), "import_paths": [str(grammar.parent)]}
        return load_spec({**data["spec"], **paths, "grammar_text": grammar.read_text(encoding="utf-8")})
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def keep_spec(spec: Spec) -> Path:
    """Write the specification of a shipped format for `kept_spec`. Returns where."""
    data = dump_spec(spec)
    for name in _FROM_FILES:
        del data[name]
    _HOME.mkdir(exist_ok=True)
    path = _HOME / f"{spec.name}.json"
    content = {"hash": _hash(Path(spec.grammar_path), Path(spec.machine_path)), "spec": data}
    path.write_text(sealed(content), encoding="utf-8")
    return path


def _hash(grammar: Path, machine: Path) -> str:
    """Of everything that the specification of a shipped format comes from."""
    common = [*sorted((grammar.parent / "common").glob("*.lark")), *sorted((machine.parent / "common").glob("*.yaml"))]
    digest = hashlib.sha256(readers_hash().encode())
    for path in (grammar, machine, *common):
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


@cache
def readers_hash() -> str:
    """Of the code that reads and checks files."""
    digest = hashlib.sha256()
    for name in _READERS:
        digest.update((_PACKAGE / name).read_bytes())
    return digest.hexdigest()
