"""Whatever a real chat template writes for valid calls, the export of its derived format accepts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import toolgram
from tests.conformance.roundtrip import Row, by_template, read_rows, real_templates, template_text
from tests.export.engines import Engines
from tests.export.measuring import DEEP, TOOLS, problem_of
from toolgram.export import TARGETS

pytest.importorskip("llguidance")
jsonschema = pytest.importorskip("jsonschema")


def is_valid(row: Row) -> bool:
    """Whether a row's calls fit the schemas of its tools."""
    schemas = {each["function"]["name"]: each["function"]["parameters"] for each in row.tools}
    try:
        for call in row.expected["tool_calls"]:
            jsonschema.validate(call["arguments"], schemas[call["name"]])
    except (jsonschema.ValidationError, KeyError):
        return False
    return True


def rows_accepted(rows: list[Row], engines: Engines) -> tuple[list[Row], int]:
    """The rows with valid calls that are not accepted, and how many there are."""
    first = rows[0]
    fmt = toolgram.derive_format(template_text(first.template), bos_token=first.bos_token, eos_token=first.eos_token)
    made: dict[str, str] = {}
    refused, count = [], 0
    for row in rows:
        if not row.expected["tool_calls"] or not is_valid(row):
            continue
        key = json.dumps([row.tools, row.prefix])
        if key not in made:
            made[key] = engines.llguidance.compile(fmt.export("llguidance", row.tools, prefix=row.prefix).text)
        count += 1
        if not engines.llguidance.accepts(made[key], row.output):
            refused.append(row)
    return refused, count


def test_rendered_calls_are_accepted(shared: Path) -> None:
    groups = by_template(read_rows())
    chosen = groups if DEEP else dict(list(groups.items())[::5])
    engines = Engines()
    total = 0
    for rows in chosen.values():
        refused, count = rows_accepted(rows, engines)
        total += count
        assert not refused, (refused[0].template, refused[0].case, refused[0].output)
    assert total > 500 if DEEP else total > 50


@pytest.mark.parametrize("template", sorted(real_templates()) if DEEP else sorted(real_templates())[::9])
def test_real_templates_export(template: str) -> None:
    """Every target, for the format that is derived from a template; the text loads in its engine."""
    fmt = toolgram.derive_format(template_text(template), bos_token="<s>", eos_token="</s>")
    engines = Engines()
    for target in TARGETS:
        made = fmt.export(target, TOOLS)
        engine = engines.load(target, made.text)
        assert fmt.report is not None
        for probe in fmt.report.probes:
            if probe.case == "content" and probe.prompt == "unset" and not probe.problem:
                assert engine.accepts(probe.output), (target, probe.output)
        assert not problem_of(fmt, "", TOOLS)
