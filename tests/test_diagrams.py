"""Diagrams say what the machine file says, in three dialects, and nothing in a marker breaks out of its label."""

import html
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

import toolgram
from tests.own_format import MACHINE, MARKER, load_own
from tests.properties import selection
from toolgram.diagrams import KINDS, LEVELS, Kind, Level, trigger_in_words
from toolgram.observing.paths import canonical_outputs
from toolgram.pages.formats import Finding, page, page_name, picture_name, stale_pages, write_pages
from toolgram.pages.tables import refreshed

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(params=[*selection.formats_of("test_diagrams"), "own"])
def fmt(request: pytest.FixtureRequest, tmp_path: Path) -> toolgram.Format:
    return load_own(tmp_path) if request.param == "own" else toolgram.get_format(request.param)


def read_mermaid(text: str) -> str:
    """Labels as Mermaid shows them."""
    text = re.sub(r"#(\d+);", lambda code: chr(int(code[1])), text.replace("<br/>", "\n"))
    return text.replace("\N{NO-BREAK SPACE}", "")


READ: dict[Kind, Callable[[str], str]] = {
    "mermaid": read_mermaid,
    "dot": lambda text: html.unescape(re.sub(r"\\(.)", lambda escape: "\n" if escape[1] == "n" else escape[1], text)),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_format_has_a_diagram_and_always_the_same(fmt: toolgram.Format, kind: Kind, level: Level) -> None:
    drawn = fmt.diagram(kind, level)
    assert drawn == fmt.diagram(kind, level=level)
    assert drawn.endswith("\n")
    assert drawn.startswith({"mermaid": "---\ntitle: ", "dot": "digraph", "svg": "<svg"}[kind])


@pytest.mark.parametrize("kind", ["mermaid", "dot"])
def test_states_and_marker_texts_are_in_it(fmt: toolgram.Format, kind: Kind) -> None:
    drawn = READ[kind](fmt.diagram(kind, "whole"))
    unwrapped = drawn.replace("\n", "")
    for state in fmt.spec.states:
        assert state in unwrapped
    for transition in fmt.spec.transitions:
        if transition.trigger in fmt.spec.terminals:
            assert trigger_in_words(fmt.spec, transition) in drawn


def test_events_are_told_in_words() -> None:
    """Python's arguments have round brackets."""
    json_words, python_words = (
        {transition.trigger: trigger_in_words(spec, transition) for transition in spec.transitions}
        for spec in (toolgram.get_format(name).spec for name in ("llama3_json", "llama4_pythonic"))
    )
    assert {
        "map_key item.name": 'key "name"', "map_key item.arguments": 'key "arguments"/"parameters"',
        "string item.type function": '"function"', "map_key": "any other key", "start_map item": "{",
        "end_map item": "}", "WS": "blanks", "NAME": "NAME", "end": "end of output",
    }.items() <= json_words.items()  # fmt: skip
    assert {"object_start": "(", "object_end": ")", "object_empty": "()"}.items() <= python_words.items()


def test_held_states_are_dashed_in_mermaid_and_no_others(fmt: toolgram.Format) -> None:
    drawn = fmt.diagram("mermaid", "whole")
    dashed = dict(re.findall(r"classDef (\w+) (.*)", drawn))
    styles = [dashed[style] for style in re.findall(r"Class \w+ (\w+)", drawn)]
    assert len(styles) == len(fmt.spec.states)
    assert sum("stroke-dasharray" in style for style in styles) == sum(s.held for s in fmt.spec.states.values())
    held = {name for name, style in re.findall(r"Class (\w+) (\w+)", drawn) if "stroke-dasharray" in dashed[style]}
    assert held & fmt.spec.states.keys() <= {state.name for state in fmt.spec.states.values() if state.held}


@pytest.mark.parametrize("level", LEVELS)
def test_several_triggers_share_an_edge_and_nothing_is_drawn_twice(fmt: toolgram.Format, level: Level) -> None:
    edges = re.findall(r"^ +(\S+) --> (\S+?):?(?: .*)?$", fmt.diagram("mermaid", level), re.M)
    edges = [edge for edge in edges if edge[0] != "[*]"]
    assert edges
    assert len(edges) == len(set(edges))
    assert all(source != dest for source, dest in edges)


def path_edges(fmt: toolgram.Format) -> dict[tuple[str, str], str]:
    """The labels of the happy path by what they lead from and to."""
    found = re.findall(r"^ +of_(\w+) --> (?:of_)?(\w+)(?:: (.*))?$", fmt.diagram(), re.M)
    return {(source, dest): read_mermaid(label).replace("\n", " ") for source, dest, label in found}


def test_the_happy_path_has_at_most_ten_boxes_and_is_the_default(fmt: toolgram.Format) -> None:
    found = re.findall(r'state "(.*)" as (?!call\b)', fmt.diagram())  # without the frame
    boxes = [label.partition("<br/>")[0] for label in found]
    assert fmt.diagram() == fmt.diagram("mermaid", "path")
    assert {"content", "name", "output ends"} <= set(boxes)
    assert {"arguments", "value of an argument"} & set(boxes)
    assert len(boxes) == len(set(boxes)) <= 10
    reasoned = any(fmt.parse(output, prefix=prefix).reasoning for prefix, output, _ in canonical_outputs(fmt))
    assert ("reasoning" in boxes) == reasoned


def test_the_happy_path_says_what_a_model_writes_between_the_boxes() -> None:
    assert path_edges(toolgram.get_format("mistral_v11")) == {
        ("content", "reasoning"): "[THINK]", ("reasoning", "content"): "[/THINK]",
        ("content", "call"): "[TOOL_CALLS]", ("name", "arguments"): "[ARGS]", ("name", "call_id"): "[CALL_ID]",
        ("call_id", "arguments"): "[ARGS]", ("arguments", "name"): "[TOOL_CALLS]", ("arguments", "output_ends"): "",
    }  # fmt: skip
    hermes = path_edges(toolgram.get_format("hermes"))
    assert hermes["content", "call"] == '<tool_call> {"name":'
    assert (hermes["name", "arguments"], hermes["arguments", "content"]) == (', "arguments":', "} </tool_call>")


def test_a_text_that_varies_is_not_that_of_an_example() -> None:
    drawn = READ["mermaid"](toolgram.get_format("mistral_v3").diagram())
    assert ', "id": "..."}' in drawn
    assert "bbc5b7ed" not in drawn


def test_what_cannot_be_drawn(tmp_path: Path) -> None:
    """Without an output of its own a format has only the whole; an unknown kind or level is refused."""
    fmt = load_own(tmp_path, machine="".join(line for line in MACHINE.splitlines(True) if "example:" not in line))
    assert fmt.diagram() == fmt.diagram(level="whole")
    with pytest.raises(toolgram.ToolgramError, match="known kinds: mermaid, dot, svg"):
        fmt.diagram("png")  # type: ignore[arg-type]
    with pytest.raises(toolgram.ToolgramError, match="known levels: path, whole"):
        fmt.diagram(level="half")  # type: ignore[arg-type]


@pytest.mark.parametrize("level", LEVELS)
def test_mermaid_text_cannot_leave_its_label(tmp_path: Path, level: Level) -> None:
    drawn = load_own(tmp_path).diagram("mermaid", level)
    assert MARKER in read_mermaid(drawn)
    body = drawn.partition("stateDiagram-v2\n")[2]
    for line in body.splitlines():
        label = re.fullmatch(
            r' +(?:state "(.*)" as \w+|state \w+ \{|\}|(?:\w+|\[\*\]) --> \w+(?:: (.*))?'
            r"|(?:Class|classDef|direction) .*| *)",
            line,
        )
        assert label, line
        assert not set(re.sub(r"#\d+;|<br/>", "", (label[1] or "") + (label[2] or ""))) & set('"<>;:%#`[]{}|&'), line
    # words that begin a statement of Mermaid's are not used as names
    assert not re.search(r"^  (?:end|note\b|node it)", body, re.M)


def test_svg_shows_the_text_as_it_is(tmp_path: Path) -> None:
    tree = ElementTree.fromstring(load_own(tmp_path).diagram("svg", "whole"))
    texts = ["".join(element.itertext()).strip() for element in tree.iter(f"{SVG}text")]
    assert MARKER in texts
    assert any(text.startswith('Own | "format"; ') for text in texts)  # a tag in a title is left out


Rectangle = tuple[float, float, float, float]


def rectangles(svg: str, of: str) -> list[Rectangle]:
    """The rectangles of the labels of edges, or of boxes: left, top, right, bottom."""
    found = []
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        if of in (group.get("class") or "").split() and (shape := group.find(f"{SVG}rect")) is not None:
            moved = re.fullmatch(r"translate\(([-\d.]+),([-\d.]+)\)", group.get("transform", "translate(0,0)"))
            assert moved is not None
            left, top = float(moved[1]) + float(shape.get("x", 0)), float(moved[2]) + float(shape.get("y", 0))
            found.append((left, top, left + float(shape.get("width", 0)), top + float(shape.get("height", 0))))
    return found


def test_no_label_touches_another_or_a_box_and_all_are_legible_at_400_pixels(fmt: toolgram.Format) -> None:
    svg = fmt.diagram("svg")
    labels, boxes = rectangles(svg, "pele-edge-label"), rectangles(svg, "pele-node")
    assert labels
    assert len(boxes) == len(re.findall(r'state "', fmt.diagram())) - ("state call {" in fmt.diagram())
    for index, one in enumerate(labels):
        for other in [*labels[index + 1 :], *boxes]:
            assert not (one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3])
    width = re.search(r' width="(\d+)"', svg)
    assert width is not None
    assert 14 * min(1, 400 / int(width[1])) >= 6, "the letters of a label, of 14 pixels in the picture's own size"


@pytest.mark.parametrize(
    ("kind", "package", "words"),
    [
        ("svg", "mermaid_render", r"mermaid-render\n.*remedy: .*\[diagrams\].*mermaid"),
        ("dot", "graphviz", r"\[diagrams\]"),
    ],
)
def test_without_its_package_a_kind_is_one_clear_error(
    monkeypatch: pytest.MonkeyPatch, kind: Kind, package: str, words: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    fmt = toolgram.get_format("mistral_v11")
    with pytest.raises(toolgram.ToolgramError, match=words):
        fmt.diagram(kind)
    assert fmt.diagram("mermaid")
    assert kind == "dot" or fmt.diagram("dot")


# --- the page of a format says what its two files, the parser and `check` say ---------------------------------------


def agreed(fmt: toolgram.Format) -> Sequence[Finding]:
    return [
        SimpleNamespace(name="grammar = machine", ok=True, detail="decided over `NAME` and *all*"),
        SimpleNamespace(name="drivers", ok=False, detail=fmt.spec.machine_path),
    ]


def cells(row: str) -> list[str]:
    """The cells of a table row, as a reader sees them."""
    return [shown(cell.strip()) for cell in row.strip("|").split("|")]


def shown(cell: str) -> str:
    cell = cell.removeprefix("<code>").removesuffix("</code>").strip("`")
    return html.unescape(cell).replace("␠", " ").replace("␤", "\n")


def table(text: str, heading: str) -> list[list[str]]:
    """The rows of the first table under a heading."""
    rows = re.search(r"\|---.*\n((?:\|.*\n)*)", text.partition(f"\n## {heading}")[2].partition("\n## ")[0])
    assert rows is not None
    return [cells(row) for row in rows[1].splitlines()]


def test_every_character_of_the_example_has_one_event(fmt: toolgram.Format) -> None:
    rows = table(page(fmt, agreed), "An output, and the event of each character")
    assert "".join(characters for characters, owner, _ in rows if characters != "none") == fmt.example
    message = fmt.parse(fmt.example)
    for number, call in enumerate(message.tool_calls, 1):
        assert call.name in [given for _, _, given in rows]
        owned = f"the arguments of call {number}"
        assert call.arguments == "".join(given for _, owner, given in rows if owner == owned)


def test_both_files_stand_in_it_verbatim_and_the_diagram_beside_it(fmt: toolgram.Format, tmp_path: Path) -> None:
    text = page(fmt, agreed)
    for inner, language in ((fmt.grammar_text, "lark"), (fmt.machine_text, "yaml")):
        fence = re.search(rf"^(`+){language}\n{re.escape(inner.rstrip())}\n(`+)$", text, re.M)
        assert fence is not None
        assert fence[1] == fence[2]
        assert fence[1] not in inner
    write_pages([fmt], tmp_path, agreed)
    picture = re.search(r"!\[.+\]\((.+)\)", text)
    assert picture is not None
    assert (tmp_path / picture[1]).read_text(encoding="utf-8") == fmt.diagram("svg")


def test_findings_are_told_as_they_are_and_without_paths(fmt: toolgram.Format) -> None:
    text = page(fmt, agreed)
    assert "* grammar = machine: decided over `NAME` and &#42;all&#42;\n" in text
    assert f"* **Not proved:** drivers: {Path(fmt.spec.machine_path).name}\n" in text
    assert str(Path(fmt.spec.machine_path).parent) not in text


def test_a_hostile_marker_cannot_break_a_cell(tmp_path: Path) -> None:
    assert [row[3] for row in table(page(load_own(tmp_path), agreed), "Machine") if row[4] == "OPEN"] == [MARKER]


def test_written_pages_are_current_until_a_file_changes(fmt: toolgram.Format, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "pages"
    place = folder / page_name(fmt)
    assert stale_pages([fmt], folder, agreed) == [place, folder / picture_name(fmt)]
    assert write_pages([fmt], folder, agreed) == [place]
    assert stale_pages([fmt], folder, agreed) == []
    assert stale_pages([fmt], folder, lambda _: []) == [place], "`check` finds otherwise"
    place.write_text(place.read_text(encoding="utf-8").replace("structure", "text", 1), encoding="utf-8")
    assert stale_pages([fmt], folder, agreed) == [place]


@pytest.mark.parametrize("ending", ["md", "svg"])
def test_every_shipped_format_has_its_page_and_no_other_does(root: Path, ending: str) -> None:
    pages = {place.stem for place in (root / "docs/specs").glob(f"*.{ending}")} - {"README"}
    assert pages == set(toolgram.format_names())


def test_an_embedded_table_is_refreshed_and_the_rest_is_left_alone() -> None:
    text = "before\n<!-- toolgram vocabulary ACTIONS -->\nold\n<!-- /toolgram vocabulary -->\nafter `[x]`\n"
    new = refreshed(text)
    assert new.startswith("before\n<!-- toolgram vocabulary ACTIONS -->\n\n| word | means |\n|---|---|\n| `name` | ")
    assert new.endswith(" |\n\n<!-- /toolgram vocabulary -->\nafter `[x]`\n")
    assert "old" not in new
    assert refreshed(new) == new


def test_embedding_needs_a_place_and_a_known_table() -> None:
    with pytest.raises(toolgram.ToolgramError, match="no place for a table"):
        refreshed("nothing here")
    for unknown in ("NOBODY", "Key", ""):
        with pytest.raises(toolgram.ToolgramError, match=r"no table of toolgram\.spec\.vocabulary"):
            refreshed(f"<!-- toolgram vocabulary {unknown} -->\n<!-- /toolgram vocabulary -->")
