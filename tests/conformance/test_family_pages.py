"""The example of each family on the page about families, read as that page says, whole and by character.

The page stands beside the repository. Under the heading of a family it has outputs between lines of `~~~`, in which
`\\n` is a line end. Unless said otherwise they mean reasoning, content and two calls.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import toolgram

WEATHER = ("get_weather", {"city": "Paris", "days": 3})
SEARCH = ("search", {"q": 'a "b"'})
TAGGED = ("search", {"q": 'a "b"', "tags": ["x", "y"]})
UNTYPED = ("search", {"q": 'a "b"', "tags": "['x', 'y']"})  # Python's quotes, and no type is declared
BOTH = ("Two calls.", "Sure.", [WEATHER, SEARCH])
BOTH_TAGGED = ("Two calls.", "Sure.", [WEATHER, TAGGED])

# Format, the line among the examples under its heading, what the prompt has written: reasoning, content, calls.
EXAMPLES: list[tuple[str, int, str | None, tuple[str | None, str | None, list[Any]]]] = [
    ("apertus", 0, None, BOTH),
    ("cohere_command3", 0, None, ("Two calls.", None, [WEATHER, SEARCH])),
    ("deepseek_v3", 0, "<think>\n", BOTH),
    ("deepseek_v31", 0, "<think>", BOTH),
    ("ernie45", 0, None, BOTH),
    ("gigachat3", 0, None, (None, "Sure.", [WEATHER])),
    ("gigachat3", 1, None, (None, "Sure.", [WEATHER])),
    ("granite_20b_fc", 0, None, (None, None, [WEATHER, SEARCH])),
    ("hunyuan_a13b", 1, None, BOTH),
    ("internlm2", 0, None, (None, "Sure.", [WEATHER, SEARCH])),
    ("jamba", 0, None, (None, " Sure.", [WEATHER, SEARCH])),
    ("kimi_k2", 0, None, BOTH),
    ("xlam", 0, None, (None, None, [WEATHER, SEARCH])),
    ("plamo3", 0, None, ("Two calls.", "Sure.", [WEATHER, SEARCH])),
    ("olmo3", 0, None, (None, "Sure.", [WEATHER, TAGGED])),
    ("inkling", 0, None, BOTH),
    ("solar_open", 0, None, ("Two calls.", None, [WEATHER, SEARCH])),
    ("longcat", 0, "<longcat_think>\n", BOTH),
    ("minimax_m1", 2, None, BOTH),
    ("phi4_mini", 0, None, (None, None, [WEATHER, TAGGED])),
    ("step3", 0, None, BOTH_TAGGED),
    ("minimax_m3", 0, None, BOTH_TAGGED),
    ("minicpm5", 0, None, ("Two calls.", "Sure.", [WEATHER, UNTYPED])),
    ("muse", 0, None, BOTH_TAGGED),
    ("muse_glimmer", 0, None, BOTH_TAGGED),
    ("beam", 0, None, ("Two calls.", None, [WEATHER, TAGGED])),
]


@pytest.fixture(scope="module")
def page(shared: Path) -> str:
    return (shared / "research" / "families.md").read_text(encoding="utf-8")


def examples(page: str, name: str) -> list[str]:
    """The examples of a family, which may share its heading or its block with others."""
    blocks: list[str] = []
    for section in re.split(r"^#### ", page, flags=re.MULTILINE)[1:]:
        heading, _, body = section.partition("\n")
        if f"`{name}`" in heading:
            body = body.split("\n### ")[0]
            blocks += [line for block in body.split("~~~\n")[1::2] for line in block.splitlines()]
    return [line.replace("\\n", "\n") for line in blocks]


@pytest.mark.parametrize(("name", "line", "prefix", "meant"), EXAMPLES, ids=lambda value: str(value)[:24])
def test_an_example_is_read_as_the_page_says(name: str, line: int, prefix: str | None, meant: Any, page: str) -> None:
    text = examples(page, name)[line].removeprefix("3: ")
    fmt = toolgram.get_format(name)
    for size in (len(text), 1):
        parser = fmt.parser(prefix=prefix)
        for start in range(0, len(text), size):
            parser.feed(text[start : start + size])
        parser.close()
        message = parser.message
        calls = [(call.name, json.loads(call.arguments)) for call in message.tool_calls]
        assert (message.reasoning, message.content, calls) == meant
        assert {call.status for call in message.tool_calls} == {"complete"}
        assert not message.anomalies
