"""The detectors that SGLang drives: one for reasoning, and one for calls, which reads the rest.

How SGLang drives them: the reasoning detector gets the text of an output, without token ids. Its `normal_text` goes to
the tool detector if a request has tools, and to the client otherwise. Both get the tokenizer, neither the prompt.

Strategy: each has a toolgram parser of its own. The reasoning detector passes on the *source* of everything except
reasoning, its markers, and the blanks after them, so the tool detector reads what the model wrote. Without a tool
detector it passes on text, calls included. Without a reasoning detector, the tool detector leaves reasoning in the
content unchanged, as SGLang's own detectors do.

**What the prompt has begun** follows from the format. A derived format knows the generation prompts of its template,
and SGLang says whether a request wants reasoning, which chooses one. For a named format, reasoning is open if SGLang
says so.

**The end.** Detectors do not know why an output ended. A value that only the end closes may have been cut off, so such
a call is sent as far as it was written, and never as complete.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache, partial
from types import SimpleNamespace
from typing import Any

from sglang.srt.function_call.base_format_detector import BaseFormatDetector
from sglang.srt.function_call.core_types import StreamingParseResult, ToolCallItem
from sglang.srt.parser import reasoning_parser
from sglang.srt.sampling import sampling_params

from toolgram.derive.conversation import SWITCHES
from toolgram.events import Content, Dropped, Event, Malformed, Reasoning, ToolCallDelta, ToolCallStart
from toolgram.integrations.answers import FAILED, TEXT, AnswerBuilder, PlainThought
from toolgram.integrations.served import AUTO, Served, Session, chat_template_of, served
from toolgram.integrations.start_line import log_start
from toolgram.integrations.vllm_tags import structural_tag

_ON, _OFF, _UNSET = "on", "off", "unset"
# SGLang's mark of a request whose grammar describes the thought as well, since 0.5.23.
IN_GRAMMAR: str = getattr(sampling_params, "REQUEST_REASONING_IN_GRAMMAR_KEY", "")
_NO_TOKENIZER = SimpleNamespace(chat_template=None, name_or_path="that SGLang does not give")


def _served(tokenizer: Any, format_name: str) -> Served:
    found = served(_NO_TOKENIZER if tokenizer is None else tokenizer, format_name)
    log_start(found)
    return found


class ToolDetector(BaseFormatDetector):  # type: ignore[misc]
    """Content and calls of one output. `format_name` is set by `detector`."""

    format_name = AUTO

    def __init__(self, tokenizer: Any = None) -> None:
        super().__init__()
        self.served = _served(tokenizer, self.format_name)
        self._tools: Sequence[Any] = ()
        self._session = self._new_session()
        self._plain = PlainThought(self.served.marks)
        self._waiting: list[Event] = []

    def _new_session(self) -> Session:
        session = Session(self.served, lambda: _chat_shape(self._tools))
        if self.served.reasoning_after_text(self.served.default_prefix()):
            session.prefix = ""
        return session

    # --- a whole answer

    def has_tool_call(self, text: str) -> bool:
        """Return whether the text is more than content, with any tools: SGLang says later which are declared. So the
        name of a function in which the text ends may be whole, as if the model had ended it."""
        session = self._new_session()
        session.eos_ids = frozenset({session.last})
        result = _result(PlainThought(self.served.marks)([*session.feed(text, None), *session.close()]))
        return bool(result.calls) or result.normal_text != text

    def detect_and_parse(self, text: str, tools: Sequence[Any]) -> StreamingParseResult:
        """Return the content and the calls of a whole answer."""
        self._tools = tools
        new_builder = partial(AnswerBuilder, failed_as_text=FAILED[TEXT], plain=PlainThought(self.served.marks))
        answer = self._new_session().whole(text, None, new_builder)[1].answer()
        calls = [
            ToolCallItem(tool_index=index, name=call.name, parameters=call.arguments)
            for index, call in enumerate(answer.tool_calls)
        ]
        return StreamingParseResult(normal_text=answer.content or "", calls=calls)

    # --- a stream

    def parse_streaming_increment(self, new_text: str, tools: Sequence[Any]) -> StreamingParseResult:
        """Return what a piece of the output makes certain. SGLang sends the text of a result before its calls, so text
        that follows a call waits for the next piece."""
        self._tools = tools
        events = [*self._waiting, *self._plain(self._session.feed(new_text, None))]
        place = _end_of_calls(events)
        self._waiting = events[place:]
        return _result(events[:place])

    def finish(self, tools: Sequence[Any]) -> StreamingParseResult:
        """Return what the end makes certain."""
        self._tools = tools
        events = [*self._waiting, *self._plain(self._session.close())]
        self._waiting = []
        return _result(events)

    # --- constraints

    def supports_structural_tag(self) -> bool:
        """Return False: SGLang cannot describe this format by a beginning and an end."""
        return False

    def parses_required_natively(self) -> bool:
        """Return True: a forced call is written and read as any other."""
        return True

    def structure_info(self) -> Callable[[str], Any]:
        """Raise: SGLang does not ask for this, since `supports_structural_tag` returns False."""
        raise NotImplementedError("toolgram writes its structural tags itself")

    def get_structural_tag(
        self,
        tools: Sequence[Any] | None = None,
        tool_choice: Any = "auto",
        thinking_mode: bool = False,
        parallel_tool_calls: bool = True,
    ) -> Any:
        """Return toolgram's own export as a tag that constrains calls; None, with a warning, if there is none. If the
        prompt has begun a thought, SGLang waits for its end, and the tag describes what follows."""
        asked = SimpleNamespace(tool_choice=tool_choice, parallel_tool_calls=parallel_tool_calls)
        default = self.served.default_prefix()
        waits = not thinking_mode and (not IN_GRAMMAR or self.served.reasoning_after_text(default) == "open")
        prefix = default if thinking_mode else self._session.prefix
        return structural_tag(self.served, asked, _chat_shape(tools or ()), prefix, False if waits else None)

    def get_auto_tool_call_structural_tag(
        self, tools: Sequence[Any] | None = None, thinking_mode: bool = False, parallel_tool_calls: bool = True
    ) -> Any:
        """Return a tag if a request wants one call at most; None otherwise, since any output is read."""
        return None if parallel_tool_calls else self.get_structural_tag(tools, "auto", thinking_mode, False)


def _chat_shape(tools: Sequence[Any]) -> list[dict[str, Any]]:
    """Return tools as chat completions declare them. Those of SGLang's parsing endpoint are not pydantic models."""
    names = ("name", "description", "parameters")
    given = ([(name, getattr(tool.function, name, None)) for name in names] for tool in tools)
    return [{"type": "function", "function": {name: said for name, said in each if said is not None}} for each in given]


def _end_of_calls(events: Sequence[Event]) -> int:
    """Return the place of the first text after a call or its arguments."""
    called = False
    for place, event in enumerate(events):
        if isinstance(event, (ToolCallStart, ToolCallDelta)):
            called = True
        elif called and isinstance(event, (Content, Malformed)) and event.text:
            return place
    return len(events)


def _result(events: Iterable[Event]) -> StreamingParseResult:
    texts: list[str] = []
    calls: list[ToolCallItem] = []
    for event in events:
        if isinstance(event, (Content, Malformed)):
            texts.append(event.text)
        elif isinstance(event, ToolCallStart):
            calls.append(ToolCallItem(tool_index=event.index, name=event.name, parameters=""))
        elif isinstance(event, ToolCallDelta) and event.arguments:
            calls.append(ToolCallItem(tool_index=event.index, parameters=event.arguments))
    return StreamingParseResult(normal_text="".join(texts), calls=calls)


class ReasoningDetector(reasoning_parser.BaseReasoningFormatDetector):  # type: ignore[misc]
    """The reasoning of one output, and the rest. `format_name` is set by `detector`."""

    format_name = AUTO
    _accumulated_reasoning: str  # of the base class

    def __init__(
        self, stream_reasoning: bool = True, force_reasoning: bool | None = None, continue_final_message: bool = False,
        previous_content: str = "", force_nonempty_content: bool = False, tool_call_parser_active: bool = False,
        tokenizer: Any = None,
    ) -> None:  # fmt: skip
        self.served = _served(tokenizer, self.format_name)
        super().__init__(
            min(self.served.start_texts, default=""),
            min(self.served.end_texts, default=""),
            force_reasoning=bool(force_reasoning),
            stream_reasoning=stream_reasoning,
            force_nonempty_content=force_nonempty_content,
            reasoning_default=_default_mode(self.served),
        )
        self._calls_follow = tool_call_parser_active
        self._hands_on_markup = tool_call_parser_active and not _keeps_calls_as_text(self.served)
        self._prompt = _opened(self.served, force_reasoning)
        if continue_final_message and isinstance(previous_content, str):
            self._prompt += previous_content
        self._session = self._new_session()
        self._in_reasoning = True  # until something else comes
        self._after_thought = False
        self._kept: list[str] = []  # reasoning that is sent when all of it has come

    def _new_session(self) -> Session:
        session = Session(self.served, calls=self._hands_on_markup)
        session.prefix, session.counts = self._prompt, not self._calls_follow
        return session

    def _split(self, events: Iterable[Event]) -> tuple[str, str]:
        """Return the reasoning, and the text to pass on."""
        thoughts: list[str] = []
        rest: list[str] = []
        for event in events:
            if isinstance(event, Reasoning):
                thoughts.append(event.text)
                self._after_thought = True
                continue
            if isinstance(event, Dropped) and self.served.marks:
                mark = event.source in self.served.marks
                if mark or (self._after_thought and event.source.isspace()):
                    self._after_thought = self._after_thought or mark
                    continue
            self._after_thought = False
            if self._hands_on_markup:
                handed = event.source
            else:
                handed = "" if isinstance(event, Dropped) else getattr(event, "text", "")
            if handed.strip():
                self._in_reasoning = False
            rest.append(handed)
        return "".join(thoughts), "".join(rest)

    def _detect_and_parse_impl(self, text: str) -> Any:
        session = self._new_session()
        thought, rest = self._split([*session.feed(text, None), *session.close()])
        return reasoning_parser.StreamingParseResult(normal_text=rest, reasoning_text=thought)

    def _parse_streaming_increment_impl(self, new_text: str) -> Any:
        thought, rest = self._split(self._session.feed(new_text, None))
        if not self.stream_reasoning:
            self._kept.append(thought)
            thought = "" if self._in_reasoning else self._take_kept()
        return reasoning_parser.StreamingParseResult(normal_text=rest, reasoning_text=thought)

    def _take_kept(self) -> str:
        thought, self._kept = "".join(self._kept), []
        return thought

    def finish(self) -> Any:
        """Return what the end makes certain. With `force_nonempty_content`, an answer of only reasoning is content."""
        thought, rest = self._split(self._session.close())
        thought = self._take_kept() + thought
        if self._force_nonempty_content and self._in_reasoning:
            thought, rest, self._accumulated_reasoning = "", self._accumulated_reasoning + thought + rest, ""
        return reasoning_parser.StreamingParseResult(normal_text=rest, reasoning_text=thought)


def _opened(found: Served, force_reasoning: bool | None) -> str:
    """Return what the prompt has written for the model, as far as it is known."""
    default = found.default_prefix()
    if force_reasoning is None or not found.reasons:
        return default
    analysis = found.analysis
    if analysis is not None:
        prompt = analysis.prompts.get(_ON if force_reasoning else _OFF, analysis.prompts.get(_UNSET))
        return str(prompt.opened) if prompt is not None else default
    if not force_reasoning:
        return ""
    if found.reasoning_after_text(default) == "open":
        return default
    return min(found.start_texts, default="") or found.around_a_thought[0]


@lru_cache(maxsize=64)
def _keeps_calls_as_text(found: Served) -> bool:
    """Return whether an answer that is read without calls still has all of their markup, tested on the format's
    example.

    It does not if the header of a message names its recipient. If it does, the markers around the text are gone.
    """
    fmt = found.fmt
    if fmt is None:
        return True
    session = Session(found, calls=False)
    events = [*session.feed(fmt.example, None), *session.close()]
    text = "".join(event.text for event in events if isinstance(event, (Content, Malformed)))
    whole, rest = (fmt.parse(each, prefix="", finish_reason="stop").tool_calls for each in (fmt.example, text))
    return [(call.name, call.arguments) for call in rest] == [(call.name, call.arguments) for call in whole]


def _default_mode(found: Served) -> str | None:
    """Return SGLang's word for whether the model reasons by default: the template variable that turns it off, or on."""
    analysis = found.analysis
    if analysis is None or analysis.switch not in ("thinking", "enable_thinking"):
        return None
    prompts = analysis.prompts
    on = _ON in prompts and prompts[_UNSET].opened == prompts[_ON].opened
    return str(analysis.switch) if on else f"explicit_{analysis.switch}"


@cache
def detector(kind: str, format_name: str) -> type[Any]:
    """Return the `ToolDetector` or the `ReasoningDetector` of a format."""
    return type(f"{kind}_{format_name}", (globals()[kind],), {"format_name": format_name})


def prepare_request(result: Any, serving: Any, request: Any, *rest: Any) -> None:
    """Leave special tokens in the text if they are markers of reasoning: SGLang lists its own parsers only. Have the
    grammar of calls and of JSON answers hold from the first token if the model may think or not: SGLang waits for the
    end of a thought, and refuses the blank line after it."""
    served = getattr(getattr(serving, "_reasoning_detector", None), "served", None)
    if served is None or not served.reasons:
        return
    request.skip_special_tokens = request.skip_special_tokens and not served.needs_special_text
    prompt = _opened(served, _wants_a_thought(request, served))
    waits = not IN_GRAMMAR or served.reasoning_after_text(prompt) == "open"
    tools = request.tools if request.tool_choice != "none" else None
    constrains = bool(tools) and (request.tool_choice != "auto" or not request.parallel_tool_calls)
    if any(getattr(request, name, None) for name in ("response_format", "regex", "ebnf")):
        form = _asked_json(request) if IN_GRAMMAR and request.tool_choice in ("auto", "none") else None
        prefix, reasoning = (served.after_thought(prompt), False) if waits else (prompt, None)
        tag = form and structural_tag(served, request, _chat_shape(tools or ()), prefix, reasoning, form)
        constrains, request.response_format = bool(tag), tag or request.response_format
    if constrains and not waits:
        request.custom_params = {**(request.custom_params or {}), IN_GRAMMAR: True}


def _wants_a_thought(request: Any, served: Served) -> bool | None:
    """Return whether a request wants a thought, None if it does not say. If it says so by another variable of its
    template than the one that SGLang asks for, set that one."""
    given = request.chat_template_kwargs or {}
    switch, template = getattr(served.analysis, "switch", ""), chat_template_of(served.tokenizer) or ""
    for name in SWITCHES:
        if switch and isinstance(given.get(name), bool) and re.search(rf"(?<![\w</]){name}(?![\w>])", template):
            request.chat_template_kwargs = given = {switch: given[name], **given}
    return given[switch] if isinstance(given.get(switch), bool) else None


def _asked_json(request: Any) -> dict[str, Any] | None:
    """Return the JSON that an answer must be as a format of structural tags; None if a request asks for none."""
    form = request.response_format
    if form is None or form.type not in ("json_object", "json_schema"):
        return None
    schema = form.json_schema.schema_ if form.type == "json_schema" else {"type": "object"}
    return {"type": "json_schema", "json_schema": schema}
