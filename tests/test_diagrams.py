"""Diagrams say what the machine file says, in three dialects, and nothing in a marker breaks out of its label."""

from __future__ import annotations

import html
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

import toolgram
from tests.own_format import MARKER, write_own_format
from toolgram.diagrams import KINDS, Kind, trigger_in_words

needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="an SVG needs Graphviz's `dot`")
KINDS_HERE = [pytest.param(kind, marks=needs_dot if kind == "svg" else ()) for kind in KINDS]
DIALECTS: list[Kind] = ["mermaid", "dot"]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(params=[*toolgram.format_names(), "own"])
def fmt(request: pytest.FixtureRequest, tmp_path: Path) -> toolgram.Format:
    return own(tmp_path) if request.param == "own" else toolgram.get_format(request.param)


def own(folder: Path) -> toolgram.Format:
    return toolgram.load_format(*write_own_format(folder))


def read_mermaid(text: str) -> str:
    """Labels as Mermaid shows them."""
    text = re.sub(r"#(\d+);", lambda code: chr(int(code[1])), text.replace("<br/>", "\n"))
    return text.replace("\N{NO-BREAK SPACE}", "")


def read_dot(text: str) -> str:
    """Labels as dot shows them."""
    return html.unescape(re.sub(r"\\(.)", lambda escape: "\n" if escape[1] == "n" else escape[1], text))


READ: dict[Kind, Callable[[str], str]] = {"mermaid": read_mermaid, "dot": read_dot}


@pytest.mark.parametrize("kind", KINDS_HERE)
def test_every_format_has_a_diagram_and_always_the_same(fmt: toolgram.Format, kind: Kind) -> None:
    drawn = fmt.diagram(kind)
    assert drawn == fmt.diagram(kind)
    assert drawn.endswith("\n")
    start = {"mermaid": "---\ntitle: ", "dot": "digraph", "svg": "<?xml"}[kind]
    assert drawn.startswith(start)


@pytest.mark.parametrize("kind", DIALECTS)
def test_states_and_marker_texts_are_in_it(fmt: toolgram.Format, kind: Kind) -> None:
    drawn = READ[kind](fmt.diagram(kind))
    unwrapped = drawn.replace("\n", "")
    for state in fmt.spec.states:
        assert state in unwrapped
    for transition in fmt.spec.transitions:
        if transition.trigger in fmt.spec.terminals:
            assert trigger_in_words(fmt.spec, transition) in drawn


@pytest.mark.parametrize("kind", DIALECTS)
def test_labels_are_marker_texts_and_not_symbols(kind: Kind) -> None:
    drawn = READ[kind](toolgram.get_format("mistral_v11").diagram(kind))
    assert "[TOOL_CALLS]" in drawn
    assert "[/THINK]" in drawn
    assert "END_THINK" not in drawn
    assert "object_start" not in drawn


def test_json_events_are_told_in_words() -> None:
    spec = toolgram.get_format("llama3_json").spec
    words = {transition.trigger: trigger_in_words(spec, transition) for transition in spec.transitions}
    assert words["map_key item.name"] == 'key "name"'
    assert words["map_key item.arguments"] == 'key "arguments"/"parameters"'
    assert words["string item.type function"] == '"function"'
    assert words["map_key"] == "any other key"
    assert (words["start_map item"], words["end_map item"]) == ("{", "}")
    assert (words["WS"], words["NAME"], words["end"]) == ("blanks", "NAME", "end of output")


def test_python_arguments_have_round_brackets() -> None:
    spec = toolgram.get_format("llama4_pythonic").spec
    words = {transition.trigger: trigger_in_words(spec, transition) for transition in spec.transitions}
    assert (words["object_start"], words["object_end"], words["object_empty"]) == ("(", ")", "()")


def test_held_states_are_dashed_in_mermaid_and_no_others(fmt: toolgram.Format) -> None:
    drawn = fmt.diagram("mermaid")
    dashed = dict(re.findall(r"classDef (\w+) (.*)", drawn))
    classes = re.findall(r"Class (\w+) (\w+)", drawn)
    assert len(classes) == len(fmt.spec.states)
    for (_, style), state in zip(classes, fmt.spec.states.values(), strict=True):
        assert ("stroke-dasharray" in dashed[style]) == state.held


def test_held_states_are_dashed_in_dot_and_no_others(fmt: toolgram.Format) -> None:
    nodes = [line for line in fmt.diagram("dot").splitlines() if "fillcolor=" in line]
    assert len(nodes) == len(fmt.spec.states)
    for line, state in zip(nodes, fmt.spec.states.values(), strict=True):
        assert ("dashed" in line) == state.held


def test_several_triggers_share_an_edge_and_nothing_is_drawn_twice(fmt: toolgram.Format) -> None:
    edges = re.findall(r"^  (\S+) --> (\S+):", fmt.diagram("mermaid"), re.M)
    assert len(edges) == len(set(edges))
    assert all(source != dest for source, dest in edges)


def test_an_end_is_drawn_only_where_it_does_something() -> None:
    drawn = toolgram.get_format("mistral_v11").diagram("mermaid")
    assert re.findall(r"(\S+) --> ALL_TOOLS_COMPLETE: (.*)", drawn) == [("PARSING_NAME_COMPLETED", "end of output")]


def test_mermaid_text_cannot_leave_its_label(tmp_path: Path) -> None:
    drawn = own(tmp_path).diagram("mermaid")
    assert MARKER in read_mermaid(drawn)
    body = drawn.partition("stateDiagram-v2\n")[2]
    for line in body.splitlines():
        label = re.fullmatch(
            r'  (?:state "(.*)" as \w+|(?:\w+|\[\*\]) --> \w+(?:: (.*))?|(?:Class|classDef|direction) .*| *)', line
        )
        assert label, line
        text = re.sub(r"#\d+;|<br/>", "", (label[1] or "") + (label[2] or ""))
        assert not set(text) & set('"<>;:%#`[]{}|&'), line
    # words that begin a statement of Mermaid's are not used as names
    assert not re.search(r"^  (?:end|note\b|node it)", body, re.M)


@needs_dot
def test_svg_shows_the_text_as_it_is(tmp_path: Path) -> None:
    tree = ElementTree.fromstring(own(tmp_path).diagram("svg"))
    texts = [(element.text or "").strip() for element in tree.iter(f"{SVG}text")]
    assert MARKER in texts
    assert 'Own | "format"; <b> of mine' in texts


@needs_dot
def test_svg_has_dashes(tmp_path: Path) -> None:
    svg = own(tmp_path).diagram("svg")
    held = sum(state.held for state in own(tmp_path).spec.states.values())
    assert svg.count("stroke-dasharray") == held


def test_without_dot_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    fmt = toolgram.get_format("mistral_v11")
    with pytest.raises(toolgram.ToolgramError, match=r"`dot`.*\n.*remedy: install Graphviz .*mermaid"):
        fmt.diagram("svg")
    assert fmt.diagram("dot")
    assert fmt.diagram("mermaid")


def test_without_the_graphviz_package_mermaid_still_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "graphviz", None)
    fmt = toolgram.get_format("mistral_v11")
    assert fmt.diagram()
    with pytest.raises(toolgram.ToolgramError, match=r"toolgram\[diagrams\]"):
        fmt.diagram("dot")


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(toolgram.ToolgramError, match="known kinds: mermaid, dot, svg"):
        toolgram.get_format("mistral_v11").diagram("png")  # type: ignore[arg-type]
