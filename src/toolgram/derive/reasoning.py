"""Phases R1 to R3: whether and how a template writes reasoning, and what the generation prompt says of it.

R1 compares an answer with and without reasoning, R3 the reasoning before content with the reasoning before calls: what
follows the reasoning in both ends it.  R2 compares the generation prompts with thinking on, off and left alone: what
they add to the role header opens a thought, or opens and closes one.  A template that drops the thoughts it is given
still shows their markers in R2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from toolgram.derive.comparing import common_prefix, compare, first_marker, markers_of, mirror_of, mirrors, opening_of
from toolgram.derive.conversation import CONTENT, EITHER, REASONING, REASONING_KEYS, SWITCHES, Conversation
from toolgram.derive.errors import TemplateError
from toolgram.derive.result import ReasoningMode
from toolgram.islands.escapes import ESCAPES
from toolgram.observing.probes import CALLS

_SIGNS = re.compile(r"[^\w\s].*[^\w\s]")
_ROLE = re.compile(r"assistant|model|bot\b", re.IGNORECASE)
UNSET, ON, OFF = "unset", "on", "off"


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What the phases found."""

    mode: ReasoningMode
    start: str = ""
    end: str = ""


def settle_reasoning(conversation: Conversation, with_calls: bool, switch: str) -> bool:
    """Find the form, and the setting, in which the template prints reasoning; return False if it prints none."""
    clues, plain = conversation.template.clues, conversation.form
    keys = tuple(dict.fromkeys((*REASONING_KEYS, *clues.keys)))
    if _prints(conversation, keys, with_calls) or _prints_blocks(conversation):
        return True
    settings = sorted(clues.settings, key=lambda each: switch not in each)
    for setting, parts in (({}, True), *((each, False) for each in settings)):
        conversation.thinking, conversation.form = setting, replace(plain, reasoning_in_parts=parts)
        if _prints(conversation, keys, with_calls):
            conversation.found("R1", f"thoughts are printed with {setting}", "no turn prints one without")
            if not setting.keys() <= set(SWITCHES) or list(setting.values()) != [True]:  # no switch: it is always set
                conversation.thinking = {}
                conversation.change(variables={**plain.variables, **setting})
            return True
    conversation.thinking, conversation.form = {}, replace(plain, reasoning_keys=REASONING_KEYS)
    return False


def _prints(conversation: Conversation, keys: tuple[str, ...], with_calls: bool) -> bool:
    """Find those of these keys under which a thought is printed once; return False if it never is."""
    for chosen in (keys, *((key,) for key in keys)):
        conversation.change(reasoning_keys=chosen)
        turns = [conversation.turn(CONTENT, REASONING)]
        turns += [conversation.turn(None, REASONING, CALLS[:1])] if with_calls else []
        most = max(turn.count(REASONING) for turn in (*turns, "") if turn is not None)
        if None not in turns and most < 2:
            return most == 1
    return False


def _prints_blocks(conversation: Conversation) -> bool:
    """Return whether a thought is printed that is a block of the content."""
    plain = conversation.form
    conversation.change(reasoning_in_blocks=True)
    turn = ESCAPES["html"].decoded(conversation.turn(CONTENT, REASONING) or "")
    if REASONING in turn and CONTENT in turn and "'type'" not in turn and '"type"' not in turn:
        return True
    conversation.form = plain
    return False


def find_prompts(conversation: Conversation) -> tuple[str, dict[str, str]]:
    """Return the switch of thinking, if there is one, and the generation prompts without it, on and off."""
    prompts = {UNSET: conversation.opening()}
    for switch in SWITCHES:
        if switch not in conversation.template.clues.names:
            continue
        try:
            on, off = conversation.opening({switch: True}), conversation.opening({switch: False})
            if on == off == "":
                on, off = _openings_always_written(conversation, switch)
        except TemplateError as error:
            conversation.refused(f"{switch} on and off", error)
            continue
        turns = {conversation.turn(CONTENT, REASONING, (), {switch: each}) for each in EITHER}
        if on != off or len(turns) > 1 or switch in conversation.thinking:
            return switch, {**prompts, ON: on, OFF: off}
    return "", prompts


def _openings_always_written(conversation: Conversation, switch: str) -> tuple[str, str]:
    """Return the same for a template that writes the generation prompt unasked: what on and off do not share.

    Turns are then rendered with the setting that writes less, or a pre-closed thought would be taken for one of theirs.
    """
    on, off = conversation.before_turn({switch: True}), conversation.before_turn({switch: False})
    split = compare(on, off)
    if on != off:
        conversation.change(variables={**conversation.form.variables, switch: len(on) <= len(off)})
    return split.left + split.suffix, split.right + split.suffix


def learn_reasoning(conversation: Conversation, opened: Mapping[str, str], before_call: Sequence[str]) -> Reasoning:
    """Return the markers of reasoning. `before_call` is the text before the first call, if one was rendered."""
    turn = conversation.turn(CONTENT, REASONING) or conversation.turn(CONTENT, REASONING, CALLS[:1])
    body = conversation.body(turn) if turn else ""
    prompt = _from_prompts(opened)
    if REASONING in body:
        found = _from_turn(conversation, body, before_call, prompt)
    elif before_call:
        found = _from_calls(conversation, before_call[0], prompt)
    else:
        found = _from_prompt_alone(conversation, prompt, opened)
    mode = _mode(found, opened)
    evidence = [body, *before_call, *opened.values()]
    conversation.found(
        "R1-R3", f"{mode.value}: {found.start!r} ... {found.end!r}", "what surrounds reasoning", *evidence
    )
    return replace(found, mode=mode)


def _from_prompts(opened: Mapping[str, str]) -> tuple[str, str]:
    """Return start and end as the generation prompts with thinking on and off show them (R2)."""
    on, off = opened.get(ON, opened[UNSET]), opened.get(OFF, opened[UNSET])
    if on == off:
        return on, ""
    split = compare(on, off)
    if on and off.startswith(on):
        return on, off[len(on) :]
    if split.prefix.strip() and not split.left.strip():
        return on, split.right + split.suffix
    if on.strip() and off.strip():
        return (on, off) if mirrors(on, off) else (on, "")
    markers = markers_of(on or off)
    if len(markers) == 2:
        text = on or off
        at = text.rindex(markers[1])
        return text[:at], text[at:]
    return on, ""


def _from_turn(conversation: Conversation, body: str, before_call: Sequence[str], prompt: tuple[str, str]) -> Reasoning:
    """Return the form of reasoning that is printed beside content (R1 and R3)."""
    at = body.index(REASONING)
    start, rest = body[:at], body[at + len(REASONING) :]
    if CONTENT not in rest:  # reasoning after content, or without it
        start = start[start.index(CONTENT) + len(CONTENT) :] if CONTENT in start else start
        return Reasoning(ReasoningMode.TAG_BASED, start, first_marker(rest))
    alone = (conversation.turn(CONTENT), conversation.turn(None, None, CALLS[:1]))
    middle, turns = rest[: rest.index(CONTENT)], [conversation.body(turn or "") for turn in alone]
    absent = common_prefix([middle, *turns])
    if absent.strip() and not start.strip():  # turns without a thought begin with what ends one
        return Reasoning(ReasoningMode.TAG_BASED, start, absent)
    middle, before_call = _without_openings(turns, middle, before_call)
    end = common_prefix([middle, *before_call])
    if not end.strip() or not before_call or len(markers_of(end)) > 1:
        shared = end if end.strip() and before_call else middle
        end = _leading_marker(shared, start or prompt[0], rest[rest.index(CONTENT) + len(CONTENT) :])
    if not end.strip():
        conversation.leave_unexplained(
            "the template prints reasoning without any mark of where it ends; it is taken for content"
        )
        return Reasoning(ReasoningMode.NONE)
    return Reasoning(ReasoningMode.TAG_BASED, start, end)


def _without_openings(turns: Sequence[str], middle: str, before_call: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return what follows reasoning, less what content and calls begin with if no reasoning comes before either."""
    answer, call = (turn.partition(word)[0] for turn, word in zip(turns, (CONTENT, CALLS[0].name), strict=True))
    if not answer.strip() or not call.strip() or not middle.endswith(answer) or middle.strip() == answer.strip():
        return middle, before_call
    if not all(text.endswith(call) and text != call for text in before_call):
        return middle, before_call
    return middle.removesuffix(answer), [text.removesuffix(call) for text in before_call]


def _leading_marker(middle: str, start: str, after: str) -> str:
    """Return the end of reasoning if only content follows: all of the middle, less what opens the content."""
    markers = markers_of(middle)
    closing = markers_of(after)
    if len(markers) > 1 and closing and any(mirrors(markers[-1], each) for each in closing):
        return middle[: middle.rindex(markers[-1])]
    if len(markers) > 1 and mirrors(markers_of(start)[-1] if markers_of(start) else "", markers[0]):
        at = middle.index(markers[0]) + len(markers[0])
        return middle[: len(middle) - len(middle[at:].lstrip())]
    return middle


def _from_calls(conversation: Conversation, before_call: str, prompt: tuple[str, str]) -> Reasoning:
    """Return the form of reasoning that is printed only beside calls."""
    turn = conversation.turn(None, REASONING, CALLS[:1])
    body = conversation.body(turn or "")
    start = body[: body.index(REASONING)] if REASONING in body else ""
    known = prompt[1].strip()
    if known and known in before_call:
        end = before_call[: before_call.index(known) + len(known)]
    else:
        end = first_marker(before_call)
    return Reasoning(ReasoningMode.TOOLS_ONLY, start, end)


def _from_prompt_alone(conversation: Conversation, prompt: tuple[str, str], opened: Mapping[str, str]) -> Reasoning:
    """Return what the generation prompt alone shows, as the template prints no reasoning."""
    start, end = prompt
    called = conversation.body(conversation.turn(None, None, CALLS[:1]) or "")
    if not start.strip() or called.startswith(start + CALLS[0].name):  # it opens a call
        return _from_cuts(conversation)
    if not end.strip():
        end = _from_mirror(conversation, start)
    if not end.strip():
        conversation.warn(f"the generation prompt ends in {start!r}; the template does not show what that opens")
        return Reasoning(ReasoningMode.NONE)
    return Reasoning(ReasoningMode.FORCED_OPEN, start, end)


def _from_mirror(conversation: Conversation, start: str) -> str:
    """Return the marker that by its shape closes what the prompt opens. The report says so if no rendering shows it."""
    markers = markers_of(start)
    if not markers or (not conversation.header.strip() and _ROLE.search(start)):
        return ""  # a role header that no turn has is no thought
    end = mirror_of(markers[-1])
    if end and not _is_cut(conversation, start, end):
        conversation.found("R2", f"reasoning ends at {end!r}", f"it is the counterpart of {start.strip()!r}", start)
        conversation.warn(f"the prompt opens {start.strip()!r} and no turn shows its end; it is taken to be {end!r}")
    return end


def _is_cut(conversation: Conversation, start: str, end: str) -> bool:
    """Return whether the template drops what is between these markers at the beginning of an answer."""
    answer = f"{start}{REASONING}{end}\n\n{CONTENT}"
    turns = (conversation.turn(answer), conversation.turn_in_history(conversation.assistant(answer)))
    return any(turn and CONTENT in turn and REASONING not in turn for turn in turns)


def _from_cuts(conversation: Conversation) -> Reasoning:
    """Return the form of a thought that the template drops from an answer: it ends at a text that the source has."""
    clues = conversation.template.clues
    for end in filter(_SIGNS.search, clues.cuts):
        start = opening_of(end)
        if _is_cut(conversation, start, end) and end in clues.thought_ends:
            conversation.found("R2", f"reasoning ends at {end!r}", "an answer loses what is before it")
            return Reasoning(ReasoningMode.TAG_BASED, start, end)
        if _is_cut(conversation, start, end):
            conversation.leave_unexplained(f"the template cuts an answer at {end!r}; what is before that is not known")
    for end in clues.thought_ends:
        conversation.leave_unexplained(f"the source has {end!r}, and no turn printed a thought")
    return Reasoning(ReasoningMode.NONE)


def _mode(found: Reasoning, opened: Mapping[str, str]) -> ReasoningMode:
    start, end = found.start.strip(), found.end.strip()
    if not end:
        return ReasoningMode.NONE
    asked = {opened[UNSET], opened.get(ON, opened[UNSET])}
    if any(text.strip() and end not in text and (not start or text.strip().endswith(start)) for text in asked):
        return ReasoningMode.FORCED_OPEN
    if found.mode is ReasoningMode.TOOLS_ONLY:
        return found.mode
    if end in opened.get(OFF, ""):
        return ReasoningMode.FORCED_CLOSED
    return ReasoningMode.TAG_BASED if start else ReasoningMode.DELIMITER
