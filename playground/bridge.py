"""Python's side of the playground: every request of the page is one function, with JSON in and out.

It runs in the browser, in a worker, on the installed wheel. What it says of a text is what the page of a gateway says.
"""

from __future__ import annotations

import json
from typing import Any

import toolgram
from toolgram.explain import recognise
from toolgram.explain.recognising import is_found
from toolgram.export import TARGETS
from toolgram.showing import explained, reading

_derived: dict[str, toolgram.Format] = {}


def answer(name: str, request: str) -> str:
    """The answer to a request, or `{"error": ...}` with what is wrong and how to mend it."""
    try:
        return json.dumps(REQUESTS[name](json.loads(request)))
    except (toolgram.ToolgramError, ValueError) as error:
        return json.dumps({"error": str(error)})


def formats(request: dict[str, Any]) -> dict[str, Any]:
    """The formats that ship."""
    shipped = [toolgram.get_format(name) for name in toolgram.format_names()]
    return {
        "version": toolgram.__version__,
        "targets": list(TARGETS),
        "formats": [{"name": f.name, "title": f.title, "models": f.models, "example": f.example} for f in shipped],
    }


def read(request: dict[str, Any]) -> dict[str, Any]:
    """How an output is read, in deltas."""
    size, strict = max(1, request.get("size", 4)), bool(request.get("strict"))
    return reading(
        _format(request), request["output"], _tools(request), request.get("prefix"), size=size, strict=strict
    )


def recognised(request: dict[str, Any]) -> dict[str, Any]:
    """The format that reads the most of an output, and why; no name if none finds anything in it."""
    best = recognise([request["output"]], _tools(request), request.get("prefix"))[0]
    if not is_found(best):
        return {"name": "", "why": "No shipped format finds a call or a marker in this text, so all of it is content."}
    alike = f"; read alike by {', '.join(best.alike)}" if best.alike else ""
    return {"name": best.name, "why": best.why + alike}


def diagram(request: dict[str, Any]) -> dict[str, Any]:
    """The diagram as Mermaid text, and the box of each state."""
    fmt = _format(request)
    level = request.get("level", "path")
    states = sorted(fmt.spec.states.values(), key=lambda state: state.name != fmt.spec.initial)
    if level == "whole":
        from toolgram.diagrams.whole import whole

        boxes = dict(zip([state.name for state in states], whole(fmt.spec).boxes, strict=True))
    else:
        boxes = {state.name: f"of_{state.meaning}" for state in states if state.meaning}
        boxes[fmt.spec.final] = "output_ends"
    return {"mermaid": fmt.diagram("mermaid", level), "boxes": boxes}


def explain(request: dict[str, Any]) -> dict[str, Any]:
    """Why an output was read as it was, and which other format reads more."""
    return explained(_format(request), request["output"], _tools(request), request.get("prefix"))


def export(request: dict[str, Any]) -> dict[str, Any]:
    """The grammar that constrains a model, for one target."""
    made = _format(request).export(request["target"], _tools(request), request.get("tool_choice", "auto"))
    return {"text": made.text, "notes": list(made.notes)}


def files(request: dict[str, Any]) -> dict[str, Any]:
    """The two files of the format; for a derived one also its report."""
    fmt = _format(request)
    report = str(fmt.report) if fmt.report is not None else ""
    return {"name": fmt.name, "lark": fmt.grammar_text, "yaml": fmt.machine_text, "report": report}


REQUESTS = {each.__name__: each for each in (formats, read, recognised, diagram, explain, export, files)}


def _format(request: dict[str, Any]) -> toolgram.Format:
    template = request.get("template")
    if not template:
        return toolgram.get_format(request["format"])
    if template not in _derived:
        _derived.clear()
        _derived[template] = toolgram.derive_format(template, eos_token=request.get("eos") or "")
    return _derived[template]


def _tools(request: dict[str, Any]) -> list[Any] | None:
    text = (request.get("tools") or "").strip()
    if not text:
        return None
    try:
        tools = json.loads(text)
    except ValueError as error:
        raise toolgram.ToolgramError(f"the tools are not JSON: {error}") from None
    return tools if isinstance(tools, list) else [tools]
