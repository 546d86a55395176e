"""Write the summary of a run as one HTML page, with bars.

Strategy: bars are elements of a table, so the page needs no network, no script and no library. All text of models is
escaped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape

from toolgram.anomalies import KINDS, page_of
from toolgram.bulk.summary import MOST_SHOWN, Summary
from toolgram.bulk.writing import NewFile

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 60em; padding: 0 1em; color: #222 }
table { border-collapse: collapse; margin: 1em 0 } td, th { padding: .2em .8em; border-bottom: 1px solid #ddd }
th { text-align: left } td.n { text-align: right; font-variant-numeric: tabular-nums } meter { width: 20em }
code { background: #f3f3f3; padding: 0 .2em; white-space: pre-wrap; overflow-wrap: anywhere }
"""


def write_report(summary: Summary, path: str, title: str) -> None:
    """Write the page. Raises BadFile if it cannot be written."""
    with NewFile(path) as out:
        out.stream.write(report(summary, title).encode("utf-8", "backslashreplace"))


def report(summary: Summary, title: str) -> str:
    """Return the page as text."""
    calls = summary.calls
    counts = {
        "rows": summary.rows,
        "rows that could not be read": summary.bad,
        "rows with calls": summary.with_calls,
        "rows with repairs": summary.repaired,
        "calls": sum(calls.values()),
        **{f"calls, {status}": calls[status] for status in ("complete", "truncated", "malformed")},
    }
    parts = (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(title)}</title><style>{_STYLE}</style>",
        f"<h1>{escape(title)}</h1>",
        _table(("", ""), [(name, f"{count:,}") for name, count in counts.items()]),
        "<h2>Anomalies</h2>",
        _anomalies(summary),
        _bars("Functions", summary.functions.most_common(20)),
        _bars("Characters of content, rows", _lengths(summary.lengths)),
        _bars("Characters of arguments, calls", _lengths(summary.arguments)),
        "</html>\n",
    )
    return "".join(parts)


def _anomalies(summary: Summary) -> str:
    if not summary.anomalies:
        return "<p>None.</p>"
    rows = []
    for kind, count in summary.anomalies.most_common(MOST_SHOWN):
        at = summary.examples.get(kind, {"file": "", "line": 0, "text": ""})
        rows.append(
            (
                kind,
                f"{count:,}",
                f"{KINDS.get(kind, '')} (see {page_of(kind)})",
                f"{at['file']} line {at['line']}",
                at["text"],
            )
        )
    return _table(("kind", "times", "what it is", "first", "example"), rows)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def cell(head: str, text: str) -> str:
        if head == "example":
            return f"<td><code>{escape(text)}</code>"
        return f"<td class=n>{text}" if text.replace(",", "").isdecimal() else f"<td>{escape(text)}"

    body = "".join("<tr>" + "".join(map(cell, heads, row)) for row in rows)
    head = "<tr>" + "".join(f"<th>{escape(each)}" for each in heads) if any(heads) else ""
    return f"<table>{head}{body}</table>"


def _bars(title: str, counts: Iterable[tuple[str, int]]) -> str:
    """Return a heading and a bar for each count, relative to the greatest."""
    found = list(counts)
    most = max((count for _, count in found), default=0)
    rows = "".join(
        f"<tr><td>{escape(name)}<td class=n>{count:,}<td><meter max={most} value={count}></meter>"
        for name, count in found
    )
    return f"<h2>{title}</h2><table>{rows}</table>"


def _lengths(counts: Counter[str]) -> list[tuple[str, int]]:
    """Return counts of lengths in ranges that double: no characters, from 1, from 2, from 4, and so on."""
    most = max(map(int, counts), default=-1)
    return [(f"from {1 << bits - 1:,}" if bits else "none", counts[str(bits)]) for bits in range(most + 1)]
