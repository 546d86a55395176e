"""`toolgram derive`, as its users meet it: the two files, the template debugger and the template analysis."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

import toolgram
from tests.cli import running
from tests.derive.turns import TEMPLATES
from tests.tables import table
from toolgram.bulk.json_rows import CONTROLS
from toolgram.cli.template_table import COLUMNS
from toolgram.cli.templates import name_for
from toolgram.derive.report import Probe

HERMES = table(__file__, "hermes")
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 3}}\n</tool_call>'
BROKEN = "{% for message in messages %}\n{{ message.content }}\n{% endif %}"
NO_TOOLS = "{% for message in messages %}[{{ message.role }}]{{ message.content }}</s>{% endfor %}[assistant]"
HOSTILE = HERMES.replace("<tool_call>", "<tool_call\x1b[31m>").replace("<|im_end|>", "[red]<|im_end|>\u202e")


def run(*arguments: str | Path, text: str = "", status: int = 0) -> Result:
    """What the command prints, if it ends with this status."""
    result = running.run("derive", *arguments, text=text)
    assert result.exit_code == status, result.output
    return result


@pytest.fixture
def hermes(tmp_path: Path) -> Path:
    place = tmp_path / "hermes.jinja"
    place.write_text(HERMES, encoding="utf-8")
    return place


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What derivation was asked for, call by call."""
    calls: list[dict[str, Any]] = []
    derive_format = toolgram.derive_format

    def record(chat_template: str, **options: Any) -> toolgram.Format:
        calls.append({"chat_template": chat_template, **options})
        return derive_format(chat_template, **options)

    monkeypatch.setattr(toolgram, "derive_format", record)
    return calls


def test_the_files_are_printed_below_their_names(hermes: Path) -> None:
    result = run(hermes)
    assert result.stderr == ""
    grammar, machine = result.stdout.removeprefix("// hermes.lark\n").split("# hermes.yaml\n")
    fmt = toolgram.derive_format(HERMES, name="hermes")
    assert (grammar.strip(), machine.strip()) == (fmt.grammar_text.strip(), fmt.machine_text.strip())


def test_the_files_are_written_and_named_and_loaded_again(hermes: Path, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "formats"
    result = run(hermes, "-o", folder)
    places = [folder / f"hermes.{ending}" for ending in ("lark", "yaml", "report.txt")]
    assert result.stderr == ""
    assert result.stdout.splitlines() == [str(place) for place in places]
    message = toolgram.load_format(places[0], places[1]).parse(f"Adding.\n{CALL}")
    assert message.content == "Adding."
    assert [(call.name, json.loads(call.arguments)) for call in message.tool_calls] == [("add", {"a": 3})]
    report = places[2].read_text(encoding="utf-8")
    assert report.startswith("hermes: the format hermes, which ships")
    assert all(line == line.rstrip() for line in report.splitlines())
    run(hermes, "--name", "mine-1.0", "-o", tmp_path)
    assert toolgram.load_format(tmp_path / "mine-1.0.lark", tmp_path / "mine-1.0.yaml").name == "mine-1.0"


class TestReport:
    def test_tells_findings_with_rule_and_renderings(self, hermes: Path) -> None:
        told = run(hermes, "--report").stdout
        assert re.search(r"\n  tools +json_native\n", told)
        assert re.search(r"per_call_start +'<tool_call>", told)
        section = told[told.index("findings") : told.index("probes: ")]
        assert re.search(r"\n  T1.*\n +rule: .+\n +A .*</tool_call>.*\n +B .*<tool_call>", section)
        assert re.search(r"\n  ok +\S", told[told.index("probes: ") :])
        assert told.index("probes: ") < told.index("// hermes.lark") < told.index("# hermes.yaml")

    def test_tells_what_the_template_refused(self) -> None:
        template = HERMES.replace(
            "{%- for call in",
            "{%- if message.tool_calls and message.content is none %}{{ 1 / 0 }}{% endif %}{%- for call in",
        )
        assert "refused by the template" in run("-", "--report", text=template).stdout

    def test_warnings_come_to_those_who_do_not_ask_for_the_report(self) -> None:
        assert "warning: the template prints no tool calls" in run("-", text=NO_TOOLS).stderr
        told = run("-", "--report", text=NO_TOOLS)
        assert told.stderr == ""
        assert "\nwarnings\n  the template prints no tool calls" in told.stdout

    @pytest.mark.parametrize("options", [(), ("--report",)])
    def test_hostile_text_is_spelled_out(self, options: tuple[str, ...]) -> None:
        result = run("-", *options, text=HOSTILE)
        assert not CONTROLS.search(result.output)
        if options:
            assert r"\x1b[31m" in result.stdout
            assert "[red]" in result.stdout

    def test_findings_of_a_format_that_was_kept_on_disk(self, hermes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        told = run(hermes, "--report").stdout
        fmt = toolgram.derive_format(HERMES, name="hermes")
        assert fmt.report is not None
        kept = toolgram.Format(fmt.spec, fmt.machine_text, replace(fmt.report, analysis=None))
        monkeypatch.setattr(toolgram, "derive_format", lambda *_, **__: kept)
        assert run(hermes, "--report").stdout == told

    def test_tells_which_probes_do_not_come_back(self, hermes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        fmt = toolgram.derive_format(HERMES)
        assert fmt.report is not None
        probes = (Probe("one call", "on", "[red]\x1b[31m", "name \x1b"), *fmt.report.probes)
        warnings = ("one call (on): name \x1b", "odd")
        report = replace(fmt.report, probes=probes, warnings=warnings)
        failing = toolgram.Format(fmt.spec, fmt.machine_text, report)
        monkeypatch.setattr(toolgram, "derive_format", lambda *_, **__: failing)
        told = run(hermes, "--report")
        assert r"FAIL one call, thinking on" in told.stdout
        assert "\nwarnings\n  odd\n\n" in told.stdout
        assert not CONTROLS.search(told.output)
        asked = run(hermes)
        assert asked.stderr.splitlines() == [
            "toolgram: warning: odd",
            f"toolgram: 1 of {len(probes)} probes were not read back exactly; --report shows them",
        ]


class TestTemplates:
    def test_tokenizer_config_has_the_tokens(self, tmp_path: Path, asked: list[dict[str, Any]]) -> None:
        place = tmp_path / "My Model" / "tokenizer_config.json"
        place.parent.mkdir()
        tokens = {"bos_token": {"content": "<s>", "lstrip": False}, "eos_token": "<|im_end|>"}
        place.write_text(json.dumps({"chat_template": HERMES, **tokens}), encoding="utf-8")
        run(place)
        run(place, "--eos", "</s>", "--bos", "")
        assert [(call["bos_token"], call["eos_token"]) for call in asked] == [("<s>", "<|im_end|>"), ("", "</s>")]
        assert (asked[0]["name"], asked[0]["chat_template"]) == ("My_Model", HERMES)

    @pytest.mark.parametrize("as_list", [True, False])
    def test_one_of_several(self, tmp_path: Path, asked: list[dict[str, Any]], as_list: bool) -> None:
        templates = {"default": NO_TOOLS, "tool_use": HERMES}
        listed = [{"name": name, "template": text} for name, text in templates.items()]
        place = tmp_path / "chat_template.json"
        place.write_text(json.dumps({"chat_template": listed if as_list else templates}), encoding="utf-8")
        assert run(place).stderr.startswith("toolgram: the template 'tool_use' of several in that file")
        run(place, "--variant", "default")
        assert [call["chat_template"] for call in asked] == [HERMES, NO_TOOLS]
        missing = run(place, "--variant", "rag", status=1)
        assert "no chat template 'rag'; name one with --variant: default, tool_use" in missing.stderr

    def test_the_folder_of_a_model_and_one_in_the_cache_of_downloads(
        self, tmp_path: Path, asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
        kept = tmp_path / "models--acme--Small-1.5"
        model, current, older = tmp_path / "Qwen3-8B", *(kept / "snapshots" / (each * 20) for each in ("0a", "f0"))
        tokens = {"bos_token": "<s>", "eos_token": "<|im_end|>", "additional_special_tokens": ["<tool_call>"]}
        for folder in (model, current, older):
            folder.mkdir(parents=True)
            (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": HERMES, **tokens}))
        (kept / "refs").mkdir()
        (kept / "refs" / "main").write_text(current.name, encoding="utf-8")
        for named, place in ((model, model), ("acme/Small-1.5", current)):
            assert run(named).stderr.splitlines()[0] == (
                f"toolgram: from {place}: the template 'default' of 1, the first token '<s>', end tokens '<|im_end|>', "
                "1 special tokens"
            )
        assert [call["name"] for call in asked] == ["Qwen3-8B", "Small-1.5"]
        assert {call["special_tokens"] for call in asked} == {("<tool_call>",)}

    @pytest.mark.parametrize("model", ["acme/Other", "../acme", "a/b/c"])
    def test_a_model_that_is_not_there(self, tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.chdir(tmp_path)
        assert run(model, status=1).stderr.strip() == (
            f"toolgram: {model}: cannot be read: no such file or folder, and no such model in {tmp_path / 'cache'}"
            " (see reference/errors/BadFile/)"
        )

    def test_standard_input_is_jinja_or_json(self, asked: list[dict[str, Any]]) -> None:
        run("-", text=HERMES)
        run("-", text=json.dumps({"chat_template": HERMES, "eos_token": "</s>"}))
        assert [call["chat_template"] for call in asked] == [HERMES, HERMES]
        assert asked[1]["eos_token"] == "</s>"

    def test_kwargs_and_strict_are_handed_on(self, hermes: Path, asked: list[dict[str, Any]]) -> None:
        run(hermes, "--kwarg", "enable_thinking=false", "--kwarg", 'x={"a": [1]}', "--strict")
        assert asked[0]["chat_template_kwargs"] == {"enable_thinking": False, "x": {"a": [1]}}
        assert asked[0]["strict"] is True

    @pytest.mark.parametrize(
        ("folder", "tokenizer", "configuration", "name"),
        [
            ("download", {"name_or_path": "Qwen/Qwen3-8B"}, None, "Qwen3-8B"),
            ("download", {"name_or_path": "/tmp/run 3/"}, None, "run_3"),
            ("download", {"name_or_path": 7}, '{"_name_or_path": "acme/Model"}', "Model"),
            ("download", {}, '{"_name_or_path": "acme/Model"}', "Model"),
            ("download", {}, '["no configuration"]', "download"),
            ("download", {}, "[" * 100_000, "download"),
            ("download", {}, None, "download"),
            (f"models--Qwen--Qwen3-8B/snapshots/{'0a' * 20}", {}, None, "Qwen3-8B"),
            (f"models--Qwen--Qwen3-8B/snapshots/{'0a' * 20}", {"name_or_path": "0a" * 20}, None, "Qwen3-8B"),
            ("download", {"name_or_path": ".."}, None, "download"),
            ("download", {"name_or_path": "..\\模型"}, None, "download"),
        ],
    )
    def test_a_file_of_a_model_is_named_after_the_model(
        self, tmp_path: Path, folder: str, tokenizer: dict[str, Any], configuration: str | None, name: str
    ) -> None:
        place = tmp_path / folder
        place.mkdir(parents=True)
        if configuration is not None:
            (place / "config.json").write_text(configuration, encoding="utf-8")
        assert name_for(str(place / "tokenizer_config.json"), tokenizer) == name


def test_a_table_has_a_row_for_each_template(tmp_path: Path) -> None:
    names = ["answer_always", "id_after_arguments", "no_tools", "openai_wrapper", "thinking_opened"]
    for name in names:
        shutil.copy(TEMPLATES / f"{name}.jinja", tmp_path)
    result = run("--table", tmp_path)
    assert result.stderr == ""
    header, *rows = [line.split("\t") for line in result.stdout.splitlines()]
    assert header == list(COLUMNS)
    by_name = {row[0]: dict(zip(COLUMNS, row, strict=True)) for row in rows}
    assert list(by_name) == names
    for name, column, text in table(__file__, "a_table_has_a_row_for_each_template"):
        assert text in by_name[name][column]
    for row in by_name.values():
        assert re.fullmatch(r"\d+/\d+", row["probes"])
        assert row["ms"].isdigit()


def test_a_template_that_fails_has_its_row_and_the_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name, text in {"a": BROKEN, "sub/b": HERMES}.items():
        (tmp_path / f"{name}.jinja").write_text(text, encoding="utf-8")
    result = run("--table", tmp_path, status=1)
    assert result.stderr == "toolgram: 1 of 2 templates give no format\n"
    _, broken, fine = [line.split("\t") for line in result.stdout.splitlines()]
    assert (broken[0], fine[0]) == ("a", "sub/b")
    assert "line 3" in broken[1]
    assert len(broken) == len(fine) == len(COLUMNS)
