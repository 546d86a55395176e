"""`toolgram audit`: rows of every server's log, and each kind of loss, found and shown."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.bulk.logs import packed
from tests.cli.running import run
from tests.work import at_most
from toolgram.audit import audit
from toolgram.audit.auditing import _Reader
from toolgram.audit.comparing import KINDS, compare
from toolgram.audit.page import page
from toolgram.audit.served import served
from toolgram.bulk.inputs import read_batches
from toolgram.formats import get_format

HERMES = get_format("hermes")
TABLE: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("rows.yaml").read_text(encoding="utf-8"))
RAW, CUT, CALL, GOOD = (TABLE[name] for name in ("text", "cut", "call", "message"))


def chat(message: Any, reason: str = "tool_calls", **more: Any) -> dict[str, Any]:
    return {"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": reason}], **more}


LITELLM = {"model": "m", "response": json.dumps(chat(GOOD)), "model_parameters": {"tools": []}}
ANSWERS = {**TABLE["answers"], "LiteLLM": LITELLM}
LOSSES = [(row.pop("kind"), chat(**row)) for row in TABLE["losses"]]


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_read(name: str) -> None:
    (found,) = served(ANSWERS[name])
    assert (found.model, found.content, found.reasoning) == ("m", "Let me see.", "Oslo, surely.")
    assert [(call.name, json.loads(call.arguments)) for call in found.calls or ()] == [("f", {"a": 1})]
    assert found.raw is None
    assert compare(found, HERMES) == (1, 1, [])


@pytest.mark.parametrize("name", TABLE["raw"])
def test_raw_text_is_read(name: str) -> None:
    (found,) = served(TABLE["raw"][name])
    assert (found.model, found.raw, found.calls) == ("m", RAW, None)
    assert compare(found, HERMES) == (0, 1, [])


@pytest.mark.parametrize("row", [None, 3, [], {}, {"x": 1}, {"choices": 3}, {"choices": [3, {}]}, {"response": "{oh"}])
def test_a_row_of_no_known_shape(row: Any) -> None:
    assert list(served(row)) == []


HALF = {"function": {"name": "f", "arguments": '{"a": 1, "b": "x'}}


@pytest.mark.parametrize("raw", [{}, {"raw": CUT}])
@pytest.mark.parametrize(("reason", "found"), [("length", []), ("stop", ["cut off"]), ("tool_calls", ["cut off"])])
def test_half_of_a_call_is_no_finding_if_the_server_says_so(raw: Any, reason: str, found: list[str]) -> None:
    (answer,) = served({**chat({"content": None, "tool_calls": [HALF]}, reason), **raw})
    assert [each.kind for each in compare(answer, HERMES).findings] == found
    whole = {**chat({"content": None, "tool_calls": [CALL]}, "length"), "raw": CUT}
    (answer,) = served(whole)
    assert [each.kind for each in compare(answer, HERMES).findings] == ["cut off"], "JSON looks complete"


@pytest.mark.parametrize(("kind", "row"), LOSSES)
def test_a_loss_is_found(kind: str, row: Any) -> None:
    (answer,) = served(row)
    kinds = [finding.kind for finding in compare(answer, HERMES).findings]
    assert kind in kinds
    assert set(kinds) <= {kind, "markers", "thoughts"}, "calls are counted once"


SPACED = {"function": {"name": "f", "arguments": '{"a":1.0}'}}


@pytest.mark.parametrize(
    "row", [chat(GOOD, __verbose={"content": RAW}), chat({**GOOD, "tool_calls": [SPACED]}, raw=RAW)]
)
def test_what_is_equal_as_json_is_no_loss(row: Any) -> None:
    """The text before llama.cpp parsed it is in `__verbose`."""
    (found,) = served(row)
    assert found.raw == RAW
    assert compare(found, HERMES) == (1, 1, [])


def write(path: Path, rows: list[Any]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def test_files_of_several_models(tmp_path: Path) -> None:
    """The format of each is recognised from its rows; workers find what one process finds."""
    kimi = get_format("kimi_k2").example
    rows = [row for _, row in LOSSES] * 20
    rows += [{**chat({"content": kimi}), "model": "k"}, {**chat({"content": "Hello."}), "model": "plain"}, {"x": 1}]
    plain = write(tmp_path / "a.jsonl", rows)
    packed = tmp_path / "b.jsonl.gz"
    packed.write_bytes(gzip.compress(Path(plain).read_bytes() + b"{oh\n"))
    found = audit([plain, str(packed)])
    assert found.formats == {"m": "hermes", "k": "kimi_k2", "plain": ""}
    assert (found.rows, found.unread) == (2 * len(rows) + 1, 3)
    assert all(found.total[kind] for kind in KINDS)
    assert found.total["lost"] == 2 * (2 * 20 + len(get_format("kimi_k2").parse(kimi).tool_calls))
    assert all(len(each) == 10 for each in found.examples.values())
    for each in found.examples["lost"]:
        events = [event for step in each["read"]["steps"] for event in step["events"]]
        assert "".join(event["source"] for event in events) == each["text"]
    two = audit([plain, str(packed)], workers=2)
    assert two.to_dict() == found.to_dict()


def test_parquet_and_zstd(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    path = tmp_path / "logs.parquet"
    parquet.write_table(arrow.table({"model": ["m"], "raw": [RAW], "response": [json.dumps(chat(GOOD))]}), path)
    found = audit([str(path)])
    assert (found.total["returned"], found.total["written"], found.formats) == (1, 1, {"m": "hermes"})
    log = Path(write(tmp_path / "logs.jsonl", [row for _, row in LOSSES]))
    log.with_suffix(".jsonl.zst").write_bytes(packed(log.with_suffix(".jsonl.zst"), log.read_bytes()))
    found = audit([str(log.with_suffix(".jsonl.zst"))])
    assert (found.rows, found.total["invented"]) == (len(LOSSES), 1)


def test_the_work_for_a_row_is_bounded(tmp_path: Path) -> None:
    """A hundred thousand rows take less than a minute on two cores; the format is recognised once."""
    log = write(tmp_path / "a.jsonl", [LOSSES[at % len(LOSSES)][1] for at in range(200)])
    batches = list(read_batches(log, ()))
    reader = _Reader({"m": "hermes"})
    reader(batches[0])  # what is loaded once
    with at_most(calls=200 * 1_000):
        assert sum(reader(batch).rows for batch in batches) == 200


def test_the_command(tmp_path: Path) -> None:
    log, html = write(tmp_path / "a.jsonl", [row for _, row in LOSSES]), tmp_path / "lost.html"
    result = run("audit", log, "--html", str(html), "--workers", "1")
    assert result.exit_code == 1
    assert "2 lost" in result.output
    assert "--tool-call-parser toolgram_hermes" in result.output
    shown = html.read_text(encoding="utf-8")
    assert "http" not in shown.replace("http-equiv", "")
    assert '"type": "tool_call_delta"' in shown
    result = run("audit", log, "--json", "--workers", "1", "--format", "hermes")
    assert json.loads(result.output)["found"]["lost"] == 2
    good = write(tmp_path / "good.jsonl", [ANSWERS["chat"]])
    assert run("audit", good, "--workers", "1").exit_code == 0
    assert run("audit", good, "--format", "moon").exit_code == 2
    assert run("audit", str(tmp_path / "none*.jsonl")).exit_code == 1


def test_the_page_obeys_no_model(tmp_path: Path) -> None:
    odd = "<script>alert(1)</script>\ud800"
    log = write(tmp_path / "a.jsonl", [{**chat({"content": odd + RAW}), "model": odd, "id": odd}])
    shown = page(audit([log], "hermes"))
    assert "<script>" not in shown
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', shown)
    (example, *_) = json.loads(data)["groups"][0]["answers"]
    assert example["note"].startswith(odd)
