"""Specifications kept by the build are those of the files, and are not used for any other files."""

import json
import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.derive.turns import report_of, source
from tests.generators.changed_data import changed
from tests.own_format import write_own_format
from tests.properties.selection import every_format
from tests.streams import run
from toolgram.call_ids import random_call_ids
from toolgram.late_imports import install_line
from toolgram.spec import cache as spec_cache
from toolgram.spec.as_json import dump, load, sealed, unsealed
from toolgram.spec.cache import keep_spec, kept_spec
from toolgram.spec.data import Spec
from toolgram.spec.files import read_spec

ROOT = Path(__file__).parents[1]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder in ("grammars", "machines"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    monkeypatch.setattr(spec_cache, "_HOME", str(tmp_path / "specs"))
    return tmp_path


def _paths(files: Path, name: str) -> tuple[str, str]:
    return str(files / "grammars" / f"{name}.lark"), str(files / "machines" / f"{name}.yaml")


def _spec(files: Path, name: str) -> Spec:
    grammar, machine = _paths(files, name)
    return read_spec(Path(grammar), Path(machine), (str(files / "grammars"),))


@every_format
def test_what_was_kept_is_what_the_files_say(name: str, files: Path) -> None:
    paths = _paths(files, name)
    spec = _spec(files, name)
    assert kept_spec(name, *paths) is None
    keep_spec(spec)
    assert kept_spec(name, *paths) == spec


@pytest.mark.parametrize(
    "edited", ["grammars/mistral_v11.lark", "machines/mistral_v11.yaml", "grammars/common/json.lark"]
)
def test_an_edited_file_is_read_again(edited: str, files: Path) -> None:
    paths = _paths(files, "mistral_v11")
    keep_spec(_spec(files, "mistral_v11"))
    with (files / edited).open("a") as file:
        file.write("\n")
    assert kept_spec("mistral_v11", *paths) is None


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"hash": "0"}', "null"])
def test_damaged_leftovers_are_no_specification(damage: str, files: Path) -> None:
    paths = _paths(files, "mistral_v11")
    Path(keep_spec(_spec(files, "mistral_v11"))).write_text(damage)
    assert kept_spec("mistral_v11", *paths) is None


def _printed(program: str, files: Path) -> str:
    """What a fresh process prints that gets `mistral_v11` from a build's specification."""
    keep_spec(_spec(files, "mistral_v11"))
    begin = f"""
import sys
from toolgram import formats
from toolgram.spec import cache as spec_cache
spec_cache._HOME = {str(files / "specs")!r}
formats._home = lambda: {str(files)!r}
import toolgram
fmt = toolgram.get_format("mistral_v11")
"""
    return subprocess.check_output([sys.executable, "-c", begin + program], text=True, cwd=files).strip()


def test_a_fresh_process_that_parses_loads_no_grammar_library(files: Path) -> None:
    """Lark, YAML, ijson and transitions are loaded when something needs them: a format that is read, a proof."""
    program = """
message = fmt.parse('[TOOL_CALLS]f[ARGS]{"a": 1}')
assert message.tool_calls[0].name == "f"
print([name for name in ("lark", "yaml", "ijson", "transitions", "jinja2", "rich") if name in sys.modules])
"""
    assert _printed(program, files) == "[]"


def test_a_fresh_process_that_does_not_parse_loads_no_parser(files: Path) -> None:
    """A format is a name and data until its first parser is made; the names of the package are there all the same."""
    program = """
print([name for name in sorted(sys.modules) if name.startswith(("toolgram.runtime", "toolgram.program.compiling"))])
assert toolgram.Parser is type(fmt.parser()) and "Message" in dir(toolgram)
"""
    assert _printed(program, files) == "[]"


OTHER: st.SearchStrategy[Any] = st.sampled_from([None, 7, 0.5, True, [], [[]], {}, {"a": 1}])


@given(data=st.data())
def test_data_of_another_shape_is_no_specification(data: st.DataObject) -> None:
    spec = toolgram.get_format("hermes").spec
    good = json.loads(json.dumps(dump(spec)))
    assert load(Spec, good) == spec
    bad = data.draw(changed(good, [good], OTHER))
    with suppress(ValueError):
        assert json.loads(json.dumps(dump(load(Spec, bad)))) == bad, "nothing was taken for something else"


@given(data=st.data())
def test_a_damaged_file_is_ignored(data: st.DataObject) -> None:
    text = sealed({"spec": dump(toolgram.get_format("hermes").spec)})
    at = data.draw(st.integers(0, len(text) - 1))
    others = [text[:at], text[at:], text[:at] + "x" + text[at + 1 :], text + "x", text[:at] + text[at + 1 :]]
    damaged = data.draw(st.sampled_from(others))
    with nullcontext() if damaged == text else pytest.raises(ValueError, match=r"."):
        unsealed(damaged)


def test_whatever_reads_a_specification_counts() -> None:
    """A module that reads or checks files and is not in the hash would leave old specifications in use."""
    program = "import sys, toolgram.spec.files; print(*(n for n in sys.modules if n.startswith('toolgram.')))"
    printed = subprocess.check_output([sys.executable, "-c", program], text=True)
    loaded = {name.removeprefix("toolgram.") for name in printed.split()}
    read = {os.path.splitext(os.path.relpath(path, Path(toolgram.__file__).parent))[0] for path in spec_cache.readers()}
    counted = {name for name in loaded if name.startswith("spec.")} | {"call_ids", "limits"}
    assert counted <= {name.replace(os.sep, ".") for name in read}


# --- formats and parsers travel to other processes, and nobody changes a format -------------------------------------


def _parsed(given: tuple[toolgram.Format, str]) -> dict[str, Any]:
    fmt, text = given
    return fmt.parse(text).to_dict()


def _finished(given: tuple[toolgram.Parser, str]) -> tuple[list[toolgram.Event], toolgram.Message]:
    parser, rest = given
    return [*parser.feed(rest), *parser.close()], parser.message


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
    fmt = toolgram.derive_format(source("json_lines"))
    other = pickle.loads(pickle.dumps(fmt))
    assert (other.spec.machine_dict, report_of(other).probes) == (fmt.spec.machine_dict, report_of(fmt).probes)


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
    held = (spec.states["RECOVERING"], "held")
    for thing, attribute in ((fmt, "name"), (fmt, "report"), (fmt, "new"), (spec, "name"), held):
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
    printed = subprocess.check_output([sys.executable, "-c", NO_JINJA], text=True)
    assert printed == f"derive_format needs jinja2, which is not installed: {install_line('jinja2')}\n"


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
