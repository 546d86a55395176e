"""The grammar's own parse against the runtime.

Strategy: Lark reads a complete well-formed output with the very grammar that the runtime was compiled from, and its
tree becomes a message with no help of the machine. The two must say the same. Free text around bare JSON is ambiguous
by nature, so some grammars are Earley ones, and the outputs stay short.
"""

from __future__ import annotations

from hypothesis import assume, given, note
from hypothesis import strategies as st

import toolgram
from tests.properties.selection import every_format
from tests.strategies import well_formed
from toolgram.check.reference import gist
from toolgram.check.symbols import parser_of_symbols
from toolgram.spec.data import Literal, Spec


def openers_of_repairs(spec: Spec) -> set[str]:
    """The markers that begin a call in content only as a deviation, of which the grammar knows nothing."""
    rows = (row for row in spec.transitions if row.repair and spec.states[row.source].meaning == "content")
    return {shape.text for row in rows if isinstance(shape := spec.terminals.get(row.trigger), Literal)}


@every_format
@given(data=st.data())
def test_grammar_and_runtime_agree(name: str, data: st.DataObject) -> None:
    fmt = toolgram.get_format(name)
    output = data.draw(well_formed(name, small=True))
    text = output.text
    assume(len(text) < 150)
    assume(not any(opener in (output.content or "") for opener in openers_of_repairs(fmt.spec)))
    note(f"text: {text!r}")
    parser = parser_of_symbols(fmt)
    parser.feed(text)
    parser.close("stop")
    message = parser.message
    assume(all(anomaly.kind not in ("surplus_closer", "unfinished_marker") for anomaly in message.anomalies))
    assert gist(fmt.reference_parse(text, prefix="")) == gist(message)


@every_format
def test_the_example_is_in_the_language(name: str) -> None:
    fmt = toolgram.get_format(name)
    assert gist(fmt.reference_parse(fmt.example)) == gist(fmt.parse(fmt.example))
    assert fmt.parse(fmt.example).tool_calls, "an example shows a call"
