"""`toolgram parse`: print the message of an output, its events as they happen, or its text in colour.

Strategy: the three views share one loop. It feeds text as it arrives, passes each event to the view, and keeps a
verdict: whether the output contains anything that a program can use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from toolgram import Format, Message, ToolgramError
from toolgram.bulk.inputs import named
from toolgram.bulk.rows import Columns, RowOptions, checked_calls
from toolgram.cli import options
from toolgram.cli.options import load_chosen_format, load_required_format, read_tools
from toolgram.cli.source import pieces
from toolgram.cli.terminal import NOTHING_USABLE, USABLE, complain, refuse, write_json
from toolgram.events import Event, event_to_dict


def parse(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE", help="Raw model output. None, or -, is standard input.")
    ] = None,
    format_name: options.FormatOption = None,
    grammar: options.Grammar = None,
    machine: options.Machine = None,
    events: Annotated[bool, typer.Option("--events", help="One JSON line per event, as it happens.")] = False,
    pretty: Annotated[
        bool, typer.Option("--pretty", help="The text itself, in the colours of its events; in a pipe, with labels.")
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
        typer.Option(metavar="N", min=1, help="Feed the parser N characters at a time, not as they are read."),
    ] = None,
    tools: options.Tools = None,
    prefix: options.Prefix = None,
    finish_reason: options.FinishReason = None,
    strict: options.Strict = False,
    validate: Annotated[
        bool,
        typer.Option(
            "--validate",
            help="Check each call against its schema in --tools and add what is wrong; the exit status is 1 if "
            "anything is.",
        ),
    ] = False,
    output: options.RowsOutput = None,
    keep: options.Keep = None,
    tools_column: options.ToolsColumn = None,
    prefix_column: options.PrefixColumn = None,
    format_column: options.FormatColumn = None,
    finish_reason_column: options.FinishReasonColumn = None,
    workers: options.Workers = 1,
    errors: options.Errors = None,
    resume: options.Resume = False,
    report: options.Report = None,
    ray: options.OnRay = False,
    ray_address: options.RayAddress = None,
) -> int:
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
    columns = Columns(tools_column, prefix_column, format_column, finish_reason_column)
    rows_only = {
        "--output": output, "--keep": keep, "--errors": errors, "--resume": resume, "--report": report,
        "--ray": ray or ray_address, "--workers": workers > 1, "a column": columns.named(),
    }  # fmt: skip
    _check_options(modes, inputs, validate, tools is not None, [name for name, value in rows_only.items() if value])
    fmt = load_chosen_format(format_name, grammar, machine)
    if fmt is None and jsonl is not None and not columns.named():
        from toolgram.cli.records import columns_of

        columns = columns_of(inputs)
    if fmt is None and columns.format is None:
        fmt = load_required_format(format_name, grammar, machine, "say how to read the output: --format NAME")
    declared = read_tools(tools)
    if jsonl is not None:
        from toolgram.bulk.run import Run
        from toolgram.cli.records import own_formats
        from toolgram.cli.rows import print_rows

        own = own_formats(inputs) if columns.format is not None else {}
        kept = tuple(name for each in keep or () for name in each.split(","))
        row = RowOptions(jsonl, fmt, declared, prefix, finish_reason, strict, kept, columns, validate, own)
        also_read = [path for path in (tools, grammar, machine) if path is not None]
        on_ray = ray or ray_address is not None
        return print_rows(Run(inputs, row, output, errors, workers, resume, on_ray, ray_address, report, also_read))
    assert fmt is not None
    show = {"--events": _print_event, "--pretty": _print_painted}.get(modes[0] if modes else "", _print_message)
    reading = Reading(fmt, declared, prefix, finish_reason, strict, validate, chunk)
    return max([_shown(show, reading, path, inputs) for path in inputs])


def _check_options(modes: list[str], inputs: list[str], validate: bool, has_tools: bool, for_rows: list[str]) -> None:
    """Refuse options that do not go together."""
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
    if for_rows and "--jsonl" not in modes:
        refuse(f"{for_rows[0]} is for rows: say which field holds the output text, --jsonl FIELD")


@dataclass
class Verdict:
    """What an output contained so far, and whether any of it can be used."""

    usable: bool = False
    malformed: str = ""
    invalid: bool = False  # a call does not fit its schema
    characters: int = 0

    def watch(self, event: Event) -> None:
        self.characters += len(event.source)
        match event.type:
            case "content" | "reasoning":
                self.usable = self.usable or not event.text.isspace()
            case "tool_call_end":
                self.usable = self.usable or event.status != "malformed"
            case "malformed":
                self.malformed = self.malformed or event.why

    @property
    def complaint(self) -> str:
        """Why there is nothing to use, in a few words."""
        if self.malformed:
            return f"nothing but malformed text: {self.malformed}"
        return "nothing but markers and blanks" if self.characters else "the output is empty"


@dataclass(frozen=True)
class Reading:
    """How to read every output: the format and the other arguments of the parser."""

    format: Format
    tools: list[dict[str, Any]] | None = None
    prefix: str | None = None
    finish_reason: str | None = None
    strict: bool = False
    validate: bool = False
    chunk: int | None = None

    def run(self, path: str, see: Callable[[Event], None]) -> Message:
        """Feed the text of a file as it arrives and show each event as it happens. Raises BadFile."""
        parser = self.format.parser(tools=self.tools, prefix=self.prefix, strict=self.strict)
        for text in pieces(path, self.chunk):
            for event in parser.feed(text):
                see(event)
        for event in parser.close(finish_reason=self.finish_reason):
            see(event)
        return parser.message


def _print_message(reading: Reading, path: str, verdict: Verdict, several: bool) -> None:
    """Print one JSON document."""
    message = reading.run(path, verdict.watch)
    made = message.to_dict()
    if reading.validate:
        made["validation"] = checked = checked_calls(message, reading.tools)
        verdict.invalid = not all(call["valid"] for call in checked)
    write_json(made)


def _print_event(reading: Reading, path: str, verdict: Verdict, several: bool) -> None:
    """Print one JSON line per event, before the next piece of text is read."""

    def see(event: Event) -> None:
        verdict.watch(event)
        write_json(event_to_dict(event), on_one_line=True)

    reading.run(path, see)


def _print_painted(reading: Reading, path: str, verdict: Verdict, several: bool) -> None:
    """Print the text itself, each character marked with the kind of its event."""

    def see(event: Event) -> None:
        verdict.watch(event)
        brush.paint(event)

    from toolgram.cli.paint import painter

    brush = painter()
    if several:
        brush.heading(named(path))
    try:
        message = reading.run(path, see)
    finally:
        brush.lift()
    brush.notes(message)


def _shown(show: Callable[..., None], reading: Reading, path: str, inputs: list[str]) -> int:
    """Show a file. If it has nothing usable, print a message on standard error and return that exit status."""
    verdict = Verdict()
    if show is _print_painted and path is inputs[0]:
        from toolgram.cli.paint import painter

        painter().legend()
    try:
        show(reading, path, verdict, len(inputs) > 1)
    except ToolgramError as error:
        complain(error)
        return NOTHING_USABLE
    if verdict.invalid:
        complain(f"{named(path)}: a call does not fit its schema")
    if not verdict.usable:
        complain(f"{named(path)}: {verdict.complaint}")
    return NOTHING_USABLE if verdict.invalid or not verdict.usable else USABLE
