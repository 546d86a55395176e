"""`toolgram derive`: derive a format from a chat template, and write or print it, with or without the report.

The code that derives is imported when it is needed, so that no other command waits for `jinja2`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

import toolgram
from toolgram.bulk.writing import cannot_write
from toolgram.cli.findings import report_lines, warnings_of
from toolgram.cli.options import TEMPLATE, Bos, Eos, Variant
from toolgram.cli.template_table import print_template_table
from toolgram.cli.templates import Source, read_template, safe_name
from toolgram.cli.terminal import complain, console, refuse, spelled_out, write_file

if TYPE_CHECKING:
    from toolgram.derive.report import DeriveReport
    from toolgram.derive.result import DiffAnalysisResult

# The coloured parts of the two files, with their colours.
PARTS = re.compile(
    r"(?P<dim>(?:^|(?<=\s))(?://|#).*)"
    r"|(?P<green>'(?:[^'\n]|'')*'|\"(?:[^\"\\\n]|\\.)*\"i?)"
    r"|(?P<yellow>(?<!\S)/(?:[^/\\\n]|\\.)+/[imslux]*)"
    r"|(?P<magenta>^%\w+)"
    r"|(?P<bold>^[?!]?[a-z_]\w*(?=\s*:)|[\w-]+(?=:(?:\s|$)))"
    r"|(?P<cyan>\b[A-Z][A-Z0-9_]*\b)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class DeriveOptions:
    """The options of `toolgram derive`, without the path of the template."""

    bos_token: str | None = None
    eos_token: str | None = None
    name: str | None = None
    kwargs: dict[str, Any] = field(default_factory=dict)
    strict: bool = False

    def derive(self, source: Source) -> Derived:
        """Derive the format. Tokens from the command line replace those of the file. Raises ToolgramError."""
        fmt, report = self._format(source, isolate=False)
        from toolgram.derive import ChatTemplate, analyse

        # A format from the cache on disk has no findings.
        analysis = report.analysis or analyse(ChatTemplate(source.template, *self._tokens(source), self.kwargs))
        return Derived(fmt, report, analysis)

    def report(self, source: Source) -> DeriveReport:
        """Return the report, made by a process whose time and memory are limited. Raises ToolgramError."""
        return self._format(source, isolate=True)[1]

    def _tokens(self, source: Source) -> tuple[str, str]:
        bos_token = source.bos_token if self.bos_token is None else self.bos_token
        return bos_token, source.eos_token if self.eos_token is None else self.eos_token

    def _format(self, source: Source, isolate: bool) -> tuple[toolgram.Format, DeriveReport]:
        from toolgram.derive import TemplateError  # first, so that a missing package is known by its name

        bos_token, eos_token = self._tokens(source)
        try:
            fmt = toolgram.derive_format(
                source.template,
                bos_token=bos_token,
                eos_token=eos_token,
                special_tokens=source.special,
                end_tokens=source.ends,
                name=self.name or source.name,
                chat_template_kwargs=self.kwargs or None,
                strict=self.strict,
                isolate=isolate,
            )
        except TemplateError as error:
            raise type(error)(error.problem, error.line, source.place) from None
        assert fmt.report is not None, "a derived format has a report"
        return fmt, fmt.report


@dataclass(frozen=True)
class Derived:
    """A derived format with its report and analysis."""

    format: toolgram.Format
    report: DeriveReport
    analysis: DiffAnalysisResult

    def lines(self) -> Iterator[Text]:
        """Return the lines of the whole report."""
        return report_lines(self.format.name, self.report, self.analysis)


def derive(
    template: Annotated[str | None, TEMPLATE] = None,
    folder: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="DIR", help="Write NAME.lark, NAME.yaml and NAME.report.txt there."),
    ] = None,
    report: Annotated[
        bool, typer.Option("--report", help="Print each finding with the renderings that show it, and all probes.")
    ] = False,
    table: Annotated[
        str | None, typer.Option(metavar="DIR", help="One row for each *.jinja below this folder instead.")
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
            help="A variable for the template, such as enable_thinking=false. May be repeated.",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Give no format unless every probe message came back exactly.")
    ] = False,
) -> int | None:
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
    options = DeriveOptions(bos, eos, checked_name(name), read_kwargs(kwarg or []), strict)
    if (template is None) == (table is None):
        refuse("say what to derive from: either TEMPLATE or --table DIR")
    if table is not None:
        if (folder, name, variant, report) != (None, None, None, False):
            refuse("--table prints rows; -o, --name, --variant and --report need one TEMPLATE")
        return print_template_table(table, options.report)
    _derive_one(template or "", variant, options, folder, report)
    return None


def _derive_one(template: str, variant: str | None, options: DeriveOptions, folder: str | None, report: bool) -> None:
    """Derive from one template, and write or print the files. Raises ToolgramError."""
    source = read_template(template, variant)
    derived = options.derive(source)
    if source.told:
        complain(source.told)
    if source.variant:
        complain(f"the template {source.variant!r} of several in that file; --variant chooses another")
    if not report:
        _complain_of(derived.report)
    if folder is not None:
        _write(derived, Path(folder))
    lines = [*derived.lines()] if report else []
    if folder is None:
        lines += [Text()] * report + [*_files(derived.format)]
    for line in lines:
        console().print(line)


def read_kwargs(pairs: Sequence[str]) -> dict[str, Any]:
    """Return the variables that were given as key=json."""
    kwargs: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.isidentifier():
            refuse(f"--kwarg {pair}: write it as key=json, for example enable_thinking=false")
        try:
            kwargs[key] = json.loads(value)
        except (ValueError, RecursionError):
            refuse(f"--kwarg {pair}: the value is not JSON; text needs its quotes: '{key}=\"text\"'")
    return kwargs


def checked_name(name: str | None) -> str | None:
    """Return the name for the format. Refuse one that is not safe as the name of a file."""
    if name is not None and (not name or safe_name(name) != name):
        refuse(f"--name {name}: use letters, digits, dots, hyphens and underscores")
    return name


def _complain_of(report: DeriveReport) -> None:
    """Print warnings and failed probes on standard error."""
    for warning in warnings_of(report):
        complain(f"warning: {warning}")
    if missed := len(report.failed):
        complain(f"{missed} of {len(report.probes)} probes were not read back exactly; --report shows them")


def _write(derived: Derived, folder: Path) -> None:
    """Write the two files and the report, and print their paths. Raises BadFile."""
    fmt = derived.format
    report = "".join(f"{line.plain.rstrip()}\n" for line in derived.lines())
    stem = safe_name(fmt.name) or "derived"
    texts = {f"{stem}.lark": fmt.grammar_text, f"{stem}.yaml": fmt.machine_text, f"{stem}.report.txt": report}
    for file, text in texts.items():
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(str(folder / file), error) from None
        write_file(str(folder / file), text)
        print(spelled_out(str(folder / file)))


def _files(fmt: toolgram.Format) -> Iterator[Text]:
    """Yield the two files, each below a comment with its name."""
    yield Text(f"// {fmt.name}.lark", "bold underline")
    yield _coloured(fmt.grammar_text)
    yield Text(f"# {fmt.name}.yaml", "bold underline")
    yield _coloured(fmt.machine_text)


def _coloured(file: str) -> Text:
    """Return a file in colours. Each match has one colour, so a keyword inside a string stays part of the string."""
    text = Text(spelled_out(file))
    for part in PARTS.finditer(text.plain):
        text.stylize(part.lastgroup or "", part.start(), part.end())
    return text
