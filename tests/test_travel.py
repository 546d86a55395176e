"""Formats and parsers travel to other processes, and nobody can change a format that others use."""

from __future__ import annotations

import multiprocessing
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import toolgram
from tests.own_format import write_own_format
from tests.properties.selection import every_format
from tests.streams import run
from toolgram.call_ids import random_call_ids
from toolgram.late_imports import install_line

TEMPLATES = Path(__file__).parent / "derive" / "templates"


def _parsed(given: tuple[toolgram.Format, str]) -> dict[str, Any]:
    fmt, text = given
    return fmt.parse(text).to_dict()


def _finished(given: tuple[toolgram.Parser, str]) -> tuple[list[toolgram.Event], toolgram.Message]:
    parser, rest = given
    events = [*parser.feed(rest), *parser.close()]
    return events, parser.message


@every_format
def test_a_format_pickles(name: str) -> None:
    fmt = toolgram.get_format(name)
    other = pickle.loads(pickle.dumps(fmt))
    assert other.spec == fmt.spec
    assert (other.machine_text, other.grammar_text, other.report) == (fmt.machine_text, fmt.grammar_text, None)
    assert run(other, [fmt.example]) == run(fmt, [fmt.example])
    assert other.reference_grammar is not None


def test_your_own_format_pickles_without_its_files(tmp_path: Path) -> None:
    files = write_own_format(tmp_path)
    fmt = toolgram.load_format(*files)
    data = pickle.dumps(fmt)
    for file in files:
        file.unlink()
    assert [call.name for call in pickle.loads(data).parse(fmt.example).tool_calls] == ["add"]


def test_a_derived_format_pickles_with_its_report() -> None:
    fmt = toolgram.derive_format((TEMPLATES / "json_lines.jinja").read_text(encoding="utf-8"))
    other = pickle.loads(pickle.dumps(fmt))
    assert other.spec.machine_dict == fmt.spec.machine_dict
    assert fmt.report is not None
    assert other.report.probes == fmt.report.probes


def test_another_process_reads_on() -> None:
    formats = [(toolgram.get_format(name), toolgram.get_format(name).example) for name in ("hermes", "mistral_v11")]
    parsers = []
    for fmt, text in formats:
        parser = fmt.parser(call_ids=random_call_ids(seed=7))
        parser.feed(text[: len(text) // 2])
        parsers.append((parser, text[len(text) // 2 :]))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        there, ended = pool.map(_parsed, formats), pool.map(_finished, parsers)
    assert [each["content"] for each in there] == [_parsed(each)["content"] for each in formats]
    assert all(each["tool_calls"] for each in there)
    assert ended == [_finished(each) for each in parsers]


@every_format
def test_a_format_cannot_be_changed(name: str) -> None:
    fmt = toolgram.get_format(name)
    spec: Any = fmt.spec
    for thing, attribute in (
        (fmt, "name"),
        (fmt, "report"),
        (fmt, "new"),
        (spec, "name"),
        (spec.states["RECOVERING"], "held"),
    ):
        with pytest.raises((AttributeError, TypeError)):
            setattr(thing, attribute, "x")
    with pytest.raises(AttributeError):
        del fmt.spec
    for table in (spec.states, spec.terminals, spec.same_path):
        with pytest.raises(TypeError):
            table["x"] = "x"
    for texts in (fmt.models, fmt.notes, spec.transitions, spec.special_tokens):
        assert isinstance(texts, tuple)
    fmt.machine_dict["machine"].clear()
    fmt.machine_dict["format"]["stop"] = []
    assert fmt.machine_dict["machine"]["states"]
    assert toolgram.get_format(name).machine_dict["format"].get("stop") != []


NO_JINJA = """
import sys
sys.modules["jinja2"] = None
import toolgram
from toolgram import *
assert hasattr(toolgram, "derive_format") and "Format" in globals()
try:
    derive_format("{{ messages }}")
except toolgram.ToolgramError as error:
    print(error)
"""


def test_without_jinja_everything_else_works() -> None:
    result = subprocess.run([sys.executable, "-c", NO_JINJA], capture_output=True, text=True, check=True)
    assert result.stdout == f"derive_format needs jinja2, which is not installed: {install_line('jinja2')}\n"


def test_a_withheld_call_without_an_id_is_pickled() -> None:
    """An application that has ids of its own may give none."""
    fmt = toolgram.get_format("deepseek_v3")
    text = "<think>\n" + fmt.example
    for at in range(len(text)):
        parser = fmt.parser(call_ids=str)
        parser.feed(text[:at])
        parser = pickle.loads(pickle.dumps(parser))
        parser.feed(text[at:])
        parser.close("stop")
        assert parser.message == fmt.parse(text, call_ids=str, finish_reason="stop")
