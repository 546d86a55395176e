"""Arguments that are written one by one, each with its key and its value in markers.

Strategy: a template may frame values of different types differently, and the frame then tells the type.  If text and
literals share one frame, the declared type of the parameter decides while parsing.  JSON that nothing closes ends by
itself.  Blanks beside raw text belong to its markers if the template writes them, and may be missing there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from toolgram.derive.errors import NotExpressible
from toolgram.derive.format_builder import FormatBuilder, Path, class_of, one_of, pieces
from toolgram.derive.result import ArgumentsFormat, ArgumentSlot, ValueEncoding, framed

_JSON = {ValueEncoding.JSON, ValueEncoding.JSON_ESCAPED}
_LITERAL = {*_JSON, ValueEncoding.PYTHON, ValueEncoding.PYTHON_REPR}
_UNWRITTEN = {ValueEncoding.OMITTED, ValueEncoding.EMPTY, ValueEncoding.UNKNOWN}


@dataclass(frozen=True, slots=True)
class Frame:
    """What is around values of some types: between key and value, after it, and after a repeated key."""

    before: str
    after: str
    echo: str | None  # the text after the key that the closing marker repeats; None if it does not
    traits: tuple[str, ...]  # of the state that reads the value
    alone: bool  # JSON that ends by itself

    @property
    def raw(self) -> bool:
        """Return whether the value may be text."""
        return not self.alone and "json" not in self.traits

    @property
    def open(self) -> bool:
        """Return whether nothing of its own ends the value: the next argument does, or the end of the call."""
        return not (self.alone or self.after or self.echo is not None)

    @property
    def rule(self) -> str:
        """Return the rule of the value."""
        if self.alone:
            return "json_value"
        kind = next((trait for trait in self.traits if trait != "echo"), "raw")
        return "literal_value" if kind == "json" else f"{kind}_value"


class Arguments:
    """The arguments of one call, as a part of its path."""

    def __init__(self, builder: FormatBuilder, form: ArgumentsFormat) -> None:
        self.builder, self.form = builder, form
        at = form.pattern.index(ArgumentSlot.KEY)
        prefix = form.pattern[0] if at and isinstance(form.pattern[0], str) else ""
        self.prefix = pieces(prefix)
        self.separator = form.separator.strip()
        self.frames = _frames(form)
        self.blanks = form.separator[: len(form.separator) - len(form.separator.lstrip())]  # after a value
        afters = {frame.after for frame in self.frames if frame.echo is None and not frame.alone}
        marked = self.prefix and _is_marker(self.prefix[0])
        if marked and len(afters) == 1 and not any(frame.after.strip() or frame.alone for frame in self.frames):
            self.blanks = afters.pop() + self.blanks  # the next marker ends it
            self.frames = [replace(frame, after="") for frame in self.frames]
        self.rules: list[str] = []
        self.values: list[str] = []  # the states of values that nothing of their own ends
        self.opened = ""  # the state after what begins an argument
        self.open = self.several = ""  # rules of an argument without its closing marker, and of closed ones
        self.text_alone = False  # only text, in the first state of values, has a closing marker
        self.unclosed = ""  # the rule of arguments of which the last has no closing marker; "" if it always has one

    def build(self, path: Path, closers: Sequence[str]) -> str:
        """Add the arguments after the (held) states of `path`, which ends up where another may come.

        `closers` are the texts that may follow.
        """
        builder = self.builder
        if any(frame.open for frame in self.frames):
            return self._open_values(path, closers)
        held = path.states
        waiting = builder.state("WAITING_FOR_ARGUMENT_KEY")
        sources = [waiting]
        separator = ""
        if self.separator:
            name = builder.literal("ARGUMENT_SEPARATOR", self.separator)
            after = builder.state("WAITING_FOR_ARGUMENT_KEY")
            builder.to(name, waiting, after)
            builder.loop_blanks(after)
            sources.append(after)
            separator = f"({name} _ws)? "
        builder.loop_blanks(waiting)
        self._argument(held, sources, waiting, closers)
        path.states = [waiting]
        if waiting == "WAITING_FOR_ARGUMENT_KEY" and self.open:
            self.unclosed = f"(argument _ws ({separator}argument _ws)* {separator})? open_argument"
            self.several = f"argument _ws ({separator}argument _ws)*"
            self.rules.append(f"open_argument: {self.open}")
        return f"(argument _ws ({separator}argument _ws)*)?"

    def _open_values(self, path: Path, closers: Sequence[str]) -> str:
        """Add arguments of which some value has no end of its own. `path` ends in the states of these and after others;
        the end of the call ends the last one."""
        builder, held = self.builder, path.states
        waiting = "" if all(each.open for each in self.frames) else builder.state("PARSING_ARGUMENT_VALUE_COMPLETED")
        if not self.separator and (waiting or not self.prefix):
            raise NotExpressible("nothing after a raw value shows where it ends")
        sources, between = [], ""
        ends = dict.fromkeys([self.blanks + self.separator, self.separator])
        if self.separator:
            sources = [builder.state("WAITING_FOR_ARGUMENT_KEY")]
            names = builder.literals("ARGUMENT_SEPARATOR", ends)
            between = f"({' | '.join(names)}) _ws "
            builder.loop_blanks(*sources)
        self._argument(held, sources, waiting, closers)
        self.values += [waiting] if waiting else []
        path.states = list(self.values)
        rest = "argument"
        if not self.separator:
            names = builder.literals("NEXT_ARGUMENT", dict.fromkeys([self.blanks + self.prefix[0], self.prefix[0]]))
            rest = self.rules[0].removeprefix(f"argument: {names[-1]} ")
            self.rules[0] = f"argument: {names[-1]} _argument_rest"
            self.rules.insert(1, f"_argument_rest: {rest}")
            rest = f"({' | '.join(names)}) _argument_rest"
        for name in names:
            builder.to(name, self.values, (*sources, self.opened)[0])
        return f"(argument ({between}{rest})*)?"

    def _argument(self, held: Sequence[str], sources: Sequence[str], waiting: str, closers: Sequence[str]) -> None:
        builder = self.builder
        certain = ("start_call", "open_arguments")
        key_done = builder.state("PARSING_ARGUMENT_KEY_COMPLETED")
        key = self._key(closers)
        prefix = builder.literals("ARGUMENT", self.prefix)
        symbols: list[str] = []
        opened = key_done
        if prefix:
            key_state = builder.state("PARSING_ARGUMENT_KEY", "argument_key")
            opened = key_state if len(prefix) == 1 else builder.state("PARSING_ARGUMENT_START")
            builder.to(prefix[0], held, opened, *certain)
            builder.to(prefix[0], sources, opened)
            path = Path(builder, [opened], [prefix[0]])
            path.blanks()
            for at, name in enumerate(prefix[1:], 2):
                path.step(name, key_state if at == len(prefix) else builder.state("PARSING_ARGUMENT_START"))
            symbols = path.symbols
            builder.to(key, key_state, key_done, "argument_key")
        else:
            builder.to(key, held, key_done, *certain, "argument_key")
            builder.to(key, sources, key_done, "argument_key")
        self.opened = opened
        self._values(key, key_done, waiting, symbols, opened)

    def _key(self, closers: Sequence[str]) -> str:
        spaced = any(frame.before[:1].isspace() for frame in self.frames)
        excluded = "".join(next(iter(pieces(frame.before)), frame.before)[:1] for frame in self.frames)
        if any(char.isalnum() for char in excluded):
            raise NotExpressible("a word comes directly after the key of an argument")
        others = "" if self.prefix else "".join(text[0] for text in [*closers, self.separator] if text) + "{[\"'"
        others = "".join(char for char in others if not char.isalnum())
        ends = "" if self.prefix else "".join(each.after.strip()[:1] for each in self.frames) + others
        within = excluded + "".join(char for char in ends if not char.isalnum())  # a quote that is missing makes no key
        blanks = bool(self.prefix) and not spaced
        return self.builder.run("KEY", class_of(excluded + others), class_of(within, blanks), 256)

    def _values(self, key: str, key_done: str, waiting: str, symbols: list[str], opened: str) -> None:
        builder = self.builder
        blank = any(not pieces(frame.before) for frame in self.frames)
        if not blank:
            builder.loop_blanks(key_done)
        spaces = "" if blank else " _ws"
        branches: dict[tuple[str, ...], str] = {(): key_done}
        closed, opened_values = [], []
        for frame in self.frames:
            lead, state = self._lead(frame, branches)
            value = builder.state("PARSING_ARGUMENT_VALUE", "value", *frame.traits)
            opening = self._opening(frame, state, value)
            body = f"{lead}{opening} {frame.rule}"
            opened_values.append(body)
            closed.append(f"{body} {self._ending(frame, value, waiting, key)}")
        lead = f"{' '.join(symbols)} {key}{spaces}"
        self.rules = [f"argument: {lead} {closed[0] if len(closed) == 1 else one_of(closed)}"]
        self._may_stay_open(lead, opened_values, opened)
        self._value_rules()

    def _may_stay_open(self, lead: str, opened_values: Sequence[str], opened: str) -> None:
        """Let a value stay open if only its closing marker says where it ends."""
        builder = self.builder
        closable = not any(frame.alone or frame.open or frame.echo is not None for frame in self.frames)
        ends = not any(frame.open or frame.echo for frame in self.frames)
        self.text_alone = not closable and ends and self.frames[0].raw
        if closable and self.prefix and _is_marker(self.prefix[0]):
            separated = [self.form.separator + self.prefix[0]] if self.separator else []
            for name in builder.literals("NEXT_ARGUMENT", [*separated, self.prefix[0]]):
                builder.use("unclosed_argument", {"ARGUMENT": name, "PARSING_ARGUMENT_KEY": opened})
        if closable or self.text_alone:
            self.open = f"{lead} ({' | '.join(opened_values[:1] if self.text_alone else opened_values)})"

    def _value_rules(self) -> None:
        """Add the rules of the values."""
        rules = dict.fromkeys(frame.rule for frame in self.frames)
        self.rules += [f"{rule}: {'value' if rule == 'json_value' else 'VALUE?'}" for rule in rules]
        if "json_value" in rules:
            self.builder.take("json", "value")

    def _lead(self, frame: Frame, branches: dict[tuple[str, ...], str]) -> tuple[str, str]:
        """Return the markers between key and value, but for the last: shared by frames as far as they are the same."""
        builder = self.builder
        cut = self._before(frame)[:-1]
        text, state = "", branches[()]
        for at, piece in enumerate(cut, 1):
            name, branch = builder.literal("KEY_END", piece), tuple(cut[:at])
            if branch not in branches:
                branches[branch] = builder.state("WAITING_FOR_ARGUMENT_VALUE")
                builder.to(name, state, branches[branch])
                builder.loop_blanks(branches[branch])
            state = branches[branch]
            text += f"{name} _ws "
        return text, state

    def _before(self, frame: Frame) -> list[str]:
        """Return the pieces between key and value; one, if what is there for other types begins like it."""
        bare = frame.before.strip()
        others = [other.before.strip() for other in self.frames if other is not frame]
        if any(other and (bare.startswith(other) or other.startswith(bare)) for other in others):
            return [bare]
        return pieces(frame.before)

    def _opening(self, frame: Frame, state: str, value: str) -> str:
        builder = self.builder
        cut = self._before(frame)
        last = cut[-1] if cut else frame.before
        if not last:
            raise NotExpressible("nothing is between the key and the value of an argument")
        role = "VALUE_START" if len(cut) > 1 else "KEY_END"
        names = [builder.literal(role, last)]
        blanks = frame.before[len(frame.before.rstrip()) :] if frame.raw and cut else ""
        if blanks:
            names.insert(0, builder.literal(f"{role}_LINE", last + blanks))
        for name in names:
            builder.to(name, state, value)
        return one_of(names)

    def _ending(self, frame: Frame, value: str, waiting: str, key: str) -> str:
        builder, cut = self.builder, pieces(frame.after)
        if frame.open:
            self.values.append(value)
            return ""
        if frame.echo is not None:
            return self._echo(frame, value, waiting, key)
        if frame.alone and not cut:
            builder.to("value_end", value, waiting)
            return ""
        if frame.alone:
            names, rest = [], cut
            done = builder.state("PARSING_ARGUMENT_VALUE_COMPLETED")
            builder.to("value_end", value, done)
        else:
            first, rest = cut[0] if cut else frame.after, cut[1:]
            if not first:
                raise NotExpressible("nothing after a raw value shows where it ends")
            blanks = frame.after[: len(frame.after) - len(frame.after.lstrip())] if frame.raw and cut else ""
            names = [builder.literal("VALUE_END", first)] if not blanks or _is_marker(first) else []
            if blanks:
                names.insert(0, builder.literal("VALUE_END_LINE", blanks + first))
            done = builder.state("PARSING_ARGUMENT_VALUE_COMPLETED") if rest else waiting
            for name in names:
                builder.to(name, value, done)
        path = Path(builder, [done], [one_of(names)] if names else [])
        if rest:
            path.blanks()
        for at, piece in enumerate(rest, 1):
            last = at == len(rest)
            dest = waiting if last else builder.state("PARSING_ARGUMENT_VALUE_COMPLETED")
            path.step(builder.literal("VALUE_END", piece), dest, blanks=not last)
        return path.text()

    def _echo(self, frame: Frame, value: str, waiting: str, key: str) -> str:
        """Add a closing marker that repeats the key (`</key>`); return its rule."""
        builder = self.builder
        spaced = frame.raw and not set(frame.after[: -len(frame.after.lstrip())]) & {*"\r\n"}
        opening = builder.literal("VALUE_END", frame.after.rstrip() if spaced else frame.after.strip())
        again = builder.state("PARSING_CLOSING_KEY")
        after = builder.state("PARSING_CLOSING_KEY_COMPLETED")
        builder.to(opening, value, again)
        builder.to(key, again, after)
        closing = builder.literal("VALUE_CLOSE", (frame.echo or "").strip())
        builder.to(closing, after, waiting)
        return f"{opening} {key} {closing}"


def _is_marker(text: str) -> bool:
    """Return whether a text is hardly part of a value: a bracket, or more than two characters."""
    return len(text) > 2 or not set("<>[]{}()").isdisjoint(text)


def _frames(form: ArgumentsFormat) -> list[Frame]:
    """Return the frames of all types, those of text first."""
    found: dict[tuple[str, str], dict[str, ValueEncoding]] = {}
    for kind, style in form.values.items():
        if style.encoding not in _UNWRITTEN:
            found.setdefault((style.before, style.after), {})[kind] = style.encoding
    if not found:
        raise NotExpressible("what is around the value of an argument depends on the value, or no value is written")
    echo = _echo_of(form)
    escaped = next(iter(form.values.values())).escaped
    read = [_frame(before, after, kinds, echo, len(found), escaped) for (before, after), kinds in found.items()]
    frames = list({(each.before, each.after): each for each in sorted(read, key=lambda each: each.alone)}.values())
    for one, other in pairwise(sorted(frames, key=lambda each: each.before)):
        if one.before == other.before:
            ends = f"{one.after!r} or {other.after!r}"
            raise NotExpressible(f"what {one.before!r} opens is closed by {ends}, which depends on the value")
    text = form.values.get("string")
    if text is not None and text.wrapped is not None and echo is None:
        opening, closing = text.before + text.wrapped[0], text.wrapped[1] + text.after
        frames.append(Frame(opening, closing, None, ("text",), False))
    return sorted(frames, key=lambda frame: not frame.raw)


def _echo_of(form: ArgumentsFormat) -> str | None:
    """Return the text after the key that a closing marker repeats; None if it repeats none."""
    pattern = framed(form.pattern, next(iter(form.values.values())))
    rest = pattern[pattern.index(ArgumentSlot.VALUE) + 1 :]
    if ArgumentSlot.KEY not in rest:
        return None
    tail = rest[rest.index(ArgumentSlot.KEY) + 1 :]
    return tail[0] if tail and isinstance(tail[0], str) else ""


def _frame(
    before: str, after: str, kinds: dict[str, ValueEncoding], echo: str | None, frames: int, escaped: str
) -> Frame:
    encodings, traits = set(kinds.values()), ("echo",) if echo is not None else ()
    if escaped:
        return Frame(before, after, echo, (escaped, *traits), False)
    text, quoted = kinds.get("string"), before.endswith('"') and after.startswith('"')
    if quoted and (text is ValueEncoding.JSON_ESCAPED or (text is ValueEncoding.RAW and frames > 1)):
        if text is ValueEncoding.RAW and echo is None and set(kinds) == {"string"} and _is_marker(after[1:].strip()):
            return Frame(before, after, echo, ("text",), False)  # a marker tells where it ends
        # quotes of JSON; text that is not escaped in them is JSON nearly always
        return Frame(before[:-1], after[1:], echo, ("json",), True)
    if echo is None and ((encodings <= _JSON and "string" in kinds) or (encodings <= _LITERAL and not after.strip())):
        return Frame(before, after, echo, ("json",), True)
    if encodings <= _LITERAL:
        return Frame(before, after, echo, ("json", *traits), False)
    if set(kinds) == {"string"} and frames > 1:
        return Frame(before, after, echo, ("text", *traits), False)
    return Frame(before, after, echo, traits, False)
