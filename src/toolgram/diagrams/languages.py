"""A picture in Mermaid, in dot, or as SVG.

Strategy: `transitions` draws.  The boxes and edges go to the library's own graphs.  This module only adds groups, and
escapes that the library lacks, because markers are full of brackets, quotes and semicolons.  An SVG is the Mermaid
text, laid out by the package `mermaid-render`: no program of the system, no browser, no network.

`transitions` draws groups too, from nested states (`children`).  They are not used: a nested state has another name
(`json_call_PARSING_NAME`), and the machine that runs is flat.
"""

from __future__ import annotations

import html
import json
import re
from typing import Any

from transitions.extensions import GraphMachine
from transitions.extensions.diagrams_base import BaseGraph
from transitions.extensions.diagrams_graphviz import Graph as GraphvizGraph
from transitions.extensions.diagrams_mermaid import Graph as MermaidGraph

from toolgram.diagrams.picture import Box, Picture
from toolgram.errors import ToolgramError
from toolgram.late_imports import install_line

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
GROUP = "#f6f6f6"
FONT = "Helvetica,Arial,sans-serif"
UNBROKEN = "\N{NO-BREAK SPACE}"
FONTS = "'Noto Sans',Helvetica,Arial,sans-serif"
OTHERWISE = 'or ask for "mermaid", which needs nothing'


class _Machine(GraphMachine):
    """The picture as a machine, with the labels and styles that the library's graphs ask for."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        transitions = [
            {"trigger": f"edge {index}", "source": source, "dest": dest, "label": "\n".join(edge.lines)}
            for index, ((source, dest), edge) in enumerate(picture.edges.items())
        ]
        super().__init__(
            model=None,
            states=list(picture.boxes),
            transitions=transitions,
            initial=picture.initial,
            auto_transitions=False,
            graph_engine="mermaid",
        )

    def label(self, name: str) -> str:
        """Return the text in a box."""
        return "\n".join(self.picture.boxes[name].lines)

    def grouped(self, states: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
        """Return the states by their group; those of no group come first."""
        groups: dict[str, list[dict[str, Any]]] = {"": []}
        for state in states:
            groups.setdefault(self.picture.boxes[state["name"]].group, []).append(state)
        return groups

    def draw(self, graph_class: type[BaseGraph], title: str) -> Any:
        """Return the library's drawing, with a style for every box and edge."""
        graph: Any = graph_class(self)
        for name, box in self.picture.boxes.items():
            graph.set_node_style(name, box.style)
        for (source, dest), edge in self.picture.edges.items():
            graph.custom_styles["edge"][source][dest] = "recovery" if edge.recovery else ""
        return graph.get_graph(title=title)


# --- Mermaid ------------------------------------------------------------------------------------------------------


class _MermaidGraph(MermaidGraph):
    """Labels for Mermaid: all but letters, digits and a few other characters become `#code;`.

    A label covers its edge. A single bracket gets blanks around it, or it would look like a part of the line.
    """

    def _convert_state_attributes(self, state: dict[str, Any]) -> str:
        return _mermaid_text(self.machine.label(state["name"]))

    def _transition_label(self, tran: dict[str, Any]) -> str:
        label = tran.get("label", "")
        return _mermaid_text(f"{UNBROKEN * 2}{label}{UNBROKEN * 2}" if len(label) <= 3 else label)

    def _add_nodes(self, states: list[dict[str, Any]], container: list[str]) -> None:
        entries = self._entries()
        for group, members in self.machine.grouped(states).items():
            if group:
                container.append(f'state "{_mermaid_text(self.machine.picture.groups[group])}" as {group}')
                container.append(f"state {group} {{")
                if group in entries:
                    container.append(f"[*] --> {entries[group]}")
            for state in members:
                container.append(f'state "{self._convert_state_attributes(state)}" as {state["name"]}')
            if group:
                container.append("}")
        # A style that is given inside a group is not applied.
        for name, box in self.machine.picture.boxes.items():
            container.append(f"Class {name} s_{box.style}")

    def _add_edges(self, transitions: list[dict[str, Any]], container: list[str]) -> None:
        boxes, entries = self.machine.picture.boxes, self._entries()
        for transition in transitions:
            source, dest = transition["source"], transition["dest"]
            group = boxes[dest].group
            into = group if group in entries and boxes[source].group != group else dest
            label = f": {self._transition_label(transition)}" if transition.get("label") else ""
            container.append(f"{source} --> {into}{label}")

    def _entries(self) -> dict[str, str]:
        """Return the box of a group to which edges from outside lead. They end at the group, beside its title."""
        entered: dict[str, set[str]] = {}
        boxes = self.machine.picture.boxes
        for source, dest in self.machine.picture.edges:
            if boxes[dest].group and boxes[source].group != boxes[dest].group:
                entered.setdefault(boxes[dest].group, set()).add(dest)
        return {group: min(inside) for group, inside in entered.items() if len(inside) == 1}


def _mermaid_text(text: str) -> str:
    lines = (re.sub(r"[^\w ,.\-]", lambda char: f"#{ord(char[0])};", line) for line in text.split("\n"))
    return "<br/>".join(lines)


def draw_mermaid(picture: Picture) -> str:
    """Return the picture as Mermaid text."""
    machine = _Machine(picture)
    machine.machine_attributes = {"rankdir": "TB"}
    looks: dict[str, Any] = {box.style: _mermaid_look(box) for box in picture.boxes.values()}
    machine.style_attributes = {"node": looks}
    title = f"title: {json.dumps(picture.title, ensure_ascii=False)}"
    return str(machine.draw(_MermaidGraph, title).source) + "\n"


def _mermaid_look(box: Box) -> dict[str, str]:
    fill, border = COLOURS[box.meaning]
    look = {"fillcolor": fill, "stroke": border, "color": INK}
    if box.held:
        look["stroke-dasharray"] = "6 4"
    if box.end:
        look["stroke-width"] = "3px"
    return look


# --- SVG ----------------------------------------------------------------------------------------------------------


def draw_svg(picture: Picture) -> str:
    """Return the picture as SVG, the same bytes every time. Raises ToolgramError without `mermaid-render`."""
    try:
        from mermaid_render import convert
    except ModuleNotFoundError:
        raise ToolgramError(
            f"an SVG needs the Python package mermaid-render\n  remedy: {install_line('graphviz')}, {OTHERWISE}"
        ) from None
    try:
        drawn: str = convert(draw_mermaid(picture)).decode("utf-8")
    except ValueError as error:
        raise ToolgramError(f'the diagram cannot be drawn: {error}\n  remedy: ask for "mermaid" or "dot"') from None
    drawn = drawn.replace("font-family:Noto Sans", f"font-family:{FONTS}", 1)
    # Its own ground: the lines are black, and a page may be dark.
    return drawn.replace(">", '><rect width="100%" height="100%" rx="8" fill="#ffffff" />', 1) + "\n"


# --- Graphviz -----------------------------------------------------------------------------------------------------


class _GraphvizGraph(GraphvizGraph):
    """Labels for dot, without HTML, escape sequences or entities."""

    def _convert_state_attributes(self, state: dict[str, Any]) -> str:
        return _dot_text(self.machine.label(state["name"]))

    def _transition_label(self, tran: dict[str, Any]) -> str:
        lines = tran["label"].split("\n") if tran.get("label") else []
        return "\\n".join(f"  {_dot_text(line)}  " for line in lines)  # clear of the line

    def _add_nodes(self, states: list[dict[str, Any]], container: Any) -> None:
        for group, members in self.machine.grouped(states).items():
            if not group:
                super()._add_nodes(members, container)
                continue
            label = _dot_text(self.machine.picture.groups[group])
            look = {"label": label, "labeljust": "l", "fontsize": "11", "style": "rounded,filled"}
            with container.subgraph(
                name=f"cluster_{group}", graph_attr={**look, "fillcolor": GROUP, "color": FAINT}
            ) as inner:
                super()._add_nodes(members, inner)


def _dot_text(text: str) -> str:
    return html.escape(text).replace("\\", r"\\").replace("\n", r"\n")


def draw_dot(picture: Picture) -> str:
    """Return the picture in dot's language. Raises ToolgramError without the Python package `graphviz`."""
    return str(_graphviz(picture).source)


def _graphviz(picture: Picture) -> Any:
    try:
        import graphviz  # noqa: F401 (the library's graph needs it)
    except ModuleNotFoundError:
        raise ToolgramError(
            f"this diagram needs the Python package graphviz\n  remedy: {install_line('graphviz')}, {OTHERWISE}"
        ) from None
    machine = _Machine(picture)
    machine.machine_attributes = {"rankdir": "TB", "ranksep": "0.35", "nodesep": "0.3", "labelloc": "t"}
    machine.style_attributes = {
        "graph": {"default": {"fontname": FONT, "fontsize": "16", "fontcolor": INK}},
        "node": {
            "default": {"shape": "box", "fontname": FONT, "fontsize": "11", "fontcolor": INK, "margin": "0.12,0.06"},
            **{box.style: _dot_look(box) for box in picture.boxes.values()},
        },
        "edge": {
            "default": {"fontname": FONT, "fontsize": "10", "fontcolor": INK, "color": "#444444", "arrowsize": "0.7"},
            "recovery": {"color": FAINT, "fontcolor": FAINT, "penwidth": "0.6", "weight": "0"},
        },
    }
    drawing = machine.draw(_GraphvizGraph, _dot_text(picture.title))
    drawing.node("start", label="", shape="point", width="0.12", color=INK)
    drawing.edge("start", picture.initial)
    return drawing


def _dot_look(box: Box) -> dict[str, str]:
    fill, border = COLOURS[box.meaning]
    look = {"fillcolor": fill, "color": border, "style": "rounded,filled"}
    if box.held:
        look["style"] += ",dashed"
    if box.end:
        look["penwidth"] = "2.5"
    return look
