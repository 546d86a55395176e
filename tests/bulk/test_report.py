"""The summary of a run, and its page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import toolgram
from tests.bulk.logs import text_of, write_log
from toolgram.bulk.report import check_report, report
from toolgram.bulk.summary import Summary

HERMES = toolgram.get_format("hermes")


def summary(count: int = 40, start: int = 0) -> Summary:
    found = Summary()
    for number in range(start, start + count):
        found.saw(HERMES.parse(text_of(number)) if number % 10 else None, "x.jsonl", number + 1)
    return found


def test_summaries_add_up() -> None:
    added = summary(17)
    added.add(Summary.from_dict(summary(23, 17).to_dict()))
    assert added == summary(40)
    assert (added.rows, added.bad) == (40, 4)
    assert added.examples["truncated"] == {"file": "x.jsonl", "line": 3, "start": 48, "text": "add"}


def test_the_summary_for_people() -> None:
    lines = summary().lines()
    assert lines[0] == "40 rows, 4 that could not be read; 26 with calls, 10 with repairs"
    assert lines[1] == "26 calls: 18 complete, 8 truncated, 0 malformed"
    assert lines[2].startswith("10 x repaired_json: ")
    assert lines[2].endswith("first in x.jsonl line 4: ','")


def test_the_page() -> None:
    pytest.importorskip("matplotlib")
    check_report()
    found = summary()
    found.examples["truncated"]["text"] = "<script>$x$</script>"
    page = report(found, "a <b> & c")
    assert page.count("<svg") == 1
    assert "<script" not in page
    assert "&lt;script&gt;$x$&lt;/script&gt;" in page
    assert "a &lt;b&gt; &amp; c" in page
    assert "http" not in page.replace("http://www.w3.org", "").replace("https://matplotlib.org", "").replace(
        "http://purl.org", ""
    ).replace("http://creativecommons.org", "")


def test_an_empty_page() -> None:
    pytest.importorskip("matplotlib")
    check_report()
    assert "<p>None.</p>" in report(Summary(), "nothing")


def test_the_plotting_library_is_loaded_only_for_a_report(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    log = write_log(tmp_path / "in.jsonl", 4)
    code = "import sys; from toolgram.cli import main\ntry:\n main()\nfinally:\n print('matplotlib' in sys.modules)"
    for extra, loaded in (([], "False"), (["--report", str(tmp_path / "r.html")], "True")):
        command = [sys.executable, "-c", code, "parse", "-f", "hermes", "--jsonl", "out.text", str(log),
                   "-o", str(tmp_path / "out.jsonl"), *extra]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout == f"{loaded}\n"
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")
