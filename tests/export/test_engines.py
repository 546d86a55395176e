"""The proof: exports run in their engines. What fits is accepted, what is malformed is not, and a random sampler under
the token mask writes nothing but complete, valid calls."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import toolgram
from tests.export.engines import Engines, plain_engines, sample
from tests.export.measuring import (
    SAMPLES,
    TOOLS,
    WRITTEN,
    accepts,
    exported,
    measure,
    problem_of,
    required_of,
    tool,
    words_of,
)
from tests.export.writing import random_output
from tests.properties.selection import every_format, quarter
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


# --- requests -----------------------------------------------------------------------------------------------------

CALL = {
    "mistral_v11": '[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}',
    "hermes": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>',
    "qwen3_coder": "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n"
    "</function>\n</tool_call>",
    "lfm2": '<|tool_call_start|>[get_weather(city="Paris")]<|tool_call_end|>',
}
OTHER = {name: text.replace("get_weather", "get_time") for name, text in CALL.items()}
OTHER["mistral_v11"] = "[TOOL_CALLS]get_time[ARGS]{}"
OTHER["hermes"] = '<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>'
OTHER["qwen3_coder"] = "<tool_call>\n<function=get_time>\n</function>\n</tool_call>"
OTHER["lfm2"] = "<|tool_call_start|>[get_time()]<|tool_call_end|>"
THOUGHT = {
    "mistral_v11": "[THINK]Hm.[/THINK]",
    **dict.fromkeys(("hermes", "qwen3_coder", "lfm2"), "<think>Hm.</think>"),
}


@pytest.mark.parametrize("target", WRITTEN)
@pytest.mark.parametrize("name", CALL)
def test_requests(name: str, target: str) -> None:
    call, other, thought = CALL[name], OTHER[name], THOUGHT[name]
    between = "\n" if name in ("hermes", "qwen3_coder") else ""
    two = call + between + other
    say = "Let me look."

    def good(text: str, **request: Any) -> bool:
        return accepts(name, target, text, **request)

    assert all(good(text) for text in ("", say, call, say + call, two, thought + say, thought + call))
    required = {"tool_choice": "required"}
    assert good(call, **required)
    assert good("\n\n" + call, **required)
    assert good(say + call, text_before_calls=True, **required)
    assert not good(say + call, **required)  # the call comes at once
    assert good(two, **required)
    assert not good("", **required)
    assert not good(say, **required)
    assert good(say, tool_choice="none")
    assert not good(call, tool_choice="none")
    named = {"tool_choice": {"type": "function", "function": {"name": "get_time"}}}
    assert good(other, **named)
    assert not good(call, **named)
    assert not good(other + between + other, **named)
    assert not good(say, **named)
    assert not good(other + say, **named)
    assert not good(other + say, text_before_calls=True, **named)
    assert good(call, parallel_tool_calls=False)
    assert not good(two, parallel_tool_calls=False)
    assert good(thought + call, reasoning=True)
    assert not good(call, reasoning=True)
    assert not good(thought + call, reasoning=False)
    assert not good(thought[:-3] + call, reasoning=True)  # reasoning is closed before a call
    answer = {"json_schema": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}
    assert good('{"a": 1}', tool_choice="none", **answer)
    assert good(thought + '{"a": 1}', tool_choice="none", **answer)
    assert not good("one", tool_choice="none", **answer)
    assert not good('{"a": "x"}', tool_choice="none", **answer)
    assert good(call, **answer)
    assert good(two, **answer)
    assert good('\n{"a": 1}\n', **answer)
    assert good(call, tool_choice="required", **answer)
    assert not good('{"a": 1}', tool_choice="required", **answer)
    assert good(call, tool_choice=["get_weather"])
    assert not good(other, tool_choice=["get_weather"])
    assert good(say, tool_choice=["get_weather"])
    some = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "get_time"}]}
    assert good(other, tool_choice=some)
    assert not good(call, tool_choice=some)
    assert not good(say, tool_choice=some)
    assert good(say, tool_choice=None)
    stops = toolgram.get_format(name).export(target, TOOLS).stop
    assert not stops or good(call + stops[0], stop_tokens_inside=True)
    assert not stops or not good(call, stop_tokens_inside=True)


@pytest.mark.parametrize("target", WRITTEN)
def test_arguments_follow_the_schema(target: str) -> None:
    def good(arguments: str, strict: bool | None = None, **request: Any) -> bool:
        schema = {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
            "required": ["a"],
        }
        function: dict[str, Any] = {"name": "f", "parameters": schema}
        if strict is not None:
            function["strict"] = strict
        made = toolgram.get_format("mistral_v11").export(
            target, [{"type": "function", "function": function}], **request
        )
        return plain_engines().load(target, made.text).accepts(f"[TOOL_CALLS]f[ARGS]{arguments}")

    assert good('{"a": 1, "b": "x"}')
    assert good('{"a":1}')
    assert good('{"b": "x", "a": 1}')
    assert not good('{"a": 1, "c": [true]}')  # nothing is said, so it is closed
    assert good('{"a": 1, "c": [true]}', open_objects=True)
    assert not good('{"a": 1, "c": [true]}', strict=True, open_objects=True)
    assert not good('{"a": 1, "c": [true]}', strict=True)
    assert not good('{"b": "x"}')
    assert not good('{"a": "x"}')
    assert good('{"anything": "x"}', strict=False)
    assert not good("[1]", strict=False)


# --- values in the format's own notation --------------------------------------------------------------------------

NOTATED = [
    tool(
        "f",
        {
            "any": {},
            "map": {"type": "object"},
            "object": {
                "type": "object",
                "properties": {"x y": {"type": "string"}, "z": {"type": ["null", "integer"]}},
                "required": ["z"],
                "additionalProperties": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+$"}},
            },
            "listed": {"enum": ["a", None, 1, {"k": ["v"]}]},
        },
        ["any", "map"],
        additionalProperties=False,
    )
]
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


# --- any tools ----------------------------------------------------------------------------------------------------

LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"enum": ["red", "dark blue", "x"]},
        {"type": "integer", "minimum": 0, "maximum": 20},
        {"type": "number"},
        {"type": "boolean"},
        {"type": ["string", "null"]},
        {"type": "array", "items": {"type": "integer"}},
        {"const": "fixed"},
        {"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
        {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"], "additionalProperties": False},
    ]
)
NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,12}", fullmatch=True)


@st.composite
def tool_lists(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A few tools with names and parameters of any kind."""
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    made = []
    for name in names:
        properties = draw(st.dictionaries(NAMES, LEAVES, max_size=6))
        required = draw(st.lists(st.sampled_from(sorted(properties)), unique=True)) if properties else []
        made.append(tool(name, properties, required, additionalProperties=draw(st.booleans())))
    return made


@every_format
def test_arguments_whose_names_begin_alike(name: str) -> None:
    """A lexer goes on with the longest piece that may stand there, and does not come back to a shorter one."""
    properties = {
        "city": {"type": "string"},
        "city0": {"type": "integer", "minimum": 0, "maximum": 20},
        "count": {"type": "number"},
        "c": {"type": "boolean"},
        "cities": {"type": "array", "items": {"type": "integer", "minimum": 3, "maximum": 30}},
        "kind": {"enum": ["a", "ab", 1, 12]},
    }
    tools = [tool(each, properties, ["city"], additionalProperties=True) for each in ("find", "find_all")]
    fmt = toolgram.get_format(name)
    root, triggers = expression(fmt, export_request(tools), None, lambda words: None)
    engine = Engines(words_of(fmt, tools, triggers)).load("llguidance", exported(fmt, "llguidance", tools).text)
    rng = random.Random(1)
    for _ in range(20):
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


@every_format
@settings(max_examples=max(3, SAMPLES // 2), suppress_health_check=list(HealthCheck), deadline=None)
@given(tools=tool_lists(), seed=st.integers(0, 2**32))
def test_any_tools(name: str, tools: list[dict[str, Any]], seed: int) -> None:
    fmt = toolgram.get_format(name)
    rng = random.Random(seed)
    root, triggers = expression(fmt, export_request(tools), None, lambda words: None)
    engines = Engines(words_of(fmt, tools, triggers))
    outputs = [random_output(root, rng) for _ in range(3)]
    for target in WRITTEN:
        engine = engines.load(target, exported(fmt, target, tools).text)
        for text in outputs:
            assert engine.accepts(text), (target, text)
        # A random walk may stay in arguments that go on; where the grammar has no way out, every walk does.
        walks = (sample(engine, rng, triggers, required_of(tools), 80) for _ in range(4))
        written = next((each for each in walks if each is not None), None)
        assert written is not None, target
        assert not problem_of(fmt, written, tools), (target, written)


@pytest.mark.parametrize("target", WRITTEN)
@pytest.mark.parametrize(
    ("name", "call"),
    [
        (
            "step3",
            '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="f">'
            '<steptml:parameter name="%s">1</steptml:parameter></steptml:invoke>'
            "<｜tool_call_end｜><｜tool_calls_end｜>",
        ),
        (
            "minimax_m2",
            '<minimax:tool_call>\n<invoke name="f">\n<parameter name="%s">1</parameter>\n</invoke>\n'
            "</minimax:tool_call>",
        ),
    ],
)
def test_a_name_in_an_attribute_is_a_name(name: str, call: str, target: str) -> None:
    """Quotes of a tag are no string of JSON: what stands in them is a name that the parser reads."""
    any_names = {"type": "object", "properties": {}, "additionalProperties": True}
    tools = [{"type": "function", "function": {"name": "f", "parameters": any_names}}]
    engine = plain_engines().load(target, toolgram.get_format(name).export(target, tools, "required", prefix="").text)
    assert engine.accepts(call % "a_b")
    assert not any(engine.accepts(call % each) for each in ("a<b", "</think>", "a b", ""))


@pytest.mark.parametrize("name", ["functiongemma", "gemma4", "minimax_m3", "qwen3_coder", "lfm2"])
def test_items_of_which_one_begins_another(name: str) -> None:
    """A lexer takes the longer text, so the longer one is cut, also inside of what is repeated."""
    items = {"type": "array", "items": {"enum": [1, 100]}, "maxItems": 3}
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": items}}}}]
    fmt = toolgram.get_format(name)
    with at_most(calls=1_000_000):
        made = fmt.export("llguidance", tools, "required", reasoning=False)
    engine = plain_engines().load("llguidance", made.text)
    root, _ = expression(fmt, export_request(tools, "required", reasoning=False), None, lambda words: None)
    rng = random.Random(0)
    for _ in range(30):
        text = random_output(root, rng)
        assert engine.accepts(text), text
