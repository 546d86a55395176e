"""`toolgram audit` on logs of vLLM's own parsers: it finds what is wrong with an answer, and nothing else.

What a made case means is written down in `cases.py`, so what is wrong with an answer is known without the audit.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

pytest.importorskip("vllm.parser", reason="vLLM is not installed here: `make test-vllm` builds an environment with it")

from tests.audit.vllm_logs import REAL, Logged, made, recorded, write
from tests.integrations.compare import problem
from toolgram.audit import audit
from toolgram.audit.comparing import compare
from toolgram.audit.served import served
from toolgram.formats import get_format

pytestmark = pytest.mark.filterwarnings("default")

OF_CALLS = {"call lost", "call invented", "wrong name", "wrong arguments", "cut-off call looks complete"}
KINDS = {"lost", "invented", "wrong arguments", "cut off"}


def found_in(logged: Logged, name: str) -> set[str]:
    """The kinds of what the audit finds in a row."""
    (answer,) = served(logged.row)
    return {finding.kind for finding in compare(answer, get_format(name)).findings}


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "llama3_json", "mistral_v11", "llama4_pythonic"])
def test_what_is_wrong_with_an_answer_is_found(name: str, tmp_path: Path) -> None:
    rows = list(made(name, tmp_path))
    assert len(rows) > 20
    for each in rows:
        told = set(problem(each.heard, each.trial).split(", "))
        if "cut-off call lost" in told:
            continue  # which says no more than that there are fewer calls: whole ones may be lost as well
        wrong, found = told & OF_CALLS, found_in(each, name) & KINDS
        assert bool(found) == bool(wrong), (each.row, wrong, found)


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "llama3_json", "mistral_v11", "llama4_pythonic"])
def test_nothing_is_found_in_the_answers_of_toolgrams_own_parsers(name: str, tmp_path: Path) -> None:
    own = f"toolgram_{name}"
    for each in made(name, tmp_path, (own, own)):
        assert not found_in(each, name), each.row


@pytest.mark.skipif(not REAL.exists(), reason="needs the real outputs in ../shared, which are absent")
def test_recorded_outputs(tmp_path: Path) -> None:
    """The format is recognised; of Hermes' outputs the parser of vLLM loses those in Python's quotes."""
    found = audit([write(tmp_path / "log.jsonl", list(islice(recorded("hermes", tmp_path), 60)))])
    assert set(found.formats.values()) == {"hermes"}
    assert found.total["answers"] == 60
    assert all(found.total[kind] for kind in ("lost", "markers", "wrong arguments"))
