"""Errors of bulk parsing: a row or a file cannot be read."""

from __future__ import annotations

from toolgram.errors import ToolgramError
from toolgram.late_imports import install_line


class BadRow(Exception):
    """The row has no output text that can be read; the message gives the reason."""


class BadFile(ToolgramError):
    """A file cannot be read or written; the message names it and gives the reason, on one line."""


class BadTarget(BadFile):
    """A file that a run would write must not be written, because something would be lost. Nothing was opened."""


class MissingPackage(ToolgramError):
    """An optional package is needed for this; the message shows how to install it."""


def missing(package: str, needed_for: str) -> MissingPackage:
    """Return the error for a package that is not installed."""
    return MissingPackage(f"{needed_for} needs {package}, which is not installed: {install_line(package)}")
