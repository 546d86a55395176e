"""Instructions about calls and reasoning in a template that prints nothing to compare.

Strategy: a template that prints no calls, or no reasoning, may still explain them in its instructions. Those are the
text that the prompt adds with tools, or with thinking on. They are prose, so the only conclusion from them is that they
describe a shipped format (`prompt_shows`); they are kept for the report. A template that prints tool results, and not
as it prints an unknown role, is made for a model that calls.
"""

from __future__ import annotations

from toolgram.derive.comparing import compare
from toolgram.derive.conversation import SWITCHES, Conversation
from toolgram.derive.conversation import TOOLS as TOOL_DICTS
from toolgram.derive.errors import TemplateError

TOOLS, THINKING, RESULTS = "tools", "thinking", "what a tool answers"


def find_instructions(conversation: Conversation, has_calls: bool, has_reasoning: bool) -> dict[str, str]:
    """Return the prompt's text about calls and about thinking, if the turns show neither."""
    found: dict[str, str] = {}
    try:
        if not has_calls and conversation.form.tools != "none":
            told = compare(conversation.prompt(), conversation.prompt(with_tools=False)).left
            found[TOOLS] = told or _about_tools(conversation)
        if not has_calls:
            found[RESULTS] = conversation.printed_result()
        if not has_reasoning:
            found[THINKING] = _about_thinking(conversation)
    except TemplateError as error:
        conversation.refused("the prompt without tools, with thinking on and off", error)
    return {topic: text for topic, text in found.items() if text.strip()}


def _about_tools(conversation: Conversation) -> str:
    """Return the prompt's text if the tools are given under a name of the template's own, such as `xml_tools`."""
    for name in sorted(conversation.template.names):
        if name.endswith("_tools"):
            text = compare(conversation.prompt({name: TOOL_DICTS}, False), conversation.prompt(with_tools=False)).left
            if text.strip():
                return text
    return ""


def _about_thinking(conversation: Conversation) -> str:
    for switch in SWITCHES:
        if switch in conversation.template.names:
            text = compare(conversation.prompt({switch: True}, False), conversation.prompt({switch: False}, False)).left
            if text.strip():
                return text
    return ""
