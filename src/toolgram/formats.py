"""Formats: two files, loaded, compiled and ready to make parsers. Shipped formats load by name, yours by path.

Strategy: a process loads what it uses.  The specification of a shipped format comes from what the build kept, so that
no file is read by a library; the parser and the compiler are imported with the first parser.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

from toolgram.call_ids import CallIds, random_call_ids
from toolgram.errors import FormatError, ToolgramError
from toolgram.late_imports import late_import
from toolgram.spec.as_json import dump, load
from toolgram.spec.cache import kept_spec
from toolgram.spec.data import Spec, text_only, with_bare_calls, with_line_calls

if TYPE_CHECKING:
    from pathlib import Path  # its import takes as long as that of the parser

    from lark import Lark

    from toolgram.check.reference import ReferenceMachine
    from toolgram.derive.report import DeriveReport
    from toolgram.diagrams.kinds import Kind, Level
    from toolgram.explain.explanation import Explanation
    from toolgram.export.expressions import Export
    from toolgram.message import Message
    from toolgram.observing.observed import ObservedPaths
    from toolgram.program.state import Program
    from toolgram.runtime.parser import Parser
    from toolgram.runtime.stream import Trace


def _home() -> str:
    """Find `grammars/` and `machines/`: in the installed package, or at the top of a checkout."""
    package = os.path.dirname(os.path.realpath(__file__))
    return package if os.path.isdir(os.path.join(package, "machines")) else os.path.dirname(os.path.dirname(package))


class Format:
    """How one family of models writes reasoning, content and tool calls: a grammar and a machine, compiled.

    Cannot be changed, and is shared: any number of parsers, in any threads, may come from one format. It pickles, with
    what its two files say; after loading, the first parser compiles it again.
    """

    spec: Spec
    _machine_text: str | None
    report: DeriveReport | None  # how it was derived; None for a format that was written
    choice: str  # why `get_format` took this one; "" if the name alone says it

    def __init__(
        self, spec: Spec, machine_text: str | None = None, report: DeriveReport | None = None, choice: str = ""
    ) -> None:
        self.__dict__.update(spec=spec, report=report, choice=choice, _machine_text=machine_text)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{self!r} cannot be changed; load or derive another format")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{self!r} cannot be changed; load or derive another format")

    def __reduce__(self) -> tuple[Any, ...]:
        data = json.dumps(dump(self.spec))
        return (
            (_unpickled, (data, self.machine_text))
            if self.report is None
            else (_unpickled_derived, (data, self.machine_text, self.report))
        )

    @property
    def name(self) -> str:
        """The name by which the format is known."""
        return self.spec.name

    @property
    def title(self) -> str:
        """Its name for people."""
        return self.spec.title

    @property
    def models(self) -> tuple[str, ...]:
        """The models that write it."""
        return self.spec.models

    @property
    def example(self) -> str:
        """An output that shows it."""
        return self.spec.example

    @property
    def generation_prompt(self) -> str:
        """What a prompt writes for the assistant, assumed if a parser gets no `prefix`; "" for nothing."""
        return self.spec.generation_prompt

    @property
    def notes(self) -> tuple[str, ...]:
        """What readers of its page should know."""
        return self.spec.notes

    @cached_property
    def _call_ids(self) -> CallIds:
        return random_call_ids(self.spec.call_ids)

    def __repr__(self) -> str:
        return f"<Format {self.name}>"

    @property
    def grammar_text(self) -> str:
        """The grammar file as it is written. Free text and values are declared in it."""
        return self.spec.grammar_text

    @property
    def whole_grammar_text(self) -> str:
        """The grammar with definitions of all that it declares: what Lark parses complete outputs with."""
        from toolgram.program.free_text import whole_grammar

        return whole_grammar(self.spec)

    @property
    def machine_text(self) -> str:
        """The text of the machine file."""
        if self._machine_text is None:
            with open(self.spec.machine_path, encoding="utf-8") as file:
                self.__dict__["_machine_text"] = file.read()
        return self._machine_text or ""

    @property
    def machine_dict(self) -> dict[str, Any]:
        """The machine file, as data of your own: `format` says what it is, `machine` is the transitions markup."""
        return self.spec.machine_dict

    def diagram(self, kind: Kind = "mermaid", level: Level = "path") -> str:
        """Return the state diagram, as `mermaid` or `dot` text or as an `svg` document.

        `path` has a few boxes, the way that the format's own example outputs take; `whole` has every state.
        Raises ToolgramError for another kind or level, and if `dot` or `svg` needs the extra `diagrams`. An SVG takes
        tenths of a second.
        """
        drawn: str = late_import("diagram")(self, kind, level)
        return drawn

    @cached_property
    def program(self) -> Program:
        """The compiled form that parsers run."""
        return _compiled(self.spec)

    @cached_property
    def strict_program(self) -> Program:
        """The same without what repairs: the form that strict parsers run."""
        return _compiled(self.spec, strict=True)

    def with_all_markers(self) -> Format:
        """Return the format for proofs: a marker counts everywhere, even if the model only mentions a call."""
        made = Format(self.spec, self._machine_text, self.report, self.choice)
        made.__dict__["program"] = replace(self.program, mentions=False)
        made.__dict__["strict_program"] = replace(self.strict_program, mentions=False)
        return made

    def _chosen(self, tools: Sequence[Any] | None, strict: bool) -> tuple[Any, Program]:
        """Return the tools of a request, and the compiled form that reads its output."""
        program = self.strict_program if strict else self.program
        if not (self.spec.line_calls or self.spec.bare_calls) or tools is None or strict:
            return tools, program
        from toolgram.tools.reading import read_tools

        declared = read_tools(tools)
        if not declared.names:
            return declared, program
        return declared, self._bare_program if self.spec.bare_calls else self._program_for(declared.names)

    @cached_property
    def _bare_program(self) -> Program:
        """The compiled form for a request that declares functions, if a call may be in text."""
        return _compiled(with_bare_calls(self.spec))

    @cached_property
    def _program_for(self) -> Callable[[frozenset[str]], Program]:
        """The compiled form for a request that declares functions of these names, if names make a difference."""
        return lru_cache(maxsize=16)(lambda names: _compiled(with_line_calls(self.spec, names)))

    @cached_property
    def _whole_message(self) -> Callable[..., Message | None]:
        from toolgram.runtime.whole_outputs import whole_message

        return whole_message

    @cached_property
    def _parser_class(self) -> type[Parser]:
        from toolgram.runtime.parser import Parser

        return Parser

    @cached_property
    def text_only(self) -> Format:
        """The same format without its calls, for a request without tools: their text is content."""
        return Format(text_only(self.spec), self._machine_text, self.report)

    def with_suffix_of(self, texts: Iterable[str]) -> Format:
        """Return the format with the suffix that these texts, of special tokens or of a prompt, have in its markers.

        Some checkpoints write a suffix of their own in every marker (`<think:6124c78e>`). `parser`, `parse`, `export`
        and `explain` do this already. It is the format itself if it has no suffix, or if the texts have no other one.
        """
        told = [text for text in texts if text] if self.spec.suffix else []
        found: Format = late_import("with_suffix_of")(self, told) if told else self
        return found

    def reference_machine(self) -> ReferenceMachine:
        """Return the real `transitions` machine, to drive trigger by trigger; for tests, `explain` and callbacks."""
        machine: ReferenceMachine = late_import("reference_machine")(self.spec)
        return machine

    @cached_property
    def reference_grammar(self) -> Lark:
        """The grammar as Lark builds it (LALR or Earley), for tests and checks."""
        grammar: Lark = late_import("reference_grammar")(self.spec)
        return grammar

    def reference_parse(self, text: str, prefix: str | None = None) -> Message:
        """Return the message of a complete, well-formed output, by Lark's own parse of it. Slow; for tests.

        `prefix` is the generation prompt, as for `parser`. Raises ToolgramError if the grammar does not accept it.
        """
        before = self.spec.generation_prompt if prefix is None else prefix
        message: Message = late_import("reference_parse")(self.spec, self.reference_grammar, before + text)
        return message

    def parser(
        self,
        tools: Sequence[Any] | None = None,
        prefix: str | None = None,
        call_ids: CallIds | None = None,
        special_tokens: Mapping[str, int] | None = None,
        trace: Trace | None = None,
        keep_message: bool = True,
        strict: bool = False,
    ) -> Parser:
        """Return a parser for one stream.

        `tools` are in any known shape (`toolgram.tools`). Their types decide values between tags, and a call of any
        other function is an anomaly. `prefix` is the end of the prompt: what it has already written for the assistant.
        It moves the machine and gives no events; None is the format's own `generation_prompt`, `""` is nothing.
        `call_ids` makes ids for calls without one. `special_tokens` maps the text of special tokens to their ids, for
        `Parser.feed` with ids. `trace` is called with a `TraceStep` at every transition.

        With `keep_message=False` the parser forgets what it has sent: its memory does not grow with the output, and
        `Parser.message` raises. With `strict=True` nothing is repaired: a fault inside a call makes the call malformed.

        Raises ToolgramError for tools of no known shape. Takes microseconds if the tools were given before. The first
        parser of a format compiles it, which takes some ten milliseconds.
        """
        if not hasattr(special_tokens or {}, "items"):
            got = type(special_tokens).__name__
            raise TypeError(f"special_tokens maps texts to ids, such as {{'<tool_call>': 151657}}; it is no {got}")
        fmt = self.with_suffix_of([prefix or "", *(special_tokens or ())]) if self.spec.suffix else self
        tools, program = fmt._chosen(tools, strict)
        return self._parser_class(
            program,
            tools,
            prefix,
            call_ids or self._call_ids,
            special_tokens,
            trace,
            keep_message,
        )

    def parse(
        self,
        text: str,
        tools: Sequence[Any] | None = None,
        prefix: str | None = None,
        finish_reason: str | None = None,
        strict: bool = False,
        call_ids: CallIds | None = None,
    ) -> Message:
        """Parse a whole output: return the message of one `feed` and one `close`. Never raises on any text.

        `tools`, `prefix`, `call_ids` and `strict` are those of `parser`, `finish_reason` is that of `Parser.close`. The
        time is linear in the length of the text.
        """
        if not isinstance(text, str):
            raise TypeError(f"an output is str, not {type(text).__name__}: decode bytes before `parse`")
        fmt = self.with_suffix_of([prefix]) if self.spec.suffix and prefix else self
        tools, program = fmt._chosen(tools, strict)
        ids = call_ids or self._call_ids

        def read(text: str, ids: CallIds) -> Message:
            parser = self._parser_class(program, tools, prefix, ids)
            parser.feed(text)
            parser.close(finish_reason)
            return parser.message

        message = None
        if prefix is None or not (prefix or program.spec.generation_prompt):
            message = self._whole_message(program, text, tools, ids, finish_reason, read)
        return read(text, ids) if message is None else message

    def explain(
        self,
        text: str,
        tools: Sequence[Any] | None = None,
        prefix: str | None = None,
        finish_reason: str | None = None,
    ) -> Explanation:
        """Explain why `parse` reads an output as it does. Takes what `parse` takes, and never raises on any text.

        The explanation says which event has each character, which path the machine took, what was held back and why it
        was let go, and which other formats read more. It tries all shipped formats, so it takes tens of milliseconds.
        """
        fmt = self.with_suffix_of([prefix or ""])
        explanation: Explanation = late_import("explain")(fmt, text, tools, prefix, finish_reason)
        return explanation

    @cached_property
    def observed_paths(self) -> ObservedPaths:
        """The transitions that the format's own example outputs take. Exports write these and no others."""
        paths: ObservedPaths = late_import("observe_paths")(self)
        return paths

    def export(
        self,
        target: str,
        tools: Sequence[Any] | None = None,
        tool_choice: str | Mapping[str, Any] | Sequence[str] | None = "auto",
        parallel_tool_calls: bool = True,
        reasoning: bool | None = None,
        json_schema: Mapping[str, Any] | None = None,
        prefix: str | None = None,
        special_tokens: Mapping[str, int | None] | Collection[str] | None = None,
        text_before_calls: bool = False,
        strict: bool | None = None,
        open_objects: bool = False,
        length_limits: bool = False,
        stop_tokens_inside: bool = False,
        answer_format: Mapping[str, Any] | None = None,
    ) -> Export:
        """Return the grammar that constrains a model to what this parser reads as complete, valid calls.

        `target` is one of `toolgram.export.TARGETS`, such as `llguidance`, `structural_tag` (for vLLM) or `gbnf`.
        `tools` are in any known shape, and arguments follow their schemas. `tool_choice` is `auto` (or None),
        `required`, `none`, a list of the names that may be called, or what the APIs write for one function or for
        allowed ones. If there must be a call, it follows reasoning and blanks at once, unless `text_before_calls`.
        With `reasoning=True` the output begins with a thought, with False it has none. `json_schema` is the schema of
        the answer's text. `answer_format` is its form as structural tags write it, and for these only, such as
        {"type": "regex", "pattern": "[0-9]+"}. `prefix` is the end of the prompt, as for `parser`; without it, a
        derived format takes it from its template. `special_tokens` are the markers that are tokens and not text: texts
        with their ids, or the texts alone if the target can name a token.

        An object with `properties` is closed unless its schema says otherwise, or open with `open_objects`. `strict`
        replaces what each tool says of itself: True holds all to their schemas, False none. `length_limits` enforces
        the lengths of texts in xgrammar as well, which makes compiling slow. With `stop_tokens_inside` an output ends
        with a token that ends the turn. The `notes` of the result say what could not be expressed, and what is stricter
        than a schema.

        Raises ToolgramError for an unknown target, an invalid schema or one that is too large, a function that cannot
        be called in this format, a chosen function that is not declared, and an answer format that the target does not
        have. Takes some ten milliseconds; the time is linear in the size of the schemas.
        """
        grammar: Export = late_import("export")(
            self.with_suffix_of([prefix or "", *(special_tokens or ())]),
            target,
            tools,
            prefix,
            special_tokens,
            length_limits,
            stop_tokens_inside,
            tool_choice=tool_choice,
            parallel_tool_calls=parallel_tool_calls,
            reasoning=reasoning,
            json_schema=json_schema,
            text_before_calls=text_before_calls,
            strict=strict,
            open_objects=open_objects,
            answer_format=answer_format,
        )
        return grammar

    def restore(
        self,
        state: Mapping[str, Any],
        tools: Sequence[Any] | None = None,
        call_ids: CallIds | None = None,
        special_tokens: Mapping[str, int] | None = None,
    ) -> Parser:
        """Return a parser that continues from `Parser.snapshot`. Its message begins there, with the open call if any.

        `tools`, `call_ids` and `special_tokens` are those of `parser`: a snapshot does not have them, but it knows
        `strict`. Raises ToolgramError if `state` is not a snapshot, or one of another format or version; `feed` and
        `close` of the parser raise it for a forged one. Takes less than a millisecond.
        """
        from toolgram.runtime.parser import RestoredParser
        from toolgram.runtime.snapshots import VERSION

        try:
            version = state["version"]
            if version != VERSION or type(version) is not int:
                shown = version if isinstance(version, int) else type(version).__name__
                raise ToolgramError(f"snapshot version {shown} cannot be read; this package reads {VERSION}")
            fmt = self.with_suffix_of([state["suffixed"]])
            parser = fmt.parser(tools, "", call_ids, special_tokens, strict=state["strict"] is True)
            parser.__class__ = RestoredParser  # a forged snapshot is one clear error, also later
            parser.restore(state)
        except ToolgramError:
            raise
        except Exception:  # a snapshot may say anything
            raise ToolgramError(f"not a snapshot of {self.name}: give what `Parser.snapshot` returned") from None
        return parser


def _compiled(spec: Spec, strict: bool = False) -> Program:
    from toolgram.program.compiling import compile_spec  # only if a format is used: it costs more than to load one

    return compile_spec(spec, strict)


@lru_cache(maxsize=64)
def _unpickled(data: str, machine_text: str) -> Format:
    """Load a format that was pickled; it is compiled once for all parsers that were pickled with it."""
    spec = load(Spec, json.loads(data))
    return Format(replace(spec, import_paths=(str(grammar_home()),)), machine_text)


def _unpickled_derived(data: str, machine_text: str, report: DeriveReport) -> Format:
    return Format(_unpickled(data, machine_text).spec, machine_text, report)


def grammar_home() -> Path:
    """Return the directory of the shipped grammars, which also has the common ones that they import."""
    from pathlib import Path

    return Path(_home(), "grammars")


def format_names() -> list[str]:
    """Return the names of the shipped formats, sorted."""
    files = map(os.path.splitext, os.listdir(os.path.join(_home(), "machines")))
    return sorted(name for name, ending in files if ending == ".yaml")


@lru_cache(maxsize=256)
def get_format(name: str) -> Format:
    """Return the shipped format of this name: its own, that of a parser of vLLM or SGLang, or the id of a model.

    `Format.choice` says why it is this format, if the name alone does not. Raises UnknownFormat, which lists the
    names and suggests the nearest.
    """
    shipped = format_names()
    if name in shipped:
        return _shipped(name)
    from toolgram.names import chosen  # other names are a file of their own, and few ask for them

    choice = chosen(name, shipped)
    fmt = _shipped(choice.format)
    return Format(fmt.spec, fmt.machine_text, choice=choice.why) if choice.why else fmt


@lru_cache(maxsize=256)
def _shipped(name: str) -> Format:
    home = _home()
    grammar, machine = os.path.join(home, "grammars", f"{name}.lark"), os.path.join(home, "machines", f"{name}.yaml")
    kept = kept_spec(name, grammar, machine)
    return Format(kept) if kept is not None else _load(grammar, machine)


def load_format(grammar: str | Path, machine: str | Path) -> Format:
    """Load a format from two files of your own. Raises FormatError, which says file, line and remedy."""
    from toolgram.program.look_ahead import TooManyWays

    fmt = _load(grammar, machine)
    try:
        _ = fmt.program  # compiled now, so that it is refused now
    except TooManyWays as error:
        remedy = "let fewer states follow one another after a value that is not closed"
        raise FormatError(str(machine), str(error), remedy) from None
    return fmt


def _load(grammar: str | Path, machine: str | Path) -> Format:
    from pathlib import Path

    from toolgram.spec.files import read_spec

    return Format(read_spec(Path(grammar), Path(machine), (os.path.join(_home(), "grammars"),)))
