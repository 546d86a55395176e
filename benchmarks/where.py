"""Where the time goes: the cost of one delta of each kind. `python -m benchmarks.where` prints it.

A stream is brought to a place, and one delta is fed there.  The median over many streams is printed as a ratio to the
floor (one event in a list), which is measured in turn with it.  Sums of these figures explain the cost of a workload:
most deltas take the fast path, and the few around the beginning and the end of a call take the slow one.
"""

from __future__ import annotations

import statistics
import time

import toolgram
from benchmarks.measure import Floor

STREAMS = 3_000
CALL = '{"name": "ab", "parameters": '
PLACES: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    ("text", "mistral_v11", ("Hello there",), "quic"),
    ("text that ends in a blank", "mistral_v11", ("Hello there",), "qui "),
    ("text with a bracket that begins nothing", "llama3_json", ("Hello there",), "x {r"),
    ("text with a bracket at its end", "llama3_json", ("Hello there",), "abc{"),
    ("inside a JSON string", "mistral_v11", ('[TOOL_CALLS]f[ARGS]{"a": "x',), "quic"),
    ("inside a string in Python's spelling", "hermes", ("<tool_call>{'name': 'f', 'arguments': {'a': 'x",), "quic"),
    ("Python's spelling between two strings", "hermes", ("<tool_call>{'name': 'f', 'arguments': {'a': 'x",), "', '"),
    ("a name in Python's spelling", "hermes", ("<tool_call>{'name': 'a",), "bcde"),
    ("JSON punctuation, seen before", "mistral_v11", ('[TOOL_CALLS]f[ARGS]{"a": "x',), '", "'),
    ("a JSON bracket, seen before", "mistral_v11", ('[TOOL_CALLS]f[ARGS]{"a": [',), "[1, "),
    ("an argument name, seen before", "llama4_pythonic", ("[f(a=1",), ", ab"),
    ("the beginning of an envelope", "llama3_json", (), '{"na'),
    ("a blank in an envelope", "llama3_json", ('{"name": "f",',), " "),
    ("the middle of a key", "llama3_json", ('{"na',), "m"),
    ("the end of a key", "llama3_json", ('{"nam',), 'e"'),
    ("the end of the name", "llama3_json", ('{"name": "ab',), '"'),
    ("the beginning of the arguments", "llama3_json", (CALL,), '{"'),
    ("the end of a call in an envelope", "llama3_json", (CALL + '{"a": 1',), "}}"),
    ("a marker", "mistral_v11", ("Hello there",), "[TOOL_CALLS]"),
    ("a name, a marker and a bracket", "mistral_v11", ("[TOOL_CALLS]",), 'f[ARGS]{"'),
    ("the end of a call", "mistral_v11", ('[TOOL_CALLS]f[ARGS]{"a": 1',), "}"),
)


def once(feed: object, delta: str) -> float:
    """The seconds of one delta."""
    assert callable(feed)
    begin = time.perf_counter()
    feed(delta)
    return time.perf_counter() - begin


def main() -> None:
    """Print a line per place."""
    overhead = statistics.median(once(len, "") for _ in range(STREAMS))
    floor = Floor().feed
    print(f"{'delta':44}{'x event':>8}")
    for what, name, before, delta in PLACES:
        fmt = toolgram.get_format(name)
        costs: list[float] = []
        floors: list[float] = []
        for _ in range(STREAMS):
            parser = fmt.parser()
            for text in before:
                parser.feed(text)
            costs.append(once(parser.feed, delta) - overhead)
            floors.append(once(floor, delta) - overhead)
        print(f"{what:44}{statistics.median(costs) / statistics.median(floors):8.1f}")


if __name__ == "__main__":
    main()
