"""Answer requests of gpt-oss with openai-harmony's streaming parser, or oss-harmony's, which has its vocabulary inside.

It takes tokens, so that all deltas are one text here. A call is complete if its message was closed.
"""

from __future__ import annotations

from typing import Any

from protocol import Answer, Skip, serve


def read(asked: dict[str, Any]) -> Answer:
    """Return the message of a request."""
    if asked["family"] != "gpt_oss":
        raise Skip("harmony is the notation of gpt-oss")
    parser = harmony.StreamableParser(ENCODING, harmony.Role.ASSISTANT, strict=False)
    for token in ENCODING.encode("".join(delta["text"] for delta in asked["deltas"]), allowed_special="all"):
        parser.process(token)
    open_message = parser.current_recipient
    parser.process_eos()
    texts: dict[str, list[str]] = {"content": [], "reasoning": []}
    calls = []
    for message in parser.messages:
        text = "".join(part.text for part in message.content)
        if message.recipient:
            name = message.recipient.removeprefix("functions.")
            calls.append({"name": name, "arguments": text, "status": "complete"})
        else:
            texts["reasoning" if message.channel == "analysis" else "content"].append(text)
    if calls and open_message and asked["finish_reason"] not in ("stop", "tool_calls"):
        calls[-1]["status"] = "truncated"
    return {**{key: " ".join(parts) or None for key, parts in texts.items()}, "calls": calls}


if __name__ == "__main__":
    import openai_harmony as harmony

    ENCODING = harmony.load_harmony_encoding(harmony.HarmonyEncodingName.HARMONY_GPT_OSS)
    serve("oss-harmony", read)
