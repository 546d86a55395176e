"""`toolgram serve`: the gateway, from options.

Strategy: the options are translated here and checked where they are used. The gateway needs packages of an extra, so it
is imported when the command runs.
"""

from __future__ import annotations

import os
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from toolgram import Format, ToolgramError
from toolgram.cli.options import FormatOption, Grammar, Machine, load_chosen_format
from toolgram.cli.terminal import complain, refuse


@dataclass
class ServeOptions:
    """The options of the command."""

    upstream: str
    kind: str | None
    model_files: str | None
    gguf: str | None
    template: str | None
    fmt: Format | None
    name: str | None
    upstream_model: str | None
    host: str
    port: int
    calls: str
    reasoning_key: str
    constrain: str
    special_text: str
    concurrent: int
    seconds: float
    record: str | None


_CHOICES = {
    "calls": ("streamed", "whole"),
    "reasoning_key": ("reasoning_content", "reasoning", "reasoning_details", "none"),
    "constrain": ("asked", "always", "never"),
    "special_text": ("neutralise", "refuse"),
}


def serve(
    upstream: Annotated[
        str,
        typer.Option(metavar="URL", help="The server that runs the model. Example: --upstream http://127.0.0.1:8080"),
    ],
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="KIND", help="What it is: llama.cpp, vllm, sglang, ollama, mlx, openai. Found out where not given."
        ),
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
        str | None,
        typer.Option(metavar="NAME", help="Its name at the server; the first that the server lists, where not given."),
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
        typer.Option(
            metavar="KEY",
            help="Where chat completions have reasoning: reasoning_content, reasoning, reasoning_details, none.",
        ),
    ] = "reasoning_content",
    constrain: Annotated[
        str,
        typer.Option(metavar="WHEN", help="Send a grammar: asked (a call or a schema is required), always, never."),
    ] = "asked",
    special_text: Annotated[
        str,
        typer.Option(metavar="HOW", help="Text of special tokens in a request: neutralise or refuse."),
    ] = "neutralise",
    concurrent: Annotated[int, typer.Option(metavar="N", min=1, help="Answers at the same time.")] = 512,
    seconds: Annotated[float, typer.Option(metavar="N", min=1, help="The longest time for one answer.")] = 1800,
    record: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Append raw outputs, for `toolgram parse --jsonl output` and `explain`."),
    ] = None,
) -> None:
    """Answer OpenAI's and Anthropic's clients for any server.

    The server writes raw text: llama.cpp, Ollama, SGLang, vLLM or any other with a completions endpoint.

    \b
    toolgram serve --upstream http://127.0.0.1:8080                      llama.cpp, which says its template itself
    toolgram serve --upstream http://127.0.0.1:11434 --gguf model.gguf   Ollama
    toolgram serve --upstream http://127.0.0.1:8000 --model-files DIR    vLLM, SGLang and others

    TOOLGRAM_API_KEY is the key that clients must have, TOOLGRAM_UPSTREAM_KEY the one for the server behind.
    """
    fmt = load_chosen_format(format_name, grammar, machine)
    options = ServeOptions(
        upstream, kind, model_files, gguf, template, fmt, name, upstream_model, host, port, calls, reasoning_key,
        constrain, special_text, concurrent, seconds, record,
    )  # fmt: skip
    raise typer.Exit(run_gateway(options))


def run_gateway(options: ServeOptions) -> int:
    """Serve until the process is told to end; the exit status."""
    for name, known in _CHOICES.items():
        if getattr(options, name) not in known:
            refuse(f"--{name.replace('_', '-')} is one of {', '.join(known)}")
    sources = [each for each in (options.model_files, options.gguf, options.template) if each is not None]
    if len(sources) > 1:
        refuse("choose one: --model-files, --gguf or --template")
    try:
        import asyncio

        from toolgram.gateway.serving import serve
    except ModuleNotFoundError as error:
        refuse(f"serve needs {error.name}, which is not installed: pip install 'toolgram[serve]'")
    try:
        _run(asyncio.run, serve(_settings(options), complain))
    except (ToolgramError, OSError) as error:
        complain(str(error))
        return 1
    except KeyboardInterrupt:
        return 0
    return 0


def _run(run: Any, work: Coroutine[Any, Any, None]) -> None:
    run(work)


def _text_of(path: str) -> str:
    """A template by itself. Raises ToolgramError where it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ToolgramError(f"--template {path} cannot be read: {error}") from None


def _settings(options: ServeOptions) -> Any:
    from toolgram.derive.sources import gguf_source, pretrained_source
    from toolgram.gateway.answering import Limits
    from toolgram.gateway.loading import TemplateFiles, files_of
    from toolgram.gateway.serving import Settings

    files = None
    if options.model_files is not None:
        if not Path(options.model_files).is_dir():
            raise ToolgramError(f"--model-files {options.model_files}: there is no such directory")
        files = files_of(pretrained_source(options.model_files))
    elif options.gguf is not None:
        files = files_of(gguf_source(options.gguf))
    elif options.template is not None:
        files = TemplateFiles(_text_of(options.template))
    return Settings(
        options.upstream,
        options.kind,
        files,
        options.fmt,
        options.name,
        options.upstream_model,
        options.host,
        options.port,
        os.environ.get("TOOLGRAM_API_KEY") or None,
        os.environ.get("TOOLGRAM_UPSTREAM_KEY") or None,
        Limits(concurrent=options.concurrent, seconds=options.seconds),
        options.calls,  # type: ignore[arg-type]  # checked above
        None if options.reasoning_key == "none" else options.reasoning_key,
        options.constrain,  # type: ignore[arg-type]
        options.special_text,  # type: ignore[arg-type]
        options.record,
    )
