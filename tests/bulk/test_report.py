"""The summary of a run, and its page."""

from __future__ import annotations

from pathlib import Path

from tests.bulk.logs import HERMES, run, text_of, write_log
from toolgram.bulk.report import report, write_report
from toolgram.bulk.summary import Summary


def summary(count: int = 40, start: int = 0) -> Summary:
    found = Summary()
    for number in range(start, start + count):
        found.saw(HERMES.parse(text_of(number)) if number % 10 else None, "x.jsonl", number + 1)
    return found


def test_summaries_add_up() -> None:
    found = summary(17)
    found.add(Summary.from_dict(summary(23, 17).to_dict()))
    assert found == summary(40)
    assert (found.rows, found.bad) == (40, 4)
    assert found.examples["truncated"] == {"file": "x.jsonl", "line": 3, "start": 48, "text": "add"}
    lines = found.lines()
    assert lines[0] == "40 rows, 4 that could not be read; 26 with calls, 10 with repairs"
    assert lines[1] == "26 calls: 18 complete, 8 truncated, 0 malformed"
    assert lines[2].startswith("10 x repaired_json: ")
    assert lines[2].endswith("first in x.jsonl line 4: ','")


def test_the_page() -> None:
    found = summary()
    found.examples["truncated"]["text"] = "<script>$x$</script>"
    page = report(found, "a <b> & c")
    assert "<td>add<td class=n>26<td><meter max=26 value=26></meter>" in page
    assert "<script" not in page
    assert "&lt;script&gt;$x$&lt;/script&gt;" in page
    assert "a &lt;b&gt; &amp; c" in page
    assert "http" not in page


def test_lengths_are_counted_by_their_bits() -> None:
    found = Summary()
    for text in ("", "a", "abc", "abcd"):
        found.saw(HERMES.parse(text), "x.jsonl", 1)
    page = report(found, "lengths")
    rows = [("none", 1), ("from 1", 1), ("from 2", 1), ("from 4", 1)]
    shown = "".join(f"<tr><td>{name}<td class=n>{count}<td><meter max=1 value={count}></meter>" for name, count in rows)
    assert shown in page


def test_an_empty_page() -> None:
    assert "<p>None.</p>" in report(Summary(), "nothing")


def test_the_page_of_a_run(tmp_path: Path) -> None:
    outcome = run(write_log(tmp_path / "in.jsonl", 4), to=tmp_path / "out.jsonl")
    write_report(outcome.summary, str(tmp_path / "r.html"), "a run")
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")
