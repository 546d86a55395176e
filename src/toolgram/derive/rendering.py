"""Rendering an untrusted chat template, with exactly the environment that `transformers` gives it.

Strategy: the sandbox (`sandbox.py`) bounds what a template does; here it is compiled, each rendering gets its share of
the time, and its output is bounded.  Nothing needs signals, threads or processes.  Results are cached by their input,
since the phases of the analysis ask for the same renderings.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError

from toolgram.derive.budget import CLOCK, keep, look, stop, time_left
from toolgram.derive.clues import Clues
from toolgram.derive.errors import CostlyTemplate, OutOfBudget, TemplateError
from toolgram.derive.sandbox import Environment, instrument
from toolgram.limits import MAX_RENDERING, MAX_TEMPLATE, RENDERING_SECONDS

# What a Go template has, and no Jinja: a field of its own, or the end of a block.
_GO = re.compile(r"\{\{-?\s*(?:(?:if|range|with|else if)\s[^{}]{0,200}?)?[.$][A-Z]\w*|\{\{-?\s*end\s*-?\}\}")
_IS_GO = (
    "is a Go template, as Ollama has, and no Jinja; give the chat template of the model itself, which is in its "
    "tokenizer_config.json, its chat_template.jinja or its GGUF file"
)

Message = dict[str, Any]


class ChatTemplate:
    """A compiled chat template.

    `clues` are what its source reads; `renders` counts its renderings.
    """

    def __init__(self, source: str, bos_token: str, eos_token: str, kwargs: Mapping[str, Any] | None = None) -> None:
        if len(source) > MAX_TEMPLATE:
            raise TemplateError(f"has {len(source)} characters, more than {MAX_TEMPLATE}")
        self.environment = Environment()
        self.tokens = {"bos_token": bos_token, "eos_token": eos_token}
        self.kwargs = dict(kwargs or {})
        self.renders = 0
        self._cache: dict[str, str | TemplateError] = {}
        self._template = self._compile(source)

    def _compile(self, source: str) -> jinja2.Template:
        try:
            look("compiling the template")
            tree = self.environment.parse(source)
            look()
            parts = list(tree.find_all(nodes.Node))
            self.clues = Clues(parts, self.environment.globals)
            instrument(parts)
            look()
            code = self.environment.compile(tree)
            return jinja2.Template.from_code(self.environment, code, self.environment.make_globals(None))
        except jinja2.TemplateSyntaxError as error:
            if _GO.search(source):
                raise TemplateError(_IS_GO) from error
            raise TemplateError(error.message or "does not parse", error.lineno) from error
        except (RecursionError, MemoryError) as error:
            raise CostlyTemplate("is nested too deeply") from error
        except (ValueError, SyntaxError, OverflowError) as error:
            raise TemplateError(f"does not compile: {error}") from error

    def render(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Message] | None = None,
        add_generation_prompt: bool = False,
        kwargs: Mapping[str, Any] | None = None,
    ) -> str:
        """Return the rendered prompt. Raises TemplateError for whatever goes wrong inside the template."""
        key = repr((messages, tools is None or id(tools), add_generation_prompt, kwargs))
        known = self._cache.get(key)
        if known is None:
            look()
            variables = self._variables(messages, tools, add_generation_prompt, kwargs)
            known = self._cache[key] = self._render_leniently(variables)
            keep(len(key) + (len(known) if isinstance(known, str) else 0))
        if isinstance(known, CostlyTemplate):
            stop(known)
        if isinstance(known, TemplateError):
            raise known
        return known

    def render_once(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Message] | None = None,
        add_generation_prompt: bool = True,
        kwargs: Mapping[str, Any] | None = None,
        most: int = MAX_RENDERING,
    ) -> str:
        """Return a prompt that is not kept, of at most so many characters. Raises TemplateError."""
        variables = self._variables(messages, tools, add_generation_prompt, kwargs)
        said = self._render_leniently(variables, most)
        if isinstance(said, TemplateError):
            raise said
        return said

    def _variables(
        self,
        messages: Sequence[Message],
        tools: Sequence[Message] | None,
        prompt: bool,
        kwargs: Mapping[str, Any] | None,
    ) -> dict[str, Any]:
        listed = {"messages": list(messages), "tools": None if tools is None else list(tools)}
        usual = {"documents": None, "add_generation_prompt": prompt}
        return {**listed, **usual, **self.tokens, **self.kwargs, **(kwargs or {})}

    def _render_leniently(self, variables: dict[str, Any], most: int = MAX_RENDERING) -> str | TemplateError:
        """Render; if a template changes lists of its own, which `transformers` refuses, let it, on copies."""
        if not self.environment.lenient:
            result = self._render(variables, most)
            if not (isinstance(result, TemplateError) and isinstance(result.__cause__, SecurityError)):
                return result
            self.environment.lenient = True
        return self._render(copy.deepcopy(variables), most)

    def _render(self, variables: dict[str, Any], most: int) -> str | TemplateError:
        self.renders += 1
        deadline = CLOCK() + min(RENDERING_SECONDS, time_left())
        self.environment.meter.begin(deadline)
        pieces: list[str] = []
        size = 0
        output = self._template.root_render_func(self._template.new_context(variables))
        try:
            for piece in output:
                pieces.append(piece)
                size += len(piece)
                if size > most:
                    raise CostlyTemplate(f"renders more than {most} characters")
                if CLOCK() > deadline:
                    raise CostlyTemplate("takes too long to render")
        except OutOfBudget:
            raise
        except Exception as error:  # a template may raise anything; it is untrusted
            return self._explained(error, getattr(output, "gi_frame", None))
        return "".join(pieces)

    def _explained(self, error: Exception, at: FrameType | None) -> TemplateError:
        line = at.f_lineno if at is not None else 0  # if it is raised here, between two pieces of the output
        traceback = error.__traceback__
        while traceback is not None:
            if traceback.tb_frame.f_code.co_filename == "<template>":
                line = traceback.tb_lineno
            traceback = traceback.tb_next
        line = self._template.get_corresponding_lineno(line) if line else 0
        if isinstance(error, TemplateError):
            explained = type(error)(error.problem, line)
        elif isinstance(error, RecursionError):  # soon over, and of a real template that is given another form of tools
            explained = TemplateError("recurses without end", line)
        elif isinstance(error, MemoryError):
            explained = CostlyTemplate("needs too much memory", line)
        else:
            explained = TemplateError(_said(error), line)
        # The error is kept, but not its frames, which hold all that the template has made.
        error.__traceback__ = error.__context__ = error.__cause__ = None
        explained.__cause__ = error
        return explained


def _said(error: Exception) -> str:
    try:
        return str(error) or type(error).__name__
    except Exception:  # an argument of the error may refuse to be printed
        return type(error).__name__
