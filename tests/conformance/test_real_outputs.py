"""What a real model wrote: 500 outputs of Llama 3 asked for pythonic calls.

Strategy: nobody has labelled these, so the tests ask for what is true of any text (no exception, conserved, the same
however it is split into deltas) and record how many give calls. `benchmarks/real_outputs.py` prints the same counts as
a table.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

import toolgram
from tests.streams import CUT_SIZES, SHARED, check_events, check_message, cut, merged, run
from toolgram.runtime.parser import Parser
from toolgram.runtime.whole_outputs import whole_message

DATA = SHARED / "data" / "real-outputs" / "pythonic.jsonl"
pytestmark = pytest.mark.skipif(
    not DATA.exists(), reason="needs the real outputs in ../shared/data/real-outputs/pythonic.jsonl, which are absent"
)


@pytest.fixture(scope="module")
def outputs() -> list[str]:
    return [json.loads(line)["output"] for line in DATA.read_text(encoding="utf-8").splitlines() if line]


def test_every_output_is_conserved_however_split(outputs: list[str]) -> None:
    fmt = toolgram.get_format("llama4_pythonic")
    assert len(outputs) == 500
    for text in outputs:
        whole, message = run(fmt, [text])
        check_events(whole, text)
        check_message(message, whole)
        for size in CUT_SIZES[1:]:
            events, streamed = run(fmt, cut(text, size))
            assert merged(events) == merged(whole), text
            assert streamed == message, text


def test_how_many_outputs_give_calls(
    outputs: list[str], record_testsuite_property: Callable[[str, object], None]
) -> None:
    fmt = toolgram.get_format("llama4_pythonic")
    messages = [fmt.parse(text) for text in outputs]
    with_calls = sum(any(call.status == "complete" for call in message.tool_calls) for message in messages)
    calls = sum(call.status == "complete" for message in messages for call in message.tool_calls)
    record_testsuite_property("rows_with_complete_calls", with_calls)
    record_testsuite_property("complete_calls", calls)
    print(f"{with_calls} of {len(outputs)} outputs give {calls} complete calls")
    assert with_calls >= 300


def test_a_plain_list_of_keyword_calls_is_never_missed(outputs: list[str]) -> None:
    """An output that Python itself reads as a list of calls with literal keyword arguments gives exactly those."""
    import ast

    fmt = toolgram.get_format("llama4_pythonic")
    read = 0
    for text in outputs:
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except SyntaxError:
            continue
        if not isinstance(tree, ast.List) or not tree.elts:
            continue
        try:
            expected = [_call_of(node) for node in tree.elts]
        except ValueError:
            continue
        read += 1
        message = fmt.parse(text)
        assert [(c.name, json.loads(c.arguments)) for c in message.tool_calls] == expected, text
        assert message.content is None, text
        assert {c.status for c in message.tool_calls} == {"complete"}
    assert read > 250


def _call_of(node: object) -> tuple[str, object]:
    """Name and arguments of a call with literal keyword arguments; ValueError for anything else."""
    import ast

    if not isinstance(node, ast.Call) or node.args or any(keyword.arg is None for keyword in node.keywords):
        raise ValueError(node)
    arguments = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords}
    if "Ellipsis" in ast.dump(node):
        raise ValueError(node)
    name = ast.unparse(node.func)
    if not all(part.isidentifier() for part in name.split(".")):
        raise ValueError(name)
    return name, json.loads(json.dumps(arguments))


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("hermes", "hermes"),
        ("glm4", "glm4"),
        ("granite_20b_fc", "granite_20b_fc"),
        ("pythonic", "llama4_pythonic"),
    ],
)
def test_plain_whole_outputs_are_read_as_a_parser_reads_them(file: str, name: str) -> None:
    """With tools and without; nearly all real outputs that nothing is repaired in are plain."""
    fmt = toolgram.get_format(name)
    lines = DATA.with_name(f"{file}.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["output"] for line in lines]
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
