"""Constrained calls in vLLM: toolgram's own export as a structural tag, and where it applies.

Strategy: the engine lets reasoning pass and applies the grammar from the token that ends the thought. That works if the
prompt has begun the thought. If the prompt leaves open whether the model thinks, a model that does not would never be
constrained; so a grammar that includes the thought constrains a required call from the first token on, and every answer
if several tokens spell the closing marker of a thought: the last of them may contain the first characters of a call,
which the grammar would not see. A required or named call begins at once: text before it would let a model go on
forever. With TOOLGRAM_FORCED_CALLS=after_text (or `vllm_xargs: {"toolgram_forced_calls": "after_text"}`) text may come
before it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from toolgram.errors import ToolgramError
from toolgram.integrations.observing import warn_once
from toolgram.integrations.reasoning_markers import exports_write_a_thought
from toolgram.integrations.served import Served, Session
from toolgram.limits import MOST_TAGS
from toolgram.tools.reading import read_tools

FORCED_VARIABLE = "TOOLGRAM_FORCED_CALLS"
FORCED_FIELD = "toolgram_forced_calls"
AFTER_TEXT = "after_text"
_encoded = json.JSONEncoder(ensure_ascii=False, default=dict).encode
_FROM_THE_FIRST = "_grammar_from_parser"  # vLLM's name for it


def structural_tag(
    served: Served, request: Any, tools: Sequence[Any], prefix: str | None, reasoning: bool | None,
    form: Mapping[str, Any] | None = None,
) -> Any:  # fmt: skip
    """Return the tag for a request, whose answer has this form; None, with one warning for each reason, without one."""
    if served.fmt is None:
        return None
    try:
        from xgrammar import StructuralTag

        found = StructuralTag.model_validate_json(tag_text(served, request, tools, prefix, reasoning, form))
    except Exception as error:
        lack = "calls are parsed but not enforced" if form is None else "the form of the answer is left to the server"
        warn_once(f"{lack}, because there is no constraint: {served.fmt}: {error}")
        return None
    if reasoning is None:
        hold_from_the_first_token(request)
    return found


def tag_text(
    served: Served, request: Any, tools: Sequence[Any], prefix: str | None, reasoning: bool | None,
    form: Mapping[str, Any] | None = None,
) -> str:  # fmt: skip
    """Return the tag of a request as JSON text. Raise ToolgramError if there is none."""
    declared = _encoded([tool.as_chat() for tool in read_tools(tools)])
    choice = json.dumps(choice_of(request) if tools or is_forced(request) else "none")
    parallel = getattr(request, "parallel_tool_calls", None) is not False
    asked = (getattr(request, "vllm_xargs", None) or {}).get(FORCED_FIELD) or os.environ.get(FORCED_VARIABLE)
    text = not is_forced(request) or asked == AFTER_TEXT
    found = written(served, declared, choice, parallel, text, prefix, reasoning, json.dumps(form))
    if isinstance(found, ToolgramError):
        raise found
    return found


@lru_cache(maxsize=MOST_TAGS)
def written(
    served: Served, tools: str, choice: str, parallel: bool, text: bool, prefix: str | None, reasoning: bool | None,
    form: str,
) -> str | ToolgramError:  # fmt: skip
    """Return the tag, or why there is none. Agents send the same tools with every request, so tags are cached."""
    assert served.fmt is not None
    # A token that a tokenizer calls special matches no text in xgrammar: it is named by its id.
    tokens = {mark: number for mark, number in served.special_tokens.items() if mark in served.special_texts}
    export = partial(
        served.fmt.export, "structural_tag", json.loads(tools), json.loads(choice), parallel, special_tokens=tokens,
        text_before_calls=text, answer_format=json.loads(form),
    )  # fmt: skip
    try:
        whole: str = export(reasoning=reasoning, prefix=prefix).text
        opening, closing = served.around_a_thought
        ended = f"{prefix}{opening}{closing}"
        if reasoning is not None or prefix is None or not _is_missing(served, prefix, opening, ended):
            return whole
        after = json.loads(export(reasoning=False, prefix=ended).text)["format"]
    except ToolgramError as error:
        return error
    thought = [*_marker(opening, tokens), _thought(served, opening, closing, tokens), *_marker(closing, tokens)]
    thinking = {"type": "sequence", "elements": [*thought, after]}
    either = {"type": "or", "elements": [json.loads(whole)["format"], thinking]}
    return json.dumps({"type": "structural_tag", "format": either}, ensure_ascii=False)


def _is_missing(served: Served, prefix: str, opening: str, ended: str) -> bool:
    """Return whether a model may think after a prefix although examples think only after a prompt that begins it."""
    fmt = served.fmt
    if fmt is None or not opening or served.reasoning_after_text(prefix) == "open":
        return False
    reads = served.reasoning_after_text(prefix + opening) == "open" != served.reasoning_after_text(ended)
    shown = any(fmt.spec.states[state].meaning == "reasoning" for state in fmt.observed_paths.texts)
    return reads and shown and not exports_write_a_thought(fmt, prefix, opening)


def _thought(served: Served, opening: str, closing: str, tokens: Mapping[str, int]) -> dict[str, Any]:
    """Return a format of any text without the markers."""
    assert served.fmt is not None
    markers = {opening.strip(), closing.strip(), *served.fmt.program.special.values()} - tokens.keys()
    return {"type": "any_text", "excludes": sorted(markers - {""})}


def _marker(text: str, tokens: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return a marker as formats of a tag: special tokens by their ids, and the rest as text."""
    parts = re.split(f"({'|'.join(map(re.escape, tokens)) or '(?!)'})", text)
    return [
        {"type": "token", "token": tokens[each]} if each in tokens else {"type": "const_string", "value": each}
        for each in parts
        if each
    ]


def where_the_grammar_begins(
    served: Served, partner: Any, session: Session, request: Any, all_of_it: bool = False
) -> dict[str, Any]:
    """Return the prefix and the reasoning of an export. Reasoning is False if the engine waits for the end of a thought
    or the prompt has ended it, None if a grammar with the thought applies from the first token on. `all_of_it`:
    constrain the whole answer."""
    waits, begun = may_think(served, partner, request), session.prefix or ""
    if waits and can_hold_from_the_first_token(request):
        waits = not served.spelled_closing
        if all_of_it or is_forced(request):
            waits = waits and served.has_end_marker and partner.prompt_opens_reasoning
    if not waits:
        unread = all_of_it and partner is None  # a thought would be content
        ended = served.has_thought(begun) and served.reasoning_after_text(begun) == "closed"
        return {"prefix": session.prefix, "reasoning": False if unread or ended else None}
    return {"prefix": served.after_thought(begun), "reasoning": False}


def may_think(served: Served, partner: Any, request: Any) -> bool:
    """Return whether vLLM expects that a thought may come first, and lets it pass."""
    asked = partner is not None and served.reasons and getattr(request, "include_reasoning", True)
    return bool(asked and not partner.prompt_closes_reasoning)


def choice_of(request: Any) -> Any:
    """Return the tool_choice as toolgram takes it: a word, or an OpenAI dict that names a function."""
    choice = getattr(request, "tool_choice", "auto")
    if choice is None or isinstance(choice, str):
        return choice or "auto"
    if mode_of(request):
        return choice.model_dump()
    function = getattr(choice, "function", choice)
    return {"type": "function", "function": {"name": getattr(function, "name", "")}}


def mode_of(request: Any) -> str:
    """Return the mode of a choice among `allowed_tools`, which Responses have; "" for another choice."""
    choice = getattr(request, "tool_choice", None)
    return str(getattr(choice, "mode", "")) if getattr(choice, "type", None) == "allowed_tools" else ""


def is_forced(request: Any) -> bool:
    """Return whether a call is required."""
    choice = choice_of(request)
    return choice not in ("auto", "none") and (choice.get("mode") if isinstance(choice, dict) else "") != "auto"


def can_hold_from_the_first_token(request: Any) -> bool:
    """Return whether a request can say that its grammar has the reasoning in it, as vLLM's own parsers say it."""
    return _FROM_THE_FIRST in (getattr(type(request), "__private_attributes__", None) or {})


def hold_from_the_first_token(request: Any) -> None:
    """Mark a request as constrained from the first token."""
    if can_hold_from_the_first_token(request):
        setattr(request, _FROM_THE_FIRST, True)
