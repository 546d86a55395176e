"""`toolgram doctor`: whether a named format reads what a template writes, and which one does."""

import json
import re
from pathlib import Path

import pytest

import toolgram
from tests.cli.running import run as command_line
from tests.derive.turns import TEMPLATES, source, template_of
from toolgram.cli.doctor import outputs_in
from toolgram.derive.doctor import diagnose

TEMPLATE = template_of("<tool_call>\n{{ c.function|tojson }}\n</tool_call>")


def run(*arguments: str) -> tuple[int, str]:
    result = command_line("doctor", *arguments)
    return result.exit_code, result.output


@pytest.fixture
def hermes(tmp_path: Path) -> str:
    path = tmp_path / "template.jinja"
    path.write_text(TEMPLATE, encoding="utf-8")
    return str(path)


def test_a_format_that_reads_all_and_one_that_does_not(hermes: str) -> None:
    status, text = run(hermes, "--format", "hermes")
    assert status == 0, text
    assert text.startswith("hermes reads 20 of 20 messages")
    status, text = run(hermes, "--format", "mistral_v3")
    assert status == 1
    assert "The first that it does not (one call): " in text
    assert "<tool_call>" in text
    assert "hermes reads 20 of 20: use that." in text
    status, text = run(hermes, "--format", "mistral_v3", "--json")
    data = json.loads(text)
    assert (status, data["ok"], data["better"], data["first"]["case"]) == (1, False, "hermes", "one call")


def test_where_no_shipped_format_reads_more() -> None:
    status, text = run(str(TEMPLATES / "lenticular.jinja"), "--format", "hermes")
    assert status == 1
    assert re.search(r"No shipped format reads more. The one derived from the template reads (\d+) of \1: ", text)


def test_outputs_that_are_read_otherwise(hermes: str, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    call = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    rows.write_text("\n".join(json.dumps(row) for row in ("Hello.", {"output": call}, {"text": "Bye."})))
    status, text = run(hermes, "--format", "mistral_v3", "--outputs", str(rows))
    assert status == 1
    assert "It reads 1 of 3 outputs unlike the derived one" in text
    assert run(hermes, "--format", "hermes", "--outputs", str(rows))[0] == 0


def test_a_template_without_calls_is_said_to_tell_little() -> None:
    found = diagnose(toolgram.get_format("hermes"), toolgram.derive_format(source("no_tools")))
    assert any("prints no calls" in note for note in found.notes)


@pytest.mark.parametrize(
    ("text", "outputs"),
    [
        ('"a"\n"b"\n', ["a", "b"]), ('{"output": "a"}', ["a"]), ("plain\ntext", ["plain\ntext"]),
        ('{"name": "f"}', ['{"name": "f"}']), ("", []),
    ],
)  # fmt: skip
def test_outputs_in_a_file(text: str, outputs: list[str]) -> None:
    assert outputs_in(text) == outputs
