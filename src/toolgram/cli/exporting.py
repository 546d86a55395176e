"""`toolgram export`: write the grammar of a request on standard output, and notes on standard error."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from toolgram import ToolgramError
from toolgram.bulk.json_rows import escaped
from toolgram.cli import options
from toolgram.cli.options import load_required_format, read_schema, read_tools
from toolgram.cli.terminal import complain, refuse, spelled_out, write_file, write_json

RESPONSE_TEMPLATE = "response_template"  # not a grammar: it describes model output, for transformers to read


def export(
    name: options.FormatArgument = None,
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
    grammar: options.Grammar = None,
    machine: options.Machine = None,
    tools: options.Tools = None,
    tool_choice: Annotated[
        str, typer.Option(metavar="CHOICE", help="auto, required, none, or the name of a function.")
    ] = "auto",
    parallel: Annotated[bool, typer.Option(help="Whether there may be several calls.")] = True,
    reasoning: Annotated[
        bool | None, typer.Option(help="Whether there must be reasoning, or none. Default: either.")
    ] = None,
    json_schema: Annotated[
        str | None, typer.Option(metavar="FILE", help="A JSON Schema for the text of the answer.")
    ] = None,
    prefix: options.Prefix = None,
    special_token: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT[=ID]", help="A marker that is one token, by its text or its id. May be repeated."),
    ] = None,
    strict: Annotated[
        bool | None, typer.Option(help="Whether arguments follow schemas. Default: as tools say.")
    ] = None,
    open_objects: Annotated[
        bool, typer.Option("--open-objects", help="Objects that do not say whether they are closed are open.")
    ] = False,
    length_limits: Annotated[
        bool, typer.Option("--length-limits", help="Enforce limits on the length of a text, even if that is slow.")
    ] = False,
    answer_format: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The form of an answer without calls, as a format of xgrammar's structural tags (JSON).",
        ),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the grammar into this file.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Write the grammar that constrains a model to valid calls.

    \b
    toolgram export mistral_v11 --target llguidance --tools tools.json
    toolgram export hermes --target structural_tag --tools tools.json --tool-choice required
    toolgram export hermes --target gbnf --tools tools.json --json    with triggers, for lazy use
    toolgram export hermes --target response_template                 for tokenizer_config.json

    Notes on standard error name what the grammar cannot express. Exit status: 0 written; 1 it cannot
    be written; 2 a mistake in the command.
    """
    fmt = load_required_format(name, grammar, machine, "say what to export: FORMAT")
    from toolgram.export.targets import TARGETS

    if target not in (*TARGETS, RESPONSE_TEMPLATE):
        refuse(f"--target {target or 'is missing'}: it is one of {', '.join(TARGETS)}, {RESPONSE_TEMPLATE}")
    try:
        if target == RESPONSE_TEMPLATE:
            from toolgram.response_templates import write_response_template

            template = write_response_template(fmt)
            notes, said = [*template.notes], {"target": target, "template": template.template, "notes": template.notes}
            text = escaped(json.dumps(template.template, ensure_ascii=False, indent=2)).decode()
        else:
            made = fmt.export(
                target,
                read_tools(tools),
                choice_of(tool_choice),
                parallel_tool_calls=parallel,
                reasoning=reasoning,
                json_schema=read_schema(json_schema),
                prefix=prefix,
                special_tokens=tokens_of(special_token or ()),
                strict=strict,
                open_objects=open_objects,
                length_limits=length_limits,
                answer_format=read_schema(answer_format),
            )
            notes, said, text = [*made.notes], made.to_dict(), spelled_out(made.text)
    except ToolgramError as error:
        refuse(error)
    if output is not None:
        write_file(output, text)
    elif as_json:
        write_json(said)
    else:
        print(text, end="" if text.endswith("\n") else "\n")
    for note in notes if output is not None or not as_json else ():
        complain(f"note: {note}")


def choice_of(wanted: str) -> str | dict[str, Any]:
    """Return `auto`, `required` and `none` unchanged; anything else is the name of a function."""
    if wanted in ("auto", "required", "none"):
        return wanted
    return {"type": "function", "function": {"name": wanted}}


def tokens_of(given: Sequence[str]) -> dict[str, int | None]:
    """Return tokens and their ids: of `TEXT=ID` that one, of `TEXT` none, since the engine finds it by its text."""
    tokens: dict[str, int | None] = {}
    for each in given:
        text, equals, number = each.rpartition("=")
        if equals and number.isdecimal():
            tokens[text] = int(number)
        else:
            tokens[each] = None
    return tokens
