"""The errors of derivation: a chat template that cannot be rendered, and one that costs too much.

Strategy: templates are untrusted programs, so every failure inside one (syntax, a missing filter, a raised exception,
endless recursion, an endless loop, endless output) is one error, with its line if the template reports one, and with a
short message. The phases of the analysis treat that error as an answer: the template refuses its input. Excessive cost
is not an answer: it is a separate internal error, which ends the derivation, and which `derive_format` raises as a
TemplateError.
"""

from __future__ import annotations

from toolgram.errors import ToolgramError

_LONGEST = 300  # characters of a template's message


class TemplateError(ToolgramError):
    """A chat template cannot be compiled or rendered, or takes too much of time or memory.

    `line` is 1-based, 0 when unknown; `problem` says why, in one line; `place` is the file, if it is known.
    """

    def __init__(self, problem: str, line: int = 0, place: str = "chat template") -> None:
        self.problem = short(problem)
        self.line, self.place = line, place
        super().__init__(f"{place}, line {line}: {self.problem}" if line else f"{place}: {self.problem}")

    def __reduce__(self) -> tuple[type[TemplateError], tuple[str, int, str]]:
        return type(self), (self.problem, self.line, self.place)


class NotExpressible(Exception):
    """A message that the template does not print, or calls that no skeleton writes."""


class CostlyTemplate(TemplateError):
    """A chat template does something that would cost too much."""


class OutOfBudget(ToolgramError):
    """Derivation used up its time or memory, or a template was about to. `problem` names the step."""

    def __init__(self, problem: str, line: int = 0) -> None:
        self.problem, self.line = problem, line
        super().__init__(problem)


def short(text: str, most: int = _LONGEST) -> str:
    """Return a template's text on one line, shortened, without characters that control a terminal."""
    begun = text[: 2 * most]
    words = " ".join(begun.split())
    line = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in words)
    return line if len(line) <= most and len(begun) == len(text) else line[:most] + " ..."
