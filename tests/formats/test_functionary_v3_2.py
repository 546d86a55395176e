"""Functionary v3.2: `>>>`, a recipient on a line, and what goes to it.

Strategy: as in `test_llama3_json`, each text is asked whole and streamed however it is split; with the prompt's `>>>`
as the prefix, and with all of it in the output.
"""

from __future__ import annotations

from tests.streams import held_after


def test_what_is_held() -> None:
    assert held_after("functionary_v3_2", "a >>") == " >>"
    assert held_after("functionary_v3_2", "a >>> ") == " "
    assert held_after("functionary_v3_2", ">>>get_w") == ">>>get_w"
    assert held_after("functionary_v3_2", ">>>python\nprint(") == ""
    assert held_after("functionary_v3_2", '>>>f\n{"') == ""
