"""The normal form of a schema: it means what the schema means, judged by another library."""

import random
from typing import Any

import pytest

import toolgram
from tests.export.schema_pool import READ_OTHERWISE, WRITTEN, chained, nested, pool, spoiled, standard, values
from tests.properties.selection import quarter
from tests.tables import table
from tests.work import at_most
from toolgram.export.normalising import normal_form

jsonschema_rs = pytest.importorskip("jsonschema_rs", reason="the judge of schemas is not here: make test installs it")


@pytest.mark.parametrize("name", [*WRITTEN, *quarter([*pool()][len(WRITTEN) :], "normal forms")])
def test_the_normal_form_means_the_same(name: str) -> None:
    schema = pool()[name]
    notes: list[str] = []
    form: Any = normal_form(schema, "f", notes.append, "object", open_objects=True)
    assert set(_keywords(form)) <= {"$defs", "$ref", "anyOf", "enum", "type", "minLength", "maxLength", "pattern",
        "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems",
        "prefixItems", "items", "properties", "required", "additionalProperties", "patternProperties",
        "propertyNames", "minProperties", "maxProperties"}  # fmt: skip
    if name in READ_OTHERWISE:
        assert notes or name.startswith("old")
        return
    judge = jsonschema_rs.Draft202012Validator(standard(schema))
    ours = jsonschema_rs.Draft202012Validator(form)
    rng = random.Random(name)
    for value in values(form, rng, 30):
        for each in (value, spoiled(value, rng), spoiled(spoiled(value, rng), rng)):
            if isinstance(each, dict):
                meant, read = judge.is_valid(each), ours.is_valid(each)
                assert meant == read or (read and any("oneOf" in note for note in notes)), (each, form, notes)


def _keywords(schema: Any) -> list[str]:
    if not isinstance(schema, dict):
        return []
    found = list(schema)
    for key in ("items", "additionalProperties", "propertyNames"):
        found += _keywords(schema.get(key))
    for key in ("anyOf", "prefixItems"):
        found += [each for one in schema.get(key, ()) for each in _keywords(one)]
    for key in ("properties", "patternProperties", "$defs"):
        found += [each for one in schema.get(key, {}).values() for each in _keywords(one)]
    return found


def _usual(rng: random.Random, depth: int) -> dict[str, Any]:
    """A schema as most functions declare it, or nearly."""
    kind = rng.choice(("string", "integer", "null", "array", "object")[: 5 if depth else 3])
    made: dict[str, Any] = {"type": kind, **rng.choice(({}, {}, {"description": "d"}, {"minLength": 1}))}
    if kind == "string":
        made |= rng.choice(({}, {"enum": ["x", "yy"]}, {"enum": ["x", "x"]}))
    elif kind == "array":
        made |= rng.choice(({}, {"items": _usual(rng, depth - 1)}))
    elif kind == "object":
        made["properties"] = {name: _usual(rng, depth - 1) for name in rng.sample("abcé", rng.randrange(4))}
        made |= rng.choice(({}, {"required": [*made["properties"]]}, {"additionalProperties": {"type": "null"}}))
        made |= rng.choice(({}, {"additionalProperties": False}, {"required": ["a"], "additionalProperties": True}))
    return made


def test_a_plain_schema_has_the_form_that_all_have() -> None:
    rng = random.Random(1)
    for schema in ({"type": "object", "properties": {"v": _usual(rng, 4)}} for _ in range(3_000)):
        (plain, notes), (whole, more) = form_of(schema, "object"), form_of({"allOf": [schema]}, "object")
        assert plain == whole, schema
        assert {*notes} == {note.replace("#/allOf/0: ", "").replace("/allOf/0", "") for note in more}, schema


@pytest.mark.parametrize("name", WRITTEN)
def test_closed_where_nothing_is_said(name: str) -> None:
    notes: list[str] = []
    form: Any = normal_form(WRITTEN[name], "f", notes.append, "object")
    judge = jsonschema_rs.Draft202012Validator(form)
    if "properties" in form and "additionalProperties" not in WRITTEN[name]:
        assert form["additionalProperties"] is False
        assert any("is closed" in note for note in notes)
    assert all(judge.is_valid(value) for value in values(form, random.Random(name), 5) if "pattern" not in str(form))


def form_of(schema: dict[str, Any], only: str = "") -> tuple[Any, list[str]]:
    notes: list[str] = []
    return normal_form(schema, "f", notes.append, only), notes


@pytest.mark.parametrize("row", table(__file__, "said twice"))
def test_what_is_said_twice_is_one(row: dict[str, Any]) -> None:
    assert form_of(row["schema"])[0] == row["form"]


def test_notes_for_what_is_lost() -> None:
    schema = {"properties": {"a": {"not": {"type": "null"}, "uniqueItems": True, "type": "array"}}, "if": {}}
    lost = ("#/properties/a: not", "#/properties/a: uniqueItems", "if")
    assert {f"{each} is not enforced" for each in lost} <= {*form_of(schema)[1]}
    assert any("oneOf" in note for note in form_of({"oneOf": [{"type": "string"}, {"maxLength": 3}]})[1])
    assert not any("oneOf" in note for note in form_of({"oneOf": [{"type": "string"}, {"type": "null"}]})[1])


def test_a_schema_that_nothing_fits() -> None:
    for schema in (False, {"$ref": "#"}):
        with pytest.raises(toolgram.ToolgramError, match="no value fits"):
            form_of({"type": "object", "properties": {"a": schema}, "required": ["a"]})


def shared(depth: int) -> dict[str, Any]:
    """Alternatives that are the same object again and again: two to the power of `depth` of them, written out."""
    made: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        made = {"type": "object", "properties": {"v": {"anyOf": [made, {"type": "null"}, made]}}}
    return made


@pytest.mark.parametrize(
    "schema",
    [
        shared(40),
        chained(3000),
        nested(3000),
        {"allOf": [{"anyOf": [{"required": [f"a{at}"]}, {"required": [f"b{at}"]}]} for at in range(30)]},
        {"type": "object", "properties": {f"p{at}": {"type": "string"} for at in range(5000)}},
        {"enum": [{"k": list(range(100))} for _ in range(500)]},
    ],
    ids=["shared", "chained", "nested", "combined", "wide", "listed"],
)
def test_large_schemas_take_no_longer_than_they_are(schema: dict[str, Any]) -> None:
    """What nests too deep for the engines is an error, after no more work."""
    with at_most(calls=5_000_000):
        try:
            form_of(schema)
        except toolgram.ToolgramError as error:
            assert "nests deeper" in str(error)  # noqa: PT017


def test_an_enum_of_very_many_values_is_a_note() -> None:
    enums = [[str(at) for at in range(count)] for count in (1_000, 10_001)]
    few, many = ({"properties": {"a": {"type": "string", "enum": each}}} for each in enums)
    fmt = toolgram.get_format("hermes")
    plain, noted = (fmt.export("gbnf", tools=[{"name": "f", "parameters": schema}]) for schema in (few, many))
    assert not [note for note in plain.notes if "enum" in note]
    assert [note for note in noted.notes if "an enum of 10001 values is not enforced" in note and "a" in note]
    assert len(noted.text) < len(plain.text)


def test_values_and_notes_of_formats_without_json() -> None:
    """Listed values are written with both quotes of Python; a pattern takes the place of a format."""
    listed = {"properties": {"a": {"enum": [{"k": "x"}, ["y"]]}}, "required": ["a"]}
    written = toolgram.get_format("llama4_pythonic").export("ebnf", [{"name": "f", "parameters": listed}], "required")
    assert '"{\\"k\\": \\"x\\"}"' in written.text


def test_what_is_kept_of_a_schema_is_the_same_for_every_function() -> None:
    """Notes and errors name their own function, and values that Python takes for equal are not confused."""
    fmt = toolgram.get_format("qwen3_coder")
    dated = {"properties": {"a": {"type": "string", "pattern": "b+", "format": "date"}}}
    made = fmt.export("ebnf", [{"name": name, "parameters": dated} for name in "fg"])
    assert {f"{name}: the format date is not enforced beside a pattern" for name in "fg"} <= {*made.notes}
    for name in "fg":
        with pytest.raises(toolgram.ToolgramError, match=f"the parameters of '{name}': not a valid JSON Schema"):
            fmt.export("ebnf", [{"name": name, "parameters": {"type": "x"}}])
    alike = [[{"name": "f", "parameters": {"properties": {"a": {"enum": [each]}}}}] for each in (1, True, "1")]
    assert len({fmt.export("ebnf", tools).text for tools in alike}) == 3
