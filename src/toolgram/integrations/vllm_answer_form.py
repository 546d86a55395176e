"""Answers in a requested form in vLLM (`response_format`, `text.format`, `structured_outputs`).

Strategy: vLLM applies the form to everything after reasoning: then a model that does not think is never constrained,
and markers around content, the blank line after a thought and calls are refused. So the tag has the form at the place
of the answer, surrounded by what the model writes there. vLLM's own way is kept if there is no thought, no marker and
no tool, and if a tag cannot express the request: it sets the spacing of JSON, or asks for something that xgrammar
lacks. Parsers do not know the engine of the server; with TOOLGRAM_ANSWER_FORM=vllm, vLLM handles all forms, for an
engine without such tags.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolgram.integrations.observing import warn_once
from toolgram.integrations.served import Served, Session
from toolgram.integrations.vllm_surface import as_ebnf, check_constraint
from toolgram.integrations.vllm_tags import hold_from_the_first_token, may_think, tag_text, where_the_grammar_begins

FORM_VARIABLE = "TOOLGRAM_ANSWER_FORM"
AS_VLLM = "vllm"
_OF_RESPONSES = "_parser_structured_outputs"  # where vLLM keeps what a parser adds to a request
_CONSTRAINTS = ("json", "regex", "choice", "grammar", "json_object")
_SPACING = ("disable_any_whitespace", "disable_additional_properties", "whitespace_pattern")


def answer_tag(served: Served, partner: Any, session: Session, request: Any, tools: Sequence[Any]) -> Any:
    """Return vLLM's parameters for the requested form and its surroundings; None if vLLM's own way is as good."""
    asked = _asked_of_the_answer(request)
    form = _format_of(asked)
    if served.fmt is None or form is None or os.environ.get(FORM_VARIABLE) == AS_VLLM:
        return None
    if partner is None and served.reasoning_after_text(session.prefix or "") == "open":
        return None  # no parser reads the thought that the prompt has begun, so there must not be one
    try:
        check_constraint(replace(asked))
    except Exception:  # another engine of vLLM's takes it, or vLLM reports it
        return None
    try:
        begins = where_the_grammar_begins(served, partner, session, request, all_of_it=True)
        text = tag_text(served, request, tools, **begins, form=form)
        alone = not tools and not may_think(served, partner, request)
        if alone and _stands_alone(json.loads(text)["format"], form):
            return None
        made = replace(asked, structural_tag=text, **dict.fromkeys(_CONSTRAINTS))
        check_constraint(replace(made))
    except Exception as error:
        warn_once(f"vLLM enforces the requested form of an answer, not toolgram: {served.fmt}: {error}")
        return None
    if begins["reasoning"] is None:
        hold_from_the_first_token(request)
    return made


def _asked_of_the_answer(request: Any) -> Any:
    """Return the form that a request asks for, as vLLM's parameters, or None. Before 0.33 vLLM does not say it."""
    extract = getattr(request, "extract_structured_outputs", None)
    if extract is None:
        return None
    try:
        return extract()
    except Exception:  # two of them; vLLM reports it
        return None


def _format_of(asked: Any) -> dict[str, Any] | None:
    """Return the form as a format of structural tags; None if there is none for it."""
    if asked is None or any(getattr(asked, name, None) for name in _SPACING):
        return None
    if asked.json_object:
        return {"type": "json_schema", "json_schema": {"type": "object"}}
    if asked.json is not None:
        try:
            schema = json.loads(asked.json) if isinstance(asked.json, str) else asked.json
        except (ValueError, RecursionError):
            return None
        return {"type": "json_schema", "json_schema": schema}
    if asked.regex is not None:
        return {"type": "regex", "pattern": asked.regex}
    if asked.choice:
        return {"type": "or", "elements": [{"type": "const_string", "value": each} for each in asked.choice]}
    if asked.grammar is not None:
        grammar = as_ebnf(asked.grammar)
        return {"type": "grammar", "grammar": grammar} if grammar else None
    return None  # a structural tag already has its surroundings


def take_form(request: Any) -> Any:
    """Remove the form from a request. Return the `text` of Responses, if the client set it."""
    text = getattr(request, "text", None)
    request.structured_outputs = None
    for name in ("response_format", "text"):
        if getattr(request, name, None) is not None:
            setattr(request, name, None)
    return text


def put_tag(request: Any, tag: Any, text: Any) -> None:
    """Set the tag of a request, and restore the `text` that Responses report to clients."""
    if _OF_RESPONSES in (getattr(type(request), "__private_attributes__", None) or {}):
        setattr(request, _OF_RESPONSES, tag)
        request.text = text
    else:
        request.structured_outputs = tag


def _stands_alone(tag: Mapping[str, Any], form: Mapping[str, Any]) -> bool:
    """Return whether a tag has only blanks around an answer."""
    around = [each for each in tag.get("elements", ()) if each != form]
    alike = bool(around) and all(each == around[0] for each in around)
    return alike and tag["type"] == "sequence" and around[0]["type"] == "grammar"
