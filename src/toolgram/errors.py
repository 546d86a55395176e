"""Errors that teach: each names the file, the place, the thing, and the next step.

Model text never raises (clause 6 of the contract).  What raises is a specification that does not hold together or a
name that does not exist: a fault that the user can correct.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar


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


def _meant(name: str, names: Sequence[str]) -> str:
    from difflib import get_close_matches

    plain = name.lower().replace("-", "_").replace(".", "_")[:100]
    close = get_close_matches(plain, names, n=1) or [known for known in names if known.startswith(plain)][:1]
    return f" (did you mean {close[0]}?)" if close and plain else ""


class UnknownFormat(ToolgramError, KeyError):
    """No shipped format has this name. `names` lists those that do; `why` says more if more is known."""

    def __init__(self, name: str, names: Iterable[str], why: str = "") -> None:
        self.name = name
        self.names = tuple(names)
        self.why = why
        more = f": {why}" if why else _meant(name, self.names)
        super().__init__(
            f"unknown format {name!r}{more}; shipped formats: {', '.join(self.names)}. "
            "Load your own two files with toolgram.load_format(grammar, machine). The id of a model is a name as well, "
            "and toolgram derive makes a format of a chat template."
        )

    def __str__(self) -> str:
        return str(self.args[0])
