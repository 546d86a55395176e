"""Calls whose names are in markers: `<call>name ... arguments ... </call>`, with or without a section around them.

Strategy: the pattern of a call is a path of markers and slots.  Up to the arguments it is held, since a marker in prose
is no call; the arguments make it certain, or the marker after the name if that comes last.  What closes a call may be
missing, from any marker on, and so may an id or a counter with the marker in front of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from toolgram.derive.errors import NotExpressible
from toolgram.derive.format_builder import (
    TEXTS,
    FormatBuilder,
    Path,
    add_closers,
    class_of,
    close_arguments,
    each_optional,
    pieces,
    whole,
)
from toolgram.derive.result import ArgumentsStyle, CallsFormat, Pattern, Slot
from toolgram.derive.text_skeleton import REPAIR_CALLS
from toolgram.derive.value_skeleton import Arguments

Item: TypeAlias = str | Slot
_ROLES: dict[Slot, tuple[str, ...]] = {
    Slot.NAME: ("PARSING_NAME", "name", "held"),
    Slot.ID: ("PARSING_CALL_ID", "call_id", "held"),
    Slot.INDEX: ("WAITING_FOR_INDEX", "held"),
}


def add_tag_calls(builder: FormatBuilder, calls: CallsFormat) -> list[str]:
    """Add the calls, and return the states after a call, which text leaves."""
    return _TagSkeleton(builder, calls).build()


def items_of(pattern: Pattern) -> list[Item]:
    """Return the pattern with its texts cut into pieces."""
    items: list[Item] = []
    for part in pattern:
        items += pieces(part) if isinstance(part, str) else [part]
    return items


class _TagSkeleton:
    def __init__(self, builder: FormatBuilder, calls: CallsFormat) -> None:
        self.builder, self.calls = builder, calls
        items = items_of(calls.pattern)
        if Slot.NAME not in items:
            raise NotExpressible("a call shows no name")
        first, second = sorted((items.index(Slot.NAME), items.index(Slot.ARGUMENTS)))
        self.before, self.between, self.after = items[:first], items[first + 1 : second], items[second + 1 :]
        self.section, self.section_end = pieces(calls.section_start), pieces(calls.section_end)
        self.separator = calls.separator.strip()
        self.distinct = bool(self.before) and isinstance(self.before[0], str)
        if self.section and not any(
            isinstance(item, str) and (len(item) > 2 or item.isalnum()) for item in self.before
        ):
            self.distinct = False  # one bracket begins too much
        if not self.distinct and not self.section:
            raise NotExpressible("nothing before the name of a call shows where it begins")
        if self.distinct and builder.means_nothing(self.separator):
            self.separator = ""  # it is dropped before anything
        tagged = calls.arguments.style is ArgumentsStyle.TAGGED
        self.encoded = calls.arguments.style is ArgumentsStyle.JSON_STRING  # the object is written as a JSON string
        self.named_last = items[second] is Slot.NAME
        if self.named_last and (tagged or self.encoded):
            raise NotExpressible("the arguments come before the name")
        self.owes_end = tagged or self.named_last  # a call is not over before the first item of what closes it
        self.closers = _texts(self.after)
        if not tagged and all(isinstance(item, str) and builder.means_nothing(item) for item in self.after):
            self.after = []  # the same
        self.arguments = Arguments(builder, calls.arguments) if tagged else None
        self.name = self.parsing = ""  # the terminal of the name, and the state of an object of arguments
        self.unclosed = ""  # the rule of a call that the end of the turn closes
        self.begun = ("", "")  # the marker with which a call begins, and the state after it
        self.following = ""  # the rule of a call that nothing closes but the beginning of the next one

    def build(self) -> list[str]:
        """Add everything: section, calls, what closes them and what separates them."""
        builder = self.builder
        for items, text in ((self.section, self.calls.section_start), (self.before, self.calls.pattern[0])):
            if items and isinstance(items[0], str) and isinstance(text, str):
                items[: len(pieces(text))] = whole(builder, text)  # if their first piece means something else in text
        self.closed = [builder.closed("TOOL_COMPLETE") for _ in self._stops()]
        if self.owes_end and not self.after:
            raise NotExpressible("nothing closes a call")
        if Slot.NAME not in self.after:
            self._rest(int(self.owes_end))  # what closes comes before what begins
        one = "call" if self.arguments is None else "_one_call"
        starts, rule = self._starts(one)
        body = self._one(Path(builder, starts))
        builder.owe(_texts([*self.before, *self.between]), self.closers)
        builder.owe(self.section, self.section_end)
        leaving = list(self.closed)
        rule.append(add_closers(builder, "TOOL_CALLS_END", self.section_end, self.closed, leaving))
        self._close_object()
        if self.unclosed and self.section_end:
            names = {"CALL_END": builder.literal("", self.section_end[0]), "CALL_COMPLETE": leaving[len(self.closed)]}
            builder.use("unclosed_values", names)
            builder.use("unclosed_call", names)
        builder.rules.append(f"calls.3: {' '.join(rule)}")
        if one == "_one_call":
            builder.rules.append("_one_call: call | _repair_several" if self.following else "_one_call: call")
        builder.rules.append(f"call: {body}")
        if self.arguments is not None:
            if self.unclosed:
                builder.rules += self._repairs(rule[:-1], one)
            builder.rules += self.arguments.rules
        else:
            builder.take("encoded" if self.encoded else "json", "arguments")
        return leaving

    def _close_object(self) -> None:
        """Let the marker after an object of arguments close the brackets that it lacks."""
        closer = next(iter([*self.after, *self.section_end]), None)
        if self.parsing and not self.encoded and isinstance(closer, str) and not self._begins(closer):
            close_arguments(self.builder, closer, self._stop(0), self.parsing)

    def _starts(self, one: str) -> tuple[list[str], list[str]]:
        """Return the states in which a call may begin, and the rule of the calls up to what closes their section."""
        builder = self.builder
        starts = list(TEXTS if self.distinct else self.closed)
        rule: list[str] = []
        if self.section:
            opened = Path(builder, list(TEXTS))
            for name in builder.literals("TOOL_CALLS", self.section):
                opened.step(name, builder.state("WAITING_FOR_TOOL_CALL", "held"))
            rule.append(f"({opened.text()})?" if self.distinct else opened.text())
            starts += opened.states
        rule.append(one)
        if self.separator:
            name = builder.literal("SEPARATOR", self.separator)
            waiting = builder.state("WAITING_FOR_NEXT_TOOL", "held")
            builder.to(name, self.closed, waiting)
            builder.loop_blanks(waiting)
            starts.append(waiting)
            rule.append(f"({name} _ws {one})*" if self.distinct else f"(({name} _ws)? {one})*")
        elif not self.distinct:
            rule.append(f"{one}*")
        return starts, rule

    def _stops(self) -> list[int]:
        """Return after how many items of what closes a call it may be left: after every marker."""
        stops = [0] if not self.after or not (self.owes_end or self._begins(self.after[0])) else []
        for at, item in enumerate(self.after):
            following = self.after[at + 1] if at + 1 < len(self.after) else None
            if isinstance(item, str) and not isinstance(following, Slot):
                stops.append(at + 1)
        if len(self.after) not in stops:
            stops.append(len(self.after))
        return stops

    def _one(self, path: Path) -> str:
        if self.named_last:
            return self._named_after(path)
        self._begin(path, self.before, Slot.NAME)
        self._named(path)
        self._follow(path, self.between)
        lead = path.text()
        body = f"{lead} {self._arguments(path)}"
        if self.unclosed:
            self.unclosed = f"{lead} {self.unclosed}"
        if self.following:
            self.following = f"{lead} {self.following}"
        return body

    def _begin(self, path: Path, items: Sequence[Item], last: Slot) -> None:
        """Add what is before the first value of a call, or between its arguments and its name, up to `last`."""
        for at, item in enumerate(items):
            following = items[at + 1] if at + 1 < len(items) else last
            trigger, actions = self._symbol("TOOL_CALL", item, following)
            path.step(trigger, self.builder.state(*_expecting(following)), *actions)
            if items is self.before and not at and isinstance(item, str):
                self.begun = trigger, path.states[0]

    def _named(self, path: Path) -> None:
        """Add the name."""
        first = class_of("<" + self._after_name())
        self.name = self.builder.run("NAME", first, first, 256)
        path.step(self.name, self.builder.state("PARSING_NAME_COMPLETED", "held"), "name")

    def _named_after(self, path: Path) -> str:
        """Add a call whose arguments come before its name, and return its rule: all of it is held until it is over."""
        builder = self.builder
        self._begin(path, self.before, Slot.ARGUMENTS)
        reading = builder.state("PARSING_ARGUMENTS", "arguments", "held")
        read = builder.state(*_expecting((*self.between, Slot.NAME)[0]))
        builder.to("object_start", path.states, reading)
        builder.to("object_end", reading, read)
        path.symbols.append("arguments")
        path.states = [read]
        path.blanks()
        self._begin(path, self.between, Slot.NAME)
        self._named(path)
        trigger = builder.literal("CALL_END", str(self.after[0]))
        builder.to(trigger, path.states, self._stop(1), "start_call", "end_call")
        return f"{path.text()} {trigger} {self._rest(1)}"

    def _symbol(self, role: str, item: Item, following: Item | None) -> tuple[str, tuple[str, ...]]:
        """Return the terminal of a marker or slot, and what becomes of its text."""
        if isinstance(item, str):
            return self.builder.literal(role, item), ()
        if item is Slot.NAME and self.name:
            return self.name, ()  # once more
        if item is Slot.INDEX:
            return self.builder.run("INDEX", "[0-9]", "[0-9]", 8), ()
        if item is Slot.ID:
            edge = following[0] if isinstance(following, str) and not following[0].isalnum() else ""
            first = class_of("<" + edge)
            return self.builder.run("ID", first, first, 256), ("call_id",)
        raise NotExpressible("the name of a call is in two places before its arguments")

    def _follow(self, path: Path, items: Sequence[Item]) -> None:
        """Go from the name to the arguments. An id or a counter may be missing, with the marker in front of it."""
        builder = self.builder
        at = 0
        while at < len(items):
            item = items[at]
            slot = items[at + 1] if at + 1 < len(items) else None
            closing = items[at + 2] if at + 2 < len(items) else None
            if isinstance(item, str) and slot in (Slot.ID, Slot.INDEX) and isinstance(closing, str):
                trigger, actions = self._symbol("", slot, closing)
                aside = path.fork().step(builder.literal("CALL_ID", item), builder.state(*_ROLES[slot]))
                aside.step(trigger, builder.state("PARSING_CALL_ID_COMPLETED", "held"), *actions)
                path.symbols.append(f"({aside.text()})?")
                path.states = [*path.states, *aside.states]
                item, at = closing, at + 2
            following = items[at + 1] if at + 1 < len(items) else None
            trigger, actions = self._symbol("NAME_END", item, following)
            path.step(trigger, builder.state(*_expecting(following)), *actions)
            at += 1

    def _after_name(self) -> str:
        """Return the characters with which what follows a name may begin, if they cannot be part of a name."""
        texts = _texts((self.after if self.named_last else self.between)[:1])
        closers = _texts(self.after[:1])
        if not texts:
            texts = ["{", '"' * self.encoded] if self.arguments is None else [*self.arguments.prefix[:1], *closers]
        after = [text for at, text in enumerate(self.between) if at and self.between[at - 1] is Slot.NAME]
        texts += [text for text in after if isinstance(text, str)]
        if Slot.NAME in self.after:
            texts += [item for item in self.after if isinstance(item, str)]
        return "".join(text[0] for text in texts if text and not text[0].isalnum())

    def _arguments(self, path: Path) -> str:
        """Add the arguments and what closes the call; return their rule."""
        builder = self.builder
        builder.recovered = self.closed[-1]
        if self.arguments is None:
            self.parsing = builder.state("PARSING_ARGUMENTS", "arguments", *["encoded"] * self.encoded)
            builder.to("object_start", path.states, self.parsing, "start_call")
            builder.to("object_end", self.parsing, self._stop(0), "end_call")
            return f"arguments {self._rest(0)}"
        held, closer = list(path.states), str(self.after[0])
        body = self.arguments.build(path, [closer, *_texts(self.before[:1])])  # no key begins as the next call does
        first = builder.literal("CALL_END", closer)
        dest = self._stop(1)
        builder.to(first, held, dest, "start_call", "no_arguments", "end_call")
        builder.to(first, path.states, dest, "close_arguments", "end_call")
        if self.arguments.values:
            return self._open_values(path.states, body, first, dest)
        builder.to(first, "malformed", dest)
        whole, unclosed = f"{body} {first} {self._rest(1)}", self._unclosed()
        return f"({whole}{unclosed})" if unclosed else whole

    def _open_values(self, values: Sequence[str], body: str, first: str, dest: str) -> str:
        """Add what closes a call after a value without an end of its own: with the blanks of the template."""
        following = self.calls.pattern[self.calls.pattern.index(Slot.ARGUMENTS) + 1]
        assert isinstance(following, str)
        blanks = following[: len(following) - len(following.lstrip())]
        if self.arguments is not None and not self.arguments.separator:
            blanks = self.arguments.blanks.removesuffix(self.calls.arguments.separator) + blanks
        self.builder.to(first, "malformed", dest)
        if not blanks:
            return f"{body} {first} {self._rest(1)}"
        line = self.builder.literal("CALL_END_LINE", blanks + str(self.after[0]))
        self.builder.to(line, values, dest, "close_arguments", "end_call")
        return f"({body} {first} | {body.removesuffix('?')} {line}) {self._rest(1)}"

    def _unclosed(self) -> str:
        """Return what is added to the rule of a call for arguments that are not closed: a marker that closes the call
        or what is around it closes them at the end of the turn, or if another call begins."""
        assert self.arguments is not None
        if not self.arguments.unclosed:
            return ""
        builder, rule = self.builder, ""
        self.unclosed = "repair_unclosed_call"
        for at, item in enumerate(self.after):
            if isinstance(item, str) and at + 1 in self._stops() and not self._begins(item):
                trigger = builder.literal("CALL_END", item)
                names = {"CALL_END": trigger, "CALL_COMPLETE": self._stop(at + 1)}
                builder.use("unclosed_text" if self.arguments.text_alone else "unclosed_values", names)
                if at:
                    builder.use("unclosed_call", names)
                kind = "repair_unclosed_call" if at else "repair_unclosed"
                rule += f" | {kind} {trigger} {self._rest(at + 1)}"
        trigger, dest = self.begun
        if trigger and self.distinct and not self.separator:
            builder.use("next_call", {"CALL": trigger, "CALL_BEGUN": dest})
            self.following = self.arguments.several
        return rule

    def _repairs(self, before: Sequence[str], one: str) -> list[str]:
        """Return the rules of what is not closed. They follow those of calls: Lark names a repeated part after the
        first rule that has it, and strict parsers have none of these."""
        assert self.arguments is not None
        unclosed = f"repair_unclosed: {self.arguments.unclosed}"
        rules = [unclosed, f"repair_unclosed_call: repair_unclosed | {self.arguments.several}"]
        if self.following:
            rules += ["_repair_several: repair_next+ call", f"repair_next: {self.following}"]
        ends = [*self.builder.about.get("stop", ())]
        if self.section_end:
            names = self.builder.literals("", self.section_end)
            ends.append(each_optional(names).removeprefix("(").removesuffix(")?"))
        if ends:
            opened, separated = before[0] if self.section else "", f"{one}*" if not self.distinct else ""
            if self.separator:
                name = self.builder.literal("SEPARATOR", self.separator)
                separated = f"({one} {f'{name} _ws' if self.distinct else f'({name} _ws)?'})*"
            rules.append(f"{REPAIR_CALLS}.2: {opened} {separated} repair_open ({' | '.join(ends)})")
            rules.append(f"repair_open.2: {'repair_next* ' if self.following else ''}{self.unclosed}")
        return rules

    def _stop(self, count: int) -> str:
        """Return the state after so many items of what closes a call. Nothing is held there, since the call is over."""
        stops = self._stops()
        if count in stops:
            return self.closed[stops.index(count)]
        following = self.after[count]
        role = "PARSING_CLOSING_NAME" if following is Slot.NAME else "WAITING_FOR_CLOSING"
        known = f"{role}_{count}"
        if known not in self.builder.states:
            self.builder.state(known)
            self.builder.loop_blanks(known)
        return known

    def _rest(self, count: int) -> str:
        """Return the rule of what closes a call after its first `count` items; adds its transitions."""
        builder, state = self.builder, self._stop(count)
        matters = self.separator or self.section_end or not self.distinct  # what follows could not follow free text
        blanks = "_ws" if matters else ""
        if count == len(self.after):
            return blanks
        item = self.after[count]
        if not self._begins(item):
            blanks = "_ws"
        if isinstance(item, str):
            trigger = builder.literal("CALL_END", item)
        elif item is Slot.NAME:
            trigger = self.name
        else:
            following = self.after[count + 1] if count + 1 < len(self.after) else None
            trigger, _ = self._symbol("", item, following)
        dest = self._stop(count + 1)
        builder.to(trigger, state, dest)
        if isinstance(item, str):
            builder.to(trigger, "malformed", dest)
        if state in self.closed:
            return f"{blanks} ({trigger} {self._rest(count + 1)})?"
        return f"_ws {trigger} {self._rest(count + 1)}"

    def _begins(self, item: Item) -> bool:
        """Return whether a call begins with it as well, so that it is looked for in any text."""
        return item in (*self.section[:1], *self.before[:1])


def _texts(items: Sequence[Item]) -> list[str]:
    return [item for item in items if isinstance(item, str)]


def _expecting(item: Item | None) -> tuple[str, ...]:
    if isinstance(item, Slot) and item in _ROLES:
        return _ROLES[item]
    return ("WAITING_FOR_ARGUMENTS_START" if item is None else "WAITING_FOR_TOOL_KEY", "held")
