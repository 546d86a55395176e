"""Answer requests with SGLang's parsers: first that of reasoning, then that of calls, as its server has them.

The packages around the parsers import a whole server that they do not need; bare modules are in their place.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.metadata import files
from pathlib import Path
from types import ModuleType
from typing import Any

from protocol import Answer, Heard, Skip, answer, load, serve
from stand_in import Silent, deltas_of, thinks

FAMILIES = load("parsers")
PACKAGES = (
    "",
    ".srt",
    ".srt.entrypoints",
    ".srt.entrypoints.openai",
    ".srt.function_call",
    ".srt.parser",
    ".srt.utils",
)


def stand_in() -> None:
    """Put the bare packages in their places."""
    home = next(Path(str(file.locate())).parent for file in files("sglang") or () if str(file) == "sglang/__init__.py")
    for name in PACKAGES:
        package = ModuleType(f"sglang{name}")
        package.__path__ = [str(home.joinpath(*name.split(".")))]
        sys.modules[f"sglang{name}"] = package
    sys.modules["sglang.utils"] = Silent("sglang.utils")


def read(asked: dict[str, Any]) -> Answer:
    """Return the message of a request: whole, or its deltas as a server streams them."""
    tool, reasoning = FAMILIES.get(asked["family"], {}).get("sglang", (None, None))
    if not tool:
        raise Skip("SGLang has no parser of calls for this family")
    tools = [TOOL(**each) for each in asked.get("tools") or ()]
    calls: Any = CALLS(tools, tool) if tools else None
    about, thoughts = FAMILIES[asked["family"]], None
    if reasoning and thinks(asked, about["thoughts"]):
        begun = (asked.get("prompt") or "").rstrip().endswith(tuple(about["thoughts"])) or None
        options = {"stream_reasoning": True, "force_reasoning": begun, "tool_call_parser_active": bool(tools)}
        thoughts = THOUGHTS(reasoning, **options)
    heard = Heard()
    deltas = deltas_of(asked, about["markers"])
    if len(deltas) == 1:  # as for a request that does not stream
        thought, text = thoughts.parse_non_stream(deltas[0]) if thoughts else ("", deltas[0])
        is_call = calls is not None and calls.has_tool_call(text or "")
        text, found = calls.parse_non_stream(text) if is_call else (text, [])
        return answer(text, thought, [(each.name, each.parameters) for each in found])
    for delta in [*deltas, None]:
        thought, text = "", delta
        if thoughts is not None:
            thought, text = thoughts.parse_stream_end() if delta is None else thoughts.parse_stream_chunk(text)
        heard.reasoning += thought or ""
        for last in (False, True) if delta is None else (False,):
            if calls is None:
                heard.content += "" if last else text or ""
            elif last or text:
                more, found = calls.parse_stream_end() if last else calls.parse_stream_chunk(text)
                heard.content += more or ""
                for each in found:
                    heard.call(each.tool_index, each.name, each.parameters)
    return heard.answer()


if __name__ == "__main__":
    stand_in()
    CALLS: Any = import_module("sglang.srt.function_call.function_call_parser").FunctionCallParser
    THOUGHTS: Any = import_module("sglang.srt.parser.reasoning_parser").ReasoningParser
    TOOL: Any = import_module("sglang.srt.entrypoints.openai.protocol").Tool
    serve("sglang", read)
