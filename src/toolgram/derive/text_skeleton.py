"""The part of a format that is not calls: content, reasoning, wrappers of either, and the ends of turns.

Strategy: content and reasoning know nothing of each other and nothing of calls.  Each is a state in which text goes on;
a marker leads from one to the other, and what begins a call leads out of all of them, also out of a thought that was
never closed.  Text that follows a call leads back to content.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolgram.derive.comparing import markers_of
from toolgram.derive.drafts import BLANK, FINAL, RECOVERING, START, Draft
from toolgram.derive.result import ContentMode, DiffAnalysisResult, Part, ReasoningMode
from toolgram.spec import END, TEXT, Literal

BEGIN = "WAITING_FOR_CONTENT"
_WORDY = re.compile(r"[\w\s.,:;!?-]*\Z")


class TextSkeleton:
    """Adds the text states to a draft; `finish` joins them with the calls that were added in between."""

    def __init__(self, draft: Draft, result: DiffAnalysisResult, eos_token: str) -> None:
        self.draft = draft
        self.states = [draft.state(START, "content")]
        self.alternatives = ["text"]
        self.last: list[str] = []
        self.closing = ""  # the terminal that ends a thought
        self.leaving: list[str] = []  # states that text leaves
        self.ends: list[str] = []  # terminals that end a turn
        self.rules: list[str] = []
        draft.to(TEXT, START, START)
        self._reasoning(result)
        self._content(result)
        self._ends(result, eos_token)

    def _reasoning(self, result: DiffAnalysisResult) -> None:
        start, end = result.markers.reasoning_start.strip(), result.markers.reasoning_end.strip()
        if not start and result.reasoning_mode is ReasoningMode.FORCED_OPEN:
            opened = [prompt.opened.strip() for prompt in result.prompts.values()]
            start = next((text for text in opened if text and end not in text), "")
        if result.reasoning_mode is ReasoningMode.NONE or not end:
            return
        draft = self.draft
        closing = draft.literal("THINK_END", end)
        if not start:
            draft.to(closing, START, START)
            self.alternatives.append(closing)
            return
        opening = draft.literal("THINK", start)
        state = draft.state("REASONING", "reasoning")
        self.states.append(state)
        draft.to(TEXT, state, state)
        draft.to(opening, START, state)
        self.alternatives.append("reasoning")
        self.last.append("_open_reasoning")
        draft.to(closing, state, self._before_content(closing))
        self.rules += [
            f"reasoning: {opening} THOUGHT* ({closing} _closed_again*%s)",
            f"_open_reasoning: {opening} THOUGHT*",
        ]

    def _before_content(self, closing: str) -> str:
        """The state in which a turn begins, and that follows a thought: one that ends there again means nothing."""
        draft = self.draft
        begin = draft.state(BEGIN, "content")
        draft.to(closing, begin, begin)
        draft.initial = begin
        self.leaving.append(begin)
        self.closing = closing
        self.rules += ["_closed_again: _close | _close_blank", f"_close.3: {closing}"]
        self.rules.append(f"_close_blank.-9: {draft.blanks()}")
        return begin

    def _content(self, result: DiffAnalysisResult) -> None:
        start, end = result.markers.content_start.strip(), result.markers.content_end.strip()
        if result.content_mode is ContentMode.PLAIN or not start:
            return
        draft = self.draft
        opening = draft.literal("CONTENT_START", start)
        state = draft.state("ANSWER", "content")
        self.states.append(state)
        draft.to(TEXT, state, state)
        draft.to(opening, START, state)
        self.alternatives.append("answer")
        self.last.append("_open_answer")
        ending = ""
        if end:
            closing = draft.literal("CONTENT_END", end)
            draft.to(closing, state, START)
            ending = closing
        self.rules += [f"answer: {opening} text* ({ending}%s)", f"_open_answer: {opening} text*"]

    def _ends(self, result: DiffAnalysisResult, eos_token: str) -> None:
        """The tokens that end a turn, where the output still has them: dropped wherever text may stand."""
        texts = [eos_token]
        for end in (result.turn_end, result.turn_end_after_calls):
            found = markers_of(end)
            texts += found[:1]
            blanks = end[: len(end) - len(end.lstrip())]
            if blanks and found and end is result.turn_end:
                self.draft.about["turn_end"] = blanks
        self._breaks(result)
        taken = {shape.text for shape in self.draft.terminals.values() if isinstance(shape, Literal)}
        for text in dict.fromkeys(text.strip() for text in texts):
            if text and not _WORDY.match(text) and text not in taken:
                self._end(text)

    def _breaks(self, result: DiffAnalysisResult) -> None:
        """What a template writes between two parts of one turn and no marker accounts for: dropped in text."""
        markers = result.markers
        known = [marker.strip() for name, marker in markers.items() if not name.startswith("reasoning")]
        for shape in result.shapes.values():
            for part, between in zip(shape.parts, shape.texts[1:-1], strict=False):
                rest = between.strip()
                after = [markers.reasoning_end.strip()] if part is Part.REASONING else []
                for marker in sorted([*known, *after], key=len, reverse=True):
                    rest = rest.replace(marker, "") if marker else rest
                if rest.strip() and not _WORDY.match(between.strip()):
                    self._break(between.strip(), part)

    def _break(self, text: str, part: Part) -> None:
        """What stands behind a thought and its end means that end, and nothing in other text."""
        draft = self.draft
        if part is not Part.REASONING or "REASONING" not in draft.states:
            self._end(text)
        elif not draft.has(text):
            name = draft.literal("THINK_BREAK", text)
            draft.to(name, "REASONING", BEGIN)
            self.rules = [
                rule.replace(f"({self.closing} _closed_again*", f"(({self.closing} | {name}) _closed_again*")
                for rule in self.rules
            ]

    def _end(self, text: str) -> None:
        name = self.draft.literal("TURN_END", text)
        if name not in self.ends:
            self.ends.append(name)
            self.draft.to(name, self.states, START)

    def finish(self, leaving: Sequence[str], calls: bool) -> None:
        """Join text and calls. `leaving` are the states behind a call, which text leaves; `calls`: there is a rule."""
        draft = self.draft
        for state in (*self.leaving, *leaving):
            for (source, trigger), (dest, actions) in list(draft.rows.items()):
                if source == START and trigger != TEXT:
                    draft.to(trigger, state, dest, *actions)
            draft.to(TEXT, state, START)
            draft.to(END, state, FINAL)
        for state, inside in draft.open_ended.items():
            for (source, trigger), (dest, actions) in list(draft.rows.items()):
                if source == state and trigger not in inside and trigger != BLANK:
                    draft.rows[source, trigger] = (dest, ("close_arguments", "end_call", *actions))
        for name, tags in draft.states.items():
            if "held" in tags:
                continue
            draft.to(END, name, FINAL)
            if not {"content", "reasoning", "malformed"} & set(tags):
                draft.to("malformed", name, RECOVERING, "fail_call")
        if RECOVERING in draft.states:
            for name in self.ends:
                draft.to(name, RECOVERING, START)
        others = " | calls" if calls else ""
        others += "".join(f" | {name}" for name in self.ends)
        alternatives = [*self.alternatives, *self.ends, *(["calls"] if calls else [])]
        loop = " | ".join(alternatives)
        last = f" ({' | '.join(self.last)})?" if self.last else ""
        rules = [rule % others if "%s" in rule else rule for rule in self.rules]
        again = "_closed_again* " if BEGIN in draft.states else ""
        if (START, self.closing) in draft.rows:  # it is dropped wherever text may stand
            again = ""
            rules = [rule.replace(" _closed_again*", "") for rule in rules if not rule.startswith("_close")]
        rules = [rule.replace("( | ", "(") for rule in rules]
        draft.rules[:0] = [f"start: {again}({loop})*{last}", *rules, "text.-5: TEXT"]
        self._text_terminals()

    def _text_terminals(self) -> None:
        draft = self.draft
        draft.texts["TEXT"] = draft.anything_but([state for state in self.states if state != "REASONING"])
        if "REASONING" in draft.states:
            draft.texts["THOUGHT"] = draft.anything_but(["REASONING"])
