"""What real models wrote: 500 outputs each of four formats, in Python, in JSON, and in Python's quotes inside JSON.

Strategy: nobody has labelled these, so the tests ask for what is true of any text (no exception, conserved, the same
however it is split into deltas) and how many give calls. Where Python itself, or `json`, reads all calls of an output,
they must be exactly those. `benchmarks/real_outputs.py` prints the same counts as a table.
"""

import ast
import json
import re
from functools import cache

import pytest

import toolgram
from tests.properties.selection import some
from tests.streams import SHARED, assert_same_however_split
from toolgram.runtime.parser import Parser
from toolgram.runtime.whole_outputs import whole_message

DATA = SHARED / "data" / "real-outputs"
pytestmark = pytest.mark.skipif(not DATA.exists(), reason="the real outputs ../shared/data/real-outputs are absent")
FILES = {"hermes": "hermes", "glm4": "glm4", "granite_20b_fc": "granite_20b_fc", "pythonic": "llama4_pythonic"}


@cache
def outputs(file: str) -> list[str]:
    return [json.loads(line)["output"] for line in (DATA / f"{file}.jsonl").read_text("utf-8").splitlines() if line]


@pytest.mark.parametrize("file", FILES)
def test_every_output_is_conserved_however_split(file: str) -> None:
    """A quarter of them in a run."""
    assert len(outputs(file)) == 500
    for text in some(outputs(file), file):
        assert_same_however_split(toolgram.get_format(FILES[file]), text)


def test_a_plain_list_of_keyword_calls_is_never_missed() -> None:
    """An output that Python itself reads as a list of calls with literal keyword arguments gives exactly those."""
    fmt = toolgram.get_format("llama4_pythonic")
    read = 0
    for text in outputs("pythonic"):
        try:
            tree = ast.parse(text.strip(), mode="eval").body
            expected = [_call_of(node) for node in tree.elts] if isinstance(tree, ast.List) else []
        except (SyntaxError, ValueError):
            continue
        if not expected:
            continue
        read += 1
        message = fmt.parse(text)
        assert [(c.name, json.loads(c.arguments)) for c in message.tool_calls] == expected, text
        assert message.content is None, text
        assert {c.status for c in message.tool_calls} == {"complete"}
    assert read > 250


def _call_of(node: object) -> tuple[str, object]:
    """Name and arguments of a call with literal keyword arguments; ValueError for anything else."""
    if not isinstance(node, ast.Call) or node.args or any(keyword.arg is None for keyword in node.keywords):
        raise ValueError(node)
    arguments = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords}
    if "Ellipsis" in ast.dump(node):
        raise ValueError(node)
    name = ast.unparse(node.func)
    if not all(part.isidentifier() for part in name.split(".")):
        raise ValueError(name)
    return name, json.loads(json.dumps(arguments))


@pytest.mark.parametrize("file", FILES)
def test_plain_whole_outputs_are_read_as_a_parser_reads_them(file: str) -> None:
    """With tools and without; nearly all real outputs that nothing is repaired in are plain."""
    fmt, texts = toolgram.get_format(FILES[file]), outputs(file)
    called = {call.name for text in texts for call in fmt.parse(text).tool_calls}
    for tools in (None, [{"name": each, "parameters": {"type": "object"}} for each in sorted(called)]):
        chosen, program = fmt._chosen(tools, False)
        plain = untouched = 0
        for text in texts:
            parser = Parser(program, chosen, call_ids=lambda: "id")
            parser.feed(text)
            parser.close()
            found = whole_message(program, text, chosen, lambda: "id", None)
            assert found is None or found == parser.message, text
            if not parser.message.anomalies:
                untouched += 1
                plain += found is not None
        assert plain >= 0.93 * untouched


def test_what_json_reads_is_never_missed() -> None:
    fmt = toolgram.get_format("hermes")
    read = 0
    for text in outputs("hermes"):
        try:
            expected = [json.loads(body) for body in re.findall(r"<tool_call>(.*?)</tool_call>", text, re.DOTALL)]
        except json.JSONDecodeError:
            continue
        if not expected or not all(isinstance(call.get("arguments"), dict) for call in expected):
            continue
        read += 1
        found = [(call.name, json.loads(call.arguments), call.status) for call in fmt.parse(text).tool_calls]
        assert found == [(call["name"], call["arguments"], "complete") for call in expected], text
    assert read > 200
