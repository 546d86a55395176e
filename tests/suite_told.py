"""What toolgram says of each case of the suite beyond what any parser is asked: `python -m tests.suite_told` writes it.

Strategy: a case of `suite/` has the message that a text means. `suite_told.jsonl` has, by the id of a case, all that
toolgram adds: its anomalies, with their places and texts, ids that the model wrote, and arguments that are not written
as `json.dumps` does. A case that is not there has none of these. A line that changes is a change of behaviour.
"""

import importlib.util
import json
import random
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import toolgram
from tests.json_prefix import is_json

SUITE = Path(__file__).resolve().parent.parent / "suite"
PAGE = Path(__file__).with_suffix(".jsonl")


def module(path: Path) -> ModuleType:
    """A file of the suite, which is no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = found
    spec.loader.exec_module(found)
    return found


suite = module(SUITE / "run.py")
adapter = module(SUITE / "adapters" / "toolgram_adapter.py")
scoreboard = module(SUITE / "scoreboard.py")


def said(message: toolgram.Message) -> dict[str, Any]:
    """What a message has beyond an answer of the suite."""
    ids = [call.model_id or call.id for call in message.tool_calls]
    written = [call.arguments for call in message.tool_calls]
    dumped = [json.dumps(json.loads(text), ensure_ascii=False) if is_json(text) else text for text in written]
    found = {
        "anomalies": [[each.kind, each.start, each.text, each.call] for each in message.anomalies],
        "ids": ids if {*ids} - {"id"} else [],
        "arguments": written if written != dumped else [],
    }
    return {key: value for key, value in found.items() if value}


def load() -> dict[str, dict[str, Any]]:
    """What is written, by the id of the case."""
    rows = map(json.loads, PAGE.read_text("utf-8").splitlines())
    return {row.pop("id"): row for row in rows}


def main() -> None:
    """Write the file."""
    lines = []
    for case in suite.load_cases():
        (_, whole), *_ = suite.deltas(case, random.Random(0))
        _, message = adapter.read(suite.request(case, whole, case["finish_reason"]))
        if found := said(message):
            lines.append(json.dumps({"id": case["id"], **found}, ensure_ascii=False))
    PAGE.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
