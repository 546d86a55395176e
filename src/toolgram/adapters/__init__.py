"""What toolgram reads, in the shapes that clients read: OpenAI chat, OpenAI Responses, Anthropic messages, LangChain.

    turn = adapters.ChatChunks(model="my-model")
    for chunk in turn.start(): ...
    for delta in stream:
        for chunk in turn.feed(parser.feed(delta)): ...
    for chunk in turn.end(parser.close("stop"), "stop"): ...

Strategy: an adapter takes events and gives dictionaries, and `sse` makes lines of them. Nothing here opens a
connection, and nothing here needs the package of the API: tests check every dictionary against the models of the
official clients, and let their accumulators put the streams together again.

**Calls that fail.** A call that was streamed cannot be taken back. With `calls="streamed"` its arguments simply stay
unfinished, the finish reason is never that of a call, and what follows is text. With `calls="whole"` a call is
sent when it is complete, and a failed one is text. That costs the streaming of arguments, and nobody can take a call
that was cut off for a whole one.
"""

from toolgram.adapters.anthropic_messages import MessageEvents, to_anthropic_message
from toolgram.adapters.chat import ChatChunks, to_chat_completion, to_chat_message
from toolgram.adapters.reading import CompletionTexts, evidence_in
from toolgram.adapters.responses import ResponseEvents, to_response
from toolgram.adapters.shaping import FailedCall, Shaping
from toolgram.adapters.usage import Usage
from toolgram.adapters.writing import CHAT_DONE, sse

__all__ = [
    "CHAT_DONE",
    "ChatChunks",
    "CompletionTexts",
    "FailedCall",
    "MessageEvents",
    "ResponseEvents",
    "Shaping",
    "Usage",
    "evidence_in",
    "sse",
    "to_anthropic_message",
    "to_chat_completion",
    "to_chat_message",
    "to_response",
]
