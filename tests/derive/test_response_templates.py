"""The response templates of transformers: written from a derived format."""

import json
import re

import pytest

import toolgram
from tests.cli.running import run
from tests.derive.turns import derived
from tests.integrations.cases import TOOLS, cases
from toolgram.response_templates import LEFT_AROUND, LEFT_OUT, write_response_template


def test_the_header_of_a_derived_format_is_the_anchor() -> None:
    written = write_response_template(derived("thinking_opened"))
    assert written.template["start_anchor"] == "<|assistant|>\n"
    assert written.template["fields"]["thinking"] == {"open": "<think>", "close": "</think>", "content": "text"}
    assert written.template["fields"]["tool_calls"]["close_pattern"] == r"</tool_call>\s*"


@pytest.mark.parametrize("name", ["python_calls", "bare_lines"])
def test_what_cannot_be_expressed_is_noted(name: str) -> None:
    written = write_response_template(derived(name))
    assert "tool_calls" not in written.template["fields"]
    assert any("content" in note and ("express" in note) for note in written.notes)


DAYS = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
SCHEMAS = [{"type": "function", "function": {"name": "get_weather", "parameters": DAYS}}, *TOOLS[1:]]
# Python calls, bare JSON, quotes of another kind, JSON lines, a name as a key: the language has no word for them.
LEFT = ("apertus", "functiongemma", "lfm2", "llama3_json", "minimax_m1", "xlam")
SAID = ("cohere_command3", "glm47", "granite_3", "hermes", "kimi_k2", "mistral_v3", "mistral_v11", "qwen3_coder")


@pytest.mark.parametrize("name", toolgram.format_names())
def test_a_shipped_format_is_written_from_its_example(name: str) -> None:
    written = write_response_template(toolgram.get_format(name))
    fields = written.template["fields"]
    assert ("tool_calls" in fields) == (LEFT_OUT not in written.notes)
    assert name not in (LEFT if "tool_calls" in fields else SAID)
    assert "content" in fields
    json.dumps(written.template)
    for each in fields.values():
        for key in ("open_pattern", "close_pattern"):
            re.compile(each.get(key, ""))


@pytest.mark.parametrize("name", toolgram.format_names())
def test_transformers_reads_it_as_the_format_does(name: str) -> None:
    """In transformers itself, where it is installed (`make test-sglang` has it)."""
    parsing = pytest.importorskip("transformers.utils.chat_parsing", reason="transformers is not here")
    fmt = toolgram.get_format(name)
    written = write_response_template(fmt)
    fields = written.template["fields"]
    texts = [(fmt.example, fmt.generation_prompt)]
    # Text behind a call, and a value that has a marker in it, are beyond the language.
    texts += [(case.text, case.prefix) for case in cases(name) if case.turn and not case.turn.after and case.turn.calls]
    for text, prefix in texts:
        said = fmt.parse(text, SCHEMAS, prefix)
        read = parsing.parse_response(text, written.template, prefix="user: hi\n" + prefix, tools=SCHEMAS)
        calls = [(call["function"]["name"], call["function"]["arguments"]) for call in read.get("tool_calls") or ()]
        wanted = [(call.name, json.loads(call.arguments)) for call in said.tool_calls]
        assert calls == (wanted if "tool_calls" in fields else []), text
        assert (read.get("thinking") or "").strip() == (said.reasoning or "").strip() or "thinking" not in fields, text
        if LEFT_AROUND not in written.notes and {"thinking", "tool_calls"} <= fields.keys():
            assert (read.get("content") or "").split() == (said.content or "").split(), text


def test_the_command_writes_it_and_says_what_it_cannot() -> None:
    result = run("export", "hermes", "--target", "response_template")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["fields"]["tool_calls"]["content"] == "json"
    assert "note: repairs" in result.stderr
    assert run("export", "hermes", "--target", "response_template", "--json").exit_code == 0
    assert LEFT_OUT in run("export", "lfm2", "--target", "response_template").stderr
