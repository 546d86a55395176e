"""No chat template costs derivation more than a few seconds and some memory, and each says why in one short error."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toolgram
from tests.properties.selection import quarter
from toolgram.derive import isolated
from toolgram.derive.errors import CostlyTemplate, TemplateError

pytest.importorskip("resource")  # limits of a process, which not every system has

CPU_SECONDS, MEGABYTES = 5, 500
TURN = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
END, MANY, SIXTY = "{% endfor %}", "{% for i in range(99999) %}", "{% for i in range(60) %}"
CONTENT = "{% for m in messages %}{{ m.content }}"
TOOLS = "{% for t in tools %}{{ t|tojson }}{% endfor %}"
DOUBLED = "{% set n = namespace(x=[1, 2]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}"
TUPLES = "{% set n = namespace(x=(1, 2)) %}{% for i in range(60) %}{% set n.x = (n.x, n.x) %}{% endfor %}"
MAPS = "{% set n = namespace(x={}) %}{% for i in range(60) %}{% set n.x = {'a': n.x, 'b': n.x} %}{% endfor %}"
HOLDERS = "{% set n = namespace(x=1) %}{% for i in range(60) %}{% set n.x = namespace(a=n.x, b=n.x) %}{% endfor %}"
LONG = "{% set long = 'a' * 1000000 %}"

# The construct, and words of the error; "" where derivation comes to an end and may well give a format.
ROWS: dict[str, tuple[str, str]] = {
    # numbers
    "squares": ("{% set n=namespace(x=10) %}" + SIXTY + "{% set n.x=n.x*n.x %}" + END, "a number"),
    "powers": ("{% set n=namespace(x=10) %}" + SIXTY + "{% set n.x=n.x**64 %}" + END, "a number"),
    "sums": ("{% set n=namespace(x=1) %}" + MANY + "{% set n.x=n.x+n.x %}" + END, "a number"),
    "a power": ("{{ 9 ** (9 ** 9) }}", "power"),
    "rounding up": ("{{ 1.5|round(999999999, 'ceil') }}", "beyond"),
    "rounding an integer": ("{{ 1|round(-999999) }}", "beyond"),
    "to_bytes": ("{{ (1).to_bytes(999999999, 'big') }}", "pads"),
    "from_bytes": ("{{ (1).from_bytes(('a' * 1000000).encode(), 'big') }}", "a number"),
    "a number from text": ("{{ ('9' * 4000)|int * 2 }}", "a number"),
    "colliding keys": ("{{ range(0, 10**22, 10**17)|list|length }}", "range"),
    "colliding numbers": (
        "{{ range(0, 2305843009213693951 * 99999, 2305843009213693951)|unique|list|length }}",
        "range",
    ),
    # lists that share themselves
    "printed": (DOUBLED + "{{ n.x }}", "parts"),
    "joined by ~": (DOUBLED + "{{ 'a' ~ n.x }}", "parts"),
    "compared": (DOUBLED + "{% set a = n.x %}" + DOUBLED + "{{ a == n.x }}", "parts"),
    "ordered": (DOUBLED + "{% set a = n.x %}" + DOUBLED + "{{ a < n.x }}", "parts"),
    "looked for": (DOUBLED + "{% set a = n.x %}" + DOUBLED + "{{ a in [n.x] }}", "parts"),
    "tested": (DOUBLED + "{% set a = n.x %}" + DOUBLED + "{{ [a]|select('equalto', n.x)|list|length }}", "parts"),
    "to JSON": (DOUBLED + "{{ n.x|tojson }}", "parts"),
    "to text": (DOUBLED + "{{ n.x|string|length }}", "parts"),
    "upper": (DOUBLED + "{{ n.x|upper|length }}", "parts"),
    "pprint": (DOUBLED + "{{ n.x|pprint|length }}", "parts"),
    "escaped": (DOUBLED + "{{ n.x|e|length }}", "parts"),
    "sorted": (DOUBLED + "{% set a = n.x %}" + DOUBLED + "{{ [a, n.x]|sort|length }}", "parts"),
    "the least": (DOUBLED + "{% set a = n.x %}" + DOUBLED + "{{ [a, n.x]|min|length }}", "parts"),
    "joined": (DOUBLED + "{{ [n.x]|join(',')|length }}", "parts"),
    "joined by a method": (DOUBLED + "{{ ','.join([n.x|string]) }}", "parts"),
    "counted": (DOUBLED + "{% set a = n.x %}" + DOUBLED + "{{ [a].count(n.x) }}", "parts"),
    "formatted": (DOUBLED + "{{ '{}'.format(n.x)|length }}", "parts"),
    "formatted, by repr": (DOUBLED + "{{ '{!r}'.format(n.x)|length }}", "parts"),
    "formatted, by an attribute": (DOUBLED + "{{ '{0.x}'.format(n)|length }}", "parts"),
    "formatted by a map": (DOUBLED + "{{ '{a}'.format_map({'a': n.x})|length }}", "parts"),
    "formatted by %": (DOUBLED + "{{ ('%s' % [n.x])|length }}", "parts"),
    "formatted by the filter": (DOUBLED + "{{ '%s'|format(n.x)|length }}", "parts"),
    "raised": (DOUBLED + "{{ raise_exception(n.x) }}", "parts"),
    "mapped to JSON": (DOUBLED + "{{ [n.x]|map('tojson')|list|length }}", "parts"),
    "changed in a loop": (DOUBLED + "{% for a in [1, 2] %}{{ loop.changed(n.x) }}" + END, "parts"),
    "summed": (DOUBLED + "{{ [n.x, n.x]|sum(start=[])|string|length }}", "parts"),
    "hashed as a key": (TUPLES + "{{ {n.x: 1}|length }}", "parts"),
    "hashed as an index": (TUPLES + "{{ {}[n.x] }}", "parts"),
    "hashed by get": (TUPLES + "{{ {}.get(n.x) }}", "parts"),
    "hashed by unique": (TUPLES + "{{ [n.x]|unique|list|length }}", "parts"),
    "grouped": (TUPLES + "{{ [{'a': n.x}]|groupby('a')|length }}", "parts"),
    "maps": (MAPS + "{{ n.x }}", "parts"),
    "maps, sorted": (MAPS + "{{ n.x|dictsort }}", "parts"),
    "items of maps": (MAPS + "{{ n.x.items() }}", "parts"),
    "values of maps": (MAPS + "{{ n.x.values()|string }}", "parts"),
    "attributes of maps": (MAPS + "{{ n.x|xmlattr }}", "parts"),
    "maps in an address": (MAPS + "{{ n.x|urlencode }}", "parts"),
    "holders": (HOLDERS + "{{ n.x }}", "parts"),
    "repeated": ("{% set n=namespace(x=[1]) %}" + SIXTY + "{% set n.x=[n.x]*9 %}" + END + "{{ n.x }}", "parts"),
    "in batches": (
        "{% set n=namespace(x=[1]) %}{% for i in range(9) %}{% set n.x=[1]|batch(99, n.x)|list %}" + END + "{{ n.x }}",
        "parts",
    ),
    "a list in itself": ("{% set l = [] %}{% set _ = l.append(l) %}{{ l == [l] }}{{ l|tojson }}", ""),
    "deep": (
        "{% set n=namespace(x=[]) %}{% for i in range(5000) %}{% set n.x=[n.x] %}" + END + "{{ n.x }}",
        "recurses",
    ),
    "an index that is not found": (DOUBLED + "{{ {}[n.x] + 1 }}", "parts"),
    "kept lists": (
        "{% set n=namespace(x=[]) %}"
        + MANY
        + "{% for j in [1, 2, 3, 4] %}{% set n.x=[n.x, {'a': {'b': {}}}] %}"
        + END
        + END,
        "more than",
    ),
    "kept slices": (LONG + "{% set n=namespace(x=[]) %}" + MANY + "{% set n.x=[n.x, long[i:]] %}" + END, "more than"),
    "kept words": (
        "{% set n=namespace(x=[]) %}{% set w = 'a b ' * 200000 %}" + MANY + "{% set n.x=[n.x, w.split()] %}" + END,
        "more than",
    ),
    # text that grows
    "a format's width": ("{{ '{:{}}'.format(1, 999999999) }}", "width"),
    "a format's own width": ("{{ '{:999999999}'.format(1) }}", "width"),
    "a format's precision": ("{{ '{:.999999999f}'.format(1.5) }}", "width"),
    "a width by name": ("{{ '{a:{b}}'.format(a=1, b=999999999) }}", "width"),
    "a width in a map": ("{{ '{a:{b}}'.format_map({'a': 1, 'b': 999999999}) }}", "width"),
    "a width in safe text": ("{{ ('{:{}}'|safe).format(1, 999999999) }}", "width"),
    "a width among the values": ("{{ '%*d'|format(999999999, 1) }}", "width"),
    "a width among the values of %": ("{{ '%*d' % (999999999, 1) }}", "width"),
    "a precision among the values": ("{{ '%.*f' % (999999999, 1.5) }}", "width"),
    "a width in bytes": ("{{ '%999999999d'.encode() % 1 }}", "width"),
    "many fields": (LONG + "{{ ('{0}' * 100000).format(long) }}", "longer"),
    "many fields of %": (LONG + "{{ ('%(a)s' * 100000) % {'a': long} }}", "longer"),
    "bytes": ("{{ 'a'.encode() * 9999999999 }}", "longer"),
    "bytes in the middle": ("{{ 'a'.encode().center(9999999999) }}", "pads"),
    "expanded tabs": ("{{ '\\t'.expandtabs(9999999999) }}", "pads"),
    "translated": (LONG + "{{ long.translate({97: long}) }}", "longer"),
    "replaced": (LONG + "{{ long.replace('', long) }}", "longer"),
    "replaced by the filter": (LONG + "{{ long|replace('a', long) }}", "longer"),
    "joined long": (LONG + "{{ long.join(['a'] * 9999) }}", "longer"),
    "a generator, joined": (LONG + "{{ long.join(range(9999)|map('string')) }}", "longer"),
    "a generator of long texts, joined": (LONG + "{{ ([long] * 9999)|map('upper')|join }}", "more than"),
    "slices": ("{{ [1]|slice(999999999)|list|length }}", "beyond"),
    "batches": ("{{ [1]|batch(999999999, 1)|list|length }}", "beyond"),
    "indented": ("{{ ('\\n' * 99999)|indent(9999) }}", "longer"),
    "indented by a text": (LONG + "{{ ('\\n' * 99999)|indent(long) }}", "beyond"),
    "JSON, indented": ("{{ [1]|tojson(indent=999999999) }}", "beyond"),
    "JSON, separated": (LONG + "{{ [1, 2]|tojson(separators=(long, long)) }}", "lays out"),
    "links": ("{{ ('http://a.bc ' * 9999)|urlize(target='a' * 9999) }}", "urlize"),
    "wrapped": ("{{ ('a ' * 9999)|wordwrap(1, wrapstring='a' * 9999) }}", ""),
    "tags taken away": ("{{ ('<!--' * 99999)|striptags }}", "striptags"),
    "tags taken away by a method": ("{{ (('<!--' * 99999)|safe).striptags() }}", "striptags"),
    "searched from the end": (LONG + "{{ long.rfind('b' ~ long[:500000]) }}", "searches"),
    "stripped": (LONG + "{{ ('b' * 1000000).strip(long) }}", "searches"),
    "trimmed": (LONG + "{{ ('b' * 1000000)|trim(long) }}", "searches"),
    "lists summed": (
        "{{ [[1] * 99999, [2]]|sum(start=[])|length }}{{ ([[1] * 999] * 999)|sum(start=[])|length }}",
        "parts",
    ),
    "filler text": ("{{ lipsum(999999999) }}", "not callable"),
    "the time": ("{{ strftime_now('%Y' * 9999) }}", "the time"),
    "the time at width": ("{{ strftime_now('%999999999Y') }}", "width"),
    "doubled": ("{% set n=namespace(x='aa') %}" + SIXTY + "{% set n.x=n.x ~ n.x %}" + END, "longer"),
    "doubled by +": ("{% set n=namespace(x='aa') %}" + SIXTY + "{% set n.x=n.x + n.x %}" + END, "longer"),
    "captured": (LONG + "{% set x %}" + MANY + "{{ long }}" + END + "{% endset %}", "more than"),
    "captured text": ("{% set x %}" + MANY + "a" * 9999 + END + "{% endset %}", "more than"),
    "captured by a macro": (
        LONG + "{% macro m() %}" + MANY + "{{ long }}" + END + "{% endmacro %}{{ m() }}",
        "more than",
    ),
    "captured by a filter": (LONG + "{% filter upper %}" + MANY + "{{ long }}" + END + "{% endfilter %}", "more than"),
    "printed at length": (LONG + "{{ long }}{{ long }}", "more than"),
    "kept": (LONG + "{% set l = [] %}{% for i in range(9999) %}{% set _ = l.append(long[:999000] ~ i) %}" + END, ""),
    # time
    "loops in loops": ("{% for a in range(99999) %}{% for b in range(99999) %}" + END + END, "rounds"),
    "a chain of filters": (
        "{{ range(99999)|map('string')|map('upper')|map('lower')|map('title')|map('trim')|map('length')|sum }}",
        "rounds",
    ),
    "macros": ("{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(50) }}", ""),
    "blocks": (
        "".join(
            "{% block b"
            + str(at)
            + " %}{{ self.b"
            + str(at + 1)
            + "() }}{{ self.b"
            + str(at + 1)
            + "() }}{% endblock %}"
            for at in range(40)
        )
        + "{% block b40 %}{% endblock %}",
        "",
    ),
    "a loop that calls itself": ("{% for a in [[1]] recursive %}{{ loop([[1]]) }}" + END, "recurses"),
    "no end": ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "recurses"),
    "a little slow, again and again": (
        TURN + "{% for i in range(70000) %}{% set x = i|string|length %}" + END,
        "took longer",
    ),
    # what the analysis makes of it
    "tools behind content": (CONTENT + TOOLS + END, ""),
    "a long marker behind content": (CONTENT + "a" * 390_000 + END, "renders more"),
    "a marker of nearly the bound": (CONTENT + "ab" * 4_900 + END, ""),
    "brackets behind content": (CONTENT + "<a" * 4_900 + END, ""),
    "tags behind content": (CONTENT + "".join(f"<a{at}>" for at in range(1_200)) + END, ""),
    "blanks behind content": (CONTENT + "<a " + " " * 9_000 + END, ""),
    "a long marker before content": ("{% for m in messages %}" + "ab" * 4_900 + "{{ m.content }}" + END, ""),
    "long markers around calls": (
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls %}"
        + "<x>" * 900
        + "{{ c.function|tojson }}"
        + "</x>" * 900
        + END
        + "</s>"
        + END,
        "",
    ),
    "content many times": ("{% for m in messages %}{% for i in range(400) %}{{ m.content }}" + END + END, ""),
    "calls many times": (
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for i in range(40) %}{% for c in m.tool_calls %}"
        "<call>{{ c.function|tojson }}</call>" + END + END + "</s>" + END,
        "",
    ),
    # compiling
    "many words": ("{{ a }}" * 57_000, "words"),
    "deep brackets": ("{{ " + "[" * 9_000 + "]" * 9_000 + " }}", "nested"),
    "deep sums": ("{{ " + "a + " * 18_000 + "a }}", "nested"),
    "deep conditions": ("{% if a %}" * 9_000 + "{% endif %}" * 9_000, "nested"),
    "many conditions": ("{% if a %}" + "{% elif b %}" * 9_000 + "{% endif %}", ""),
    "constants": ("{{ 'a'|center(9999)|length }}" * 3_000, ""),
    "a long template": ("a" * 400_001, "characters"),
    # what it says
    "a long message": ("{{ raise_exception('a' * 999999) }}", "aaa"),
    "a message of many lines": ("{{ raise_exception('a\\n' * 999) }}", "a a a"),
    "a long name": ("{{ " + "a" * 99_999 + ".b }}", "aaa"),
}


class Runner:
    """The process that derives; it is started with the first row."""

    def __init__(self) -> None:
        command = [sys.executable, str(Path(__file__).with_name("hostile.py"))]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, template: str) -> dict[str, Any]:
        """What came of a template."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(template) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    made = Runner()
    yield made
    made.process.communicate()


@pytest.mark.parametrize("name", quarter([*ROWS], "test_a_hostile_template_costs_little_and_says_why"))
def test_a_hostile_template_costs_little_and_says_why(name: str, runner: Runner) -> None:
    template, words = ROWS[name]
    outcome = runner.run(template)
    assert outcome["cpu"] < CPU_SECONDS, outcome
    assert outcome["mb"] < MEGABYTES, outcome
    assert not outcome["error"] or outcome["error"].startswith(("CostlyTemplate: ", "TemplateError: ")), outcome
    assert words in outcome["error"]
    assert len(outcome["error"]) < 400
    assert "\n" not in outcome["error"]


# --- a process of its own -------------------------------------------------------------------------------------------

GOOD = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls %}"
    "<call>{{ c.function|tojson }}</call>"
    "{% endfor %}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def test_a_process_of_its_own_gives_the_same_format() -> None:
    here, apart = toolgram.derive_format(GOOD), toolgram.derive_format(GOOD, isolate=True)
    assert (apart.grammar_text, apart.machine_text) == (here.grammar_text, here.machine_text)
    assert here.report is not None
    assert apart.report is not None
    assert {**apart.report.to_dict(), "seconds": 0} == {**here.report.to_dict(), "seconds": 0}
    assert apart.report.analysis is None


@pytest.mark.parametrize("name", ["squares", "printed", "a format's width", "many words"])
def test_a_process_of_its_own_says_why_it_stopped(name: str) -> None:
    template, words = ROWS[name]
    with pytest.raises(TemplateError, match=words):
        toolgram.derive_format(template, isolate=True)


@pytest.mark.parametrize("leak", ["while True: pass", "kept = [bytearray(1 << 26) for _ in range(99)]", "os._exit(3)"])
def test_what_leaks_ends_the_process_and_nothing_else(leak: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = (
        "import os, toolgram.derive.deriving as d\ndef leak(*_):\n    "
        + leak
        + "\n    raise MemoryError\nd._derive = leak\n"
    )
    monkeypatch.setattr(isolated, "_COMMAND", broken + isolated._COMMAND)
    monkeypatch.setattr(isolated, "_GRACE", 0.5)
    with pytest.raises(CostlyTemplate, match=r"the process that derived was ended|MemoryError while"):
        toolgram.derive_format(GOOD + leak, isolate=True, seconds=0.5)
    monkeypatch.undo()
    assert toolgram.derive_format(GOOD + "a", isolate=True).name


def test_variables_for_a_process_of_its_own_are_json() -> None:
    with pytest.raises(TemplateError, match="variables are JSON"):
        toolgram.derive_format(GOOD, chat_template_kwargs={"x": object()}, isolate=True)
