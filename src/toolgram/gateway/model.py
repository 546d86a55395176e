"""The model of the gateway: its chat template, its format, and the prompt of a request.

Strategy: a server's raw endpoint takes text. So the template is rendered here, in the sandbox that derivation uses, and
what it writes for the assistant tells the parser where to begin.

**Text of special tokens.** A server reads `<|im_end|>` in a prompt as the token, wherever it came from. So such texts
are taken out of everything that a request says: by default a character without width is put into them, which a person
cannot see and a tokenizer does not read as the token; with `special_text="refuse"` the request is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeAlias

from toolgram.derive.errors import TemplateError
from toolgram.derive.rendering import ChatTemplate
from toolgram.errors import ToolgramError
from toolgram.export.expressions import Export
from toolgram.formats import Format
from toolgram.gateway.asking import Ask
from toolgram.gateway.errors import Refusal
from toolgram.limits import MAX_PROMPT, MAX_REQUEST_DEPTH
from toolgram.observing.observed import stop_tokens
from toolgram.spec.data import Literal as Marker

SpecialText: TypeAlias = Literal["neutralise", "refuse"]

_INVISIBLE = "\u200b"
# Texts in a template that look like tokens which end or begin something, for a model whose tokens are not known.
_LOOKS_SPECIAL = re.compile(r"<[|｜][^<>|｜\s]{1,60}[|｜]>|</?s>|<(?:start|end)_of_\w{1,30}>|\[/?[A-Z][A-Z_]{2,40}\]")


class Prompt(NamedTuple):
    """What is sent to the server: `text`, and `prefix`, what of it the answer begins with for the parser."""

    text: str
    prefix: str


@dataclass
class Model:
    """A template and a format. `special` are the known texts of its special tokens.

    Clients know it by `name`. `served` is its name at the upstream server, or None if that server reports none.
    """

    name: str
    fmt: Format
    template_text: str
    bos_token: str = ""
    eos_token: str = ""
    special: tuple[str, ...] = ()
    special_text: SpecialText = "neutralise"
    served: str | None = None
    clock: Callable[[], datetime] = datetime.now
    stop: tuple[str, ...] = field(init=False)
    preserved: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._template = ChatTemplate(self.template_text, self.bos_token, self.eos_token)
        self._template.environment.globals["strftime_now"] = lambda form: self.clock().strftime(form)
        spec = self.fmt.spec
        texts = {
            token: shape.text
            for token in spec.special_tokens
            if isinstance(shape := spec.terminals[token], Marker) and shape.text.strip()
        }
        stops = stop_tokens(spec, self.fmt.observed_paths)
        self.stop = tuple(sorted(text for token, text in texts.items() if token in stops))
        self.preserved = tuple(sorted(texts.values()))
        known = {self.bos_token, self.eos_token, *self.special, *texts.values()}
        known |= set(_LOOKS_SPECIAL.findall(self.template_text))
        ordered = sorted((text for text in known if len(text.strip()) > 1), key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    @property
    def takes_tools(self) -> bool:
        """Whether the template tells the model about tools, and its calls can be read."""
        calls = any("name" in each.actions for each in self.fmt.spec.transitions)
        return calls and "tools" in self._template.clues.names

    @property
    def _analysis(self) -> Any:
        return self.fmt.report.analysis if self.fmt.report is not None else None

    def prompt(self, ask: Ask) -> Prompt:
        """Return the prompt of a request. Raises Refusal, also if the template refuses the request."""
        if ask.tools and ask.tool_choice != "none" and not self.takes_tools:
            raise Refusal(f"{self.name} takes no tools: its chat template says nothing about them", param="tools")
        messages = [self._clean(self._shaped(message), "messages") for message in ask.messages]
        tools = self._clean(ask.tools, "tools") if ask.tools and ask.tool_choice != "none" else None
        variables = self._clean(ask.template, "chat_template_kwargs") | self._switches(ask)
        text = self._rendered(messages, tools, variables, True)
        opened = self._opened(text, messages, tools, variables)
        continued = self._clean(ask.continued, "messages")
        if len(text) > MAX_PROMPT:
            raise Refusal(f"the prompt has more than {MAX_PROMPT} characters", 413)
        return Prompt(text + continued, opened + continued)

    def grammar(self, ask: Ask, prompt: Prompt, target: str) -> Export:
        """Return the grammar that enforces what a request asks for. Raises Refusal if none can."""
        try:
            return self.fmt.export(
                target,
                tools=ask.tools,
                tool_choice=ask.tool_choice,
                parallel_tool_calls=ask.parallel,
                reasoning=False if ask.thinking is False else None,
                json_schema=ask.json_schema,
                prefix=prompt.prefix,
                text_before_calls=not ask.must_call,
            )
        except ToolgramError as error:
            raise Refusal(f"no grammar can be written for this request: {error}", param="tools") from None

    def _switches(self, ask: Ask) -> dict[str, Any]:
        """Return the variable that turns reasoning on or off, if the request asks for that."""
        analysis = self._analysis
        if ask.thinking is None or analysis is None or not analysis.switch or analysis.switch in ask.template:
            return {}
        return {analysis.switch: ask.thinking}

    def _rendered(self, messages: list[Any], tools: Any, variables: Mapping[str, Any], opened: bool) -> str:
        analysis = self._analysis
        needed = dict(analysis.form.variables) if analysis is not None else {}
        try:
            return self._template.render_once(
                messages, tools=tools, add_generation_prompt=opened, kwargs={**needed, **variables}, most=MAX_PROMPT
            )
        except TemplateError as error:
            raise Refusal(f"the model's chat template refuses this conversation: {error.problem}") from None

    def _opened(self, text: str, messages: list[Any], tools: Any, variables: Mapping[str, Any]) -> str:
        """Return what the prompt has already written for the assistant."""
        analysis = self._analysis
        prompts = analysis.prompts.values() if analysis is not None else ()
        for prompt in sorted(prompts, key=lambda each: -len(each.text)):
            if prompt.text and text.endswith(prompt.text):
                return str(prompt.opened)
        try:
            before = self._rendered(messages, tools, variables, False)
        except Refusal:
            return self.fmt.generation_prompt
        return text[len(before) :] if text.startswith(before) else self.fmt.generation_prompt

    def _shaped(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return a message in the form that this template takes."""
        analysis = self._analysis
        form, made = analysis.form if analysis is not None else None, dict(message)
        if made.get("content") == "" and "tool_calls" in made and form is not None:
            made["content"] = form.empty_content
        if form is not None and form.content_in_blocks and isinstance(made.get("content"), str):
            made["content"] = [{"type": "text", "text": made["content"]}]
        if form is not None and made.get("reasoning_content"):
            made |= dict.fromkeys(form.reasoning_keys, made["reasoning_content"])
        as_string = form is not None and form.arguments_as_string
        if "tool_calls" in made:
            made["tool_calls"] = [_with_arguments(call, as_string) for call in made["tool_calls"]]
        return made

    def _clean(self, value: Any, where: str, depth: int = 0) -> Any:
        """Return a value without the text of special tokens, and with valid Unicode. Raises Refusal."""
        if isinstance(value, str):
            return self._clean_text(value, where)
        if depth > MAX_REQUEST_DEPTH:
            raise Refusal(f"{where} is nested too deeply", param=where)
        if isinstance(value, Mapping):
            cleaned = ((self._clean_text(str(key), where), each) for key, each in value.items())
            return {key: self._clean(each, where, depth + 1) for key, each in cleaned}
        if isinstance(value, (list, tuple)):
            return [self._clean(each, where, depth + 1) for each in value]
        return value

    def _clean_text(self, text: str, where: str) -> str:
        text = text.encode("utf-8", "replace").decode()
        if self._special is None or self._special.search(text) is None:
            return text
        if self.special_text == "refuse":
            raise Refusal(f"{where} contains the text of a special token of this model", param=where)
        return self._special.sub(lambda found: found.group()[0] + _INVISIBLE + found.group()[1:], text)


def _with_arguments(call: Mapping[str, Any], as_string: bool) -> dict[str, Any]:
    """Return a call with its arguments as a template takes them: an object, or its JSON."""
    function = dict(call["function"])
    arguments = function["arguments"]
    if as_string:
        function["arguments"] = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    elif isinstance(arguments, str):
        try:
            read = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            read = None
        function["arguments"] = read if isinstance(read, dict) else {"arguments": arguments}
    return {**call, "function": function}
