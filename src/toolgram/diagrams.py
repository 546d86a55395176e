r"""The machine of a format as a diagram: Mermaid, Graphviz's dot language, or SVG.

Strategy: `transitions` draws.  The machine is first *condensed* to a size that a reader can take in.  The condensed
machine goes to the library's own `GraphMachine`.  This module only adds escapes that the library lacks, because markers
are full of brackets, quotes and semicolons.

How the machine is condensed:

* the colour of a state shows what text in it means; a dashed border shows that the text is *held*;
* several triggers between two states share one edge; a trigger that leads back to its own state is written into the
  state, after a circular arrow;
* the end of the output leads from almost every state to the final state; these states have a thick border in place of
  an edge, and only an end with an action (`after`) is drawn;
* recoveries, where text does not fit, are thin and grey (Mermaid has one kind of edge, so there only words differ).

Triggers are shown as a model writes them (`[TOOL_CALLS]`, `key "name"`), not by the names of their symbols.  The
transition table on a format's page has every transition.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from transitions.extensions import GraphMachine
from transitions.extensions.diagrams_base import BaseGraph
from transitions.extensions.diagrams_graphviz import Graph as GraphvizGraph
from transitions.extensions.diagrams_mermaid import Graph as MermaidGraph

from toolgram.errors import ToolgramError
from toolgram.spec import END, RECOVERY_TRIGGERS, TEXT, Run, Spec, State, Transition
from toolgram.spec import Literal as Marker

Kind: TypeAlias = Literal["mermaid", "dot", "svg"]
KINDS: tuple[Kind, ...] = get_args(Kind)

# What text means in a state: (fill, border). None is structure.
COLOURS: dict[str | None, tuple[str, str]] = {
    "content": ("#d3f1d7", "#2e7d32"),
    "reasoning": ("#e9dcfa", "#6a1b9a"),
    "name": ("#d2e7fb", "#1565c0"),
    "call_id": ("#cdeff0", "#00838f"),
    "arguments": ("#fff0b8", "#b26a00"),
    "argument_key": ("#ffe3c2", "#b5530a"),
    "value": ("#fff0b8", "#b26a00"),
    "ignored": ("#e6e6e6", "#616161"),
    "malformed": ("#fbd5d5", "#c62828"),
    None: ("#ffffff", "#555555"),
}
INK = "#1a1a1a"
FAINT = "#8a8a8a"
FONT = "Helvetica,Arial,sans-serif"
WIDEST_NAME = 20
BETWEEN = "\N{MIDDLE DOT}"
UNBROKEN = "\N{NO-BREAK SPACE}"
AGAIN = "\N{CLOCKWISE OPEN CIRCLE ARROW}"
GRAPHVIZ_PACKAGE = 'pip install "toolgram[diagrams]", or ask for "mermaid", which needs nothing'
GRAPHVIZ_PROGRAM = 'install Graphviz (apt install graphviz, brew install graphviz), or ask for "mermaid" or "dot"'


def diagram(spec: Spec, kind: Kind = "mermaid") -> str:
    """The state diagram of a format.

    `mermaid` needs nothing installed, `dot` the Python package `graphviz`, `svg` the program `dot` as well.
    Raises ToolgramError for another kind, and where what it needs is missing.
    """
    if kind not in KINDS:
        raise ToolgramError(f"unknown kind of diagram {kind!r}; known kinds: {', '.join(KINDS)}")
    picture = _condense(spec)
    return _mermaid(picture) if kind == "mermaid" else _graphviz(picture, as_svg=kind == "svg")


# --- triggers in words --------------------------------------------------------------------------------------------


def trigger_in_words(spec: Spec, transition: Transition) -> str:
    """What a model writes where this transition fires: the text of a marker, a key, a bracket."""
    trigger = transition.trigger
    terminal = spec.terminals.get(trigger)
    if isinstance(terminal, Marker):
        return visible(terminal.text)
    if isinstance(terminal, Run):
        return "blanks" if _only_blanks(terminal) else terminal.name
    if trigger in _WORDS:
        return _WORDS[trigger]
    if trigger.startswith("object_"):
        python = spec.states[transition.source].python or spec.states[transition.dest].python
        # Empty arguments need not lead to a state that reads arguments: the whole format decides their notation.
        python = python or (trigger == "object_empty" and any(state.python for state in spec.states.values()))
        return dict(zip(_OBJECT, ("(", ")", "()") if python else ("{", "}", "{}"), strict=True))[trigger]
    return _json_event_in_words(spec, trigger)


_OBJECT = ("object_start", "object_end", "object_empty")
_WORDS = {
    TEXT: "text",
    END: "end of output",
    "malformed": "does not fit",
    "recovered": "fits again",
    "unclosed": "not closed",
    "value_end": "end of value",
    "map_key": "any other key",
    "start_array": "[",
    "end_array": "]",
}
_JSON = {"start_map": "{", "end_map": "}", "start_array": "[", "end_array": "]", "string": '"..."'}


def _json_event_in_words(spec: Spec, trigger: str) -> str:
    event, path, *value = trigger.split(" ", 2)
    if path.endswith(".*") and event == "map_key":
        return "a key, which is the name"
    if event == "map_key":
        spellings = [path, *(other for other, same in spec.same_path.items() if same == path)]
        keys = dict.fromkeys(json.dumps(spelling.rpartition(".")[2]) for spelling in spellings)
        return f"key {'/'.join(keys)}"
    if value:
        return json.dumps(value[0], ensure_ascii=False) if event == "string" else value[0]
    return _JSON.get(event, event)


def visible(text: str) -> str:
    """The text of a marker, with visible blanks and control characters."""
    escaped = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return escaped if escaped.strip() == escaped else escaped.replace(" ", "\N{SYMBOL FOR SPACE}")


def _only_blanks(run: Run) -> bool:
    pattern = re.compile(run.pattern)
    return not any(pattern.match(chr(code)) for code in range(0x21, 0x250) if not chr(code).isspace())


# --- condensing ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Node:
    """A state: its name, the triggers that lead back to it, and its style."""

    name: str
    loops: tuple[str, ...]
    state: State
    may_end: bool
    final: bool


@dataclass(slots=True)
class _Edge:
    """All the triggers between two states."""

    words: list[str] = field(default_factory=list)
    recovery: bool = True


@dataclass(frozen=True, slots=True)
class _Picture:
    """A condensed machine. The names of nodes and edges need no quotes in either language."""

    title: str
    initial: str
    nodes: dict[str, _Node]
    edges: dict[tuple[str, str], _Edge]


def _condense(spec: Spec) -> _Picture:
    names = {name: _plain_name(name, index) for index, name in enumerate(spec.states)}
    loops: dict[str, list[Transition]] = {name: [] for name in spec.states}
    ends: set[str] = set()
    edges: dict[tuple[str, str], _Edge] = {}
    for transition in spec.transitions:
        if transition.trigger == END and not transition.actions:
            ends.add(transition.source)
        elif transition.source == transition.dest:
            loops[transition.source].append(transition)
        else:
            edge = edges.setdefault((names[transition.source], names[transition.dest]), _Edge())
            _add(edge.words, trigger_in_words(spec, transition))
            edge.recovery = edge.recovery and transition.trigger in RECOVERY_TRIGGERS
    nodes = {
        names[name]: _Node(name, _loops_in_words(spec, loops[name]), state, name in ends, name == spec.final)
        for name, state in spec.states.items()
    }
    return _Picture(spec.title, names[spec.initial], nodes, edges)


def _add(words: list[str], word: str) -> None:
    if word not in words:
        words.append(word)


def _loops_in_words(spec: Spec, loops: list[Transition]) -> tuple[str, ...]:
    """The triggers that lead back to their own state; a key and its value are one entry: `"id": "..."`."""
    paths = {loop: loop.trigger.partition(" ")[2].partition(" ")[0] for loop in loops}
    keys = {paths[loop] for loop in loops if loop.trigger.startswith("map_key ")}
    values = {
        paths[loop]: trigger_in_words(spec, loop)
        for loop in loops
        if paths[loop] in keys and not loop.trigger.startswith("map_key ")
    }
    words: list[str] = []
    for loop in loops:
        told = trigger_in_words(spec, loop)
        if paths[loop] not in values:
            _add(words, told)
        elif loop.trigger.startswith("map_key "):
            _add(words, f"{told.removeprefix('key ')}: {values[paths[loop]]}")
    return tuple(words)


# Mermaid does not accept the first word of a statement as a name, in upper or lower case.
_NOT_A_NAME = re.compile(r"(?:as|class|classdef|click|default|direction|end|hide|note|scale|state|style)(?:_|$)", re.I)


def _plain_name(name: str, index: int) -> str:
    safe = re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) and not _NOT_A_NAME.match(name)
    return name if safe else f"s{index}"


def _style(node: _Node) -> str:
    """The name of its style: `name_held`, `content_end`."""
    end = "_end" if node.may_end or node.final else ""
    return f"{node.state.meaning or 'structure'}{'_held' if node.state.held else ''}{end}"


def _lines(node: _Node) -> list[str]:
    """The lines of text in a state."""
    lines = _wrapped_name(node.name)
    if node.loops:
        loops = [f"{AGAIN} {node.loops[0]}", *node.loops[1:]]
        lines += _filled(loops, 26)
    if node.final:
        lines += ["end of output,", "from any thick border"]
    return lines


def _wrapped_name(name: str) -> list[str]:
    if len(name) <= WIDEST_NAME:
        return [name]
    middle = len(name) // 2
    cuts = [at + 1 for at, char in enumerate(name[:-1]) if char in "_ -"]
    if not cuts:
        return [name]
    cut = min(cuts, key=lambda at: (abs(at - middle), -at))
    return [name[:cut], name[cut:]]


def _filled(words: Iterable[str], width: int) -> list[str]:
    """Words on lines of limited width; no word is broken."""
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + len(word) + 3 <= width:
            lines[-1] += f" {BETWEEN} {word}"
        else:
            lines.append(word)
    return lines


# --- the two languages --------------------------------------------------------------------------------------------


class _Machine(GraphMachine):
    """The condensed machine, with the labels and styles that the library's graphs ask for."""

    def __init__(self, picture: _Picture, widest: int) -> None:
        self.labels = {name: "\n".join(_lines(node)) for name, node in picture.nodes.items()}
        transitions = [
            {
                "trigger": f"edge {index}",
                "source": source,
                "dest": dest,
                "label": "\n".join(_filled(edge.words, widest)),
            }
            for index, ((source, dest), edge) in enumerate(picture.edges.items())
        ]
        super().__init__(
            model=None,
            states=list(picture.nodes),
            transitions=transitions,
            initial=picture.initial,
            auto_transitions=False,
            graph_engine="mermaid",
        )

    def draw(self, graph_class: type[BaseGraph], picture: _Picture, title: str) -> Any:
        """The library's drawing, with a style for every state and edge."""
        graph: Any = graph_class(self)
        for name, node in picture.nodes.items():
            graph.set_node_style(name, _style(node))
        for (source, dest), edge in picture.edges.items():
            graph.custom_styles["edge"][source][dest] = "recovery" if edge.recovery else ""
        return graph.get_graph(title=title)


class _MermaidGraph(MermaidGraph):
    """Labels for Mermaid: all but letters, digits and a few other characters become `#code;`.

    A label covers its edge. A single bracket gets blanks around it, or it would look like a part of the line.
    """

    def _convert_state_attributes(self, state: dict[str, Any]) -> str:
        return _mermaid_text(self.machine.labels[state["name"]])

    def _transition_label(self, tran: dict[str, Any]) -> str:
        label = tran["label"]
        return _mermaid_text(f"{UNBROKEN * 2}{label}{UNBROKEN * 2}" if len(label) <= 3 else label)


class _GraphvizGraph(GraphvizGraph):
    """Labels for dot, without HTML, escape sequences or entities."""

    def _convert_state_attributes(self, state: dict[str, Any]) -> str:
        return _dot_text(self.machine.labels[state["name"]])

    def _transition_label(self, tran: dict[str, Any]) -> str:
        return "\\n".join(f"  {_dot_text(line)}  " for line in tran["label"].split("\n"))  # clear of the line


def _mermaid_text(text: str) -> str:
    lines = (re.sub(r"[^\w ,.\-]", lambda char: f"#{ord(char[0])};", line) for line in text.split("\n"))
    return "<br/>".join(lines)


def _dot_text(text: str) -> str:
    return html.escape(text).replace("\\", r"\\").replace("\n", r"\n")


def _mermaid(picture: _Picture) -> str:
    machine = _Machine(picture, widest=24)
    machine.machine_attributes = {"rankdir": "TB"}
    machine.style_attributes = {"node": {_style(node): _mermaid_look(node) for node in picture.nodes.values()}}
    title = f"title: {json.dumps(picture.title, ensure_ascii=False)}"
    return str(machine.draw(_MermaidGraph, picture, title).source) + "\n"


def _mermaid_look(node: _Node) -> dict[str, str]:
    fill, border = COLOURS[node.state.meaning]
    look = {"fillcolor": fill, "stroke": border, "color": INK}
    if node.state.held:
        look["stroke-dasharray"] = "6 4"
    if node.may_end or node.final:
        look["stroke-width"] = "3px"
    return look


def _graphviz(picture: _Picture, as_svg: bool) -> str:
    try:
        import graphviz
    except ModuleNotFoundError:
        raise ToolgramError(f"this diagram needs the Python package graphviz\n  remedy: {GRAPHVIZ_PACKAGE}") from None
    machine = _Machine(picture, widest=30)
    machine.machine_attributes = {"rankdir": "TB", "ranksep": "0.35", "nodesep": "0.3", "labelloc": "t"}
    machine.style_attributes = {
        "graph": {"default": {"fontname": FONT, "fontsize": "16", "fontcolor": INK}},
        "node": {
            "default": {"shape": "box", "fontname": FONT, "fontsize": "11", "fontcolor": INK, "margin": "0.12,0.06"},
            **{_style(node): _dot_look(node) for node in picture.nodes.values()},
        },
        "edge": {
            "default": {"fontname": FONT, "fontsize": "10", "fontcolor": INK, "color": "#444444", "arrowsize": "0.7"},
            "recovery": {"color": FAINT, "fontcolor": FAINT, "penwidth": "0.6", "weight": "0"},
        },
    }
    drawing = machine.draw(_GraphvizGraph, picture, _dot_text(picture.title))
    drawing.node("start", label="", shape="point", width="0.12", color=INK)
    drawing.edge("start", picture.initial)
    if not as_svg:
        return str(drawing.source)
    try:
        svg = drawing.pipe(format="svg", encoding="utf-8")
    except graphviz.ExecutableNotFound:
        raise ToolgramError(f"an SVG needs the program `dot`, not found\n  remedy: {GRAPHVIZ_PROGRAM}") from None
    return str(svg)


def _dot_look(node: _Node) -> dict[str, str]:
    fill, border = COLOURS[node.state.meaning]
    look = {"fillcolor": fill, "color": border, "style": "rounded,filled"}
    if node.state.held:
        look["style"] += ",dashed"
    if node.may_end or node.final:
        look["penwidth"] = "2.5"
    return look
