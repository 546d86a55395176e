"""`toolgram vllm`: print the command line of a vLLM server that uses toolgram, and the names of the parsers."""

from __future__ import annotations

from itertools import chain
from typing import Annotated

import typer

import toolgram
from toolgram.cli.options import FormatOption, load_chosen_format
from toolgram.cli.terminal import complain, refuse
from toolgram.integrations import AUTO_NAME, parser_names
from toolgram.integrations.vllm import NOT_OVERRIDABLE, OVERRIDE_VARIABLE, overridden_format
from toolgram.late_imports import install_line
from toolgram.names import KINDS, known_names


def vllm(
    format_name: FormatOption = None,
    override: Annotated[
        str | None, typer.Option(metavar="NAMES", help="vLLM's own parser names that select toolgram's parsers.")
    ] = None,
) -> None:
    """Show how to use toolgram in a vLLM server.

    The command line, and the names of the parsers. Without a format, it follows from the model's tokenizer.

    \b
    toolgram vllm                                 any model with a chat template
    toolgram vllm --format mistral_v11            one format
    toolgram vllm --override llama3_json,mistral  under vLLM's own names
    """
    if override is not None:
        _print_override(override)
        return
    fmt = load_chosen_format(format_name, None, None)
    name = f"{AUTO_NAME}_{fmt.name}" if fmt else AUTO_NAME
    print(f"# in vLLM's environment: {install_line('jinja2')}")
    print(f"vllm serve MODEL --enable-auto-tool-choice --tool-call-parser {name} --reasoning-parser {name}")
    if format_name is None:
        print("\nThe names, for both flags:\n")
        for known, meaning in parser_names().items():
            about = "the format that follows from the tokenizer" if known == AUTO_NAME else _models(meaning)
            print(f"  {known:28} {about}")
        print("\nUnder vLLM's own names: toolgram vllm --override llama3_json,mistral")
        print("A chat template that only the server is given: TOOLGRAM_CHAT_TEMPLATE=FILE vllm serve ...")


def _models(name: str) -> str:
    return ", ".join(toolgram.get_format(name).models)


def _print_override(names: str) -> None:
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    refused = sorted(NOT_OVERRIDABLE.intersection(wanted))
    if refused:
        refuse(f"vLLM adds code of its own to {', '.join(refused)}: use --tool-call-parser toolgram")
    if not wanted:
        refuse("--override needs vLLM's names for parsers, such as llama3_json,mistral")
    known = known_names()
    entries = known.entries.values()
    theirs = {kind: [name for entry in entries for name in entry.parsers["vllm", kind]] for kind in KINDS}
    tools = next(filter(theirs["tool"].__contains__, wanted), AUTO_NAME)
    others = [tools, *(name for name in wanted if name not in theirs["tool"])]  # the rest is for other models
    reasoning = next(filter(theirs["reasoning"].__contains__, others), AUTO_NAME)
    print(f"{OVERRIDE_VARIABLE}={','.join(wanted)} ", end="")
    print(f"vllm serve MODEL --enable-auto-tool-choice --tool-call-parser {tools} --reasoning-parser {reasoning}\n")
    for name in wanted:
        format_name = overridden_format(name)
        print(f"  {name:28} {'the format that follows from the tokenizer' if format_name == 'auto' else format_name}")
        if name not in {*known.shared["vllm"], *chain.from_iterable(theirs.values())}:
            complain(f"vLLM has no parser {name!r} that toolgram knows; the server starts, and says so if it has none")
