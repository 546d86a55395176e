"""A machine as the text of a machine file: what a derived format writes, and the composed machine of any format.

Strategy: one entry a line, as a person would write it.  Values are JSON, which is YAML; a word that YAML reads as
itself is written without quotes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:[ .*-][A-Za-z0-9_*]+)*").fullmatch  # YAML reads it as the text that it is
_YAML_WORDS = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")


def machine_text(data: Mapping[str, Any], comment: str = "") -> str:
    """Return the text of a machine file with this data (`format` and `machine`), after a comment of one line."""
    lines = [f"# {comment}".rstrip()] if comment else []
    machine = data["machine"]
    lines += ["format:", *(f"  {key}: {_flow(value)}" for key, value in data["format"].items())]
    lines.append("machine:" if machine else "machine: {}")
    for key, value in machine.items():
        if value and isinstance(value, (list, tuple)):
            lines += [f"  {key}:", *(f"    - {_flow(entry)}" for entry in value)]
        else:
            lines.append(f"  {key}: {_flow(value)}")
    return "\n".join(lines) + "\n"


def _flow(value: Any) -> str:
    """Return a value on one line."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_flow(key)}: {_flow(each)}' for key, each in value.items())}}}"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return f"[{', '.join(map(_flow, value))}]"
    bare = isinstance(value, str) and _BARE(value) and value.lower() not in _YAML_WORDS
    return str(value) if bare else json.dumps(value, ensure_ascii=False)
