"""The one table of readers: the name that a stream knows a reader by, and the function that takes the next characters.

A reader is called with the stream, the text, where to begin and whether nothing follows (`final`); it returns the new
position, or WAIT when it has put the rest of the text into the stream's buffer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from toolgram.runtime.argument_readers import read_object, read_string, read_unclosed_arguments
from toolgram.runtime.envelope_reader import ENVELOPE_READERS
from toolgram.runtime.python_readers import read_python
from toolgram.runtime.recovery_readers import read_malformed, read_rejected_json, read_rejected_rest
from toolgram.runtime.repaired_readers import read_repaired, read_transcoded
from toolgram.runtime.stream import Stream
from toolgram.runtime.text_readers import read_text, read_token
from toolgram.runtime.value_readers import read_value

Reader: TypeAlias = Callable[[Stream, str, int, bool], int]

READERS: dict[str, Reader] = {
    "text": read_text,
    "token": read_token,
    "object": read_object,
    "unclosed_arguments": read_unclosed_arguments,
    "python": read_python,
    "string": read_string,
    "value": read_value,
    "transcoded": read_transcoded,
    "repaired": read_repaired,
    **ENVELOPE_READERS,
    "rejected_json": read_rejected_json,
    "rejected_rest": read_rejected_rest,
    "malformed": read_malformed,
}


def read(stream: Stream, text: str, pos: int, final: bool) -> None:
    """Have the readers read the text from `pos` on, up to its end or to what has to wait for more."""
    end = len(text)
    while 0 <= pos < end:
        pos = READERS[stream.reader](stream, text, pos, final)
