"""`toolgram explain` as its users meet it."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console
from typer.testing import Result

import toolgram
from tests.cli import running
from tests.properties.selection import every_format
from toolgram.bulk.json_rows import CONTROLS
from toolgram.cli import terminal

V3_CALL = '[TOOL_CALLS] [{"name": "add", "arguments": {"a": 1}}]'
V11_CALL = '[TOOL_CALLS]add[ARGS]{"a": 1}'
HOSTILE = f"{running.HOSTILE}\n"


def run(*arguments: str, text: str = "") -> Result:
    return running.run("explain", *arguments, text=text)


def test_repeated_self_loops_are_one_line_and_what_the_prompt_did_has_no_offset() -> None:
    result = run("-f", "llama3_json", text='{"name": "f", "id": "1", "id": "2", "id": "3", "parameters": {}}')
    assert sum("map_key item.id" in line for line in result.output.splitlines()) == 3
    result = run("-f", "mistral_v3", text=f"[TOOL_CALLS][TOOL_CALLS][TOOL_CALLS]{V3_CALL}")
    assert any(line.split()[1:3] == ["TOOL_CALLS", "x3"] for line in result.output.splitlines())
    result = run("-f", "mistral_v11", "--prefix", "[THINK]", text=f"Hm.[/THINK]{V11_CALL}")
    assert any(line.split() == ["prompt", "THINK", "REASONING"] for line in result.output.splitlines())


def test_json_is_the_explanation_itself() -> None:
    text = f"Sure. {V11_CALL} and {HOSTILE}"
    result = run("-f", "mistral_v11", "--json", text=text)
    document = json.loads(result.output)
    explained = toolgram.get_format("mistral_v11").explain(text).to_dict()
    for one in (document, explained):
        for call in one["message"]["tool_calls"]:
            del call["id"]
    assert document == explained
    assert len(result.output.splitlines()) == 1
    assert not CONTROLS.search(result.output)


@every_format
@pytest.mark.parametrize("tail", ["", V11_CALL, '{"name": "\x1b[2J\\n", "parameters": {"a\x1b": 1}}', "[f(a='\x9b')]"])
def test_the_terminal_is_never_commanded(name: str, tail: str) -> None:
    result = run("-f", name, text=HOSTILE + tail + HOSTILE)
    assert not CONTROLS.search(result.output)


def test_colours_where_there_are_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()

    def console(**options: Any) -> Console:
        return Console(file=screen, force_terminal=True, color_system="truecolor", width=80, **options)

    monkeypatch.setattr(terminal, "Console", console)
    monkeypatch.delenv("NO_COLOR", raising=False)
    run("-f", "mistral_v11", text=f"{HOSTILE}[TOOL_CALLS]f! {V11_CALL}")
    shown = screen.getvalue()
    assert '\x1b[33m{"a": 1}' in shown
    assert "\x1b[32mcommitted" in shown
    assert "\x1b[31mrejected" in shown
    assert "\\x1b[31m bell" in shown
    assert "]0;owned\x07" not in shown
