"""Two drivers, one behaviour: a random walk over symbols through the compiled table and the real libraries.

The bounded walk of `toolgram check` is exhaustive and short; this one is random and long, cuts the text anywhere, and
compares states after every symbol and the whole message at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.properties.selection import every_format
from toolgram.check.drivers import Step, begins_a_run, steps
from toolgram.check.languages import WS, may_end, samples
from toolgram.check.reference import gist
from toolgram.check.symbols import parser_of_symbols
from toolgram.spec.data import TEXT, Literal, Run, Spec, Transition, rows_of


def _takes_blanks(spec: Spec, last: str) -> bool:
    """Whether a blank behind a symbol is still part of it."""
    shape = spec.terminals.get(last)
    return last == WS or (isinstance(shape, Run) and re.fullmatch(shape.pattern, "k ") is not None)


def _is_longer(spec: Spec, row: Iterable[str], said: str, value: str) -> bool:
    """Whether a marker and what follows it begin with a longer marker of the same state."""
    shapes = [spec.terminals[trigger] for trigger in row if trigger in spec.terminals]
    literals = [shape.text for shape in shapes if isinstance(shape, Literal)]
    longer = (each for each in literals if len(each) > len(said) and each.startswith(said))
    return said in literals and any((said + value).startswith(each) for each in longer)


def _is_data(spec: Spec, rows: dict[str, dict[str, Transition]], before: str, state: str, symbol: str) -> bool:
    """Whether what would be a repair behind the closing marker of a value may make data of that marker: that depends on
    what follows both."""
    transition = rows[state].get(symbol)
    return spec.states[before].meaning == "value" and transition is not None and transition.repair


@every_format
@given(data=st.data())
def test_states_and_events_agree_on_a_random_walk(name: str, data: st.DataObject) -> None:
    fmt = toolgram.get_format(name)
    spec, rows, machine = fmt.spec, rows_of(fmt.spec), fmt.reference_machine()
    texts = {symbol: [shape.text] for symbol, shape in spec.terminals.items() if isinstance(shape, Literal)}
    texts |= {symbol: values for symbol, values in samples(spec).items() if symbol not in texts}
    fired: list[Step] = []
    parser = parser_of_symbols(fmt, trace=lambda step: fired.append(step[:3]))
    due: list[Step] = []
    state, text, last = spec.initial, "", ""
    before, said = state, ""  # where the last symbol was, and its text
    events = []
    for _ in range(data.draw(st.integers(1, 14 if spec.parser == "lalr" else 7), label="symbols")):
        choices = []
        for symbol, values in texts.items():
            for value in values:
                taken = (
                    None if symbol == WS and _takes_blanks(spec, last) else steps(fmt, machine, state, symbol, value)
                )
                name_like = symbol == TEXT and begins_a_run(fmt, rows[state], value)
                other = _is_longer(spec, rows[before], said, value) or _is_data(spec, rows, before, state, symbol)
                if taken is not None and not (symbol == last == TEXT) and not name_like and not other:
                    choices.append((symbol, value, taken))
        if not choices:
            break
        before = state
        last, value, (made, state) = data.draw(st.sampled_from(choices), label="symbol")
        said = value
        due += made
        text += value
        cut = data.draw(st.integers(0, len(value)), label="cut")
        for piece in (value[:cut], value[cut:]):
            events += parser.feed(piece)
        assert fired == due[: len(fired)]
        if len(fired) == len(due):
            assert parser.state == state
    events += parser.close()
    assert "".join(event.source for event in events) == text
    if may_end(spec, rows, state):
        assert fired[: len(due)] == due
        assert gist(fmt.reference_parse(text, prefix="")) == gist(parser.message)
