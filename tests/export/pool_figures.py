"""The schema pool in every engine: what exports make of it, and what the engines' own readings of a schema do.

Strategy: values are written for each schema and spoiled; jsonschema-rs, which knows nothing of exports, judges them.
An export must take what is valid, where objects are read as closed, and refuse what is not. Whatever it does otherwise
must be told in a note; without one it is silent, which is a defect. Then a random sampler writes under the masks of the
engine, and the parser reads that back. The engines' own readings are asked for the same values.

That is hermes, whose arguments are JSON. Every shipped format, and ten that are derived from templates, take a part of
the pool: outputs are written from the grammar, broken, and sampled, as in the table of formats.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import jsonschema_rs

import toolgram
from tests.derive.turns import READ_ONLY, TEMPLATES, UNTOLD_ENDS
from tests.export.engines import Engines, sample
from tests.export.measuring import WRITTEN, measure
from tests.export.schema_pool import pool, spoiled, values
from tests.page_parts import write_part
from toolgram.export.normalising import normal_form

VALUES = 6  # for each schema; as many again are spoiled once and twice
CLOSED = "is closed: no other names are written"
ORDER = "in the order of"
OWN = ("xgrammar's own", "llguidance's own")
BEGIN, END = "<!-- pool -->", "<!-- /pool -->"
HEAD = """| | exported | compiled | valid accepted | invalid refused | sampled valid | silent |
|---|--:|--:|--:|--:|--:|--:|"""


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

    _count(found, name, accepts, in_notes)
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


# --- every format -------------------------------------------------------------------------------------------------

SCHEMAS_OF_A_FORMAT = 2
DERIVED = 10
FORMATS_HEAD = """| | schemas | exported | compiled | written accepted | broken refused | sampled valid | silent |
|---|--:|--:|--:|--:|--:|--:|--:|"""


def format_names() -> list[str]:
    """The shipped formats, and templates from which one is derived."""
    fixtures = sorted(path.stem for path in TEMPLATES.glob("*.jinja") if path.stem not in READ_ONLY | UNTOLD_ENDS)
    return [*toolgram.format_names(), *fixtures[:: len(fixtures) // DERIVED][:DERIVED]]


@lru_cache(maxsize=2)
def format_of(name: str) -> toolgram.Format:
    """The shipped format of this name, or the one that is derived from the template of this name."""
    if name in toolgram.format_names():
        return toolgram.get_format(name)
    return toolgram.derive_format((TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8"), eos_token="</s>")


def figures_of_format(name: str, target: str, samples: int = 2) -> Counter[str]:
    """What the exports of one format do with a part of the pool, another one for each format."""
    found: Counter[str] = Counter()
    fmt, names = format_of(name), [each for each in pool() if each not in READ_OTHERWISE]
    for schema in random.Random(name).sample(names, SCHEMAS_OF_A_FORMAT):
        parameters = standard(pool()[schema])
        tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}]
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


def lines_of_formats() -> Iterator[str]:
    """The table of all formats."""
    names = format_names()
    shipped = len(toolgram.format_names())
    yield f"{SCHEMAS_OF_A_FORMAT} schemas of the pool for each of {shipped} shipped formats, and for each of "
    yield f"{len(names) - shipped} derived ones, others for each:"
    yield ""
    yield FORMATS_HEAD
    for target in WRITTEN:
        with ProcessPoolExecutor(os.cpu_count()) as workers:
            found = sum(workers.map(_format_job, [(name, target) for name in names]), Counter())
        print(target, dict(found), file=sys.stderr)
        said = [f"{found[good]}/{found[good] + found[f'not {good}']}" for good in ("accepted", "rejected", "valid")]
        counts = [str(found[each]) for each in ("schemas", "exported", "compiled")]
        yield f"| {target} | {' | '.join([*counts, *said, str(found['silent'])])} |"


def _format_job(job: tuple[str, str]) -> Counter[str]:
    return figures_of_format(*job)


# --- the table ----------------------------------------------------------------------------------------------------


def _job(job: tuple[str, str]) -> Counter[str]:
    name, which = job
    return own_figures(name, which) if which in OWN else figures(name, which)


def measured(which: str, names: list[str]) -> Counter[str]:
    """The figures of one target, or of an engine's own reading, over schemas of the pool."""
    with ProcessPoolExecutor(os.cpu_count()) as workers:
        return sum(workers.map(_job, [(name, which) for name in names], chunksize=20), Counter())


def lines(names: list[str]) -> Iterator[str]:
    """The table."""
    yield f"{len(names)} schemas; arguments of hermes, whose calls are JSON:"
    yield ""
    yield HEAD
    for which in (*WRITTEN, *OWN):
        found = measured(which, names)
        print(which, dict(found), file=sys.stderr)
        said = [f"{found[good]}/{found[good] + found[bad]}" for good, bad in _PAIRS]
        ours = which not in OWN
        cells = [
            str(found["exported"]) if ours else "",
            str(found["compiled"]),
            *said[:2],
            said[2] if ours else "",
            str(found["silent"]) if ours else "",
        ]
        yield f"| {which} | {' | '.join(cells)} |"


_PAIRS = (
    ("valid accepted", "valid refused"),
    ("invalid refused", "invalid accepted"),
    ("sampled valid", "sampled invalid"),
)


def main() -> None:
    """The command: prints the table, or writes it into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    wanted = parser.parse_args()
    table = "\n".join([*lines(list(pool())), "", *lines_of_formats()])
    if wanted.write is None:
        print(table)
        return
    write_part(wanted.write, BEGIN, END, table)


if __name__ == "__main__":
    main()
