"""toolgram: what a language model says, as typed events.

fmt = toolgram.get_format("mistral_v11")
parser = fmt.parser()
for delta in stream:
    for event in parser.feed(delta):
        ...
parser.close()
parser.message
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from toolgram.anomalies import Anomaly
from toolgram.call_ids import random_call_ids
from toolgram.errors import FormatError, ToolgramError, UnknownFormat
from toolgram.events import (
    Content,
    Dropped,
    Event,
    Malformed,
    Reasoning,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from toolgram.formats import Format, format_names, get_format, load_format
from toolgram.late_imports import install_line, late_import

if TYPE_CHECKING:
    from toolgram.derive.deriving import derive_format
    from toolgram.derive.sources import from_gguf, from_pretrained_files, from_tokenizer
    from toolgram.message import MalformedCall, Message, ToolCall
    from toolgram.runtime.parser import Parser
    from toolgram.tools.reading import tool_schemas
    from toolgram.wrapping import wrap

__version__ = "0.2.0"


# What is imported when it is asked for, so that a process loads what it uses.
_WITH_A_PARSER = {
    "MalformedCall": "toolgram.message",
    "Message": "toolgram.message",
    "Parser": "toolgram.runtime.parser",
    "ToolCall": "toolgram.message",
    "tool_schemas": "toolgram.tools.reading",
}
_DERIVING = ("derive_format", "from_gguf", "from_pretrained_files", "from_tokenizer")  # which need jinja2


def __getattr__(name: str) -> Any:
    if name in _WITH_A_PARSER:
        return getattr(import_module(_WITH_A_PARSER[name]), name)
    if name == "wrap":
        return late_import(name)
    if name in _DERIVING:
        try:
            return late_import(name)
        except ModuleNotFoundError as error:
            if error.name != "jinja2":
                raise
            return _no_derive_format
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _no_derive_format(*args: Any, **kwargs: Any) -> Any:
    """Raise ToolgramError: jinja2 is not installed."""
    raise ToolgramError(f"derive_format needs jinja2, which is not installed: {install_line('jinja2')}")


__all__ = [
    "Anomaly",
    "Content",
    "Dropped",
    "Event",
    "Format",
    "FormatError",
    "Malformed",
    "MalformedCall",
    "Message",
    "Parser",
    "Reasoning",
    "ToolCall",
    "ToolCallDelta",
    "ToolCallEnd",
    "ToolCallStart",
    "ToolgramError",
    "UnknownFormat",
    "derive_format",
    "format_names",
    "from_gguf",
    "from_pretrained_files",
    "from_tokenizer",
    "get_format",
    "load_format",
    "random_call_ids",
    "tool_schemas",
    "wrap",
]
