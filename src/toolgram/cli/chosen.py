"""The format that a command is about: one that ships, by name, or two files of one's own."""

from __future__ import annotations

import toolgram
from toolgram.cli.terminal import refuse


def chosen_format(name: str | None, grammar: str | None, machine: str | None) -> toolgram.Format | None:
    """Load it, or None where nothing was chosen. What cannot be loaded is a mistake in the command."""
    if name is not None and (grammar is not None or machine is not None):
        refuse("choose one: FORMAT, or --grammar X.lark --machine X.yaml")
    if (grammar is None) != (machine is None):
        refuse("a format is two files: --grammar and --machine go together")
    try:
        if grammar is not None and machine is not None:
            return toolgram.load_format(grammar, machine)
        return toolgram.get_format(name) if name is not None else None
    except toolgram.ToolgramError as error:
        refuse(str(error))
