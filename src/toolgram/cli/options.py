"""Options that several commands share, and functions that read their values.

Strategy: typer reads each option from an annotation, so a shared option is a shared annotation. The functions turn the
values into a format or into JSON. A value that cannot be used is a mistake in the command.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

import toolgram
from toolgram.cli.terminal import complain, refuse


def completed_names(incomplete: str) -> list[str]:
    """Return the shipped formats whose names begin with `incomplete`, for the completion of the shell."""
    return [name for name in toolgram.format_names() if name.startswith(incomplete)]


FormatArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="FORMAT",
        show_default=False,
        autocompletion=completed_names,
        help="A shipped format; `toolgram formats` lists them.",
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="NAME",
        autocompletion=completed_names,
        help="A shipped format; `toolgram formats` lists them. Example: --format llama3_json",
    ),
]
OutputFile = Annotated[
    str, typer.Argument(metavar="FILE", show_default=False, help="Raw model output. None, or -, is standard input.")
]
Grammar = Annotated[
    str | None,
    typer.Option(
        metavar="X.lark",
        help="The grammar of a format of your own; goes with --machine. Example: --grammar my.lark --machine my.yaml",
    ),
]
Machine = Annotated[
    str | None, typer.Option(metavar="X.yaml", help="The machine of a format of your own; goes with --grammar.")
]
Tools = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="The tools the model was offered: a JSON list in the shape of any API. Example: --tools tools.json",
    ),
]
Prefix = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        show_default=False,
        help="What the chat template had already written for the model; the format's own generation prompt where it is "
        "not given, and '' for nothing. Example: --prefix '[THINK]'",
    ),
]
FinishReason = Annotated[
    str | None,
    typer.Option(
        metavar="REASON",
        help="Why the server stopped the model. Without one, a call that only the end of the output closes is "
        "truncated; with stop or tool_calls it is complete. Example: --finish-reason stop",
    ),
]
Bos = Annotated[
    str | None,
    typer.Option(metavar="TOKEN", help="The token that begins a text. Default: the one in the file, else none."),
]
Eos = Annotated[
    str | None,
    typer.Option(metavar="TOKEN", help="The token that ends a turn. Default: the one in the file, else none."),
]
Variant = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Which of several templates in a tokenizer_config.json. Default: tool_use."),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Repair nothing: what a model got wrong inside a call makes the call malformed."),
]


def load_chosen_format(name: str | None, grammar: str | None, machine: str | None) -> toolgram.Format | None:
    """Return the format that the options name, or None if they name none. End the command if it cannot be loaded."""
    if name is not None and (grammar is not None or machine is not None):
        refuse("choose one: the name of a shipped format, or --grammar X.lark --machine X.yaml")
    if (grammar is None) != (machine is None):
        refuse("a format is two files: --grammar and --machine go together")
    try:
        if grammar is not None and machine is not None:
            return toolgram.load_format(grammar, machine)
        fmt = toolgram.get_format(name) if name is not None else None
        if fmt is not None and fmt.choice:
            complain(f"{name}: read as {fmt.name}; {fmt.choice}")
        return fmt
    except toolgram.ToolgramError as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"{error.filename}: cannot be read: {error.strerror or error}")


def load_required_format(name: str | None, grammar: str | None, machine: str | None, missing: str) -> toolgram.Format:
    """Return the format for a command that needs one. `missing` begins the message that explains how to name one."""
    fmt = load_chosen_format(name, grammar, machine)
    if fmt is None:
        refuse(f"{missing} (`toolgram formats` lists the names), or --grammar X.lark --machine X.yaml")
    return fmt


def read_tools(path: str | None) -> list[dict[str, Any]] | None:
    """Return the tools in a JSON file. End the command if they cannot be read."""
    if path is None:
        return None
    tools = _read_json(path)
    try:
        toolgram.tools.reading.read_tools(tools)
    except toolgram.ToolgramError as error:
        refuse(f"{path}: {error}")
    return tools  # type: ignore[no-any-return]


def read_schema(path: str | None) -> dict[str, Any] | None:
    """Return the JSON Schema in a file. End the command if it cannot be read."""
    if path is None:
        return None
    schema = _read_json(path)
    if not isinstance(schema, dict):
        refuse(f"{path}: a JSON Schema is an object")
    return schema


def _read_json(path: str) -> Any:
    try:
        with open(path, "rb") as stream:
            return json.load(stream)
    except OSError as error:
        refuse(f"{path}: cannot be read: {error.strerror or error}")
    except (ValueError, RecursionError) as error:
        refuse(f"{path}: not JSON: {error}")
