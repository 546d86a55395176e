"""Every name that people use for a format leads to it, or says why it leads to none."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import toolgram
from tests.cli.running import run
from tests.tables import table
from toolgram.names import KINDS, SERVERS, chosen, for_model, known_names, of_server, template_hint

COUNTS = {("vllm", "tool"): 58, ("vllm", "reasoning"): 42, ("sglang", "tool"): 44, ("sglang", "reasoning"): 36}
UNREAD = {("vllm", "tool"): "hf", ("vllm", "reasoning"): "hf", ("sglang", "tool"): "response_template",
          ("sglang", "reasoning"): "response_template"}  # fmt: skip
SHIPPED = toolgram.format_names()


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_name_of_a_server_is_in_the_file_once_and_resolves_or_says_why_not(server: str, kind: str) -> None:
    listed = [name for entry in known_names().entries.values() for name in entry.parsers[server, kind]]
    listed.append(UNREAD[server, kind])
    assert len(listed) == len(set(listed)) == COUNTS[server, kind]
    for name, entry in known_names().entries.items():
        for alias in (*entry.parsers[server, kind], *entry.also):
            for spelling in (alias, alias.upper(), alias.replace("_", "-")):
                if name in SHIPPED:
                    assert toolgram.get_format(spelling).name == name
                else:
                    with pytest.raises(toolgram.UnknownFormat, match=f"is {name}, which does not ship"):
                        toolgram.get_format(spelling)
    with pytest.raises(toolgram.UnknownFormat, match="is no format: that parser of"):
        toolgram.get_format(UNREAD[server, kind])


def test_the_registries_of_vllm_where_it_is_installed() -> None:
    tools = pytest.importorskip("vllm.tool_parsers", reason="vLLM is not here: make test-vllm installs it")
    listed = {name for entry in known_names().entries.values() for name in entry.parsers["vllm", "tool"]} | {"hf"}
    assert {name for name in tools._TOOL_PARSERS_TO_REGISTER if not name.startswith("toolgram")} == listed


def test_a_server_hands_a_name_over_for_its_format_unless_formats_share_it() -> None:
    for name, entry in known_names().entries.items():
        for parser in {each for kind in KINDS for each in entry.parsers["vllm", kind]}:
            shared = parser in known_names().shared["vllm"] or name not in SHIPPED
            assert of_server("vllm", parser, SHIPPED) == (None if shared else name), parser
    assert of_server("vllm", "llama4_json", SHIPPED) == "llama3_json"
    assert of_server("vllm", "qwen3", SHIPPED) is None, "beside hermes and beside qwen3_coder"
    assert of_server("vllm", "lfm2", SHIPPED) == "lfm2"
    assert of_server("vllm", "unheard_of", SHIPPED) is None
    entries = known_names().entries.values()
    listed = {name for entry in entries for kind in KINDS for name in entry.parsers["vllm", kind]}
    assert set(known_names().shared["vllm"]) <= listed


# Ids as they are on hubs, of quantised copies, in the catalogues of local servers, and as paths.
MODELS: dict[str, list[str]] = json.loads(Path(__file__).with_name("models.json").read_text("utf-8"))
# Models that call no functions, or write them as no format here does.
UNKNOWN = table(__file__, "unknown")


@pytest.mark.parametrize(("model", "name"), [(model, name) for name, models in MODELS.items() for model in models])
def test_the_id_of_a_model_leads_to_its_format_and_says_why(model: str, name: str) -> None:
    fmt = toolgram.get_format(model)
    assert fmt.name == name
    assert "in the id of the model" in fmt.choice
    assert for_model(model, SHIPPED) is not None


@pytest.mark.parametrize("model", UNKNOWN)
def test_a_model_of_none_leads_to_none(model: str) -> None:
    with pytest.raises(toolgram.UnknownFormat):
        toolgram.get_format(model)


def test_an_ambiguous_name_says_what_was_taken_and_why() -> None:
    fmt = toolgram.get_format("mistral")
    assert fmt.name == "mistral_v11"
    assert "mistral_v3" in fmt.choice
    assert toolgram.get_format("mistral_v11").choice == ""
    for name, choice in known_names().ambiguous.items():
        assert choice.format in choice.why, name


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("hermez", "did you mean hermes[?]; .toolgram formats. lists"),
        ("qwen3_xm", "mean qwen3_coder[?];"),
        ("x" * 999, "x…';"),
    ],
)
def test_an_unknown_name_suggests_the_nearest(name: str, near: str) -> None:
    with pytest.raises(toolgram.UnknownFormat, match=near):
        toolgram.get_format(name)


def test_a_name_of_its_own_needs_no_file() -> None:
    code = "import sys, toolgram; toolgram.get_format('hermes'); print('toolgram.names' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


@pytest.mark.parametrize("name", SHIPPED)
def test_a_format_is_found_by_its_own_name_in_an_id(name: str) -> None:
    for joint in ("-", "_", ""):
        assert chosen(name.replace("_", joint), SHIPPED).format == name


def test_a_template_is_a_hint(root: Path) -> None:
    assert template_hint("{{ '<|tool_calls_section_begin|>' }}") == "kimi_k2"
    assert template_hint("<｜tool▁calls▁begin｜>function<｜tool▁sep｜>\n```json") == "deepseek_v3"
    assert template_hint("<｜tool▁calls▁begin｜><｜tool▁sep｜>") == "deepseek_v31"
    assert template_hint("Hello.") is None
    assert {name for name, _ in known_names().templates} <= {*known_names().entries, *SHIPPED}


def test_the_command_finds_the_format_of_a_model(tmp_path: Path) -> None:
    template = tmp_path / "chat.jinja"
    template.write_text("<|tool_calls_section_begin|>", encoding="utf-8")
    for option, given, shown in (
        ("--for", "Qwen/Qwen3-32B", "hermes\t'qwen' in the id of the model\n"),
        ("--for", "granite-20b-fc", "granite_20b_fc\tgranite-20b-fc is a name of it\n"),
        ("--template", template, "kimi_k2\tby its markers; a hint only\n"),
    ):
        result = run("formats", option, given)
        assert (result.exit_code, result.stdout, result.stderr) == (0, shown, "")
    template.write_text("Hello.", encoding="utf-8")
    for option, given, said in (
        ("--for", "hermez", "did you mean hermes"),
        ("--template", tmp_path / "none", ""),
        ("--template", template, "toolgram derive"),
    ):
        result = run("formats", option, given)
        assert (result.exit_code, result.stdout, said in result.stderr) == (1, "", True)


def test_the_command_line_says_what_an_ambiguous_name_was_read_as() -> None:
    result = run("parse", "--format", "mistral", text='[TOOL_CALLS]f[ARGS]{"a": 1}')
    assert result.exit_code == 0
    assert "mistral: read as mistral_v11; " in result.stderr
