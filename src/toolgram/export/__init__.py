"""Export grammars for constrained decoding, which let a model write only what the format's parser reads as valid calls.

Strategy: a format's observed paths and a request give one expression (`building`). Each target (`targets`) has a writer
that turns the expression into its own notation. No code here depends on one format, and none runs a model. The notes of
the result say what a target cannot express.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from toolgram.errors import ToolgramError
from toolgram.export.building import Builder
from toolgram.export.expressions import NOTHING, Export, Expr, Lit, Note, Token, choice, rest_after, seq
from toolgram.export.functions import Functions, with_names
from toolgram.export.requests import ExportRequest, Tool, export_request
from toolgram.export.targets import TARGETS, ExportTarget
from toolgram.formats import Format
from toolgram.limits import MOST_OUTLINES
from toolgram.observing.observed import stop_tokens
from toolgram.observing.paths import state_after
from toolgram.spec.data import Run
from toolgram.tools.reading import read_tools


def export(
    fmt: Format, target: str, tools: Sequence[Any] | None = None, prefix: str | None = None,
    special_tokens: Mapping[str, int | None] | Collection[str] | None = None, length_limits: bool = False,
    stop_tokens_inside: bool = False, **asked: Any,
) -> Export:  # fmt: skip
    """See `Format.export`; the other arguments are those of `export_request`."""
    if target not in TARGETS:
        raise ToolgramError(f"unknown target {target!r}; the targets are {', '.join(TARGETS)}")
    if asked.get("answer_format") is not None and target != "structural_tag":
        raise ToolgramError(
            f"answer_format is a format of structural tags, which {target} has none of; use the target structural_tag, "
            "or json_schema"
        )
    chosen = TARGETS[target]
    notes: dict[str, None] = {}
    tokens = _tokens(fmt, target, special_tokens or (), notes.setdefault)
    if server := [tool.name or str(tool.definition.get("type")) for tool in read_tools(tools) if not tool.is_function]:
        notes.setdefault(f"tools without parameters of their own are left to the server: {', '.join(server)}")
    request = export_request(tools, special_tokens=tokens, note=notes.setdefault, **asked)
    request = replace(request, tokens=replace(request.tokens, as_text=chosen.tokens_as_text))
    root, triggers = expression(fmt, request, prefix, notes.setdefault)
    special, stop = _special_tokens(fmt)
    if stop_tokens_inside:
        if not stop:
            notes.setdefault("this format names no token that ends a turn, so the grammar has none")
        ends = [Token(each, tokens[each]) if each in tokens else Lit(each) for each in stop]
        root = seq(root, choice(*ends)) if stop else root
    text = chosen.write(root, notes.setdefault, length_limits)
    if request.calls:
        notes |= dict.fromkeys(_notes_on_calls(fmt))
    if request.calls and not triggers and chosen.note_without_triggers:
        notes.setdefault(chosen.note_without_triggers)
    return Export(target, text, triggers, stop, special, tuple(notes))


@lru_cache(maxsize=MOST_OUTLINES)
def _special_tokens(fmt: Format) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the markers that are special tokens, and those of them that end a turn."""
    markers, stops = fmt.program.literals, stop_tokens(fmt.spec, fmt.observed_paths)
    special = [token for token in fmt.spec.special_tokens if token in markers]
    return tuple(map(markers.__getitem__, special)), tuple(markers[token] for token in special if token in stops)


@lru_cache(maxsize=MOST_OUTLINES)
def _notes_on_calls(fmt: Format) -> tuple[str, ...]:
    """Return where the grammar differs from the example outputs."""
    states = fmt.spec.states
    observed = [edge for edges in fmt.observed_paths.edges.values() for edge in edges]
    meanings = {(states[edge.source].meaning, states[edge.dest].meaning) for edge in observed}
    notes = {
        "a value ends where the next argument begins, so calls are exported with one argument at most":
            ("value", "argument_key") in meanings,
        "this template writes a call as a Python dict; it is exported as JSON, which is read as well":
            fmt.observed_paths.python_calls,
    }  # fmt: skip
    return tuple(note for note, holds in notes.items() if holds)


def _tokens(
    fmt: Format, target: str, given: Mapping[str, int | None] | Collection[str], note: Note
) -> Mapping[str, int | None]:
    """Return the markers that the target can write as tokens. Raises ToolgramError for an invalid id."""
    tokens: dict[str, int | None] = dict(given) if isinstance(given, Mapping) else dict.fromkeys(given)
    for text, token in tokens.items():
        if token is not None and token < 0:
            raise ToolgramError(f"special_tokens maps texts to ids, which are 0 or more; {text!r} has {token}")
    unknown = [text for text, token in tokens.items() if token is None and text in fmt.program.literals.values()]
    if nameless := [text for text in unknown if not TARGETS[target].can_name_token(text)]:
        tokens_of = f"the token{'s' * (len(nameless) > 1)} {', '.join(nameless)}"
        note(f"{target} has no name for {tokens_of}; without an id they are written as text")
    return {text: token for text, token in tokens.items() if text not in nameless}


def expression(fmt: Format, request: ExportRequest, prefix: str | None, note: Note) -> tuple[Expr, tuple[str, ...]]:
    """Return the expression of all outputs that a request allows, and the words with which a call begins in text.

    Raises ToolgramError if no output can fit the request.
    """
    paths = fmt.observed_paths
    if not paths.edges:
        raise ToolgramError(
            f"{fmt.name} has no example output, which an export needs: add `example:`, or a list of outputs under "
            "`canonical:`, to its machine file"
        )
    _check_names(fmt, request.tools)
    outline = _outline(fmt, replace(request, tools=(), declared=("",) * bool(request.declared)), prefix)
    notes = dict.fromkeys(outline.notes)
    functions = outline.functions.of(request, notes.setdefault)
    root = functions.expanded(outline.root)
    for words in notes:
        note(words)
    if root == NOTHING:
        said = f" ({'; '.join(notes)})" if notes else ""
        what = "such a call" if request.calls else "such an output"
        raise ToolgramError(f"{fmt.name} cannot write {what}{said}")
    return root, with_names(outline.triggers, [tool.name for tool in request.tools])


@dataclass(frozen=True, slots=True)
class _Outline:
    """The expression of all requests of one kind, in which functions are not filled in."""

    root: Expr
    triggers: tuple[str, ...]
    notes: tuple[str, ...]
    functions: Functions


@lru_cache(maxsize=MOST_OUTLINES)
def _outline(fmt: Format, request: ExportRequest, prefix: str | None) -> _Outline:
    """Return the outline of a request, of which it is only known whether it has functions."""
    notes: dict[str, None] = {}
    start, begun = state_after(fmt, _prefix(fmt, request.reasoning) if prefix is None else prefix)
    builder = Builder(fmt.spec, fmt.observed_paths, request, start, notes.setdefault)
    root = builder.build()
    # the prompt may end in a complete marker, which may continue; an incomplete marker is text of the prompt
    if begun in fmt.program.literals.values() and (rest := rest_after(root, begun)) != NOTHING:
        root = rest
    # an engine that constrains lazily starts this grammar at such a word
    triggers = tuple(word for word in builder.triggers if request.calls and rest_after(root, word) != NOTHING)
    rest_after.cache_clear()  # it is for patterns, and would keep whole grammars alive
    return _Outline(root, triggers, tuple(notes), Functions(fmt.spec, fmt.observed_paths, request.tokens))


def _prefix(fmt: Format, reasoning: bool | None) -> str:
    """Return what the chat template writes before an output, or "" if that is not known."""
    analysis = fmt.report.analysis if fmt.report is not None else None
    if analysis is None:
        return fmt.generation_prompt
    wanted = {None: "unset", True: "on", False: "off"}[reasoning]
    prompt = analysis.prompts.get(wanted) or analysis.prompts.get("unset")
    return prompt.text if prompt is not None else ""


def _check_names(fmt: Format, tools: Sequence[Tool]) -> None:
    """Check that the parser reads every name as a name. Raises ToolgramError for the first one that it does not."""
    markers, runs = _in_names(fmt)
    for tool in tools:
        if found := markers.search(tool.name):
            why = f"its name contains the marker {found[0]!r}"
        elif wrong := [run for run in runs if not re.fullmatch(run, tool.name)]:
            why = f"a name is {wrong[0]} there"
        else:
            continue
        raise ToolgramError(f"the function {tool.name!r} cannot be called in {fmt.name}: {why}")


@lru_cache(maxsize=MOST_OUTLINES)
def _in_names(fmt: Format) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """Return a search for the markers that no name may contain, and the patterns that each name must match."""
    triggers = {edge.trigger for edges in fmt.observed_paths.edges.values() for edge in edges if "name" in edge.actions}
    runs = tuple(shape.pattern for trigger in triggers if isinstance(shape := fmt.spec.terminals.get(trigger), Run))
    texts = {text.strip(): name in fmt.spec.special_tokens for name, text in fmt.program.literals.items()}
    markers = [re.escape(text) for text, special in texts.items() if len(text) > 1 and (special or not text.isalnum())]
    return re.compile("|".join(markers) or "(?!)"), runs


__all__ = ["TARGETS", "Export", "ExportRequest", "ExportTarget", "export", "export_request"]
