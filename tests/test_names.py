"""Every name that people use for a format leads to it, or says why it leads to none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import toolgram
from toolgram.cli.app import app
from toolgram.names import KINDS, SERVERS, chosen, for_model, known_names, of_server, template_hint

COUNTS = {("vllm", "tool"): 58, ("vllm", "reasoning"): 42, ("sglang", "tool"): 44, ("sglang", "reasoning"): 36}
UNREAD = {("vllm", "tool"): "hf", ("vllm", "reasoning"): "hf", ("sglang", "tool"): "response_template",
          ("sglang", "reasoning"): "response_template"}  # fmt: skip
SHIPPED = toolgram.format_names()


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_name_of_a_server_is_in_the_file_once(server: str, kind: str) -> None:
    listed = [name for entry in known_names().entries.values() for name in entry.parsers[server, kind]]
    listed.append(UNREAD[server, kind])
    assert len(listed) == len(set(listed)) == COUNTS[server, kind]


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_name_of_a_server_resolves_or_says_why_not(server: str, kind: str) -> None:
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
    listed = {
        name for entry in known_names().entries.values() for kind in KINDS for name in entry.parsers["vllm", kind]
    }
    assert set(known_names().shared["vllm"]) <= listed


# Ids as they are on hubs, of quantised copies, in the catalogues of local servers, and as paths.
MODELS = {
    "apertus": ["swiss-ai/Apertus-8B-Instruct-2509"],
    "apriel": ["ServiceNow-AI/Apriel-1.6-15b-Thinker"],
    "cohere_command3": [
        "CohereLabs/c4ai-command-r7b-12-2024",
        "CohereLabs/c4ai-command-a-03-2025",
        "CohereLabs/command-a-reasoning-08-2025",
    ],
    "cohere_command4": ["CohereLabs/command-a-plus-05-2026", "CohereLabs/North-Mini-Code-1.0"],
    "deepseek_r1": [
        "allenai/Olmo-3-7B-Think",
        "allenai/Olmo-3-32B-Think",
        "allenai/Olmo-3.1-32B-Think",
        "Hcompany/Holo2-8B",
    ],
    "deepseek_v3": [
        "deepseek-ai/DeepSeek-V3",
        "deepseek-ai/DeepSeek-V3-0324",
        "unsloth/DeepSeek-V3-0324-GGUF",
        "deepseek-ai/DeepSeek-R1",
        "deepseek-ai/DeepSeek-R1-Distill-Llama-70B",
        "bartowski/DeepSeek-R1-Distill-Qwen-14B-GGUF",
        "deepseek-ai/DeepSeek-R1-0528",
        "deepseek-ai/DeepSeek-R1-Zero",
        "deepseek-ai/DeepSeek-V2.5-1210",
        "deepseek-ai/DeepSeek-Prover-V2-671B",
        "tngtech/DeepSeek-TNG-R1T2-Chimera",
        "deepseek-ai/DeepSeek-R1-0528-Qwen3-8B",
    ],
    "deepseek_v31": [
        "deepseek-ai/DeepSeek-V3.1",
        "deepseek-ai/DeepSeek-V3.1-Terminus",
        "unsloth/DeepSeek-V3.1-GGUF/DeepSeek-V3.1-UD-Q2_K_XL.gguf",
        "deepseek-ai/DeepSeek-V3.2-Exp",
        "deepcogito/cogito-v2-preview-llama-70B",
        "deepcogito/cogito-v2-preview-deepseek-671B-MoE",
    ],
    "deepseek_v32": ["deepseek-ai/DeepSeek-V3.2", "deepseek-ai/DeepSeek-V3.2-Speciale"],
    "deepseek_v4": ["deepseek-ai/DeepSeek-V4-Flash"],
    "deepseek_v41": ["deepseek-ai/DeepSeek-V4.1"],
    "dots": ["rednote-hilab/dots.llm1.inst"],
    "ernie45": ["baidu/ERNIE-4.5-21B-A3B-Thinking", "unsloth/ERNIE-4.5-21B-A3B-Thinking-GGUF"],
    "functionary_v3_2": ["meetkai/functionary-small-v3.2", "meetkai/functionary-medium-v3.2"],
    "functiongemma": ["google/functiongemma-270m-it"],
    "gemma4": ["google/gemma-4-31B-it", "unsloth/gemma-4-26b-a4b-it-GGUF"],
    "gigachat3": ["ai-sage/GigaChat3-10B-A1.8B", "ai-sage/GigaChat3.1-10B-A1.8B-GGUF"],
    "gigachat35": ["ai-sage/GigaChat3.5-20B"],
    "glm4": ["THUDM/glm-4-9b-chat", "THUDM/GLM-4-32B-0414", "THUDM/GLM-4-9B-0414"],
    "glm45": [
        "zai-org/GLM-4.5-Air-FP8",
        "unsloth/GLM-4.6-GGUF",
        "QuantTrio/GLM-4.6-AWQ",
        "zai-org/GLM-4.5V",
        "zai-org/GLM-4.6V-Flash",
        "mlx-community/GLM-4.5-Air-4bit",
    ],
    "glm47": [
        "zai-org/GLM-4.7-Flash",
        "zai-org/GLM-5",
        "zai-org/GLM-5.1-FP8",
        "hf.co/unsloth/GLM-4.7-Flash-GGUF:Q4_K_M",
    ],
    "gpt_oss": [
        "openai/gpt-oss-120b",
        "unsloth/gpt-oss-20b-GGUF",
        "ggml-org/gpt-oss-20b-GGUF",
        "gpt-oss:20b",
        "openai/gpt-oss-safeguard-20b",
        "lmstudio-community/gpt-oss-20b-MLX-8bit",
    ],
    "granite_20b_fc": ["ibm-granite/granite-20b-functioncalling"],
    "granite_3": ["ibm-granite/granite-3.3-8b-instruct", "ibm-granite/granite-3.1-8b-instruct-GGUF"],
    "hermes": [
        "Qwen/Qwen2.5-7B-Instruct",
        "Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4",
        "Qwen/Qwen2.5-Coder-32B-Instruct-AWQ",
        "Qwen/Qwen2-7B-Instruct",
        "Qwen/Qwen3-32B-FP8",
        "Qwen/Qwen3-235B-A22B-Thinking-2507",
        "Qwen/Qwen3-Next-80B-A3B-Instruct",
        "Qwen/Qwen3-VL-8B-Instruct",
        "Qwen/Qwen3-Omni-30B-A3B-Instruct",
        "Qwen/QwQ-32B",
        "mlx-community/Qwen3-30B-A3B-4bit",
        "/models/Qwen3-8B-Q4_K_M.gguf",
        "qwen3:8b",
        "qwen2.5-coder:7b-instruct",
        "NousResearch/Hermes-3-Llama-3.1-8B",
        "NousResearch/Hermes-2-Pro-Llama-3-8B",
        "NousResearch/Hermes-2-Pro-Mistral-7B",
        "NousResearch/Hermes-4-70B",
        "NousResearch/Hermes-4-405B-FP8",
        "NousResearch/Nous-Hermes-2-Mixtral-8x7B-DPO",
        "NousResearch/DeepHermes-3-Llama-3-8B-Preview",
        "XiaomiMiMo/MiMo-VL-7B-RL",
        "XiaomiMiMo/MiMo-7B-RL",
        "ibm-granite/granite-4.0-h-small",
        "LGAI-EXAONE/EXAONE-4.0-32B",
        "arcee-ai/Trinity-Mini",
        "speakleash/Bielik-11B-v3.0-Instruct",
        "HuggingFaceTB/SmolLM3-3B",
    ],
    "hunyuan_a13b": [
        "tencent/Hunyuan-A13B-Instruct",
        "tencent/Hunyuan-7B-Instruct",
        "unsloth/Hunyuan-A13B-Instruct-GGUF",
    ],
    "hy_v3": ["tencent/Hy3-preview"],
    "hy_v4": ["tencent/HY4"],
    "inkling": ["thinkingmachines/Inkling"],
    "internlm2": ["internlm/internlm2_5-7b-chat", "internlm/internlm3-8b-instruct", "internlm/Intern-S1-mini"],
    "iquest_q1": ["IQuest/IQuest-Q1"],
    "jamba": [
        "ai21labs/AI21-Jamba-1.7-Mini",
        "ai21labs/Jamba-v0.1",
        "ai21labs/AI21-Jamba-Reasoning-3B",
        "ServiceNow-AI/Apriel-1.5-15b-Thinker",
        "unsloth/Apriel-1.5-15b-Thinker-GGUF",
    ],
    "k2_horizon": ["LLM360/K2-Horizon"],
    "kimi_k2": [
        "moonshotai/Kimi-K2-Instruct-0905",
        "moonshotai/Kimi-K2-Thinking",
        "moonshotai/Kimi-K2.5",
        "unsloth/Kimi-K2-Thinking-GGUF",
        "moonshotai/Kimi-Linear-48B-A3B-Instruct",
        "/models/my_Kimi_K2_tuned",
    ],
    "kimi_k3": ["moonshotai/Kimi-K3"],
    "kimi_vl": ["moonshotai/Kimi-VL-A3B-Thinking-2506"],
    "lfm2": ["LiquidAI/LFM2-1.2B-Tool", "LiquidAI/LFM2.5-1.2B-Instruct-GGUF", "LiquidAI/LFM2-8B-A1B"],
    "ling3": ["inclusionAI/Ling-3.0-flash"],
    "llama3_json": [
        "nvidia/Llama-3.1-Nemotron-Nano-8B-v1",
        "meta-llama/Llama-3.1-8B-Instruct",
        "meta-llama/Meta-Llama-3.1-70B-Instruct",
        "unsloth/Llama-3.2-3B-Instruct-bnb-4bit",
        "bartowski/Llama-3.3-70B-Instruct-GGUF",
        "llama3.1:8b",
        "llama3.3",
        "meetkai/functionary-small-v3.1",
        "bartowski/functionary-v3.1-GGUF",
    ],
    "llama4_pythonic": [
        "meta-llama/Llama-4-Scout-17B-16E-Instruct",
        "Team-ACE/ToolACE-2-Llama-3.1-8B",
        "Team-ACE/ToolACE-8B",
    ],
    "longcat": ["meituan-longcat/LongCat-Flash-Chat", "meituan-longcat/LongCat-Flash-Thinking-2601-FP8"],
    "mimo": ["XiaomiMiMo/MiMo-V2-Flash", "XiaomiMiMo/MiMo-V2.5-Pro"],
    "minicpm3": ["openbmb/MiniCPM3-4B"],
    "minicpm5": ["openbmb/MiniCPM5-1B"],
    "minimax_m1": ["MiniMaxAI/MiniMax-M1-80k"],
    "minimax_m2": ["MiniMaxAI/MiniMax-M2.1", "cyankiwi/MiniMax-M2-AWQ-4bit", "MiniMaxAI/MiniMax-M2.7"],
    "minimax_m3": ["MiniMaxAI/MiniMax-M3"],
    "mistral_v11": [
        "mistralai/Mistral-Small-3.1-24B-Instruct-2503",
        "mistralai/Mistral-Small-3.2-24B-Instruct-2506",
        "mistralai/Ministral-3-14B-Reasoning-2512",
        "mistralai/Magistral-Small-2509",
        "mistralai/Devstral-Small-2507",
        "mistralai/Devstral-2-123B-Instruct-2512",
        "mistralai/Mistral-Large-3-675B-Instruct-2512",
        "mistralai/Voxtral-Small-24B-2507",
    ],
    "mistral_v3": [
        "mistralai/Mistral-7B-Instruct-v0.3",
        "mistralai/Mistral-Nemo-Instruct-2407",
        "mistralai/Mixtral-8x7B-Instruct-v0.1",
        "mistralai/Mixtral-8x22B-Instruct-v0.1",
        "mistralai/Mistral-Large-Instruct-2411",
        "mistralai/Mistral-Large-Instruct-2407",
        "mistralai/Mistral-Small-Instruct-2409",
        "mistralai/Mistral-Small-24B-Instruct-2501",
        "mistralai/Ministral-8B-Instruct-2410",
        "mistralai/Pixtral-12B-2409",
        "mistralai/Pixtral-Large-Instruct-2411",
    ],
    "muse": ["facebook/Muse-Spark-1.1"],
    "nemotron_v2": [
        "nvidia/NVIDIA-Nemotron-Nano-9B-v2",
        "nvidia/NVIDIA-Nemotron-Nano-12B-v2-VL-FP8",
        "nvidia/Llama-3_3-Nemotron-Super-49B-v1_5",
    ],
    "olmo3": ["allenai/Olmo-3-7B-Instruct", "allenai/Olmo-3.1-32B-Instruct"],
    "phi4_mini": [
        "microsoft/Phi-4-mini-instruct",
        "unsloth/Phi-4-mini-instruct-GGUF",
        "fireworks-ai/llama-3-firefunction-v2",
    ],
    "plamo3": ["pfnet/plamo-3-nict-8b-base"],
    "poolside_v1": ["poolside/Laguna-XS.2"],
    "qwen3_coder": [
        "Qwen/Qwen3-Coder-480B-A35B-Instruct",
        "unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF",
        "lmstudio-community/Qwen3-Coder-Next-GGUF",
        "Qwen/Qwen3.5-397B-A17B",
        "Qwen/Qwen3.6-27B",
        "C:\\models\\Qwen3-Coder-30B-A3B-Instruct-Q5_K_M.gguf",
        "qwen3-coder:30b",
        "stepfun-ai/Step-3.5-Flash",
        "stepfun-ai/Step-3.7",
        "openbmb/MiniCPM-V-4_5",
        "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
        "unsloth/Nemotron-3-Nano-30B-A3B-GGUF",
        "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8",
        "ibm-granite/granite-4.2-8b",
        "nanbeige/Nanbeige4-3B-Thinking",
    ],
    "seed_oss": ["ByteDance-Seed/Seed-OSS-36B-Instruct", "unsloth/Seed-OSS-36B-Instruct-GGUF"],
    "solar_open": ["upstage/Solar-Open-100B"],
    "spark25": ["iflytek/Spark-2.5"],
    "step3": ["stepfun-ai/step3", "stepfun-ai/Step3-VL-10B"],
    "step5": ["stepfun-ai/Step-5"],
    "xlam": [
        "Salesforce/Llama-xLAM-2-8b-fc-r",
        "Salesforce/xLAM-2-32b-fc-r",
        "Salesforce/xLAM-1b-fc-r",
        "MadeAgents/Hammer2.1-7b",
    ],
}
# Models that call no functions, or write them as no format here does.
UNKNOWN = [
    "moonshotai/Kimi-Dev-72B",
    "openbmb/MiniCPM4-8B",
    "openbmb/MiniCPM4.1-8B",
    "google/gemma-3-27b-it",
    "microsoft/phi-4",
    "inclusionAI/Ling-mini-2.0",
    "mistralai/Mathstral-7B-v0.1",
    "Menlo/Jan-nano",
]


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


def test_the_last_name_of_a_path_counts() -> None:
    """What stands before it is a folder, or an owner."""
    paths = {
        "/data/llama-3-finetunes/Qwen3-8B": "hermes",
        "D:\\models\\mistral-nemo\\gpt-oss-20b-Q4_K_M.gguf": "gpt_oss",
        "/cache/models--Qwen--Qwen3-Coder-30B-A3B-Instruct/snapshots/1a2b": "qwen3_coder",
        "/models/GLM-4.6/model-00001-of-00092.gguf": "glm45",
        f"/{'folder/' * 60}Kimi-K2-Instruct": "kimi_k2",
    }
    assert {path: toolgram.get_format(path).name for path in paths} == paths


def test_a_text_counts_only_where_a_part_of_an_id_begins() -> None:
    assert for_model("someone/unqwenched-7b", SHIPPED) is None


def test_an_ambiguous_name_says_what_was_taken_and_why() -> None:
    fmt = toolgram.get_format("mistral")
    assert fmt.name == "mistral_v11"
    assert "mistral_v3" in fmt.choice
    assert toolgram.get_format("mistral_v11").choice == ""
    for name, choice in known_names().ambiguous.items():
        assert choice.format in choice.why, name


@pytest.mark.parametrize(
    ("name", "near"),
    [("hermez", "did you mean hermes"), ("qwen3codr", "did you mean"), ("x" * 9_999, "shipped formats")],
)
def test_an_unknown_name_suggests_the_nearest(name: str, near: str) -> None:
    with pytest.raises(toolgram.UnknownFormat, match=near):
        toolgram.get_format(name)


def test_a_name_of_its_own_needs_no_file() -> None:
    code = "import sys, toolgram; toolgram.get_format('hermes'); print('toolgram.names' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "False"


@pytest.mark.parametrize("name", SHIPPED)
def test_a_format_is_found_by_its_own_name_in_an_id(name: str) -> None:
    for joint in ("-", "_", ""):
        found = chosen(name.replace("_", joint), SHIPPED)
        assert found.format == name


def test_a_template_is_a_hint(root: Path) -> None:
    assert template_hint("{{ '<|tool_calls_section_begin|>' }}") == "kimi_k2"
    assert template_hint("<｜tool▁calls▁begin｜>function<｜tool▁sep｜>\n```json") == "deepseek_v3"
    assert template_hint("<｜tool▁calls▁begin｜><｜tool▁sep｜>") == "deepseek_v31"
    assert template_hint("Hello.") is None
    known = {*known_names().entries, *SHIPPED}
    assert {name for name, _ in known_names().templates} <= known


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["formats", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_the_command_finds_the_format_of_a_model(tmp_path: Path) -> None:
    assert run("--for", "Qwen/Qwen3-32B") == (0, "hermes\t'qwen' in the id of the model\n", "")
    assert run("--for", "granite-20b-fc") == (0, "granite_20b_fc\tgranite-20b-fc is a name of it\n", "")
    status, shown, said = run("--for", "hermez")
    assert (status, shown) == (1, "")
    assert "did you mean hermes" in said
    template = tmp_path / "chat.jinja"
    template.write_text("<|tool_calls_section_begin|>", encoding="utf-8")
    assert run("--template", str(template)) == (0, "kimi_k2\tby its markers; a hint only\n", "")
    assert run("--template", str(tmp_path / "none"))[0] == 1
    template.write_text("Hello.", encoding="utf-8")
    assert "toolgram derive" in run("--template", str(template))[2]


def test_the_command_line_says_what_an_ambiguous_name_was_read_as() -> None:
    result = CliRunner().invoke(app, ["parse", "--format", "mistral"], input='[TOOL_CALLS]f[ARGS]{"a": 1}')
    assert result.exit_code == 0
    assert "mistral: read as mistral_v11; " in result.stderr
