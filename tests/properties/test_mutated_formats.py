"""A format file that is nearly right is refused when it is loaded, or it keeps the contract.

Strategy: Hypothesis changes shipped files in one to three places, as people do: a row is dropped, a name is written in
another way, a transition leads elsewhere, a state loses a tag or gets another, a line of the grammar goes.  What loads
then reads outputs of the format, whole and in pieces.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import yaml
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

import toolgram
from tests.properties.selection import every_format, fewer
from tests.strategies import noise, outputs
from tests.streams import check_events, cut, merged, run
from toolgram.errors import FormatError
from toolgram.formats import Format, grammar_home
from toolgram.program.look_ahead import TooManyWays
from toolgram.spec.files import spec_from_texts
from toolgram.spec.vocabulary import ACTIONS, TAGS

Machine = dict[str, Any]
Change = Callable[[st.DataObject, Machine, list[str]], None]


def _rows(machine: Machine) -> list[dict[str, Any]]:
    return list(machine["machine"]["transitions"])


def _names(machine: Machine) -> list[str]:
    return [state["name"] for state in machine["machine"]["states"]]


def _one(data: st.DataObject, entries: list[Any]) -> Any:
    assume(entries)
    return entries[data.draw(st.integers(0, len(entries) - 1))]


def drop_state(data: st.DataObject, machine: Machine, grammar: list[str]) -> None:
    machine["machine"]["states"].remove(_one(data, machine["machine"]["states"]))


def drop_transition(data: st.DataObject, machine: Machine, grammar: list[str]) -> None:
    machine["machine"]["transitions"].remove(_one(data, _rows(machine)))


def drop_source(data: st.DataObject, machine: Machine, grammar: list[str]) -> None:
    row = _one(data, [row for row in _rows(machine) if isinstance(row["source"], list) and len(row["source"]) > 1])
    row["source"].remove(_one(data, row["source"]))


def add_source(data: st.DataObject, machine: Machine, grammar: list[str]) -> None:
    row, name = _one(data, _rows(machine)), _one(data, _names(machine))
    sources = row["source"] if isinstance(row["source"], list) else [row["source"]]
    row["source"] = [*sources, name]


def drop_action(data: st.DataObject, machine: Machine, grammar: list[str]) -> None:
    row = _one(data, [row for row in _rows(machine) if row.get("after")])
    after = [row["after"]] if isinstance(row["after"], str) else row["after"]
    row["after"] = [each for each in after if each != _one(data, after)]


def add_action(data: st.DataObject, machine: Machine, grammar: list[str]) -> None:
    row = _one(data, _rows(machine))
    after = row.get("after", [])
    row["after"] = [*([after] if isinstance(after, str) else after), _one(data, list(ACTIONS))]


def retarget(data: st.DataObject, machine: Machine, grammar: list[str]) -> None:
    _one(data, _rows(machine))["dest"] = _one(data, ["=", *_names(machine)])


def retrigger(data: st.DataObject, machine: Machine, grammar: list[str]) -> None:
    rows = _rows(machine)
    _one(data, rows)["trigger"] = _one(data, sorted({row["trigger"] for row in rows}))


def retag(data: st.DataObject, machine: Machine, grammar: list[str]) -> None:
    state = _one(data, machine["machine"]["states"])
    tags = list(state.get("tags", []))
    lost, given = _one(data, [(True, False), (False, True), (True, True)])
    if tags and lost:
        tags.remove(_one(data, tags))
    if given:
        tags.append(_one(data, list(TAGS)))
    state["tags"] = tags


def rename(data: st.DataObject, machine: Machine, grammar: list[str]) -> None:
    section = _one(
        data, [machine, machine["format"], machine["machine"], *machine["machine"]["states"], *_rows(machine)]
    )
    key = _one(data, list(section))
    section[data.draw(st.sampled_from([key + "s", key[:-1], "trigger", "tags", "name"]))] = section.pop(key)


def mistype(data: st.DataObject, machine: Machine, grammar: list[str]) -> None:
    section = _one(
        data, [machine, machine["format"], machine["machine"], *machine["machine"]["states"], *_rows(machine)]
    )
    wrong: st.SearchStrategy[Any] = st.sampled_from([None, 1, 1.5, True, "", "x", [], [1], [[]], {}, {"a": 1}])
    section[_one(data, list(section))] = data.draw(wrong)


def drop_line(data: st.DataObject, machine: Machine, grammar: list[str]) -> None:
    grammar.remove(_one(data, grammar))


def change_line(data: st.DataObject, machine: Machine, grammar: list[str]) -> None:
    at = data.draw(st.integers(0, len(grammar) - 1))
    line = grammar[at]
    assume(line)
    place = data.draw(st.integers(0, len(line) - 1))
    grammar[at] = (
        line[:place]
        + data.draw(st.sampled_from(["", "(", "[", '"', "/", "?", "a", "|", "{1,9999}"]))
        + line[place + 1 :]
    )


CHANGES: list[Change] = [
    drop_state, drop_transition, drop_source, add_source, drop_action, add_action, retarget, retrigger, retag, rename,
    mistype, drop_line, change_line,
]  # fmt: skip


def _loaded(grammar: str, machine: str) -> Format | None:
    """The format, compiled, or None where it is refused, as by `load_format`."""
    try:
        fmt = Format(spec_from_texts(grammar, "own.lark", machine, "own.yaml", (str(grammar_home()),)))
        _ = fmt.program
    except (FormatError, TooManyWays):
        return None
    return fmt


@every_format
@settings(fewer(), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(data=st.data())
def test_a_changed_format_is_refused_or_keeps_the_contract(name: str, data: st.DataObject) -> None:
    original = toolgram.get_format(name)
    machine, grammar = copy.deepcopy(original.machine_dict), original.grammar_text.splitlines()
    for change in data.draw(st.lists(st.sampled_from(CHANGES), min_size=1, max_size=3)):
        try:
            change(data, machine, grammar)
        except (KeyError, TypeError, AttributeError, IndexError):  # an earlier change took what this one needs
            assume(False)
    texts = "\n".join(grammar), yaml.safe_dump(machine, sort_keys=False)
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
