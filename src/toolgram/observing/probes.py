"""Sample calls for trying a format: their values, and the tools that declare them.

Strategy: a few calls have every JSON type, quotes, line ends, and characters that markers contain. A derived format is
analysed and proved with these calls, and the paths of an export are observed with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    """A call to render."""

    name: str
    arguments: Mapping[str, Any]
    id: str = "k3JwzQxTv"


_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null", list: "array"}


def json_type(value: Any) -> str:
    """Return the JSON type of a Python value."""
    return _TYPES.get(type(value), "object")


def tool_of(call: Call, kind: str | None = None) -> dict[str, Any]:
    """Return an OpenAI tool dict that declares a call's function, each parameter with its value's type, or `kind`."""
    properties = {key: {"type": kind or json_type(value), "description": "d"} for key, value in call.arguments.items()}
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": call.name, "description": "d", "parameters": parameters}}


CITY = Call("find_city", {"place": "Oslo", "limit": 2}, "cD3fGh1Jk")
DOCS = Call("docs.search", {"query": "cats & <dogs>", "exact": True}, "lM9nOpQ2r")
PING = Call("ping", {}, "sT7uVwX4y")
NESTED = Call(
    "docs.search",
    {
        "query": 'na\u00efve "caf\u00e9" \\ back\u2028 \U0001f389',
        "filters": {"a": {"b": [1, 2.5, {"c": "it's {d}"}]}, "empty": {}, "none": []},
        "tags": ["x", 'y "z"'],
        "limit": -7,
        "exact": False,
        "nothing": None,
    },
    "zA1bCdE5f",
)
CODE = Call(
    "run", {"code": "def f(x):\n    if x < 3:\n        return [\"a\", 'b']\n", "language": "python"}, "gH6iJkL8m"
)
SIGNS = Call(
    "run",
    {"code": "see a.b/c?d=1&e=[2]#f | g: h; i=j, (k) ~l~\n- m: n\n# o\n* p > q", "language": "-"},
    "pQ7rStU2v",
)
LOOKALIKE = Call("run", {"code": '{"a": [1, 2]}', "language": "true"}, "nO2pQrS3t")
TOOLS = [tool_of(call) for call in (CITY, PING, NESTED, CODE)]

# Calls to find in a text. Names, keys, values and ids are each unlike the others, unlike words, and without a blank.
CALLS = (
    Call("qzarnel_lookup", {"vostrik": "Kelmuth", "drimble": "Pazwick"}, "kWjwzQxTv"),
    Call("yphose", {"ghelt": "Wobrin", "nuxal": "Tarquem"}, "mRpfbLdHs"),
    Call("bexil_frum", {"cwight": "Sulvane", "fjorpel": "Ondrick"}, "tNcyvGgZq"),
)
TYPED = Call(
    "tworple",
    {
        "zka_str": "Hexmor",
        "zkb_int": 7041,
        "zkc_num": 2.625,
        "zkd_yes": True,
        "zke_no": False,
        "zkf_nil": None,
        "zkg_arr": ["Vexly", 31, False],
        "zkh_obj": {"nib": [1, True, None], "quon": {"u": "Ömar"}},
        "zki_odd": "aé\"b\\c\n'd<e",
        "zkz_end": "Jundra",
    },
    "sXvkdPnWy",
)
ALL_CALLS = (*CALLS, TYPED, CITY, PING, NESTED, CODE)
