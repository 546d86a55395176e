"""A format as one tokenizer writes it, and one output of it as it is read: what a server needs beyond the format.

Strategy: a server has a tokenizer, token ids and text; a format has texts and states. `Served` translates between them
once per tokenizer: which format, which of its markers are single tokens, where a prompt leaves the model. `Session` is
one output: one toolgram parser, shared by all of a server's objects that read it.

Nothing here raises for an incomplete tokenizer or for any output. Without a format, `Served.fmt` is None, `why` is the
reason, and text passes through.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from toolgram.events import Content, Dropped, Event, Malformed, ToolCallEnd
from toolgram.formats import Format, get_format
from toolgram.integrations import observing as observe
from toolgram.integrations.answers import AnswerBuilder
from toolgram.integrations.observing import logger
from toolgram.integrations.pieces import TokenText
from toolgram.integrations.reasoning_markers import (
    around_a_thought,
    crossing,
    only_about_reasoning,
    opens_and_closes,
)
from toolgram.limits import LONGEST_PREFIX, MOST_PREFIXES, MOST_PROMPT_TOKENS
from toolgram.program.state import StateProgram
from toolgram.runtime.parser import Parser
from toolgram.runtime.special_tokens import with_ids
from toolgram.spec.data import TEXT

AUTO = "auto"  # the format is chosen from the tokenizer
MISTRAL_V11 = 11  # the first version of Mistral's tokenizers that writes [ARGS]
TEMPLATE_VARIABLE = "TOOLGRAM_CHAT_TEMPLATE"  # a file, for a server with a template that the tokenizer does not have
BLOCK = 32  # tokens that are decoded at once to be counted
_MOST_TOKENS = 4  # of one character


class Served:
    """A format as one tokenizer writes it. Made once per tokenizer by `served`, shared by all requests."""

    def __init__(self, tokenizer: Any, name: str = AUTO) -> None:
        self.tokenizer = tokenizer
        self.name = name
        self.is_mistral = _mistral_version(tokenizer) is not None
        self.fmt, self.why = format_of(tokenizer, name)
        self.tokens = _added_tokens(tokenizer)
        self.special_texts = frozenset(map(str, _said(tokenizer, "all_special_tokens")))
        self.eos_ids = frozenset(_numbers(getattr(tokenizer, "eos_token_id", None)))  # ids that end an output
        self._model: Any = None  # the server's configuration of the model
        self.analysis = getattr(self.fmt and self.fmt.report, "analysis", None)  # of a derived format
        self._prompts = _generation_prompts(self.analysis)
        self._after: dict[str, str] = {}  # prefix -> reasoning after it; a template writes only a few prefixes
        self._read_program()

    def _read_program(self) -> None:
        """Read the markers of reasoning and of turns from the format's machine, as texts and as ids."""
        program = self.fmt.program if self.fmt else None
        states = list(program.states.values()) if program else []
        literals = program.literals if program else {}
        known = {*self.special_texts, *(program.special.values() if program else ())}
        tokens = {text: number for text, number in self.tokens.items() if text in known}
        self.by_id = with_ids(program, tokens)[1].by_id if program else {}  # those that are part of a marker
        self.special_tokens = {text: number for number, text in self.by_id.items()}
        initial = program.initial if program else None
        self._read_reasoning(states, literals, initial)
        self._boundaries = self._turn_boundaries(states, literals, initial)

    def _read_reasoning(
        self, states: list[StateProgram], literals: Mapping[str, str], initial: StateProgram | None
    ) -> None:
        self.reasoning_states = frozenset(state.name for state in states if state.meaning == "reasoning")
        starts_of = crossing(states, inwards=True) & literals.keys()
        ends_of = crossing(states, inwards=False) & literals.keys()
        starts, ends = {literals[trigger] for trigger in starts_of}, {literals[trigger] for trigger in ends_of}
        # A marker of reasoning and of nothing else, such as <think>, but not harmony's <|message|>.
        only = {literals[trigger] for trigger in literals if only_about_reasoning(trigger, states, initial)}
        self.start_texts, self.end_texts = frozenset(starts & only), frozenset(ends & only)
        self.marks = self.start_texts | self.end_texts
        # One marker on both sides of a thought. It ends reasoning only if it is known which of the two it is.
        self.both_ways = frozenset(literals[each] for each in starts_of & ends_of if opens_and_closes(each, states))
        self.start_ids, self.end_ids = self._ids_of(starts), self._ids_of(ends)
        self.mark_ids = self._ids_of(self.marks)
        self.ends = tuple(sorted(ends))
        self.closing_ids = self._ids_of(self.end_texts)
        self.spelled_closing = tuple(sorted(text for text in self.end_texts if text not in self.tokens))
        self.counts_by_id = bool(self.marks) and all(text in self.tokens for text in self.marks)

    def see_model(self, model_config: Any) -> None:
        """Add the end ids of the server's generation config, when the first request comes."""
        if self._model is model_config or model_config is None:
            return
        self._model = model_config
        try:
            found = model_config.try_get_generation_config()
        except Exception as error:  # the server reads it as well, and reports what is wrong with it
            logger.debug("toolgram: no generation config: %r", error)
        else:
            self.eos_ids |= frozenset(_numbers(found.get("eos_token_id")))

    def _ids_of(self, texts: Iterable[str]) -> frozenset[int]:
        return frozenset(self.tokens[text] for text in texts if text in self.tokens)

    def _turn_boundaries(
        self, states: list[StateProgram], literals: Mapping[str, str], initial: StateProgram | None
    ) -> frozenset[int]:
        """Return the special tokens that end a turn or a message; a prompt's prefix begins after the last of them. The
        format does not know them, or they take it back to its beginning. Markers of reasoning, calls and headers do
        neither."""
        beginnings = [initial, initial.row[TEXT].dest if initial and TEXT in initial.row else initial]
        begun_by = {trigger for state in states for trigger, move in state.row.items() if move.dest in beginnings}
        inner = {text for trigger, text in literals.items() if trigger not in begun_by}
        # Nor do tokens that are part of such a marker, as `<|open|>` of `<|open|>think<|sep|>`.
        within = self.marks | self.both_ways | inner
        return frozenset(number for text, number in self.tokens.items() if not any(text in marker for marker in within))

    @property
    def reasons(self) -> bool:
        """True if the format has reasoning."""
        return bool(self.reasoning_states)

    @property
    def has_end_marker(self) -> bool:
        """True if a marker ends reasoning and does nothing else, so that one token shows the end."""
        return bool(self.end_texts)

    @property
    def needs_special_text(self) -> bool:
        """True if the server must leave special tokens in the text for the format to be read. Mistral's tokenizers
        always leave those that matter, and spoil characters if they have to leave all of them."""
        if self.fmt is None or self.is_mistral:
            return False
        return not self.special_texts.isdisjoint(self.fmt.program.special.values())

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of ids, special tokens included; "" if the tokenizer fails."""
        try:
            return str(self.tokenizer.decode(list(token_ids), skip_special_tokens=False))
        except Exception:  # a tokenizer may raise anything, and the answer must not depend on it
            return ""

    def prefix(self, prompt: Sequence[int]) -> str | None:
        """Return what the prompt has already written for the model: the text after its last turn marker; None if
        nothing is known of it.

        A derived format knows the generation prompts of its template. Other prompts (an answer to be continued) are cut
        at the last special token that is not a marker of reasoning.
        """
        if self.fmt is None:
            return None
        begin, end = len(prompt), len(prompt)
        floor = max(0, end - MOST_PROMPT_TOKENS)
        while begin > floor and prompt[begin - 1] not in self._boundaries:
            begin -= 1
        if self._prompts:
            text = self.decode(prompt[max(floor, begin - BLOCK) :])
            for whole, opened in self._prompts:
                if text.endswith(whole):
                    return opened
        if begin == floor:
            return None  # no turn marker in sight
        return self.decode(prompt[begin:]) or (None if begin < end else "")

    def default_prefix(self) -> str:
        """Return the template's own generation prompt, for a server that does not show the prompt."""
        return self.fmt.generation_prompt if self.fmt else ""

    def reasoning_after_text(self, prefix: str | None) -> str:
        """Return "open" if a prefix leaves the model in reasoning, "closed" if no reasoning will follow, else ""."""
        if self.fmt is None or not self.reasons:
            return "closed"
        if not prefix:
            return ""
        known = self._after.get(prefix)
        if known is not None:
            return known
        state = self._state_after(prefix)
        in_answer = state.meaning == "content" and all(each.dest.meaning != "reasoning" for each in state.row.values())
        closed = in_answer or self.has_thought(prefix)
        found = "open" if state.meaning == "reasoning" else "closed" if closed else ""
        if len(self._after) < MOST_PREFIXES and len(prefix) <= LONGEST_PREFIX:
            self._after[prefix] = found
        return found

    @cached_property
    def around_a_thought(self) -> tuple[str, str]:
        """The opening and the closing text of a thought, for a server that counts its tokens; "" if unknown."""
        return around_a_thought(self.fmt, self.start_texts, self.end_texts) if self.fmt else ("", "")

    def has_thought(self, prefix: str) -> bool:
        """Return whether a prefix contains the end of a thought."""
        return any(text in prefix for text in self.end_texts | self.both_ways)

    def after_thought(self, prefix: str) -> str:
        """Return a prefix with a thought added and ended; "" if different kinds of thoughts end differently."""
        starts = [""] if self.reasoning_after_text(prefix) == "open" else sorted(self.start_texts)
        ended: dict[str, str] = {}  # by state
        for begun in (prefix + start for start in starts):
            for text in (begun + ending for ending in sorted(self.end_texts)):
                if self.reasoning_after_text(begun) == "open" and self.reasoning_after_text(text) == "closed":
                    ended.setdefault(self._state_after(text).name, text)
        return next(iter(ended.values())) if len(ended) == 1 else ""

    def _state_after(self, prefix: str) -> StateProgram:
        assert self.fmt is not None
        return self.fmt.program.states[self.fmt.parser(prefix=prefix, keep_message=False).state]

    def ends_reasoning(self, token_ids: Sequence[int], delta_ids: Iterable[int]) -> bool:
        """Return whether the last tokens end reasoning, from ids alone and in constant time.

        After that, a grammar constrains the output. It includes the opening marker of a call, so a call that begins
        inside a thought does not count: its marker has passed. Nor does a marker that ends every kind of message
        (channels), because another header must follow: calls are read there and not enforced. Nor does a marker on both
        sides of a thought: which side it is depends on all the text before.
        """
        if self.fmt is None or not self.reasons:
            return True
        delta = list(delta_ids)
        if not self.closing_ids.isdisjoint(delta):
            return True
        spelled = self.spelled_closing
        if not spelled or not delta:
            return False
        before = max(map(len, spelled))
        text = self.decode(token_ids[-(len(delta) + before) :])
        fresh = len(self.decode(delta))
        return any(text.rfind(mark) + len(mark) > len(text) - fresh for mark in spelled if mark in text)


_NOTABLE = frozenset({ToolCallEnd, Malformed})


class Session:
    """One output, read by one toolgram parser. Cheap to make: the parser is made with the first text."""

    __slots__ = (
        "_parser", "_recent", "_statuses", "_tokens", "builder", "calls", "counts", "cut",
        "eos_ids", "failed", "last", "prefix", "queue", "served", "stops", "tools",
    )  # fmt: skip

    def __init__(self, served: Served, tools: Callable[[], Sequence[Any]] = tuple, calls: bool = True) -> None:
        self.served = served
        self.tools = tools
        self.counts = True  # this session counts its answer
        self.calls = calls  # False: the request has no tools, and a call is text
        self.builder: AnswerBuilder | None = None  # folds a whole answer into a message
        self.prefix: str | None = None  # unknown
        self.queue: list[Event] | None = None  # read by one of a server's parsers for the other
        self.last = -1  # the id of the last token
        self.eos_ids = served.eos_ids  # an output that ends with one of these ended by itself
        self.stops: Sequence[str] = ()  # the stop strings of the request
        self.cut = False  # the server says that the output did not end by itself
        self._recent: list[int] = []  # ids in which a stop string may be, if there are any
        self.failed = False
        self._parser: Parser | None = None
        self._tokens = TokenText(served.by_id, served.decode)
        self._statuses: set[str] = set()  # of the calls that have ended

    def see_request(self, request: Any) -> None:
        """Read how the output of a request may end: at its own ids or stop strings, or at no end id at all."""
        own = frozenset() if getattr(request, "ignore_eos", False) else self.served.eos_ids
        self.eos_ids = own.union(getattr(request, "stop_token_ids", None) or ())
        asked = getattr(request, "stop", None) or ()
        self.stops = (asked,) if isinstance(asked, str) else tuple(asked)
        self._tokens.at_once = not self.stops

    def whole(
        self, text: str, token_ids: Sequence[int] | None, new_builder: Callable[[], AnswerBuilder]
    ) -> tuple[list[Event], AnswerBuilder]:
        """Return the events of a whole answer and the builder that folded them into a message. A session of its own,
        with the same tools and prompt, reads it. If reading fails, the whole text is content."""
        other = Session(self.served, self.tools, self.calls)
        other.prefix, other.cut = self.prefix, self.cut
        other.eos_ids, other.stops = self.eos_ids, self.stops
        other.builder = builder = new_builder()
        events = other.feed(text, token_ids)
        events += other.close()
        if other._parser is None:
            events, builder = [Content(text, text)], new_builder()
            builder.add(events)
        return events, builder

    def feed(self, text: str, token_ids: Sequence[int] | None) -> list[Event]:
        """Return the events of a delta. If anything fails, which nothing should, text passes through from there on."""
        parser = self._parser
        try:
            if parser is None:
                parser = self._open()
                if parser is None:
                    return [Content(text, text)] if text else []
            pieces = None
            if token_ids:
                self.last = token_ids[-1]
                if self.stops:
                    self._keep(token_ids)
            if token_ids is None:
                self._tokens.forget()
            elif self.served.by_id:
                pieces = self._tokens.cut(text, token_ids)
            events = parser.feed(text, token_ids) if pieces is None else parser.feed(pieces)
        except Exception as error:
            return self._fail(error, text)
        if len(events) > 1 or (events and type(events[0]) in _NOTABLE):
            self._note(events)
        return events

    def _note(self, events: list[Event]) -> None:
        for event in events:
            if type(event) is ToolCallEnd:
                self._statuses.add(event.status)
            elif type(event) is Malformed:
                self._statuses.add("malformed")

    def _count(self) -> None:
        """Count this answer, which is over."""
        outcome = next((each for each in ("malformed", "truncated") if each in self._statuses), "complete")
        if self.failed or self.served.fmt is None:
            outcome = "passed_through"
        elif outcome == "complete" and self._parser is not None and self._parser.take_anomalies():
            outcome = "repaired"
        observe.count(outcome)

    def _keep(self, token_ids: Sequence[int]) -> None:
        """Keep the ids of this delta, and as many before them as a stop string may have."""
        before = _MOST_TOKENS * max(map(len, self.stops))
        self._recent = [*self._recent[-before:], *token_ids]

    def _stopped_by(self) -> str:
        """Return the stop string that ended the output, or "". Servers look in every step, so one is enough."""
        if not self._recent:
            return ""
        ids = self._recent[:-1] if self.last in self.eos_ids else self._recent
        text = self.served.decode(ids)
        return next((each for each in self.stops if each and each in text), "")

    def close(self) -> list[Event]:
        """Return the events of the end.

        An output ended by itself if its last token is an end id and no stop string cut it off before. A stop string
        that the server removed from the text is read if it closes what is open, because the model wrote it.
        """
        stopped_by = self._stopped_by()
        reason = "stop" if self.last in self.eos_ids and not stopped_by and not self.cut else None
        events: list[Event] = []
        try:
            if self._parser is not None:
                if stopped_by:
                    events += self._closed_by(self._parser, stopped_by)
                events += self._parser.close(reason)
        except Exception as error:
            events += self._fail(error, "")
        self._note(events)
        if self.counts:
            self._count()
        return events

    def _closed_by(self, parser: Parser, marker: str) -> list[Event]:
        """Return the events of a stop string that is a marker and closes the open call; else no events."""
        fmt = self.served.fmt
        if fmt is None or marker.strip() not in fmt.program.closing:
            return []
        pieces = self._tokens.cut(marker, ()) if self.served.by_id else None
        tried = fmt.restore(parser.snapshot(), self.tools(), None, self.served.special_tokens)
        events = [*(tried.feed(marker, ()) if pieces is None else tried.feed(pieces)), *tried.close(None)]
        last = next((event for event in reversed(events) if event.source), None)
        cut_off = any(type(event) is ToolCallEnd and event.status != "complete" for event in events)
        if cut_off or type(last) is not Dropped or not last.source.endswith(marker):
            return []
        return parser.feed(marker, ()) if pieces is None else parser.feed(pieces)

    def _open(self) -> Parser | None:
        served = self.served
        if served.fmt is None or self.failed:
            return None
        fmt = served.fmt if self.calls else served.fmt.text_only
        self._parser = fmt.parser(self.tools(), self.prefix, None, served.special_tokens, keep_message=False)
        if self.builder is not None:
            self._parser.fold_with(self.builder)
        return self._parser

    def _fail(self, error: Exception, text: str) -> list[Event]:
        if not self.failed:
            logger.error("toolgram: %s failed, text passes through: %r", self.served.fmt, error, exc_info=error)
        self.failed, self._parser = True, None
        return [Content(text, text)] if text else []


_kept: dict[tuple[int, str], Served] = {}  # by the id of the tokenizer, which lives as long


def served(tokenizer: Any, name: str = AUTO) -> Served:
    """Return the named format as this tokenizer writes it; with `auto`, the tokenizer decides which format it is."""
    key = (id(tokenizer), name)
    found = _kept.get(key)
    if found is None:
        found = _kept[key] = Served(tokenizer, name)
    return found


def format_of(tokenizer: Any, name: str) -> tuple[Format | None, str]:
    """Return the format and a warning, or "". Never raises: a mistake here must not stop the server."""
    try:
        if name != AUTO:
            return get_format(name).with_suffix_of(_added_tokens(tokenizer)), ""
        version = _mistral_version(tokenizer)
        if version is not None:
            return get_format("mistral_v11" if version >= MISTRAL_V11 else "mistral_v3"), ""
        return _derived(tokenizer)
    except Exception as error:
        return None, f"no format for {_named(tokenizer)}, text passes through: {error}"


def _derived(tokenizer: Any) -> tuple[Format | None, str]:
    template = chat_template_of(tokenizer)
    if template is None:
        return None, (
            f"{_named(tokenizer)} has no chat template to derive a format from, text passes through; "
            "name a format instead, such as --tool-call-parser toolgram_hermes"
        )
    from toolgram.derive.deriving import derive_format

    bos, eos = (str(getattr(tokenizer, key, None) or "") for key in ("bos_token", "eos_token"))
    fmt = derive_format(template, bos_token=bos, eos_token=eos)
    if not any("start_call" in transition.actions for transition in fmt.spec.transitions):
        why = "; ".join(fmt.report.warnings if fmt.report else ()) or "no call was found in it"
        return fmt, f"the chat template of {_named(tokenizer)} shows no tool calls, so they pass as text: {why}"
    return fmt, ""


def chat_template_of(tokenizer: Any) -> str | None:
    """Return a tokenizer's chat template, the one for tools if it has several. The file of the environment variable
    TOOLGRAM_CHAT_TEMPLATE takes precedence. Raise OSError if that file cannot be read."""
    path = os.environ.get(TEMPLATE_VARIABLE)
    if path:
        return Path(path).read_text(encoding="utf-8")
    template = getattr(tokenizer, "chat_template", None)
    if isinstance(template, (list, tuple)):  # as in tokenizer_config.json
        template = {item["name"]: item["template"] for item in template if isinstance(item, Mapping)}
    if isinstance(template, Mapping):
        named = [template.get(key) for key in ("tool_use", "default")] + list(template.values())
        template = next((text for text in named if isinstance(text, str)), None)
    return template if isinstance(template, str) and template.strip() else None


def _mistral_version(tokenizer: Any) -> int | None:
    """Return the version of a Mistral tokenizer; None for any other."""
    if not any("MistralTokenizer" in kind.__name__ for kind in type(tokenizer).__mro__):
        return None
    version = getattr(tokenizer, "version", None)
    return version if isinstance(version, int) else None


def _added_tokens(tokenizer: Any) -> dict[str, int]:
    """Return the tokens that may be whole markers: added to the vocabulary, or special."""
    found: dict[str, int] = {}
    try:
        found.update(tokenizer.get_added_vocab())
    except Exception:
        logger.debug("toolgram: %s has no added vocabulary", _named(tokenizer))
    texts, numbers = _said(tokenizer, "all_special_tokens"), _said(tokenizer, "all_special_ids")
    if len(texts) == len(numbers):
        found.update(zip(map(str, texts), numbers, strict=True))
    return {text: number for text, number in found.items() if text}


def _said(tokenizer: Any, name: str) -> list[Any]:
    try:
        return list(getattr(tokenizer, name, ()))
    except Exception:
        return []


def _numbers(ids: Any) -> list[int]:
    return [each for each in (ids if isinstance(ids, (list, tuple)) else [ids]) if isinstance(each, int)]


def _named(tokenizer: Any) -> str:
    return f"the tokenizer {getattr(tokenizer, 'name_or_path', '') or type(tokenizer).__name__}"


def _generation_prompts(analysis: Any) -> list[tuple[str, str]]:
    """Return the generation prompts of a derived format's template and what each opens, longest first."""
    prompts = analysis.prompts.values() if analysis is not None else ()
    return sorted({(each.text, each.opened) for each in prompts if each.text.strip()}, key=lambda pair: -len(pair[0]))
