"""The examples of formats that have calls, with prefixes: what tests of deviations change."""

from __future__ import annotations

from functools import cache

import toolgram

# Bare JSON is read as it is, or it is text: nothing of it is repaired.
BARE = ("llama3_json", "xlam")


@cache
def examples(name: str) -> list[tuple[str, str]]:
    """Return the examples of a shipped format that have calls."""
    return examples_of(toolgram.get_format(name))


def examples_of(fmt: toolgram.Format) -> list[tuple[str, str]]:
    """Return the examples of a format that have calls: their prefixes and their texts."""
    found = []
    for example in fmt.machine_dict["format"].get("canonical", ()):
        prefix, text = (example.get("prefix", ""), example["output"]) if isinstance(example, dict) else ("", example)
        if fmt.parse(text, prefix=prefix).tool_calls:
            found.append((prefix, text))
    return found
