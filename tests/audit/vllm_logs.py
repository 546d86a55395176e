"""What vLLM's own parsers return, as logs, and the audit of them.

    python -m tests.audit.vllm_logs [--write docs/guides/audit.md] [--html FOLDER]

Each text goes through vLLM's real serving layer (`tests/integrations/vllm_driver.py`), whole and streamed by token. The
answer becomes a row in the shape of a chat completion, with the text of the model in `raw`. Texts are outputs of real
models from `../shared`, and the made cases of `tests/integrations/cases.py`, whose meaning is known. Imports vLLM.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import toolgram
from tests.certain.rows import SHARED
from tests.integrations.cases import TOOLS, cases, meant
from tests.integrations.tokenizers_for_tests import llama3, mistral
from tests.integrations.vllm_driver import Server, marked
from tests.integrations.vllm_heard import Heard
from tests.page_parts import write_part
from toolgram.audit import Audit, audit
from toolgram.audit.comparing import KINDS
from toolgram.audit.page import page

# The parsers that vLLM has for a format: for tools, for reasoning, and the tokenizer to try them with.
THEIRS = {
    "mistral_v11": ("mistral", "mistral", "tekken_v13"), "mistral_v3": ("mistral", None, "tekken_v3"),
    "hermes": ("hermes", "qwen3", "llama3"), "qwen3_coder": ("qwen3_coder", "qwen3", "llama3"),
    "llama3_json": ("llama3_json", None, "llama3"), "llama4_pythonic": ("llama4_pythonic", None, "llama3"),
    "lfm2": ("lfm2", "qwen3", "llama3"), "granite_3": ("granite", "granite_thinking_parser", "llama3"),
}  # fmt: skip
BEGIN, END = "<!-- table: written by `make audit-vllm` -->", "<!-- end of table -->"
WHOLE_ANSWER = "whole"
WAYS: tuple[int | str, ...] = (WHOLE_ANSWER, 1)
REAL = SHARED / "data" / "real-outputs"
# The recorded outputs that a parser of vLLM's is for, with the format whose markers its tokenizer has.
RECORDED = {"hermes": "hermes", "pythonic": "llama4_pythonic", "granite_20b_fc": "granite_20b_fc"}
PARSERS = {"hermes": "hermes", "pythonic": "pythonic", "granite_20b_fc": "granite-20b-fc"}


@dataclass
class Trial:
    """A case as tokens, and what it means."""

    label: str
    ids: list[int]
    prompt: list[int]
    finish: str = "stop"
    reasoning: str | None = None
    calls: list[tuple[str, str, str]] = field(default_factory=list)
    text: str = ""
    prefix: str = ""  # what the prompt has begun


class Logged(NamedTuple):
    """A row of a log, and the case that it is an answer to."""

    row: dict[str, Any]
    trial: Trial
    heard: Heard


class Marked:
    """A tokenizer with a format's markers as its tokens."""

    def __init__(self, name: str, kind: str, scratch: Path) -> None:
        self.specials = list(toolgram.get_format(name).program.special.values())
        spelled = [text for text in self.specials if text.startswith("<")]
        self.tokenizer = mistral(kind, scratch) if kind != "llama3" else llama3(added=spelled)
        vocabulary = self.tokenizer.get_vocab()
        self.known = [text for text in self.specials if text in vocabulary]

    def encode(self, text: str) -> list[int]:
        """The ids of a text, every marker as its token."""
        return marked(self.tokenizer, text, self.known)


def trials(name: str, written: Marked) -> Iterator[Trial]:
    """Yield the cases of a format."""
    prompt = [*written.tokenizer.encode("Hi", add_special_tokens=False), written.tokenizer.eos_token_id]
    for case in cases(name):
        if any(text in case.text + case.prefix for text in written.specials if text not in written.known):
            continue
        if "its own example" in case.label:
            continue  # where a marker is cut off, what is left of it is a matter of taste
        message = meant(case)
        calls = [(call.name, call.arguments, str(call.status)) for call in message.tool_calls]
        ids, whole = written.encode(case.text), [*prompt, *written.encode(case.prefix)]
        yield Trial(case.label, ids, whole, case.finish, message.reasoning, calls, case.text, case.prefix)


def hear(server: Server, trial: Trial, way: int | str) -> Heard:
    """The answer in one message or in groups of tokens; an exception is what is heard, too."""
    end = server.tokenizer.eos_token_id if trial.finish == "stop" else None
    limit = {"max_tokens": len(trial.ids)} if trial.finish == "length" else {}
    request = server.request(TOOLS, stream=way != WHOLE_ANSWER, **limit)
    try:
        if isinstance(way, str):
            return server.whole(trial.ids, request, trial.prompt, trial.finish, end)
        return server.stream(trial.ids, request, way, trial.prompt, trial.finish, end)
    except Exception as error:
        return Heard(error=type(error).__name__)


def made(name: str, scratch: Path, parsers: tuple[str, str] | None = None) -> Iterator[Logged]:
    """Yield the rows of a format's cases, from vLLM's parsers for it, or from others."""
    tools, reasoning, kind = (*(parsers or THEIRS[name][:2]), THEIRS[name][2])
    written = Marked(name, kind, scratch)
    thinking = Server(written.tokenizer, tools, reasoning)
    plain = thinking if parsers is not None else Server(written.tokenizer, tools, None)
    for trial in trials(name, written):
        server = thinking if trial.reasoning else plain
        for way in WAYS:
            heard = hear(server, trial, way)
            row = _row(f"{name}, made", trial, way, heard)
            yield Logged({**row, "request": {"tools": TOOLS}, "prefix": trial.prefix}, trial, heard)


def recorded(file: str, scratch: Path) -> Iterator[Logged]:
    """Yield the rows of recorded outputs, from vLLM's parser for them. Which tools were declared was not recorded."""
    written = Marked(RECORDED[file], "llama3", scratch)
    server = Server(written.tokenizer, PARSERS[file], None)
    for line in (REAL / f"{file}.jsonl").read_text(encoding="utf-8").splitlines():
        said = json.loads(line)
        prompt = [written.tokenizer.eos_token_id]
        trial = Trial(said["id"], written.encode(said["output"]), prompt, text=said["output"])
        for way in WAYS:
            heard = hear(server, trial, way)
            yield Logged(_row(said["model"], trial, way, heard), trial, heard)


def _row(model: str, trial: Trial, way: int | str, heard: Heard) -> dict[str, Any]:
    calls = [
        {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id, (name, arguments) in zip(heard.ids, heard.calls, strict=True)
    ]
    message = {"role": "assistant", "content": heard.content, "reasoning": heard.reasoning, "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": heard.finish_reason}
    how = "whole" if way == WHOLE_ANSWER else "streamed"
    return {"model": f"{model} ({how})", "id": trial.label, "raw": trial.text, "response": {"choices": [choice]}}


def write(path: Path, rows: Sequence[Logged]) -> str:
    """Write a log, and return its path."""
    path.write_text("".join(json.dumps(each.row) + "\n" for each in rows), encoding="utf-8")
    return str(path)


def audits(scratch: Path) -> Iterator[tuple[str, str, Audit]]:
    """Yield each source of texts, vLLM's parsers for it, and the audit of what they returned."""
    for file in RECORDED if REAL.exists() else ():
        log = write(scratch / f"{file}-recorded.jsonl", list(recorded(file, scratch)))
        yield f"recorded {file}", PARSERS[file], audit([log])
    for name, (tools, reasoning, _) in THEIRS.items():
        log = write(scratch / f"{name}-made.jsonl", list(made(name, scratch)))
        yield f"made {name}", f"{tools} + {reasoning}" if reasoning else tools, audit([log])


def table(found: Sequence[tuple[str, str, Audit]]) -> str:
    """Return the counts, as Markdown without blanks: a guide has a limit on its words."""
    rows = [["texts", "vLLM's parsers", "answers", "returned", "in the text", *KINDS], ["---"] * (5 + len(KINDS))]
    for source, parsers, each in found:
        counts = [f"{each.total[name]:,}" for name in ("answers", "returned", "written", *KINDS)]
        rows.append([source, parsers, *counts])
    return "\n".join(f"|{'|'.join(row)}|" for row in rows)


def main() -> None:
    """Print the table, or write it where it is in a page; write a page of each audit."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--write", metavar="PAGE", type=Path)
    options.add_argument("--html", metavar="FOLDER", type=Path)
    asked = options.parse_args()
    found = list(audits(Path(tempfile.mkdtemp())))
    if asked.html is not None:
        asked.html.mkdir(parents=True, exist_ok=True)
        for source, _, each in found:
            (asked.html / f"{source.replace(' ', '-')}.html").write_text(page(each), encoding="utf-8")
    if asked.write is None:
        print(table(found))
    else:
        write_part(asked.write, BEGIN, END, table(found))


if __name__ == "__main__":
    main()
