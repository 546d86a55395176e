"""Files become batches: every line once, in order and with its number, however the file is cut and compressed.

Of a file that is cut off or damaged, every row before the damage is answered, and the damage is said.
"""

import gzip
import io
import os
import tracemalloc
import zlib
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bulk.logs import packed, read_answers, rows, run, write_log
from toolgram.bulk import inputs
from toolgram.bulk.errors import BadFile
from toolgram.bulk.inputs import LINES, TOO_LONG, Decompressed, expand, gzip_blocks, line_batches, read_batches
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


COUNT = 2_990
ENDINGS = ("jsonl.gz", "jsonl.zst")
DAMAGED = "the compressed data is damaged or cut off"


def by_hand(path: Path) -> bytes:
    """What a decompressor gives that reads a byte at a time and keeps all that it got."""
    found = b""
    with suppress(OSError, zlib.error):
        if path.suffix == ".gz":
            member = zlib.decompressobj(31)
            for byte in path.read_bytes():
                found += member.decompress(bytes([byte]))
        else:
            stream = pyarrow.input_stream(_ByteByByte(path.read_bytes()), compression="zstd")
            while byte_found := stream.read(1):
                found += byte_found
    return found


class _ByteByByte(io.BytesIO):
    def read(self, size: int | None = -1) -> bytes:
        return super().read(1)


def read(path: Path) -> tuple[bytes, str]:
    """The rows of a file, and what is said of it."""
    found, said = b"", ""
    try:
        for batch in read_batches(str(path), ["out"]):
            found += batch.data
    except BadFile as error:
        said = str(error)
    return found, said


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("ending", ENDINGS)
def test_half_a_file(tmp_path: Path, ending: str, workers: int) -> None:
    log, out = write_log(tmp_path / f"log.{ending}", COUNT), tmp_path / "out.jsonl"
    log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])
    expected = by_hand(log).count(b"\n")
    assert expected > COUNT // 5
    outcome = run(log, output=out, workers=workers)
    answers = read_answers(out)
    assert [answer["line"] for answer in answers] == list(range(1, expected + 1))
    assert [answer["id"] for answer in answers] == list(range(expected))
    assert (outcome.summary.rows, outcome.summary.bad) == (expected, 0)
    assert [*map(str, outcome.problems)] == [f"{log}: cannot be read from line {expected + 1} on: {DAMAGED}"]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("share", [0.03, 0.31, 0.77, 0.99])
@pytest.mark.parametrize("damage", ["cut", "zeros"])
def test_all_that_a_decompressor_finds(tmp_path: Path, ending: str, share: float, damage: str) -> None:
    log = write_log(tmp_path / f"log.{ending}", COUNT)
    data = bytearray(log.read_bytes())
    at = int(len(data) * share)
    data[at : at + 40] = bytes(40)
    log.write_bytes(data if damage == "zeros" else data[:at])
    found, said = read(log)
    recovered = by_hand(log)
    if said:
        assert found == recovered[: recovered.rfind(b"\n") + 1], "the whole lines"
    else:  # the frames of this zstd have no check sums, so some damage cannot be seen
        assert (ending, damage) == ("jsonl.zst", "zeros")


@pytest.mark.parametrize("missing", [1, 4, 8])
def test_only_the_end_of_gzip_is_missing(tmp_path: Path, missing: int) -> None:
    log = write_log(tmp_path / "log.jsonl.gz", 10)
    data = gzip.decompress(log.read_bytes())
    log.write_bytes(gzip.compress(data.rstrip(b"\n"))[:-missing])
    found, said = read(log)
    assert found == data.rstrip(b"\n"), "the last row is whole without its line end"
    assert said.endswith(f"cannot be read from line 11 on: {DAMAGED}")


def test_a_wrong_check_sum(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.jsonl.gz", 500)
    data = bytearray(log.read_bytes())
    data[-8] ^= 1
    log.write_bytes(data)
    found, said = read(log)
    assert found.count(b"\n") == 500
    assert "from line 501 on" in said


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_row_that_is_cut_is_none(tmp_path: Path, ending: str) -> None:
    log = tmp_path / f"log.{ending}"
    for last in (b'{"out": "half', b"12", b"[1]"):
        whole = b'{"out": "whole"}\n'
        log.write_bytes(packed(log, whole + last) + packed(log, b'{"out": "lost"}\n')[:12])
        assert read(log) == (whole, f"{log}: cannot be read from line 2 on: {DAMAGED}")


@pytest.mark.parametrize("ending", ENDINGS)
def test_nothing_to_decompress(tmp_path: Path, ending: str) -> None:
    log = tmp_path / f"log.{ending}"
    assert read(log) == (b"", f"{log}: cannot be read: No such file or directory")
    for data in (b"", b"plain text", b"\x1f"):
        log.write_bytes(data)
        assert read(log) == (b"", f"{log}: cannot be read: {DAMAGED}" if data else "")


@given(st.lists(st.binary(max_size=300_000), max_size=3), st.integers(0, 20), st.integers(0, 400), st.data())
def test_gzip_is_read_as_the_library_reads_it(parts: list[bytes], zeros: int, cut: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 1_000_000))
    file = b"".join(gzip.compress(part, mtime=0) + bytes(zeros) for part in parts)
    blob = file[: max(0, len(file) - cut)] if cut else file
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("builtins.open", lambda path, mode: io.BytesIO(blob))
        stream = Decompressed(gzip_blocks("x.gz"))
        found = b""
        while block := stream.read(size):
            assert len(block) <= size
            found += block
    try:
        assert found == gzip.decompress(blob)
    except (OSError, EOFError, zlib.error):
        assert stream.error is not None
        assert b"".join(parts).startswith(found)
    else:
        assert stream.error is None


def test_much_in_little(tmp_path: Path) -> None:
    """Blanks compress to a thousandth; no more than a block of them is held."""
    log = tmp_path / "log.jsonl.gz"
    line = b'{"out": "' + b" " * 3_000_000 + b'"}\n'
    log.write_bytes(gzip.compress(line * 5))
    assert read(log) == (line * 5, "")
    log.write_bytes(log.read_bytes()[:-1_000])
    assert read(log)[0] == line * 4


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_next_file_is_read(tmp_path: Path, ending: str) -> None:
    damaged = write_log(tmp_path / f"a.{ending}", COUNT)
    damaged.write_bytes(damaged.read_bytes()[:-100])
    whole = write_log(tmp_path / f"b.{ending}", 5)
    outcome = run(damaged, whole, output=tmp_path / "out.jsonl")
    answers = read_answers(tmp_path / "out.jsonl")
    assert [answer["id"] for answer in answers if answer["file"] == str(whole)] == [row["id"] for row in rows(5)]
    assert len(outcome.problems) == 1
