"""SGLang's own parser classes with toolgram inside: no GPU, no model, no download.

    make test-sglang                                   # builds .venv-sglang, once
    .venv-sglang/bin/python examples/sglang_parsers.py

What a server would stream to a client is printed piece by piece. The model is a text; the classes that drive the
plug-in, and the loading of plug-ins, are SGLang's. With a server of your own, only the flags matter:

    sglang serve --model-path MODEL --tool-call-parser toolgram --reasoning-parser toolgram
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.integrations import sglang_server  # noqa: F401  # torchvision on a machine without CUDA

from sglang.srt.entrypoints.openai.protocol import Tool  # isort: skip
from sglang.srt.function_call.function_call_parser import FunctionCallParser  # isort: skip
from sglang.srt.parser.reasoning_parser import ReasoningParser  # isort: skip
from sglang.srt.plugins import load_plugins  # isort: skip

TEXT = (
    "<think>They want the weather.</think>Looking.\n"
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Zürich"}}\n</tool_call>\nOne moment.'
)
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
FUNCTION = {"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}


def main() -> None:
    load_plugins()
    thoughts = ReasoningParser("toolgram_hermes", tool_call_parser_active=True)
    calls = FunctionCallParser([Tool.model_validate(FUNCTION)], "toolgram_hermes")
    for piece in [*(TEXT[at : at + 12] for at in range(0, len(TEXT), 12)), None]:
        thought, rest = thoughts.parse_stream_end() if piece is None else thoughts.parse_stream_chunk(piece)
        content, items = calls.parse_stream_chunk(rest)
        if piece is None:
            more, last = calls.parse_stream_end()
            content, items = content + more, [*items, *last]
        print(repr(piece), "->", {"reasoning": thought, "content": content, "calls": items})


if __name__ == "__main__":
    main()
