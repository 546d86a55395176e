"""The schema pool in every engine: what exports make of it. `benchmarks/export_pool.py` writes the tables of it.

Strategy: values are written for each schema and spoiled; jsonschema-rs, which knows nothing of exports, judges them.
An export must take what is valid, where objects are read as closed, and refuse what is not. Whatever it does otherwise
must be told in a note; without one it is silent, which is a defect. Then a random sampler writes under the masks of the
engine, and the parser reads that back.

That is hermes, whose arguments are JSON. Every shipped format, and ten that are derived from templates, take a part of
the pool: outputs are written from the grammar, broken, and sampled, as in the table of formats.
"""

import json
import random
import sys
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jsonschema_rs

import toolgram
from tests.derive.turns import READ_ONLY, TEMPLATES, UNTOLD_ENDS, source
from tests.export.engines import Engines, sample
from tests.export.measuring import measure
from tests.export.schema_pool import READ_OTHERWISE, pool, spoiled, standard, values
from toolgram.export.normalising import normal_form

VALUES = 6  # for each schema; as many again are spoiled once and twice
CLOSED = "is closed: no other names are written"
ORDER = "in the order of"


def judge_of(schema: Any) -> Any:
    """The judge of a schema. Formats count: every engine enforces those that it knows."""
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True)


def finite(text: str) -> float:
    """A number of any size as one that the judge can hold."""
    return max(min(float(text), sys.float_info.max), -sys.float_info.max)


@lru_cache(maxsize=8)
def judged(name: str) -> tuple[list[str], list[str]]:
    """Valid and invalid arguments for a schema of the pool, as JSON. What is valid fits closed objects as well."""
    schema = pool()[name]
    form: Any = normal_form(schema, "f", lambda words: None, "object")
    closed = judge_of(form)
    judge = closed if name in READ_OTHERWISE else judge_of(standard(schema))
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


PLAIN = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]


def told(fmt: toolgram.Format, target: str, notes: tuple[str, ...]) -> bool:
    """Whether the notes say that more or less than the schema is allowed; what is said of any schema does not count."""
    always = fmt.export(target, PLAIN, "required", reasoning=False).notes
    return any(CLOSED not in note and ORDER not in note and note not in always for note in notes)


def figures(name: str, target: str, samples: int = 1) -> Counter[str]:
    """What one export does with a schema: hermes, whose arguments are JSON."""
    found: Counter[str] = Counter(schemas=1)
    fmt = toolgram.get_format("hermes")
    schema = pool()[name]
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    made = fmt.export(target, tools, "required", reasoning=False)
    found["exported"] += 1
    names = sorted(schema.get("properties", {})) if isinstance(schema.get("properties"), dict) else []
    begin = '<tool_call>\n{"name": "f", "arguments": '
    engine = Engines([begin, "}\n</tool_call>", *(f'"{each}":' for each in names)]).load(target, made.text)
    found["compiled"] += 1
    in_notes = told(fmt, target, made.notes)

    def accepts(arguments: str) -> bool:
        return engine.accepts(f"{begin}{arguments}}}\n</tool_call>")

    count(found, name, accepts, in_notes)
    rng = random.Random(f"{name} {target}")
    closed = judge_of(normal_form(schema, "f", lambda words: None, "object"))
    for _ in range(samples):
        text = sample(engine, rng, [begin], [], 40)
        if text is None:
            found["endless"] += 1
            continue
        calls = fmt.parse(text, tools, finish_reason="stop").tool_calls  # it ends where the model may stop
        good = bool(calls) and all(
            call.status == "complete" and closed.is_valid(json.loads(call.arguments, parse_float=finite))
            for call in calls
        )
        found["sampled valid" if good else "sampled invalid"] += 1
        found["silent"] += not good and not in_notes
    return found


def count(found: Counter[str], name: str, accepts: Callable[[str], bool], in_notes: bool) -> None:
    """Ask for all arguments of a schema."""
    for kind, wanted, others, listed in (
        ("valid", "accepted", "refused", judged(name)[0]),
        ("invalid", "refused", "accepted", judged(name)[1]),
    ):
        for arguments in listed:
            good = accepts(arguments) == (kind == "valid")
            found[f"{kind} {wanted if good else others}"] += 1
            found["silent"] += not good and not in_notes


SCHEMAS_OF_A_FORMAT = 2
DERIVED = 10


def format_names() -> list[str]:
    """The shipped formats, and templates from which one is derived."""
    fixtures = sorted(path.stem for path in TEMPLATES.glob("*.jinja") if path.stem not in READ_ONLY | UNTOLD_ENDS)
    return [*toolgram.format_names(), *fixtures[:: len(fixtures) // DERIVED][:DERIVED]]


@lru_cache(maxsize=2)
def format_of(name: str) -> toolgram.Format:
    """The shipped format of this name, or the one that is derived from the template of this name."""
    if name in toolgram.format_names():
        return toolgram.get_format(name)
    return toolgram.derive_format(source(name), eos_token="</s>")


def figures_of_format(name: str, target: str, samples: int = 2) -> Counter[str]:
    """What the exports of one format do with a part of the pool, another one for each format."""
    found: Counter[str] = Counter()
    fmt, names = format_of(name), [each for each in pool() if each not in READ_OTHERWISE]
    for schema in random.Random(name).sample(names, SCHEMAS_OF_A_FORMAT):
        tools = [{"type": "function", "function": {"name": "f", "parameters": standard(pool()[schema])}}]
        found["schemas"] += 1
        try:
            notes = fmt.export(target, tools, "required", reasoning=False).notes
        except toolgram.ToolgramError as error:
            print(name, target, schema, error, file=sys.stderr)
            continue
        found["exported"] += 1
        one = measure(fmt, target, samples, tools, tool_choice="required", reasoning=False)
        found["compiled"] += 1
        # the writer of outputs knows no patterns, so some of its values are invalid
        wrong = {each.partition(": ")[2] for each in one.problems if each.startswith("written, and")}
        refused = [each for each in one.problems if each.partition(": ")[2] in wrong and each.startswith("not acc")]
        one.counts["not accepted"] -= len(refused)
        found.update(one.counts)
        problems = [each for each in one.problems if each not in refused]
        problems = [each for each in problems if not each.startswith(("written, and", "not finished"))]
        if problems and not told(fmt, target, notes):
            found["silent"] += 1
            print(name, target, schema, problems[:1], file=sys.stderr)
    return found
