"""What vLLM's own parsers return, as logs, and the audit of them.

    python -m tests.audit.vllm_logs [--write docs/guides/audit.md] [--html FOLDER]

Each text goes through vLLM's real serving layer (`tests/integrations/vllm_driver.py`), whole and streamed by token. The
answer becomes a row in the shape of a chat completion, with the text of the model in `raw`. Texts are outputs of real
models from `../shared`, and the made cases of `tests/integrations/cases.py`, whose meaning is known. Imports vLLM.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.certain.rows import SHARED
from tests.integrations.cases import TOOLS
from tests.integrations.compare import THEIRS, WHOLE_ANSWER, Marked, Trial, hear, trials
from tests.integrations.vllm_driver import Server
from tests.integrations.vllm_heard import Heard
from tests.page_parts import write_part
from toolgram.audit import Audit, audit
from toolgram.audit.comparing import KINDS
from toolgram.audit.page import page

BEGIN, END = "<!-- table: written by `make audit-vllm` -->", "<!-- end of table -->"
WAYS: tuple[int | str, ...] = (WHOLE_ANSWER, 1)
REAL = SHARED / "data" / "real-outputs"
# The recorded outputs that a parser of vLLM's is for, with the format whose markers its tokenizer has.
RECORDED = {"hermes": "hermes", "pythonic": "llama4_pythonic", "granite_20b_fc": "granite_20b_fc"}
PARSERS = {"hermes": "hermes", "pythonic": "pythonic", "granite_20b_fc": "granite-20b-fc"}


class Logged(NamedTuple):
    """A row of a log, and the case that it is an answer to."""

    row: dict[str, Any]
    trial: Trial
    heard: Heard


def made(name: str, scratch: Path, parsers: tuple[str, str] | None = None) -> Iterator[Logged]:
    """Yield the rows of a format's cases, from vLLM's parsers for it, or from others."""
    tools, reasoning, kind = THEIRS[name]
    if parsers is not None:
        tools, reasoning = parsers
    marked = Marked(name, kind, scratch)
    thinking = Server(marked.tokenizer, tools, reasoning)
    plain = thinking if parsers is not None else Server(marked.tokenizer, tools, None)
    for trial in trials(name, marked):
        if trial.tools is None or "quoted" in trial.label:
            continue  # only ids tell a marker from one that is quoted, and a log has none
        server = thinking if trial.reasoning else plain
        for way in WAYS:
            heard = hear(server, trial, way)
            yield Logged(_row(f"{name}, made", trial.label, way, trial.text, heard, trial), trial, heard)


def recorded(file: str, scratch: Path) -> Iterator[Logged]:
    """Yield the rows of recorded outputs, from vLLM's parser for them. Which tools were declared was not recorded."""
    marked = Marked(RECORDED[file], "llama3", scratch)
    server = Server(marked.tokenizer, PARSERS[file], None)
    for line in (REAL / f"{file}.jsonl").read_text(encoding="utf-8").splitlines():
        said = json.loads(line)
        ids = marked.encode(said["output"])
        prompt = [marked.tokenizer.eos_token_id]
        trial = Trial(said["id"], ids, prompt, "stop", TOOLS, None, None, [], said["output"])
        for way in WAYS:
            heard = hear(server, trial, way)
            row = _row(said["model"], said["id"], way, said["output"], heard, None)
            yield Logged(row, trial, heard)


def _row(model: str, label: str, way: int | str, text: str, heard: Heard, trial: Trial | None) -> dict[str, Any]:
    calls = [
        {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id, (name, arguments) in zip(heard.ids, heard.calls, strict=True)
    ]
    message = {"role": "assistant", "content": heard.content, "reasoning": heard.reasoning, "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": heard.finish_reason}
    how = "whole" if way == WHOLE_ANSWER else "streamed"
    row = {"model": f"{model} ({how})", "id": label, "raw": text, "response": {"choices": [choice]}}
    if trial is not None:
        row |= {"request": {"tools": trial.tools}, "prefix": trial.prefix}
    return row


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
    lines = [
        f"|texts|vLLM's parsers|answers|returned|in the text|{'|'.join(KINDS)}|",
        "|" + "---|" * (5 + len(KINDS)),
    ]
    for source, parsers, each in found:
        total = each.total
        counts = [total[name] for name in ("answers", "returned", "written", *KINDS)]
        lines.append(f"|{source}|{parsers}|{'|'.join(f'{count:,}' for count in counts)}|")
    return "\n".join(lines)


def main() -> None:
    """Print the table, or write it where it is in a page; write a page of each audit."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--write", metavar="PAGE", type=Path)
    options.add_argument("--html", metavar="FOLDER", type=Path)
    options.add_argument("--logs", metavar="FOLDER", type=Path, help="where the logs are kept")
    asked = options.parse_args()
    scratch = asked.logs or Path(tempfile.mkdtemp())
    scratch.mkdir(parents=True, exist_ok=True)
    found = list(audits(scratch))
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
