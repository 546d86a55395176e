"""The pair of parsers that vLLM drives: a reasoning parser and a tool parser, over one toolgram stream.

How vLLM drives a pair (its `DelegatingParser`): per request it makes the reasoning parser, then the tool parser. A
stream goes to the reasoning parser until that reports the end of reasoning, and then to the tool parser; a whole answer
goes to one, and the rest to the other.

Strategy: the two share one `Session`, so every character is read once, by a parser that knows the prompt (which only
the reasoning parser gets) and the tools (which only the tool parser gets). The reasoning parser reads until something
other than reasoning comes, and leaves those events in the session for the tool parser. A whole answer is read the same
way, in one piece.

`Driver`, a subclass of the class that drives a pair, introduces the two: Python calls `__set_name__` when vLLM sets the
two attributes of the class that it composes, and that class then inherits from `Driver` (`vllm_patches.drive`). The
driver also keeps what vLLM knows and does not pass on. Without it, each parser works alone, from the text that the
other leaves.

Without tools, or with tool_choice "none", calls are text: the session reads the format without its calls. If the two
share no session, the text after reasoning gets a session of its own. Without a reasoning parser such an answer passes
unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from toolgram.events import Content, Event, Malformed, Reasoning, ToolCallDelta, ToolCallStart
from toolgram.integrations.answers import AnswerBuilder, PlainThought
from toolgram.integrations.observing import logger, warn_once
from toolgram.integrations.reasoning_tokens import TokenCounter
from toolgram.integrations.served import (
    AUTO,
    TEMPLATE_VARIABLE,
    Served,
    Session,
    chat_template_of,
    served,
)
from toolgram.integrations.start_line import log_start
from toolgram.integrations.vllm_answer_form import answer_tag, put_tag, take_form
from toolgram.integrations.vllm_deltas import Outgoing, builder_for, delta_of, warn_of_unknown_setting
from toolgram.integrations.vllm_patches import (
    LATER,
    SERVER_TEMPLATE,
    apply_patches,
    drive,
    quick_arguments,
    quick_content,
    quick_reasoning,
)
from toolgram.integrations.vllm_surface import (
    DelegatingParser,
    DeltaMessage,
    Ended,
    ExtractedToolCallInformation,
    FunctionCall,
    ReasoningParser,
    ToolCall,
    ToolParser,
    as_constraint,
)
from toolgram.integrations.vllm_tags import is_forced, mode_of, structural_tag, where_the_grammar_begins
from toolgram.message import ToolCall as ReadCall


class _Attachable(type):
    """The metaclass of both parsers. Python calls `__set_name__` when vLLM stores a parser in its driver class."""

    def unified_parser_cls(cls) -> type[Any]:
        """Return the class that drives the two, for a vLLM that asks (`integrations/upstream`)."""
        return Driver

    def __set_name__(cls, owner: type[Any], name: str) -> None:
        if name in ("tool_parser_cls", "reasoning_parser_cls") and not issubclass(owner, Driver):
            drive(owner, Driver)
            apply_patches()
            warn_of_unknown_setting()


_TELLS_PROMPTS = hasattr(ReasoningParser, "set_prompt_token_ids")  # since 0.33
_ASKS_WHAT_FOLLOWS = hasattr(DelegatingParser, "set_prompt_token_ids")  # since 0.32


class Driver(DelegatingParser):  # type: ignore[misc]
    """vLLM's class that drives a pair, and passes on to the two what it knows."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        introduce(self.reasoning_parser, self.tool_parser)
        pair = (self.reasoning_parser, self.tool_parser)
        self._ours = [each for each in pair if isinstance(each, (ToolgramReasoningParser, ToolgramToolParser))]
        if self.tool_parser is None and isinstance(self.reasoning_parser, ToolgramReasoningParser):
            self.reasoning_parser.sends_text_after = not _ASKS_WHAT_FOLLOWS
        if self.reasoning_parser is None and isinstance(self.tool_parser, ToolgramToolParser):
            self.tool_parser.skip_reasoning_parsing = True  # before 0.33 vLLM does not say so
        for parser in self._ours[:1]:
            parser.served.see_model(kwargs.get("model_config"))
            log_start(parser.served)
            warn_of_the_template(parser.served)
        self._begun = False  # a delta has come
        self._going_on: ToolgramToolParser | None = None  # reads the next delta, if that may go on with the last one

    def adjust_request(self, request: Any) -> Any:
        """Put the form that a request asks for at the place of the answer, in a thread if vLLM waits for it."""
        jobs = LATER.get()
        if jobs is None:
            return self._adjusted(request)
        jobs.append(partial(self._adjusted, request))  # it is changed in place
        return request

    def _adjusted(self, request: Any) -> Any:
        held = self._answer_tag(request)
        if held is None:
            return super().adjust_request(request)
        text = take_form(request)
        request = super().adjust_request(request)
        put_tag(request, held, text)
        return request

    def _answer_tag(self, request: Any) -> Any:
        reasoning, tools = self.reasoning_parser, self.tool_parser
        if not self._ours or not _TELLS_PROMPTS or is_forced(request):
            return None
        if reasoning is not None and tools is not None and getattr(tools, "partner", None) is not reasoning:
            return None  # one of them is not toolgram's, and may read other markers
        parser = self._ours[-1]
        declared = () if tools is None or _passes(request, tools.tools) else tools.tools
        return answer_tag(parser.served, reasoning, parser.session, request, declared)

    def parse_delta(
        self, delta_text: str, delta_token_ids: list[int], request: Any, prompt_token_ids: list[int] | None = None, *,
        finished: bool,
    ) -> Any:  # fmt: skip
        """Return the message of a delta. One that goes on with arguments or content needs nothing that vLLM keeps."""
        tools = self._going_on
        if tools is not None and not finished:
            events = tools.session.feed(delta_text, delta_token_ids)
            message = tools.message_of_one(events)
            if message is not None:
                return message
            tools.session.queue = events
        elif not self._begun:
            self._begun = True
            self._see_request(request)
        message = super().parse_delta(delta_text, delta_token_ids, request, prompt_token_ids, finished=finished)
        tools = self.tool_parser
        if not isinstance(tools, ToolgramToolParser):
            return message
        self._going_on = tools if tools.goes_on else None
        return Ended.of(message) if finished and message is not None and tools.outgoing.carried else message

    def _see_request(self, request: Any) -> None:
        """Pass to the sessions how the output may end, and whether calls are wanted in it."""
        for parser in self._ours:
            parser.session.see_request(request)
        tools = self.tool_parser
        if isinstance(tools, ToolgramToolParser) and tools.partner is not None and _passes(request, tools.tools):
            tools.session.calls = False

    def parse(self, model_output: str, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Read a whole answer, and keep its ids. Before 0.33, vLLM takes the text given to the tool parser for the
        content of an answer without calls, markers included; the content is what that parser made of it."""
        token_ids = kwargs.get("model_output_token_ids", args[1] if len(args) > 1 else ())
        for parser in self._ours:
            parser.whole_ids = token_ids
        self._see_request(request)
        if mode_of(request):  # vLLM reads no calls in one message for this choice of Responses
            request = request.model_copy(update={"tool_choice": mode_of(request)})
        tools = self.tool_parser
        if not isinstance(tools, ToolgramToolParser):
            return super().parse(model_output, request, *args, **kwargs)
        tools.answered = None
        reasoning, content, calls = super().parse(model_output, request, *args, **kwargs)
        if tools.answered is None and tools.handed is not None:  # it is not asked for an answer without calls
            content = tools.handed[1].answer().content
        elif tools.answered is not None and not calls:
            content = tools.answered.content
        return reasoning, content, calls

    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
        """Show the prompt to both parsers; vLLM shows it to one, and before 0.33 to none."""
        if _TELLS_PROMPTS and self.reasoning_parser not in self._ours:
            super().set_prompt_token_ids(prompt_token_ids)
        for parser in self._ours:
            if getattr(parser, "partner", None) is None or parser is self.reasoning_parser:
                parser.set_prompt_token_ids(prompt_token_ids)

    def set_finish_reason(self, finish_reason: str | None) -> None:
        """Keep the finish reason of a vLLM that says it (`integrations/upstream`); it only marks outputs as cut off."""
        for parser in self._ours:
            parser.session.cut = finish_reason not in (None, "stop")

    def is_reasoning_end(self, input_ids: list[int]) -> bool:
        """Take the prompt, which 0.31 shows only here."""
        if not _TELLS_PROMPTS:
            for parser in self._ours:
                parser.set_prompt_token_ids(input_ids)
        return bool(super().is_reasoning_end(input_ids))


def introduce(reasoning: Any, tools: Any) -> None:
    """Let the two share one session, if both are toolgram's and of one format."""
    ours = isinstance(reasoning, ToolgramReasoningParser)
    if ours and isinstance(tools, ToolgramToolParser) and reasoning.served.fmt is tools.served.fmt:
        reasoning.partner, tools.partner = tools, reasoning
        reasoning.session.tools = tools.session.tools
        tools.session = reasoning.session
    elif isinstance(tools, ToolgramToolParser) and reasoning is not None:
        tools.follow_another()
        warn_once(
            f"the parsers {reasoning.__class__.__name__} and {tools.__class__.__name__} do not share a stream: name "
            "the same for both, --tool-call-parser toolgram --reasoning-parser toolgram"
        )


def warn_of_the_template(found: Served) -> None:
    """Log a warning if the server has another chat template than that which the format was derived from."""
    template = SERVER_TEMPLATE.get()
    if found.name == AUTO and template and template != chat_template_of(found.tokenizer):
        warn_once(
            "the server's --chat-template differs from the tokenizer's, which the format was derived from: calls may "
            f"be read as text. Set {TEMPLATE_VARIABLE} to the same file"
        )


def _passes(request: Any, tools: Any) -> bool:
    """Return whether an answer to this request is text: nothing to call, or calls are off."""
    return not tools or getattr(request, "tool_choice", None) == "none"


class ToolgramReasoningParser(ReasoningParser, metaclass=_Attachable):  # type: ignore[misc]
    """Takes reasoning out of an answer, and hands over to the tool parser at its end."""

    format_name = AUTO
    engine_based_streaming = True
    sends_text_after = False  # without a tool parser, 0.31 does not ask for the text after reasoning

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, *args, **kwargs)
        self.served = served(tokenizer, self.format_name)
        self.session = Session(self.served)
        self.partner: ToolgramToolParser | None = None
        self.whole_ids: Sequence[int] = ()
        self._prompt: Sequence[int] = ()
        self._counter: TokenCounter | None = None
        self._waiting: list[str] = []  # text that no event has accounted for yet
        self._rest: str | None = None  # the text after reasoning, once that has ended

    # --- the request

    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
        """Take the prompt, before anything is parsed, in both modes."""
        self._prompt = prompt_token_ids
        self.session.prefix = self.served.prefix(prompt_token_ids)

    @property
    def prompt_closes_reasoning(self) -> bool:
        """True if there will be no reasoning."""
        return self._after(self._prompt) == "closed"

    @property
    def prompt_opens_reasoning(self) -> bool:
        """True if the prompt has begun a thought."""
        return self._after(self._prompt) == "open"

    def _after(self, prompt: Sequence[int]) -> str:
        """Return where a prompt leaves reasoning; cached for that of the request."""
        known = self.session.prefix if prompt is self._prompt else None
        return self.served.reasoning_after_text(self.served.prefix(prompt) if known is None else known)

    def adjust_request(self, request: Any) -> Any:
        """Leave special tokens in the text if they are markers."""
        request = super().adjust_request(request)
        if self.served.reasons:
            keep_special_tokens(request, self.served)
        return request

    # --- ids alone

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        """Return whether a prompt leaves the model outside reasoning for good. Asked in server and engine."""
        return self._after(input_ids) == "closed"

    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Iterable[int]) -> bool:
        """Return whether the last tokens end reasoning: from there on a grammar constrains the output."""
        return self.served.ends_reasoning(input_ids, delta_ids)

    def extract_content_ids(self, input_ids: list[int]) -> list[int]:
        """Return the ids after the end of reasoning, for a tool parser that does not share the session."""
        served, inside = self.served, self.prompt_opens_reasoning
        for place, number in enumerate(input_ids):
            if number in served.end_ids and (inside or number not in served.start_ids):
                # A marker that begins a call ends reasoning, and is not part of it.
                return input_ids[place + (number in served.mark_ids | served.start_ids) :]
            inside = inside or number in served.start_ids
        return input_ids

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        """Return the number of reasoning tokens for the usage, without markers."""
        try:
            if self._counter is None:
                self._counter = TokenCounter(self.served, self.session.prefix, self.prompt_opens_reasoning)
            return self._counter.count(token_ids)
        except Exception as error:
            logger.error("toolgram: reasoning tokens could not be counted: %r", error)
            return 0

    @property
    def reasoning_start_str(self) -> str | None:
        """The marker that opens reasoning, for thinking budgets."""
        return self.served.around_a_thought[0] or None

    @property
    def reasoning_end_str(self) -> str | None:
        """The marker that closes reasoning."""
        return self.served.around_a_thought[1] or None

    # --- a whole answer

    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        """Return the reasoning of a whole answer, and the rest of the text."""
        partner = self.partner
        if not self.served.reasons and partner is None:
            return None, model_output
        events, builder = self.session.whole(model_output, self.whole_ids or None, partial(builder_for, request, None))
        if partner is None:
            thought, place = _first_thought(events, self.served)
            rest = "".join(event.source for event in events[place:])
            return (thought if thought.strip() else None), (rest if rest.strip() else None)
        thought = "".join(event.text for event in events if isinstance(event, Reasoning))
        rest = "".join(event.source for event in events if not isinstance(event, Reasoning))
        partner.handed = (rest, builder)
        return (thought if thought.strip() else None), rest

    # --- a stream

    def extract_reasoning_streaming(
        self, previous_text: str, current_text: str, delta_text: str, previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int], delta_token_ids: Sequence[int],
    ) -> Any:  # fmt: skip
        """Return the reasoning of a delta. The rest waits in the session for the tool parser."""
        events = self.session.feed(delta_text, delta_token_ids)
        if len(events) == 1 and not self._waiting:
            event = events[0]
            if type(event) is Reasoning and len(event.source) == len(delta_text):
                return quick_reasoning(event.text)
        self._waiting.append(delta_text)
        return self._take(events) if events else None

    def _take(self, events: list[Event]) -> Any:
        thought, place = _first_thought(events, self.served)
        claimed = sum(len(event.source) for event in events[:place])
        rest = "".join(self._waiting)[claimed:]
        self._waiting = [rest] if rest else []
        if place < len(events):
            self._rest = rest
            self.session.queue = events[place:]
        if self.sends_text_after and self._rest:
            return DeltaMessage(reasoning=thought or None, content=self._rest)
        return quick_reasoning(thought) if thought else None

    def has_engine_confirmed_reasoning_end(self) -> bool:
        """Return whether something other than reasoning was read."""
        return self._rest is not None

    def finish_streaming(self) -> Any:
        """Return the text after reasoning, if it has ended; at the end of a stream of reasoning, what is left."""
        if self._rest is not None:
            return quick_content(self._rest) if self._rest else None
        delta = self._take(self.session.close())
        if self.partner is None:  # no tool parser will read it
            self.session.queue = None
            if left := "".join(self._waiting):
                delta = delta or DeltaMessage()
                delta.content = left
        return delta


def _first_thought(events: list[Event], served: Served) -> tuple[str, int]:
    """Return the reasoning at the beginning of events, and the place of the first event that is something else."""
    thought: list[str] = []
    for place, event in enumerate(events):
        kind = type(event)
        if isinstance(event, Reasoning):
            thought.append(event.text)
        elif kind in (Content, Malformed, ToolCallStart, ToolCallDelta):
            return "".join(thought), place
        elif served.marks and event.source.strip() and event.source.strip() not in served.marks:
            return "".join(thought), place  # a marker of something else: a call may follow it
    return "".join(thought), len(events)


class ToolgramToolParser(ToolParser, metaclass=_Attachable):  # type: ignore[misc]
    """Reads content and calls: everything after reasoning, or all of a stream without a reasoning parser."""

    format_name = AUTO
    engine_based_streaming = True
    supports_required_and_named = False  # a forced call is written and read as any other
    structural_tag_model = "toolgram"
    skip_reasoning_parsing = False  # set by vLLM if no reasoning parser is configured

    def __init__(self, tokenizer: Any, tools: Any = None, **kwargs: Any) -> None:
        super().__init__(tokenizer, tools)
        self.served = served(tokenizer, self.format_name)
        self.session = Session(self.served, lambda: self.tools)
        self.partner: ToolgramReasoningParser | None = None
        self.whole_ids: Sequence[int] = ()
        self.handed: tuple[str, AnswerBuilder] | None = None  # by the partner: a whole answer, and its builder
        self.answered: Any = None  # the result of a whole answer
        self.outgoing = Outgoing()
        self.goes_on = False  # the last delta was a part of arguments or of content
        self._follows = False  # another reasoning parser reads first
        self._passes: bool | None = None
        self._plain = PlainThought(self.served.marks)

    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
        """Keep what the prompt has already written, if no reasoning parser does."""
        self.session.prefix = self.served.prefix(prompt_token_ids)
        if self._follows:
            self.follow_another()

    def follow_another(self) -> None:
        """Read what another reasoning parser leaves: a thought that the prompt has begun is then over."""
        self._follows = True
        begun = self.served.default_prefix() if self.session.prefix is None else self.session.prefix
        if self.served.reasoning_after_text(begun) == "open":
            self.session.prefix = self.served.after_thought(begun)

    def adjust_request(self, request: Any) -> Any:
        """Leave special tokens in the text if calls are to be read."""
        request = super().adjust_request(request)
        if not _passes(request, getattr(request, "tools", None)):
            keep_special_tokens(request, self.served)
        if mode_of(request) and is_forced(request) and (tag := self.get_structural_tag(request)) is not None:
            put_tag(request, as_constraint(tag), None)  # vLLM asks for no tag here
        return request

    def get_structural_tag(self, request: Any, *, reasoning: bool = False, strict_level: Any = None) -> Any:
        """Return toolgram's own export as a tag that constrains calls; None if there is none."""
        begins = where_the_grammar_begins(self.served, self.partner, self.session, request)
        return structural_tag(self.served, request, self.tools, **begins)

    def get_remaining_unstreamed_args(self) -> str:
        """Return "": arguments are sent as they are read."""
        return ""

    # --- a whole answer

    def extract_tool_calls(self, model_output: str, request: Any) -> Any:
        """Return the calls of a whole answer, and its content."""
        content, calls = self._answer(model_output, request)
        made = [
            ToolCall(id=call.id, type="function", function=FunctionCall(name=call.name, arguments=call.arguments))
            for call in calls
        ]
        self.answered = ExtractedToolCallInformation(tools_called=bool(made), tool_calls=made, content=content)
        return self.answered

    def _answer(self, model_output: str, request: Any) -> tuple[str | None, Sequence[ReadCall]]:
        if self._is_plain(request):
            return model_output, ()
        handed, self.handed = self.handed, None
        if handed is not None and handed[0] == model_output:
            builder = handed[1]
        elif _passes(request, self.tools):
            session = self._text_session()
            session.counts = False  # the whole answer was counted with its reasoning
            delta = delta_of([*session.feed(model_output, None), *session.close()])
            return (delta.content if delta is not None else None), ()
        else:
            new_builder = partial(builder_for, request, self.served.marks if self.skip_reasoning_parsing else None)
            _, builder = self.session.whole(model_output, self.whole_ids or None, new_builder)
        answer = builder.answer()
        return answer.content, answer.tool_calls

    # --- a stream

    def extract_tool_calls_streaming(
        self, previous_text: str, current_text: str, delta_text: str, previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int], delta_token_ids: Sequence[int], request: Any,
    ) -> Any:  # fmt: skip
        """Return what a delta makes certain."""
        if self._passes is None:
            self._passes = self._is_plain(request)
            if not self._passes and self.session.calls and _passes(request, self.tools):
                self.session.queue = None
                self.session = self._text_session()
        if self._passes:
            self.session.queue = None
            return quick_content(delta_text) if delta_text else None
        session = self.session
        if session.queue is not None:
            events, session.queue = session.queue, None
        else:
            events = session.feed(delta_text, delta_token_ids)
        message = self.message_of_one(events)
        self.goes_on = message is not None
        if message is not None:
            return message
        outgoing = self.outgoing
        if events and self.skip_reasoning_parsing:
            events = self._plain(events)
        if events or outgoing.waiting:
            return outgoing.delta(events)
        outgoing.carried = False
        return None

    def message_of_one(self, events: list[Event]) -> Any:
        """Return the message of one event of arguments or content; None for anything else."""
        outgoing = self.outgoing
        if len(events) != 1 or outgoing.waiting:
            return None
        event = events[0]
        if type(event) is ToolCallDelta:
            outgoing.carried = True
            return quick_arguments(event.index, event.arguments)
        if type(event) is Content and not self.skip_reasoning_parsing:
            outgoing.carried = False
            return quick_content(event.text)
        return None

    def _is_plain(self, request: Any) -> bool:
        """Return whether an answer passes unchanged: there is no format, or neither tools nor a reasoning parser."""
        return self.served.fmt is None or (self.skip_reasoning_parsing and _passes(request, self.tools))

    def _text_session(self) -> Session:
        """Return a session for the text after reasoning in an answer without calls. If the prompt has ended the
        reasoning, that is the whole answer, which the prompt may have begun."""
        session = Session(self.served, calls=False)
        prefix = self.session.prefix or ""
        session.prefix = prefix if self.served.reasoning_after_text(prefix) == "closed" else ""
        return session

    def finish_streaming(self) -> Any:
        """Return what the end of the stream makes certain."""
        if self._passes:
            return None
        session = self.session
        waiting, session.queue = session.queue or [], None
        events = [*waiting, *session.close()]
        return self.outgoing.last(self._plain(events) if self.skip_reasoning_parsing else events)


def keep_special_tokens(request: Any, served: Served) -> None:
    """Leave special tokens in the text, if the format has any. The sampling parameters are not made yet."""
    if not served.needs_special_text:
        return
    request.skip_special_tokens = False
    if getattr(request, "spaces_between_special_tokens", None):
        request.spaces_between_special_tokens = False  # slow tokenizers would put blanks between them


# --- a pair per format ----------------------------------------------------------------------------------------------

_PAIRS = {"ToolParser_": ToolgramToolParser, "ReasoningParser_": ToolgramReasoningParser}


def __getattr__(name: str) -> Any:
    """Make `ToolParser_<format>` and `ReasoningParser_<format>` when vLLM asks for them."""
    for beginning, base in _PAIRS.items():
        if name.startswith(beginning):
            kind = _Attachable(name, (base,), {"format_name": name[len(beginning) :], "__module__": __name__})
            globals()[name] = kind
            return kind
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
