"""The schema pool in every engine: what exports make of it, and what the engines' own readings of a schema do.

Strategy: values are written for each schema and spoiled; jsonschema-rs, which knows nothing of exports, judges them.
An export must take what is valid, where objects are read as closed, and refuse what is not. Whatever it does otherwise
must be told in a note; without one it is silent, which is a defect. Then a random sampler writes under the masks of the
engine, and the parser reads that back. The engines' own readings are asked for the same values.
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
from tests.export.engines import Engines, sample
from tests.export.schema_pool import pool, spoiled, values
from toolgram.export import TARGETS
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
    for which in (*TARGETS, *OWN):
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
    table = "\n".join(lines(list(pool())))
    if wanted.write is None:
        print(table)
        return
    before, _, rest = wanted.write.read_text(encoding="utf-8").partition(BEGIN)
    text = f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.partition(END)[2]}"
    wanted.write.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
