"""The part of a format that is not calls: content, reasoning, wrappers of either, and the ends of turns.

Strategy: content and reasoning know nothing of each other and nothing of calls.  Each is a state in which text goes on;
a marker leads from one to the other, and what begins a call leads out of all of them, also out of a thought that was
never closed.  Text that follows a call leads back to content.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from toolgram.derive.comparing import markers_of
from toolgram.derive.format_builder import TEXTS, FormatBuilder, one_of, sources_of
from toolgram.derive.result import ContentMode, DiffAnalysisResult, Part, ReasoningMode, Tokens
from toolgram.limits import MAX_TEMPLATE_MARKER
from toolgram.spec.composition import START

REPAIR_CALLS = "repair_calls"  # the rule of calls of which the end of the turn closes the last
BEGIN = "WAITING_FOR_CONTENT"  # where a turn begins, and after a thought: one that ends there again means nothing
_WORDY = re.compile(r"[\w\s.,:;!?-]*\Z")


def thinks_first(result: DiffAnalysisResult) -> bool:
    """Return whether the role header begins a thought: every turn writes the end of one, and none its beginning."""
    end, header = result.markers.reasoning_end.strip(), result.header.strip()
    if result.reasoning_mode is not ReasoningMode.DELIMITER or not end or _WORDY.match(header):
        return False
    prompts = [prompt.text.strip() for prompt in result.prompts.values()]
    return all(text == header for text in prompts) and all(
        any(end in text for text in shape.texts) for shape in result.shapes.values()
    )


def turn_ends(result: DiffAnalysisResult, tokens: Tokens) -> list[str]:
    """Return the tokens that end a turn: those of the tokenizer, and those with which the template ends one."""
    texts = [tokens.eos_token, *tokens.ends]
    for end in (result.turn_end, result.turn_end_after_calls):
        found = markers_of(end)
        texts += [*found[:1], *(marker for marker in found[1:] if found[0].count("<") > 1 and marker[0] == "<")]
    known = dict.fromkeys(text.strip() for text in texts)
    return [text for text in known if 0 < len(text) <= MAX_TEMPLATE_MARKER and not _WORDY.match(text)]


def turn_blanks(result: DiffAnalysisResult) -> tuple[str, str]:
    """Return the blanks with which the text of a turn begins, and those before the token that ends it."""
    return result.turn_start, result.turn_end[: len(result.turn_end) - len(result.turn_end.lstrip())]


class TextSkeleton:
    """Adds the text states to a format; `finish` joins them with the calls that were added in between."""

    def __init__(self, builder: FormatBuilder, result: DiffAnalysisResult, tokens: Tokens) -> None:
        self.builder, self.result, self.markers = builder, result, result.markers.stripped()
        self.think = ""  # the terminals that begin a thought, all that do, and those that end one
        self.openers: list[str] = []
        self.think_ends: list[str] = []
        self.nothing: list[str] = []  # those that mean nothing at the beginning of a turn
        self.answer: list[str] = []  # those around content, if there are any
        self.fragment = False  # reasoning is the fragment that shipped formats have
        self.breaks: dict[str, None] = {}  # those that mean nothing between two parts of a turn
        self._reasoning()
        if result.content_mode is not ContentMode.PLAIN and self.markers.content_start:
            self._content()
        for key, blanks in zip(("turn_start", "turn_end"), turn_blanks(result), strict=True):
            if blanks:
                builder.about[key] = blanks
        self._breaks(turn_ends(result, tokens))
        # The tokens that end a turn, if the output still has them: dropped wherever text may be.
        ends = [text for text in turn_ends(result, tokens) if not builder.has(text) and not self._lists_nothing(text)]
        self.ends = builder.literals("TURN_END", ends)
        if self.ends:
            builder.about["stop"] = self.ends

    def _reasoning(self) -> None:
        result, start, end = self.result, self.markers.reasoning_start, self.markers.reasoning_end
        if thinks_first(result):
            start = result.header.strip()
        if result.reasoning_mode is ReasoningMode.NONE or not end:
            return
        builder = self.builder
        closing = builder.literal("THINK_END", end)
        self.think_ends = [closing]
        if start in ("", self.markers.content_start):
            return
        self.think = builder.literal("THINK", start)
        self.openers = [self.think]
        builder.blanks()
        builder.begin(BEGIN)
        builder.closed(BEGIN)
        plain = result.content_mode is ContentMode.PLAIN and not thinks_first(result)
        self.fragment = plain and closing != self.think and not (_WORDY.match(start) or _WORDY.match(end))
        if self.fragment:
            builder.use("reasoning", {"OPEN": self.think, "CLOSE": closing, START: BEGIN})
            builder.to(closing, "content", START, "unopened_reasoning")  # not within what surrounds calls
        else:
            builder.state("REASONING", "reasoning")
            builder.to(closing, "REASONING", BEGIN)
        lead = [builder.literal("NO_THOUGHT", self.markers.content_lead)] if self.markers.content_lead else []
        self.nothing = [*([closing] if end not in (start, self.markers.content_start) else []), *lead]
        for name in self.nothing:  # what only closes means nothing there once more
            builder.to(name, BEGIN, "=")

    def _content(self) -> None:
        self.answer = [self.builder.literal("CONTENT_START", self.markers.content_start)]
        self.builder.state("ANSWER", "content")
        if self.markers.content_end and not self._lists_nothing(self.markers.content_end):
            self.answer.append(self.builder.literal("CONTENT_END", self.markers.content_end))
            self.builder.to(self.answer[1], "ANSWER", START)

    def _lists_nothing(self, marker: str) -> bool:
        """Return whether a marker after content is a list of calls that has none: it is read as that."""
        start, end = self.markers.tool_section_start, self.markers.tool_section_end
        return start.endswith("[") and "".join(marker.split()) == "".join((start + end).split())

    def _breaks(self, ends: Sequence[str]) -> None:
        """Add what a template writes between two parts of a turn and no marker accounts for: dropped in text."""
        markers, calls, header = self.markers, self.result.calls, self.result.header.strip()
        separator = calls.separator.strip() if calls is not None else ""
        if (header and separator.endswith(header)) or any(end in separator for end in ends):
            self._break(separator, Part.CALLS)  # each call is a message of its own
        starts = {Part.CONTENT: markers.content_start, Part.REASONING: markers.reasoning_start}
        of_calls = [marker for name, marker in markers.items() if not name.startswith(("reasoning", "content"))]
        for shape in self.result.shapes.values():
            wrapped = False
            for part, following, between in zip((None, *shape.parts), shape.parts, shape.texts, strict=False):
                rest = between.strip()
                known = list(of_calls) if Part.CALLS in shape.dropped else []  # else they are in the place of the calls
                known += [markers.reasoning_end] if part in (Part.REASONING, None) else []
                known += [markers.content_lead] if part is None else []
                known += [markers.reasoning_start] if part is None or following is Part.REASONING else []
                opened = bool(markers.content_start) and markers.content_start in rest
                inside, wrapped = opened or wrapped, opened and following is Part.CONTENT
                known += [markers.content_start, markers.content_end] if inside else []
                for marker in sorted(filter(None, known), key=len, reverse=True):
                    rest = rest.replace(marker, "")
                ended = markers.content_end if part is Part.CONTENT and inside else ""
                text = between.strip().removesuffix(starts.get(following, "")).removeprefix(ended).strip()
                if rest.strip() and not _WORDY.match(text):
                    self._break(text, part)

    def _break(self, text: str, part: Part | None) -> None:
        """Add one: after a thought and its end it means that end, and nothing in other text."""
        builder = self.builder
        header = self.result.header.strip() if part is not Part.REASONING and thinks_first(self.result) else ""
        shared = next((size for size in range(len(header), 0, -1) if text.endswith(header[:size])), 0)
        if shared:  # with it, the header begins a thought
            self.openers.append(builder.literal("THINK", text + header[shared:]))
            builder.to(self.openers[-1], START if self.answer else "content", "REASONING")
        if header and shared == len(header):
            return
        if part is not Part.REASONING or not self.think:
            name = builder.literal("TURN_BREAK", text)
            self.breaks |= {name: None}
            builder.to(name, TEXTS if name not in self.think_ends else ("content", "malformed"), START)
        elif not builder.has(text):
            self.think_ends.append(builder.literal("THINK_BREAK", text))
            builder.to(self.think_ends[-1], "REASONING", BEGIN)

    def finish(self, leaving: Sequence[str], calls: bool) -> Mapping[str, Any]:
        """Join text and calls, and return the whole machine. `leaving` are the states after a call, which text leaves;
        `calls`: there is a rule."""
        builder = self.builder
        spoken: Sequence[str] = ["content"]
        if self.answer:  # a thought begins in content, and not in an answer
            spoken = [START, *([BEGIN] if self.think else []), *leaving]
            builder.to(self.answer[0], spoken, "ANSWER")
        for name in self.openers if not self.fragment else ():
            builder.to(name, spoken, "REASONING")
        if self.think_ends and not self.think:
            builder.to(self.think_ends[0], spoken, START)
        machine = builder.composed()
        builder.rules[:0] = self._rules(machine, calls)
        return machine

    def _rule_of(self, part: Part, state: str, rule: str) -> str:
        """Return the rule of the text in a state: one that is named after its tag if the template escapes the text."""
        if (kind := self.result.escaped.get(part)) is None:
            return rule
        self.builder.tag(state, part.value, kind)
        return f"{kind}_{rule.lower()}"

    def _rules(self, machine: Mapping[str, Any], calls: bool) -> list[str]:
        unclosed = [REPAIR_CALLS] if any(rule.startswith(REPAIR_CALLS) for rule in self.builder.rules) else []
        others = [*self.breaks, *self.ends, *(["calls", *unclosed] if calls else [])]
        said = self._rule_of(Part.CONTENT, "ANSWER" if self.answer else START, "text")
        loop, last, rules, again = ["text" if self.answer else said], [], [], ""
        if self.think_ends and not self.think:
            loop.append(self.think_ends[0])
        if self.think:
            closing, begun = self.think_ends[0], one_of(self.openers)
            one = self._rule_of(Part.REASONING, "REASONING", "THOUGHT")
            thought = f"({one} | {self.think})" if self.fragment else one
            dropped = {row["trigger"] for row in machine["transitions"] if START in sources_of(row)}
            if names := [name for name in self.nothing if name not in dropped]:
                again = "_closed_again*"  # elsewhere it is dropped wherever text may be
                rules = ["_closed_again: _close | _close_blank", f"_close.3: {one_of(names)}", "_close_blank.-9: WS"]
            loop += ["reasoning", closing] if self.fragment else ["reasoning"]
            last.append("_open_reasoning")
            rules += [
                f"reasoning: {begun} {thought}* {one_of([f'{one_of(self.think_ends)} {again}', *others])}",
                f"_open_reasoning: {begun} {thought}*",
                *([f"{one}: THOUGHT"] if one != "THOUGHT" else []),
            ]
        if self.answer:
            loop.append("answer")
            last.append("_open_answer")
            rules += [
                f"answer: {self.answer[0]} {said}* {one_of([*self.answer[1:], *others])}",
                f"_open_answer: {self.answer[0]} {said}*",
            ]
        end = f" {one_of(last)}?" if last else ""
        texts = [f"{name}.-5: TEXT" for name in dict.fromkeys([loop[0], said])]
        return [f"start: {again} {one_of([*loop, *others])}*{end}", *rules, *texts]
