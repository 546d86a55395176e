"""The targets of an export, one row each. To add a target, write its module and add its row here.

A row names the function that writes the grammar, says which special tokens the target can name, and has the notes for
what the target cannot express.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from toolgram.export.bnf import GbnfWriter
from toolgram.export.ebnf import EbnfWriter
from toolgram.export.expressions import Expr, Note
from toolgram.export.lark import LlguidanceWriter
from toolgram.export.structural_tag import structural_tag

_in_angle_brackets = re.compile(r"<[^<>\[\]\s]+>").fullmatch


@dataclass(frozen=True, slots=True)
class ExportTarget:
    """How a grammar is written for one engine or in one notation."""

    write: Callable[[Expr, Note, bool], str]  # the last says whether limits on the length of a text must hold
    can_name_token: Callable[[str], object]  # whether it can name the special token with this text, without an id
    tokens_as_text: bool = True  # whether a special token also fits where its text does
    note_without_triggers: str = ""  # for formats in which no call begins with a fixed text


TARGETS: dict[str, ExportTarget] = {
    "llguidance": ExportTarget(
        lambda root, note, lengths: LlguidanceWriter(note, lengths).write(root),
        _in_angle_brackets,
        tokens_as_text=False,
    ),
    "xgrammar": ExportTarget(structural_tag, bool),  # the same rules as EBNF, and it can name tokens
    "structural_tag": ExportTarget(structural_tag, bool),
    "gbnf": ExportTarget(
        lambda root, note, lengths: GbnfWriter(note, lengths).write(root),
        _in_angle_brackets,
        note_without_triggers="no call can come first here, so this grammar is for whole outputs and not for lazy use",
    ),
    "ebnf": ExportTarget(lambda root, note, lengths: EbnfWriter(note, lengths).write(root), lambda text: False),
}
