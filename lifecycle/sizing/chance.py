"""What a small number of events says about how often they come: exact Poisson bounds by the chi-square distribution."""

from __future__ import annotations

import math
from typing import NamedTuple

_TINY = 1e-300
_SAME = 1e-15


class Bounds(NamedTuple):
    """What an expected number of events lies between, as sure as was asked for."""

    low: float
    high: float


def gamma_share(shape: float, x: float) -> float:
    """The regularised lower incomplete gamma function P(shape, x): how much of a gamma distribution lies below x.

    A series below ``shape + 1`` and a continued fraction above it (Abramowitz and Stegun 6.5.29 and 6.5.31).
    """
    if x <= 0:
        return 0.0
    front = math.exp(shape * math.log(x) - x - math.lgamma(shape))
    if x < shape + 1:
        return min(1.0, front * _series(shape, x))
    return max(0.0, 1.0 - front * _fraction(shape, x))


def _series(shape: float, x: float) -> float:
    term = total = 1 / shape
    n = shape
    while term > total * _SAME:
        n += 1
        term *= x / n
        total += term
    return total


def _fraction(shape: float, x: float) -> float:
    """The continued fraction by Lentz's rule: it is built from the front, until a step changes nothing any more."""
    b = x + 1 - shape
    c, d = 1 / _TINY, 1 / b
    value, i = d, 0
    while True:
        i += 1
        a = -i * (i - shape)
        b += 2
        d = 1 / (a * d + b or _TINY)
        c = b + a / c or _TINY
        value *= c * d
        if abs(c * d - 1) < _SAME:
            return value


def chi_square_quantile(share: float, freedom: float) -> float:
    """The value below which ``share`` (0 to 1, both excluded) of a chi-square distribution lies.

    Wilson and Hilferty's cube gives the first guess; halving what encloses it, guided by Newton's step, the rest.
    """
    shape = freedom / 2
    guess = max(freedom * (1 - 2 / (9 * freedom) + _normal(share) * math.sqrt(2 / (9 * freedom))) ** 3, 1e-8) / 2
    low, high = 0.0, max(2 * guess, 1.0)
    while gamma_share(shape, high) < share:
        low, high = high, 2 * high
    x = min(max(guess, low), high)
    for _ in range(200):
        over = gamma_share(shape, x) - share
        low, high = (low, x) if over > 0 else (x, high)
        slope = math.exp((shape - 1) * math.log(x) - x - math.lgamma(shape))
        step = x - over / slope if slope > _TINY else low
        following = step if low < step < high else (low + high) / 2
        if abs(following - x) <= _SAME * x:
            break
        x = following
    return 2 * x


def _normal(share: float) -> float:
    """Where ``share`` of a normal distribution lies below: good to 5e-4 (Abramowitz and Stegun 26.2.23), as a start."""
    t = math.sqrt(-2 * math.log(min(share, 1 - share)))
    over = t - (2.515517 + 0.802853 * t + 0.010328 * t * t) / (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t**3)
    return over if share > 0.5 else -over


def poisson_bounds(count: int, sure: float = 0.95, *, ends_with_event: bool = False) -> Bounds:
    """Between what the expected number of events lies when ``count`` of them were seen (Garwood 1936).

    Args:
        count: events seen.
        sure: how often such bounds hold at least, 0 to 1.
        ends_with_event: the watch ended with the last event and not at a time of its own: nothing is known of the
            time after it, so the upper bound has two degrees of freedom less.
    """
    rest = (1 - sure) / 2
    low = chi_square_quantile(rest, 2 * count) / 2 if count else 0.0
    freedom = 2 * count if ends_with_event else 2 * count + 2
    if not freedom:
        return Bounds(low, math.inf)
    return Bounds(low, chi_square_quantile(1 - rest, freedom) / 2)
