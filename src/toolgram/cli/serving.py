"""`toolgram serve`: run the gateway with options.

Strategy: the options are translated here and checked where they are used. The gateway needs packages of an extra, so it
is imported when the command runs.
"""

from __future__ import annotations

import math
import os
import re
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from toolgram import ToolgramError
from toolgram.cli.options import FormatOption, Grammar, Machine, load_chosen_format
from toolgram.cli.terminal import complain, read_file, refuse

_CHOICES = {
    "calls": ("streamed", "whole"),
    "reasoning_key": ("reasoning_content", "reasoning", "reasoning_details", "none"),
    "constrain": ("asked", "always", "never"),
    "special_text": ("neutralise", "refuse"),
    "log_format": ("text", "json", "none"),
    "kind": (None, "llama.cpp", "vllm", "sglang", "ollama", "mlx", "openai"),
}


def serve(
    upstream: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The server that runs the model. Example: --upstream http://127.0.0.1:8080"),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A YAML file with several servers: `models` has a mapping for each name, with upstream, kind, "
            "model_files, gguf, template, format, grammar, machine, upstream_model as the options have them.",
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="llama.cpp, vllm, sglang, ollama, mlx or openai. Default: it is detected."),
    ] = None,
    model_files: Annotated[
        str | None, typer.Option(metavar="DIR", help="The model's directory, with tokenizer_config.json.")
    ] = None,
    gguf: Annotated[str | None, typer.Option(metavar="FILE", help="The model's GGUF file.")] = None,
    template: Annotated[str | None, typer.Option(metavar="FILE", help="A chat template by itself.")] = None,
    format_name: FormatOption = None,
    grammar: Grammar = None,
    machine: Machine = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="The name of the model for clients.")] = None,
    upstream_model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Its name at the server. Default: the first that it lists.")
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; anything but this machine needs TOOLGRAM_API_KEY.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=1, max=65535)] = 8765,
    calls: Annotated[
        str, typer.Option(metavar="HOW", help="streamed: as they are written; whole: when they are complete.")
    ] = "streamed",
    reasoning_key: Annotated[
        str,
        typer.Option(metavar="KEY", help="Of chat completions: reasoning_content, reasoning, reasoning_details, none."),
    ] = "reasoning_content",
    constrain: Annotated[
        str,
        typer.Option(metavar="WHEN", help="Send a grammar: asked (a call or a schema is required), always, never."),
    ] = "asked",
    special_text: Annotated[
        str, typer.Option(metavar="HOW", help="Text of special tokens in a request: neutralise or refuse.")
    ] = "neutralise",
    concurrent: Annotated[int, typer.Option(metavar="N", min=1, help="Answers at the same time.")] = 512,
    seconds: Annotated[float, typer.Option(metavar="N", min=1, help="The longest time for one answer.")] = 1800,
    idle: Annotated[
        float, typer.Option(metavar="N", min=0.1, help="The longest silence of the server, in seconds.")
    ] = 300,
    wait: Annotated[
        float, typer.Option(metavar="N", min=0, show_default="for ever", help="How long a server may take to start.")
    ] = math.inf,
    grace: Annotated[
        float, typer.Option(metavar="N", min=0, help="Seconds that answers have to end, once the process has to.")
    ] = 10,
    record: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Append raw outputs, for `toolgram parse --jsonl output` and `explain`."),
    ] = None,
    log_format: Annotated[
        str, typer.Option(metavar="HOW", help="A line for each answer, without what it says: text, json or none.")
    ] = "text",
    hide_metrics: Annotated[bool, typer.Option("--hide-metrics", help="/metrics needs the key, too.")] = False,
) -> None:
    """Answer OpenAI's and Anthropic's clients for any server.

    The server writes raw text: llama.cpp, Ollama, SGLang, vLLM or any other with a completions endpoint.

    \b
    toolgram serve --upstream http://127.0.0.1:8080                      llama.cpp, which reports its template
    toolgram serve --upstream http://127.0.0.1:11434 --gguf model.gguf   Ollama
    toolgram serve --upstream http://127.0.0.1:8000 --model-files DIR    vLLM, SGLang and others

    toolgram serve --config models.yaml                                  several, by the names of their models

    If TOOLGRAM_API_KEY is set, clients must send it as their key. TOOLGRAM_UPSTREAM_KEY is sent to the servers.

    Exit status: 0 it was ended; 1 a file or a server cannot be used; 2 a mistake in the command.
    """
    options: dict[str, str | None] = {"calls": calls, "reasoning_key": reasoning_key, "constrain": constrain}
    options |= {"special_text": special_text, "log_format": log_format, "kind": kind}
    for option, said in options.items():
        if said not in _CHOICES[option]:
            refuse(f"--{option.replace('_', '-')} is one of {', '.join(filter(None, _CHOICES[option]))}")
    if (upstream is None) == (config is None):
        refuse("choose one: --upstream URL or --config FILE")
    given = {
        "kind": kind, "model_files": model_files, "gguf": gguf, "template": template, "format": format_name,
        "grammar": grammar, "machine": machine, "name": name, "upstream_model": upstream_model,
    }  # fmt: skip
    if config is not None and (ignored := [option for option, value in given.items() if value is not None]):
        refuse(f"--config {config} says for each model what it is: write {', '.join(ignored)} there, not as an option")
    if upstream is not None and not re.match("https?://[^/]", upstream):
        refuse(f"--upstream is an address such as http://127.0.0.1:8080, not {upstream!r}")
    import asyncio

    from toolgram.gateway.answering import Limits
    from toolgram.gateway.observing import log_to_stderr
    from toolgram.gateway.serving import Settings, is_loopback
    from toolgram.gateway.serving import serve as run

    key = os.environ.get("TOOLGRAM_API_KEY") or None
    if key is None and not is_loopback(host):
        refuse(f"listening on {host} lets other machines in: set TOOLGRAM_API_KEY, or listen on 127.0.0.1")
    shared: Any = {
        "host": host, "port": port, "calls": calls, "constrain": constrain, "special_text": special_text,
        "reasoning": None if reasoning_key == "none" else reasoning_key, "record": record, "wait": wait,
        "api_key": key, "hide_metrics": hide_metrics,
        "upstream_key": os.environ.get("TOOLGRAM_UPSTREAM_KEY") or None,
        "limits": Limits(concurrent=concurrent, seconds=seconds, idle=idle, grace=grace),
    }  # fmt: skip
    settings = []
    for each in configured(config) if config is not None else [Upstream(upstream or "", **given)]:
        fmt = load_chosen_format(each.format, each.grammar, each.machine)
        settings.append(Settings(each.upstream, each.kind, each.files(), fmt, each.name, each.upstream_model, **shared))
    if log_format != "none":
        log_to_stderr(log_format == "json")
    with suppress(KeyboardInterrupt):
        asyncio.run(run(settings, complain))


@dataclass(frozen=True)
class Upstream:
    """An upstream server, from the options or from an entry of the file."""

    upstream: str
    kind: str | None = None
    model_files: str | None = None
    gguf: str | None = None
    template: str | None = None
    format: str | None = None
    grammar: str | None = None
    machine: str | None = None
    name: str | None = None
    upstream_model: str | None = None

    def files(self) -> Any:
        """Return the chat template and its tokens, or None if the server reports them. Raises ToolgramError."""
        from toolgram.derive.sources import gguf_source, pretrained_source
        from toolgram.gateway.loading import TemplateFiles, files_of

        if sum(each is not None for each in (self.model_files, self.gguf, self.template)) > 1:
            refuse("choose one: --model-files, --gguf or --template")
        if self.model_files is not None:
            if not Path(self.model_files).is_dir():
                raise ToolgramError(f"--model-files {self.model_files}: there is no such directory")
            return files_of(pretrained_source(self.model_files))
        if self.gguf is not None:
            return files_of(gguf_source(self.gguf))
        return None if self.template is None else TemplateFiles(read_file(self.template, option="--template "))


def configured(path: str) -> list[Upstream]:
    """Return the servers in a YAML file. Raises ToolgramError."""
    try:
        said = yaml.safe_load(read_file(path, option="--config "))
    except (yaml.YAMLError, RecursionError) as error:
        raise ToolgramError(f"--config {path} is not YAML: {error}".replace("<unicode string>", path)) from None
    models = said.get("models") if isinstance(said, dict) else None
    if not isinstance(models, dict) or not models:
        raise ToolgramError(f"--config {path} needs `models`, with a mapping for the name of each model")
    known = [each.name for each in fields(Upstream) if each.name != "name"]
    found = []
    for name, entry in models.items():
        values = entry if isinstance(entry, dict) else {}
        wrong = [key for key, value in values.items() if key not in known or not isinstance(value, str)]
        if wrong or "upstream" not in values:
            what = f"{wrong[0]!r} is not one of them, or its value is not text" if wrong else "upstream is missing"
            raise ToolgramError(f"--config {path}: the model {name} has {', '.join(known)}: {what}")
        found.append(Upstream(**values, name=str(name)))
    return found
