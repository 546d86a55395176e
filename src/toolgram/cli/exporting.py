"""`toolgram export`: write the grammar of a request on standard output, and notes on standard error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from toolgram import Format, ToolgramError
from toolgram.cli.options import (
    FormatArgument,
    Grammar,
    Machine,
    load_required_format,
    read_schema,
    read_tools,
)
from toolgram.cli.terminal import (
    USABLE,
    complain,
    indent_for_terminal,
    quiet_endings,
    refuse,
    spelled_out,
    write_json,
)
from toolgram.late_imports import install_line

RESPONSE_TEMPLATE = "response_template"  # not a grammar: it describes model output, for transformers to read

Strict = Annotated[
    bool | None, typer.Option(show_default=False, help="Whether arguments follow schemas. Default: as tools say.")
]
OpenObjects = Annotated[
    bool, typer.Option("--open-objects", help="Objects that do not say whether they are closed are open.")
]
LengthLimits = Annotated[
    bool, typer.Option("--length-limits", help="Limits on the length of a text hold, also where that is slow.")
]
AnswerFormat = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="What an answer is: a format of structural tags, for the structural tag."),
]
GrammarFile = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the grammar into this file.")
]

JsonSchema = Annotated[str | None, typer.Option(metavar="FILE", help="A JSON Schema for the text of the answer.")]
SpecialToken = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TEXT[=ID]",
        show_default=False,
        help="A marker that is one token of the model, by its id or its text. May be repeated.",
    ),
]


def export(
    name: FormatArgument = None,
    target: Annotated[
        str,
        typer.Option(
            "--target",
            "-t",
            metavar="TARGET",
            show_default=False,
            help="llguidance, xgrammar, structural_tag, gbnf or ebnf; response_template, which is for transformers.",
        ),
    ] = "",
    grammar: Grammar = None,
    machine: Machine = None,
    tools: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The functions that may be called: a JSON list in the shape of any API."),
    ] = None,
    tool_choice: Annotated[
        str, typer.Option(metavar="CHOICE", help="auto, required, none, or the name of a function.")
    ] = "auto",
    parallel: Annotated[bool, typer.Option(help="Whether there may be several calls.")] = True,
    reasoning: Annotated[
        bool | None, typer.Option(show_default=False, help="Whether there must be reasoning, or none. Default: either.")
    ] = None,
    json_schema: JsonSchema = None,
    prefix: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", show_default=False, help="What the chat template had already written for the model."
        ),
    ] = None,
    special_token: SpecialToken = None,
    strict: Strict = None,
    open_objects: OpenObjects = False,
    length_limits: LengthLimits = False,
    answer_format: AnswerFormat = None,
    output: GrammarFile = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON document: text, triggers, stop, preserved_tokens and notes.")
    ] = False,
) -> None:
    """Write the grammar that constrains a model to valid calls.

    \b
    toolgram export mistral_v11 --target llguidance --tools tools.json
    toolgram export hermes --target structural_tag --tools tools.json --tool-choice required
    toolgram export hermes --target gbnf --tools tools.json --json    with triggers, for lazy use
    toolgram export hermes --target response_template                 for tokenizer_config.json

    Notes on standard error name what the grammar cannot express. Exit status: 0 written; 2 a mistake in the command.
    """
    with quiet_endings():
        chosen = load_required_format(name, grammar, machine, "say what to export: FORMAT")
        schema = read_schema(json_schema)
        request = {
            "parallel_tool_calls": parallel,
            "reasoning": reasoning,
            "json_schema": schema,
            "prefix": prefix,
            "special_tokens": tokens_of(special_token or ()),
            "strict": strict,
            "open_objects": open_objects,
            "length_limits": length_limits,
            "answer_format": read_schema(answer_format),
        }
        declared = read_tools(tools)
        raise typer.Exit(print_export(chosen, target, declared, tool_choice, request, as_json, output))


def choice_of(wanted: str) -> str | dict[str, Any]:
    """Return `auto`, `required` and `none` unchanged; anything else is the name of a function."""
    if wanted in ("auto", "required", "none"):
        return wanted
    return {"type": "function", "function": {"name": wanted}}


def tokens_of(given: Sequence[str]) -> dict[str, int | None]:
    """Return tokens and their ids. `TEXT=ID` gives the id; the engine finds a token given as `TEXT` alone by its
    text."""
    tokens: dict[str, int | None] = {}
    for each in given:
        text, equals, number = each.rpartition("=")
        if equals and number.isdecimal():
            tokens[text] = int(number)
        else:
            tokens[each] = None
    return tokens


def print_export(
    fmt: Format,
    target: str,
    tools: Sequence[Any] | None,
    choice: str,
    request: Mapping[str, Any],
    as_json: bool,
    output: Path | None,
) -> int:
    """Print the grammar, or everything as one JSON document; or write the grammar to a file. `request` has the other
    options of `Format.export`."""
    if target == RESPONSE_TEMPLATE:
        return _print_response_template(fmt, as_json)
    try:
        made = fmt.export(target, tools, choice_of(choice), **request)
    except ToolgramError as error:
        refuse(str(error))
    if output is not None:
        _write(output, made.text)
        for note in made.notes:
            complain(f"note: {note}")
        return USABLE
    if as_json:
        write_json(made.to_dict(), indent_for_terminal())
        return USABLE
    print(spelled_out(made.text), end="" if made.text.endswith("\n") else "\n")
    for note in made.notes:
        complain(f"note: {note}")
    return USABLE


def _write(output: Path, text: str) -> None:
    """Write a grammar without changes."""
    try:
        output.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        refuse(f"{output}: {error.strerror}")


def _print_response_template(fmt: Format, as_json: bool) -> int:
    """Print what goes into tokenizer_config.json under `response_template`."""
    try:
        from toolgram.export.response_templates import write_response_template  # so that no other target needs jinja2
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("toolgram"):
            raise
        refuse(f"{RESPONSE_TEMPLATE} needs {error.name}; {install_line('jinja2')}")
    try:
        made = write_response_template(fmt)
    except ToolgramError as error:
        refuse(str(error))
    if as_json:
        write_json({"target": RESPONSE_TEMPLATE, "template": made.template, "notes": made.notes}, indent_for_terminal())
        return USABLE
    write_json(made.template, 2)
    for note in made.notes:
        complain(f"note: {note}")
    return USABLE
