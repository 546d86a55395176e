"""No chat template costs derivation more than a few seconds and some memory, and each says why in one short error."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import toolgram
from tests.derive.turns import report_of, template_of
from tests.properties.selection import quarter
from tests.tables import table
from tests.work import at_most
from toolgram.derive import isolated
from toolgram.derive.errors import CostlyTemplate, TemplateError
from toolgram.derive.rendering import ChatTemplate
from toolgram.limits import MAX_RENDERING, MAX_TEMPLATE

pytest.importorskip("resource")  # limits of a process, which not every system has

CPU_SECONDS, MEGABYTES = 5, 500
END = "{% endfor %}"
SHARED = {
    "DOUBLED": "{% set n = namespace(x=[1, 2]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}",
    "TUPLES": "{% set n = namespace(x=(1, 2)) %}{% for i in range(60) %}{% set n.x = (n.x, n.x) %}{% endfor %}",
    "MAPS": "{% set n = namespace(x={}) %}{% for i in range(60) %}{% set n.x = {'a': n.x, 'b': n.x} %}{% endfor %}",
    "HOLDERS": "{% set n = namespace(x=1) %}{% for i in range(60) %}{% set n.x = namespace(a=n.x, b=n.x) %}" + END,
}


def _written(template: str | list[Any]) -> str:
    """A template of `hostile.yaml`."""
    parts = [template] if isinstance(template, str) else template
    text = "".join(part if isinstance(part, str) else part[0] * part[1] for part in parts)
    return re.sub("|".join(SHARED), lambda found: SHARED[found[0]], text)


_ROWS = yaml.safe_load(Path(__file__).with_name("hostile.yaml").read_text(encoding="utf-8"))
_BLOCK = "{{% block b{0} %}}{{{{ self.b{1}() }}}}{{{{ self.b{1}() }}}}{{% endblock %}}"
_TAGS = "".join(map("<a{}>".format, range(1_200)))
# The construct, and words of the error.
ROWS: dict[str, tuple[str, str]] = {
    **{name: (_written(template), words) for name, (template, words) in _ROWS.items()},
    "blocks": ("".join(map(_BLOCK.format, range(40), range(1, 41))) + "{% block b40 %}{% endblock %}", ""),
    "tags after content": (f"{{% for m in messages %}}{{{{ m.content }}}}{_TAGS}{END}", ""),
}


@pytest.fixture(scope="module")
def derive() -> Iterator[Callable[[str], dict[str, Any]]]:
    """What comes of a template, in the process that derives."""
    command = [sys.executable, str(Path(__file__).with_name("hostile.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        given, answers = process.stdin, process.stdout

        def outcome(template: str) -> dict[str, Any]:
            given.write(json.dumps(template) + "\n")
            given.flush()
            answer: dict[str, Any] = json.loads(answers.readline())
            return answer

        yield outcome


@pytest.mark.parametrize("name", quarter([*ROWS], "test_a_hostile_template_costs_little_and_says_why"))
def test_a_hostile_template_costs_little_and_says_why(name: str, derive: Callable[[str], dict[str, Any]]) -> None:
    template, words = ROWS[name]
    outcome = derive(template)
    assert outcome["cpu"] < CPU_SECONDS, outcome
    assert outcome["mb"] < MEGABYTES, outcome
    assert not outcome["error"] or outcome["error"].startswith(("CostlyTemplate: ", "TemplateError: ")), outcome
    assert words in outcome["error"]
    assert len(outcome["error"]) < 400
    assert "\n" not in outcome["error"]


GOOD = template_of("<call>{{ c.function|tojson }}</call>", "{{ m.content }}")


def test_a_process_of_its_own_gives_the_same_format() -> None:
    here, apart = toolgram.derive_format(GOOD), toolgram.derive_format(GOOD, isolate=True)
    assert (apart.grammar_text, apart.machine_text) == (here.grammar_text, here.machine_text)
    assert {**report_of(apart).to_dict(), "seconds": 0} == {**report_of(here).to_dict(), "seconds": 0}
    assert report_of(apart).analysis is None


@pytest.mark.parametrize("name", ["squares", "printed", "a format's width", "many words"])
def test_a_process_of_its_own_says_why_it_stopped(name: str) -> None:
    template, words = ROWS[name]
    with pytest.raises(TemplateError, match=words):
        toolgram.derive_format(template, isolate=True)


@pytest.mark.parametrize("leak", ["while True: pass", "kept = [bytearray(1 << 26) for _ in range(99)]", "os._exit(3)"])
def test_what_leaks_ends_the_process_and_nothing_else(leak: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = f"def leak(*_):\n    {leak}\n    raise MemoryError\nd._derive = leak\n"
    command = f"import os, toolgram.derive.deriving as d\n{broken}{isolated._COMMAND}"
    monkeypatch.setattr(isolated, "_COMMAND", command)
    monkeypatch.setattr(isolated, "_GRACE", 0.5)
    with pytest.raises(CostlyTemplate, match=r"the process that derived was ended|MemoryError while"):
        toolgram.derive_format(GOOD + leak, isolate=True, seconds=0.5)
    monkeypatch.undo()
    assert toolgram.derive_format(GOOD + "a", isolate=True).name


def test_variables_for_a_process_of_its_own_are_json() -> None:
    with pytest.raises(TemplateError, match="variables are JSON"):
        toolgram.derive_format(GOOD, chat_template_kwargs={"x": object()}, isolate=True)


def render(source: str, **kwargs: object) -> str:
    return ChatTemplate(source, "<s>", "</s>", kwargs).render([{"role": "user", "content": "é<b>"}])


@pytest.mark.parametrize(("source", "text"), table(__file__, "renders_as_transformers_does"))
def test_renders_as_transformers_does(source: str, text: str) -> None:
    assert render(source, flag="yes") == text


@pytest.mark.parametrize(
    ("source", "line", "problem"),
    [
        ("\n{% if %}", 2, "Expected an expression"),
        ("{{ 1 | no_such_filter }}", 1, "no_such_filter"),
        ("\n\n{{ a.b.c }}", 3, "'a' is undefined"),
        ("\n{{ raise_exception('roles must alternate') }}", 2, "roles must alternate"),
        ("{% for a in range(99999) if false %}{% endfor %}" * 60, 1, "rounds"),
        ("{% set x = 'a' %}" + "{% set x %}{{ x }}{{ x }}{% endset %}" * 60, 1, "longer"),
        ("{% set l = [1, 2] %}" + "{% set _ = l.extend(l) %}" * 60, 1, "beyond"),
        ("{{ 'a' * 10 ** 10 }}", 1, "longer"), ("{{ [0] * 10 ** 10 }}", 1, "longer"),
        ("{{ 'a'.ljust(10 ** 10) }}", 1, "pads"), ("{{ 'a' | center(10 ** 10) }}", 1, "pads"),
        ("{{ [('a' * 10 ** 5)] * 10 ** 5 | join }}", 1, ""), ("{{ 'x' * 150000 }}" * 12, 1, "renders more than"),
        ("{{ messages.__class__.__mro__ }}", 1, ""),
    ],
)  # fmt: skip
def test_says_what_is_wrong_and_where_and_soon(
    source: str, line: int, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit of rounds is met, whatever the clock says: a slow machine would meet the limit of time first."""
    for module in ("rendering", "sandbox") if problem == "rounds" else ():
        monkeypatch.setattr(f"toolgram.derive.{module}.CLOCK", lambda: 0.0)
    with at_most(calls=5_000_000), pytest.raises(TemplateError) as caught:
        render(source)
    assert problem in caught.value.problem
    assert caught.value.line == line


def test_bounds_are_bounds() -> None:
    with pytest.raises(TemplateError, match="characters"):
        ChatTemplate("x" * (MAX_TEMPLATE + 1), "", "")
    assert len(render("{{ 'x' * " + str(MAX_RENDERING) + " }}")) == MAX_RENDERING


def test_a_template_that_changes_its_input_changes_a_copy() -> None:
    messages = [{"role": "user", "content": "a"}]
    assert ChatTemplate("{% set _ = messages.append(1) %}{{ messages | length }}", "", "").render(messages) == "2"
    assert messages == [{"role": "user", "content": "a"}]


def test_the_same_rendering_is_done_once() -> None:
    template = ChatTemplate("{{ messages[0].content }}", "", "")
    assert ([template.render([{"content": word}]) for word in "aab"], template.renders) == (["a", "a", "b"], 2)
