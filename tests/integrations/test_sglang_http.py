"""Every kind of chat request to SGLang's own server, with toolgram's parsers: `make test-sglang`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("tests.integrations.sglang_server")  # first: declares what torchvision asks for when it is imported
pytest.importorskip("sglang", reason="SGLang is not here: `make test-sglang` builds an environment with it")

from tests.integrations.http_matrix import mistakes
from tests.integrations.sglang_fleet import OURS, make_model, serving, try_all, wrong_in_sglang

pytestmark = pytest.mark.filterwarnings("default")


@pytest.mark.parametrize("name", ["Qwen3", "Qwen3-Coder"])  # JSON and tags; `make sglang-http-table` has more
def test_what_the_model_wrote_is_what_clients_hear(name: str, tmp_path: Path) -> None:
    model, trials = make_model(name, tmp_path)
    with serving(model, OURS, tmp_path) as port:
        heard = try_all(port, trials)
    found = mistakes(heard, partial(wrong_in_sglang, specials=model.specials))
    assert not found, "\n".join(found[:20])
    asked = {trial.kind for trial in trials}
    assert asked >= {"auto", "required", "named", "one at a time", "cut off", "an answer as JSON"}
    assert ("malformed" in asked) is (name == "Qwen3")  # between tags, nothing is JSON that could be broken
