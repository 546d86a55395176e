"""The outputs that the file of a format shows."""

from functools import cache

import toolgram
from toolgram.program.state import Program


def examples(program: Program) -> list[str]:
    """Return the example of a format and its canonical outputs."""
    said = program.spec.machine_dict.get("format", {}).get("canonical") or ()
    texts = [text.get("output", "") if isinstance(text, dict) else text for text in (program.spec.example, *said)]
    return list(dict.fromkeys(text for text in texts if isinstance(text, str) and text))


# --- examples that have calls ---------------------------------------------------------------------------------------

# Bare JSON is read as it is, or it is text: nothing of it is repaired.
BARE = ("llama3_json", "xlam")


@cache
def with_calls(name: str) -> list[tuple[str, str]]:
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
