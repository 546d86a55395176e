"""What may follow free text: the characters with which that begins, where all of it is fixed texts.

Strategy: one walk over the expression, with what follows each part.  Engines that are told so look at fewer tokens
where a text may end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from toolgram.export.expressions import Break, Choice, Expr, Lit, Seq, Star, Text, children

_Begins = frozenset[str] | None  # characters; None for anything that is no fixed text


@dataclass
class Following:
    """The characters that follow each text; None where something else may follow. The end of the output is none."""

    texts: dict[Text, _Begins] = field(default_factory=dict)
    _begins: dict[Expr, tuple[_Begins, bool]] = field(default_factory=dict)
    _seen: set[tuple[Expr, _Begins]] = field(default_factory=set)

    def walk(self, expr: Expr, after: _Begins) -> None:
        """Note what follows the texts inside an expression that `after` follows."""
        if (expr, after) in self._seen:
            return
        self._seen.add((expr, after))
        match expr:
            case Text():
                behind = frozenset(expr.closer[0]) if expr.closer else after
                self.texts[expr] = _joined(self.texts.get(expr, frozenset()), behind)
            case Seq():
                for part in reversed(expr.parts):
                    self.walk(part, after)
                    begins, may_be_empty = self._begin(part)
                    after = _joined(begins, after) if may_be_empty else begins
            case Choice():
                for option in expr.options:
                    self.walk(option, after)
            case Star():
                self.walk(expr.body, _joined(self._begin(expr.body)[0], after))
            case _:
                for child in children(expr):
                    self.walk(child, None)

    def _begin(self, expr: Expr) -> tuple[_Begins, bool]:
        """With what an expression begins, and whether it may be empty."""
        if expr not in self._begins:
            self._begins[expr] = self._beginning(expr)
        return self._begins[expr]

    def _beginning(self, expr: Expr) -> tuple[_Begins, bool]:
        match expr:
            case Lit():
                return frozenset(expr.text[:1]), not expr.text
            case Break():
                return frozenset(), True
            case Seq():
                begins: _Begins = frozenset()
                for part in expr.parts:
                    found, may_be_empty = self._begin(part)
                    begins = _joined(begins, found)
                    if not may_be_empty:
                        return begins, False
                return begins, True
            case Choice():
                pairs = [self._begin(option) for option in expr.options]
                return _joined(frozenset(), *(each for each, _ in pairs)), any(empty for _, empty in pairs)
            case Star():
                return self._begin(expr.body)[0], True
        return None, True


def _joined(*sets: _Begins) -> _Begins:
    found: frozenset[str] = frozenset()
    for each in sets:
        if each is None:
            return None
        found |= each
    return found


def characters_behind_texts(root: Expr) -> dict[Text, _Begins]:
    """The characters that follow each text of whole outputs; None where something else may follow."""
    following = Following()
    following.walk(root, frozenset())
    return following.texts
