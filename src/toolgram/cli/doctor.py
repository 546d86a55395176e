"""`toolgram doctor`: report whether a named format reads what a chat template writes.

Strategy: the file of outputs has on each line a text as JSON, or a row with one. Any other file is one output.
"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from toolgram.cli.deriving import DeriveOptions
from toolgram.cli.options import TEMPLATE, Bos, Eos, FormatOption, Grammar, Json, Machine, Variant, load_required_format
from toolgram.cli.source import pieces
from toolgram.cli.templates import read_template
from toolgram.cli.terminal import NOTHING_USABLE, USABLE, write_json

FIELDS = ("output", "text", "content", "completion")  # of a row, in the order in which they are looked for


def doctor(
    template: Annotated[str, TEMPLATE],
    format_name: FormatOption = None,
    grammar: Grammar = None,
    machine: Machine = None,
    outputs: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Outputs of the model, which the format and the template should agree on: a JSON text or a row with "
            "`output` on each line, or one output as it is.",
        ),
    ] = None,
    bos: Bos = None,
    eos: Eos = None,
    variant: Variant = None,
    as_json: Json = False,
) -> int:
    """Say whether a format reads what a chat template writes.

    If it does not, say which one does.

    \b
    toolgram doctor tokenizer_config.json --format hermes
    toolgram doctor chat_template.jinja --format qwen3_coder --outputs outputs.jsonl

    Exit status: 0 it reads all; 1 it does not, or a file cannot be read; 2 a mistake in the command.
    """
    fmt = load_required_format(format_name, grammar, machine, "say which format is meant: --format NAME")
    from toolgram.derive.doctor import diagnose

    texts = outputs_in("".join(pieces(outputs))) if outputs is not None else []
    derived = DeriveOptions(bos, eos).derive(read_template(template, variant)).format
    found = diagnose(fmt, derived, texts)
    if as_json:
        write_json(found.to_dict(), indent=2)
    else:
        print(found)
    return USABLE if found.ok else NOTHING_USABLE


def outputs_in(text: str) -> list[str]:
    """Return the outputs in a file: a JSON text or a row on each line, or the whole file as one output."""
    found: list[str] = []
    for line in filter(str.strip, text.splitlines()):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            return [text]
        values = [row] if not isinstance(row, dict) else [row.get(name) for name in FIELDS]
        output = next((value for value in values if isinstance(value, str)), None)
        if output is None:
            return [text]
        found.append(output)
    return found
