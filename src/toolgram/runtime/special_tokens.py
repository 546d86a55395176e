"""Special tokens by id: a marker that is one counts only if the token was emitted.

Strategy: ids and text come separately, so that each emitted id is counted, and its marker in the text takes one away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolgram.program.state import Program


class EmittedIds:
    """The special tokens that were emitted by id. `unmatched` counts those not yet seen as text; None without ids."""

    __slots__ = ("triggers", "unmatched")

    def __init__(self, triggers: Mapping[int, str], unmatched: dict[str, int] | None = None) -> None:
        self.triggers = triggers
        self.unmatched = unmatched

    def note(self, token_ids: Sequence[int], begun: str, texts: Mapping[str, str]) -> None:
        """Note the special tokens among the ids of a delta. Those of a prompt are unknown: markers in its end, `begun`,
        which is still to be read, are tokens."""
        if self.unmatched is None:
            self.unmatched = {trigger: begun.count(texts[trigger]) for trigger in self.triggers.values()}
        for token_id in token_ids:
            trigger = self.triggers.get(token_id)
            if trigger is not None:
                self.unmatched[trigger] = self.unmatched.get(trigger, 0) + 1

    def was_emitted(self, trigger: str) -> bool:
        """Whether the text of a special token is the token: always if no id is known, else once per emitted id."""
        left = None if self.unmatched is None else self.unmatched.get(trigger)
        if left is None or self.unmatched is None:
            return True
        if left:
            self.unmatched[trigger] = left - 1
        return left > 0


def emitted_ids(program: Program, special_tokens: Mapping[str, int]) -> EmittedIds:
    """No ids yet, of these tokens. A server gives the same tokens for each answer: what was last asked is kept."""
    kept = program.by_id
    if kept is None or kept[0] != special_tokens:
        texts = program.special.items()
        found = {special_tokens[text]: trigger for trigger, text in texts if text in special_tokens}
        kept = program.by_id = (dict(special_tokens), found)
    return EmittedIds(kept[1])
