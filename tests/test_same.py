"""What formats export, and what they read in broken outputs, changes on purpose only.

`python -m tests.test_same` writes what it is, after a look at it. `python -m tests.test_same hermes` prints the
readings of a format, one in each line, to be compared with those of another version.
"""

import hashlib
import json
import random
import sys
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

import toolgram
from tests.clauses import in_pieces
from tests.export.schema_pool import pool
from tests.fuzz import text_of, tools
from tests.suite_told import suite
from toolgram.export import TARGETS
from toolgram.runtime.whole_outputs import whole_message

FAMILY = itemgetter("family")
KEPT = Path(__file__).with_name("same.json")
SCHEMAS = sorted(pool().items())
ASKED: list[dict[str, Any]] = [
    {"tool_choice": "auto"}, {"tool_choice": "required", "length_limits": True, "parallel_tool_calls": False},
    {"tool_choice": ["f_1"], "open_objects": True}, {"tool_choice": "none", "json_schema": SCHEMAS[7][1]},
]  # fmt: skip
TEXTS = 500
CASES = {
    family: [case for case in cases if case["level"] != "core"]
    for family, cases in groupby(sorted(suite.load_cases(), key=FAMILY), FAMILY)
}
ENDS = (None, "stop", "length", "tool_calls")


def exports(name: str) -> Iterator[str]:
    """A format's exports for each target, with other schemas of the pool for each format."""
    fmt, at = toolgram.get_format(name), toolgram.format_names().index(name)
    asked = [{"name": f"f_{k}", "parameters": SCHEMAS[(7 * at + k) % len(SCHEMAS)][1]} for k in range(7)]
    for target in TARGETS:
        for each in ASKED:
            try:
                yield repr(fmt.export(target, asked, **each))
            except toolgram.ToolgramError as error:
                yield str(error)


def texts(name: str, rng: random.Random) -> Iterator[tuple[str, Any, str | None]]:
    """Broken outputs, and those of the suite that deviate, each with its functions and its finish reason."""
    for at in range(TEXTS):
        yield text_of(name, rng), (None, tools())[at % 2], ENDS[at // 2 % 4]
    for case in CASES.get(name, ()):
        yield case["text"], case.get("tools"), case["finish_reason"]


def readings(name: str) -> Iterator[str]:
    """What is read in outputs: whole, in pieces, and from a snapshot before one of them; and in which way."""
    fmt, rng = toolgram.get_format(name), random.Random(f"same {name}")
    for at, (text, given, end) in enumerate(texts(name, rng)):
        parsers = [fmt.parser(given, call_ids=lambda: "id", strict=at % 8 == 7) for _ in range(2)]
        pieces = in_pieces(text, rng)
        parsers[0].feed(text)
        half = len(pieces) // 2
        events = [(parsers[1].feed(piece), type(parsers[1]._path).__name__) for piece in pieces[:half]]
        snapshot = parsers[1].snapshot()
        parsers.append(fmt.restore(snapshot, given, lambda: "id"))
        events += [(parser.feed(piece), "") for parser in parsers[1:] for piece in pieces[half:]]
        for parser in parsers:
            parser.close(end)
        read = [parser.message.to_dict() for parser in parsers]
        plain = whole_message(fmt.program, text, given, lambda: "id", end) is not None
        yield json.dumps([text, pieces, read, {**snapshot, "digest": ""}, repr(events), plain])


def digest(lines: Iterator[str]) -> str:
    """A digest of some lines."""
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()[:16]


@pytest.mark.parametrize("of", [exports, readings], ids=lambda of: of.__name__)
@pytest.mark.parametrize("name", toolgram.format_names())
def test_a_format_is_as_it_was(name: str, of: Any) -> None:
    assert digest(of(name)) == json.loads(KEPT.read_text("utf-8"))[name][of.__name__]


if __name__ == "__main__" and sys.argv[1:]:
    sys.stdout.writelines(line + "\n" for line in readings(sys.argv[1]))
elif __name__ == "__main__":
    found = {name: {of.__name__: digest(of(name)) for of in (exports, readings)} for name in toolgram.format_names()}
    KEPT.write_text(json.dumps(found, indent=0) + "\n", "utf-8")
