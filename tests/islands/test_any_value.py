"""Whatever a value of a call is made of: nothing is lost or retracted, and it is read the same however it is split.

Strategy: a row puts pieces of the syntax of one notation, in any order, in the place of a value, or of all arguments.
"""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.generators.json_breakages import broken
from tests.islands.test_json_values import OUTPUTS
from tests.islands.test_python_literals import LISTED
from tests.islands.test_tagged_values import MARK, TOOLS, output
from tests.streams import assert_same_however_split, check_events, cut
from toolgram.events import ToolCallEnd

XML_TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}}]
XML = '<function name="f"><param name="q">%s</param></function>'
XML_PIECES = ["a", "&", "lt;", "&amp;", "<![CDATA[", "]]>", "]", "<", "</param>", '"', "\n"]
PYTHON_PIECES = ["a", "it's", "x=", '"', "'", ", ", "b='c'", ")", "]", "\\d", "\\n", "1", "(", "g("]


def joined(pieces: list[str]) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(pieces), max_size=12).map("".join)


NAMES = st.sampled_from(["item", "a", "b", "note"])
TREES = st.recursive(
    st.text(st.sampled_from('ab1 {["\n]<'), max_size=6),
    lambda inner: st.lists(st.tuples(NAMES, inner), min_size=1, max_size=3),
)
ARGUMENTS = st.lists(st.tuples(st.sampled_from(["note", "free", "tags", "rows", "other"]), TREES), max_size=3)


def elements(tree: Any) -> str:
    """A tree as elements: its leaves are text."""
    if isinstance(tree, str):
        return tree
    return "".join(f"{MARK}<{name}>{elements(each)}{MARK}</{name}>" for name, each in tree)


# By what is written: the format, its texts, and the tools that may be declared.
ROWS: dict[str, tuple[str, st.SearchStrategy[str], Any]] = {
    "a string of JSON": (
        "hermes", st.text("a1.\"'{}[],: \\\n`json#", max_size=24).map(lambda text: json.dumps(text)), None,
    ),
    "elements": ("minimax_m3", ARGUMENTS.map(elements), TOOLS),
    "XML": ("minicpm5", joined(XML_PIECES), XML_TOOLS),
    "a string of Python": ("lfm2", joined(PYTHON_PIECES).map("x='{}'".format), None),
    "arguments in Python": ("lfm2", st.text("a1.0'\"{}[](),:= \\\\\nx_TrueNone+-", max_size=24), None),
    **{name: (name, st.integers().map(lambda seed: broken(random.Random(seed))[1]), None) for name in OUTPUTS},
}  # fmt: skip
WRITTEN = {**OUTPUTS, "minicpm5": XML, "lfm2": LISTED}


@pytest.mark.parametrize("kind", ROWS)
@given(data=st.data())
def test_any_value(kind: str, data: st.DataObject) -> None:
    name, values, tools = ROWS[kind]
    value = data.draw(values)
    if name == "minimax_m3":
        text = output("").replace(f"{MARK}</invoke>", f"{value}{MARK}</invoke>")
    else:
        text = WRITTEN[name] % value
    text, fmt, declared = f"{text} More text.", toolgram.get_format(name), data.draw(st.sampled_from([None, tools]))
    message = assert_same_however_split(fmt, text, tools=declared)
    parser, events = fmt.parser(declared, "", str), []
    for delta in cut(text, 3):
        events += parser.feed(delta)
        parser = fmt.restore(json.loads(json.dumps(parser.snapshot())), declared, str)
    events += parser.close()
    check_events(events, text)
    statuses = [event.status for event in events if isinstance(event, ToolCallEnd)]
    assert statuses.count("complete") == [call.status for call in message.tool_calls].count("complete")
