"""The environment that chat templates run in: what `transformers` gives them, with bounds on time and memory.

Strategy: jinja2's immutable sandbox keeps a template from the interpreter, but not from time and memory.  A template
can only get something done at a few kinds of places, and each of them is bounded before it runs:

* Every round of a loop, every call, filter and test pays a *toll*, which counts and looks at the clock.
* Whatever looks into a value (printing, joining, comparing, hashing, most filters) weighs it first, part by part as
  often as a part is there: lists that share themselves are small in memory, and larger than any memory in print.
* Operations whose result is larger than what goes into them (powers, products, padding, formatting, replacing) are
  checked by the size that they would have.
* All text that is printed or captured, and all that operations make, is added up for each rendering.

What a template without such operations renders is unchanged.  An operation that is not in this list may still leak; for
that there is `derive_format(..., isolate=True)`.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from string import Formatter
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedEnvironment
from jinja2.utils import Namespace

from toolgram import limits
from toolgram.derive.budget import CLOCK
from toolgram.derive.errors import CostlyTemplate, TemplateError

_LOOK_AT_CLOCK = 64  # tolls between two looks
_LARGE = 10_000  # work that is a reason to look
_CLOCK = datetime(2025, 6, 15, 12, 0, 0)
_TOLL, _BOUNDED, _WEIGHED, _SLICE = " toll", " bounded", " weighed", " slice"  # no template can write such a name

# Filters and tests that look at no more than the surface of a value.
_SHALLOW_FILTERS = frozenset(
    {"abs", "attr", "count", "d", "default", "first", "items", "last", "length", "list", "map", "reject", "rejectattr",
     "reverse", "select", "selectattr"}
)  # fmt: skip
_SHALLOW_TESTS = frozenset(
    {"boolean", "callable", "defined", "false", "filter", "float", "integer", "iterable", "mapping", "none", "number",
     "odd", "even", "sameas", "sequence", "string", "test", "true", "undefined"}
)  # fmt: skip
# Filters that look into every item, for which a generator is made a list before.
_CONSUMING = frozenset({"join", "sum", "sort", "unique", "min", "max", "groupby"})
_NOT_LINEAR = frozenset({"pprint", "striptags", "title", "unescape", "urlize", "wordwrap", "xmlattr"})
# Filters and methods with numbers that say how much is to be made, and those whose work is the product of two lengths.
_COUNTING = frozenset(
    {"batch", "slice", "center", "indent", "round", "truncate", "wordwrap", "tojson", "ljust", "rjust", "zfill",
     "to_bytes", "expandtabs"}
)  # fmt: skip
_SEARCHING = frozenset({"rfind", "rindex", "rpartition", "rsplit", "strip", "lstrip", "rstrip", "trim"})
_HOLDS_ITEMS: Any = (list, tuple, set, frozenset, type({}.keys()), type({}.values()), type({}.items()))


class Meter:
    """What one rendering has used so far."""

    __slots__ = ("deadline", "tolls", "work")

    def __init__(self) -> None:
        self.tolls = self.work = 0
        self.deadline = 0.0

    def begin(self, deadline: float) -> None:
        """Begin a rendering."""
        self.tolls = self.work = 0
        self.deadline = deadline

    def pay(self, work: int = 1) -> bool:
        """Count a step that handles so many characters or parts. Raises CostlyTemplate if that is too much."""
        self.tolls += 1
        self.work += work
        if self.tolls > limits.MAX_TOLLS:
            raise CostlyTemplate(f"runs through more than {limits.MAX_TOLLS} rounds of loops and calls")
        if self.work > limits.MAX_WORK:
            raise CostlyTemplate(f"handles more than {limits.MAX_WORK} characters")
        if (work > _LARGE or self.tolls % _LOOK_AT_CLOCK == 0) and CLOCK() > self.deadline:
            raise CostlyTemplate("takes too long to render")
        return True  # it may be a condition

    def weigh(self, *values: Any) -> int:
        """Pay for all that is in some values, and say how much it is. Raises CostlyTemplate if it is too much."""
        total = 0
        pending = [value for value in values if not _is_small(value)]
        while pending:
            value = pending.pop()
            inner: Iterable[Any] = ()
            if isinstance(value, (str, bytes)):
                total += len(value)
            elif isinstance(value, dict):
                total += len(value)
                pending.extend(value)
                inner = value.values()
            elif isinstance(value, _HOLDS_ITEMS):
                inner = value
            elif isinstance(value, Namespace):
                inner = object.__getattribute__(value, "_Namespace__attrs").values()
            elif isinstance(value, int):
                total += value.bit_length() // 4
            pending.extend(inner)
            total += limits.PART_WEIGHT
            if total + len(pending) * limits.PART_WEIGHT > limits.MAX_WEIGHT:
                raise CostlyTemplate(f"handles a value of more than {limits.MAX_WEIGHT // limits.PART_WEIGHT} parts")
        self.pay(total)
        return total


def _is_small(value: Any) -> bool:
    return value is None or isinstance(value, (bool, float)) or (isinstance(value, str) and len(value) < 64)


class _Generation(Extension):
    """Accepts `{% generation %}...{% endgeneration %}`, which marks turns for training; counts the tokens."""

    tags = {"generation"}  # noqa: RUF012

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        for at, token in enumerate(stream):
            if at > limits.MAX_TEMPLATE_TOKENS:
                raise CostlyTemplate(f"has more than {limits.MAX_TEMPLATE_TOKENS} words and signs", token.lineno)
            yield token

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class Environment(ImmutableSandboxedEnvironment):
    """The sandbox with a meter."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self) -> None:
        self.meter = meter = Meter()
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=["jinja2.ext.loopcontrols", _Generation],
            optimized=False,  # nothing is computed before a rendering begins
            finalize=jinja2.pass_context(lambda context, value: self._weighed(value)),
        )
        self.lenient = False
        self.filters["tojson"] = _tojson
        self.filters = {name: self._bounded(name, each, _SHALLOW_FILTERS) for name, each in self.filters.items()} | {
            _TOLL: jinja2.pass_context(lambda context, work: meter.pay(work)),
            _BOUNDED: self._made,
            _WEIGHED: self._weighed,
            _SLICE: slice,
        }
        tests: Mapping[str, Any] = self.tests
        self.tests = {name: self._bounded(name, each, _SHALLOW_TESTS) for name, each in tests.items()}
        self.globals |= {"raise_exception": _raise_exception, "strftime_now": _strftime_now, "range": _range}
        del self.globals["lipsum"]  # which makes text at random

    def _weighed(self, value: Any) -> Any:
        """Weigh what is printed, compared or joined."""
        if not _is_small(value):
            self.meter.weigh(value)
        else:
            self.meter.work += 64
        return value

    def _made(self, value: Any) -> Any:
        """Return what an operation has made: its own size counts, what is in it was made before."""
        if isinstance(value, (str, bytes, list, tuple, dict)):
            if len(value) > limits.MAX_SIZE:
                raise CostlyTemplate(f"builds a text or list longer than {limits.MAX_SIZE}")
            self.meter.pay(len(value) if isinstance(value, (str, bytes)) else len(value) * limits.PART_WEIGHT)
        elif isinstance(value, int) and value.bit_length() > limits.MAX_BITS:
            raise CostlyTemplate("computes a number beyond the limit")
        return value

    def _bounded(self, name: str, function: Callable[..., Any], shallow: frozenset[str]) -> Callable[..., Any]:
        """Return a filter or a test that pays, weighs and shows what it made."""
        skipped = int(getattr(function, "jinja_pass_arg", None) is not None)  # what jinja2 passes before

        @functools.wraps(function)  # with the mark that says what jinja2 passes first
        def bounded(*args: Any, **kwargs: Any) -> Any:
            given, rest = args[:skipped], list(args[skipped:])
            self.meter.pay()
            if name not in shallow:
                rest = [self._whole(each) for each in rest] if name in _CONSUMING else rest
                self.meter.weigh(*rest, *kwargs.values())
            if name == "format":
                _check_percent(str(rest[0]), kwargs or tuple(rest[1:]), sum(map(_size, rest[1:])))
            elif rest:
                _check(name, rest[0], [*rest[1:], *kwargs.values()])
            return self._made(function(*given, *rest, **kwargs))

        return bounded

    def _whole(self, value: Any) -> Any:
        """Return a generator as the list of its items, each of which pays by itself."""
        if not isinstance(value, Iterator):
            return value
        items = []
        for item in value:
            items.append(item)
            self.meter.pay()
        return items

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        meter = __self.meter
        meter.pay()
        meter.weigh(*args, *kwargs.values())
        owner = getattr(__obj, "__self__", None)
        if isinstance(owner, (str, bytes, int)):
            method = getattr(__obj, "__name__", "")
            args = tuple(map(__self._whole, args)) if method == "join" else args
            _check(method, *((args[0], [owner]) if method == "join" and args else (owner, [*args, *kwargs.values()])))
            __obj = __self.wrap_str_format(__obj) or __obj
        elif isinstance(owner, (list, dict)):
            meter.weigh(owner)
            if isinstance(owner, list) and len(owner) + sum(map(_size, args)) > limits.MAX_WIDTH + 1:
                raise CostlyTemplate("builds a list beyond the limit")
        return __self._made(super().call(__context, __obj, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "*":
            _check_product(left, right)
        elif operator == "**":
            _check_power(left, right)
        elif operator == "%" and isinstance(left, (str, bytes)):
            _check_percent(left, right, self.meter.weigh(right))
        return self._made(super().call_binop(context, operator, left, right))

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(argument, slice):
            return self._made(obj[argument])
        if not _is_small(argument):
            self.meter.weigh(argument)  # it is hashed, and shown if nothing is found
        return super().getitem(obj, argument)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if self.lenient:
            return SandboxedEnvironment.is_safe_attribute(self, obj, attr, value)
        return super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Return `str.format` and `str.format_map` in the sandbox, with their fields bounded."""
        wrapped = super().wrap_str_format(value)
        if wrapped is None:
            return None

        def bounded(*args: Any, **kwargs: Any) -> str:
            _check_fields(value.__self__, self.meter.weigh(*args, *kwargs.values()))
            return wrapped(*args, **kwargs)

        return bounded


def instrument(parts: Sequence[nodes.Node]) -> None:
    """Make loops, macros and blocks pay for what they print, and weigh what is compared, joined or captured."""
    for part in parts:
        if isinstance(part, (nodes.For, nodes.Macro, nodes.CallBlock, nodes.Block)):
            work = 1 + sum(map(_work_of, part.body))  # a toll for one round, with the text and lists written in it
            part.body.insert(0, nodes.ExprStmt(_toll(part.lineno, work), lineno=part.lineno))
            if isinstance(part, nodes.For) and part.test is not None:
                part.test = nodes.And(_toll(part.lineno, 1), part.test, lineno=part.lineno)
        elif isinstance(part, (nodes.AssignBlock, nodes.FilterBlock)):
            part.filter = _filtered(part.filter, _BOUNDED, part.lineno)
        else:
            _instrument_expression(part)


def _instrument_expression(part: nodes.Node) -> None:
    """Weigh what an expression looks into, and bound what it makes."""
    if isinstance(part, nodes.Concat):
        weighed: list[nodes.Expr] = [_filtered(each, _WEIGHED, part.lineno) for each in part.nodes]
        part.nodes = [_filtered(nodes.Concat(weighed, lineno=part.lineno), _BOUNDED, part.lineno)]
    elif isinstance(part, nodes.Compare):
        part.expr = _filtered(part.expr, _WEIGHED, part.lineno)
        for operand in part.ops:
            operand.expr = _filtered(operand.expr, _WEIGHED, part.lineno)
    elif isinstance(part, nodes.Getitem) and isinstance(part.arg, nodes.Slice):
        # One that is written as a slice does not go through the environment.
        given = (part.arg.start, part.arg.stop, part.arg.step)
        start, *rest = (nodes.Const(None, lineno=part.lineno) if each is None else each for each in given)
        part.arg = nodes.Filter(start, _SLICE, rest, [], None, None, lineno=part.lineno)
    elif isinstance(part, nodes.Dict):
        for pair in part.items:
            pair.key = _filtered(pair.key, _WEIGHED, part.lineno)


def _toll(line: int, work: int) -> nodes.Filter:
    return nodes.Filter(nodes.Const(work, lineno=line), _TOLL, [], [], None, None, lineno=line)


def _work_of(node: nodes.Node) -> int:
    if isinstance(node, nodes.TemplateData):
        return len(node.data)
    if isinstance(node, (nodes.For, nodes.Macro, nodes.CallBlock, nodes.Block)):
        return 0  # which pay for their own
    own = limits.LIST_WORK if isinstance(node, (nodes.List, nodes.Tuple, nodes.Dict)) else 0
    return own + sum(map(_work_of, node.iter_child_nodes()))


def _filtered(node: nodes.Expr | None, name: str, line: int) -> Any:
    if isinstance(node, nodes.Const):
        return node
    return nodes.Filter(node, name, [], [], None, None, lineno=line)


def _too_long() -> CostlyTemplate:
    return CostlyTemplate(f"builds a text or list longer than {limits.MAX_SIZE}")


def _check_product(left: Any, right: Any) -> None:
    for value, times in ((left, right), (right, left)):
        repeats = isinstance(value, (str, bytes, list, tuple)) and isinstance(times, int)
        if repeats and len(value) * times > limits.MAX_SIZE:
            raise _too_long()
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() + right.bit_length() > limits.MAX_BITS:
        raise CostlyTemplate("computes a number beyond the limit")


def _check_power(left: Any, right: Any) -> None:
    if not isinstance(right, (int, float)) or abs(right) > 64:
        raise CostlyTemplate("raises a number to a power beyond the limit")
    if isinstance(left, int) and left.bit_length() * abs(right) > limits.MAX_BITS:
        raise CostlyTemplate("computes a number beyond the limit")


def _check_width(text: str) -> None:
    """Check a format's own numbers: none too large, nor all together."""
    numbers = "".join(c if c in "0123456789" else " " for c in text).split()
    if any(len(digits) > 5 for digits in numbers) or sum(map(int, numbers)) > limits.MAX_SIZE:
        raise CostlyTemplate("formats to a width beyond the limit")


def _check_fields(text: str, weight: int) -> None:
    """Check `text.format(...)`: the width of a field is written in the text, and each field may show all values."""
    widths = [width or "" for _, name, width, _ in Formatter().parse(text) if name is not None]
    _check_width(" ".join(widths))
    if any("{" in width for width in widths):
        raise CostlyTemplate("formats to a width beyond the limit")
    if len(widths) * weight > limits.MAX_SIZE:
        raise _too_long()


def _check_percent(pattern: str | bytes, values: Any, weight: int) -> None:
    """Check `pattern % values`. A width may be among the values, and those of a mapping may be used many times."""
    text = pattern if isinstance(pattern, str) else pattern.decode("latin-1")
    _check_width(text)
    given = values if isinstance(values, tuple) else (values,)
    stars = text.count("*")
    if stars and any(isinstance(each, int) and abs(each) * stars > limits.MAX_SIZE for each in given):
        raise CostlyTemplate("formats to a width beyond the limit")
    if isinstance(values, dict) and text.count("%") * weight > limits.MAX_SIZE:
        raise _too_long()


def _check(name: str, value: Any, given: Sequence[Any]) -> None:
    """Check what a filter or a method would make of a value and its arguments, all of which are weighed."""
    if name in _COUNTING and any(map(_is_beyond, given)):
        raise CostlyTemplate(f"pads or cuts beyond the limit, with {name!r}")
    if name in _NOT_LINEAR and _size(value) + sum(map(_size, given)) > limits.MAX_SEARCHED:
        raise CostlyTemplate(f"gives more than {limits.MAX_SEARCHED} characters to {name!r}")
    if name in _SEARCHING and _size(value) * max(map(_size, given), default=0) > 100 * limits.MAX_SIZE:
        raise CostlyTemplate("searches a text for too much")
    if name in _MAKING and _MAKING[name](value, given) > limits.MAX_SIZE:
        raise _too_long()


def _replaced(text: Any, given: Sequence[Any]) -> int:
    text = text if isinstance(text, bytes) else str(text)
    old = given[0] if len(given) > 1 else None
    same = isinstance(old, bytes if isinstance(text, bytes) else str)
    return text.count(old) * _size(given[1]) if same else 0


def _joined(items: Any, given: Sequence[Any]) -> int:
    separator = next((len(each) for each in given if isinstance(each, (str, bytes))), 0)
    whole = isinstance(items, (str, bytes, dict, *_HOLDS_ITEMS))
    return sum(_size(item) + separator for item in items) if whole else 0


def _summed(items: Any, given: Sequence[Any]) -> int:
    """Return a tenth of the work of adding lists one by one."""
    lists = isinstance(items, Sequence) and any(not isinstance(each, (int, float)) for each in items)
    return len(items) * sum(map(_size, items)) // 10 if lists else 0


def _indented(text: Any, given: Sequence[Any]) -> int:
    widths = [each if isinstance(each, int) else len(each) for each in given if isinstance(each, (int, str))]
    return str(text).count("\n") * max([4, *widths]) + _size(text)


def _translated(text: Any, given: Sequence[Any]) -> int:
    return _size(text) * max((_size(each) for table in given for each in getattr(table, "values", list)()), default=0)


# How much these make, at most. A tab is a character, and each may become as many as the argument says.
_MAKING: Mapping[str, Callable[[Any, Sequence[Any]], int]] = {
    "replace": _replaced,
    "join": _joined,
    "sum": _summed,
    "indent": _indented,
    "translate": _translated,
    "wordwrap": lambda text, given: _size(text) * max(map(_size, given), default=1),
    "expandtabs": lambda text, given: _size(text) * max([8, *(abs(each) for each in given if isinstance(each, int))]),
}


def _is_beyond(value: Any) -> bool:
    size = abs(value) if isinstance(value, int) else len(value) if isinstance(value, str) else 0
    return size > limits.MAX_WIDTH


def _size(value: Any) -> int:
    return len(value) if isinstance(value, (str, bytes, list, tuple, dict)) else 1


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    spaces = indent if isinstance(indent, int) else _size(indent)
    if spaces > 32 or any(len(each) > 32 for each in separators or ()):
        raise CostlyTemplate("lays out JSON beyond the limit")
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: Any) -> NoReturn:
    raise TemplateError(str(message))


def _strftime_now(pattern: str) -> str:
    _check_width(pattern)
    if len(pattern) > 1_000:
        raise CostlyTemplate("formats the time beyond the limit")
    return _CLOCK.strftime(pattern)


def _range(*numbers: Any) -> range:
    made = range(*numbers)
    if any(abs(each) > 10**9 for each in (made.start, made.stop, made.step)) or len(made) > 100_000:
        raise CostlyTemplate("asks for a range beyond the limit")
    return made
