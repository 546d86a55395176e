"""Kleene's algorithm: from an automaton, given as equations, to the expression of its first state."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import TypeVar

from toolgram.export.expressions import NOTHING, Expr, choice, seq, star

N = TypeVar("N", bound=Hashable)


def solve(equations: Mapping[N, Mapping[N | None, Expr]], order: Sequence[N], first: N) -> Expr:
    """Return the expression of the first state. The other states are replaced by their equations, one by one.

    The state with the fewest paths through it comes first. So the remaining loops are those of states with many paths,
    and the part that belongs to one function is written once. States are numbers here, and -1 is the end.
    """
    numbers = {node: at for at, node in enumerate(order)}
    rows = [{-1 if dest is None else numbers[dest]: label for dest, label in equations[node].items()} for node in order]
    users: list[dict[int, None]] = [{} for _ in order]  # in their order, which is that of the text
    for node in map(numbers.__getitem__, equations):
        for dest in rows[node]:
            if dest >= 0:
                users[dest][node] = None
    begin = numbers[first]

    def paths(node: int) -> int:
        return (len(users[node]) - (node in users[node])) * len(rows[node])

    # a heap that may contain a state several times; its last entry counts
    waiting = [(paths(node), node) for node in range(len(order)) if node != begin]
    heapify(waiting)
    done = {begin}
    while waiting:
        count, node = heappop(waiting)
        if node in done or count != paths(node):
            continue
        done.add(node)
        touched = {*users[node], *(dest for dest in rows[node] if dest >= 0)}
        _put_in(rows, users, node)
        for each in touched - done:
            heappush(waiting, (paths(each), each))
    row = rows[begin]
    again = row.pop(begin, None)
    return seq(star(again), row.get(-1, NOTHING)) if again is not None else row.get(-1, NOTHING)


def _put_in(rows: list[dict[int, Expr]], users: list[dict[int, None]], node: int) -> None:
    """Replace a state by its equation, wherever it occurs."""
    row = rows[node]
    again = row.pop(node, None)
    if again is not None:
        row = {dest: seq(star(again), label) for dest, label in row.items()}
    for dest in row:
        if dest >= 0:
            users[dest].pop(node, None)
    for user in users[node]:
        if user == node:
            continue
        here = rows[user]
        into = here.pop(node)
        for dest, label in row.items():
            joined = seq(into, label)
            if joined == NOTHING:
                continue
            here[dest] = choice(here[dest], joined) if dest in here else joined
            if dest >= 0:
                users[dest][user] = None
