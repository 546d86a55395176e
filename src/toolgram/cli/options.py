"""Options that several commands share, and functions that read their values.

Strategy: typer reads each option from an annotation, so a shared option is a shared annotation. The functions turn the
values into a format or into JSON. A value that cannot be used is a mistake in the command.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer

import toolgram
from toolgram.bulk.errors import BadFile
from toolgram.cli.terminal import complain, read_file, refuse

T = TypeVar("T")


def completed_names(incomplete: str) -> list[str]:
    """Return the shipped formats whose names begin with `incomplete`, for the completion of the shell."""
    return [name for name in toolgram.format_names() if name.startswith(incomplete)]


_A_FORMAT = "A shipped format; `toolgram formats` lists them."
FormatArgument = Annotated[str | None, typer.Argument(metavar="FORMAT", autocompletion=completed_names, help=_A_FORMAT)]
FormatOption = Annotated[
    str | None,
    typer.Option("--format", "-f", metavar="NAME", autocompletion=completed_names, help=_A_FORMAT),
]
FormatList = Annotated[
    list[str] | None,
    typer.Argument(metavar="FORMAT", autocompletion=completed_names, help="Formats to show. Default: all that ship."),
]
OutputFile = Annotated[str, typer.Argument(metavar="FILE", show_default=False, help="Raw model output, or -, stdin.")]
Grammar = Annotated[
    str | None, typer.Option(metavar="X.lark", help="The grammar of a format of your own; goes with --machine.")
]
Machine = Annotated[
    str | None, typer.Option(metavar="X.yaml", help="The machine of a format of your own; goes with --grammar.")
]
Tools = Annotated[
    str | None, typer.Option(metavar="FILE", help="The tools of the request: a JSON list in the shape of any API.")
]
Prefix = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="What the chat template had already written for the model, '' for nothing; by default the format's own "
        "generation prompt. Example: --prefix '[THINK]'",
    ),
]
FinishReason = Annotated[
    str | None,
    typer.Option(
        metavar="REASON",
        help="Why the server stopped the model. Without one, an argument in tags that only the end closes is "
        "truncated; with stop or tool_calls it is complete.",
    ),
]
TEMPLATE = typer.Argument(
    metavar="TEMPLATE",
    help="A chat template: Jinja text, a tokenizer_config.json or chat_template.json that holds one, the folder of a "
    "model, a GGUF file, or the id of a model that was downloaded. - is standard input.",
)
Bos = Annotated[str | None, typer.Option(metavar="TOKEN", help="The token that begins a text. Default: the file's.")]
Eos = Annotated[str | None, typer.Option(metavar="TOKEN", help="The token that ends a turn. Default: the file's.")]
Variant = Annotated[
    str | None, typer.Option(metavar="NAME", help="Which of several templates in one file. Default: tool_use.")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Repair nothing: what a model got wrong inside a call makes it malformed.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document.")]

# --- for rows: `toolgram parse --jsonl` -------------------------------------------------------------------------------

RowsOutput = Annotated[
    str | None,
    typer.Option(
        "-o",
        "--output",
        metavar="OUT",
        help="With --jsonl: the file to write, none of the inputs. Its ending chooses the kind: .jsonl, .jsonl.gz, "
        ".jsonl.zst or .parquet.",
    ),
]
Keep = Annotated[
    list[str] | None, typer.Option(metavar="FIELD", help="With --jsonl: pass this column on. May be repeated.")
]


def _column(what: str) -> Any:
    return typer.Option(metavar="FIELD", help=f"With --jsonl: the column with the {what} of each row.")


ToolsColumn = Annotated[str | None, _column("tools")]
PrefixColumn = Annotated[str | None, _column("end of the prompt")]
FormatColumn = Annotated[str | None, _column("name of the format")]
FinishReasonColumn = Annotated[str | None, _column("finish reason")]
Workers = Annotated[int, typer.Option(metavar="N", min=1, help="With --jsonl: processes that parse. The order stays.")]
Errors = Annotated[str | None, typer.Option(metavar="FILE", help="With --jsonl: write rows that cannot be read.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="With -o OUT: go on with a run that was ended; its results are in OUT.parts.")
]
Report = Annotated[str | None, typer.Option(metavar="X.html", help="With --jsonl: write the summary as a page.")]
OnRay = Annotated[
    bool, typer.Option("--ray", help="With --jsonl: parse on a Ray cluster, or on one of this machine's processors.")
]
RayAddress = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="The Ray cluster. Example: --ray-address ray://head:10001")
]

# --- values -----------------------------------------------------------------------------------------------------------


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
        refuse(error)
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
    return None if path is None else _read_json(path, toolgram.tools.reading.read_tools)


def read_schema(path: str | None) -> dict[str, Any] | None:
    """Return the JSON Schema in a file. End the command if it cannot be read."""
    schema = None if path is None else _read_json(path)
    if not isinstance(schema, dict | None):
        refuse(f"{path}: a JSON Schema is an object")
    return schema


def _read_json(path: str, check: Callable[[Any], object] = bool) -> Any:
    try:
        found = json.loads(read_file(path))
        check(found)
    except BadFile as error:
        refuse(error)
    except toolgram.ToolgramError as error:
        refuse(f"{path}: {error}")
    except (ValueError, RecursionError) as error:
        refuse(f"{path}: not JSON: {error}")
    return found
