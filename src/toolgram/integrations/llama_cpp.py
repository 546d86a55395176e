"""llama-cpp-python: a chat handler that renders, constrains and reads with toolgram. Needs llama-cpp-python and jinja2.

    llama = Llama("model.gguf", chat_handler=ChatHandler())
    llama.create_chat_completion(messages, tools=tools, tool_choice="required")

or, for code that chooses a handler by its name, `register()` and `Llama("model.gguf", chat_format="toolgram")`.

Strategy: requests are read as the gateway reads them, so the same ones are refused, and text of special tokens in
messages is neutralised. The template in the GGUF file is rendered in derivation's sandbox, and the format is derived
from it. A GBNF grammar enforces a required call. llama-cpp-python's own completion hides special tokens, which may be
markers, so tokens come from `Llama.generate`: each goes to the parser with its id, and a marker that the model only
quotes is text.
"""

from __future__ import annotations

import codecs
import ctypes
from collections.abc import Iterator, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import llama_cpp
from llama_cpp import LlamaGrammar, LogitsProcessorList
from llama_cpp.llama_chat_format import register_chat_completion_handler

from toolgram.adapters import ChatChunks, to_chat_completion
from toolgram.adapters.handing_out import HandedOut
from toolgram.adapters.shaping import Calls
from toolgram.adapters.usage import Usage
from toolgram.errors import ToolgramError
from toolgram.events import Event
from toolgram.formats import Format
from toolgram.gateway.asking import Ask
from toolgram.gateway.endings import StopTexts
from toolgram.gateway.loading import TemplateFiles, format_of
from toolgram.gateway.model import Model, Prompt
from toolgram.gateway.requests import read_chat
from toolgram.integrations.pieces import NO_TOKEN, Coming
from toolgram.runtime.special_tokens import Piece

NAME = "toolgram"
_SAMPLING = (
    "top_k", "top_p", "min_p", "typical_p", "repeat_penalty", "presence_penalty", "frequency_penalty", "tfs_z",
    "mirostat_mode", "mirostat_tau", "mirostat_eta",
)  # fmt: skip
_BODY = (
    "messages", "tools", "tool_choice", "functions", "function_call", "response_format", "stop", "max_tokens",
    "logit_bias", "logprobs", "top_logprobs", "parallel_tool_calls", "reasoning_effort", "chat_template_kwargs",
)  # fmt: skip


class ChatHandler:
    """A chat handler of llama-cpp-python for any model with a chat template; one serves any number of models.

    `fmt` overrides the format derived from the template, `template` the template in the GGUF file. `calls` and
    `reasoning` are those of `adapters.ChatChunks`. `thinking` turns reasoning on or off, if the template can;
    `variables` are more variables for the template. `Llama.create_chat_completion` takes neither.
    """

    def __init__(
        self, fmt: Format | None = None, template: str | None = None, calls: Calls = "streamed",
        reasoning: str | None = "reasoning_content", thinking: bool | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self._fmt, self._template = fmt, template
        self._thinking, self._variables = thinking, dict(variables or {})
        self._calls, self._reasoning = calls, reasoning
        self._models: WeakKeyDictionary[Any, Model] = WeakKeyDictionary()

    def __call__(self, *, llama: Any, stream: bool = False, **options: Any) -> Any:
        """Return what `Llama.create_chat_completion` returns: a completion, or an iterator of its chunks. Raise
        ToolgramError for a request that cannot be answered, before anything is generated."""
        body = {name: options[name] for name in _BODY if options.get(name) not in (None, [])}
        if body.get("max_tokens", 1) < 1:  # no limit, in llama-cpp-python
            del body["max_tokens"]
        ask = read_chat(body)
        ask.thinking = self._thinking if ask.thinking is None else ask.thinking
        ask.template = {**self._variables, **ask.template}
        model = self.model_of(llama)
        prompt = model.prompt(ask)
        grammar = options.get("grammar")
        if ask.must_call or ask.json_schema is not None:
            grammar = LlamaGrammar.from_string(model.grammar(ask, prompt, "gbnf").text, verbose=False)
        output = _Output(llama, model, ask, prompt, options, grammar)
        name = options.get("model") or llama.model_path
        if stream:
            return self._chunks(output, name)
        for _ in output.events():
            pass
        usage = Usage(len(output.tokens), output.written)
        answer = output.calls.answer(self._calls)
        return to_chat_completion(answer, name, usage=usage, reasoning=self._reasoning)

    def _chunks(self, output: _Output, name: str) -> Iterator[dict[str, Any]]:
        chunks = ChatChunks(name, calls=self._calls, reasoning=self._reasoning)
        yield from chunks.start()
        for events in output.events():
            yield from chunks.feed(events)
        yield from chunks.end((), "stop" if output.calls.over else output.reason)

    def model_of(self, llama: Any) -> Model:
        """Return the template, format and special tokens of a model, cached. Raise ToolgramError without a template."""
        known = self._models.get(llama)
        if known is None:
            template = self._template or llama.metadata.get("tokenizer.chat_template")
            if not template:
                raise ToolgramError("this model has no chat template; give one: ChatHandler(template=...)")
            vocabulary = llama_cpp.llama_model_get_vocab(llama.model)

            def text_of(token: int) -> str:
                return token_text(vocabulary, token).decode("utf-8", "replace") if token >= 0 else ""

            control = (at for at in range(llama.n_vocab()) if llama_cpp.llama_vocab_is_control(vocabulary, at))
            special = tuple(filter(None, map(text_of, control)))
            bos, eos = map(text_of, (llama.token_bos(), llama.token_eos()))
            files = TemplateFiles(template, bos, eos, special)
            known = Model(llama.model_path, format_of(files, self._fmt), template, bos, eos, special)
            self._models[llama] = known
        return known


class _Output:
    """One output of a model. Its message, reason and number of tokens are known after `events`."""

    def __init__(
        self, llama: Any, model: Model, ask: Ask, prompt: Prompt, options: Mapping[str, Any], grammar: Any
    ) -> None:
        self._llama = llama
        self._vocabulary = llama_cpp.llama_model_get_vocab(llama.model)
        self.tokens = llama.tokenize(prompt.text.encode(), add_bos=False, special=True)
        self._room = llama.n_ctx() - len(self.tokens)
        if self._room < 1:
            raise ToolgramError(f"the prompt has {len(self.tokens)} tokens, but the context has {llama.n_ctx()}")
        self._most = min(ask.limit or self._room, self._room)
        self._stops = StopTexts([*dict.fromkeys([*model.stop, *ask.stop])])
        self._ends = model.stop  # the model's own stop strings
        self._options = {name: options[name] for name in _SAMPLING if options.get(name) is not None}
        self._options |= {"temp": options.get("temperature", 0.2), "grammar": grammar}
        self._options["logits_processor"] = _biased(options.get("logits_processor"), ask.sampling.get("logit_bias"))
        if options.get("seed") is not None:
            llama.set_seed(options["seed"])
        fmt = model.fmt if ask.tools and ask.tool_choice != "none" else model.fmt.text_only
        # With a grammar, a marker may be spelled in text, so its text decides. Otherwise a marker is its token.
        texts = fmt.program.special.values() if grammar is None else ()
        special = {text: number for text in texts if (number := self._id_of(text)) is not None}
        self.parser = fmt.parser(ask.tools or None, prompt.prefix, special_tokens=special)
        self.calls = HandedOut(ask.parallel)
        self.parser.fold_with(self.calls)
        self.written = 0
        self.reason: str | None = None

    def _id_of(self, text: str) -> int | None:
        ids = self._llama.tokenize(text.encode(), add_bos=False, special=True)
        return ids[0] if len(ids) == 1 else None

    def events(self) -> Iterator[list[Event]]:
        """Yield the events of the output as its tokens come."""
        for pieces in self._pieces():
            if events := self.calls.events(self.parser.feed(pieces)):
                yield events
            if self.calls.over:
                return
        cut = self._stops.found is not None and self._stops.found not in self._ends
        yield self.calls.events(self.parser.close(None if cut else self.reason))

    def _pieces(self) -> Iterator[list[Piece]]:
        """Yield text with its tokens, in whole characters. Set the reason at the end."""
        coming, decoder = Coming(), codecs.getincrementaldecoder("utf-8")("replace")
        for token in self._llama.generate(self.tokens, **self._options):
            self.written += 1
            if llama_cpp.llama_vocab_is_eog(self._vocabulary, token):
                self.reason = "stop"
                break
            text = decoder.decode(token_text(self._vocabulary, token))
            coming.add(text, token)
            if pieces := coming.take(len(self._stops.feed(text))):
                yield pieces
            if self._stops.found is not None:
                self.reason = "stop"
                return
            if self.written >= self._most:
                self.reason = "length"
                break
        text = decoder.decode(b"", final=True)
        coming.add(text, NO_TOKEN)
        if pieces := coming.take(len(self._stops.feed(text) + self._stops.end())):
            yield pieces


def token_text(vocabulary: Any, token: int) -> bytes:
    """Return the text of a token, special ones included. llama-cpp-python's own reader stops at 32 bytes."""
    size = 64
    while True:
        buffer = (ctypes.c_char * size)()
        written = llama_cpp.llama_token_to_piece(vocabulary, token, buffer, size, 0, True)
        if written >= 0:
            return bytes(buffer.raw[:written])
        size = -written


def _biased(given: Any, bias: Mapping[str, float] | None) -> Any:
    """Return the logits processors: the caller's own, and one for `logit_bias`."""
    if not bias:
        return given
    wanted = {int(token): float(value) for token, value in bias.items()}

    def add(_: Any, scores: Any) -> Any:
        for token, value in wanted.items():
            scores[token] += value
        return scores

    return LogitsProcessorList([*(given or ()), add])


def register(name: str = NAME, **settings: Any) -> None:
    """Register the handler with llama-cpp-python for `chat_format=`; `settings` are those of `ChatHandler`."""
    register_chat_completion_handler(name)(ChatHandler(**settings))


__all__ = ["ChatHandler", "register"]
