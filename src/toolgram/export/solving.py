"""Kleene's algorithm: from an automaton, given by its moves, to the expression of its first state."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from heapq import heapify, heappop, heappush
from typing import TypeVar

from toolgram.export.expressions import NOTHING, Expr, choice, each_function, seq, star

N = TypeVar("N", bound=Hashable)


def solve(
    first: N, moves: Callable[[N], Iterable[tuple[Expr, N | None]]], in_call: Callable[[N], bool] | None = None
) -> Expr:
    """Return the expression of the first state. The other states are replaced by their equations, one by one.

    `moves` returns where a state leads, and the expression on the way; None is the end. The state with the fewest paths
    through it comes first, so the remaining loops are those of states with many paths. The states inside of a call come
    before all others: what is then between two others is a part of one call, which is written for each function.
    """
    nodes, rows = _equations(first, moves)
    users: list[dict[int, None]] = [{} for _ in rows]  # in their order, which is that of the text
    for at, row in enumerate(rows):
        for dest in row:
            if dest >= 0:
                users[dest][at] = None
    inner = {at for at, node in enumerate(nodes) if in_call is not None and in_call(node)}
    outer = {*range(1, len(rows))} - inner
    if in_call is not None:
        _replace(rows, users, inner)
        for at in (0, *outer):
            rows[at] = {dest: [*map(each_function, labels)] for dest, labels in rows[at].items()}
    _replace(rows, users, outer)
    return _equation(rows, 0).get(-1, NOTHING)


def _replace(rows: list[dict[int, list[Expr]]], users: list[dict[int, None]], among: set[int]) -> None:
    """Replace some states by their equations, those with the fewest paths through them first."""

    def paths(node: int) -> int:
        return (len(users[node]) - (node in users[node])) * len(rows[node])

    # a heap that may contain a state several times; its last entry counts
    waiting = [(paths(node), node) for node in among]
    heapify(waiting)
    while waiting:
        count, node = heappop(waiting)
        if node not in among or count != paths(node):
            continue
        among.remove(node)
        touched = {*users[node], *(dest for dest in rows[node] if dest >= 0)}
        _put_in(rows, users, node)
        for each in touched & among:
            heappush(waiting, (paths(each), each))


def _equations(
    first: N, moves: Callable[[N], Iterable[tuple[Expr, N | None]]]
) -> tuple[list[N], list[dict[int, list[Expr]]]]:
    """Return the states in the order of their visits, and what leads from each one where; -1 is the end."""
    equations: dict[N, dict[N | None, list[Expr]]] = {}
    pending = [first]
    while pending:
        node = pending.pop()
        if node in equations:
            continue
        row: dict[N | None, list[Expr]] = {}
        for label, dest in moves(node):
            if label is NOTHING:
                continue
            row.setdefault(dest, []).append(label)
            if dest is not None:
                pending.append(dest)
        equations[node] = row
    numbers: dict[N | None, int] = {node: at for at, node in enumerate(equations)} | {None: -1}
    return [*equations], [{numbers[dest]: label for dest, label in row.items()} for row in equations.values()]


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
