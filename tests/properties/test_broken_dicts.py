"""Nothing inside arguments becomes a call: also if they are in Python's spelling, and broken.

A call without a marker may be prose, whose quotes do not count: there, only the declarations of functions tell (P3e).
"""

from __future__ import annotations

import toolgram
from tests.clauses import check_widely
from tests.fuzz import tools
from tests.properties.selection import every_format
from toolgram.observing.paths import canonical_outputs

TOOLS = tools()
PLAIN = '{"city": "Paris"}'
INNER = '{"name": "g", "arguments": {}, "parameters": {}}'
BROKEN = [
    "{'a': 1_0, 'b': '}}, CALL, '}",
    "{'a': (1, 2), 'b': ']}}, CALL'}",
    "{'a': [1}, 'b': '}}]}, [CALL'}",
    "{'a': '\\x4g', 'b': tru, 'c': '}}, CALL, '}",
]


@every_format
def test_a_call_in_a_string_of_a_broken_dict_is_none(name: str) -> None:
    fmt = toolgram.get_format(name)
    bare = not {"start_map item", "start_array"}.isdisjoint(fmt.program.initial.row)
    for prefix, output, _ in canonical_outputs(fmt):
        for broken in BROKEN if PLAIN in output else ():
            text = output.replace(PLAIN, broken.replace("CALL", INNER), 1)
            for declared in (TOOLS,) if bare else (None, TOOLS):
                for strict in (False, True):
                    message = fmt.parse(text, declared, prefix, "stop", strict)
                    assert "g" not in [call.name for call in message.tool_calls], text
            failure = check_widely(fmt, text, [])
            assert failure is None, failure
