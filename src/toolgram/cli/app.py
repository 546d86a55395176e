"""The commands and their options. The modules beside this one do the work.

Strategy: help is plain text, because markup would remove the brackets that models write (`[TOOL_CALLS]`). A mistake in
the command is reported in one line on standard error, with exit status 2. The contents of an output are never a mistake
in the command.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Annotated

import typer

import toolgram
from toolgram.bulk.options import Columns, RowOptions
from toolgram.bulk.run import Run
from toolgram.cli.auditing import audit
from toolgram.cli.checking import print_checks
from toolgram.cli.demo import demo
from toolgram.cli.deriving import DeriveOptions, checked_name, derive_one, read_kwargs
from toolgram.cli.doctor import print_diagnosis
from toolgram.cli.drawing import draw
from toolgram.cli.explaining import print_explanation
from toolgram.cli.exporting import export
from toolgram.cli.grammars import print_grammar
from toolgram.cli.machines import print_machine
from toolgram.cli.options import (
    Bos,
    Eos,
    FinishReason,
    FormatArgument,
    FormatOption,
    Grammar,
    Machine,
    OutputFile,
    Prefix,
    Strict,
    Tools,
    Variant,
    load_chosen_format,
    load_required_format,
    read_tools,
)
from toolgram.cli.pages import docs
from toolgram.cli.parsing import Reading, print_events, print_messages, print_painted
from toolgram.cli.row_options import (
    Errors,
    FinishReasonColumn,
    FormatColumn,
    Keep,
    OnRay,
    PrefixColumn,
    RayAddress,
    Report,
    Resume,
    RowsOutput,
    ToolsColumn,
    Workers,
)
from toolgram.cli.rows import print_rows
from toolgram.cli.serving import serve
from toolgram.cli.shipped import print_formats, print_found
from toolgram.cli.template_table import print_template_table
from toolgram.cli.terminal import complain, quiet_endings, refuse
from toolgram.cli.trying import try_output
from toolgram.cli.vllm_help import print_vllm_help

app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=True,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
NO_FORMAT = "say how to read the output: --format NAME"


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"toolgram {toolgram.__version__}")
        raise typer.Exit


@app.callback()
def toolgram_command(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Read what language models write: reasoning, content and tool calls.

    \b
    toolgram formats                                what can be read
    toolgram parse --format mistral_v11 output.txt  one output as JSON
    """
    # Escape a character that the locale lacks, so that it does not end the program.
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")


@app.command()
def parse(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", show_default=False, help="Raw model output. None, or -, is standard input."),
    ] = None,
    format_name: FormatOption = None,
    grammar: Grammar = None,
    machine: Machine = None,
    events: Annotated[
        bool,
        typer.Option(
            "--events",
            help="One JSON line per event, as it happens. Example: model | toolgram parse -f mistral_v11 --events",
        ),
    ] = False,
    pretty: Annotated[
        bool,
        typer.Option(
            "--pretty",
            help="The text itself, coloured by the kind of event that each character belongs to; "
            "labels where there is no colour. Example: toolgram parse -f mistral_v11 --pretty x.txt",
        ),
    ] = False,
    jsonl: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            help="The input is rows (JSON lines, plain, .gz or .zst, or Parquet) and FIELD holds the output text; a "
            "dotted path goes deeper. Files, directories and patterns; one row out per row. "
            "Example: --jsonl choices.0.message.content",
        ),
    ] = None,
    chunk: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Feed the parser N characters at a time instead of as they "
            "are read. The result is the same. Example: --chunk 1",
        ),
    ] = None,
    tools: Tools = None,
    prefix: Prefix = None,
    finish_reason: FinishReason = None,
    strict: Strict = False,
    validate: Annotated[
        bool,
        typer.Option(
            "--validate",
            help="Check each call against its schema in --tools and add what is wrong; the exit status is 1 where "
            "something is. Example: toolgram parse -f hermes --tools tools.json --validate x.txt",
        ),
    ] = False,
    output: RowsOutput = None,
    keep: Keep = None,
    tools_column: ToolsColumn = None,
    prefix_column: PrefixColumn = None,
    format_column: FormatColumn = None,
    finish_reason_column: FinishReasonColumn = None,
    workers: Workers = 1,
    errors: Errors = None,
    resume: Resume = False,
    report: Report = None,
    ray: OnRay = False,
    ray_address: RayAddress = None,
) -> None:
    """Parse raw model output and print the message as JSON.

    \b
    toolgram parse --format mistral_v11 output.txt             one JSON document per file
    model | toolgram parse --format llama3_json --events       events while the model writes
    toolgram parse -f llama4_pythonic --pretty output.txt      which event each character belongs to
    toolgram parse -f mistral_v3 --jsonl output log.jsonl      a whole log of outputs
    toolgram parse --jsonl output record.jsonl                 rows of `serve --record`, which say how to read them
    toolgram parse -f hermes --jsonl text logs/ -o calls.parquet --workers 2 --keep id --report report.html

    Exit status: 0 parsed; 1 nothing usable (an empty output, nothing but malformed text), a file or a row that cannot
    be read, with the reason on standard error, or a call that --validate found wrong; 2 a mistake in the command.
    """
    modes = [name for name, on in (("--events", events), ("--pretty", pretty), ("--jsonl", jsonl is not None)) if on]
    inputs = files or ["-"]
    _check_parse_options(modes, inputs, validate, tools is not None)
    with quiet_endings():
        columns = Columns(tools_column, prefix_column, format_column, finish_reason_column)
        rows_only = {
            "--output": output, "--keep": keep, "--errors": errors, "--resume": resume, "--report": report,
            "--ray": ray or ray_address, "--workers": workers > 1, "a column": columns.named(),
        }  # fmt: skip
        if jsonl is None and (given := [name for name, value in rows_only.items() if value]):
            refuse(f"{given[0]} is for rows: say which field holds the output text, --jsonl FIELD")
        fmt = load_chosen_format(format_name, grammar, machine)
        if fmt is None and jsonl is not None and not columns.named():  # as `toolgram serve --record` writes them
            columns = Columns("tools", "prefix", "format", "finish_reason")
        if fmt is None and columns.format is None:
            fmt = load_required_format(format_name, grammar, machine, NO_FORMAT)
        _say_that_input_is_awaited(inputs)
        if jsonl is not None:
            kept = _listed(keep or ())
            options = RowOptions(jsonl, fmt, read_tools(tools), prefix, finish_reason, strict, kept, columns, validate)
            also_read = [path for path in (tools, grammar, machine) if path is not None]
            on_ray = ray or ray_address is not None
            run = Run(inputs, options, output, errors, workers, resume, on_ray, ray_address, report, also_read)
            raise typer.Exit(print_rows(run))
        assert fmt is not None
        show = print_events if events else print_painted if pretty else print_messages
        status = show(Reading(fmt, read_tools(tools), prefix, finish_reason, strict, validate), inputs, chunk)
    raise typer.Exit(status)


def _check_parse_options(modes: list[str], inputs: list[str], validate: bool, has_tools: bool) -> None:
    """Refuse options of `parse` that do not go together."""
    if len(modes) > 1:
        refuse(f"{' and '.join(modes)} exclude one another: choose one")
    if validate and ("--events" in modes or "--pretty" in modes):
        refuse("--validate checks whole messages: it goes with neither --events nor --pretty")
    if validate and not has_tools:
        refuse("--validate needs the tools: --tools FILE")
    if "--events" in modes and len(inputs) > 1:
        refuse("--events reads one input: with several, it would not be clear which one an event belongs to")
    if inputs.count("-") > 1:
        refuse("standard input (-) can only be read once")


def _say_that_input_is_awaited(inputs: list[str]) -> None:
    if "-" in inputs and sys.stdin is not None and sys.stdin.isatty():
        complain("reading standard input; end it with Ctrl-D")


def _listed(given: Iterable[str]) -> tuple[str, ...]:
    """Return the names that an option was given. Each value may have several, separated by commas."""
    return tuple(name for each in given for name in each.split(","))


@app.command()
def explain(
    file: OutputFile = "-",
    format_name: FormatOption = None,
    grammar: Grammar = None,
    machine: Machine = None,
    tools: Tools = None,
    prefix: Prefix = None,
    finish_reason: FinishReason = None,
    as_json: Annotated[bool, typer.Option("--json", help="The whole explanation as one JSON document.")] = False,
) -> None:
    """Explain how an output was parsed.

    Why was my tool call not parsed? A summary comes first. Then the details: the event of each character, the path
    through the machine, what text was held back and why it was released, anomalies, and what the other formats would
    have found.

    \b
    toolgram explain output.txt                         the format is recognised
    toolgram explain --format mistral_v11 output.txt    for reading
    toolgram explain -f llama3_json --json output.txt   for programs

    Exit status: 0 the output has something to use; 1 it has nothing, or the file cannot be read; 2 a mistake in the
    command.
    """
    with quiet_endings():
        fmt, declared = load_chosen_format(format_name, grammar, machine), read_tools(tools)
        status = print_explanation(fmt, declared, prefix, finish_reason, file, as_json)
    raise typer.Exit(status)


app.command(name="try")(try_output)
app.command()(audit)
app.command()(demo)


@app.command()
def formats(
    as_json: Annotated[bool, typer.Option("--json", help="As JSON. Example: toolgram formats --json")] = False,
    model: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="MODEL",
            help="Only the format of this model, or of this parser of vLLM or SGLang, and why.",
        ),
    ] = None,
    template: Annotated[
        str | None,
        typer.Option("--template", metavar="FILE", help="Only the format that the text of a chat template hints at."),
    ] = None,
) -> None:
    """List the formats that ship.

    Each with its name, the models that write it, an example, and the other names that are understood.

    \b
    toolgram formats                        a table on a terminal
    toolgram formats | cut -f1              the names: in a pipe, one line each, separated by tabs
    toolgram formats --for Qwen/Qwen3-32B   the format of a model, and why it is that one
    toolgram formats --template chat.jinja  a hint only: `toolgram derive` reads what the template writes
    """
    with quiet_endings():
        if model is not None or template is not None:
            raise typer.Exit(print_found(model, template))
        print_formats(as_json)


@app.command()
def vllm(
    format_name: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            metavar="NAME",
            help="A shipped format. Default: it follows from the model's tokenizer. Example: --format hermes",
        ),
    ] = None,
    override: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="vLLM's own parser names that select toolgram's parsers. Example: --override llama3_json,mistral",
        ),
    ] = None,
) -> None:
    """Show how to use toolgram in a vLLM server.

    The command line, and the names of the parsers.

    \b
    toolgram vllm                                 any model with a chat template
    toolgram vllm --format mistral_v11            one format
    toolgram vllm --override llama3_json,mistral  under vLLM's own names
    """
    print_vllm_help(format_name, override)


@app.command()
def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FORMAT|FILE",
            show_default=False,
            help="Shipped formats by name, or your own as two files (x.lark x.yaml). None: all that ship.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Prove that grammar and machine of a format agree.

    They accept the same language, and the machine is checked for mistakes.

    Exit status: 0 everything is proved; 1 something is not (every format is checked all the same); 2 a mistake in the
    command.

    \b
    toolgram check                   every shipped format
    toolgram check my.lark my.yaml   a format of your own
    """
    with quiet_endings():
        raise typer.Exit(print_checks(names or [], as_json))


@app.command()
def derive(
    template: Annotated[
        str | None,
        typer.Argument(
            metavar="TEMPLATE",
            show_default=False,
            help="A chat template: Jinja text, a tokenizer_config.json or chat_template.json that holds one, the "
            "folder of a model, a GGUF file, or the id of a model that was downloaded. - is standard input.",
        ),
    ] = None,
    folder: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Write NAME.lark, NAME.yaml and NAME.report.txt into this folder. Without it, they are printed.",
        ),
    ] = None,
    report: Annotated[
        bool,
        typer.Option(
            "--report",
            help="Print the report: each finding with the renderings that show it, what the template refused, "
            "warnings, and which probe messages came back.",
        ),
    ] = False,
    table: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="One row for each *.jinja below this folder instead: what was found in it."),
    ] = None,
    bos: Bos = None,
    eos: Eos = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="What to call the format. Default: as the model or the file.")
    ] = None,
    variant: Variant = None,
    kwarg: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=JSON",
            show_default=False,
            help="A variable for the template. May be repeated. Example: --kwarg enable_thinking=false",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Give no format unless every probe message came back exactly.")
    ] = False,
) -> None:
    """Derive a format from a chat template.

    What comes out is a grammar, a machine and a report.

    \b
    toolgram derive chat_template.jinja                  the two files, in colour
    toolgram derive chat_template.jinja --report         what was found in the template, with evidence
    toolgram derive tokenizer_config.json -o formats     write them, for --grammar and --machine
    toolgram derive Qwen/Qwen3-8B                        from the cache of downloads
    toolgram derive --table templates                    one row per template

    Exit status: 0 derived; 1 a template that cannot be rendered or read, or files that cannot be written; 2 a mistake
    in the command.
    """
    if (template is None) == (table is None):
        refuse("say what to derive from: either TEMPLATE or --table DIR")
    if table is not None and (folder, name, variant, report) != (None, None, None, False):
        refuse("--table prints rows; -o, --name, --variant and --report need one TEMPLATE")
    options = DeriveOptions(bos, eos, checked_name(name), read_kwargs(kwarg or []), strict)
    with quiet_endings():
        if table is not None:
            raise typer.Exit(print_template_table(table, options))
        if template == "-" and sys.stdin is not None and sys.stdin.isatty():
            complain("reading standard input; end it with Ctrl-D")
        raise typer.Exit(derive_one(template or "", variant, options, folder, report))


@app.command()
def doctor(
    template: Annotated[
        str,
        typer.Argument(metavar="TEMPLATE", help="A chat template, as `toolgram derive` takes it. - is standard input."),
    ],
    format_name: FormatOption = None,
    grammar: Grammar = None,
    machine: Machine = None,
    outputs: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Outputs of the model, which the format and the template should agree on: a JSON text or a row with "
            "`output` on each line, or one output as it is.",
        ),
    ] = None,
    bos: Bos = None,
    eos: Eos = None,
    variant: Variant = None,
    as_json: Annotated[bool, typer.Option("--json", help="The findings as one JSON document.")] = False,
) -> None:
    """Say whether a format reads what a chat template writes.

    If it does not, say which one does.

    \b
    toolgram doctor tokenizer_config.json --format hermes
    toolgram doctor chat_template.jinja --format qwen3_coder --outputs outputs.jsonl

    Exit status: 0 it reads all; 1 it does not, or a file cannot be read; 2 a mistake in the command.
    """
    with quiet_endings():
        fmt = load_required_format(format_name, grammar, machine, "say which format is meant: --format NAME")
        raise typer.Exit(print_diagnosis(template, variant, fmt, DeriveOptions(bos, eos), outputs, as_json))


@app.command()
def diagram(
    name: FormatArgument = None,
    grammar: Grammar = None,
    machine: Machine = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="The file to write; its ending (.svg, .mmd, .dot) chooses the kind. Default: print Mermaid text.",
        ),
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="Every state and transition, in place of the path of the format's examples.")
    ] = False,
) -> None:
    """Draw the state machine of a format.

    The path of its own example outputs, or the whole.

    \b
    toolgram diagram mistral_v11                                   Mermaid text
    toolgram diagram mistral_v11 --whole -o mistral_v11.svg        a picture
    toolgram diagram --grammar my.lark --machine my.yaml -o my.mmd

    Exit status: 0 drawn; 1 a package is missing or the file cannot be written; 2 a mistake in the command.
    """
    with quiet_endings():
        chosen = load_required_format(name, grammar, machine, "say what to draw: FORMAT")
        raise typer.Exit(draw(chosen, output, "whole" if whole else "path"))


app.command(name="grammar")(print_grammar)
app.command(name="machine")(print_machine)


app.command()(export)
app.command()(docs)
app.command()(serve)
