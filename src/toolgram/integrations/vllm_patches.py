"""Every place where toolgram reaches into vLLM, with its reason, the versions that were tried, and what happens without
it. `tests/integrations/test_vllm_patches.py` fails if vLLM changes one of them.

vLLM cannot register a parser of everything (0.33: `ParserManager` composes a class of its own from a tool parser and a
reasoning parser; `unified_parser_cls` asks for a `response_template` in the tokenizer). What vLLM does not pass to
parsers is known only to the class that drives them. Other parsers are unaffected: `drive` changes the one class that
vLLM has just composed from toolgram's, and the two others act on what is marked as toolgram's and pass everything else
to the original.
"""

from __future__ import annotations

import functools
import os
from asyncio import to_thread
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from importlib import import_module
from inspect import getattr_static, signature
from typing import Any, NamedTuple

from toolgram.integrations.answers import WHOLE
from toolgram.integrations.observing import logger, warn_once
from toolgram.integrations.vllm_surface import Ended, arguments_delta, content_delta, reasoning_delta

PATCHES_VARIABLE = "TOOLGRAM_VLLM_PATCHES"
_DONE = "_patched_by_toolgram"
MALFORMED_FIELD = "toolgram_malformed_calls"  # in the `vllm_xargs` of a request


def takes(function: Any, *names: str) -> bool:
    """Return whether a function has these parameters first, in this order; `self` and `cls` do not count."""
    try:
        found = [name for name in signature(function).parameters if name not in ("self", "cls")]
    except (TypeError, ValueError):
        return False
    return found[: len(names)] == list(names)


# The methods that the driver overrides, with their parameters; `set_prompt_token_ids` came with 0.32.
DRIVEN: Mapping[str, Sequence[str]] = {
    "adjust_request": ("request",),
    "is_reasoning_end": ("input_ids",),
    "parse": ("model_output", "request", "enable_auto_tools", "model_output_token_ids"),
    "parse_delta": ("delta_text", "delta_token_ids", "request", "prompt_token_ids", "finished"),
}


def drive(owner: type[Any], driver: type[Any], base_name: str = "DelegatingParser") -> bool:
    """Let a class that vLLM has composed from toolgram's parsers inherit from `driver`, which inherits from vLLM's.

    Reason: the ids of a whole answer (only its id tells a real marker from a quoted one), the prompt of a tool parser
    without reasoning parser, the request of a stream that never left reasoning, and that a delta is the last one.
    Versions: 0.31 to 0.33. Without: text decides in whole answers, and content after arguments is left out at an end.
    """
    base = next((each for each in owner.__bases__ if each.__name__ == base_name), None)
    if switched_off() or base is None:
        return False
    unlike = [name for name, given in DRIVEN.items() if not takes(getattr(base, name, None), *given)]
    if unlike:
        warn_once(f"this vLLM differs ({base_name}.{', '.join(unlike)}): the two parsers work independently")
        return False
    owner.__bases__ = tuple(driver if each is base else each for each in owner.__bases__)
    return True


def switched_off() -> bool:
    """Return whether nothing of vLLM's is to be changed: for a vLLM with the patches of `integrations/upstream`."""
    return os.environ.get(PATCHES_VARIABLE) == "off"


def _in_order(original: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
    """Write the arguments of an open call before the content that comes after them.

    vLLM writes content before calls. Content after the arguments of an open call would begin that call again without a
    name, and the connection breaks.
    """

    def split_delta(delta: Any) -> list[Any]:
        if isinstance(delta, Ended):
            return [part for each in delta.parts() for part in original(each)]
        return original(delta)

    return split_delta


def _marked(original: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a chat request that was made from one of Anthropic's.

    vLLM decodes the arguments of every call, so an answer with a cut-off call is lost.
    """

    def convert(cls: Any, *args: Any, **kwargs: Any) -> Any:
        request = original(cls, *args, **kwargs)
        request.vllm_xargs = {**(getattr(request, "vllm_xargs", None) or {}), MALFORMED_FIELD: WHOLE}
        return request

    return convert


LATER: ContextVar[list[Callable[[], object]] | None] = ContextVar("LATER", default=None)
SERVER_TEMPLATE: ContextVar[str] = ContextVar("SERVER_TEMPLATE", default="")  # the --chat-template of this request


def _off_the_loop(original: Callable[..., Any]) -> Callable[..., Any]:
    """Adjust a request in a thread, after its prompt was made, and note the server's template while that is made.

    vLLM calls `adjust_request` in its event loop, and a grammar for tools that are new takes up to 0.1 s to write. A
    format derived from the tokenizer's template may not fit the server's, which vLLM does not show to parsers.
    """

    async def preprocess_chat(*args: Any, **kwargs: Any) -> Any:
        jobs: list[Callable[[], object]] = []
        SERVER_TEMPLATE.set(getattr(args[0], "chat_template", None) or "")
        before = LATER.set(jobs)
        try:
            made = await original(*args, **kwargs)
        finally:
            LATER.reset(before)
        for job in jobs:
            await to_thread(job)
        return made

    return preprocess_chat


class Patch(NamedTuple):
    """One function of vLLM that toolgram wraps, known in 0.31 to 0.33, and the wrapper."""

    where: str  # "module:class" or "module"
    name: str
    parameter: str
    around: Callable[[Any], Any]
    without: str  # what happens if it is not found

    @property
    def owner(self) -> Any:
        """Return the module or the class that has the function."""
        module, _, kind = self.where.partition(":")
        return getattr(import_module(module), kind) if kind else import_module(module)

    def apply(self) -> bool:
        """Wrap the function, once. Return whether it is wrapped."""
        owner = self.owner
        found = getattr_static(owner, self.name, None)
        original = found.__func__ if isinstance(found, classmethod) else found
        if hasattr(original, _DONE):
            return True
        if not takes(original, self.parameter):
            return False
        made = functools.wraps(original)(self.around(original))
        setattr(made, _DONE, True)
        setattr(owner, self.name, classmethod(made) if isinstance(found, classmethod) else made)
        return True


PATCHES = (
    Patch(
        "vllm.entrypoints.openai.responses.serving",
        "split_delta",
        "delta",
        _in_order,
        "text after a call that ends with the stream is left out of a Responses stream",
    ),
    Patch(
        "vllm.entrypoints.anthropic.serving:AnthropicServingMessages",
        "to_chat_completion_request",
        "anthropic_request",
        _marked,
        "an answer over /v1/messages, in one message, with a call that was cut off is HTTP 400",
    ),
    Patch(
        "vllm.renderers.online_renderer:OnlineRenderer",
        "preprocess_chat",
        "request",
        _off_the_loop,
        "while a grammar is written for tools that are new, the server does nothing else",
    ),
)


@functools.lru_cache(maxsize=1)
def apply_patches() -> Sequence[str]:
    """Apply the patches once, and return the names of those that fit. Log what happens without the others."""
    found: list[str] = []
    if switched_off():
        return found
    for patch in PATCHES:
        try:
            done = patch.apply()
        except (ImportError, AttributeError, TypeError) as error:
            logger.debug("toolgram: %s: %r", patch.name, error)
            done = False
        if done:
            found.append(patch.name)
        else:
            warn_once(f"this vLLM differs ({patch.where}, {patch.name}): {patch.without}")
    return tuple(found)


# --- messages of one field ------------------------------------------------------------------------------------------

# A server makes a message for every delta, and its constructor costs as much as reading the delta. So one message of
# the constructor is looked at, at import, and copied from then on. Versions: pydantic 2.12 to 2.14. Without: the
# constructors, if a copied message differs from theirs, in values or in JSON.
_PLACES = ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")


def quick_messages() -> tuple[Any, Any, Any] | None:
    """Return what makes content, reasoning and arguments without constructors; None if that gives something else."""
    try:
        sample, new = arguments_delta(0, ""), object.__new__
        message_kind, message_values = type(sample), dict(sample.__dict__)
        call_kind, call_values = type(sample.tool_calls[0]), dict(sample.tool_calls[0].__dict__)
        function_kind, function_values = type(call_values["function"]), dict(call_values["function"].__dict__)
        keeps_more = sample.__pydantic_extra__ is not None
        # Found once: by name, each of them costs twice as much.
        put_values, put_names, put_more, put_private = (
            next(kind.__dict__[name] for kind in type(sample).__mro__ if name in kind.__dict__).__set__
            for name in _PLACES
        )

        def filled(kind: Any, values: dict[str, Any], names: set[str]) -> Any:
            made = new(kind)
            put_values(made, values)
            put_names(made, names)
            put_more(made, {} if keeps_more else None)
            put_private(made, None)
            return made

        def saying(field: str) -> Callable[[str], Any]:
            return lambda text: filled(message_kind, {**message_values, "tool_calls": [], field: text}, {field})

        def arguments(index: int, text: str) -> Any:
            function, call, made = new(function_kind), new(call_kind), new(message_kind)
            put_values(function, {**function_values, "arguments": text})
            put_names(function, {"arguments"})
            put_more(function, {} if keeps_more else None)
            put_private(function, None)
            put_values(call, {**call_values, "index": index, "function": function})
            put_names(call, {"index", "function"})
            put_more(call, {} if keeps_more else None)
            put_private(call, None)
            put_values(made, {**message_values, "tool_calls": [call]})
            put_names(made, {"tool_calls"})
            put_more(made, {} if keeps_more else None)
            put_private(made, None)
            return made

        content, reasoning = saying("content"), saying("reasoning")
        pairs = (
            (content("a"), content_delta("a")),
            (reasoning("a"), reasoning_delta("a")),
            (arguments(1, '{"a'), arguments_delta(1, '{"a')),
        )
        alike = all(
            quick == slow
            and quick.model_dump_json(exclude_unset=True) == slow.model_dump_json(exclude_unset=True)
            and quick.model_dump() == slow.model_dump()
            for quick, slow in pairs
        )
    except (AttributeError, IndexError, StopIteration, TypeError):
        return None
    return (content, reasoning, arguments) if alike else None


quick_content, quick_reasoning, quick_arguments = quick_messages() or (content_delta, reasoning_delta, arguments_delta)
