"""Errors that teach: each names the file, the place, the thing, and the next step.

Model text never raises (clause 6 of the contract).  What raises is a specification that is not consistent or a
name that does not exist: a fault that the user can correct.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

_LONGEST_NAME = 100  # characters of an unknown name in a message


class ToolgramError(Exception):
    """Base of every error that this package raises on purpose.

    `page` is the address of its page within the documentation. A traceback shows it below the message.
    """

    page: ClassVar[str] = "reference/errors/ToolgramError/"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.page = f"reference/errors/{cls.__name__}/"

    def __init__(self, *said: object) -> None:
        super().__init__(*said)
        self.add_note(f"See {self.page}")

    @property
    def said(self) -> str:
        """The message with the address of its page, as people read it."""
        return f"{self} (see {self.page})"


class FormatError(ToolgramError):
    """A grammar or machine file cannot be used.

    `path`, `line` (1-based, 0 when the whole file is meant) and `column` say where; `problem` what is wrong;
    `remedy` what to write instead.
    """

    def __init__(self, path: str, problem: str, remedy: str, line: int = 0, column: int = 0) -> None:
        self.path = path
        self.problem = problem
        self.remedy = remedy
        self.line = line
        self.column = column
        place = path
        if line:
            place += f":{line}"
            if column:
                place += f":{column}"
        super().__init__(f"{place}: {problem}\n  remedy: {remedy}")


class UnknownFormat(ToolgramError, KeyError):
    """No shipped format has this name. `names` lists those that do; `why` says more if more is known."""

    def __init__(self, name: str, names: Iterable[str], why: str = "") -> None:
        self.name = name
        self.names = tuple(names)
        self.why = why
        shown = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"
        self.problem = f"unknown format {shown!r}{why and ': '}{why}"
        super().__init__(
            f"{self.problem}; `toolgram formats` lists them, `toolgram formats --for MODEL` finds that of a model, and "
            "`toolgram derive` makes one from a chat template"
        )

    def __str__(self) -> str:
        return str(self.args[0])
