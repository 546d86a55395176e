"""The page of the command line says what the commands say."""

from __future__ import annotations

from tests.help_page import PAGE, help_page


def test_the_page_is_the_help_of_each_command() -> None:
    assert PAGE.read_text(encoding="utf-8") == help_page(), "write it again: python -m tests.help_page"
