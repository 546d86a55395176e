"""Whole runs: the same answers from every kind of file and runner, in order; and nothing lost where one is killed.

What a run writes is never what it reads, and an earlier file is whole until the new one is.
"""

import errno
import json
import multiprocessing
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pytest

from tests.bulk.logs import HERMES, OPTIONS, ignore, read_answers, rows, run, without_ids, write_log
from tests.tables import table
from toolgram.bulk import inputs, report
from toolgram.bulk.errors import BadFile, BadTarget
from toolgram.bulk.inputs import read_batches
from toolgram.bulk.parts import Parts
from toolgram.bulk.rows import RowOptions
from toolgram.bulk.run import Run, run_to_stream
from toolgram.bulk.running import Job, answer_in_processes
from toolgram.bulk.summary import Summary
from toolgram.bulk.writing import NewFile

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
        ("in.jsonl", "out.jsonl"), ("in.jsonl.gz", "out.jsonl.zst"), ("in.jsonl.zst", "out.jsonl.gz"),
        ("in.jsonl", "out.parquet"), ("in.parquet", "out.parquet"),
    ],
)  # fmt: skip
def test_every_kind_of_file(tmp_path: Path, source: str, target: str) -> None:
    log, wrong = write_log(tmp_path / source, COUNT, BAD), () if source.endswith("parquet") else BAD
    outcome = run(log, output=tmp_path / target, errors=tmp_path / "errors")
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

    outcome = run(log, output=out, progress=progress, workers=2)
    assert deaths == 2
    assert read_answers(out) == expected()
    assert (outcome.summary.rows, outcome.summary.bad) == (COUNT, len(BAD))
    assert list(tmp_path.glob("*.parts")) == []


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("workers", [1, 2])
def test_parts_that_cannot_be_kept(tmp_path: Path, workers: int) -> None:
    log, out = write_log(tmp_path / "in.jsonl", COUNT), tmp_path / "out.jsonl"
    with pytest.raises(BadFile, match=r"out\.jsonl\.parts: cannot be written: No such file or directory"):
        run(log, output=out, workers=workers, progress=lambda rows, size: shutil.rmtree(f"{out}.parts", True))


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
    monkeypatch.setattr(inputs, "BATCH_BYTES", 2_000)
    with patch.object(Parts, "add", autospec=True, side_effect=Parts.add) as added:
        outcome = run(log, output=out, resume=True, errors=tmp_path / "errors")
    assert kept
    assert not {f"{call.args[1]}.part" for call in added.call_args_list} & set(kept)
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
        run(write_log(tmp_path / "in.jsonl", 3), output=out)
    with pytest.raises(BadFile, match="another run, which differs in field;"):
        Parts(out, "plain", {"field": "b", "strict": False}, resume=True)


def test_a_run_is_not_resumed_with_a_changed_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write_log(tmp_path / "in.jsonl", 3)
    with monkeypatch.context() as patch:
        patch.setattr(Parts, "finish", lambda self, *given: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(log, output=tmp_path / "out.jsonl")
    write_log(log, 4)
    with pytest.raises(BadFile, match="differs in inputs"):
        run(log, output=tmp_path / "out.jsonl", resume=True)


def test_a_run_that_cannot_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "out.parts"
    folder.mkdir()
    (folder / "run.json").write_text("{")
    Parts(str(tmp_path / "out"), "plain", {"a": 1}, resume=True)
    (folder / "run.json").write_text("{")
    (folder / "x.part").write_text("")
    with pytest.raises(BadFile, match="cannot be trusted"):
        Parts(str(tmp_path / "out"), "plain", {"a": 1}, resume=True)


def test_no_rows_are_a_file_all_the_same_and_no_input_is_none(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(b"\n")
    for out in (tmp_path / "out.jsonl", tmp_path / "out.parquet"):
        assert [bool(run(tmp_path / "absent.jsonl", output=out).problems), out.exists()] == [True, False]
        run(tmp_path / "in.jsonl", output=out)
        assert read_answers(out) == []


@pytest.mark.parametrize("target", ["out.jsonl", "out.parquet"])
def test_columns_to_keep(tmp_path: Path, target: str) -> None:
    values: list[Any] = [1, 2**70, 1.5, "x", None, [1, {"a": 2**70}], {"deep": []}, True, "\ud800"]
    lines = [json.dumps({"t": "hi", "v": value, "n": at}) for at, value in enumerate(values)]
    (tmp_path / "in.jsonl").write_text("\n".join([*lines, json.dumps({"t": "hi"})]))
    run(tmp_path / "in.jsonl", output=tmp_path / target, options=RowOptions("t", HERMES, keep=("v", "n")))
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
        run(tmp_path / "in.jsonl", output=tmp_path / "out.parquet", options=RowOptions("t", HERMES, keep=("v",)))
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


OLD = b"what was there before\n"


def relative(path: Path) -> Path:
    return Path(os.path.relpath(path))


def symbolic(path: Path) -> Path:
    link = path.parent / "symbolic.jsonl"
    link.symlink_to(path)
    return link


def hard(path: Path) -> Path:
    link = path.parent / "hard.jsonl"
    link.hardlink_to(path)
    return link


def through_a_folder(path: Path) -> Path:
    (path.parent.parent / "other").symlink_to(path.parent)
    return path.parent.parent / "other" / path.name


def with_dots(path: Path) -> Path:
    return path.parent / ".." / path.parent.name / path.name


OTHER_NAMES = (Path, relative, symbolic, hard, through_a_folder, with_dots)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return write_log(tmp_path / "logs" / "in.jsonl", 5)


class TestSameFile:
    @pytest.mark.parametrize("name", OTHER_NAMES)
    @pytest.mark.parametrize("option", ["output", "errors", "report"])
    def test_an_input(self, log: Path, name: Callable[[Path], Path], option: str) -> None:
        before, other = log.read_bytes(), name(log)
        with pytest.raises(BadTarget, match=f"--{option} .*would overwrite the input .*in.jsonl.*; name another file"):
            run(log, **{option: other})
        assert log.read_bytes() == before
        assert not list(log.parent.glob("*.parts"))
        assert not list(log.parent.glob("*.unfinished"))

    @pytest.mark.parametrize("option", ["output", "errors"])
    @pytest.mark.parametrize("given", ["logs", "logs/*.jsonl", "logs/**"])
    def test_an_input_of_a_directory_or_a_pattern(
        self, log: Path, option: str, given: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(log.parent.parent)
        before = log.read_bytes()
        with pytest.raises(BadTarget, match="would overwrite the input"):
            run(given, **{option: symbolic(log)})
        assert log.read_bytes() == before

    def test_standard_input(self, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with log.open() as stream:
            monkeypatch.setattr(sys, "stdin", stream)
            for option in ("output", "errors"):
                with pytest.raises(BadTarget, match="would overwrite the input on standard input"):
                    run("-", **{option: log})

    def test_a_file_that_is_called_like_standard_input(self, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(log.rename(log.parent / "-").parent)
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO()))
        with pytest.raises(BadTarget):
            run("./-", output="-")
        run("-", output="other")

    @pytest.mark.parametrize(
        ("name", "exists"),
        [*((name, True) for name in OTHER_NAMES), *((name, False) for name in OTHER_NAMES if name != hard)],
    )
    @pytest.mark.parametrize("pair", [("output", "errors"), ("output", "report"), ("errors", "report")])
    def test_each_other(self, log: Path, pair: tuple[str, str], name: Callable[[Path], Path], exists: bool) -> None:
        out = log.parent / "out.jsonl"
        if exists:
            out.write_bytes(OLD)
        with pytest.raises(BadTarget, match="are the same file; name two files"):
            run(log, **{pair[0]: out, pair[1]: name(out)})
        assert out.read_bytes() == OLD if exists else not out.exists()

    def test_the_stream_of_answers(self, log: Path) -> None:
        before = log.read_bytes()
        with log.open("ab") as stream, pytest.raises(BadTarget, match="the answers go to the input"):
            run_to_stream(Run([str(log)], OPTIONS), stream, ignore)
        out = log.parent / "out.jsonl"
        with out.open("wb") as stream, pytest.raises(BadTarget, match="is the file that the answers go to"):
            run_to_stream(Run([str(log)], OPTIONS, errors=str(symbolic(out))), stream, ignore)
        assert log.read_bytes() == before

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
    def test_a_file_that_may_not_be_written(self, log: Path) -> None:
        out = log.parent / "out.jsonl"
        out.write_bytes(OLD)
        out.chmod(0o444)
        with pytest.raises(BadTarget, match="may not be written"):
            run(log, output=out)

    def test_other_files_in_the_directory_of_the_input(self, log: Path) -> None:
        run(log, output=log.parent / "out.jsonl", errors=log.parent / "errors.jsonl")
        assert (log.parent / "out.jsonl").read_bytes().count(b"\n") == 5
        assert sorted(path.name for path in log.parent.iterdir()) == ["errors.jsonl", "in.jsonl", "out.jsonl"]


class TestRenaming:
    def test_a_link_stays(self, log: Path, tmp_path: Path) -> None:
        for option in ("output", "errors"):
            real, link = tmp_path / f"real-{option}", log.parent / f"link-{option}"
            real.write_bytes(OLD)
            real.chmod(0o640)
            link.symlink_to(os.path.relpath(real, log.parent))
            run(log, **{option: link})
            assert link.is_symlink()
            assert real.read_bytes() != OLD
            assert stat.S_IMODE(real.stat().st_mode) == 0o640

    def test_a_link_to_nothing_yet(self, log: Path) -> None:
        link = symbolic(log.parent / "real.jsonl")
        run(log, output=link)
        assert link.is_symlink()
        assert (log.parent / "real.jsonl").read_bytes().count(b"\n") == 5

    def test_a_new_file_has_the_permissions_of_the_process(self, log: Path) -> None:
        before = os.umask(0o027)
        try:
            run(log, output=log.parent / "out", errors=log.parent / "errors")
        finally:
            os.umask(before)
        assert {stat.S_IMODE((log.parent / name).stat().st_mode) for name in ("out", "errors")} == {0o640}

    def test_a_run_that_fails_leaves_the_old_output(self, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        out, errors = log.parent / "out.jsonl", log.parent / "errors"
        out.write_bytes(OLD)
        errors.write_bytes(OLD)
        with monkeypatch.context() as patch:
            patch.setattr(shutil, "copyfileobj", Mock(side_effect=OSError(errno.ENOSPC, "No space left on device")))
            with pytest.raises(BadFile, match=r"out\.jsonl: cannot be written: No space left"):
                run(log, output=out, errors=errors)
        assert (out.read_bytes(), errors.read_bytes()) == (OLD, OLD)
        assert not (log.parent / "out.jsonl.unfinished").exists()
        run(log, output=out, errors=errors, resume=True)
        assert out.read_bytes().count(b"\n") == 5
        assert errors.read_bytes() == b""
        assert sorted(path.name for path in log.parent.iterdir()) == ["errors", "in.jsonl", "out.jsonl"]

    def test_an_interrupted_run_keeps_the_old_output(self, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        out = log.parent / "out.jsonl"
        out.write_bytes(OLD)
        monkeypatch.setattr(Parts, "finish", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run(log, output=out)
        assert out.read_bytes() == OLD

    def test_an_interrupted_stream_keeps_its_errors_beside_the_old_ones(self, log: Path) -> None:
        errors = log.parent / "errors"
        errors.write_bytes(OLD)
        log.write_bytes(b"no json\n")

        class Full(BytesIO):
            def flush(self) -> None:
                if self.getvalue().count(b"\n") > 1:
                    raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run_to_stream(Run([str(log)] * 2, OPTIONS, errors=str(errors)), Full(), ignore)
        assert errors.read_bytes() == OLD
        kept = [json.loads(line) for line in (log.parent / "errors.unfinished").read_bytes().splitlines()]
        assert [row["line"] for row in kept] == [1]
        run(log, errors=errors)
        assert errors.read_bytes().count(b"\n") == 1
        assert not (log.parent / "errors.unfinished").exists()

    def test_a_link_in_the_way_is_not_followed(self, tmp_path: Path) -> None:
        (tmp_path / "precious").write_bytes(OLD)
        (tmp_path / "out.unfinished").symlink_to(tmp_path / "precious")
        with NewFile(str(tmp_path / "out")) as out:
            out.stream.write(b"new")
        assert (tmp_path / "precious").read_bytes() == OLD
        assert (tmp_path / "out").read_bytes() == b"new"

    def test_a_report_that_cannot_be_drawn(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        page = tmp_path / "report.html"
        page.write_bytes(OLD)
        monkeypatch.setattr(report, "report", lambda summary, title: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            report.write_report(Summary(), str(page), "title")
        assert page.read_bytes() == OLD


class TestDirect:
    """Pipes and devices stay what they are."""

    def test_a_device(self, log: Path) -> None:
        run(log, output=os.devnull, errors=os.devnull)
        assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
        assert run(os.devnull, output=os.devnull).summary.rows == 0
        assert not os.path.exists(f"{os.devnull}.parts")

    @pytest.mark.parametrize("option", ["output", "errors"])
    def test_a_pipe(self, log: Path, option: str) -> None:
        pipe = log.parent / "pipe"
        os.mkfifo(pipe)
        log.write_bytes(b"no json\n")
        found: list[bytes] = []
        reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
        reader.start()
        run(log, **{option: pipe})
        reader.join(20)
        assert [json.loads(line)["line"] for line in found[0].splitlines()] == [1]
        assert stat.S_ISFIFO(pipe.stat().st_mode)

    def test_an_open_descriptor(self, log: Path) -> None:
        """What was written before stays, and what is written afterwards follows it."""
        out = log.parent / "out"
        with out.open("wb", buffering=0) as stream:
            stream.write(OLD)
            run(log, output=f"/dev/fd/{stream.fileno()}")
            stream.write(OLD)
        lines = out.read_bytes().splitlines()
        assert len(lines) == 7
        assert lines[0] + b"\n" == lines[-1] + b"\n" == OLD

    def test_an_open_descriptor_of_the_input(self, log: Path) -> None:
        before = log.read_bytes()
        with log.open("ab") as stream, pytest.raises(BadTarget):
            run(log, output=f"/dev/fd/{stream.fileno()}")
        assert log.read_bytes() == before

    def test_what_a_device_cannot_take_and_a_descriptor_that_is_closed(self, log: Path) -> None:
        pipe = log.parent / "pipe.parquet"
        os.mkfifo(pipe)
        with pytest.raises(BadFile, match="write Parquet to a file"):
            run(log, output=pipe)
        with pytest.raises(BadFile, match="--resume needs an output file"):
            run(log, output=os.devnull, resume=True)
        with pytest.raises(BadFile, match="cannot be written"), NewFile("/dev/fd/987", keep=True):
            pass
