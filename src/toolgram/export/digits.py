"""Numbers between bounds as expressions over their digits, at any size.

Strategy: numbers with the same number of digits are compared digit by digit from the left, so a bound is a chain: after
a digit that is already smaller (or larger), any digits may follow; after an equal digit, the rest of the chain. Below
zero the bounds are mirrored. Numbers with bounds are written without exponents.
"""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from toolgram.export.expressions import EMPTY, NOTHING, Class, Expr, Lit, Repeat, choice, optional, seq

_ANY = Class(((48, 57),))
_TAIL = Repeat(_ANY, 0, None)  # any further digits
_ZEROS = Repeat(Class(((48, 48),)), 0, None)
_NOT_ZERO = seq(_TAIL, Class(((49, 57),)), _TAIL)  # further digits that are not all zero


def _digits(low: int, high: int) -> Expr:
    if low > high:
        return NOTHING
    return Lit(str(low)) if low == high else Class(((48 + low, 48 + high),))


def _some(count: int) -> Expr:
    return EMPTY if not count else Repeat(_ANY, count, count)


# --- whole numbers ------------------------------------------------------------------------------------------------


def integers(low: int | None, high: int | None) -> Expr:
    """Return the whole numbers from `low` to `high`, both included; None means no bound."""
    options = []
    if low is None or low < 0:
        least = 1 if high is None or high >= 0 else -high
        options.append(seq(Lit("-"), _natural(least, None if low is None else -low)))
    if high is None or high >= 0:
        options.append(_natural(max(low or 0, 0), high))
    return choice(*options)


def _natural(low: int, high: int | None) -> Expr:
    """Return the numbers between two bounds that are 0 or more."""
    if high is not None and low > high:
        return NOTHING
    options: list[Expr] = []
    size = len(str(low))
    if high is None:
        options.append(_between(str(low), "9" * size))
        options.append(seq(Class(((49, 57),)), Repeat(_ANY, size, None)))
        return choice(*options)
    for length in range(size, len(str(high)) + 1):
        first = max(low, 10 ** (length - 1) if length > 1 else 0)
        options.append(_between(str(first), str(min(high, 10**length - 1))))
    return choice(*options)


def _between(low: str, high: str) -> Expr:
    """Return the numbers between two bounds that have the same number of digits."""
    same = 0
    while same < len(low) and low[same] == high[same]:
        same += 1
    if same == len(low):
        return Lit(low)
    left = len(low) - same - 1
    begin, end = int(low[same]), int(high[same])
    return seq(
        Lit(low[:same]),
        choice(
            seq(Lit(low[same]), _from(low[same + 1 :])),
            seq(_digits(begin + 1, end - 1), _some(left)),
            seq(Lit(high[same]), _up_to(high[same + 1 :])),
        ),
    )


def _from(low: str) -> Expr:
    if not low.strip("0"):
        return _some(len(low))
    return choice(seq(Lit(low[0]), _from(low[1:])), seq(_digits(int(low[0]) + 1, 9), _some(len(low) - 1)))


def _up_to(high: str) -> Expr:
    if not high.strip("9"):
        return _some(len(high))
    return choice(seq(_digits(0, int(high[0]) - 1), _some(len(high) - 1)), seq(Lit(high[0]), _up_to(high[1:])))


# --- numbers with a fraction --------------------------------------------------------------------------------------


class Bound(NamedTuple):
    """A bound that is not negative: its whole part, the digits of its fraction, and whether it is excluded."""

    whole: int
    fraction: str
    excluded: bool


def _bound(value: float, excluded: bool) -> Bound:
    number = Decimal(repr(value))
    whole, _, fraction = f"{abs(number):f}".partition(".")
    return Bound(int(whole), fraction.rstrip("0"), excluded)


def numbers(low: float | None, low_excluded: bool, high: float | None, high_excluded: bool) -> Expr:
    """Return the numbers between two bounds; None means no bound."""
    options = []
    least = None if low is None else _bound(low, low_excluded)
    most = None if high is None else _bound(high, high_excluded)
    if low is None or low < 0:
        above_zero = Bound(0, "", True)
        nearest = most if most is not None and high is not None and high < 0 else above_zero
        options.append(seq(Lit("-"), _positive(nearest, least)))
    if high is None or high > 0 or (high == 0 and not high_excluded):
        zero = Bound(0, "", False)
        options.append(_positive(least if least is not None and low is not None and low >= 0 else zero, most))
    return choice(*options)


def _positive(low: Bound, high: Bound | None) -> Expr:
    at_low = seq(_natural(low.whole, low.whole), _fraction_from(low.fraction, low.excluded))
    free = optional(seq(Lit("."), _ANY, _TAIL))
    if high is None:
        return choice(at_low, seq(_natural(low.whole + 1, None), free))
    if (low.whole, low.fraction) > (high.whole, high.fraction):
        return NOTHING
    if low.whole == high.whole:
        whole = Lit(str(low.whole))
        if low.fraction == high.fraction:
            exact = seq(Lit("."), Lit(low.fraction), _ZEROS) if low.fraction else optional(seq(Lit(".0"), _ZEROS))
            return NOTHING if low.excluded or high.excluded else seq(whole, exact)
        at_once = EMPTY if not low.fraction and not low.excluded else NOTHING
        inner = _fraction_between(low.fraction, low.excluded, high.fraction, high.excluded)
        return seq(whole, choice(at_once, seq(Lit("."), inner)))
    return choice(
        at_low,
        seq(_natural(low.whole + 1, high.whole - 1), free),
        seq(Lit(str(high.whole)), _fraction_up_to(high.fraction, high.excluded)),
    )


def _fraction_from(low: str, excluded: bool) -> Expr:
    """Return a fraction with its point, which is optional if no fraction is needed."""
    if low:
        return seq(Lit("."), _tail_from(low, excluded))
    return seq(Lit("."), _NOT_ZERO) if excluded else optional(seq(Lit("."), _ANY, _TAIL))


def _tail_from(low: str, excluded: bool) -> Expr:
    if not low:
        return _NOT_ZERO if excluded else _TAIL
    return choice(seq(_digits(int(low[0]) + 1, 9), _TAIL), seq(Lit(low[0]), _tail_from(low[1:], excluded)))


def _fraction_up_to(high: str, excluded: bool) -> Expr:
    if high:
        return optional(seq(Lit("."), _tail_up_to(high, excluded)))
    return NOTHING if excluded else optional(seq(Lit(".0"), _ZEROS))


def _tail_up_to(high: str, excluded: bool) -> Expr:
    """Return the digits after the point up to a bound; a number with fewer digits is smaller."""
    smaller = seq(_digits(0, int(high[0]) - 1), _TAIL)
    rest = high[1:]
    if rest:
        return choice(smaller, seq(Lit(high[0]), optional(_tail_up_to(rest, excluded))))
    return choice(smaller, NOTHING if excluded else seq(Lit(high[0]), _ZEROS))


def _fraction_between(low: str, low_excluded: bool, high: str, high_excluded: bool) -> Expr:
    begin, end = int(low[:1] or 0), int(high[0])
    if begin == end:
        inner = _fraction_between(low[1:], low_excluded, high[1:], high_excluded)
        return seq(Lit(high[0]), inner if low[1:] or low_excluded else optional(inner))
    rest = high[1:]
    up_to = optional(_tail_up_to(rest, high_excluded)) if rest else NOTHING if high_excluded else _ZEROS
    return choice(
        seq(Lit(str(begin)), _tail_from(low[1:], low_excluded)),
        seq(_digits(begin + 1, end - 1), _TAIL),
        seq(Lit(high[0]), up_to),
    )
