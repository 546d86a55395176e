"""Specifications of shipped formats that were read and checked before, when the package was built.

Strategy: reading the two files takes Lark, YAML and all checks, tens of milliseconds that no server should spend on
files that have not changed since the wheel was built.  The build writes each checked specification as JSON, with a hash
of everything that it came from: both files, what grammars import, and the code that read them.  A specification whose
hash does not fit (somebody edited a grammar) is not used, and the files are read as ever.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from toolgram.spec import Literal, Run, Spec, State, Transition

_PACKAGE = Path(__file__).resolve().parent
_READERS = ("spec.py", "spec_files.py", "faults.py")
_HOME = _PACKAGE / "specs"


def kept_spec(name: str, grammar: Path, machine: Path) -> Spec | None:
    """The specification of a shipped format as the build left it, or None if there is none for these very files."""
    try:
        data = json.loads((_HOME / f"{name}.json").read_bytes())
        if data.pop("hash") != _hash(grammar, machine):
            return None
        return _load(data, grammar, machine)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def keep_spec(spec: Spec) -> Path:
    """Write the specification of a shipped format for `kept_spec`. Returns where."""
    grammar, machine = Path(spec.grammar_path), Path(spec.machine_path)
    data: dict[str, Any] = {"hash": _hash(grammar, machine), **asdict(spec)}
    for name in ("grammar_path", "grammar_text", "machine_path", "import_paths"):
        del data[name]
    data["states"] = [list(state.values()) for state in data["states"].values()]
    data["transitions"] = [list(transition.values()) for transition in data["transitions"]]
    data["terminals"] = [list(terminal.values()) for terminal in data["terminals"].values()]
    _HOME.mkdir(exist_ok=True)
    path = _HOME / f"{spec.name}.json"
    path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
    return path


def _load(data: dict[str, Any], grammar: Path, machine: Path) -> Spec:
    states = [State(*state) for state in data.pop("states")]
    transitions = [
        Transition(trigger, source, dest, tuple(actions), line)
        for trigger, source, dest, actions, line in data.pop("transitions")
    ]
    terminals = [Literal(*shape) if len(shape) == 2 else Run(*shape) for shape in data.pop("terminals")]
    return Spec(
        **{**data, "special_tokens": tuple(data["special_tokens"]), "notation": tuple(data["notation"])},
        grammar_path=str(grammar),
        grammar_text=grammar.read_text(encoding="utf-8"),
        machine_path=str(machine),
        import_paths=(str(grammar.parent),),
        states={state.name: state for state in states},
        transitions=transitions,
        terminals={terminal.name: terminal for terminal in terminals},
    )


def _hash(grammar: Path, machine: Path) -> str:
    """Of everything that the specification of a shipped format comes from."""
    common = sorted((grammar.parent / "common").glob("*.lark"))
    readers = [_PACKAGE / name for name in _READERS]
    digest = hashlib.sha256()
    for path in (grammar, machine, *common, *readers):
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()
