"""A grammar file: its terminals and rules as Lark compiles them, and whether a terminal is of a shape that streams.

Strategy: Lark reads.  What the runtime needs are the terminals that the machine names, each a fixed text or a bounded
run of one character class (see `spec`), because only for these is it decided without backtracking whether the next
character still belongs to them.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from re import _constants, _parser
from typing import Any, NamedTuple

from lark.exceptions import LarkError
from lark.grammar import Rule
from lark.lexer import PatternStr, TerminalDef
from lark.load_grammar import load_grammar

from toolgram.errors import FormatError
from toolgram.limits import MAX_MARKER, MAX_RUN
from toolgram.spec.computed_imports import with_computed_imports
from toolgram.spec.data import Literal, Run
from toolgram.spec.declarations import check_declared
from toolgram.spec.grammar_size import GrammarFiles
from toolgram.spec.machine_file import read_text


class Grammar(NamedTuple):
    """A grammar as Lark compiles it: terminals, rules, and the names of terminals that are declared only, sorted.

    Names have the prefix of their import, unless they are imported by name.
    """

    terminals: list[TerminalDef]
    rules: list[Rule]
    declared: tuple[str, ...]


def load_lark(text: str, path: str, import_paths: tuple[str, ...]) -> Grammar:
    """Load a grammar with Lark. Raises FormatError."""
    files = GrammarFiles(import_paths, _text_of)
    try:
        files.check(text, path)
        grammar, _ = load_grammar(  # type: ignore[no-untyped-call]
            with_computed_imports(text, path, files.load), path, [files.load], False
        )
        declared = sorted(str(name) for name, definition in _definitions(grammar) if definition is None)
        check_declared(declared, text, path)
        terminals, rules, _ = grammar.compile(["start"], "*")
    except _REFUSALS as error:
        raise _refused(error, text, path) from None
    if not any(rule.origin.name == "start" for rule in rules):
        raise FormatError(path, "the grammar has no rule `start`", "start: TEXT*")
    return Grammar(list(terminals), list(rules), tuple(declared))


def _refused(error: Exception, text: str, path: str) -> FormatError:
    problem = " ".join(str(error).split()) or type(error).__name__
    found = ((re.search(said, problem), cause, remedy) for said, cause, remedy in _CAUSES)
    name, cause, remedy = next((said[1], cause, remedy) for said, cause, remedy in found if said)
    places = (at for at, line in enumerate(text.splitlines(), 1) if re.search(cause.format(name), line))
    place = _PLACE.search(problem) or ("", next(places, 0), 0)
    problem = f"Lark refuses the grammar: {problem[:300]}"
    return FormatError(path, problem, remedy.format(name), int(place[1]), int(place[2] or 0))


def with_imports(text: str, path: str, import_paths: tuple[str, ...]) -> str:
    """Return the text of a grammar file as Lark itself can load it: all names that it overrides are imported."""
    return with_computed_imports(text, path, GrammarFiles(import_paths, _text_of).load)


def _definitions(grammar: Any) -> Iterator[tuple[str, Any]]:
    """Yield the terminals and rules of Lark's grammar, with the trees that define them."""
    yield from ((name, tree) for name, (tree, _) in grammar.term_defs)
    yield from ((name, tree) for name, _, tree, _ in grammar.rule_defs)


# What Lark raises for a grammar that it cannot use: some of it on purpose.
_REFUSALS = (LarkError, OSError, RecursionError, re.error, AssertionError, LookupError, ValueError, TypeError,
             AttributeError, OverflowError, RuntimeError)  # fmt: skip
# What Lark says, what the line with the cause has, and what to write; {} is the name that Lark says.
_CAUSES = (
    (r"No such file or directory: '(?:.*/)?(\w+)\.lark'", r"%import.*\b{}\b",
     "import a file of grammars/common as `.common.NAME`, one in the folder of this file as `.NAME`; there is no {}"),
    (r"Rule '(\w+)' used but not defined", r"^(?!//).*\b{}\b",
     "define {0}; if it is free text or a value, write `%declare {0}`"),
    (r"Empty (terminals)", r':\s*""', "give the terminal a text, or take it out of the rules"),
    (r"'(\w+)' defined more than once", r"^\W*{}\b.*:", "take one of the definitions of {} away"),
    ("()", r"(?!)", "correct the grammar at this place (https://lark-parser.readthedocs.io/en/stable/grammar.html)"),
)  # fmt: skip
_PLACE = re.compile(r"(?:at )?line (\d+)(?:,? column (\d+))?")
OPEN = "// open: "  # begins a comment that says what derivation left open


def _text_of(path: str) -> str | None:
    return read_text(Path(path)) if os.path.exists(path) else None


def read_grammar(text: str, path: str, import_paths: tuple[str, ...]) -> Grammar:
    """Load a grammar, and check that its terminals are regular expressions. Raises FormatError."""
    grammar = load_lark(text, path, import_paths)
    for terminal in grammar.terminals:
        try:
            with warnings.catch_warnings(action="ignore"):
                re.compile(terminal.pattern.to_regexp())
        except (re.error, OverflowError, RecursionError, ValueError) as error:
            raise FormatError(
                path,
                f"terminal {terminal.name} is not a regular expression: {error}",
                f"{terminal.name}: /[a-z]{{1,64}}/",
                terminal_line(text, terminal.name),
            ) from None
    return grammar


def terminal_line(grammar_text: str, name: str) -> int:
    """Return the line on which `name` is defined in the grammar, 0 if it is imported."""
    pattern = re.compile(rf"^[ \t]*(?:%override[ \t]+)?[?!]?{re.escape(name)}(?:\.-?\d+)?[ \t]*(?:\{{|:)")
    for number, line in enumerate(grammar_text.splitlines(), 1):
        if pattern.match(line):
            return number
    return 0


def shape_of(terminal: TerminalDef, path: str, line: int) -> Literal | Run:
    """Return the terminal as a Literal or a Run. Raises FormatError if it is neither."""
    name, pattern = str(terminal.name), terminal.pattern  # one that is imported has a token as its name
    if isinstance(pattern, PatternStr):
        if not pattern.flags and 0 < len(pattern.value) <= MAX_MARKER:
            return Literal(name, pattern.value)
    else:
        text = _with_line_ends(pattern.to_regexp())
        if text is not None:
            return Literal(name, text, either_end=True)
        run = _as_run(name, pattern.to_regexp())
        if run is not None:
            return run
    raise FormatError(
        path,
        f"terminal {name} is too complex for a trigger: {pattern.to_regexp()}",
        f'write it as one fixed text ("...", at most {MAX_MARKER} characters) or as one bounded run of a character '
        f"class (/[...]{{1,64}}/ or /[...][...]{{0,63}}/, at most {MAX_RUN}), or build it from several such "
        "terminals",
        line,
    )


def _with_line_ends(pattern: str) -> str | None:
    """Return the fixed text with line ends that are written `\\r?\\n`, all of them; None for another expression."""
    found, optional = "", False
    with warnings.catch_warnings(action="ignore"):
        parsed = _parser.parse(pattern)
    for op, argument in parsed:
        if op is _constants.MAX_REPEAT and not optional:
            least, most, inner = argument
            optional = (least, most, list(inner)) == (0, 1, [(_constants.LITERAL, ord("\r"))])
            if not optional:
                return None
        elif op is not _constants.LITERAL or (argument == ord("\n")) != optional:
            return None
        else:
            found, optional = found + chr(argument), False
    return found if "\n" in found and not optional and len(found) + found.count("\n") <= MAX_MARKER else None


def _as_run(name: str, pattern: str) -> Literal | Run | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)  # `[[`: a later Python may read another set
        try:
            parsed = _parser.parse(pattern)
        except FutureWarning:
            return None
    if parsed and all(op is _constants.LITERAL for op, _ in parsed):
        text = "".join(chr(code) for _, code in parsed)
        return Literal(name, text) if len(text) <= MAX_MARKER else None
    if not 1 <= len(parsed) <= 2:
        return None
    (first, first_argument), (tail, tail_argument) = parsed[0], parsed[-1]
    if len(parsed) == 2 and (first not in _CLASSES or tail is not _constants.MAX_REPEAT):
        return None
    least, most, inner = tail_argument if tail is _constants.MAX_REPEAT else (1, 1, [(tail, tail_argument)])
    if len(inner) != 1 or inner[0][0] not in _CLASSES or int(most) > MAX_RUN or (least < 1 and len(parsed) == 1):
        return None
    head = pattern[: _class_end(pattern)]
    if not _is_class(head, (first, first_argument) if len(parsed) == 2 else inner[0]):
        return None
    return Run(name, pattern, head, int(most) + len(parsed) - 1)


def _is_class(head: str, atom: tuple[Any, Any]) -> bool:
    """Return whether a pattern is this one atom: it is not if the first atom is written in another way."""
    try:
        return list(_parser.parse(head)) == [atom]
    except re.error:
        return False


_CLASSES = (_constants.IN, _constants.LITERAL, _constants.NOT_LITERAL)


def _class_end(pattern: str) -> int:
    """Return where the first atom of a pattern ends: a class in brackets, an escape, or one character."""
    if not pattern.startswith("["):
        return 2 if pattern.startswith("\\") else 1
    at = 2 if pattern[1:2] == "^" else 1
    at += pattern[at : at + 1] == "]"  # a bracket that comes first is an ordinary character
    while at < len(pattern) and pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at + 1
