"""The cost of the plug-in inside vLLM's real serving layer: microseconds per delta, compared with parsers that do
nothing.

    make bench-vllm

The workload is a call of `write_file(path, content)` with 250 to 64 000 characters of content, in deltas of four
characters, through vLLM's `ChatStreamProcessor`. Two third-party, engine-based parsers that read nothing are measured
too: one forwards each delta as content, the other as arguments of a call, which is the message that a call needs. The
ratio is to the second one. Runs are interleaved, and the fastest time of each delta counts, so that other load on the
machine does not.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Sequence
from typing import Any

import toolgram
from tests.integrations.cases import TOOLS
from tests.integrations.tokenizers_for_tests import Pieces
from tests.integrations.vllm_driver import ChatStreamProcessor, Server, grouped
from tests.integrations.writers import WRITERS, Turn

LENGTHS = (250, 1_000, 4_000, 16_000, 64_000)
QUICK_LENGTHS = (250, 1_000, 4_000)
TARGET = 1.3
LINE = "    total = add(first, second)  # {so} it goes\n"


def register_idle() -> None:
    """Register the two parsers that do nothing, as "idle_text" and "idle_call"."""
    from toolgram.integrations.vllm_surface import (
        DeltaFunctionCall,
        DeltaMessage,
        DeltaToolCall,
        ToolParser,
        ToolParserManager,
    )

    class IdleText(ToolParser):  # type: ignore[misc]
        engine_based_streaming = True
        supports_required_and_named = False

        def extract_tool_calls_streaming(self, before: str, now: str, delta_text: str, *rest: Any) -> Any:
            return DeltaMessage(content=delta_text)

        def finish_streaming(self) -> None:
            return None

    class IdleCall(IdleText):
        def extract_tool_calls_streaming(self, before: str, now: str, delta_text: str, *rest: Any) -> Any:
            function = DeltaFunctionCall(arguments=delta_text)
            return DeltaMessage(tool_calls=[DeltaToolCall(index=0, function=function)])

    for name, kind in (("idle_text", IdleText), ("idle_call", IdleCall)):
        ToolParserManager.register_module(name, module=kind)


class Measured:
    """One configuration of a server, and the answer that it streams."""

    def __init__(self, tokenizer: Any, ids: Sequence[int], tools: str, reasoning: str | None) -> None:
        self.server = Server(tokenizer, tools, reasoning)
        self.request = self.server.adjusted(self.server.request(TOOLS, stream=True), [0])
        texts = [tokenizer.decode([number]) for number in ids]
        self.deltas = grouped(texts, list(ids), 1, tokenizer.eos_token_id)
        self.fastest = [float("inf")] * len(self.deltas)  # seconds, of each delta

    @property
    def mean(self) -> float:
        """Microseconds per delta."""
        return sum(self.fastest) / len(self.fastest) * 1e6

    @property
    def worst(self) -> float:
        """Milliseconds of the slowest delta."""
        return max(self.fastest) * 1e3

    def run(self) -> None:
        """One answer."""
        kind, clock = self.server.parser_cls, time.perf_counter
        parser = kind(self.server.tokenizer, self.request.tools, chat_template_kwargs={}, model_config=None)
        step = ChatStreamProcessor(self.request, parser, enable_auto_tools=True, parser_cls=kind).step
        times = []
        for delta in self.deltas:
            begun = clock()
            step(delta.text, delta.ids, "stop" if delta.last else None, [0])
            times.append(clock() - begun)
        self.fastest = [min(pair) for pair in zip(self.fastest, times, strict=True)]


def measure(name: str, length: int, runs: int) -> dict[str, Measured]:
    """The four of one format and length."""
    tokenizer = Pieces(list(toolgram.get_format(name).program.special.values()), size=4)
    content = (LINE * (length // len(LINE) + 1))[:length]
    text = WRITERS[name](Turn("", calls=(("write_file", {"path": "/tmp/a.py", "content": content}),)))
    read = toolgram.get_format(name).parse(text, TOOLS, "")
    assert [call.status for call in read.tool_calls] == ["complete"], f"{name}: {read}"
    ids = tokenizer.encode(text)
    ours = f"toolgram_{name}"
    found = {
        "idle_text": Measured(tokenizer, ids, "idle_text", None),
        "idle_call": Measured(tokenizer, ids, "idle_call", None),
        "tools": Measured(tokenizer, ids, ours, None),
        "pair": Measured(tokenizer, ids, ours, ours),
    }
    gc.collect()
    gc.disable()
    try:
        for _ in range(runs):
            for each in found.values():
                each.run()
    finally:
        gc.enable()
    return found


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("formats", nargs="*", help="these; all that ship, without one")
    options.add_argument("--quick", action="store_true", help="up to 4 000 characters")
    given = options.parse_args()
    quick, names = given.quick, given.formats or [name for name in toolgram.format_names() if name in WRITERS]
    register_idle()
    print("us per delta through vLLM's ChatStreamProcessor; deltas of 4 characters\n")
    print(
        "| format | characters | idle, text | idle, call | toolgram, tools | toolgram, pair | ratio | worst delta, ms |"
    )
    print("|---|---|---|---|---|---|---|---|")
    ratios = []
    for name in names:
        for length in QUICK_LENGTHS if quick else LENGTHS:
            found = measure(name, length, 200 if length <= 1_000 else 15 if length <= 4_000 else 5)
            ratio = max(found["tools"].mean, found["pair"].mean) / found["idle_call"].mean
            ratios.append(ratio)
            cells = [f"{each.mean:.1f}" for each in found.values()]
            print(f"| {name} | {length} | {' | '.join(cells)} | {ratio:.2f} | {found['pair'].worst:.2f} |")
    print(f"\nworst ratio {max(ratios):.2f}, wanted at most {TARGET}")


if __name__ == "__main__":
    main()
