"""Shipped formats that know what no template shows, and by what behaviour of a template they are recognised.

Strategy: one table.  A row says which format, why a derived one would know less, and by which renderings it is told:
markers that the template itself writes, the generation prompt, or what it tells the model in the system text.  The
source of a template and the name of a model are never looked at.  A shipped format is taken only if it reads the
template's own messages at least as well as the derived one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from toolgram.derive.result import DiffAnalysisResult, ToolFormat


@dataclass(frozen=True, slots=True)
class Known:
    """A shipped format, what it knows that a template does not show, and the behaviour that tells it."""

    name: str
    knows: str
    fits: Callable[[DiffAnalysisResult], bool]


def _harmony(result: DiffAnalysisResult) -> bool:
    return result.markers.reasoning_start.strip() == "<|channel|>analysis<|message|>"


def _functionary(result: DiffAnalysisResult) -> bool:
    prompt = result.prompts["unset"].opened.strip()
    return prompt == ">>>" and result.markers.content_start.strip() == ">>>all"


def _granite(result: DiffAnalysisResult) -> bool:
    told = "".join(result.instructions.values())
    return result.prints_calls != "yes" and "<|tool_call|>" in told


def _bare_json(result: DiffAnalysisResult) -> bool:
    if result.tool_format is not ToolFormat.JSON_NATIVE or result.calls is None:
        return False
    fields, markers = result.json_fields, result.markers
    around = (markers.per_call_start + markers.tool_section_start).strip()
    return not around and fields.name_field == "name" and fields.args_field in ("parameters", "arguments")


def _told(marker: str) -> Callable[[DiffAnalysisResult], bool]:
    """The template prints no calls, and has an example of one as JSON, which begins with this marker."""

    def fits(result: DiffAnalysisResult) -> bool:
        as_json = result.tool_format is ToolFormat.JSON_NATIVE
        return result.told and as_json and result.markers.per_call_start.strip() == marker

    return fits


def _listed(result: DiffAnalysisResult) -> bool:
    """The template prints no calls, and lists the tools as those of this family do."""
    told = "".join(result.instructions.values())
    listed = "<|tool_list_start|>[" in told or "List of tools: [" in told
    return result.tool_format is ToolFormat.NONE and listed


KNOWN = (
    Known("gpt_oss", "channels, recipients on either side of them, and messages that end one another", _harmony),
    Known("functionary_v3_2", "`all` is no function, and code may follow a name", _functionary),
    Known("llama3_json", "calls in fences and behind <|python_tag|>, and when a brace is prose", _bare_json),
    Known("granite_3", "calls, which the template takes and does not print", _granite),
    Known("hermes", "calls, which the template only describes", _told("<tool_call>")),
    Known("lfm2", "calls, which the template never mentions, next to the list of tools that it writes", _listed),
)


def known_for(result: DiffAnalysisResult) -> Known | None:
    """The first row whose behaviour this template shows."""
    return next((row for row in KNOWN if row.fits(result)), None)
