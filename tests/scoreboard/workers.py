"""One peer in a process of its own: cases as JSON lines in, what the peer reads in each as JSON lines out.

Strategy: a worker imports nothing of this project but, for toolgram, the package itself, so that each runs in the
environment of its peer.  A case is read by the call that the peer has for whole outputs, and by the one that it has for
streams, with deltas of two sizes; a marker of the format is never cut, since a tokenizer has it as one token.  What a
peer raises is an answer.  A parser that cannot be made (a tokenizer that it needs, say) is no answer.

    python -m tests.scoreboard.workers PEER < cases > answers
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import version
from typing import Any, TypeAlias

SECONDS = 20  # for one case
SIZES = (4, 17)  # characters of a delta
Said: TypeAlias = dict[str, Any]
Read: TypeAlias = Callable[[list[str] | None], Said]  # the deltas, or None for the whole text


class CannotBeMade(Exception):
    """The peer has no parser for the case, or not with what stands in for a tokenizer."""


def said(content: str | None, reasoning: str | None, calls: list[tuple[str | None, Any]]) -> Said:
    """What a peer has read."""
    return {"content": content or "", "reasoning": reasoning or "", "calls": [list(call) for call in calls]}


def cut(text: str, size: int, whole: list[str]) -> list[str]:
    """Deltas of so many characters, none of which ends inside one of the `whole` markers."""
    deltas, begin = [], 0
    while begin < len(text):
        end = min(len(text), begin + size)
        for marker in whole:
            at = text.find(marker, max(0, end - len(marker) + 1), end + len(marker) - 1)
            if 0 <= at < end < at + len(marker):
                end = at if at > begin else at + len(marker)
        deltas.append(text[begin:end])
        begin = end
    return deltas


# --- toolgram -----------------------------------------------------------------------------------------------------


def toolgram(case: dict[str, Any]) -> Read:
    """The shipped format, with the prompt."""
    package = import_module("toolgram")
    fmt = package.get_format(case["format"])

    def read(deltas: list[str] | None) -> Said:
        if deltas is None:
            message = fmt.parse(case["text"], case["tools"], case["prompt"])
        else:
            parser = fmt.parser(case["tools"], case["prompt"])
            for delta in deltas:
                parser.feed(delta)
            parser.close()
            message = parser.message
        calls = [(call.name, call.arguments) for call in message.tool_calls if call.status == "complete"]
        return said(message.content, message.reasoning, calls)

    return read


# --- vLLM ---------------------------------------------------------------------------------------------------------


def vllm(case: dict[str, Any]) -> Read:
    """The parser that vLLM's server makes of the names that a user gives it."""
    from benchmarks.contenders.vllm import Tokenizer

    if not any(case["vllm"]):
        raise CannotBeMade("vLLM has no parser of the format")
    manager: Any = import_module("vllm.parser").ParserManager
    protocol: Any = import_module("vllm.entrypoints.openai.chat_completion.protocol")
    tokenizer = Tokenizer(tuple(each for each in case["markers"] if each not in ("<s>", "</s>")))
    tool, reasoning = case["vllm"]
    try:
        parser_class = manager.get_parser(
            tool_parser_name=tool,
            reasoning_parser_name=reasoning,
            enable_auto_tools=bool(tool),
            model_name="model",
            tokenizer=tokenizer,
        )
        request = protocol.ChatCompletionRequest(
            model="model",
            messages=[{"role": "user", "content": "Go."}],
            tools=case["tools"] if tool else None,
            tool_choice="auto" if tool and case["tools"] else "none",
            stream=True,
        )
        options: dict[str, Any] = {"chat_template_kwargs": case["switches"], "model_config": None}
        request = parser_class(tokenizer, request.tools, **options).adjust_request(request)
    except Exception as error:
        raise CannotBeMade(f"{type(error).__name__}: {error}") from error
    prompt = tokenizer.encode(case["prompt"] or "Go.")

    def read(deltas: list[str] | None) -> Said:
        parser = parser_class(tokenizer, request.tools, **options)
        if deltas is None:
            ids = tokenizer.encode(case["text"])
            parser.set_prompt_token_ids(prompt)
            thought, content, calls = parser.parse(case["text"], request, bool(tool), ids)
            return said(content, thought, [(call.name, call.arguments) for call in calls or []])
        heard = Heard()
        for at, delta in enumerate(deltas):
            finished = at == len(deltas) - 1
            message = parser.parse_delta(delta, tokenizer.encode(delta), request, prompt, finished=finished)
            if message is not None:
                heard.text(message.content, message.reasoning)
                for call in message.tool_calls or []:
                    heard.call(call.index, call.function.name, call.function.arguments)
        return heard.said()

    return read


class Heard:
    """The deltas of a stream, added up as a client does."""

    def __init__(self) -> None:
        self.content: list[str] = []
        self.reasoning: list[str] = []
        self.calls: dict[int, list[str]] = {}

    def text(self, content: str | None, reasoning: str | None = None) -> None:
        """More of either."""
        self.content.append(content or "")
        self.reasoning.append(reasoning or "")

    def call(self, index: int, name: str | None, arguments: str | None) -> None:
        """More of a call."""
        known = self.calls.setdefault(index, ["", ""])
        known[0] += name or ""
        known[1] += arguments or ""

    def said(self) -> Said:
        """All of it."""
        calls: list[tuple[str | None, Any]] = [(name, text) for _, (name, text) in sorted(self.calls.items())]
        return said("".join(self.content), "".join(self.reasoning), calls)


# --- SGLang -------------------------------------------------------------------------------------------------------


def sglang(case: dict[str, Any]) -> Read:
    """The reasoning parser, and behind it the parser of calls, as SGLang's server has them."""
    if "sglang" not in sys.modules:
        import_module("benchmarks.contenders.sglang").stand_in()
    if not any(case["sglang"]):
        raise CannotBeMade("SGLang has no parser of the format")
    calls_of: Any = import_module("sglang.srt.function_call.function_call_parser").FunctionCallParser
    thoughts_of: Any = import_module("sglang.srt.parser.reasoning_parser").ReasoningParser
    tool_class: Any = import_module("sglang.srt.entrypoints.openai.protocol").Tool
    tool, reasoning = case["sglang"]

    def make() -> tuple[Any, Any]:
        thoughts = None
        if reasoning:
            forced = True if case["opened"] else None
            thoughts = thoughts_of(
                reasoning, stream_reasoning=True, force_reasoning=forced, tool_call_parser_active=bool(tool)
            )
        return thoughts, calls_of(tools, tool) if tool else None

    try:
        tools = [tool_class(**each) for each in case["tools"] or []]
        make()
    except Exception as error:
        raise CannotBeMade(f"{type(error).__name__}: {error}") from error

    def read(deltas: list[str] | None) -> Said:
        thoughts, calls = make()
        if deltas is None:
            thought, text = thoughts.parse_non_stream(case["text"]) if thoughts else ("", case["text"])
            found = []
            if calls is not None and calls.has_tool_call(text or ""):
                text, found = calls.parse_non_stream(text)
            return said(text, thought, [(each.name, each.parameters) for each in found])
        heard = Heard()
        for delta in [*deltas, None]:
            thought, text = "", delta
            if thoughts is not None:
                thought, text = thoughts.parse_stream_end() if delta is None else thoughts.parse_stream_chunk(delta)
            heard.text("", thought)
            for last in (False, True) if delta is None else (False,):
                if calls is None:
                    heard.text("" if last else text)
                elif last or text:
                    more, found = calls.parse_stream_end() if last else calls.parse_stream_chunk(text)
                    heard.text(more)
                    for each in found:
                        heard.call(each.tool_index, each.name, each.parameters)
        return heard.said()

    return read


# --- transformers -------------------------------------------------------------------------------------------------


def transformers(case: dict[str, Any]) -> Read:
    """transformers' parser, with the response template that stands for the format."""
    if case["response_template"] is None:
        raise CannotBeMade("there is no response template of the format")
    parsing: Any = import_module("transformers.utils.chat_parsing")
    loading: Any = import_module("transformers.utils.chat_parsing.response_templates")
    try:
        template = loading.load_response_template(case["response_template"])
    except Exception as error:
        raise CannotBeMade(f"{type(error).__name__}: {error}") from error

    def read(deltas: list[str] | None) -> Said:
        parser = parsing.ResponseParser(template, prefix=case["prompt"] or "", tools=case["tools"])
        for delta in deltas or [case["text"]]:
            parser.feed(delta)
        message, _ = parser.finalize()
        functions = [call["function"] for call in message.get("tool_calls") or []]
        calls: list[tuple[str | None, Any]] = [(each.get("name"), each.get("arguments")) for each in functions]
        thought = message.get("thinking") or message.get("reasoning_content")
        return said(message.get("content"), thought, calls)

    return read


# --- the process --------------------------------------------------------------------------------------------------

PEERS: dict[str, Callable[[dict[str, Any]], Read]] = {
    "toolgram": toolgram,
    "vllm": vllm,
    "sglang": sglang,
    "transformers": transformers,
}


def answers(peer: str, lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """The answer to every case."""
    for line in lines:
        case = json.loads(line)
        try:
            read = PEERS[peer](case)
        except CannotBeMade as error:
            yield {"id": case["id"], "none": str(error)[:300]}
            continue
        deltas = [None, *(cut(case["text"], size, case["markers"]) for size in case.get("sizes", SIZES))]
        yield {"id": case["id"], "runs": [_guarded(read, each) for each in deltas]}


def _guarded(read: Read, deltas: list[str] | None) -> Said:
    """What a peer reads, or what it raises; within some time."""
    signal.alarm(SECONDS)
    try:
        return read(deltas)
    except Exception as error:
        return {"raised": f"{type(error).__name__}: {error}"[:300]}
    finally:
        signal.alarm(0)


def _late(*_: Any) -> None:
    raise TimeoutError(f"more than {SECONDS} seconds")


def main() -> None:
    """Read cases until there are no more. The first answer is the version; a peer that is not here exits with 3."""
    peer = sys.argv[1]
    os.environ["VLLM_LOGGING_LEVEL"] = "CRITICAL"
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a peer prints is no answer
    signal.signal(signal.SIGALRM, _late)
    try:
        number = version(peer)
    except ImportError:
        print(f"{peer} is not installed here", file=sys.stderr)
        sys.exit(3)
    print(json.dumps({"version": number}), file=out, flush=True)
    for answer in answers(peer, iter(sys.stdin)):
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
