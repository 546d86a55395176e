"""`parse_batch`: every shape of batch in, the same shape out, with the messages that `Format.parse` gives.

And the summary of a run, and its page.
"""

import json
from pathlib import Path
from typing import Any

import pytest

import toolgram
from tests.bulk.logs import HERMES, run, text_of, write_log
from tests.tables import table
from toolgram.bulk import arrow_schema, parse_batch, parse_batches
from toolgram.bulk.report import report, write_report
from toolgram.bulk.summary import Summary

pyarrow = pytest.importorskip("pyarrow")
TEXTS = [text_of(number) for number in range(8)]
ADDED = ["content", "reasoning", "tool_calls", "malformed", "anomalies", "finish_reason", "error"]


def shown(calls: Any) -> list[tuple[str, str, str]]:
    return [(call["name"], call["arguments"], call["status"]) for call in calls]


EXPECTED = [[(call.name, call.arguments, call.status) for call in HERMES.parse(text).tool_calls] for text in TEXTS]


def test_a_mapping_of_lists() -> None:
    batch = parse_batch({"id": list(range(8)), "text": TEXTS}, format="hermes")
    assert list(batch) == ["id", "text", *ADDED]
    assert [shown(calls) for calls in batch["tool_calls"]] == EXPECTED
    assert batch["content"] == [HERMES.parse(text).content for text in TEXTS]


def test_a_mapping_of_arrays() -> None:
    numpy = pytest.importorskip("numpy")
    batch = parse_batch({"text": numpy.array(TEXTS, dtype=object)}, format=HERMES, keep=[])
    assert list(batch) == ADDED
    assert all(isinstance(column, numpy.ndarray) and column.dtype == object for column in batch.values())
    assert [shown(calls) for calls in batch["tool_calls"]] == EXPECTED


@pytest.mark.parametrize("make", [pyarrow.table, lambda columns: pyarrow.RecordBatch.from_pydict(columns)])
def test_arrow(make: Any) -> None:
    given = make({"id": list(range(8)), "out": [{"text": text} for text in TEXTS]})
    batch = parse_batch(given, field="out.text", format="hermes", keep=["id"])
    assert type(batch) is type(given)
    assert batch.schema.names == ["id", *ADDED]
    assert pyarrow.schema(list(batch.schema)[1:]) == arrow_schema()
    kind = pyarrow.list_(pyarrow.struct([(name, pyarrow.string()) for name in ("id", "name", "arguments", "status")]))
    assert batch.schema.field("tool_calls").type == kind
    assert [shown(calls) for calls in batch.column("tool_calls").to_pylist()] == EXPECTED


def test_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": range(8), "text": TEXTS}, index=range(10, 18))
    (batch,) = parse_batches([frame], format="hermes")
    assert list(batch.columns) == ["id", "text", *ADDED]
    assert list(batch.index) == list(range(10, 18))
    assert [shown(calls) for calls in batch["tool_calls"]] == EXPECTED


def test_rows_say_how_to_read_them() -> None:
    tool = {"name": "f", "parameters": {"type": "object", "properties": {}}}
    batch = parse_batch(
        {
            "text": ["[TOOL_CALLS]f[ARGS]{}", "hm</think>hi", TEXTS[0], None],
            "f": ["mistral_v11", None, None, "hermes"],
            "p": [None, "<think>", None, None],
            "t": [None, None, json.dumps([tool]), None],
        },
        format="hermes", format_column="f", prefix_column="p", tools_column="t", keep=[],
    )  # fmt: skip
    assert shown(batch["tool_calls"][0]) == [("f", "{}", "complete")]
    assert (batch["reasoning"][1], batch["content"][1]) == ("hm", "hi")
    assert [odd["kind"] for odd in batch["anomalies"][2]] == ["unknown_tool"]
    assert batch["error"] == [None, None, None, "field 'text' is null, not text"]


@pytest.mark.parametrize(("batch", "options", "complaint"), table(__file__, "mistakes"))
def test_mistakes(batch: Any, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(toolgram.ToolgramError, match=complaint):
        parse_batch(batch, **{"format": "hermes", **options})


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
    assert "<p>None.</p>" in report(Summary(), "nothing")


def test_lengths_are_counted_by_their_bits() -> None:
    found = Summary()
    for text in ("", "a", "abc", "abcd"):
        found.saw(HERMES.parse(text), "x.jsonl", 1)
    page = report(found, "lengths")
    rows = [("none", 1), ("from 1", 1), ("from 2", 1), ("from 4", 1)]
    shown = "".join(f"<tr><td>{name}<td class=n>{count}<td><meter max=1 value={count}></meter>" for name, count in rows)
    assert shown in page


def test_the_page_of_a_run(tmp_path: Path) -> None:
    outcome = run(write_log(tmp_path / "in.jsonl", 4), output=tmp_path / "out.jsonl")
    write_report(outcome.summary, str(tmp_path / "r.html"), "a run")
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")
