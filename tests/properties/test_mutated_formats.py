"""A format file that is nearly right is refused when it is loaded, or it keeps the contract.

Strategy: Hypothesis changes shipped files in one to three places, as people do: a row is dropped, a name is written in
another way, a transition leads elsewhere, a state loses a tag or gets another, a line of the grammar goes.  What loads
then reads outputs of the format, whole and in pieces.
"""

from typing import Any

import yaml
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import toolgram
from tests.generators.changed_data import changed
from tests.properties.selection import every_format, fewer
from tests.strategies import noise, outputs
from tests.streams import check_events, cut, merged, run
from toolgram.errors import FormatError
from toolgram.formats import Format, grammar_home
from toolgram.program.look_ahead import TooManyWays
from toolgram.spec.files import spec_from_texts
from toolgram.spec.vocabulary import ACTIONS, TAGS

# In the place of any value: what is of another type, and what a file may say, if elsewhere.
VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [None, 1, 1.5, True, "", "x", "=", [], [1], [[]], {}, {"a": 1}, *ACTIONS, *TAGS]
)


@st.composite
def changed_lines(draw: st.DrawFn, text: str) -> str:
    """A grammar with up to two lines lost, or changed in a character."""
    lines = text.splitlines()
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(lines) - 1))
        line, place = lines[at], draw(st.integers(0, max(0, len(lines[at]) - 1)))
        sign = draw(st.sampled_from(["", "(", "[", '"', "/", "?", "a", "|", "{1,9999}"]))
        lines[at : at + 1] = [line[:place] + sign + line[place + 1 :]] if draw(st.booleans()) else []
    return "\n".join(lines)


def _loaded(grammar: str, machine: str) -> Format | None:
    """The format, compiled, or None where it is refused, as by `load_format`."""
    try:
        fmt = Format(spec_from_texts(grammar, "own.lark", machine, "own.yaml", (str(grammar_home()),)))
        _ = fmt.program
    except (FormatError, TooManyWays):
        return None
    return fmt


@every_format
@settings(fewer(), suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_changed_format_is_refused_or_keeps_the_contract(name: str, data: st.DataObject) -> None:
    original = toolgram.get_format(name)
    machine, grammar = original.machine_dict, original.grammar_text
    if data.draw(st.booleans()):
        grammar = data.draw(changed_lines(grammar))
    else:
        machine = data.draw(changed(machine, [machine], VALUES))
    texts = grammar, yaml.safe_dump(machine, sort_keys=False)
    fmt = _loaded(*texts)
    if fmt is None:
        return
    text = data.draw(st.one_of(outputs(name), noise(name)))
    note(f"machine: {texts[1]}\ntext: {text!r}")
    whole, _ = run(fmt, [text])
    check_events(whole, text)
    for size in (1, 3):
        events, _ = run(fmt, cut(text, size))
        assert merged(events) == merged(whole)
