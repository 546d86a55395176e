"""Instructions about calls and reasoning in a template that prints nothing to compare.

Strategy: a template that prints no calls, or no reasoning, may still explain them in its instructions. Those are the
text that the prompt adds with tools, or with thinking on. They are prose, so the only conclusion from them is that they
describe a shipped format (`prompt_shows`); they are kept for the report. A template that prints tool results, and not
as it prints an unknown role, is made for a model that calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from toolgram.derive.comparing import compare
from toolgram.derive.conversation import SWITCHES, Conversation
from toolgram.derive.conversation import TOOLS as TOOL_DICTS
from toolgram.derive.errors import TemplateError

TOOLS, THINKING, RESULTS = "tools", "thinking", "what a tool answers"


def find_instructions(conversation: Conversation, has_calls: bool, has_reasoning: bool) -> dict[str, str]:
    """Return the prompt's text about calls and about thinking, if the turns show neither."""
    found: dict[str, str] = {}
    names, prompt = conversation.template.names, conversation.prompt
    try:
        if not has_calls and conversation.form.tools != "none":
            without = prompt(with_tools=False)
            own = (name for name in sorted(names) if name.endswith("_tools"))  # such as `xml_tools`
            others = ((prompt({name: TOOL_DICTS}, False), without) for name in own)
            found[TOOLS] = _added(chain([(prompt(), without)], others))
        if not has_calls:
            found[RESULTS] = conversation.printed_result()
        if not has_reasoning:
            switches = (switch for switch in SWITCHES if switch in names)
            found[THINKING] = _added((prompt({each: True}, False), prompt({each: False}, False)) for each in switches)
    except TemplateError as error:
        conversation.refused("the prompt without tools, with thinking on and off", error)
    return {topic: text for topic, text in found.items() if text.strip()}


def _added(prompts: Iterable[tuple[str, str]]) -> str:
    """Return what the first of two prompts has more than the second, for the first pair that differs."""
    return next((text for text in (compare(*pair).left for pair in prompts) if text.strip()), "")
