"""`report.ok` is a statement of coverage: what a template prints of a message comes back, or the report says that not.

Strategy: templates whose calls the analysis misreads in a way that no comparison of single calls shows. Each once had a
report that was `ok` while calls were lost or changed.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import toolgram
from tests.derive.test_shapes import calls_of, report_of
from toolgram.derive.analysis import analyse_compiled
from toolgram.derive.messages import write_messages
from toolgram.derive.rendering import ChatTemplate
from toolgram.derive.result import Written

TURNS = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% if m.tool_calls %}@{% endif %}<|e|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
EACH = "{% for c in m.tool_calls %}@{% endfor %}"
ARGUMENTS = "{% for k, v in c.function.arguments.items() %}@{% endfor %}"
TAGGED = EACH.replace("@", "<c={{ c.function.name }}>" + ARGUMENTS + "</c>")
AS_JSON = EACH.replace("@", '<c>{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments|tojson }}}</c>')
NAMES = "{% for c in m.tool_calls %}{{ c.function.name }}{{ '' if loop.last else '@' }}{% endfor %}"
LOSING = {
    "names, then a list of arguments": (
        "<names>" + NAMES.replace("@", ",") + "</names><inputs>[{% for c in m.tool_calls %}"
        "{{ c.function.arguments|tojson }}{{ '' if loop.last else ', ' }}{% endfor %}]</inputs>",
        "two calls",
    ),
    "a plan, then a call for each": (
        f"<plan>{NAMES.replace('@', ' ')}</plan>" + EACH.replace("@", "<call>{{ c.function.arguments|tojson }}</call>"),
        "two calls",
    ),
    "an object of two lists": (
        """<c>{"names": {{ m.tool_calls|map(attribute="function.name")|list|tojson }}, """
        """"args": {{ m.tool_calls|map(attribute="function.arguments")|list|tojson }}}</c>""",
        "two calls",
    ),
    "long texts wrapped": (TAGGED.replace("@", "<p={{ k }}>{{ v|pprint }}</p>"), "long text"),
    "long texts cut": (TAGGED.replace("@", "<p={{ k }}>{{ v|string|truncate(60) }}</p>"), "long text"),
    "long texts broken": (TAGGED.replace("@", "<p={{ k }}>{{ v|string|wordwrap(60) }}</p>"), "long text"),
    "a container that is absent without arguments": (
        EACH.replace("@", "<c={{ c.function.name }}>{% if c.function.arguments %}<p>"
            + ARGUMENTS.replace("@", "<a={{ k }}>{{ v }}</a>") + "</p>{% endif %}</c>"),
        "no arguments",
    ),
    "a sole call in markers of its own": (
        "{% if m.tool_calls|length > 1 %}<all>@</all>{% else %}<one>@</one>{% endif %}".replace("@", AS_JSON),
        "one call",
    ),
    "names in capitals": (
        EACH.replace("@", "<c={{ c.function.name|upper }}>{{ c.function.arguments|tojson }}</c>"),
        "one call",
    ),
    "line ends replaced": (
        EACH.replace("@", "<c={{ c.function.name }}>{{ c.function.arguments|tojson|replace('\\\\n', ' ') }}</c>"),
        "code",
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", LOSING)
def test_what_is_lost_is_named(shape: str) -> None:
    template, case = LOSING[shape]
    report = report_of(toolgram.derive_format(TURNS.replace("@", template), eos_token="<|e|>"))
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
    (tmp_path / "a.lark").write_text(fmt.grammar_text, encoding="utf-8")
    (tmp_path / "a.yaml").write_text(fmt.machine_text, encoding="utf-8")
    loaded = toolgram.load_format(tmp_path / "a.lark", tmp_path / "a.yaml")
    output = next(probe.output for probe in report_of(fmt).probes if probe.case == "one call")
    assert calls_of(loaded.parse(output)) == [("find_city", {"place": "Oslo", "limit": 2})]


def written(template: str) -> tuple[Written, ...]:
    compiled = ChatTemplate(template, "", "<|e|>")
    return write_messages(compiled, analyse_compiled(compiled))
