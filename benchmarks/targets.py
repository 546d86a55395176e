"""The targets for toolgram's speed, and whether the figures of a run meet them.

Each line is one target, the worst figure of the run for it, and where that was measured.  Only the limits are fixed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchmarks.contenders import CONTENDERS
from benchmarks.results import Cell, Results
from benchmarks.workloads import WORKLOADS, Family

SHORTEST = 1_000  # characters; what is shorter is in the tables and has no target
FAMILY_LIMITS: dict[Family, float] = {"content": 3, "reasoning": 3, "json": 4, "python": 8, "tagged": 8}
FAMILY_NAMES: dict[Family, str] = {
    "content": "content",
    "reasoning": "reasoning",
    "json": "JSON arguments",
    "python": "pythonic arguments",
    "tagged": "tagged arguments",
}
FLAT_LIMIT = 1.2
PEER_LIMITS = {"vllm_engine": 15.0, "transformers": 4.0, "harmony": 1.0}
WHOLE_LIMIT = 30.0  # nanoseconds per character
PARSER_LIMIT = 5.0  # microseconds
SIZE_LIMIT = 1024.0  # bytes
START_LIMIT = 1.6
MANY_LIMIT = 1.5


@dataclass(frozen=True)
class Target:
    """A target, and its worst figure; None where nothing was measured."""

    what: str
    limit: float
    figure: float | None
    where: str
    unit: str = "x"
    at_least: bool = False

    @property
    def met(self) -> bool | None:
        """Whether the figure is within the limit."""
        if self.figure is None:
            return None
        return self.figure >= self.limit if self.at_least else self.figure <= self.limit


def _at(cell: Cell) -> str:
    return f"{cell.workload}, {cell.length:,}"


def _worst(what: str, limit: float, figures: Mapping[str, float], unit: str = "x", at_least: bool = False) -> Target:
    """The target for the worst of several figures."""
    if not figures:
        return Target(what, limit, None, "", unit, at_least)
    where = (min if at_least else max)(figures, key=lambda name: figures[name])
    return Target(what, limit, figures[where], where, unit, at_least)


def _per_delta(results: Results) -> Iterator[Target]:
    """Cost to the floor, for each kind of each family, at every length from the shortest."""
    groups: dict[tuple[Family, str], dict[str, float]] = defaultdict(dict)
    for cell, figure in results.figures("toolgram", 4):
        workload = WORKLOADS[cell.workload]
        if cell.length >= SHORTEST:
            groups[workload.family, workload.title][_at(cell)] = figure.ratio
    for (family, title), figures in groups.items():
        yield _worst(f"{FAMILY_NAMES[family]}, {title}: to the floor", FAMILY_LIMITS[family], figures)


def _flat(results: Results) -> Iterator[Target]:
    """Cost at the greatest length against that at the shortest, both to the floor of their sample."""
    ratios = {(cell.workload, cell.length): figure.ratio for cell, figure in results.figures("toolgram", 4)}
    longest = max((length for _, length in ratios), default=SHORTEST)
    groups: dict[Family, dict[str, float]] = defaultdict(dict)
    for (name, length), ratio in ratios.items():
        if length == longest and (name, SHORTEST) in ratios:
            groups[WORKLOADS[name].family][name] = ratio / ratios[name, SHORTEST]
    for family, figures in groups.items():
        what = f"{FAMILY_NAMES[family]}: cost per delta at {longest:,} against {SHORTEST:,}"
        yield _worst(what, FLAT_LIMIT, figures)


def _peers(results: Results) -> Iterator[Target]:
    """How many times faster than each peer that a target names, where both were measured."""
    ours = dict(results.figures("toolgram", 4))
    for name, limit in PEER_LIMITS.items():
        groups: dict[Family, dict[str, float]] = {each.family: {} for each in CONTENDERS[name].workloads()}
        for cell, figure in results.figures(name, 4):
            same = cell._replace(contender="toolgram")
            if cell.length >= SHORTEST and same in ours:
                groups[WORKLOADS[cell.workload].family][_at(cell)] = figure.ratio / ours[same].ratio
        for family, times in groups.items():
            what = f"{FAMILY_NAMES[family]}: times faster than {CONTENDERS[name].title}"
            yield _worst(what, limit, times, at_least=True)


def _further(results: Results) -> Iterator[Target]:
    """What is not about deltas."""
    further = results.further
    if further is None:
        return
    whole: dict[Family, dict[str, float]] = defaultdict(dict)
    for name, nanoseconds in further.whole_nanoseconds.items():
        whole[WORKLOADS[name].family][name] = nanoseconds
    for family, figures in whole.items():
        what = f"{FAMILY_NAMES[family]}: whole-text parse per character, at 16,000"
        yield _worst(what, WHOLE_LIMIT, figures, "ns")
    yield _worst("fmt.parser()", PARSER_LIMIT, further.parser_microseconds, "us")
    yield _worst("size of a parser", SIZE_LIMIT, further.parser_bytes, "bytes")
    yield _worst("a fresh process: import, format, parse; to `import lark`", START_LIMIT, further.start_ratio)
    yield _worst("per delta with 10,000 parsers in turn, against one", MANY_LIMIT, further.many_ratio)


def targets(results: Results) -> list[Target]:
    """All of them."""
    return [*_per_delta(results), *_flat(results), *_peers(results), *_further(results)]
