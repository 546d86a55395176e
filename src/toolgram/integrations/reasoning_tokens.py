"""Count reasoning tokens: from ids if all markers are tokens, else from text."""

from __future__ import annotations

from collections.abc import Sequence

from toolgram.events import Reasoning
from toolgram.integrations.served import BLOCK, Served


class TokenCounter:
    """Counts reasoning tokens in a growing list of generated ids, each id once."""

    def __init__(self, served: Served, prefix: str | None, opened: bool) -> None:
        self._served = served
        self._inside = opened
        self._done = self._count = 0
        self._held = 0  # tokens that may be part of a marker
        fmt = served.fmt
        by_text = fmt is not None and served.reasons and not served.counts_by_id
        self._parser = fmt.parser(prefix=prefix, keep_message=False) if fmt is not None and by_text else None

    def count(self, token_ids: Sequence[int]) -> int:
        """Return how many of these ids are reasoning, without markers; those already counted are skipped."""
        fresh = token_ids[self._done :]
        if self._parser is not None:
            self._by_text(fresh)
        elif self._served.counts_by_id:
            self._by_id(fresh)
        self._done = max(self._done, len(token_ids))
        return self._count

    def _by_id(self, token_ids: Sequence[int]) -> None:
        starts, ends = self._served.start_ids, self._served.end_ids
        inside, count = self._inside, self._count
        for number in token_ids:
            if inside and number not in starts and number not in ends:
                count += 1
            inside = number not in ends if inside else number in starts
        self._inside, self._count = inside, count

    def _by_text(self, token_ids: Sequence[int]) -> None:
        marks = {text[0] for text in (*self._served.start_texts, *self._served.ends)}
        for begin in range(0, len(token_ids), BLOCK):
            block = token_ids[begin : begin + BLOCK]
            text = self._served.decode(block)
            if marks.isdisjoint(text):
                self._feed(text, len(block))
            else:
                for number in block:
                    self._feed(self._served.decode([number]), 1)

    def _feed(self, text: str, tokens: int) -> None:
        assert self._parser is not None
        events = self._parser.feed(text)
        self._held += tokens
        if any(type(event) is Reasoning for event in events):
            self._count += self._held
            self._held = 0
        elif self._parser.state not in self._served.reasoning_states:
            self._held = 0  # a marker, or something else
