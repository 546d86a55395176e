"""Write the audit as one HTML file that needs no network: the counts, and each example in a pane."""

from __future__ import annotations

from typing import Any

import toolgram
from toolgram import showing
from toolgram.audit.auditing import Audit
from toolgram.audit.comparing import KINDS
from toolgram.explain.explanation import counted


def page(found: Audit) -> str:
    """Return the page."""
    said = found.to_dict()
    unread = f", {said['unread']:,} of no known shape" if said["unread"] else ""
    unsaid = f" {counted(said['unsaid'], 'answer')} without the calls that were returned." if said["unsaid"] else ""
    rows = counted(said["rows"], "row")
    intro = f"What the server lost, in {rows}{unread}.{unsaid} Written by toolgram {toolgram.__version__}."
    numbers = [[said["returned"], "calls returned", False], [said["written"], "calls in the text", False]]
    numbers += [[count, kind, True] for kind, count in said["found"].items()]
    head = ["model", "format", "answers", "returned", "in the text", *KINDS]
    models = [[each["model"] or "(not said)", each["format"] or "none",
             *(each.get(name, 0) for name in ("answers", "returned", "written", *KINDS))]
            for each in said["models"]]  # fmt: skip
    groups = [
        {"name": f"{kind}: {KINDS[kind]}", "answers": [_row(kind, at, each) for at, each in enumerate(examples)]}
        for kind, examples in said["examples"].items()
        if examples
    ]
    notes = {f"what reads {each['format'] or 'no known format'}": each["advice"] for each in said["models"]}
    data = {"numbers": numbers, "table": [head, *models], "notes": [*notes.items()], "groups": groups}
    return showing.page("audit", intro, data)


def _row(kind: str, at: int, example: dict[str, Any]) -> dict[str, Any]:
    calls = "\n".join(f"{call['name']}({call['arguments']})" for call in example["returned"])
    place = ", ".join(filter(None, [example["model"], f"{example['file']}, row {example['row']}", example["id"]]))
    said = [[kind, example["why"]], ["returned", calls or "no call"], ["what reads it", example["advice"]]]
    return {"id": f"{kind}-{at}", "name": example["why"], "note": place, "said": said, "read": example["read"]}
