"""Rendering an untrusted chat template, with exactly the environment that `transformers` gives it.

Strategy: jinja2's immutable sandbox keeps a template from the interpreter, but not from time and memory.  So the parsed
template is instrumented before it is compiled: every round of a loop, every macro call and every condition of a loop
passes a *toll*, which counts and looks at the clock; every operation that can make a text grow out of nothing (`~`,
`+`, `*`, captured blocks, a few filters and methods) is checked for size.  Nothing needs signals, threads or processes,
and what a template without such habits renders is unchanged.  Results are cached by their input, since the phases of
the analysis ask for the same renderings.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedEnvironment

from toolgram.derive.errors import TemplateError

MAX_TEMPLATE = 400_000
MAX_OUTPUT = 1_000_000
MAX_TOLLS = 500_000
MAX_SECONDS = 1.0  # for one rendering
MAX_SECONDS_IN_ALL = 3.0  # for all renderings of a template
_LOOK_AT_CLOCK = 256  # tolls between two looks
_CLOCK = datetime(2025, 6, 15, 12, 0, 0)
_TOLL, _BOUNDED = " toll", " bounded"  # no template can write a name with a blank
_PADDING = frozenset({"center", "ljust", "rjust", "zfill", "expandtabs", "format"})
_CUTTING = frozenset({"split", "rsplit", "partition", "rpartition"})

Message = dict[str, Any]


class _Generation(Extension):
    """Accepts `{% generation %}...{% endgeneration %}`, which marks the assistant's turn for training."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Environment(ImmutableSandboxedEnvironment):
    """The sandbox with a toll and with bounds on growth."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _Generation])
        self.tolls = 0
        self.deadline = 0.0
        self.lenient = False
        self.filters |= {
            "tojson": _tojson,
            "join": _bounded_join(self.filters["join"]),
            "replace": _bounded_replace(self.filters["replace"]),
            "center": _bounded_width(self.filters["center"]),
            "indent": _bounded_width(self.filters["indent"]),
            _TOLL: jinja2.pass_context(lambda context, _: self._toll()),  # with the context: never folded as constant
            _BOUNDED: _bounded,
        }
        self.globals |= {"raise_exception": _raise_exception, "strftime_now": _CLOCK.strftime}

    def _toll(self) -> bool:
        self.tolls += 1
        if self.tolls > MAX_TOLLS:
            raise TemplateError(f"runs through more than {MAX_TOLLS} rounds of loops and macro calls")
        if self.tolls % _LOOK_AT_CLOCK == 0 and time.perf_counter() > self.deadline:
            raise TemplateError("takes too long to render")
        return True

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if self.lenient:
            return SandboxedEnvironment.is_safe_attribute(self, obj, attr, value)
        return super().is_safe_attribute(obj, attr, value)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "*":
            _check_product(left, right)
        elif operator == "**" and (not isinstance(right, (int, float)) or abs(right) > 64):
            raise TemplateError("raises a number to a power beyond the limit")
        elif operator == "%" and isinstance(left, str):
            _check_width(left)
        return _bounded(super().call_binop(context, operator, left, right))

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        method = getattr(__obj, "__name__", "")
        owner = getattr(__obj, "__self__", None)
        if isinstance(owner, str):
            if method in _PADDING:
                _check_padding(owner, args)
            elif method == "replace" and len(args) >= 2:
                _check_replacement(owner, args[0], args[1])
            elif method == "join" and args and isinstance(args[0], Sequence):
                _check_join(owner, args[0])
        elif (
            isinstance(owner, list) and len(owner) + sum(len(each) for each in args if isinstance(each, list)) > 10_000
        ):
            raise TemplateError("builds a list beyond the limit")
        return super().call(__context, __obj, *args, **kwargs)


class ChatTemplate:
    """A compiled chat template.

    `names` are all the names it reads, `compared` the constant texts that it looks for in other texts; `renders` and
    `seconds` count what rendering it has cost.
    """

    def __init__(self, source: str, bos_token: str, eos_token: str, kwargs: Mapping[str, Any] | None = None) -> None:
        if len(source) > MAX_TEMPLATE:
            raise TemplateError(f"has {len(source)} characters, more than {MAX_TEMPLATE}")
        self.environment = _Environment()
        self.tokens = {"bos_token": bos_token, "eos_token": eos_token}
        self.kwargs = dict(kwargs or {})
        self.renders = 0
        self.seconds = 0.0
        self._cache: dict[str, str | TemplateError] = {}
        self._template = self._compile(source)

    def _compile(self, source: str) -> jinja2.Template:
        try:
            tree = self.environment.parse(source)
            parts = list(tree.find_all(nodes.Node))
            self.names = {part.name for part in parts if isinstance(part, nodes.Name) and part.ctx == "load"}
            self.compared = _compared(parts)
            _instrument(parts)
            code = self.environment.compile(tree)
            return jinja2.Template.from_code(self.environment, code, self.environment.make_globals(None))
        except jinja2.TemplateSyntaxError as error:
            raise TemplateError(error.message or "does not parse", error.lineno) from error
        except RecursionError as error:
            raise TemplateError("is nested too deeply") from error
        except (ValueError, SyntaxError, MemoryError, OverflowError) as error:
            raise TemplateError(f"does not compile: {error}") from error

    def render(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Message] | None = None,
        add_generation_prompt: bool = False,
        kwargs: Mapping[str, Any] | None = None,
    ) -> str:
        """The rendered prompt. Raises TemplateError for whatever goes wrong inside the template."""
        key = repr((messages, tools is None or id(tools), add_generation_prompt, kwargs))
        known = self._cache.get(key)
        if known is None:
            variables = {
                "messages": list(messages),
                "tools": None if tools is None else list(tools),
                "documents": None,
                "add_generation_prompt": add_generation_prompt,
                **self.tokens,
                **self.kwargs,
                **(kwargs or {}),
            }
            known = self._cache[key] = self._render_leniently(variables)
        if isinstance(known, TemplateError):
            raise known
        return known

    def _render_leniently(self, variables: dict[str, Any]) -> str | TemplateError:
        """Render; where a template changes lists of its own, which `transformers` refuses, let it, on copies."""
        if not self.environment.lenient:
            result = self._render(variables)
            if not (isinstance(result, TemplateError) and isinstance(result.__cause__, SecurityError)):
                return result
            self.environment.lenient = True
        return self._render(copy.deepcopy(variables))

    def _render(self, variables: dict[str, Any]) -> str | TemplateError:
        self.renders += 1
        environment, begin = self.environment, time.perf_counter()
        environment.tolls, environment.deadline = 0, begin + min(MAX_SECONDS, MAX_SECONDS_IN_ALL - self.seconds)
        pieces: list[str] = []
        size = 0
        try:
            for piece in self._template.root_render_func(self._template.new_context(variables)):
                pieces.append(piece)
                size += len(piece)
                if size > MAX_OUTPUT:
                    raise TemplateError(f"renders more than {MAX_OUTPUT} characters")
                if time.perf_counter() > environment.deadline:
                    raise TemplateError("takes too long to render")
        except Exception as error:  # a template may raise anything; it is untrusted
            return self._explained(error)
        finally:
            self.seconds += time.perf_counter() - begin
        return "".join(pieces)

    def _explained(self, error: Exception) -> TemplateError:
        problem = error.problem if isinstance(error, TemplateError) else str(error) or type(error).__name__
        if isinstance(error, RecursionError):
            problem = "recurses without end"
        explained = TemplateError(problem, self._line(error.__traceback__))
        explained.__cause__ = error
        return explained

    def _line(self, traceback: TracebackType | None) -> int:
        line = 0
        while traceback is not None:
            if traceback.tb_frame.f_code.co_filename == "<template>":
                line = traceback.tb_lineno
            traceback = traceback.tb_next
        return self._template.get_corresponding_lineno(line) if line else 0


def _instrument(parts: Sequence[nodes.Node]) -> None:
    """Make every loop and macro pay the toll, and every text that is captured or joined show its size."""
    for part in parts:
        if isinstance(part, nodes.For):
            part.body.insert(0, _pay(part.lineno))
            if part.test is not None:
                part.test = nodes.And(_toll(part.lineno), part.test, lineno=part.lineno)
        elif isinstance(part, (nodes.Macro, nodes.CallBlock)):
            part.body.insert(0, _pay(part.lineno))
        elif isinstance(part, nodes.AssignBlock):
            part.filter = _bounding(part.filter, part.lineno)
        elif isinstance(part, nodes.Concat):
            part.nodes = [_bounding(nodes.Concat(part.nodes, lineno=part.lineno), part.lineno)]


def _toll(line: int) -> nodes.Filter:
    return nodes.Filter(nodes.Const(None, lineno=line), _TOLL, [], [], None, None, lineno=line)


def _pay(line: int) -> nodes.ExprStmt:
    return nodes.ExprStmt(_toll(line), lineno=line)


def _bounding(node: nodes.Expr | None, line: int) -> nodes.Filter:
    return nodes.Filter(node, _BOUNDED, [], [], None, None, lineno=line)


def _compared(parts: Sequence[nodes.Node]) -> tuple[str, ...]:
    """The constant texts that the template looks for in other texts: `'x' in text`, `text.split('x')`."""
    texts: list[str] = []
    for part in parts:
        if isinstance(part, nodes.Compare) and isinstance(part.expr, nodes.Const):
            texts += [str(part.expr.value)] if any(operand.op in ("in", "notin") for operand in part.ops) else []
        elif isinstance(part, nodes.Call) and isinstance(part.node, nodes.Getattr) and part.node.attr in _CUTTING:
            texts += [str(argument.value) for argument in part.args if isinstance(argument, nodes.Const)]
    return tuple(dict.fromkeys(texts))


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: str) -> NoReturn:
    raise TemplateError(str(message))


def _bounded(value: Any) -> Any:
    if isinstance(value, (str, list, tuple)) and len(value) > MAX_OUTPUT:
        raise TemplateError(f"builds a text or list longer than {MAX_OUTPUT}")
    return value


def _check_product(left: Any, right: Any) -> None:
    for value, times in ((left, right), (right, left)):
        if isinstance(value, (str, list, tuple)) and isinstance(times, int) and len(value) * times > MAX_OUTPUT:
            raise TemplateError(f"builds a text or list longer than {MAX_OUTPUT}")


def _check_width(pattern: str) -> None:
    if any(len(digits) > 5 for digits in "".join(c if c.isdigit() else " " for c in pattern).split()):
        raise TemplateError("formats to a width beyond the limit")


def _check_padding(owner: str, args: Iterable[Any]) -> None:
    _check_width(owner)
    if any(isinstance(width, int) and width > MAX_OUTPUT for width in args):
        raise TemplateError("pads a text beyond the limit")


def _check_replacement(text: str, old: Any, new: Any) -> None:
    if isinstance(old, str) and isinstance(new, str) and text.count(old) * len(new) > MAX_OUTPUT:
        raise TemplateError(f"builds a text longer than {MAX_OUTPUT}")


def _check_join(separator: str, items: Sequence[Any]) -> None:
    if sum(len(item) + len(separator) for item in items if isinstance(item, str)) > MAX_OUTPUT:
        raise TemplateError(f"builds a text longer than {MAX_OUTPUT}")


def _bounded_join(join: Callable[..., Any]) -> Callable[..., Any]:
    @jinja2.pass_eval_context
    def bounded(eval_ctx: Any, value: Any, d: str = "", attribute: Any = None) -> Any:
        items = list(value)
        _check_join(str(d), items)
        return join(eval_ctx, items, d, attribute)

    return bounded


def _bounded_replace(replace: Callable[..., Any]) -> Callable[..., Any]:
    @jinja2.pass_eval_context
    def bounded(eval_ctx: Any, s: Any, old: Any, new: Any, count: Any = None) -> Any:
        _check_replacement(str(s), old, new)
        return replace(eval_ctx, s, old, new, count)

    return bounded


def _bounded_width(function: Callable[..., Any]) -> Callable[..., Any]:
    def bounded(s: Any, width: Any = 4, *args: Any, **kwargs: Any) -> Any:
        if isinstance(width, int) and width > 10_000:
            raise TemplateError("pads a text beyond the limit")
        return function(s, width, *args, **kwargs)

    return bounded
