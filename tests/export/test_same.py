"""Exports change on purpose only: `python -m tests.export.test_same` writes what they are, after a look at them."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import toolgram
from tests.export.schema_pool import pool
from toolgram.export import TARGETS

KEPT = Path(__file__).with_name("same.json")
SCHEMAS = sorted(pool().items())
ASKED: list[dict[str, Any]] = [
    {"tool_choice": "auto"}, {"tool_choice": "required", "length_limits": True, "parallel_tool_calls": False},
    {"tool_choice": ["f_1"], "open_objects": True}, {"tool_choice": "none", "json_schema": SCHEMAS[7][1]},
]  # fmt: skip


def digest(name: str) -> str:
    """A digest of a format's exports for each target, with other schemas of the pool for each format."""
    fmt, at = toolgram.get_format(name), toolgram.format_names().index(name)
    tools = [{"name": f"f_{k}", "parameters": SCHEMAS[(7 * at + k) % len(SCHEMAS)][1]} for k in range(7)]
    made = hashlib.sha256()
    for target in TARGETS:
        for asked in ASKED:
            try:
                made.update(repr(fmt.export(target, tools, **asked)).encode())
            except toolgram.ToolgramError as error:
                made.update(str(error).encode())
    return made.hexdigest()[:16]


@pytest.mark.parametrize("name", toolgram.format_names())
def test_the_exports_of_a_format_are_the_same(name: str) -> None:
    assert digest(name) == json.loads(KEPT.read_text("utf-8"))[name]


if __name__ == "__main__":
    KEPT.write_text(json.dumps({name: digest(name) for name in toolgram.format_names()}, indent=0) + "\n", "utf-8")
