"""What holds a model to its calls in vLLM: toolgram's own export as a structural tag, and where it begins to hold.

Strategy: the engine lets reasoning pass and holds what follows to the grammar, from the token on that ends the
thought. That works where the prompt has begun the thought. Where a prompt leaves open whether the model thinks, a
model that does not would never be held; a call that is asked for is then held from the first token on, by a grammar
that has the thought in it. So is every answer where the marker that ends a thought is spelled by several tokens: the
last of them may hold the first characters of a call as well, which the grammar would not see. A call that is required,
or named, begins at once: text before it would let a model go on for ever. With TOOLGRAM_FORCED_CALLS=after_text (or
`vllm_xargs: {"toolgram_forced_calls": "after_text"}`) there may be text before it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from toolgram.integrations.observing import warn_no_constraint
from toolgram.integrations.served import Served, Session

FORCED_VARIABLE = "TOOLGRAM_FORCED_CALLS"
FORCED_FIELD = "toolgram_forced_calls"
AFTER_TEXT = "after_text"
_FROM_THE_FIRST = ("_grammar_from_parser", "_grammar_from_tool_parser")  # 0.33; up to 0.24, where only chat has it


def structural_tag(
    served: Served, request: Any, tools: Sequence[Mapping[str, Any]], prefix: str | None, reasoning: bool | None
) -> Any:
    """The tag for a request; None, with a warning once for each reason, where calls are read and not enforced."""
    if served.fmt is None:
        return None
    try:
        from xgrammar import StructuralTag

        found = StructuralTag.model_validate_json(tag_text(served, request, tools, prefix, reasoning))
    except Exception as error:
        warn_no_constraint(f"{served.fmt}: {error}")
        return None
    if reasoning is None:
        hold_from_the_first_token(request)
    return found


def tag_text(
    served: Served,
    request: Any,
    tools: Sequence[Mapping[str, Any]],
    prefix: str | None,
    reasoning: bool | None,
    form: Mapping[str, Any] | None = None,
) -> str:
    """The tag of a request as JSON text."""
    assert served.fmt is not None
    parallel = getattr(request, "parallel_tool_calls", None) is not False
    text = not is_forced(request) or may_have_text_before(request)
    # A token that a tokenizer calls special matches no text in xgrammar: it is named by its id.
    tokens = {mark: number for mark, number in served.special_tokens.items() if mark in served.special_texts}
    choice = choice_of(request) if tools or is_forced(request) else "none"
    made = served.fmt.export(
        "structural_tag", tools, choice, parallel, reasoning, None, prefix, tokens, text_before_calls=text,
        answer_format=form,
    )  # fmt: skip
    return made.text


def where_the_grammar_begins(
    served: Served, partner: Any, session: Session, request: Any, all_of_it: bool = False
) -> dict[str, Any]:
    """The prefix and the reasoning of an export: `reasoning` is False where the engine waits for the end of a thought,
    or the prompt has ended it, and None where a grammar with the thought in it holds from the first token on.
    `all_of_it`: the whole answer has to be held to it, also where the model does not think."""
    waits = may_think(served, partner, request)
    if waits and can_hold_from_the_first_token(request):
        waits = not served.spelled_closing
        if all_of_it or is_forced(request):
            waits = waits and served.tells_its_end and partner.prompt_opens_reasoning
    if not waits:
        return {"prefix": session.prefix, "reasoning": False if served.has_thought(session.prefix or "") else None}
    return {"prefix": served.behind_thought(session.prefix or ""), "reasoning": False}


def may_think(served: Served, partner: Any, request: Any) -> bool:
    """Whether vLLM takes it that a thought may come first, and lets it pass."""
    asked = partner is not None and served.reasons and getattr(request, "include_reasoning", True)
    return bool(asked and not partner.prompt_closes_reasoning)


def choice_of(request: Any) -> Any:
    """The tool_choice as toolgram takes it: a word, or an OpenAI dict that names a function."""
    choice = getattr(request, "tool_choice", "auto")
    if choice is None or isinstance(choice, str):
        return choice or "auto"
    function = getattr(choice, "function", choice)
    return {"type": "function", "function": {"name": getattr(function, "name", "")}}


def is_forced(request: Any) -> bool:
    """Whether a call is asked for."""
    return choice_of(request) not in ("auto", "none")


def may_have_text_before(request: Any) -> bool:
    """Whether the request, or else the server, lets text stand before a call that is asked for."""
    asked = (getattr(request, "vllm_xargs", None) or {}).get(FORCED_FIELD)
    return bool((asked or os.environ.get(FORCED_VARIABLE)) == AFTER_TEXT)


def can_hold_from_the_first_token(request: Any) -> bool:
    """Whether a request can say that its grammar has the reasoning in it. vLLM's own parsers say it in the same way."""
    return any(name in _private(request) for name in _FROM_THE_FIRST)


def hold_from_the_first_token(request: Any) -> None:
    """Say so."""
    for name in _FROM_THE_FIRST:
        if name in _private(request):
            setattr(request, name, True)


def _private(request: Any) -> Any:
    return getattr(type(request), "__private_attributes__", None) or {}
