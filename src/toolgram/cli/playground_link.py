"""Make a link that opens an output in the playground: `toolgram try --link`.

Strategy: the link's fragment is the state of the page, as `playground/state.mjs` reads it: JSON, compressed, in base64.
A browser never sends the fragment, so the output stays on the machine of the person who opens the link.
"""

from __future__ import annotations

import base64
import json
import os
import zlib
from typing import Any

ADDRESS = "TOOLGRAM_PLAYGROUND"  # the environment variable with the address of a playground
BUILT_HERE = "http://127.0.0.1:8000/playground/"  # after `make site` and `python -m http.server --directory site`
_RAW = -15  # the window of zlib for a stream without a header


def playground_link(output: str, format_name: str, tools: Any, prefix: str | None, expected: Any) -> str:
    """Return the link for an output, the format that read it, tools, prompt, and the message."""
    state = {
        "format": format_name,
        "output": output,
        "tools": json.dumps(tools, ensure_ascii=False, indent=2) if tools is not None else "",
        "prefix": prefix,
        "expected": json.dumps(expected, ensure_ascii=False, indent=2),
        "view": "why",
    }
    packer = zlib.compressobj(9, zlib.DEFLATED, _RAW)
    packed = packer.compress(json.dumps(state, ensure_ascii=False).encode()) + packer.flush()
    return f"{os.environ.get(ADDRESS, BUILT_HERE)}#{base64.urlsafe_b64encode(packed).decode().rstrip('=')}"
