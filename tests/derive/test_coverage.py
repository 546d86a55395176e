"""`report.ok` is a statement of coverage: what a template prints of a message comes back, or the report says that not.

Strategy: templates whose calls the analysis misreads in a way that no comparison of single calls shows. Each once had a
report that was `ok` while calls were lost or changed.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import toolgram
from tests.derive.turns import calls_of, filled, report_of
from tests.own_format import load_own
from tests.tables import table
from toolgram.derive.analysis import analyse
from toolgram.derive.messages import write_messages
from toolgram.derive.rendering import ChatTemplate
from toolgram.derive.result import Written

TURNS = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% if m.tool_calls %}@{% endif %}<|e|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
TAGGED = filled("$CALLS<c=$NAME>$EACH@$END</c>$END")
LOSING = table(__file__, "losing")


@pytest.mark.parametrize("shape", LOSING)
def test_what_is_lost_is_named(shape: str) -> None:
    template, case = LOSING[shape]
    report = report_of(toolgram.derive_format(TURNS.replace("@", filled(template)), eos_token="<|e|>"))
    assert not report.ok
    assert case in {probe.case for probe in report.failed}


@pytest.mark.parametrize("which", ["0", "-1"])
def test_a_part_that_changes_nothing_is_not_asked_for(which: str) -> None:
    """A template that prints one call of several loses the others before any format could read them."""
    call = "<c>{{ m.tool_calls[@].function.name }}|{{ m.tool_calls[@].function.arguments|tojson }}</c>"
    template = TURNS.replace("@", call.replace("@", which))
    report = report_of(toolgram.derive_format(template, eos_token="<|e|>"))
    assert report.ok, str(report)
    assert "two calls" not in {each.case.name for each in written(template)}


def test_the_values_of_the_proof_are_the_same_in_every_run() -> None:
    template = TURNS.replace("@", TAGGED.replace("@", "<p={{ k }}>{{ v }}</p>"))
    first, second = ([(each.case, each.output) for each in written(template)] for _ in range(2))
    assert first == second
    texts = "".join(json.dumps([dict(call.arguments) for call in case.calls]) for case, _ in first)
    assert all(sign in texts for sign in ('\\"', "\\\\", "\\u0001", "\\t", "lorem ipsum"))


@pytest.mark.parametrize("argument", ["[k={{ k }}]{{ v }}[/k]", "[{{ k }}]={{ v }}[/]"])
def test_the_two_files_load_whatever_ends_a_key(argument: str, tmp_path: Path) -> None:
    fmt = toolgram.derive_format(TURNS.replace("@", TAGGED.replace("@", argument)), eos_token="<|e|>")
    assert "the two files" in {probe.case for probe in report_of(fmt).probes}
    assert not [probe for probe in report_of(fmt).failed if probe.case == "the two files"]
    loaded = load_own(tmp_path, fmt.grammar_text, fmt.machine_text)
    output = next(probe.output for probe in report_of(fmt).probes if probe.case == "one call")
    assert calls_of(loaded.parse(output)) == [("find_city", {"place": "Oslo", "limit": 2})]


def written(template: str) -> tuple[Written, ...]:
    compiled = ChatTemplate(template, "", "<|e|>")
    return write_messages(compiled, analyse(compiled))
