"""What a run writes is never what it reads, and an earlier file is whole until the new one is."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import sys
import threading
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from tests.bulk.logs import OPTIONS, ignore, write_log
from toolgram.bulk import report
from toolgram.bulk.errors import BadFile, BadTarget
from toolgram.bulk.parts import Parts
from toolgram.bulk.run import Outcome, Run, run_to_file, run_to_stream
from toolgram.bulk.summary import Summary
from toolgram.bulk.writing import NewFile

OLD = b"what was there before\n"


def run(*inputs: Path | str, **changes: Any) -> Outcome:
    named: dict[str, Any] = {name: str(path) for name, path in changes.items()}
    made = Run([*map(str, inputs)], OPTIONS, **named)
    if made.output is None:
        return run_to_stream(made, BytesIO(), ignore)
    return run_to_file(made, ignore)


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

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(shutil, "copyfileobj", full)
            with pytest.raises(BadFile, match=r"out\.jsonl: cannot be written: No space left"):
                run(log, output=out, errors=errors)
        assert (out.read_bytes(), errors.read_bytes()) == (OLD, OLD)
        assert not (log.parent / "out.jsonl.unfinished").exists()
        run_to_file(Run([str(log)], OPTIONS, str(out), str(errors), resume=True), ignore)
        assert out.read_bytes().count(b"\n") == 5
        assert errors.read_bytes() == b""
        assert sorted(path.name for path in log.parent.iterdir()) == ["errors", "in.jsonl", "out.jsonl"]

    def test_an_interrupted_run_keeps_the_old_output(self, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        out = log.parent / "out.jsonl"
        out.write_bytes(OLD)

        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(Parts, "finish", interrupt)
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

    def test_what_a_device_cannot_take(self, log: Path) -> None:
        pipe = log.parent / "pipe.parquet"
        os.mkfifo(pipe)
        with pytest.raises(BadFile, match="write Parquet to a file"):
            run(log, output=pipe)
        with pytest.raises(BadFile, match="--resume needs an output file"):
            run_to_file(Run([str(log)], OPTIONS, os.devnull, resume=True), ignore)

    def test_a_descriptor_that_is_closed(self) -> None:
        with pytest.raises(BadFile, match="cannot be written"), NewFile("/dev/fd/987", keep=True):
            pass
