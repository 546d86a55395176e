"""`toolgram audit` on logs of vLLM's own parsers: it finds what is wrong with an answer, and nothing else.

What a made case means is written down in `cases.py`, so what is wrong with an answer is known without the audit.
"""

from itertools import islice
from pathlib import Path

import pytest

pytest.importorskip("vllm.parser", reason="vLLM is not installed here: `make test-vllm` builds an environment with it")

from tests.audit.vllm_logs import REAL, Logged, Trial, made, recorded, write
from tests.integrations.vllm_heard import Heard
from tests.json_prefix import value_of
from toolgram.audit import audit
from toolgram.audit.comparing import compare
from toolgram.audit.served import served
from toolgram.formats import get_format

pytestmark = pytest.mark.filterwarnings("default")

KINDS = {"lost", "invented", "wrong arguments", "cut off"}


def is_wrong(heard: Heard, trial: Trial) -> bool:
    """Whether a call is lost, invented, another one, or looks complete and was cut off.

    Of a call that was cut off, any beginning of its arguments will do that cannot be taken for the whole.
    """
    for (name, arguments), (wanted, expected, status) in zip(heard.calls, trial.calls, strict=False):
        got = value_of(arguments)
        same = got == value_of(expected) if status == "complete" else not isinstance(got, dict)
        if name != wanted or not same:
            return True
    return len(heard.calls) != len(trial.calls)


def found_in(logged: Logged, name: str) -> set[str]:
    """The kinds of what the audit finds in a row."""
    (answer,) = served(logged.row)
    return {finding.kind for finding in compare(answer, get_format(name)).findings}


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "llama3_json", "mistral_v11", "llama4_pythonic"])
def test_what_is_wrong_with_an_answer_is_found(name: str, tmp_path: Path) -> None:
    rows = list(made(name, tmp_path))
    assert len(rows) > 20
    for each in rows:
        if each.trial.finish == "length" and len(each.heard.calls) < len(each.trial.calls):
            continue  # which says no more than that there are fewer calls: whole ones may be lost as well
        found = found_in(each, name) & KINDS
        assert bool(found) == (not each.heard.error and is_wrong(each.heard, each.trial)), (each.row, found)


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
