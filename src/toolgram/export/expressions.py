"""The one form that all exporters write from: regular expressions over text, with values of other languages as leaves.

Strategy: outside of values a format is regular, so a tree without names is enough. Nodes are immutable, and equal nodes
are the same object. The constructors keep the tree small: no nested sequences, adjacent texts joined, a common
beginning of alternatives written once. `NOTHING` is what no text matches: alternatives without an end disappear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from json.encoder import encode_basestring
from operator import attrgetter
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias, dataclass_transform
from weakref import ref

from toolgram.limits import MOST_OPTIONAL_MEMBERS

if TYPE_CHECKING:
    from toolgram.export.running import Compiled, LogitsProcessor


class _Once(type):
    """Makes equal nodes the same object, so that comparing them is cheap at any depth."""

    def __call__(cls: Any, *args: Any, **fields: Any) -> Any:
        names = cls.__match_args__
        if len(args) < len(names):  # a default is an attribute of the class
            args += tuple([fields[name] if name in fields else getattr(cls, name) for name in names[len(args) :]])
        key = (cls, args)
        known = _known.get(key)
        found = known() if known is not None else None
        if found is None:
            made = object.__new__(cls)
            if len(args) == 1:  # as most have; it takes half the time
                made.__dict__[names[0]] = args[0]
            else:
                made.__dict__.update(zip(names, args, strict=True))
            with _making:
                known = _known.get(key)
                found = known() if known is not None else None
                if found is None:
                    found, known = made, _Kept(made, _forget)
                    known.key, _known[key] = key, known
        return found


class _Kept(ref):  # type: ignore[type-arg]
    """A weak reference to a node, and what it is found by."""

    __slots__ = ("key",)
    key: tuple[Any, ...]


def _forget(gone: _Kept) -> None:
    """Forget a node that nothing uses any more, unless an equal one has been made since."""
    if _known.get(gone.key) is gone:
        del _known[gone.key]


_known: dict[tuple[Any, ...], _Kept] = {}
_making = Lock()


@dataclass_transform(eq_default=False, frozen_default=True)
class Shared(metaclass=_Once):
    """A node: immutable, and one for each value. Each kind of node is a dataclass."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, eq=False)(cls)


class Expr(Shared):
    """A node that some texts match."""


class Lit(Expr):
    """One fixed text."""

    text: str


class Token(Expr):
    """One special token. If its `id` is not known, the engine identifies it by its text."""

    text: str
    id: int | None


class Chars(Expr):
    """A bounded run of characters: one of `first`, and up to `most` - 1 of `rest`, but none of the texts `but`.

    `first` and `rest` list their characters.
    """

    first: str
    rest: str
    most: int
    but: tuple[str, ...] = ()


class Class(Expr):
    """One character of a set, given as ranges of code points: sorted, and apart from each other."""

    ranges: tuple[tuple[int, int], ...]


class Repeat(Expr):
    """A body repeated from `low` to `high` times; without an upper limit if `high` is None.

    `is_length` means that this is a limit on the length of a text, which some engines enforce only at a high cost.
    """

    body: Expr
    low: int
    high: int | None
    is_length: bool = False


class Seq(Expr):
    """A sequence of parts."""

    parts: tuple[Expr, ...]


class Choice(Expr):
    """One of several options; without options, nothing matches."""

    options: tuple[Expr, ...]


class Star(Expr):
    """A body repeated any number of times."""

    body: Expr


class Json(Expr):
    """A JSON value that a schema allows. `schema` is its canonical text; `any_order` applies to the outermost keys."""

    schema: str
    any_order: bool = False


class EngineFormat(Expr):
    """A format of xgrammar's structural tags, as JSON in `text`; no other target supports it."""

    text: str


class Blanks(Expr):
    """The blanks that JSON allows, a limited number."""


class Quoted(Expr):
    """A text of some form as a value, with its quotes. Engines read it fastest as one regular expression."""

    body: Expr


class OtherName(Expr):
    """A name in JSON, with its quotes, that differs from some names."""

    but: tuple[str, ...]


class Forbidden(Shared):
    """The words that free text must not contain. All texts of one place share them."""

    words: tuple[str, ...]


class Text(Expr):
    """Free text that contains nothing forbidden. It ends with `closer`, if there is one.

    `within` is an expression that the text must also match, for a pattern or a length.
    """

    forbidden: Forbidden
    closer: str = ""
    within: Expr | None = None


class Member(Shared):
    """An argument: how it is written as the first one, and as a later one: after a separator, or in another form."""

    name: str  # "" for an undeclared one, which may be repeated
    first: Expr
    required: bool
    separator: Expr | None
    again: Expr | None = None

    @property
    def later(self) -> Expr:
        """How it is written as a later one."""
        return seq(self.separator, self.first) if self.separator is not None else self.again or NOTHING


class Members(Expr):
    """One or more arguments: each declared one at most once, all required ones, in this order or in any order."""

    members: tuple[Member, ...]
    any_order: bool


class Rules(Expr):
    """A small recursive language of its own: named rules, and the one to begin with."""

    start: str
    rules: tuple[tuple[str, Expr], ...]


class Ref(Expr):
    """A rule of the `Rules` around it. `scope` tells rules of the same name in different languages apart."""

    name: str
    scope: str = ""


class Break(Expr):
    """The empty text, which keeps the texts on either side apart."""


class Slot(Expr):
    """What depends on a function or an argument. `part` says what is written there, and `at` what else decides it."""

    part: str
    at: tuple[Any, ...] = ()


class EachFunction(Expr):
    """A part of a call that is written for each function of a request, with slots in it."""

    body: Expr


Note: TypeAlias = Callable[[str], object]

EMPTY = Seq(())
NOTHING = Choice(())
_NO_TEXT = Lit("")


def seq(*parts: Expr) -> Expr:
    """Return a simplified sequence."""
    flat: list[Expr] = []
    fixed = False  # the last part is a fixed text
    for part in parts:
        if part is NOTHING:
            return NOTHING
        for each in part.parts if type(part) is Seq else (part,):
            if type(each) is not Lit:
                flat.append(each)
                fixed = False
            elif fixed:
                flat[-1] = Lit(flat[-1].text + each.text)  # type: ignore[attr-defined]
            elif each is not _NO_TEXT:
                flat.append(each)
                fixed = True
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


def choice(*options: Expr) -> Expr:
    """Return a simplified choice, in which a common beginning is written once."""
    if len(options) == 1 and options[0] is not _NO_TEXT:
        return options[0]
    flat: dict[Expr, None] = {}
    for option in options:
        if type(option) is Choice:
            flat.update(dict.fromkeys(option.options))
        else:
            flat[EMPTY if option is _NO_TEXT else option] = None
    groups: dict[Expr, list[Expr]] = {}
    for option in flat:
        head = option.parts[0] if type(option) is Seq and option.parts else option
        groups.setdefault(head, []).append(option)
    if len(groups) == len(flat):
        return option if len(flat) == 1 else Choice(tuple(flat))
    result: list[Expr] = []
    for head, members in groups.items():
        if len(members) == 1 or head == EMPTY:
            result += members
        else:
            result.append(seq(head, choice(*(split(each)[1] for each in members))))
    return result[0] if len(result) == 1 else Choice(tuple(result))


def star(body: Expr) -> Expr:
    """Return a simplified repetition, any number of times."""
    if body in (NOTHING, EMPTY):
        return EMPTY
    return body if isinstance(body, Star) else Star(body)


# These represent the name of a function, and what JSON has of it: halves of a pair, which no marker and no name has.
ANY_NAME, ANY_NAME_IN_JSON = "\ud800", "\ud801"


def has_name(text: str) -> bool:
    """Return whether a text has the name of a function."""
    return ANY_NAME in text or ANY_NAME_IN_JSON in text


def named(text: str, name: str) -> str:
    """Return a text with the name of a function in its place."""
    if ANY_NAME_IN_JSON in text:
        text = text.replace(ANY_NAME_IN_JSON, encode_basestring(name)[1:-1])
    return text.replace(ANY_NAME, name)


def each_function(body: Expr) -> Expr:
    """Return an expression for each function, if it depends on the function."""
    return EachFunction(body) if any(map(_depends, inside(body))) else body


def _depends(expr: Expr) -> bool:
    text = expr.text if isinstance(expr, Lit) else expr.closer if isinstance(expr, Text) else ""
    return isinstance(expr, Slot) or has_name(text)


def optional(body: Expr) -> Expr:
    """Return an expression or the empty text."""
    return choice(body, EMPTY)


_LAST = 0x10FFFF


def joined_ranges(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return ranges of code points, sorted and apart from each other."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)


def class_of(characters: Iterable[str]) -> Class:
    """Return the set of some characters."""
    return Class(joined_ranges((ord(char), ord(char)) for char in characters))


def complement(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return all other code points."""
    found: list[tuple[int, int]] = []
    begin = 0
    for low, high in joined_ranges(ranges):
        if low > begin:
            found.append((begin, low - 1))
        begin = high + 1
    if begin <= _LAST:
        found.append((begin, _LAST))
    return tuple(found)


def without_characters(ranges: tuple[tuple[int, int], ...], codes: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return the ranges without some code points."""
    return complement([*complement(ranges), *((code, code) for code in codes)])


def is_wide(ranges: tuple[tuple[int, int], ...]) -> bool:
    """Return whether a set has most characters, so that it is written by those that it excludes."""
    return bool(ranges) and ranges[-1][1] == _LAST


@lru_cache(maxsize=4096)
def rest_after(expr: Expr, read: str) -> Expr:
    """Return the rest of an expression after `read`: one character, or a marker that is already written."""
    match expr:
        case Lit() | Token() | Class() | Text():
            return _rest_of_leaf(expr, read)
        case Seq() if expr.parts:
            head = expr.parts[0]
            if isinstance(head, Lit) and not head.text.startswith(read):
                return rest_after(split(expr)[1] if read.startswith(head.text) else NOTHING, read[len(head.text) :])
            rest = split(expr)[1]
            found = seq(rest_after(head, read), rest)
            return choice(found, rest_after(rest, read)) if may_be_empty(head) else found
        case Choice():
            return choice(*(rest_after(option, read) for option in expr.options))
        case Star():
            return seq(rest_after(expr.body, read), expr)
        case EachFunction():
            return each_function(rest_after(expr.body, read))
        case Repeat():
            most = None if expr.high is None else expr.high - 1
            again = EMPTY if most == 0 else Repeat(expr.body, max(expr.low - 1, 0), most)
            return seq(rest_after(expr.body, read), again)
    return NOTHING


def _rest_of_leaf(expr: Lit | Token | Class | Text, read: str) -> Expr:
    match expr:
        case Lit() if expr.text.startswith(read):
            return Lit(expr.text[len(read) :]) if expr.text != read else EMPTY
        case Token() if expr.text == read:
            return EMPTY
        case Class() if len(read) == 1 and any(low <= ord(read) <= high for low, high in expr.ranges):
            return EMPTY
        case Text() if expr.closer.startswith(read):
            return Lit(expr.closer[len(read) :])
    return NOTHING


def may_be_empty(expr: Expr) -> bool:
    """Return whether an expression of texts also matches the empty text."""
    match expr:
        case Seq():
            return all(map(may_be_empty, expr.parts))
        case Choice():
            return any(map(may_be_empty, expr.options))
        case Repeat():
            return not expr.low or may_be_empty(expr.body)
        case Text():
            return not expr.closer
    return isinstance(expr, Star)


CHILDREN: dict[type[Expr], Callable[[Any], Sequence[Expr]]] = {
    Seq: attrgetter("parts"),
    Choice: attrgetter("options"),
    **dict.fromkeys((Star, Repeat, Quoted, EachFunction), lambda expr: (expr.body,)),
    Members: lambda expr: [each for member in expr.members for each in (member.first, member.later)],
    Rules: lambda expr: [body for _, body in expr.rules],
}


def children(expr: Expr) -> Sequence[Expr]:
    """Return the expressions directly inside an expression."""
    inside_of = CHILDREN.get(type(expr))
    return inside_of(expr) if inside_of is not None else ()


def rebuilt(expr: Expr, made: Callable[[Expr], Expr]) -> Expr:
    """Return an expression in which each part is what `made` returns for it."""
    if type(expr) not in CHILDREN:
        return expr
    match expr:
        case Seq():
            return seq(*map(made, expr.parts))
        case Choice():
            return choice(*map(made, expr.options))
        case Star():
            return star(made(expr.body))
        case EachFunction():
            return each_function(made(expr.body))
        case Repeat():
            return replace(expr, body=made(expr.body))
        case Members():
            return Members(tuple([_rebuilt_member(each, made) for each in expr.members]), expr.any_order)
    return expr


def _rebuilt_member(member: Member, made: Callable[[Expr], Expr]) -> Member:
    separator, again = (None if each is None else made(each) for each in (member.separator, member.again))
    return Member(member.name, made(member.first), member.required, separator, again)


def filled(expr: Expr, written: Callable[[Slot], Expr], same: set[Expr]) -> Expr:
    """Return an expression with what is written in each of its slots. `same` is a set of parts without slots."""
    if expr in same:
        return expr
    if isinstance(expr, Slot):
        return written(expr)
    found = rebuilt(expr, lambda each: filled(each, written, same))
    if found is expr:
        same.add(expr)
    return found


def inside(root: Expr) -> Iterable[Expr]:
    """Return an expression and everything inside it, each once."""
    pending, seen = [root], dict[Expr, None]()
    while pending:
        here = pending.pop()
        if here not in seen:
            seen[here] = None
            pending += children(here)
    return seen


def parts_of(expr: Expr) -> tuple[Expr, ...]:
    """Return the parts of a sequence; anything else is its only part."""
    return expr.parts if type(expr) is Seq else (expr,)


def split(expr: Expr) -> tuple[Expr, Expr]:
    """Return the first part of an expression, and the rest."""
    if isinstance(expr, Seq) and expr.parts:
        return expr.parts[0], seq(*expr.parts[1:])
    return expr, EMPTY


def members_in_turn(members: Members, note: Note) -> Expr:
    """Return arguments in their own order. Of very many, those between two required ones may repeat, in any order."""
    if sum(not member.required for member in members.members) > MOST_OPTIONAL_MEMBERS:
        note(f"of more than {MOST_OPTIONAL_MEMBERS} members that are not required, each may be repeated, in any order")
        return _in_runs(members.members)
    found = members.members
    first_needed = next((at for at, member in enumerate(found) if member.required), len(found) - 1)
    following = [seq(*map(_later, found[first_needed + 1 :]))]  # what may come after a member
    for member in reversed(found[1 : first_needed + 1]):
        following.insert(0, seq(_later(member), following[0]))
    whole: Expr = NOTHING
    for member, rest in reversed([*zip(found[: first_needed + 1], following, strict=True)]):
        again = EMPTY if member.name else star(member.later)
        whole = choice(seq(member.first, again, rest), whole)
    return whole


def _later(member: Member) -> Expr:
    """Return a member that may come after others."""
    if not member.name:
        return star(member.later)
    return member.later if member.required else optional(member.later)


def _in_runs(members: tuple[Member, ...]) -> Expr:
    """Return runs of optional members, separated by required ones: the result is as large as the members are."""
    runs: list[list[Member]] = [[]]  # each but the first begins with a required one
    for member in members:
        if member.required:
            runs.append([])
        runs[-1].append(member)
    begun = seq(choice(*(each.first for each in runs[0])), star(choice(*(each.later for each in runs[0]))))
    parts = [part for first, *run in runs[1:] for part in (first.later, star(choice(*(each.later for each in run))))]
    return seq(choice(runs[1][0].first, seq(begun, parts[0])), *parts[1:]) if parts else begun


def without_alike(every: Mapping[Member, Expr]) -> tuple[tuple[Expr, ...], dict[Member, tuple[Expr, ...]]]:
    """Return the parts that all possible forms of members begin with, and the other parts of each: at least one."""
    rows = {key: parts_of(expr) for key, expr in every.items() if expr is not NOTHING}
    first = next(iter(rows.values()), ())
    alike = 0
    while rows and all(len(parts) > alike + 1 and parts[alike] is first[alike] for parts in rows.values()):
        alike += 1
    return first[:alike], {member: parts[alike:] for member, parts in rows.items()}


@dataclass(frozen=True, slots=True)
class Export:
    """A grammar for one engine.

    `text` is the grammar. `triggers` are the words with which a call begins, for engines that constrain lazily. `stop`
    are the tokens that end a turn; no output contains them. `preserved_tokens` are special tokens that must reach the
    engine as text. `notes` report what this grammar cannot express, and what it allows or forbids instead.
    """

    target: str
    text: str
    triggers: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    preserved_tokens: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def compile(self, tokenizer: Any) -> Compiled:
        """Compile the grammar for a tokenizer, in the engine of its target, which must be installed.

        `tokenizer` is one of transformers, or the engine's own. Raises ToolgramError if the engine is missing.
        """
        from toolgram.export.running import compile_export

        return compile_export(self.target, self.text, tokenizer)

    def logits_processor(self, tokenizer: Any) -> LogitsProcessor:
        """Return a processor for one `generate` of transformers, which takes it as `logits_processor=[...]`."""
        from toolgram.export.running import LogitsProcessor

        return LogitsProcessor(self.compile(tokenizer))

    def to_dict(self) -> dict[str, Any]:
        """Return the export as JSON-able data."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
