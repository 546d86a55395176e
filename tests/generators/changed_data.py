"""Data of JSON or YAML that is nearly right, changed as people, bad disks and attackers do.

Strategy: a place is drawn from the root down, so that a short section is changed as often as a long one. Its value is
lost, doubled, called something else, or exchanged for another one: any, that of any other place, or that of the same
place in data of the same kind.
"""

import copy
from collections.abc import Sequence
from functools import reduce
from operator import getitem
from typing import Any

from hypothesis import strategies as st


def a_place(draw: st.DrawFn, data: Any) -> tuple[Any, ...]:
    """The path of a value, empty if there is none inside."""
    path: tuple[Any, ...] = ()
    while isinstance(data, dict | list) and data and (not path or draw(st.integers(0, 4))):
        key = draw(st.sampled_from([*data] if isinstance(data, dict) else range(len(data))))
        data, path = data[key], (*path, key)
    return path


def _similar(draw: st.DrawFn, data: Any, path: Sequence[Any]) -> Any:
    """The value at the same place of other data, of any item of its lists; None if it has no such place."""
    for key in path:
        if isinstance(data, list) and data:
            data = data[draw(st.integers(0, len(data) - 1))]
        else:
            data = data.get(key) if isinstance(data, dict) else None
    return data


@st.composite
def changed(draw: st.DrawFn, data: Any, like: Sequence[Any], values: st.SearchStrategy[Any]) -> Any:
    """The data with one to three changes. `like` is data of the same kind, `values` are put in the place of any."""
    data = copy.deepcopy(data)
    for _ in range(draw(st.integers(1, 3))):
        path = a_place(draw, data)
        if not path:
            break
        holder, key = reduce(getitem, path[:-1], data), path[-1]
        kind = draw(st.sampled_from(["drop", "again", "value", "value", "swap", "similar", "similar"]))
        if kind == "drop":
            del holder[key]
        elif kind == "again" and isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        elif kind == "again":
            holder[f"{key}s"] = holder.pop(key)
        elif kind == "value":
            holder[key] = copy.deepcopy(draw(values))
        elif kind == "swap":
            holder[key] = copy.deepcopy(reduce(getitem, a_place(draw, data), data))
        else:
            holder[key] = copy.deepcopy(_similar(draw, draw(st.sampled_from(like)), path))
    return data
