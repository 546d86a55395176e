"""The pair of parsers that vLLM drives: a reasoning parser and a tool parser, over one toolgram stream.

How vLLM drives a pair (its `DelegatingParser`): per request it makes the reasoning parser, then the tool parser.  A
stream goes to the reasoning parser until that says that reasoning has ended, and to the tool parser from then on; a
whole answer goes to one, and what that leaves to the other.

Strategy: one `Session` is shared by the two, so that every character is read once, by a parser that knows the prompt
(which only the reasoning parser is told) and the tools (which only the tool parser is told).  The reasoning parser
reads until something other than reasoning comes, and leaves those events in the session for the tool parser.  A whole
answer is read in the same way, in one piece.

vLLM stores both classes as attributes of the class that drives them.  Python then calls `__set_name__`, which wraps
that class: it connects the two parsers, and keeps what vLLM knows but does not pass on (the ids of a whole answer, the
prompt of a tool parser without reasoning parser, the request of a stream that never left reasoning).  Without that
call, each parser works alone, from the text that the other leaves.

Without tools, or with tool_choice "none", calls are text: what is behind the reasoning is read by a session of its own,
whose format has no calls. Without a reasoning parser such an answer passes as it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from toolgram.events import Content, Dropped, Event, Malformed, Reasoning, ToolCallDelta, ToolCallStart
from toolgram.integrations.served import AUTO, Served, Session, TokenCounter, logger, served, warn_no_constraint
from toolgram.integrations.vllm_surface import (
    DeltaFunctionCall,
    DeltaMessage,
    DeltaToolCall,
    ExtractedToolCallInformation,
    FunctionCall,
    ReasoningParser,
    ToolCall,
    ToolParser,
    arguments_delta,
    content_delta,
    reasoning_delta,
)

_JOINED = "_joined_by_toolgram"


class _Attachable(type):
    """The metaclass of both parsers. Python calls `__set_name__` when vLLM stores a parser in its driver class."""

    def __set_name__(cls, owner: type[Any], name: str) -> None:
        if name in ("tool_parser_cls", "reasoning_parser_cls") and _JOINED not in owner.__dict__:
            _join(owner)


def _join(owner: type[Any]) -> None:
    """Wrap the class that drives a pair: it connects the two parsers and keeps for them what it does not pass on."""
    names = ("__init__", "parse", "set_prompt_token_ids", "finalize_generation")
    begin, parse, see_prompt, finalize = (getattr(owner, name, None) for name in names)
    if not (callable(begin) and callable(parse) and callable(see_prompt)):
        return

    def both(self: Any) -> list[Any]:
        found = (getattr(self, name, None) for name in ("reasoning_parser", "tool_parser"))
        return [parser for parser in found if isinstance(parser, (ToolgramReasoningParser, ToolgramToolParser))]

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        introduce(getattr(self, "reasoning_parser", None), getattr(self, "tool_parser", None))

    def parse_whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        token_ids = kwargs.get("model_output_token_ids", args[3] if len(args) > 3 else ())
        for parser in both(self):
            parser.whole_ids = token_ids
        return parse(self, *args, **kwargs)

    def set_prompt_token_ids(self: Any, prompt_token_ids: Sequence[int]) -> None:
        see_prompt(self, prompt_token_ids)
        for parser in both(self)[-1:]:
            parser.see_prompt(prompt_token_ids)

    def finalize_generation(self: Any, delta_message: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        for parser in both(self):
            parser.request = request
        return finalize(self, delta_message, request, *args, **kwargs)  # type: ignore[misc]

    setattr(owner, _JOINED, True)
    wrapped = (__init__, parse_whole, set_prompt_token_ids, *((finalize_generation,) if callable(finalize) else ()))
    for name, function in zip(names, wrapped, strict=False):
        setattr(owner, name, function)


def introduce(reasoning: Any, tools: Any) -> None:
    """Have the two share one session, if both are toolgram's and of one format."""
    ours = isinstance(reasoning, ToolgramReasoningParser)
    if ours and isinstance(tools, ToolgramToolParser) and reasoning.served.fmt is tools.served.fmt:
        reasoning.partner, tools.partner = tools, reasoning
        reasoning.session.tools = tools.session.tools
        tools.session = reasoning.session


# --- events to what vLLM sends --------------------------------------------------------------------------------------


def delta_of(events: Iterable[Event]) -> Any:
    """The delta message of these events; None for nothing to send."""
    content: list[str] = []
    reasoning: list[str] = []
    calls: dict[int, list[Any]] = {}  # index -> id, name, fragments
    for event in events:
        if isinstance(event, (Content, Malformed)):
            content.append(event.text)
        elif isinstance(event, Reasoning):
            reasoning.append(event.text)
        elif isinstance(event, ToolCallStart):
            calls[event.index] = [event.id, event.name, []]
        elif isinstance(event, ToolCallDelta):
            calls.setdefault(event.index, ["", "", []])[2].append(event.arguments)
    fields: dict[str, Any] = {}
    if any(content):
        fields["content"] = "".join(content)
    if any(reasoning):
        fields["reasoning"] = "".join(reasoning)
    if calls:
        fields["tool_calls"] = [_call_delta(index, *call) for index, call in calls.items()]
    return DeltaMessage(**fields) if fields else None


def _call_delta(index: int, id: str, name: str, fragments: list[str]) -> Any:
    arguments = "".join(fragments)
    if name or id:
        function = DeltaFunctionCall(name=name, arguments=arguments)
        return DeltaToolCall(index=index, id=id, type="function", function=function)
    return DeltaToolCall(index=index, function=DeltaFunctionCall(arguments=arguments))


class PlainThought:
    """Turns reasoning back into the text it was, markers and all: what vLLM expects without a reasoning parser."""

    def __init__(self, marks: frozenset[str]) -> None:
        self._marks = marks
        self._thinking = False
        self._blank = ""

    def __call__(self, events: Iterable[Event]) -> list[Event]:
        """The events, reasoning and its surroundings as content."""
        plain: list[Event] = []
        for event in events:
            kind, source = type(event), event.source
            if kind is Reasoning or source in self._marks or (self._thinking and kind in (Content, Dropped)):
                plain.append(Content(self._blank + source, source))
                self._thinking = kind is not Content
            else:
                plain.append(event)
                self._thinking = self._thinking and kind not in (ToolCallStart, Malformed)
            self._blank = source if kind is Dropped and not self._thinking and source.isspace() else ""
        return plain


def _passes(request: Any, tools: Any) -> bool:
    """Whether an answer to this request is text: nothing to call, or not to be called."""
    return not tools or getattr(request, "tool_choice", None) == "none"


def _stopped(request: Any, session: Session) -> str | None:
    """ "length" where the answer has used up what it was given, as vLLM does not say; None where it may have ended."""
    fields = getattr(request, "__dict__", {})  # past the descriptor that warns of `max_tokens`
    asked = (fields.get(name) for name in ("max_completion_tokens", "max_tokens", "max_output_tokens"))
    limits = [limit for limit in (*asked, session.left) if isinstance(limit, int) and limit > 0]
    if not limits or session.seen < min(limits):
        return None
    return None if session.last == session.served.eos_id else "length"


class ToolgramReasoningParser(ReasoningParser, metaclass=_Attachable):  # type: ignore[misc]
    """Takes reasoning out of an answer, and hands over to the tool parser where it ends."""

    format_name = AUTO
    engine_based_streaming = True

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, *args, **kwargs)
        self.served = served(tokenizer, self.format_name)
        self.session = Session(self.served)
        self.partner: ToolgramToolParser | None = None
        self.whole_ids: Sequence[int] = ()
        self.request: Any = None
        self._most = getattr(kwargs.get("model_config"), "max_model_len", None)
        self._prompt: Sequence[int] = ()
        self._counter: TokenCounter | None = None
        self._waiting: list[str] = []  # text that no event has accounted for yet
        self._rest: str | None = None  # once reasoning has ended: the text behind it

    # --- the request

    def see_prompt(self, token_ids: Sequence[int]) -> None:
        """Keep what the prompt has already written for the model."""
        self._prompt = token_ids
        self.session.prefix = self.served.prefix(token_ids)
        if isinstance(self._most, int):
            self.session.left = max(1, self._most - len(token_ids))

    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
        """Called before anything is parsed, in both modes."""
        self.see_prompt(prompt_token_ids)

    @property
    def prompt_closes_reasoning(self) -> bool:
        """Whether there will be no reasoning."""
        return self.is_reasoning_end(self._prompt)

    def adjust_request(self, request: Any) -> Any:
        """Markers that are special tokens have to be in the text."""
        request = super().adjust_request(request)
        if self.served.reasons:
            keep_special_tokens(request, self.served)
        return request

    # --- ids alone

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        """Whether a prompt leaves the model outside reasoning, for good. Asked in the server and in the engine."""
        return self.served.reasoning_after(input_ids) == "closed"

    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Iterable[int]) -> bool:
        """Whether the last tokens end reasoning: from here on the engine holds the output to a grammar."""
        return self.served.ends_reasoning(input_ids, delta_ids)

    def extract_content_ids(self, input_ids: list[int]) -> list[int]:
        """The ids behind the end of reasoning, for a tool parser that does not share the session."""
        served = self.served
        for place, number in enumerate(input_ids):
            if number in served.end_ids:  # a marker that begins a call ends reasoning, and is no part of it
                return input_ids[place + (number in served.mark_ids) :]
        return input_ids

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        """For the usage: the tokens of reasoning, without its markers."""
        try:
            if self._counter is None:
                opened = self.served.reasoning_after(self._prompt) == "open"
                self._counter = TokenCounter(self.served, self.session.prefix or "", opened)
            return self._counter.count(token_ids)
        except Exception as error:
            logger.error("toolgram: reasoning tokens could not be counted: %r", error)
            return 0

    @property
    def reasoning_start_str(self) -> str | None:
        """The marker that opens reasoning, for thinking budgets."""
        return min(self.served.start_texts, default=None)

    @property
    def reasoning_end_str(self) -> str | None:
        """The marker that closes it."""
        return min(self.served.end_texts, default=None)

    # --- a whole answer

    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        """The reasoning of a whole answer, and the text that is left."""
        session = self.session.again()
        events = session.feed(model_output, self.whole_ids or None)
        events += session.close(_stopped(request, session))
        partner = self.partner
        if partner is None or _passes(request, partner.tools):
            thought, place = _first_thought(events, self.served)
            rest = "".join(event.source for event in events[place:])
            return (thought if thought.strip() else None), (rest if rest.strip() else None)
        thought = "".join(event.text for event in events if isinstance(event, Reasoning))
        rest = "".join(event.source for event in events if not isinstance(event, Reasoning))
        partner.handed = (rest, events)
        return (thought if thought.strip() else None), rest

    # --- a stream

    def extract_reasoning_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
    ) -> Any:
        """The reasoning of a delta. What is not reasoning waits in the session for the tool parser."""
        events = self.session.feed(delta_text, delta_token_ids)
        if len(events) == 1 and not self._waiting:
            event = events[0]
            if type(event) is Reasoning and len(event.source) == len(delta_text):
                return reasoning_delta(event.text)
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
        return reasoning_delta(thought) if thought else None

    def has_engine_confirmed_reasoning_end(self) -> bool:
        """Whether something other than reasoning was read."""
        return self._rest is not None

    def finish_streaming(self) -> Any:
        """Where reasoning has ended: the text behind it. At the end of a stream of reasoning: what is left."""
        if self._rest is not None:
            return content_delta(self._rest) if self._rest else None
        delta = self._take(self.session.close(_stopped(self.request, self.session)))
        return delta if self.partner is not None and self.partner.tools else self._left_over(delta)

    def _left_over(self, delta: Any) -> Any:
        """The text that no tool parser will read."""
        self.session.queue = None
        if self._rest:
            delta = delta or DeltaMessage()
            delta.content = self._rest
        return delta


def _first_thought(events: list[Event], served: Served) -> tuple[str, int]:
    """The reasoning that events begin with, and the place of the first event that is something else."""
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
    """Reads content and calls; in a stream without reasoning parser, or behind reasoning, everything."""

    format_name = AUTO
    engine_based_streaming = True
    supports_required_and_named = False  # a forced call is written as any other, and read as any other
    structural_tag_model = "toolgram"
    skip_reasoning_parsing = False  # set by vLLM where no reasoning parser is configured

    def __init__(self, tokenizer: Any, tools: Any = None, **kwargs: Any) -> None:
        super().__init__(tokenizer, tools)
        self.served = served(tokenizer, self.format_name)
        self.session = Session(self.served, self._declared)
        self.partner: ToolgramReasoningParser | None = None
        self.whole_ids: Sequence[int] = ()
        self.handed: tuple[str, list[Event]] | None = None  # by the partner: a whole answer, and how it was read
        self.request: Any = None
        self._passes: bool | None = None
        self._plain: PlainThought | None = None

    def _declared(self) -> list[Any]:
        """The tools, in either of vLLM's two shapes."""
        return list(self.tools)

    def see_prompt(self, token_ids: Sequence[int]) -> None:
        """Keep what the prompt has already written, where no reasoning parser does."""
        self.session.prefix = self.served.prefix(token_ids)

    def adjust_request(self, request: Any) -> Any:
        """Markers that are special tokens have to be in the text, if there are calls to be read."""
        request = super().adjust_request(request)
        if not _passes(request, getattr(request, "tools", None)):
            keep_special_tokens(request, self.served)
        return request

    def get_structural_tag(self, request: Any, *, reasoning: bool = False, strict_level: Any = None) -> Any:
        """What holds the model to the format's calls, from toolgram's own export.

        None where this toolgram exports nothing yet: calls are then asked for by the prompt and parsed, not enforced.
        """
        export: Callable[..., Any] | None = getattr(self.served.fmt, "export", None)
        if export is None:
            if getattr(request, "tool_choice", "auto") not in (None, "none", "auto"):
                warn_no_constraint("this version of toolgram exports none")
            return None
        try:
            from xgrammar import StructuralTag

            made = export(
                "structural_tag",
                tools=self._declared(),
                tool_choice=_choice(request),
                parallel_tool_calls=getattr(request, "parallel_tool_calls", None) is not False,
                **self._where_the_grammar_begins(request),
            )
            return StructuralTag.model_validate_json(getattr(made, "text", made))
        except Exception as error:
            warn_no_constraint(f"{self.served.fmt}: {error}")
            return None

    def _where_the_grammar_begins(self, request: Any) -> dict[str, Any]:
        """The engine lets reasoning pass and holds what follows to the grammar. Where there is none to wait for, or the
        client is not to hear of it, the grammar holds from the first token on."""
        waits = (
            self.partner is not None
            and self.served.reasons
            and getattr(request, "include_reasoning", True)
            and not self.partner.prompt_closes_reasoning
        )
        return {"prefix": "", "reasoning": False} if waits else {"prefix": self.session.prefix}

    def get_remaining_unstreamed_args(self) -> str:
        """Nothing: arguments are sent as they are read."""
        return ""

    # --- a whole answer

    def extract_tool_calls(self, model_output: str, request: Any) -> Any:
        """The calls of a whole answer, and its content."""
        if self._is_plain(request):
            return ExtractedToolCallInformation(tools_called=False, tool_calls=[], content=model_output)
        if _passes(request, self.tools):
            session = self._text_session()
            events = session.feed(model_output, None)
            events += session.close(_stopped(request, session))
            delta = delta_of(events)
            content = delta.content if delta is not None else None
            return ExtractedToolCallInformation(tools_called=False, tool_calls=[], content=content)
        handed, self.handed = self.handed, None
        if handed is not None and handed[0] == model_output:
            events = handed[1]
        else:
            session = self.session.again()
            events = session.feed(model_output, self.whole_ids or None)
            events += session.close(_stopped(request, session))
        if self.skip_reasoning_parsing:
            events = PlainThought(self.served.marks)(events)
        delta = delta_of(events)
        content = delta.content if delta is not None else None
        calls = [
            ToolCall(
                id=call.id,
                type="function",
                function=FunctionCall(name=call.function.name, arguments=call.function.arguments),
            )
            for call in (delta.tool_calls if delta is not None else ())
        ]
        return ExtractedToolCallInformation(
            tools_called=bool(calls), tool_calls=calls, content=content if content and content.strip() else None
        )

    # --- a stream

    def extract_tool_calls_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
        request: Any,
    ) -> Any:
        """What a delta makes certain."""
        if self._passes is None:
            self.request = request
            self._passes = self._is_plain(request)
            if not self._passes and _passes(request, self.tools):
                self.session.queue = None
                self.session = self._text_session()
        if self._passes:
            self.session.queue = None
            return content_delta(delta_text) if delta_text else None
        session = self.session
        if session.queue is not None:
            events, session.queue = session.queue, None
        else:
            events = session.feed(delta_text, delta_token_ids)
        if len(events) == 1:
            event = events[0]
            if type(event) is ToolCallDelta:
                return arguments_delta(event.index, event.arguments)
            if type(event) is Content and not self.skip_reasoning_parsing:
                return content_delta(event.text)
        if self.skip_reasoning_parsing:
            events = self._plainly(events)
        return delta_of(events) if events else None

    def _is_plain(self, request: Any) -> bool:
        """Whether an answer passes as it stands: there is no format, or neither tools nor a parser of reasoning."""
        return self.served.fmt is None or (self.skip_reasoning_parsing and _passes(request, self.tools))

    def _text_session(self) -> Session:
        """A session for what is behind the reasoning of an answer without calls."""
        session = Session(self.served, calls=False)
        session.prefix = ""
        return session

    def _plainly(self, events: list[Event]) -> list[Event]:
        if self._plain is None:
            self._plain = PlainThought(self.served.marks)
        return self._plain(events)

    def finish_streaming(self) -> Any:
        """What the end of the stream makes certain."""
        if self._passes:
            return None
        session = self.session
        events = session.queue or []
        session.queue = None
        events = [*events, *session.close(_stopped(self.request, session))]
        return delta_of(self._plainly(events) if self.skip_reasoning_parsing else events)


def keep_special_tokens(request: Any, served: Served) -> None:
    """Have special tokens left in the text, if the format has any. The sampling parameters are not made yet."""
    if not served.needs_special_text:
        return
    request.skip_special_tokens = False
    if getattr(request, "spaces_between_special_tokens", None):
        request.spaces_between_special_tokens = False  # slow tokenizers would put blanks between them


def _choice(request: Any) -> Any:
    """The tool_choice as toolgram takes it: a word, or an OpenAI dict that names a function."""
    choice = getattr(request, "tool_choice", "auto")
    if choice is None or isinstance(choice, str):
        return choice or "auto"
    function = getattr(choice, "function", choice)
    return {"type": "function", "function": {"name": getattr(function, "name", "")}}


# --- a pair per format ----------------------------------------------------------------------------------------------

_PAIRS = {"ToolParser_": ToolgramToolParser, "ReasoningParser_": ToolgramReasoningParser}


def __getattr__(name: str) -> Any:
    """`ToolParser_<format>` and `ReasoningParser_<format>`, made when vLLM asks for them."""
    for beginning, base in _PAIRS.items():
        if name.startswith(beginning):
            kind = _Attachable(name, (base,), {"format_name": name[len(beginning) :], "__module__": __name__})
            globals()[name] = kind
            return kind
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
