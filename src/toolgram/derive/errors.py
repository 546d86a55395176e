"""The errors of derivation: a chat template that cannot be rendered, and one that costs too much.

Strategy: templates are untrusted programs, so everything that can go wrong inside one (syntax, a missing filter, a
raised exception, endless recursion, a loop without end, output without end) is one error, with the line where the
template says it, and short whatever the template raises.  The phases of the analysis take that error as an answer: the
template refuses what it was asked.  That something costs too much is no answer: it is an error of its own inside, which
ends the derivation, and which `derive_format` raises as the first.
"""

from __future__ import annotations

from toolgram.errors import ToolgramError

_LONGEST = 300  # characters of what a template says


class TemplateError(ToolgramError):
    """A chat template cannot be compiled or rendered, or takes too much of time or memory.

    `line` is 1-based, 0 when unknown; `problem` says why, in one line.
    """

    def __init__(self, problem: str, line: int = 0) -> None:
        self.problem = short(problem)
        self.line = line
        super().__init__(f"chat template, line {line}: {self.problem}" if line else f"chat template: {self.problem}")

    def __reduce__(self) -> tuple[type[TemplateError], tuple[str, int]]:
        return type(self), (self.problem, self.line)


class NotExpressible(Exception):
    """A message that the template does not print, or calls that no skeleton writes."""


class CostlyTemplate(TemplateError):
    """A chat template does something that would cost too much."""


class OutOfBudget(ToolgramError):
    """Derivation has used up its time or its memory, or a template was about to. `problem` says what it was doing."""

    def __init__(self, problem: str, line: int = 0) -> None:
        self.problem = problem
        self.line = line
        super().__init__(problem)


def short(problem: str) -> str:
    """What a template says, on one line and not at length, with nothing in it that a terminal obeys."""
    begun = problem[: 2 * _LONGEST]
    words = " ".join(begun.split())
    line = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in words)
    return line if len(line) <= _LONGEST and len(begun) == len(problem) else line[:_LONGEST] + " ..."
