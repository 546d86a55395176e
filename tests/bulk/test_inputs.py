"""Files become batches: every line once, in order and with its number, however the file is cut and compressed."""

from __future__ import annotations

import io
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bulk.logs import write_log
from toolgram.bulk import inputs
from toolgram.bulk.errors import BadFile
from toolgram.bulk.inputs import LINES, TOO_LONG, expand, line_batches, read_batches
from toolgram.limits import BATCH_BYTES

pyarrow = pytest.importorskip("pyarrow")


@given(st.lists(st.binary(max_size=12).filter(lambda line: b"\n" not in line)), st.booleans(), st.integers(1, 40))
def test_every_line_once(lines: list[bytes], ends: bool, size: int) -> None:
    data = b"\n".join(lines) + (b"\n" if ends and lines else b"")
    expected = [(at, line) for at, line in enumerate(data.split(b"\n"), start=1) if line]
    found, total = [], 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "BATCH_BYTES", size)
        for batch in line_batches(io.BytesIO(data).read, "x"):
            assert batch.kind == LINES
            total += batch.size
            found += [(at, line) for at, line in enumerate(batch.data.split(b"\n"), start=batch.first) if line]
    assert found == expected
    assert total == len(data)


@given(st.lists(st.integers(0, 30), max_size=8), st.integers(1, 9))
def test_a_row_that_is_too_long_is_one_bad_row(lengths: list[int], size: int) -> None:
    data = b"".join(b"x" * length + b"\n" for length in lengths)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "LONGEST_ROW", 10)
        patch.setattr(inputs, "BATCH_BYTES", size)
        read: dict[int, str] = {}
        for batch in line_batches(io.BytesIO(data).read, "x"):
            if batch.kind == TOO_LONG:
                assert read.setdefault(batch.first, "too long") == "too long"
            for at, line in enumerate(batch.data.split(b"\n"), start=batch.first):
                if line:
                    assert read.setdefault(at, line.decode()) == "x" * lengths[at - 1]
    assert set(read) == {at for at, length in enumerate(lengths, start=1) if length}
    assert all(read[at] == "too long" for at, length in enumerate(lengths, start=1) if length > 10 + size)
    assert all(read[at] != "too long" for at, length in enumerate(lengths, start=1) if 0 < length <= 10)


def test_memory_is_that_of_a_batch(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    path.write_bytes(b'{"out": "' + b"x" * 500 + b'"}\n' + (b"y" * 9_999 + b"\n") * 4_000)
    tracemalloc.start()
    try:
        assert sum(batch.data.count(b"\n") for batch in read_batches(str(path), ["out"])) == 4_001
        assert tracemalloc.get_traced_memory()[1] < 8 * BATCH_BYTES
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("ending", ["jsonl.gz", "jsonl.zst"])
def test_members_one_behind_the_other(tmp_path: Path, ending: str) -> None:
    path = write_log(tmp_path / f"log.{ending}", 30)
    path.write_bytes(path.read_bytes() * 2)
    assert b"".join(batch.data for batch in read_batches(str(path), ["out"])).count(b"\n") == 60


def test_a_file_that_is_no_parquet(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    path.write_bytes(b'{"out": 1}\n')
    with pytest.raises(BadFile, match=r"log\.parquet: .*not a Parquet file") as failure:
        list(read_batches(str(path), ["out"]))
    assert "\n" not in str(failure.value)


def test_directories_and_patterns(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("b.jsonl", "a.parquet", "notes.txt", "deep/c.jsonl.gz"):
        (tmp_path / name).write_bytes(b"")
    below = [os.path.join(tmp_path, name) for name in ("a.parquet", "b.jsonl", "deep/c.jsonl.gz")]
    assert expand([str(tmp_path)]) == below
    assert expand([f"{tmp_path}/*.jsonl", "-", "absent"]) == [below[1], "-", "absent"]
    for nothing in (f"{tmp_path}/*.csv", str(tmp_path / "empty")):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(BadFile, match="no file"):
            expand([nothing])


def test_a_column_that_is_missing(tmp_path: Path) -> None:
    import pyarrow.parquet as parquet

    path = tmp_path / "x.parquet"
    parquet.write_table(pyarrow.table({"a": [1], "b": ["x"]}), path)
    with pytest.raises(BadFile, match=r"no column 'out\.text'; it has 'a', 'b'"):
        list(read_batches(str(path), ["out.text"]))
