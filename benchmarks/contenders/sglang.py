"""SGLang's detectors, without SGLang: its packages import the whole server, its detectors do not need it.

The packages on the way to the detectors are replaced by bare modules that only know their directory, and `sglang.utils`
by one whose every name is a function that does nothing.  Detectors, protocol classes and helpers are SGLang's own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import files
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.contenders import Contender, Heard, Prepared, Stream, as_they_are
from benchmarks.workloads import Workload

PACKAGES = (
    "sglang",
    "sglang.srt",
    "sglang.srt.entrypoints",
    "sglang.srt.entrypoints.openai",
    "sglang.srt.function_call",
    "sglang.srt.parser",
    "sglang.srt.utils",
)
DETECTORS = {
    "mistral_v11": "mistral",
    "mistral_v3": "mistral",
    "llama3_json": "llama3",
    "llama4_pythonic": "pythonic",
}


class Silent(ModuleType):
    """Has every function; none does anything."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *arguments, **options: None


def stand_in() -> None:
    """Puts the bare packages into `sys.modules`."""
    home = next(Path(str(file.locate())).parent for file in files("sglang") or () if str(file) == "sglang/__init__.py")
    for name in PACKAGES:
        package = ModuleType(name)
        package.__path__ = [str(home.parent.joinpath(*name.split(".")))]
        sys.modules[name] = package
    sys.modules["sglang.utils"] = Silent("sglang.utils")


def hear(results: list[Any]) -> Heard:
    """Pairs of text and pieces of calls, added up."""
    heard = Heard()
    for text, calls in results:
        heard.content += text
        for call in calls:
            heard.call(call.tool_index, call.name, call.parameters)
    return heard


def load(name: str) -> Contender:
    """Imports the detectors."""
    stand_in()
    parser_class = import_module("sglang.srt.function_call.function_call_parser").FunctionCallParser
    tool_class: Any = import_module("sglang.srt.entrypoints.openai.protocol").Tool

    def prepare(workload: Workload, written_as: str) -> Prepared:
        tools = [tool_class(**tool) for tool in workload.tools]
        detector = DETECTORS[written_as]

        def open_stream() -> Stream:
            parser = parser_class(tools, detector)
            return parser.parse_stream_chunk, parser.parse_stream_end

        return Prepared(open_stream, as_they_are, hear)

    return prepare
