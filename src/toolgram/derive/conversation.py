"""Asking a chat template how an assistant's turn is written: the probes, and cutting the turn out of the prompt.

Strategy: every probe is one conversation of a user message and an assistant message, made of words that no template
contains, so that each can be found again.  Only what is after the user's message counts, and of that only what
the answer adds: tool lists and examples in the system text cannot be mistaken for a call.  Templates differ in what
they accept (an empty content, the key of the reasoning, arguments as object or text), so the form of the messages is
itself found by trying, and every refusal is kept for the report.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from toolgram.derive.budget import look
from toolgram.derive.comparing import common_prefix, common_suffix, cuttable, first_marker, shared_length
from toolgram.derive.errors import TemplateError
from toolgram.derive.rendering import ChatTemplate, Message
from toolgram.derive.result import FailedProbe, MessageForm, Report
from toolgram.limits import MAX_TURN
from toolgram.observing.probes import ALL_CALLS, CALLS, Call, tool_of

USER, USER_AGAIN = "Wherefore glimmer quilps", "Yonder flitters mopt"
CONTENT, CONTENT_AGAIN = "Briskzolves", "Nimbledwarfkin"  # without a blank, which may be escaped
REASONING = "Hushedkwarties"
RESULT, NOBODY = "Zephyrous knoll", "quoxer"  # what a tool answers, and a role that no template knows
REASONING_KEYS = ("reasoning_content", "reasoning", "thinking", "thought")
EITHER = (False, True)
TOOLS = {"typed": [tool_of(call) for call in ALL_CALLS], "text": [tool_of(call, "string") for call in ALL_CALLS]}
SWITCHES = ("enable_thinking", "thinking", "think", "reasoning", "enable_reasoning", "thinking_mode")


class Conversation:
    """Renders assistant turns of one template, in the form of messages that it accepts."""

    def __init__(self, template: ChatTemplate, report: Report) -> None:
        self.template = template
        self.report = report
        self.found, self.warn, self.leave_unexplained = report.found, report.warn, report.leave_unexplained
        self.form = MessageForm()
        self.phase = "start"
        self.header = ""
        self.thinking: Mapping[str, Any] = {}  # the variables with which turns print their thoughts
        self._refused: set[str] = set()
        self._cuts: dict[tuple[str, str, str], str] = {}

    def change(self, **changed: Any) -> None:
        """Change the form of messages."""
        self.form = replace(self.form, **changed)

    def assistant(self, content: str | None, reasoning: str | None = None, calls: Sequence[Call] = ()) -> Message:
        """Return the assistant message with these parts, in this template's form."""
        message: Message = {"role": "assistant"}
        message["content"] = self._content(content) if content else self.form.empty_content
        if reasoning and self.form.reasoning_in_blocks:
            blocks = [{"type": "thinking", "thinking": reasoning}]
            message["content"] = blocks + ([{"type": "text", "text": content}] if content else [])
        elif reasoning:
            parts = [{"type": "text", "text": reasoning, "content": reasoning, "thinking": reasoning}]
            message |= dict.fromkeys(self.form.reasoning_keys, parts if self.form.reasoning_in_parts else reasoning)
        for call in calls:
            arguments: Any = dict(call.arguments)
            if self.form.arguments_as_string:
                arguments = json.dumps(arguments, ensure_ascii=False)
            function = {"name": call.name, "arguments": arguments}
            given = {"id": call.id, "type": "function", "function": function}
            message.setdefault("tool_calls", []).append(given)
        return message

    def _content(self, text: str) -> Any:
        return [{"type": "text", "text": text}] if self.form.content_in_blocks else text

    def _message(self, role: str, text: str, **more: str) -> Message:
        return {"role": role, "content": self._content(text), **more}

    def render(self, messages: Sequence[Message], prompt: bool = False, kwargs: Mapping[str, Any] | None = None) -> str:
        """Render a conversation that begins with the user. Raises TemplateError."""
        look(f"analysing the template (phase {self.phase})")
        variables = {**self.form.variables, **(kwargs or {})}
        return self.template.render(messages, tools=self._tools(), add_generation_prompt=prompt, kwargs=variables)

    def opening(self, kwargs: Mapping[str, Any] | None = None) -> str:
        """Return what the generation prompt adds to a conversation that ends with the user."""
        user = [self._message("user", USER)]
        base = _after(self.render(user, kwargs=kwargs), USER)
        return _added(base, _after(self.render(user, True, kwargs), USER), "")

    def prompt(self, kwargs: Mapping[str, Any] | None = None, with_tools: bool = True) -> str:
        """Return the whole prompt of a user message, with the tools or without."""
        tools = self._tools() if with_tools else None
        return self.template.render(
            [self._message("user", USER)], tools=tools, kwargs={**self.form.variables, **(kwargs or {})}
        )

    def _tools(self) -> list[Message] | None:
        return TOOLS.get(self.form.tools)

    def before_turn(self, kwargs: Mapping[str, Any] | None = None) -> str:
        """Return what is after the user's text when no generation prompt is asked for."""
        return _after(self.render([self._message("user", USER)], kwargs=kwargs), USER)

    def turn(
        self,
        content: str | None = None,
        reasoning: str | None = None,
        calls: Sequence[Call] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> str | None:
        """Return what an assistant message adds to the prompt, with its role header; None if it is refused."""
        try:
            return self.turn_or_error(self.assistant(content, reasoning, calls), kwargs)
        except TemplateError as error:
            self.refused(f"content={content!r}, reasoning={reasoning!r}, calls={[c.name for c in calls]}", error)
            return None

    def turn_or_error(self, message: Message, kwargs: Mapping[str, Any] | None = None) -> str:
        """Return the same for a given message. Raises TemplateError."""
        user, kwargs = self._message("user", USER), self.thinking if kwargs is None else kwargs
        base = _after(self.render([user], kwargs=kwargs), USER)
        key = base, self._up_to_the_end([user, message], base, kwargs), self.opening(kwargs)
        if len(key[1]) - len(base) > MAX_TURN:
            raise TemplateError(f"adds more than {MAX_TURN} characters for one message")
        if key not in self._cuts:
            self._cuts[key] = _from_prompt(_added(*key), key[2])
        return self._cuts[key]

    def _up_to_the_end(self, messages: Sequence[Message], base: str, kwargs: Mapping[str, Any] | None) -> str:
        """Return what is after the user's text, up to the end of these messages, also if another user follows."""
        if not self.form.with_user:
            return _after(self.render(messages, kwargs=kwargs), USER)
        full = self.render([*messages, self._message("user", USER_AGAIN)], kwargs=kwargs)
        before, _, said = full.rpartition(USER_AGAIN)[0].rpartition(USER)
        header = common_suffix([before, said])
        if base.strip() and base in header:
            header = header.partition(base)[2]  # what is before the first user's message ends like an answer
        return said.removesuffix(header)

    def printed_result(self) -> str:
        """Return what a tool's answer adds; "" if it is refused, or printed as a message of any other role is."""
        answer = self._message("assistant", CONTENT)
        texts = []
        for role in ("tool", NOBODY):
            message = self._message(role, RESULT, name="f", tool_call_id=CALLS[0].id)
            try:
                texts.append(_after(self.render([self._message("user", USER), answer, message]), CONTENT))
            except TemplateError:
                texts.append("")
        return texts[0] if RESULT in texts[0] and texts[0] != texts[1].replace(NOBODY, "tool") else ""

    def turn_in_history(self, message: Message) -> str | None:
        """Return the same if another user message follows; None if that is refused."""
        plain = self.form
        self.change(with_user=True)
        try:
            return self.turn_or_error(message)
        except TemplateError as error:
            self.refused(f"a user message after {sorted(message)}", error)
            return None
        finally:
            self.form = plain

    def refused(self, asked: str, error: TemplateError) -> None:
        """Record a refusal, once."""
        if asked + error.problem not in self._refused:
            self._refused.add(asked + error.problem)
            self.report.failed.append(FailedProbe(self.phase, asked, error))

    def body(self, turn: str) -> str:
        """Return a turn without its role header."""
        return turn[len(self.header) :] if turn.startswith(self.header) else turn


def settle_form(conversation: Conversation) -> None:
    """Find a form of conversation in which the template prints the content of an assistant message.

    If it refuses content in every form, another message of the user is given after it. Raises TemplateError.
    """
    first: TemplateError | None = None
    plain = conversation.form
    choices = {"with_user": EITHER, "content_in_blocks": EITHER, "tools": ("typed", "text", "none")}
    for conversation.form in forms(plain, **choices):
        problem = _content_problem(conversation)
        if problem is None:
            return _settled(conversation)
        first = first or problem
    assert first is not None
    raise first


def forms(plain: MessageForm, **choices: Sequence[Any]) -> Iterator[MessageForm]:
    """Yield the form with each combination of these choices; the last one changes first."""
    for values in product(*choices.values()):
        yield replace(plain, **dict(zip(choices, values, strict=True)))


def _content_problem(conversation: Conversation) -> TemplateError | None:
    """Return why an answer is not printed; None if it is."""
    first: TemplateError | None = None
    for _ in range(4):
        try:
            turn = conversation.turn_or_error(conversation.assistant(CONTENT))
        except TemplateError as problem:
            conversation.refused(f"content, tools: {conversation.form.tools}", problem)
            first = first or problem  # the others may come of what was defined
            if not _define_missing(conversation, problem):
                return first
            continue
        if CONTENT in turn and not (conversation.form.content_in_blocks and re.search("['\"]text['\"]", turn)):
            return None
        break
    return TemplateError("prints no content of an assistant message, as a chat template does for each of `messages`")


def _settled(conversation: Conversation) -> None:
    if conversation.form.with_user:
        conversation.found("T1", "an answer is given with a user's message after it", "else it is refused")
    if conversation.form.tools == "none":
        conversation.warn("the template cannot be rendered with tools; it was analysed without")
    if conversation.form.variables:
        conversation.warn(f"the template needs variables that are not usual: {sorted(conversation.form.variables)}")


def _define_missing(conversation: Conversation, error: TemplateError) -> bool:
    """Define a variable that the template uses without asking whether it is there."""
    match, known = re.match(r"'(\w+)' is undefined", error.problem), conversation.form.variables
    clues = conversation.template.clues
    if match is None or match[1] not in clues.names or match[1] in (*known, *clues.called):
        return False
    conversation.change(variables={**known, match[1]: ""})
    return True


def _after(text: str, word: str) -> str:
    at = text.rfind(word)
    return text[at + len(word) :] if at >= 0 else text


_SAID = (CONTENT, CONTENT_AGAIN, REASONING, *(call.name for call in CALLS), *(call.id for call in CALLS))


def _from_prompt(turn: str, opening: str) -> str:
    """Return a turn from the generation prompt on. What comes before that closes the user's message."""
    bare = opening.lstrip()
    at = turn.find(bare) if bare.strip() else -1
    if at <= 0 or turn.startswith(opening) or any(word in turn[:at] for word in _SAID):
        return turn
    return opening[: len(opening) - len(bare)] + turn[at:]


def _added(base: str, full: str, opening: str) -> str:
    """Return what `full` has more than `base`. If several places are possible, it begins like `opening`."""
    before = shared_length([base, full])
    after = shared_length([base[::-1], full[::-1]])
    size = len(full) - len(base)
    if before + after >= len(base) and size >= 0:
        places = cuttable(full, max(0, len(base) - after), before)
        at = max(places, key=lambda at: (shared_length([full[at : at + size], opening]), at))
        return full[at : at + size]
    start = first_marker(opening)
    at = full.find(start) if start.strip() else -1
    return full[at:] if at >= 0 else full[len(common_prefix([base, full])) :]
