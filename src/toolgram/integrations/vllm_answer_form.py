"""The form that a request asks of its answer in vLLM, and where it holds.

Strategy: a request may ask for a form (`response_format`, `text.format`, `structured_outputs`). vLLM would hold
everything behind reasoning to that form alone: a model that does not think is never held, and markers around content,
the blank line behind a thought and calls are refused. The tag has the form where the answer stands, with what the model
writes around it. vLLM's own way stays where it is right: no thought, no marker, no tools. It also stays where a tag
could not hold the form: the request sets how JSON is spaced, or asks for what xgrammar does not have. A parser is not
told with which engine a server makes grammars; TOOLGRAM_ANSWER_FORM=vllm leaves all forms to one without such tags.
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
_OF_RESPONSES = "_parser_structured_outputs"  # vLLM's place for what a parser makes of a request
_CONSTRAINTS = ("json", "regex", "choice", "grammar", "json_object")
_SPACING = ("disable_any_whitespace", "disable_additional_properties", "whitespace_pattern")


def answer_tag(served: Served, partner: Any, session: Session, request: Any, tools: Sequence[Any]) -> Any:
    """What the request asks of its answer, with what stands around an answer in this format, as vLLM's parameters; None
    where vLLM's own way is as good, or the only one."""
    asked = _asked_of_the_answer(request)
    form = _format_of(asked)
    if served.fmt is None or form is None or os.environ.get(FORM_VARIABLE) == AS_VLLM:
        return None
    if partner is None and served.reasoning_behind(session.prefix or "") == "open":
        return None  # no parser reads the thought that the prompt has begun, so there is to be none
    try:
        check_constraint(replace(asked))
    except Exception:  # another engine of vLLM's takes it, or vLLM tells the client
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
        warn_once(f"an answer is held to the form that is asked of it as vLLM does it: {served.fmt}: {error}")
        return None
    if begins["reasoning"] is None:
        hold_from_the_first_token(request)
    return made


def _asked_of_the_answer(request: Any) -> Any:
    """What a request asks of its answer, as vLLM's parameters; None for nothing. Before 0.33 vLLM does not say it."""
    extract = getattr(request, "extract_structured_outputs", None)
    if extract is None:
        return None
    try:
        return extract()
    except Exception:  # two of them; vLLM tells the client
        return None


def _format_of(asked: Any) -> dict[str, Any] | None:
    """The same as a format of structural tags; None where they have none for it."""
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
    return None  # a structural tag says itself what stands around what


def take_form(request: Any) -> Any:
    """Leave a request without what it asks of its answer. Returns the `text` of Responses, where the client said it."""
    text = getattr(request, "text", None)
    request.structured_outputs = None
    for name in ("response_format", "text"):
        if getattr(request, name, None) is not None:
            setattr(request, name, None)
    return text


def put_tag(request: Any, tag: Any, text: Any) -> None:
    """Have a request held to a tag, in place of one without the form that vLLM may have put there. Responses tell
    clients the `text` that they asked for."""
    if _OF_RESPONSES in (getattr(type(request), "__private_attributes__", None) or {}):
        setattr(request, _OF_RESPONSES, tag)
        request.text = text
    else:
        request.structured_outputs = tag


def _stands_alone(tag: Mapping[str, Any], form: Mapping[str, Any]) -> bool:
    """Whether a tag has nothing but blanks around an answer."""
    around = [each for each in tag.get("elements", ()) if each != form]
    alike = bool(around) and all(each == around[0] for each in around)
    return alike and tag["type"] == "sequence" and around[0]["type"] == "grammar"
