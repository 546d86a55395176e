"""Calls against their schemas: every fault with its path, nothing fetched, nothing that takes long."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import toolgram
from tests.cli.running import run
from tests.tables import table
from tests.work import at_most
from toolgram.tools import validation
from toolgram.tools.validation import CheckedCall

FMT = toolgram.get_format("hermes")


def tool(name: str = "book", **schema: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", **schema}}}


TOOLS = table(__file__, "tools")
BOOK = TOOLS["book"]


def call(arguments: Any, name: str = "book") -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def check(text: str, *tools: Any) -> list[CheckedCall]:
    return FMT.parse(text).validate(tools)


@pytest.mark.parametrize("name", table(__file__, "checked"))
def test_a_call_is_checked(name: str) -> None:
    row = table(__file__, "checked")[name]
    text = row["text"] if "text" in row else call(row["arguments"], row.get("name", "book"))
    tools = [TOOLS[each] for each in row["tools"]] if "tools" in row else None
    (found,) = FMT.parse(text, finish_reason=row.get("finish_reason")).validate(tools)
    assert (sorted(fault.path for fault in found.faults), found.notes) == (row["paths"], ())
    assert (found.is_valid, found.reply == "") == (not row["paths"],) * 2
    assert [words for words in row.get("says", ()) if words not in found.reply] == []
    assert "problem" not in row or found.faults[0].problem == row["problem"]
    assert found.is_valid or found.reply.startswith(f"The call of {found.name} was not made:")


def test_a_reply_is_short() -> None:
    (found,) = check(call({}, "x" * 100_000), BOOK)
    assert len(found.reply) < 1_000


def test_a_pattern_that_would_take_seconds_takes_none() -> None:
    slow = tool(properties={"a": {"type": "string", "pattern": "^(a+)+$"}})
    with at_most(calls=100_000):  # and an expression that tries all ways would not end
        (found,) = check(call({"a": "a" * 5_000 + "b"}), slow)
    assert not found.is_valid


@pytest.mark.parametrize("pattern", ["(?=a)b", r"(a)\1", "(", r"^(\w{1,1000}){1,1000}$"])
def test_a_pattern_that_is_not_supported_is_a_note(pattern: str) -> None:
    schema = {"a": {"type": "string", "pattern": pattern}, "n": {"type": "integer"}}
    (found,) = check(call({"a": "x", "n": "no"}), tool(properties=schema, patternProperties={"(?!x)": {}}))
    assert [fault.path for fault in found.faults] == ["n"], "the rest is checked"
    assert len(found.notes) == 2
    assert "properties.a: the pattern" in " ".join(found.notes)


@pytest.mark.parametrize("schema", table(__file__, "a_schema_that_cannot_be_used_is_a_note"))
def test_a_schema_that_cannot_be_used_is_a_note(schema: dict[str, Any]) -> None:
    (found,) = check(call({"a": "x"}), tool(**schema))
    assert found.is_valid
    assert "were not checked" in found.notes[0]


def test_a_schema_that_is_no_json_or_too_deep() -> None:
    deep: dict[str, Any] = {}
    inner = deep
    for _ in range(3_000):
        inner["items"] = inner = {}
    for odd in ({"a": deep}, {"a": {1, 2}}):
        (found,) = check(call({"a": "x"}), tool(properties=odd))
        assert "were not checked" in found.notes[0]


def test_deep_arguments_and_many_faults() -> None:
    text = f'<tool_call>\n{{"name": "book", "arguments": {{"to": {"[" * 90}{"]" * 90}}}}}\n</tool_call>'
    assert check(text, BOOK)[0].faults
    (found,) = check(call({f"k{number}": number for number in range(100)}), tool(additionalProperties={"type": "null"}))
    assert len(found.faults) == 21
    assert len(found.reply) < 7_000


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    validation._validator.cache_clear()
    with pytest.raises(toolgram.ToolgramError, match=r"\[validate\]"):
        check(call({}), BOOK)


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps([BOOK]))
    (tmp_path / "good.txt").write_text(call({"to": "Rome"}))
    (tmp_path / "bad.txt").write_text(call({"to": 3}))
    (tmp_path / "rows.jsonl").write_text(json.dumps({"output": call({"to": 3})}))
    tools = ["--tools", str(tmp_path / "tools.json")]
    parse = ["parse", "-f", "hermes", *tools, "--validate"]
    good = run(*parse, str(tmp_path / "good.txt"))
    assert good.exit_code == 0
    assert json.loads(good.stdout)["validation"][0]["valid"] is True
    bad = run(*parse, str(tmp_path / "bad.txt"))
    assert bad.exit_code == 1
    assert json.loads(bad.stdout)["validation"][0]["faults"] == [{"path": "to", "problem": '3 is not of type "string"'}]
    rows = run(*parse, "--jsonl", "output", str(tmp_path / "rows.jsonl"))
    assert json.loads(rows.stdout)["message"]["validation"][0]["valid"] is False
    assert run("parse", "-f", "hermes", "--validate", "x").exit_code == 2
    assert run(*parse, "--events", "x").exit_code == 2
