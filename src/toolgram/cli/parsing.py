"""`toolgram parse`: print the message of an output, its events as they happen, or its text in colour.

Strategy: the three views share one loop. It feeds text as it arrives, passes each event to the view, and keeps a
verdict: whether the output contains anything that a program can use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from toolgram import Format, Message
from toolgram.bulk.rows import checked_calls
from toolgram.cli.paint import painter
from toolgram.cli.source import Unreadable, called, pieces
from toolgram.cli.terminal import NOTHING_USABLE, USABLE, complain, indent_for_terminal, write_json
from toolgram.events import Event, event_to_dict


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

    def run(self, texts: Iterable[str], see: Callable[[Event], None]) -> Message:
        """Feed the texts as they arrive and show each event as it happens."""
        parser = self.format.parser(tools=self.tools, prefix=self.prefix, strict=self.strict)
        for text in texts:
            for event in parser.feed(text):
                see(event)
        for event in parser.close(finish_reason=self.finish_reason):
            see(event)
        return parser.message

    def shown(self, message: Message) -> tuple[dict[str, Any], bool]:
        """Return the message as data, and whether all its calls fit their schemas (true if this was not asked for)."""
        made = message.to_dict()
        if not self.validate:
            return made, True
        made["validation"] = checked = checked_calls(message, self.tools)
        return made, all(call["valid"] for call in checked)


def print_messages(reading: Reading, files: list[str], chunk: int | None) -> int:
    """Print one JSON document per file."""

    def show(path: str, verdict: Verdict) -> None:
        made, valid = reading.shown(reading.run(pieces(path, chunk), verdict.watch))
        write_json(made, indent=indent_for_terminal())
        verdict.invalid = not valid

    return _each(files, show)


def print_events(reading: Reading, files: list[str], chunk: int | None) -> int:
    """Print one JSON line per event, before the next piece of text is read."""

    def show(path: str, verdict: Verdict) -> None:
        def see(event: Event) -> None:
            verdict.watch(event)
            write_json(event_to_dict(event))

        reading.run(pieces(path, chunk), see)

    return _each(files, show)


def print_painted(reading: Reading, files: list[str], chunk: int | None) -> int:
    """Print the text itself, each character marked with the kind of its event."""
    brush = painter()
    brush.legend()

    def show(path: str, verdict: Verdict) -> None:
        def see(event: Event) -> None:
            verdict.watch(event)
            brush.paint(event)

        if len(files) > 1:
            brush.heading(called(path))
        try:
            message = reading.run(pieces(path, chunk), see)
        finally:
            brush.lift()
        brush.notes(message)

    return _each(files, show)


def _each(files: list[str], show: Callable[[str, Verdict], None]) -> int:
    """Show every file. If one has nothing usable, print a message on standard error and read the next one."""
    status = USABLE
    for path in files:
        verdict = Verdict()
        try:
            show(path, verdict)
        except Unreadable as error:
            complain(str(error))
            status = NOTHING_USABLE
        else:
            if verdict.invalid:
                complain(f"{called(path)}: a call does not fit its schema")
                status = NOTHING_USABLE
            if not verdict.usable:
                complain(f"{called(path)}: {verdict.complaint}")
                status = NOTHING_USABLE
    return status
