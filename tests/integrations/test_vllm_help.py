"""`toolgram vllm`: the command line of a server, and the names."""

from __future__ import annotations

import pytest

import toolgram
from toolgram.cli.vllm_help import vllm


@pytest.mark.filterwarnings("ignore:Setuptools is replacing distutils")  # of setuptools, when it looks for pip
def test_the_command_line_of_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    vllm(None, None)
    said = capsys.readouterr().out
    assert "--enable-auto-tool-choice --tool-call-parser toolgram --reasoning-parser toolgram\n" in said
    assert [name for name in toolgram.format_names() if f"toolgram_{name} " not in said] == []
    vllm("hermes", None)
    assert "--tool-call-parser toolgram_hermes --reasoning-parser toolgram_hermes\n" in capsys.readouterr().out


def test_vllms_own_names(capsys: pytest.CaptureFixture[str]) -> None:
    vllm(None, "llama3_json, mistral,pythonic")
    said = capsys.readouterr().out
    assert said.startswith("TOOLGRAM_VLLM_OVERRIDE=llama3_json,mistral,pythonic vllm serve MODEL")
    assert said.split()[-1] == "llama4_pythonic"


def test_a_name_that_vllm_does_not_have_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    vllm(None, "llama3_json,hermess,qwen3")
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "hermess" in said


@pytest.mark.parametrize(("format_name", "override"), [("nothing", None), (None, "kimi_k3"), (None, " , ")])
def test_mistakes_are_one_line_and_status_2(
    format_name: str | None, override: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises((SystemExit, RuntimeError)) as caught:
        vllm(format_name, override)
    status = getattr(caught.value, "code", getattr(caught.value, "exit_code", None))
    assert status == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
