"""Closing brackets that do not fit in Python: what was meant, or an anomaly."""

from __future__ import annotations

import json
import random

import toolgram
from tests.properties.selection import some
from tests.streams import assert_same_however_split

TOOLS = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in "fg"]


def test_broken_lists_are_never_complete_without_an_anomaly() -> None:
    """Brackets of valid arguments dropped, doubled, swapped or replaced: what was meant, or an anomaly."""
    values = ['[1, {"b": 2}]', "{'x': [1, 2], 'y': (3, 4)}", "[[], [{}], [[1]]]", "{'k': {'l': [None]}}"]
    fmt = toolgram.get_format("lfm2")
    for number in some(range(400), "broken lists"):
        chosen = random.Random(number)
        calls = ", ".join(f"{name}(a={chosen.choice(values)}, c={chosen.choice(values)})" for name in "fg")
        text = f"<|tool_call_start|>[{calls}]<|tool_call_end|>"
        meant = [json.loads(call.arguments) for call in fmt.parse(text, TOOLS).tool_calls]
        at = chosen.choice([at for at, character in enumerate(text) if character in "[](){}"])
        broken = chosen.choice(
            [
                text[:at] + text[at + 1 :],
                text[:at] + text[at] + text[at:],
                text[:at] + text[at + 1] + text[at] + text[at + 2 :],
                text[:at] + chosen.choice("[](){}") + text[at + 1 :],
            ]
        )
        message = assert_same_however_split(fmt, broken, tools=TOOLS)
        found = [json.loads(call.arguments) for call in message.tool_calls if call.status == "complete"]
        if found != meant:
            assert message.anomalies, broken
