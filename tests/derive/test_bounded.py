"""No chat template costs derivation more than a few seconds and some memory, and each says why in one short error."""

from __future__ import annotations

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
from toolgram.derive import isolated
from toolgram.derive.errors import CostlyTemplate, TemplateError

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
# The construct, and words of the error.
ROWS: dict[str, tuple[str, str]] = {
    **{name: (_written(template), words) for name, (template, words) in _ROWS.items()},
    "blocks": (
        "".join(
            f"{{% block b{at} %}}{{{{ self.b{at + 1}() }}}}{{{{ self.b{at + 1}() }}}}{{% endblock %}}"
            for at in range(40)
        )
        + "{% block b40 %}{% endblock %}",
        "",
    ),
    "tags after content": (
        "{% for m in messages %}{{ m.content }}" + "".join(f"<a{at}>" for at in range(1_200)) + END,
        "",
    ),
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


# --- a process of its own -------------------------------------------------------------------------------------------

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
