"""What could have followed where a candidate was rejected: as the state says, or closer, inside an island."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolgram.islands.json_envelope import Envelope
from toolgram.islands.json_values import COLON

if TYPE_CHECKING:
    from toolgram.runtime.stream import Stream


def expected(stream: Stream) -> str:
    """Asked for only by a trace, before anything is released."""
    state, island = stream.state, stream.island
    envelope = island if isinstance(island, Envelope) else None
    if stream.source.unconfirmed:
        if stream.reader == "python":
            return "expected arguments as name=value, each value a Python literal"
        in_string = stream.reader == "string" or (envelope is not None and envelope.string is not None)
        return "expected an object in the string" if in_string else "expected a key in double quotes, or '}'"
    in_key = envelope is not None and (envelope.scanner.in_key or envelope.scanner.state == COLON)
    if envelope is not None and in_key and envelope.parents and not state.any_key:
        keys = [path.rpartition(".")[2] for path in state.key_paths if path.rpartition(".")[0] == envelope.parents[-1]]
        if keys:
            return f"a call has only these keys here: {', '.join(dict.fromkeys(keys))}"
    return state.why
