"""The proof: exports run in their engines. What fits is accepted, what is malformed is not, and a random sampler under
the token mask writes nothing but complete, valid calls."""

import random
from contextlib import nullcontext
from itertools import product
from typing import Any

import pytest

import toolgram
from tests.export.engines import NEEDED, Engines, plain_engines
from tests.export.measuring import PROMPTS, SAMPLES, TOOLS, WRITTEN, exported, measure, problem_of, tool, words_of
from tests.export.writing import random_output
from tests.properties.selection import every_format, formats_of, quarter
from tests.tables import table
from tests.work import at_most
from toolgram.export import export_request, expression

pytestmark = NEEDED


@pytest.mark.parametrize("target", WRITTEN)
@every_format
def test_every_export_in_its_engine(name: str, target: str) -> None:
    figures = measure(toolgram.get_format(name), target, SAMPLES)
    assert not figures.problems, "\n".join(figures.problems[:3])
    assert (figures.counts["accepted"], figures.counts["valid"]) == (SAMPLES, SAMPLES)


@pytest.mark.parametrize("target", WRITTEN)
def test_definitions_of_two_functions_are_told_apart(target: str) -> None:
    tools = []
    for name, kind in (("numbers", "integer"), ("words", "string")):
        listed = {"type": "array", "items": {"$ref": "#/$defs/n"}}
        node = tool("", {"v": {"type": kind}, "inner": listed}, ["v"])["function"]["parameters"]
        tools.append(tool(name, {"all": listed}, ["all"], **{"$defs": {"n": node}}))
    engine = plain_engines().load(target, toolgram.get_format("hermes").export(target, tools, "required").text)
    for value, fits in (("2", True), ('"two"', False)):
        inner = f'{{"all": [{{"v": 1, "inner": [{{"v": {value}}}]}}]}}'
        call = f'<tool_call>\n{{"name": "numbers", "arguments": {inner}}}\n</tool_call>'
        assert engine.accepts(call) == fits


# --- values in the format's own notation --------------------------------------------------------------------------

NOTATED = table(__file__, "notated")
OWN = [name for name in toolgram.format_names() if toolgram.get_format(name).spec.notation]


def nested_city(notation: tuple[str, ...]) -> tuple[dict[str, Any], tuple[str, str]]:
    """A schema for the city of an example call, and how to write a nested value in place of its name."""
    if len(notation) == 2:
        opening, closing = notation
        nested = f"{{a:[1,{{b:{opening}it's {{c}}{closing},n:None}}],e:{{}}}}"
        return {}, (f"{opening}Paris{closing}", nested)
    opening, closing, item = notation  # elements, which only a schema tells from text

    def element(name: str, inside: str) -> str:
        return f"{opening}{name}>{inside}{closing}{name}>"

    inner = {"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": False}
    listed = {"type": "array", "items": inner}
    city = {"type": "object", "properties": {"a": listed, "e": {"type": "integer"}}, "additionalProperties": False}
    text = element(item, element("b", "it's {c}"))
    return city, (f"Paris{closing}", element("a", text + element(item, "")) + element("e", "1") + closing)


@pytest.mark.parametrize("target", WRITTEN)
@pytest.mark.parametrize("name", OWN)
def test_nested_values_in_the_quotes_of_a_format(name: str, target: str) -> None:
    fmt = toolgram.get_format(name)
    figures = measure(fmt, target, SAMPLES, NOTATED)
    assert not figures.problems, "\n".join(figures.problems[:3])
    city, written = nested_city(fmt.spec.notation)
    call = str(fmt.example).replace(*written)
    assert written[1] in call
    parameters = {"city": city, "days": {"type": "integer"}, "hours": {"type": "array", "items": {"type": "integer"}}}
    weather = [tool("get_weather", parameters, ["city"]), tool("get_time", {})]
    assert fmt.parse(call, weather).tool_calls[0].status == "complete"
    assert plain_engines().load(target, fmt.export(target, weather).text).accepts(call)


# --- lengths of raw values ----------------------------------------------------------------------------------------

CODE = "if x < 3:\n  y"
RAW = [
    name
    for name in toolgram.format_names()
    if {("value", ""), ("value", "text")}
    & {(each.meaning, each.typed) for each in toolgram.get_format(name).spec.states.values()}
]


@pytest.mark.parametrize(
    "limits", [{"minLength": 1}, {"minLength": 2, "maxLength": 16}, {"maxLength": 64}, {"maxLength": 5000}]
)
def test_a_raw_value_with_a_length_holds_any_text(limits: dict[str, int]) -> None:
    """A limit takes nothing from a value: what is accepted without it, and fits it, is accepted with it."""

    def accepted(fmt: toolgram.Format, target: str, said: dict[str, int]) -> bool:
        city = {"type": "string", **said}
        tools = [tool("get_weather", {"city": city, "days": {"type": "integer"}}, ["city"]), TOOLS[1]]
        made = fmt.export(target, tools)
        assert not said or target == "llguidance" or any("length of a raw value" in note for note in made.notes)
        return engines.load(target, made.text).accepts(fmt.example.replace("Paris", CODE))

    engines = plain_engines()
    known = 0
    for name in quarter(RAW, f"lengths of raw values {limits}"):
        fmt = toolgram.get_format(name)
        for target in WRITTEN:
            if accepted(fmt, target, {}):
                known += 1
                assert accepted(fmt, target, limits), (name, target)
    assert known


@pytest.mark.parametrize("limits", [{"minLength": 2, "maxLength": 9}, {"maxLength": 16}])
def test_llguidance_holds_a_raw_value_to_its_length(limits: dict[str, int]) -> None:
    fmt = toolgram.get_format(RAW[0])
    figures = measure(fmt, "llguidance", SAMPLES, [tool("f", {"a": {"type": "string", **limits}}, ["a"])])
    assert not figures.problems, "\n".join(figures.problems[:3])


# --- names and items that begin alike -----------------------------------------------------------------------------

BEGIN_ALIKE = table(__file__, "begin_alike")
ALIKE = {
    "arguments": [tool(each, BEGIN_ALIKE, ["city"], additionalProperties=True) for each in ("find", "find_all")],
    # Where text may be as well, a name is no pieces: the lexer would go on with the text after the first.
    "functions": [tool(f"update_row_{at}", {}) for at in (1, 12, 2, 30, 38, 4)],
    # The longer one is cut, also inside of what is repeated.
    "items": [tool("f", {"a": {"type": "array", "items": {"enum": [1, 100]}, "maxItems": 3}})],
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *product(formats_of("names that begin alike"), ("arguments", "functions")),
        *product(("functiongemma", "gemma4", "minimax_m3", "qwen3_coder", "lfm2"), ("items",)),
    ],
)
def test_what_begins_alike_is_taken_as_it_is_written(name: str, kind: str) -> None:
    """llguidance accepts what the expression of a request writes, also where a lexer could take a longer piece.

    A lexer goes on with the longest piece that may be there, and does not come back to a shorter one.
    """
    fmt, prefix, tools = toolgram.get_format(name), PROMPTS.get(name), ALIKE[kind]
    request: dict[str, Any] = {"tool_choice": "required", "reasoning": False} if kind == "items" else {}
    with at_most(calls=1_000_000) if kind == "items" else nullcontext():
        made = exported(fmt, "llguidance", tools, prefix=prefix, **request)
    root, triggers = expression(fmt, export_request(tools, **request), prefix, lambda words: None)
    engine = Engines(words_of(fmt, tools, triggers)).load("llguidance", made.text)
    rng = random.Random(0)
    for _ in range(30):
        text = random_output(root, rng)
        assert engine.accepts(text), text


@pytest.mark.parametrize("name", toolgram.format_names())
@pytest.mark.parametrize("choice", ["auto", "required"])
def test_what_an_export_writes_is_read_without_an_anomaly(name: str, choice: Any) -> None:
    """Every format on every run, without an engine: a closing marker that the parser misses, no export leaves out."""
    fmt = toolgram.get_format(name)
    root, _ = expression(fmt, export_request(TOOLS, tool_choice=choice), None, lambda words: None)
    rng = random.Random(0)
    for _ in range(8):
        text = random_output(root, rng)
        assert not problem_of(fmt, text, TOOLS), text
