"""The proof: exports run in their engines. What fits is accepted, what is malformed is not, and a random sampler under
the token mask writes nothing but complete, valid calls."""

from __future__ import annotations

import random
from typing import Any

import pytest

import toolgram
from tests.export.engines import Engines, plain_engines
from tests.export.measuring import (
    PROMPTS,
    SAMPLES,
    TOOLS,
    WRITTEN,
    accepts,
    exported,
    measure,
    problem_of,
    tool,
    words_of,
)
from tests.export.writing import random_output
from tests.properties.selection import every_format, quarter
from tests.tables import table
from tests.work import at_most
from toolgram.export import export_request, expression

for engine in ("llguidance", "tvm_ffi", "numpy", "jsonschema"):
    pytest.importorskip(engine, reason="the engines are not here: make test installs them")


@pytest.mark.parametrize("target", WRITTEN)
@every_format
def test_every_export_in_its_engine(name: str, target: str) -> None:
    figures = measure(toolgram.get_format(name), target, SAMPLES)
    assert not figures.problems, "\n".join(figures.problems[:3])
    assert figures.counts["accepted"] == SAMPLES
    assert figures.counts["valid"] == SAMPLES


@pytest.mark.parametrize("target", WRITTEN)
def test_definitions_of_two_functions_are_told_apart(target: str) -> None:
    def trees(name: str, kind: str) -> dict[str, Any]:
        node = tool("", {"v": {"type": kind}, "inner": {"type": "array", "items": {"$ref": "#/$defs/n"}}}, ["v"])
        schema = {"n": node["function"]["parameters"]}
        return tool(name, {"all": {"type": "array", "items": {"$ref": "#/$defs/n"}}}, ["all"], **{"$defs": schema})

    def taken(value: str) -> bool:
        inner = f'{{"all": [{{"v": 1, "inner": [{{"v": {value}}}]}}]}}'
        call = f'<tool_call>\n{{"name": "numbers", "arguments": {inner}}}\n</tool_call>'
        return accepts("hermes", target, call, tools, tool_choice="required")

    tools = [trees("numbers", "integer"), trees("words", "string")]
    assert taken("2")
    assert not taken('"two"')


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
    hours = {"type": "array", "items": {"type": "integer"}}
    weather = [
        tool("get_weather", {"city": city, "days": {"type": "integer"}, "hours": hours}, ["city"]),
        tool("get_time", {}),
    ]
    assert fmt.parse(call, weather).tool_calls[0].status == "complete"
    assert plain_engines().load(target, fmt.export(target, weather).text).accepts(call)


# --- lengths of raw values ----------------------------------------------------------------------------------------

CODE = "if x < 3:\n  y"
RAW = [
    name
    for name in toolgram.format_names()
    if any(
        each.meaning == "value" and each.typed in ("", "text")
        for each in toolgram.get_format(name).spec.states.values()
    )
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


def takes_what_is_written(name: str, tools: list[dict[str, Any]], **request: Any) -> None:
    """llguidance accepts what the expression of a request writes, also where a lexer could take a longer piece.

    A lexer goes on with the longest piece that may be there, and does not come back to a shorter one.
    """
    fmt, prefix = toolgram.get_format(name), PROMPTS.get(name)
    made = exported(fmt, "llguidance", tools, prefix=prefix, **request)
    root, triggers = expression(fmt, export_request(tools, **request), prefix, lambda words: None)
    engine = Engines(words_of(fmt, tools, triggers)).load("llguidance", made.text)
    rng = random.Random(0)
    for _ in range(30):
        text = random_output(root, rng)
        assert engine.accepts(text), text


@every_format
def test_arguments_whose_names_begin_alike(name: str) -> None:
    properties = {
        "city": {"type": "string"},
        "city0": {"type": "integer", "minimum": 0, "maximum": 20},
        "count": {"type": "number"},
        "c": {"type": "boolean"},
        "cities": {"type": "array", "items": {"type": "integer", "minimum": 3, "maximum": 30}},
        "kind": {"enum": ["a", "ab", 1, 12]},
    }
    tools = [tool(each, properties, ["city"], additionalProperties=True) for each in ("find", "find_all")]
    takes_what_is_written(name, tools)


@every_format
def test_functions_whose_names_begin_alike(name: str) -> None:
    """Where text may be as well, a name is no pieces: the lexer would go on with the text after the first."""
    takes_what_is_written(name, [tool(f"update_row_{at}", {}) for at in (1, 12, 2, 30, 38, 4)])


@pytest.mark.parametrize("name", ["functiongemma", "gemma4", "minimax_m3", "qwen3_coder", "lfm2"])
def test_items_of_which_one_begins_another(name: str) -> None:
    """The longer one is cut, also inside of what is repeated."""
    items = {"type": "array", "items": {"enum": [1, 100]}, "maxItems": 3}
    tools = [tool("f", {"a": items})]
    with at_most(calls=1_000_000):
        toolgram.get_format(name).export("llguidance", tools, "required", reasoning=False)
    takes_what_is_written(name, tools, tool_choice="required", reasoning=False)


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
