"""Whatever a real chat template writes for valid calls, the export of its derived format accepts."""

import copy
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import toolgram
from tests.conformance.rows import Row, by_template, read_rows, real_templates, template_text
from tests.derive.turns import READ_ONLY, TEMPLATES, analysis_of, report_of, source
from tests.export.engines import Engine, Engines, plain_engines
from tests.export.measuring import WRITTEN
from tests.properties.selection import quarter
from tests.tables import table
from toolgram.export import Export
from toolgram.export.normalising import normal_form
from toolgram.observing.probes import TOOLS as TOOLS_OF_PROBES

pytest.importorskip("llguidance")
jsonschema = pytest.importorskip("jsonschema")


def is_valid(row: Row) -> bool:
    """Whether a row's calls fit the schemas of its tools."""
    functions = [each["function"] for each in row.tools]
    schemas = {each["name"]: normal_form(each["parameters"], "f", str, "object") for each in functions}
    try:
        for call in row.expected["tool_calls"]:
            jsonschema.validate(call["arguments"], schemas[call["name"]])
    except (jsonschema.ValidationError, KeyError):
        return False
    return True


def rows_accepted(rows: list[Row], engines: Engines, target: str) -> tuple[list[Row], int]:
    """The rows with valid calls that are not accepted, and how many there are."""
    first = rows[0]
    fmt = toolgram.derive_format(template_text(first.template), bos_token=first.bos_token, eos_token=first.eos_token)
    made: dict[str, Engine] = {}
    refused, count = [], 0
    for row in rows:
        if not row.expected["tool_calls"] or not is_valid(row):
            continue
        key = json.dumps([row.tools, row.prefix])
        if key not in made:
            made[key] = engines.load(target, fmt.export(target, row.tools, prefix=row.prefix).text)
        count += 1
        if not made[key].accepts(row.output):
            refused.append(row)
    return refused, count


@pytest.mark.parametrize("target", quarter(WRITTEN, "test_rendered_calls_are_accepted"))
def test_rendered_calls_are_accepted(target: str, shared: Path) -> None:
    engines = plain_engines()
    total = 0
    for rows in by_template(read_rows()).values():
        refused, count = rows_accepted(rows, engines, target)
        total += count
        assert not refused, (refused[0].template, refused[0].case, refused[0].output)
    assert total > 500


def probe_tools() -> list[dict[str, Any]]:
    """The functions that probes call, every argument optional: probes leave some out."""
    tools = copy.deepcopy(TOOLS_OF_PROBES)
    for each in tools:
        each["function"]["parameters"]["required"] = []
    return tools


# A prompt that is not the beginning of what the template writes after it, so that no output fits: template -> prompt.
MISMATCHED = {"Kimi-K3": "off"}
REPAIRED = {"repaired_python", "unclosed_envelope"}  # no Python; a section that the template does not close


def probes_refused(template: str, source: str, target: str, engines: Engines) -> tuple[list[str], int]:
    """The outputs with which a derived format was proved that its export does not accept, and how many there are."""
    fmt = toolgram.derive_format(source, bos_token="<s>", eos_token="</s>")
    prompts = analysis_of(fmt).prompts
    made: dict[str, tuple[Engine, Export]] = {}
    refused, count = [], 0
    for probe in report_of(fmt).probes:
        if probe.problem or MISMATCHED.get(template) == probe.prompt:
            continue  # the format does not read it either, and says so
        if any(each.kind in REPAIRED for each in fmt.parse(probe.output, finish_reason="stop").anomalies):
            continue  # a repair reads it, and a grammar writes what needs none
        if probe.prompt not in made:
            prompt = prompts.get(probe.prompt)
            export = fmt.export(target, probe_tools(), prefix=prompt.text if prompt is not None else None)
            made[probe.prompt] = engines.load(target, export.text), export
        engine, export = made[probe.prompt]
        ended = next((each for each in export.stop if probe.output.endswith(each)), "")
        count += 1
        if not engine.accepts(probe.output.removesuffix(ended)):  # a token that ends the turn is the engine's
            refused.append(probe.output)
    return refused, count


# Text between quotes that a template prints as it is: a line end, or a backslash that begins no escape.
UNESCAPED_TEXT = re.compile(r""""[^"]*\n|'[^']*\n|\\[^\\'"abfnrtvxuUN0-7\n]""").search
OTHERWISE = (
    "writes arguments as a JSON string",
    "writes a call as a Python dict",
    "exported with one argument at most",
    "members of objects that no schema declares are not written",
)
# What an export writes differently from the template: template -> words of the note that says so.
WRITTEN_OTHERWISE = table(__file__, "written_otherwise")
FIXTURES = sorted(path for path in TEMPLATES.glob("*.jinja") if path.stem not in READ_ONLY)


def check_exports(template: str, source: str, said: Sequence[str], lost: bool) -> None:
    """Every target's grammar takes what a template wrote, but for what it writes in another way: a note says so.

    A string that goes over a line end between quotes is written with an escape, and the format is not `ok`.
    """
    for target in WRITTEN:
        refused, count = probes_refused(template, source, target, plain_engines())
        assert len(refused) < count
        refused = [each for each in refused if not lost or not UNESCAPED_TEXT(each)]
        if refused or (said and said is not OTHERWISE):  # of ours, each note is known
            fmt = toolgram.derive_format(source, bos_token="<s>", eos_token="</s>")
            notes = " ".join(fmt.export(target, probe_tools()).notes)
            assert any(words in notes for words in said), (target, refused[:1])


@pytest.mark.parametrize("template", quarter(sorted(real_templates()), "test_real_templates_export"))
def test_real_templates_export(template: str) -> None:
    check_exports(template, template_text(template), OTHERWISE, lost=True)


@pytest.mark.parametrize("path", quarter(FIXTURES, "test_templates_of_our_own_export"), ids=lambda path: path.stem)
def test_templates_of_our_own_export(path: Path) -> None:
    """Two print text between quotes as it is, so that a string goes over a line end."""
    said = [WRITTEN_OTHERWISE[path.stem]] if path.stem in WRITTEN_OTHERWISE else []
    check_exports(path.stem, source(path.stem), said, path.stem in ("python_all_quoted", "python_tokens"))


@pytest.mark.parametrize("name", sorted(READ_ONLY))
def test_what_cannot_be_exported_is_one_clear_error(name: str) -> None:
    """An export of these shapes is right, or refused; never an exception of another kind."""
    fmt = toolgram.derive_format(source(name), eos_token="</s>")
    for target in ("llguidance", "structural_tag", "gbnf"):
        for choice in ("auto", "required", "none"):
            try:
                said = fmt.export(target, probe_tools(), tool_choice=choice).text
            except toolgram.ToolgramError as error:
                said = str(error)[:400]
            assert said
