"""`toolgram derive`: derive a format from a chat template, and write or print it, with or without the report.

The code that derives is imported when it is needed, so that no other command waits for `jinja2`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

import toolgram
from toolgram.cli.findings import report_lines, warnings_of
from toolgram.cli.source import Unreadable
from toolgram.cli.templates import NoTemplate, Source, read_template, safe_name
from toolgram.cli.terminal import NOTHING_USABLE, USABLE, complain, refuse, spelled_out
from toolgram.late_imports import install_line

if TYPE_CHECKING:
    from toolgram.derive.report import DeriveReport
    from toolgram.derive.result import DiffAnalysisResult

# The coloured parts of the two files; the name of a group is a key of COLOURS.
GRAMMAR_PARTS = re.compile(
    r"(?P<comment>^//.*|(?<=\s)//.*)"
    r'|(?P<text>"(?:[^"\\\n]|\\.)*"i?)'
    r"|(?P<pattern>(?<!\S)/(?:[^/\\\n]|\\.)+/[imslux]*)"
    r"|(?P<keyword>^%\w+)"
    r"|(?P<key>^[?!]?[a-z_]\w*(?=\s*:))"
    r"|(?P<terminal>\b[A-Z][A-Z0-9_]*\b)",
    re.MULTILINE,
)
MACHINE_PARTS = re.compile(
    r"(?P<comment>^#.*|(?<=\s)#.*)"
    r"|(?P<text>'(?:[^'\n]|'')*'|\"(?:[^\"\\\n]|\\.)*\")"
    r"|(?P<key>[\w-]+(?=:(?:\s|$)))"
    r"|(?P<terminal>\b[A-Z][A-Z0-9_]*\b)",
    re.MULTILINE,
)
COLOURS = {
    "comment": "dim",
    "text": "green",
    "pattern": "yellow",
    "keyword": "magenta",
    "key": "bold",
    "terminal": "cyan",
}


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
        from toolgram.derive import analyse

        # A format from the cache on disk has no findings.
        analysis = report.analysis or analyse(source.template, *self._tokens(source), self.kwargs)
        return Derived(fmt, report, analysis)

    def report(self, source: Source) -> DeriveReport:
        """Return the report, made by a process whose time and memory are limited. Raises ToolgramError."""
        return self._format(source, isolate=True)[1]

    def _tokens(self, source: Source) -> tuple[str, str]:
        bos_token = source.bos_token if self.bos_token is None else self.bos_token
        return bos_token, source.eos_token if self.eos_token is None else self.eos_token

    def _format(self, source: Source, isolate: bool) -> tuple[toolgram.Format, DeriveReport]:
        bos_token, eos_token = self._tokens(source)
        try:
            import toolgram.derive.deriving  # to find out what is missing

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
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("toolgram"):
                raise
            refuse(f"derive needs {error.name}; {install_line('jinja2')}")
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


def derive_one(path: str, variant: str | None, options: DeriveOptions, folder: str | None, with_report: bool) -> int:
    """Derive from one template. Return exit status 1 if that fails, or if its files cannot be written."""
    try:
        source = read_template(path, variant)
        derived = options.derive(source)
    except (Unreadable, NoTemplate, toolgram.ToolgramError) as error:
        complain(str(error))
        return NOTHING_USABLE
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    if source.told:
        complain(source.told)
    if source.variant:
        complain(f"the template {source.variant!r} of several in that file; --variant chooses another")
    if not with_report:
        _complain_of(derived.report)
    status = USABLE if folder is None else _write(derived, Path(folder))
    if with_report:
        for line in derived.lines():
            console.print(line)
    if folder is None:
        _show(console, derived.format, below_report=with_report)
    return status


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


def _write(derived: Derived, folder: Path) -> int:
    """Write the two files and the report, and print their paths."""
    fmt = derived.format
    report = "".join(f"{line.plain.rstrip()}\n" for line in derived.lines())
    stem = safe_name(fmt.name) or "derived"
    texts = {f"{stem}.lark": fmt.grammar_text, f"{stem}.yaml": fmt.machine_text, f"{stem}.report.txt": report}
    for file, text in texts.items():
        place = folder / file
        try:
            folder.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            complain(f"{place}: cannot be written: {error.strerror or error}")
            return NOTHING_USABLE
        print(spelled_out(str(place)))
    return USABLE


def _show(console: Console, fmt: toolgram.Format, below_report: bool) -> None:
    """Print the two files, each below a comment with its name."""
    if below_report:
        console.print()
    console.print(Text(f"// {fmt.name}.lark", "bold underline"))
    console.print(_coloured(fmt.grammar_text, GRAMMAR_PARTS))
    console.print(Text(f"# {fmt.name}.yaml", "bold underline"))
    console.print(_coloured(fmt.machine_text, MACHINE_PARTS))


def _coloured(file: str, parts: re.Pattern[str]) -> Text:
    """Return a file in colours. Each match has one colour, so a keyword inside a string stays part of the string."""
    text = Text(spelled_out(file))
    for part in parts.finditer(text.plain):
        text.stylize(COLOURS[part.lastgroup or ""], part.start(), part.end())
    return text
