"""The one error of derivation: a chat template that cannot be rendered.

Strategy: templates are untrusted programs, so everything that can go wrong inside one (syntax, a missing filter, a
raised exception, endless recursion, a loop without end, output without end) is this error, with the line where the
template says it.
"""

from __future__ import annotations

from toolgram.errors import ToolgramError


class TemplateError(ToolgramError):
    """A chat template cannot be compiled or rendered. `line` is 1-based, 0 when unknown; `problem` says why."""

    def __init__(self, problem: str, line: int = 0) -> None:
        self.problem = problem
        self.line = line
        super().__init__(f"chat template, line {line}: {problem}" if line else f"chat template: {problem}")
