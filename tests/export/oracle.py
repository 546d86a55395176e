"""A reference matcher over the expression from which every grammar is written: what may follow, by character or token.

Strategy: what is still to come is a stack of expressions, and an output that can be read in several ways has several
stacks.  A character is read by replacing what is on top of each stack, until it is something that has characters: a
fixed text, a set, a run, or free text.  Nothing is compiled, shared or approximated, and no code of the writers is
used, so a difference between a grammar and this matcher is a fault of one of them.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

from toolgram.export import expressions as ex
from toolgram.export.notations import BASE, JSON
from toolgram.export.values import Values
from toolgram.limits import MOST_WRITTEN_BLANKS

_BLANKS = ex.Repeat(ex.Class(((9, 10), (13, 13), (32, 32))), 0, MOST_WRITTEN_BLANKS)


@dataclass(frozen=True)
class Run:
    """A run of characters, of which some are read."""

    of: ex.Chars
    read: str = ""


@dataclass(frozen=True)
class Name:
    """The rest of a name in JSON that differs from some names, of which one begins with what was read."""

    but: frozenset[str]
    read: str = ""


@dataclass(frozen=True)
class Free:
    """Free text: its last characters, and the ways in which it may go on where it has a form."""

    of: ex.Text
    tail: str = ""
    form: "State | None" = None


@dataclass(frozen=True)
class Arguments:
    """Arguments of which some are written."""

    of: ex.Members
    seen: frozenset[int] = frozenset()
    last: int = -1


@dataclass(frozen=True)
class Stack:
    """What comes next, the rules that it may name, and what comes after it."""

    top: ex.Expr | Run | Name | Free | Arguments
    rules: ex.Rules | None
    rest: "Stack | None"


State: TypeAlias = "frozenset[Stack | None]"  # None is the end of the output


def begin(root: ex.Expr) -> State:
    """The state before the first character."""
    return _open([Stack(root, None, None)])


def may_end(state: State) -> bool:
    """Whether the output may end here."""
    return None in state


def after(state: State, text: str) -> State:
    """The state after some characters; empty if they may not come."""
    for char in text:
        state = _after(state, char)
    return state


def accepts(root: ex.Expr, text: str) -> bool:
    """Whether a text is a whole output."""
    return may_end(after(begin(root), text))


@lru_cache(maxsize=100_000)
def _after(state: State, char: str) -> State:
    return _open(further for each in state if each is not None for further in _read(each, char))


def _open(stacks: Iterable[Stack | None]) -> State:
    """The stacks, with what has no characters of its own replaced by what is inside of it."""
    found: set[Stack | None] = set()
    pending, seen = list(stacks), set[Stack]()
    while pending:
        here = pending.pop()
        if here is None:
            found.add(here)
        elif here not in seen:
            seen.add(here)
            inner = _inside(here)
            if inner is None:
                found.add(here)
            else:
                pending += inner
            if isinstance(here.top, Run | Free) and _may_stop(here.top):
                pending.append(here.rest)
    return frozenset(found)


def _may_stop(top: Run | Free) -> bool:
    if isinstance(top, Run):
        return bool(top.read) and top.read not in top.of.but
    return not top.of.closer and (top.form is None or None in top.form)


def _inside(here: Stack) -> list[Stack | None] | None:
    """What may be on top instead; None for what has characters."""
    top, rest = here.top, here.rest

    def then(*parts: Any) -> Stack | None:
        made = rest
        for part in reversed(parts):
            made = Stack(part, here.rules, made)
        return made

    match top:
        case ex.Lit() | ex.Token():
            return None if top.text else [rest]
        case ex.Class() | Run() | Name() | Free():
            return None
        case ex.Seq():
            return [then(*top.parts)]
        case ex.Choice():
            return [then(each) for each in top.options]
        case ex.Star():
            return [rest, then(top.body, top)]
        case ex.Repeat():
            return _repeated(top, then)
        case ex.Chars():
            return [then(Run(top))]
        case ex.Quoted():
            return [then(top.body)]
        case ex.Blanks():
            return [then(_BLANKS)]
        case ex.OtherName():
            names = frozenset(json.dumps(name, ensure_ascii=False)[1:-1] for name in top.but)
            return [then(ex.Lit('"'), Name(names))]
        case ex.Text():
            within = None if top.within is None else begin(ex.seq(top.within, ex.Lit(top.closer)))
            return [then(Free(top, form=within))]
        case ex.Members():
            return [then(Arguments(top))]
        case Arguments():
            return list(_arguments(top, then))
        case ex.Json():
            return [then(_value(top))]
        case ex.Rules():
            return [Stack(dict(top.rules)[top.start], top, rest)]
        case ex.Ref():
            known = BASE if top.name in BASE else dict(here.rules.rules if here.rules else ())
            return [then(known[top.name])]
    return [rest]  # a break


def _repeated(top: ex.Repeat, then: Any) -> list[Stack | None]:
    if top.high == 0:
        return [then()]
    fewer = replace(top, low=max(top.low - 1, 0), high=None if top.high is None else top.high - 1)
    return [then(top.body, fewer), *([] if top.low else [then()])]


def _arguments(top: Arguments, then: Any) -> Iterator[Stack | None]:
    members = top.of.members
    required = {at for at, each in enumerate(members) if each.required}
    if top.last >= 0 and required <= top.seen:
        yield then()
    for at, member in enumerate(members):
        in_turn = top.of.any_order or (at >= top.last and not required - top.seen & set(range(at)))
        if in_turn and (at not in top.seen or not member.name):
            yield then(member.later if top.last >= 0 else member.first, Arguments(top.of, top.seen | {at}, at))


@lru_cache(maxsize=1000)
def _value(expr: ex.Json) -> ex.Rules:
    schema = json.loads(expr.schema)
    values = Values(schema, lambda words: None, JSON)
    return values.rules(values.whole_object(schema) if expr.any_order else values.value(schema))


def _read(here: Stack, char: str) -> Iterator[Stack | None]:
    top = here.top
    match top:
        case ex.Lit() | ex.Token() if top.text[0] == char:
            yield Stack(ex.Lit(top.text[1:]), here.rules, here.rest)
        case ex.Class() if any(low <= ord(char) <= high for low, high in top.ranges):
            yield here.rest
        case Run() if len(top.read) < top.of.most and char in (top.of.rest if top.read else top.of.first):
            yield Stack(Run(top.of, top.read + char), here.rules, here.rest)
        case Name():
            yield from _read_name(top, here, char)
        case Free():
            yield from _read_text(top, here, char)


def _read_name(top: Name, here: Stack, char: str) -> Iterator[Stack | None]:
    read = top.read + char
    if any(name.startswith(read) for name in top.but):
        yield Stack(Name(top.but, read), here.rules, here.rest)
    elif char != '"' or top.read not in top.but:
        yield from (_on(each, here.rest) for each in after(begin(ex.Ref("json_rest")), read))


def _on(stack: Stack | None, rest: Stack | None) -> Stack | None:
    return rest if stack is None else replace(stack, rest=_on(stack.rest, rest))


def _read_text(top: Free, here: Stack, char: str) -> Iterator[Stack | None]:
    closer, words = top.of.closer, top.of.forbidden.words
    text = top.tail + char
    complete = [word for word in (*words, closer) if word and text.endswith(word)]
    form = None if top.form is None else _after(top.form, char)
    if form == frozenset():
        return
    if closer and closer in complete and all(map(closer.endswith, complete)):
        if form is None or None in form:
            yield here.rest
    elif not complete:
        longest = max(map(len, (*words, closer)), default=0)
        yield Stack(replace(top, tail=text[-longest:], form=form), here.rules, here.rest)
