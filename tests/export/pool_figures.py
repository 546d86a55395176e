"""The schema pool in every engine: what exports make of it, and what the engines' own readings of a schema do.

Strategy: values are written for each schema and spoiled; jsonschema-rs, which knows nothing of exports, judges them.
An export must take what is valid, where objects are read as closed, and refuse what is not. Whatever it does otherwise
must be told in a note; without one it is silent, which is a defect. Then a random sampler writes under the masks of the
engine, and the parser reads that back. The engines' own readings are asked for the same values.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jsonschema_rs

import toolgram
from tests.export.engines import Engines, sample
from tests.export.schema_pool import pool, spoiled, values
from toolgram.export.normalising import normal_form

VALUES = 6  # for each schema; as many again are spoiled once and twice
CLOSED = "is closed: no other names are written"
ORDER = "in the order of"
OWN = {"xgrammar's own": "xgrammar json_schema", "llguidance's own": "llguidance %json"}


def standard(schema: Any) -> Any:
    """A schema with the names of JSON Schema for its types, and without `$schema`."""
    if isinstance(schema, list):
        return [standard(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: standard(value) for key, value in schema.items() if key not in ("$schema", "title", "description")}
    said = {"dict": "object", "float": "number"}
    if isinstance(made.get("type"), str):
        made["type"] = said.get(made["type"], made["type"])
    return made


# What is not JSON Schema, so that the judge reads it otherwise: there the normal form is the judge.
READ_OTHERWISE = {"types of another language", "upper case", "empty enum", "required is a word", "old tuple",
                  "old exclusive"}  # fmt: skip


@lru_cache(maxsize=8)
def judged(name: str) -> tuple[list[str], list[str]]:
    """Valid and invalid arguments for a schema of the pool, as JSON. What is valid fits closed objects as well."""
    schema = pool()[name]
    form: Any = normal_form(schema, "f", lambda words: None, "object")
    closed = jsonschema_rs.Draft202012Validator(form)
    judge = closed if name in READ_OTHERWISE else jsonschema_rs.Draft202012Validator(standard(schema))
    rng = random.Random(name)
    fitting: dict[str, None] = {}
    others: dict[str, None] = {}
    for value in values(form, rng, VALUES):
        for each in (value, spoiled(value, rng), spoiled(spoiled(value, rng), rng)):
            if isinstance(each, dict):
                good, bad = judge.is_valid(each) and closed.is_valid(each), not judge.is_valid(each)
                if good or bad:
                    (fitting if good else others)[json.dumps(each, ensure_ascii=False)] = None
    return list(fitting), list(others)


def told(notes: tuple[str, ...]) -> bool:
    """Whether the notes say that more or less than the schema is allowed."""
    return any(CLOSED not in note and ORDER not in note for note in notes)


def figures(name: str, target: str, samples: int = 1) -> Counter[str]:
    """What one export does with a schema: hermes, whose arguments are JSON."""
    found: Counter[str] = Counter(schemas=1)
    fmt = toolgram.get_format("hermes")
    schema = pool()[name]
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    made = fmt.export(target, tools, "required")
    found["exported"] += 1
    names = sorted(schema.get("properties", {})) if isinstance(schema.get("properties"), dict) else []
    begin = '<tool_call>\n{"name": "f", "arguments": '
    engine = Engines([begin, "}\n</tool_call>", *(f'"{each}":' for each in names)]).load(target, made.text)
    found["compiled"] += 1
    in_notes = told(made.notes)

    def accepts(arguments: str) -> bool:
        return engine.accepts(f"{begin}{arguments}}}\n</tool_call>")

    _count(found, name, accepts, in_notes)
    rng = random.Random(f"{name} {target}")
    closed = jsonschema_rs.Draft202012Validator(normal_form(schema, "f", lambda words: None, "object"))
    for _ in range(samples):
        text = sample(engine, rng, [begin], [], 40)
        if text is None:
            found["endless"] += 1
            continue
        calls = fmt.parse(text, tools).tool_calls
        good = bool(calls) and all(
            call.status == "complete" and closed.is_valid(json.loads(call.arguments)) for call in calls
        )
        found["sampled valid" if good else "sampled invalid"] += 1
        found["silent"] += not good and not in_notes
    return found


def own_figures(name: str, which: str) -> Counter[str]:
    """What the engine's own reading of a schema does with it."""
    found: Counter[str] = Counter(schemas=1)
    text = json.dumps(standard(pool()[name]))
    engines = Engines()
    try:
        if which == "xgrammar's own":
            grammar = engines.xgrammar.compiler.compile_json_schema(text, strict_mode=True)
            found["compiled"] += 1
            _count(found, name, lambda arguments: engines.xgrammar.accepts(grammar, arguments), True)
        else:
            grammar = engines.llguidance.compile(f"start: %json {text}")
            found["compiled"] += 1
            _count(found, name, lambda arguments: engines.llguidance.accepts(grammar, arguments), True)
    except (RuntimeError, ValueError):
        pass
    return found


def _count(found: Counter[str], name: str, accepts: Callable[[str], bool], in_notes: bool) -> None:
    fitting, others = judged(name)
    for arguments in fitting:
        good = accepts(arguments)
        found["valid accepted" if good else "valid refused"] += 1
        found["silent"] += not good and not in_notes
    for arguments in others:
        good = not accepts(arguments)
        found["invalid refused" if good else "invalid accepted"] += 1
        found["silent"] += not good and not in_notes
