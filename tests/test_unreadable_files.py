"""Files of a format that cannot be read, or that import what cannot be read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import toolgram
from tests.own_format import load_own, write_own_format
from toolgram.errors import FormatError

FORMAT = toolgram.get_format("mistral_v11")
TEXTS = FORMAT.grammar_text, FORMAT.machine_text


def _unreadable(folder: Path) -> list[Path]:
    """Paths that are no files to read: none, a device that never ends, a pipe, a long file, bytes."""
    pipe, long, octets = folder / "pipe", folder / "long", folder / "octets"
    os.mkfifo(pipe)
    long.write_bytes(b"#" * (1 << 21))
    octets.write_bytes(b"\xff\xfe")
    return [folder / "none", Path("/dev/zero"), folder, pipe, long, octets]


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    grammar, machine = TEXTS
    good = write_own_format(tmp_path, grammar, machine)
    toolgram.load_format(*good)
    for path in _unreadable(tmp_path):
        for files in ((path, good[1]), (good[0], path)):
            with pytest.raises(FormatError, match=r"cannot be read|is longer than"):
                toolgram.load_format(*files)


def test_an_endless_file_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "zero.lark").symlink_to("/dev/zero")
    with pytest.raises(FormatError, match="not a regular file"):
        load_own(tmp_path, "%import .zero (x)\nstart: x\n", TEXTS[1])


def test_many_imports_are_refused(tmp_path: Path) -> None:
    for number in range(40):
        text = f"%import .f{number + 1} (X)\nY: X X\n" if number < 39 else "X: /a/\n"
        (tmp_path / f"f{number}.lark").write_text(text, encoding="utf-8")
    (tmp_path / "own.yaml").write_text(TEXTS[1], encoding="utf-8")
    with pytest.raises(FormatError, match="more than 32 files"):
        toolgram.load_format(tmp_path / "f0.lark", tmp_path / "own.yaml")


def test_what_a_file_of_another_file_declares_has_no_name(tmp_path: Path) -> None:
    """Lark gives it a name with two prefixes, which no grammar can write."""
    grammar, machine = TEXTS
    (tmp_path / "inner.lark").write_text("text: TEXT\n%declare TEXT\n", encoding="utf-8")
    (tmp_path / "outer.lark").write_text("%import .inner (text)\nbody: text\n", encoding="utf-8")
    with pytest.raises(FormatError, match="TEXT is declared in a file that another imported file imports"):
        load_own(tmp_path, f"%import .outer (body)\n{grammar}", machine)
