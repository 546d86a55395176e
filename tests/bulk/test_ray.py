"""A real Ray cluster of two processes on this machine: the same rows as in one process, and nothing lost.

`make test-ray` builds the environment in which this runs.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bulk.logs import read_answers, run, text_of, write_log
from toolgram.bulk import inputs, parse_batch, running
from toolgram.bulk.parts import Parts

ray = pytest.importorskip("ray", reason="Ray is not installed here: `make test-ray` builds an environment")
pytestmark = pytest.mark.filterwarnings("default")

COUNT, BAD = 2_000, (7, 1_300)


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "BATCH_BYTES", 20_000)


@pytest.mark.parametrize("source", ["in.jsonl", "in.jsonl.gz", "in.jsonl.zst", "in.parquet"])
@pytest.mark.parametrize("target", ["out.jsonl", "out.parquet"])
def test_the_rows_of_one_process(tmp_path: Path, source: str, target: str) -> None:
    log = write_log(tmp_path / source, COUNT, BAD)
    alone = run(log, output=tmp_path / f"alone.{target}")
    together = run(log, output=tmp_path / target, ray=True)
    assert read_answers(tmp_path / target) == read_answers(tmp_path / f"alone.{target}")
    assert together.summary == alone.summary
    assert together.summary.rows == COUNT


def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write_log(tmp_path / "in.jsonl", COUNT, BAD)
    run(log, output=tmp_path / "alone.jsonl")
    killed, answer_batch = tmp_path / "killed", running.answer_batch

    def deadly(job: bytes, batch: Any) -> Any:
        if batch.first > 500 and not killed.exists():
            killed.write_text("once")
            os.kill(os.getpid(), signal.SIGKILL)
        return answer_batch(job, batch)

    monkeypatch.setattr(running, "answer_batch", deadly)
    run(log, output=tmp_path / "out.jsonl", ray=True)
    assert killed.exists()
    assert read_answers(tmp_path / "out.jsonl") == read_answers(tmp_path / "alone.jsonl")


def test_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write_log(tmp_path / "in.jsonl", COUNT, BAD)
    run(log, output=tmp_path / "alone.jsonl")
    written: list[str] = []
    again: list[str] = []
    add = Parts.add

    def add_some(self: Parts, name: str, answer: Any) -> None:
        if len(written) == 5:
            raise KeyboardInterrupt
        written.append(name)
        add(self, name, answer)

    def add_others(self: Parts, name: str, answer: Any) -> None:
        again.append(name)
        add(self, name, answer)

    monkeypatch.setattr(Parts, "add", add_some)
    with pytest.raises(KeyboardInterrupt):
        run(log, output=tmp_path / "out.jsonl", ray=True)
    monkeypatch.setattr(Parts, "add", add_others)
    run(log, output=tmp_path / "out.jsonl", ray=True, resume=True)
    assert again
    assert not {*again} & {*written}
    assert read_answers(tmp_path / "out.jsonl") == read_answers(tmp_path / "alone.jsonl")


def test_a_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl.gz").write_bytes(b"plain")
    outcome = run(tmp_path / "in.jsonl.gz", output=tmp_path / "out.jsonl", ray=True)
    assert len(outcome.problems) == 1
    assert "in.jsonl.gz: cannot be read" in str(outcome.problems[0])


def test_map_batches() -> None:
    texts = [text_of(number) for number in range(COUNT)]
    expected = parse_batch({"text": texts}, format="hermes")
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    dataset = ray.data.from_items([{"text": text} for text in texts], override_num_blocks=4)
    for batch_format in ("numpy", "pyarrow", "pandas"):
        found = dataset.map_batches(parse_batch, batch_format=batch_format, fn_kwargs={"format": "hermes"}).take_all()
        assert [row["content"] for row in found] == expected["content"]
        assert [[call["arguments"] for call in row["tool_calls"]] for row in found] == [
            [call["arguments"] for call in calls] for calls in expected["tool_calls"]
        ]


def test_datasets_map() -> None:
    datasets = pytest.importorskip("datasets")
    texts = [text_of(number) for number in range(100)]
    found = datasets.Dataset.from_dict({"text": texts}).map(parse_batch, batched=True, fn_kwargs={"format": "hermes"})
    expected = parse_batch({"text": texts}, format="hermes")
    assert found["content"][:] == expected["content"]
    assert [[call["name"] for call in calls] for calls in found["tool_calls"]] == [
        [call["name"] for call in calls] for calls in expected["tool_calls"]
    ]
