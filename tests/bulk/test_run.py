"""Whole runs: the same answers from every kind of file and runner, in order; and nothing lost where one is killed."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from tests.bulk.logs import HERMES, ignore, read_answers, rows, run, without_ids, write_log
from tests.tables import table
from toolgram.bulk import inputs
from toolgram.bulk.errors import BadFile
from toolgram.bulk.inputs import read_batches
from toolgram.bulk.outputs import BatchAnswer
from toolgram.bulk.parts import Parts
from toolgram.bulk.rows import RowOptions
from toolgram.bulk.run import Run, run_to_stream
from toolgram.bulk.running import Job, answer_in_processes

pytest.importorskip("pyarrow")
COUNT, BAD = 400, (7, 300)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "BATCH_BYTES", 2_000)


def expected(bad: tuple[int, ...] = BAD) -> list[dict[str, Any]]:
    """What must come of the log, by `Format.parse`."""
    found = []
    for number, row in enumerate(rows(COUNT), start=1):
        answer = {"line": number, "id": row["id"], "message": HERMES.parse(row["out"]["text"]).to_dict()}
        if number in bad:
            answer = {"line": number, "error": "not JSON: Expecting value at character 9"}
        found.append(without_ids(answer))
    return found


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("in.jsonl", "out.jsonl"),
        ("in.jsonl.gz", "out.jsonl.zst"),
        ("in.jsonl.zst", "out.jsonl.gz"),
        ("in.jsonl", "out.parquet"),
        ("in.parquet", "out.parquet"),
    ],
)
def test_every_kind_of_file(tmp_path: Path, source: str, target: str) -> None:
    log, wrong = write_log(tmp_path / source, COUNT, BAD), () if source.endswith("parquet") else BAD
    outcome = run(log, to=tmp_path / target, errors=str(tmp_path / "errors"))
    answers = read_answers(tmp_path / target)
    for answer in answers:
        assert answer.pop("file", str(log)) == str(log)
    assert answers == expected(wrong)
    bad = [json.loads(line) for line in (tmp_path / "errors").read_text().splitlines()]
    assert [(each["file"], each["line"]) for each in bad] == [(str(log), line) for line in wrong]
    assert (outcome.summary.rows, outcome.summary.bad) == (COUNT, len(wrong))
    assert not (tmp_path / f"{target}.parts").exists()


@pytest.mark.usefixtures("small_batches")
def test_a_worker_that_is_killed_while_it_keeps_parts(tmp_path: Path) -> None:
    log, out = write_log(tmp_path / "in.jsonl", COUNT, BAD), tmp_path / "out.jsonl"
    deaths = 0

    def progress(rows: int, size: int) -> None:
        nonlocal deaths
        if deaths < 2:
            deaths += 1
            os.kill(multiprocessing.active_children()[0].pid or 0, signal.SIGKILL)

    outcome = run(log, to=out, progress=progress, workers=2)
    assert deaths == 2
    assert read_answers(out) == expected()
    assert (outcome.summary.rows, outcome.summary.bad) == (COUNT, len(BAD))
    assert list(tmp_path.glob("*.parts")) == []


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("workers", [1, 2])
def test_parts_that_cannot_be_kept(tmp_path: Path, workers: int) -> None:
    log, out = write_log(tmp_path / "in.jsonl", COUNT), tmp_path / "out.jsonl"
    with pytest.raises(BadFile, match=r"out\.jsonl\.parts: cannot be written: No such file or directory"):
        run(log, to=out, workers=workers, progress=lambda rows, size: shutil.rmtree(f"{out}.parts", True))


def test_workers_that_die_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write_log(tmp_path / "in.jsonl", 3)
    job = Job(RowOptions("out.text", HERMES, tools=_Deadly()), "plain")  # type: ignore[arg-type]
    with pytest.raises(BadFile, match=r"in\.jsonl: workers die at the rows from 1 on"):
        list(answer_in_processes(job.reader, read_batches(str(log), ["out.text"]), 1))


class _Deadly:
    """Ends the process that unpickles it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (1,)


KILLED = table(__file__, "killed")


@pytest.mark.parametrize("target", ["out.jsonl.gz", "out.parquet"])
def test_killed_and_resumed(tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    log, out = write_log(tmp_path / "in.jsonl", COUNT, BAD), tmp_path / target
    command = [sys.executable, "-c", KILLED, "parse", "-f", "hermes", "--jsonl", "out.text", str(log), "-o", str(out),
               "--keep", "id", "--errors", str(tmp_path / "errors")]  # fmt: skip
    folder = tmp_path / f"{target}.parts"
    for least in (4, 9):
        process = subprocess.Popen([*command, *(["--resume"] if least > 4 else [])])
        while process.poll() is None and len(list(folder.glob("*.part"))) < least:
            time.sleep(0.01)
        process.kill()
        process.wait()
        assert not out.exists()
    kept = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.part")}
    (folder / "000000-99999999.part.writing").write_bytes(b"half of a part")

    written: list[str] = []
    add = Parts.add

    def noted(self: Parts, name: str, answer: BatchAnswer) -> None:
        written.append(name)
        add(self, name, answer)

    monkeypatch.setattr(inputs, "BATCH_BYTES", 2_000)
    monkeypatch.setattr(Parts, "add", noted)
    outcome = run(log, to=out, resume=True, errors=str(tmp_path / "errors"))
    assert kept
    assert not {f"{name}.part" for name in written} & set(kept)
    answers = read_answers(out)
    for answer in answers:
        answer.pop("file", None)
    assert answers == expected()
    assert (outcome.summary.rows, outcome.summary.bad) == (COUNT, len(BAD))
    assert len((tmp_path / "errors").read_text().splitlines()) == len(BAD)
    assert not folder.exists()


def test_an_unfinished_run_is_neither_overwritten_nor_mixed_with_another(tmp_path: Path) -> None:
    out = str(tmp_path / "out.jsonl")
    Parts(out, "plain", {"field": "a", "strict": False}, resume=False)
    with pytest.raises(BadFile, match=r"out\.jsonl\.parts: a run into this output was not finished.*--resume"):
        run(write_log(tmp_path / "in.jsonl", 3), to=out)
    with pytest.raises(BadFile, match="another run, which differs in field;"):
        Parts(out, "plain", {"field": "b", "strict": False}, resume=True)


def test_a_run_is_not_resumed_with_a_changed_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write_log(tmp_path / "in.jsonl", 3)
    with monkeypatch.context() as patch:
        patch.setattr(Parts, "finish", lambda self, errors: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(log, to=tmp_path / "out.jsonl")
    write_log(log, 4)
    with pytest.raises(BadFile, match="differs in inputs"):
        run(log, to=tmp_path / "out.jsonl", resume=True)


def test_a_run_that_cannot_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "out.parts"
    folder.mkdir()
    (folder / "run.json").write_text("{")
    Parts(str(tmp_path / "out"), "plain", {"a": 1}, resume=True)
    (folder / "run.json").write_text("{")
    (folder / "x.part").write_text("")
    with pytest.raises(BadFile, match="cannot be trusted"):
        Parts(str(tmp_path / "out"), "plain", {"a": 1}, resume=True)


def test_no_rows_are_a_file_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(b"\n")
    for name in ("out.jsonl", "out.parquet"):
        run(tmp_path / "in.jsonl", to=tmp_path / name)
        assert read_answers(tmp_path / name) == []


@pytest.mark.parametrize("target", ["out.jsonl", "out.parquet"])
def test_columns_to_keep(tmp_path: Path, target: str) -> None:
    values: list[Any] = [1, 2**70, 1.5, "x", None, [1, {"a": 2**70}], {"deep": []}, True, "\ud800"]
    lines = [json.dumps({"t": "hi", "v": value, "n": at}) for at, value in enumerate(values)]
    (tmp_path / "in.jsonl").write_text("\n".join([*lines, json.dumps({"t": "hi"})]))
    run(tmp_path / "in.jsonl", to=tmp_path / target, options=RowOptions("t", HERMES, keep=("v", "n")))
    found = read_answers(tmp_path / target)
    assert [answer.get("n") for answer in found] == [*range(len(values)), None]
    kept = [answer.get("v") for answer in found]
    if target == "out.jsonl":
        assert kept == [value if value != [] else None for value in values] + [None]
    else:
        texts = [value if isinstance(value, str | None) else json.dumps(value) for value in values]
        assert kept == [*texts[:-1], "\ufffd\ufffd\ufffd", None]


@pytest.mark.usefixtures("small_batches")
def test_a_column_whose_type_changes_between_parts(tmp_path: Path) -> None:
    def parsed(values: list[Any]) -> list[Any]:
        data = "".join(json.dumps({"t": "hi", "v": value}) + "\n" for value in values)
        (tmp_path / "in.jsonl").write_text(data)
        run(tmp_path / "in.jsonl", to=tmp_path / "out.parquet", options=RowOptions("t", HERMES, keep=("v",)))
        return [answer.get("v") for answer in read_answers(tmp_path / "out.parquet")]

    assert parsed([1] * 300 + [1.5] * 300) == [1.0] * 300 + [1.5] * 300
    assert parsed([None] * 300 + [7] * 300) == [None] * 300 + [7] * 300
    assert parsed([1] * 300 + ["x"] * 300) == ["1"] * 300 + ["x"] * 300


def test_a_run_stops_if_the_first_batch_fails_in_one_way(tmp_path: Path) -> None:
    log, out = tmp_path / "a.jsonl", BytesIO()
    log.write_text('{"output": "x", "id": 1}\n' * 100_000)
    with pytest.raises(BadFile, match=r"no field 'text'; the row has 'output', 'id'"):
        run_to_stream(Run([str(log)], RowOptions("text", HERMES)), out, ignore)
    assert out.getvalue().count(b"\n") < 100_000


def test_ids_are_the_same_in_each_run(tmp_path: Path) -> None:
    text = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": text * 2}) + "\n")
    outputs = []
    for _ in range(2):
        out = BytesIO()
        run_to_stream(Run([str(tmp_path / "a.jsonl")], RowOptions("text", HERMES)), out, ignore)
        outputs.append(out.getvalue())
    assert len(set(outputs)) == 1
    first, second = json.loads(outputs[0])["message"]["tool_calls"]
    assert first["id"] != second["id"]


WORKERS = table(__file__, "workers")


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(WORKERS)
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    workers = [int(pid) for pid in process.stdout.readline().split()]
    process.kill()
    process.wait()
    process.stdout.close()
    assert len(workers) == 2
    until = time.monotonic() + 30
    while any(runs(pid) for pid in workers):
        assert time.monotonic() < until, "they are still there"
        time.sleep(0.1)


def runs(pid: int) -> bool:
    """Whether a process runs: one that ended may be listed until somebody asks for its status."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False
