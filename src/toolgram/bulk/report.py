"""A run as one HTML page: its summary, and a few plots of it.

Strategy: matplotlib draws, as SVG inside the page, so that it needs no network and no script.  It is imported here and
only when a report is asked for.  All text of models is escaped.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from toolgram.anomalies import KINDS
from toolgram.bulk.errors import missing
from toolgram.bulk.summary import MOST_SHOWN, Summary
from toolgram.bulk.writing import new_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {"complete": "#2a7f62", "truncated": "#d9a441", "malformed": "#b5413a", "bad": "#777777"}
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 60em; padding: 0 1em; color: #222 }
table { border-collapse: collapse; margin: 1em 0 } td, th { padding: .2em .8em; border-bottom: 1px solid #ddd }
th { text-align: left } td.n { text-align: right; font-variant-numeric: tabular-nums } svg { max-width: 100% }
code { background: #f3f3f3; padding: 0 .2em; white-space: pre-wrap; overflow-wrap: anywhere }
"""


def check_report() -> None:
    """Raise MissingPackage where no report can be drawn; asked before a run, since the report comes behind it."""
    try:
        import matplotlib
    except ImportError:
        raise missing("matplotlib", "--report") from None
    matplotlib.use("svg")


def write_report(summary: Summary, path: str, title: str) -> None:
    """Write the page. Raises BadFile where it cannot be written."""
    page = report(summary, title).encode("utf-8", "backslashreplace")
    with new_file(path) as out:
        out.write(page)


def report(summary: Summary, title: str) -> str:
    """The page as text."""
    calls = summary.calls
    counts = [
        ("rows", summary.rows),
        ("rows that could not be read", summary.bad),
        ("rows with calls", summary.with_calls),
        ("rows with repairs", summary.repaired),
        ("calls", sum(calls.values())),
        *((f"calls, {status}", calls[status]) for status in ("complete", "truncated", "malformed")),
    ]
    return "".join(
        (
            f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(title)}</title><style>{_STYLE}</style>",
            f"<h1>{escape(title)}</h1>",
            _table(("", ""), [(name, f"{count:,}") for name, count in counts]),
            _drawn(summary),
            "<h2>Anomalies</h2>",
            _anomalies(summary),
            "<h2>Functions</h2>",
            _table(("name", "calls"), [(name, f"{count:,}") for name, count in summary.functions.most_common(20)]),
            "</html>\n",
        )
    )


def _anomalies(summary: Summary) -> str:
    if not summary.anomalies:
        return "<p>None.</p>"
    rows = []
    for kind, count in summary.anomalies.most_common(MOST_SHOWN):
        at = summary.examples.get(kind, {"file": "", "line": 0, "text": ""})
        rows.append((kind, f"{count:,}", KINDS.get(kind, ""), f"{at['file']} line {at['line']}", at["text"]))
    return _table(("kind", "times", "what it is", "first", "example"), rows)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def cell(at: int, text: str) -> str:
        if heads[at] == "example":
            return f"<td><code>{escape(text)}</code>"
        return f"<td class=n>{text}" if text.replace(",", "").isdecimal() else f"<td>{escape(text)}"

    body = "".join("<tr>" + "".join(cell(at, text) for at, text in enumerate(row)) for row in rows)
    head = "<tr>" + "".join(f"<th>{escape(each)}" for each in heads) if any(heads) else ""
    return f"<table>{head}{body}</table>"


def _drawn(summary: Summary) -> str:
    """The plots, as one SVG picture."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7.5), layout="constrained")
    above, below = figure.subplots(2, 2)
    statuses = {status: summary.calls[status] for status in ("complete", "truncated", "malformed")}
    _bars(above[0], statuses, "calls by status", [_COLOURS[status] for status in statuses])
    _bars(above[1], dict(reversed(summary.anomalies.most_common(MOST_SHOWN))), "anomalies by kind")
    _lengths(below[0], summary.lengths, "characters of content, rows")
    _lengths(below[1], summary.arguments, "characters of arguments, calls")
    picture = io.StringIO()
    figure.savefig(picture, format="svg", metadata={"Date": None})
    return picture.getvalue()[picture.getvalue().index("<svg") :]


def _bars(axes: Axes, counts: dict[str, int], title: str, colours: Any = "#4a6fa5") -> None:
    axes.barh(list(counts), list(counts.values()), color=colours)
    axes.set_title(title)
    axes.spines[["top", "right"]].set_visible(False)
    if not any(counts.values()):
        axes.set_xticks([])


def _lengths(axes: Axes, counts: Counter[str], title: str) -> None:
    """A histogram whose bars double: of no characters, of 1, of 2 and 3, of 4 to 7, and so on."""
    most = max(map(int, counts), default=0)
    names = ["0", *(f"{1 << bits:,}" for bits in range(most))]
    axes.bar(names, [counts[str(bits)] for bits in range(most + 1)], color="#4a6fa5", width=0.9)
    axes.set_title(title)
    axes.tick_params(axis="x", rotation=60)
    axes.spines[["top", "right"]].set_visible(False)
