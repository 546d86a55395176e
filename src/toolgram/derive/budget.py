"""One deadline and one memory budget for all steps of a derivation, from rendering to probing.

Strategy: a budget is the context in which derivation runs (rendering, comparing, synthesis, compiling, probing). Code
that iterates over a template's own texts calls `look`, which costs a fraction of a microsecond, and raises after the
deadline; code that keeps a text reports its length. Steps that cannot call it (one regular expression, one
`json.dumps`) get bounded texts. Time is processor time, so that a busy machine makes no template too costly.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from toolgram.derive.errors import CostlyTemplate, OutOfBudget
from toolgram.limits import MAX_RENDERINGS

CLOCK = getattr(time, "thread_time", time.process_time)  # a browser has no clock for one thread


class Budget:
    """How long a derivation may take, how much it may keep, and its current step."""

    __slots__ = ("deadline", "doing", "kept", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.deadline = CLOCK() + seconds
        self.doing = "compiling the template"
        self.kept = 0


_current: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def within(seconds: float) -> Iterator[Budget]:
    """Run with a budget; inside another one, with that. `look` raises OutOfBudget when it is used up."""
    outer = _current.get()
    if outer is not None:
        yield outer
        return
    budget = Budget(seconds)
    token = _current.set(budget)
    try:
        yield budget
    finally:
        _current.reset(token)


def look(doing: str = "") -> None:
    """Raise OutOfBudget if the time is over; otherwise record the current step."""
    budget = _current.get()
    if budget is None:
        return
    if CLOCK() > budget.deadline:
        raise OutOfBudget(
            f"derivation took longer than {budget.seconds:g} s of the processor, and was stopped while {budget.doing}"
        )
    if doing:
        budget.doing = doing


def keep(characters: int) -> None:
    """Count a text of this length as kept. Raises OutOfBudget if all texts together are too long."""
    budget = _current.get()
    if budget is None:
        return
    budget.kept += characters
    if budget.kept > MAX_RENDERINGS:
        raise OutOfBudget(
            f"derivation kept more than {MAX_RENDERINGS} characters, and was stopped while {budget.doing}"
        )


def stop(error: CostlyTemplate) -> None:
    """End the derivation if there is a budget, because a template was about to cost too much."""
    look()
    if _current.get() is not None:
        raise OutOfBudget(error.problem, error.line)


def time_left() -> float:
    """Return the seconds that are left; infinity without a budget."""
    budget = _current.get()
    return float("inf") if budget is None else budget.deadline - CLOCK()
