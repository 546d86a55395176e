"""The analysis of a chat template: the phases in their order, and what follows from them together.

Strategy: each phase asks its own questions of the same conversation; renderings are cached, so that asking twice costs
nothing.  What the phases found is then put together into shapes of turns, read into the field's names (`registry`), and
checked: messages that no phase has seen are written from the analysis and compared with the template's own rendering.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, product

from toolgram.derive.comparing import (
    between,
    common_prefix,
    compare,
    find_slots,
    first_marker,
    learn_markers,
    markers_of,
    mirrors,
)
from toolgram.derive.content import Content, find_escapes, learn_content
from toolgram.derive.conversation import CONTENT, CONTENT_AGAIN, REASONING, TOOLS, Conversation, settle_form
from toolgram.derive.errors import TemplateError
from toolgram.derive.reading import read_calls
from toolgram.derive.reasoning import ON, UNSET, Reasoning, find_prompts, learn_reasoning, settle_reasoning
from toolgram.derive.registry import name_markers
from toolgram.derive.rendering import ChatTemplate
from toolgram.derive.result import (
    ArgumentsStyle,
    CallsFormat,
    DiffAnalysisResult,
    GenerationPrompt,
    MarkerRegistry,
    Part,
    Parts,
    Report,
    Shape,
    Slot,
    filled,
)
from toolgram.derive.tools import Calls, learn_calls, read_all, settle_calls
from toolgram.limits import MAX_TEMPLATE_MARKER
from toolgram.observing.probes import CALLS

TOLD_TOOLS, TOLD_RESULTS = "tools", "what a tool answers"


def analyse(template: ChatTemplate) -> DiffAnalysisResult:
    """Find out how a chat template writes reasoning, content and calls. Raises TemplateError."""
    conversation = Conversation(template, Report())
    settle_form(conversation)
    learn_markers([])
    switch, prompts = find_prompts(conversation)
    conversation.phase = "T1"
    style = settle_calls(conversation)
    printed = _prints_calls(conversation, style is not None)
    learn_markers([turn for turn in (conversation.turn(CONTENT), conversation.turn(CONTENT, None, CALLS[:1])) if turn])
    conversation.phase = "R1"
    has_reasoning = settle_reasoning(conversation, style is not None, switch)
    if not switch or conversation.thinking or conversation.form.variables:
        switch, prompts = find_prompts(conversation)
    conversation.header = _header(conversation, list(prompts.values()), has_reasoning)
    reasoning, calls = _reasoning(conversation, prompts, style)
    conversation.phase = "C1"
    content = learn_content(conversation, reasoning, calls.one.tail(0) if calls else "")
    conversation.phase = "T1-T7"
    form = learn_calls(conversation, calls, reasoning, content) if calls else None
    conversation.phase = "turns"
    result = _together(conversation, reasoning, content, form, switch, prompts)
    result.prints_calls = printed
    _explain(result)
    return result


def _reasoning(
    conversation: Conversation, prompts: Mapping[str, str], style: ArgumentsStyle | None
) -> tuple[Reasoning, Calls | None]:
    """Return the readings of the calls, and the reasoning, for the role header as it is now known."""
    conversation.phase = "T1"
    calls = read_all(conversation, style) if style else None
    conversation.phase = "R1-R3"
    opened = {name: conversation.body(prompt) for name, prompt in prompts.items()}
    return learn_reasoning(conversation, opened, _before_calls(conversation, style if calls else None)), calls


def _before_calls(conversation: Conversation, style: ArgumentsStyle | None) -> list[str]:
    """Return what is between reasoning and the first call."""
    if style is None:
        return []
    turn = conversation.turn(None, REASONING, CALLS[:1])
    reading = read_calls(conversation.body(turn) if turn else None, CALLS[:1], style)
    if reading is None or REASONING not in reading.lead(0):
        return []
    return [reading.lead(0).partition(REASONING)[2]]


def _header(conversation: Conversation, openings: Sequence[str], has_reasoning: bool) -> str:
    """Return the role header: what the generation prompts and all turns begin with."""
    turns = [conversation.turn(CONTENT), conversation.turn(CONTENT_AGAIN), conversation.turn(None, None, CALLS[:1])]
    turns += [conversation.turn(CONTENT, REASONING)] if has_reasoning else []
    turns += [conversation.turn_in_history(conversation.assistant(CONTENT))]
    rendered = [turn for turn in turns if turn]
    openings = [text for text in openings if text.strip()]
    header = common_prefix([*rendered, *openings])
    markers, rests = markers_of(header), [text[len(header) :] for text in (*rendered, *openings)]
    if markers and any(mirrors(markers[-1], first_marker(rest)) for rest in rests):
        header = header[: header.rindex(markers[-1])]  # every turn opens a thought
    header = _without_beginning(conversation, header, rendered)
    try:
        empty = conversation.turn_or_error({"role": "assistant", "content": ""})
    except TemplateError:
        return header
    shorter = common_prefix([header, empty])
    return shorter if shorter.strip() and header[len(shorter) :].strip() else header


_TOKEN = re.compile(r"<[^<>\s][^<>\n]{0,100}>|\[[^\[\]\s][^\[\]\n]{0,100}\]")
_WORDS = re.compile(r"[\w\s:/.=-]*")


def _without_beginning(conversation: Conversation, header: str, turns: Sequence[str]) -> str:
    """Return the header without a last marker that begins what follows it, which the prompt has written.

    That is so if the name of a call follows it directly, and if it comes again before each part of a turn, with a word
    that tells the parts apart.
    """
    found = [(match.start(), match.group()) for match in _TOKEN.finditer(header)]
    if not found or header[-1:].isspace():
        return header
    at, token = found[-1]
    if not _WORDS.fullmatch(header[at + len(token) :]):
        return header
    leads = [_lead(turn[len(header) :]) for turn in turns]
    named = at > 0 and "" in leads
    several = [conversation.turn(CONTENT, None, CALLS[:1]), conversation.turn(None, None, CALLS[:2])]
    again = any(turn is not None and turn.count(token) > 1 for turn in several)
    told_apart = again and any(not lead[0].isspace() and _WORDS.fullmatch(lead) for lead in leads if lead)
    return header[:at] if named or told_apart else header


def _lead(body: str) -> str | None:
    """Return what is before the first part of a message; None if there is none."""
    places = [at for at in map(body.find, (CONTENT, REASONING, CALLS[0].name, CALLS[0].id)) if at >= 0]
    if not places:
        return None
    at = min(places)
    return body[:at] if at or not body.startswith((CONTENT, REASONING)) else None


def _together(
    conversation: Conversation,
    reasoning: Reasoning,
    content: Content,
    calls: CallsFormat | None,
    switch: str,
    prompts: Mapping[str, str],
) -> DiffAnalysisResult:
    shapes = _shapes(conversation, calls)
    markers, fields, tool_format = name_markers(reasoning, content, calls)
    markers = _cut_markers(conversation, markers)
    instructions = {} if calls is not None else _instructions(conversation)
    called = shapes.get(frozenset({Part.CALLS}))
    before = conversation.header.removeprefix(prompts[UNSET]) if conversation.header.startswith(prompts[UNSET]) else ""
    switches = {name: {} if name == UNSET else {switch: name == ON} for name in prompts}
    return DiffAnalysisResult(
        reasoning_mode=reasoning.mode,
        content_mode=content.mode,
        tool_format=tool_format,
        markers=markers,
        json_fields=fields,
        header=conversation.header,
        shapes=shapes,
        calls=calls,
        prompts={
            name: GenerationPrompt(text, conversation.body(text), conversation.before_turn(switch), switch)
            for name, text, switch in zip(prompts, prompts.values(), switches.values(), strict=True)
        },
        switch=switch,
        turn_start=content.turn_start if before.strip() else before + content.turn_start,
        turn_end=content.turn_end,
        turn_end_after_calls=called.texts[-1] if called is not None and not called.dropped else "",
        form=conversation.form,
        preserved_tokens=_preserved(markers.stripped().items()),
        instructions=instructions,
        prints_calls="",
        report=conversation.report,
        escaped=find_escapes(conversation),
    )


def _cut_markers(conversation: Conversation, markers: MarkerRegistry) -> MarkerRegistry:
    """Return the markers, each that is longer than any marker cut after its first special token, or at a bound."""
    long = {name: text for name, text in markers.items() if len(text) > MAX_TEMPLATE_MARKER}
    for name, text in long.items():
        conversation.leave_unexplained(f"{name} is {len(text)} characters long, and was cut: it is hardly a marker")
    return replace(markers, **{name: first_marker(text)[:MAX_TEMPLATE_MARKER] for name, text in long.items()})


def _preserved(markers: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return the bracketed markers, which a tokenizer must not skip as special."""
    pairs = {"<": ">", "[": "]", "【": "】", "«": "»", "⟨": "⟩"}
    found = [part for _, marker in markers for part in markers_of(marker) if pairs.get(part[0]) == part[-1]]
    return tuple(dict.fromkeys(part for part in found if any(map(str.isalnum, part))))


def _prints_calls(conversation: Conversation, found: bool) -> str:
    """Return whether calls are printed: one that was never printed may have been left out, or refused."""
    turns = [conversation.turn(content, None, CALLS[:1]) for content in (None, CONTENT)]
    if found or any(turn is not None and CALLS[0].name in turn for turn in turns):
        return "yes"
    return "no" if any(turn is not None for turn in turns) else "refused"


def _instructions(conversation: Conversation) -> dict[str, str]:
    """Return what a template that prints no calls says of them: what the prompt has more with tools, and with results.

    That is prose, so the only conclusion from it is that it describes a shipped format (`prompt_shows`). Results count
    if they are not printed as a message of an unknown role is: such a template is made for a model that calls.
    """
    found, prompt = {TOLD_TOOLS: "", TOLD_RESULTS: conversation.printed_result()}, conversation.prompt
    try:
        if conversation.form.tools != "none":
            without = prompt(with_tools=False)
            names = sorted(conversation.template.clues.names)
            own = (name for name in names if name.endswith("_tools"))  # as `xml_tools`
            others = (compare(prompt({name: TOOLS["typed"]}, False), without).left for name in own)
            texts = chain([compare(prompt(), without).left], others)
            found[TOLD_TOOLS] = next((text for text in texts if text.strip()), "")
    except TemplateError as error:
        conversation.refused("the prompt without tools", error)
    return {topic: text for topic, text in found.items() if text.strip()}


def _shapes(conversation: Conversation, calls: CallsFormat | None) -> dict[Parts, Shape]:
    """Return a shape for every combination of parts that the template does not refuse."""
    first, shapes = CALLS[0], {}
    values = [(Part.CONTENT.value, CONTENT), (Part.REASONING.value, REASONING)]
    one = ""  # the calls of a turn with the first probe alone, section included
    if calls is not None:
        start, end = calls.single or (calls.section_start, calls.section_end)
        slots = {Slot.NAME: first.name, Slot.ID: first.id, Slot.INDEX: str(calls.index_base)}
        one = start + filled(calls.pattern, {**slots, Slot.ARGUMENTS: calls.arguments.shown}) + end
    for content, thought, with_calls in product((CONTENT, None), (None, REASONING), ((), CALLS[:1])):
        turn = conversation.turn(content, thought, with_calls) if content or with_calls else None
        if turn is not None:
            given = ((Part.CONTENT, content), (Part.REASONING, thought), (Part.CALLS, with_calls))
            parts = frozenset(part for part, value in given if value)
            body = conversation.body(turn)
            found = find_slots(body, [*values, *[(Part.CALLS.value, one)] * bool(with_calls)])
            seen = tuple(Part(slot.label) for slot in found)
            shapes[parts] = Shape(seen, tuple(between(body, found)), parts - frozenset(seen))
    return shapes


def _explain(result: DiffAnalysisResult) -> None:
    """Say what the template does not print."""
    report = result.report
    if result.calls is None and result.prints_calls == "yes":
        report.leave_unexplained("the template prints calls, but not in a way that could be read")
    elif result.calls is None:
        refused = result.prints_calls == "refused"
        how = "refuses tool calls; it does not show" if refused else "prints no tool calls; it cannot show"
        report.warn(f"the template {how} how the model writes them")
    if result.calls is not None and Part.CALLS not in result.shapes.get(frozenset({Part.CALLS}), Shape((), ())).parts:
        report.leave_unexplained("the template prints calls, and what was found does not write them as it does")
    for topic, text in result.instructions.items():
        report.found("hints", f"the prompt speaks of {topic}", "what it has more with them than without", text)
    for parts, shape in result.shapes.items():
        if shape.dropped:
            having = ", ".join(sorted(part.value for part in parts))
            lost = ", ".join(sorted(part.value for part in shape.dropped))
            report.found("turns", f"a message with {having} loses its {lost}", "the turn does not show it")
            if Part.CALLS in shape.dropped and any(CALLS[0].name in text for text in shape.texts):
                report.leave_unexplained(f"in a message with {having}, calls are written otherwise than alone")
        elif len(shape.parts) != len(set(shape.parts)):
            report.leave_unexplained("a part of the message is printed twice")
