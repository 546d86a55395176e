"""Kleene's algorithm: from an automaton, given by its moves, to the expression of its first state."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from heapq import heapify, heappop, heappush
from typing import TypeVar

from toolgram.export.expressions import NOTHING, Expr, choice, seq, star

N = TypeVar("N", bound=Hashable)


def solve(first: N, moves: Callable[[N], Iterable[tuple[Expr, N | None]]]) -> Expr:
    """Return the expression of the first state. The other states are replaced by their equations, one by one.

    `moves` returns where a state leads, and the expression on the way; None is the end. The state with the fewest paths
    through it comes first. So the remaining loops are those of states with many paths, and the part that belongs to one
    function is written once.
    """
    rows = _equations(first, moves)
    users: list[dict[int, None]] = [{} for _ in rows]  # in their order, which is that of the text
    for node, row in enumerate(rows):
        for dest in row:
            if dest >= 0:
                users[dest][node] = None

    def paths(node: int) -> int:
        return (len(users[node]) - (node in users[node])) * len(rows[node])

    # a heap that may contain a state several times; its last entry counts
    waiting = [(paths(node), node) for node in range(len(rows)) if node]
    heapify(waiting)
    done = {0}
    while waiting:
        count, node = heappop(waiting)
        if node in done or count != paths(node):
            continue
        done.add(node)
        touched = {*users[node], *(dest for dest in rows[node] if dest >= 0)}
        _put_in(rows, users, node)
        for each in touched - done:
            heappush(waiting, (paths(each), each))
    return _equation(rows, 0).get(-1, NOTHING)


def _equations(first: N, moves: Callable[[N], Iterable[tuple[Expr, N | None]]]) -> list[dict[int, list[Expr]]]:
    """Return what leads from each state where. States are numbers, in the order of their visits; -1 is the end."""
    equations: dict[N, dict[N | None, list[Expr]]] = {}
    pending = [first]
    while pending:
        node = pending.pop()
        if node in equations:
            continue
        row: dict[N | None, list[Expr]] = {}
        for label, dest in moves(node):
            row.setdefault(dest, []).append(label)
            if dest is not None:
                pending.append(dest)
        equations[node] = row
    numbers: dict[N | None, int] = {node: at for at, node in enumerate(equations)} | {None: -1}
    return [{numbers[dest]: label for dest, label in row.items()} for row in equations.values()]


def _equation(rows: list[dict[int, list[Expr]]], node: int) -> dict[int, Expr]:
    """Return what leads from one state to others."""
    row = {dest: labels[0] if len(labels) == 1 else choice(*labels) for dest, labels in rows[node].items()}
    again = row.pop(node, None)
    return row if again is None else {dest: seq(star(again), label) for dest, label in row.items()}


def _put_in(rows: list[dict[int, list[Expr]]], users: list[dict[int, None]], node: int) -> None:
    """Replace a state by its equation, wherever it occurs."""
    row = _equation(rows, node)
    for dest in row:
        if dest >= 0:
            users[dest].pop(node, None)
    for user in filter(node.__ne__, users[node]):
        here = rows[user]
        into = choice(*here.pop(node))
        for dest, label in row.items():
            joined = seq(into, label)
            if joined is NOTHING:
                continue
            here.setdefault(dest, []).append(joined)
            if dest >= 0:
                users[dest][user] = None
