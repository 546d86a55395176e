"""Numbers between bounds as expressions over their digits, at any size.

Strategy: digits are compared with both bounds at once, from the left. A bound binds as long as all digits so far are
its own; after a larger digit (or a smaller one) it binds no more. Whole numbers are written for each count of digits;
digits that a fraction lacks are zeros. Below zero the bounds are mirrored. Numbers with bounds have no exponents.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from toolgram.export.expressions import EMPTY, NOTHING, Class, Expr, Lit, Repeat, choice, optional, seq

_ANY = Class(((48, 57),))
_TAIL = Repeat(_ANY, 0, None)  # any further digits
_ZEROS = Repeat(Class(((48, 48),)), 0, None)
_NOT_ZERO = seq(_TAIL, Class(((49, 57),)), _TAIL)  # further digits that are not all zero
_FREE = optional(seq(Lit("."), _ANY, _TAIL))  # any fraction


class Bound(NamedTuple):
    """The digits of a bound that are still to be compared, and whether the bound itself is excluded."""

    digits: str
    excluded: bool = False


def _by_digit(low: Bound | None, high: Bound | None, further: Callable[[Bound | None, Bound | None], Expr]) -> Expr:
    """Return the next digit between bounds, None if one binds no more, with what `further` returns for the rest."""
    least = int(low.digits[:1] or 0) if low else 0
    most = int(high.digits[0]) if high else 9
    runs = [(least, least)] if low and least <= most else []
    runs += [(least + bool(low), most - bool(high))]
    runs += [(most, most)] if high and (least < most or not low) else []
    options: list[Expr] = []
    for first, last in runs:
        if first <= last:
            here = Lit(str(first)) if first == last else Class(((48 + first, 48 + last),))
            after_low = low and first == least and low._replace(digits=low.digits[1:])
            after_high = high and last == most and high._replace(digits=high.digits[1:])
            options.append(seq(here, further(after_low or None, after_high or None)))
    return choice(*options)


# --- whole numbers ------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
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
    size = len(str(low))
    if high is None:
        longer = seq(Class(((49, 57),)), Repeat(_ANY, size, None))
        return choice(_natural(low, 10**size - 1), longer)
    options: list[Expr] = []
    for length in range(size, len(str(high)) + 1):
        least, most = max(low, 10 ** (length - 1) if length > 1 else 0), min(high, 10**length - 1)
        if least <= most:
            options.append(_counted(Bound(str(least)), Bound(str(most)), length))
    return choice(*options)


def _counted(low: Bound | None, high: Bound | None, count: int) -> Expr:
    """Return so many digits between two bounds."""
    low = low if low and low.digits.strip("0") else None
    high = high if high and high.digits.strip("9") else None
    if low is None and high is None:
        return Repeat(_ANY, count, count) if count else EMPTY
    return _by_digit(low, high, lambda low, high: _counted(low, high, count - 1))


# --- numbers with a fraction --------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def numbers(low: float | None, low_excluded: bool, high: float | None, high_excluded: bool) -> Expr:
    """Return the numbers between two bounds; None means no bound."""
    least, most = _parts(low, low_excluded), _parts(high, high_excluded)
    options = []
    if low is None or low < 0:
        nearest = most if most and high is not None and high < 0 else (0, Bound("", True))
        options.append(seq(Lit("-"), _positive(nearest, least)))
    if high is None or high > 0 or (high == 0 and not high_excluded):
        options.append(_positive(least if least and low is not None and low >= 0 else (0, Bound("")), most))
    return choice(*options)


def _parts(value: float | None, excluded: bool) -> tuple[int, Bound] | None:
    """Return the whole part of a bound without its sign, and its fraction."""
    whole, _, fraction = f"{abs(Decimal(repr(value))):f}".partition(".") if value is not None else ("", "", "")
    return (int(whole), Bound(fraction.rstrip("0"), excluded)) if whole else None


def _positive(low: tuple[int, Bound], high: tuple[int, Bound] | None) -> Expr:
    if high is None:
        return choice(seq(Lit(str(low[0])), _fraction(low[1], None)), seq(_natural(low[0] + 1, None), _FREE))
    if low[0] == high[0]:
        return seq(Lit(str(low[0])), _fraction(low[1], high[1]))
    return choice(
        seq(Lit(str(low[0])), _fraction(low[1], None)) if low[0] < high[0] else NOTHING,
        seq(_natural(low[0] + 1, high[0] - 1), _FREE),
        seq(Lit(str(high[0])), _fraction(None, high[1])) if low[0] < high[0] else NOTHING,
    )


def _fraction(low: Bound | None, high: Bound | None, point: str = ".") -> Expr:
    """Return the digits of a fraction, after its point if that is not written yet; none if none are needed."""
    low = None if low == Bound("") else low
    if high and not high.digits:
        return NOTHING if high.excluded or low else optional(seq(Lit(point + "0"), _ZEROS))
    if high is None and not (low and low.digits):
        return seq(Lit(point), _NOT_ZERO) if low else _FREE if point else _TAIL
    found = seq(Lit(point), _by_digit(low, high, lambda low, high: _fraction(low, high, "")))
    return found if low else optional(found)
