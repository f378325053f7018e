"""From scores over the vocabulary to the next token.

``temperature``, ``top_k`` and ``top_p`` take logits and return logits, so that
they can be applied one after the other: what is cut gets −∞, which softmax turns
into the probability 0 exactly. ``sample`` draws, and ``generate`` lets a model go
on writing. Everything works along the last axis, the vocabulary, and keeps the
dtype it is given.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from attnbook.ops import _check_float, _check_whole, softmax

if TYPE_CHECKING or "jaxtyping" in sys.modules:
    from jaxtyping import Float, Int

__all__ = ["generate", "sample", "temperature", "top_k", "top_p"]


def _check_logits(logits: np.ndarray) -> None:
    _check_float(logits=logits)
    if logits.ndim == 0 or logits.shape[-1] == 0:
        raise ValueError(
            f"logits has shape {logits.shape}; it needs a last axis, the vocabulary, "
            f"of at least 1"
        )
    highest = logits.max(axis=-1)
    # NaN is neither below +∞ nor equal to it; the maximum of NaN is NaN.
    if not (highest < np.inf).all():
        raise ValueError(
            "logits must be finite or −∞, but there is +∞ or something that is not "
            "a number among them"
        )
    if np.isneginf(highest).any():
        raise ValueError("logits has a row of −∞ only: no token is left to choose")


def _check_number(**numbers: float | int) -> float:
    """Refuse anything but a finite real number; return it as a plain float."""
    ((name, number),) = numbers.items()
    real = isinstance(number, int | float | np.integer | np.floating)
    if isinstance(number, bool) or not real:
        raise TypeError(
            f"{name} must be a number, but it is {number!r}, a {type(number).__name__}"
        )
    if not np.isfinite(number):
        raise ValueError(f"{name} is {number}; it must be finite")
    # A plain float leaves float32 alone; a NumPy float64 would promote it.
    return float(number)


def temperature(
    logits: Float[np.ndarray, "*B words"], t: float | int
) -> Float[np.ndarray, "*B words"]:
    """Make the choice bolder (t > 1) or safer (t < 1): ``logits / t``.

    At t = 1 nothing changes. As t goes to 0, the largest logit takes everything;
    t = 0 is that limit, *greedy*: the first of the largest logits of a row stays as
    it is and all others get −∞.

    Args:
        logits: scores over the vocabulary, (..., words), float; −∞ is allowed.
        t: temperature, at least 0.

    Returns:
        Logits of the shape and dtype of ``logits``.

    Raises:
        TypeError: ``logits`` is not a floating-point NumPy array, or ``t`` is not
            a number.
        ValueError: ``logits`` has a row without a choice, or NaN or +∞; ``t`` is
            negative or not finite, or so small that no quotient is in reach.

    Ackley, Hinton and Sejnowski 1985, where t is the temperature of a physical
    system. Derived in the chapter on building one.
    """
    _check_logits(logits)
    t = _check_number(t=t)
    if t < 0:
        raise ValueError(f"t is {t}; it must be at least 0")
    if t == 0:
        best = logits.argmax(axis=-1)[..., None]
        places = np.arange(logits.shape[-1])
        return np.where(places == best, logits, logits.dtype.type(-np.inf))
    # Quotients out of the type's reach become infinite; −∞ is a probability of 0.
    with np.errstate(all="ignore"):
        out = (logits / t).astype(logits.dtype, copy=False)
    if not np.isfinite(out.max(axis=-1)).all():
        raise ValueError(
            f"t is {t}; logits / t is out of the reach of {logits.dtype}. "
            f"t = 0 takes the largest logit alone"
        )
    return out


def _order(logits: np.ndarray) -> np.ndarray:
    """Return places from the largest logit to the smallest, ties as they stand."""
    return np.argsort(-logits, axis=-1, kind="stable")


def _keep(logits: np.ndarray, kept: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return logits with −∞ for what is not kept, ``kept`` standing in ``order``."""
    out = np.full_like(logits, -np.inf)
    chosen = np.take_along_axis(logits, order, axis=-1)
    cut = np.where(kept, chosen, logits.dtype.type(-np.inf))
    np.put_along_axis(out, order, cut, axis=-1)
    return out


def top_k(
    logits: Float[np.ndarray, "*B words"], k: int
) -> Float[np.ndarray, "*B words"]:
    """Keep the k largest logits of each row, and cut the rest.

    Exactly k are kept (all, if the row has fewer): of equal logits at the border
    those that stand first.

    Args:
        logits: scores over the vocabulary, (..., words), float; −∞ is allowed.
        k: how many tokens to keep, at least 1.

    Returns:
        Logits of the shape and dtype of ``logits``; what is cut is −∞.

    Raises:
        TypeError: ``logits`` is not a floating-point NumPy array, or ``k`` is not
            a whole number.
        ValueError: ``logits`` has a row without a choice, or NaN or +∞; ``k`` is
            less than 1.

    Fan et al. 2018 (arXiv 1805.04833). Derived in the chapter on building one.
    """
    _check_logits(logits)
    _check_whole(1, k=k)
    order = _order(logits)
    return _keep(logits, np.arange(logits.shape[-1]) < k, order)


def top_p(
    logits: Float[np.ndarray, "*B words"], p: float | int
) -> Float[np.ndarray, "*B words"]:
    """Keep the fewest tokens whose probabilities sum to at least p, cut the rest.

    Tokens are taken from the most probable down; the one with which the sum
    reaches p is kept too, so that one is always kept, however small p is. Of
    equally probable ones those that stand first are taken first. p = 1 cuts
    nothing. Sampled from, the rest is scaled up to sum to 1 by softmax.

    Args:
        logits: scores over the vocabulary, (..., words), float; −∞ is allowed.
        p: the share of the probability to keep, above 0 and at most 1.

    Returns:
        Logits of the shape and dtype of ``logits``; what is cut is −∞.

    Raises:
        TypeError: ``logits`` is not a floating-point NumPy array, or ``p`` is not
            a number.
        ValueError: ``logits`` has a row without a choice, or NaN or +∞; ``p`` is
            not above 0 and at most 1.

    Holtzman et al. 2020 (arXiv 1904.09751), section 3.1, *nucleus sampling*.
    Derived in the chapter on building one.
    """
    _check_logits(logits)
    p = _check_number(p=p)
    if not 0 < p <= 1:
        raise ValueError(f"p is {p}; it must be above 0 and at most 1")
    if p == 1:  # rounding could reach 1 before the last token
        return logits.copy()
    order = _order(logits)
    sorted_logits = np.take_along_axis(logits, order, axis=-1)
    probabilities = softmax(sorted_logits.astype(np.float64))
    # A token is kept if those before it have not reached p.
    reached = np.cumsum(probabilities, axis=-1)
    before = np.concatenate([np.zeros_like(reached[..., :1]), reached[..., :-1]], -1)
    return _keep(logits, before < p, order)


def sample(
    logits: Float[np.ndarray, "*B words"], rng: np.random.Generator
) -> Int[np.ndarray, "*B"]:
    """Draw one token for each row, with the probabilities ``softmax(logits)``.

    One number between 0 and 1 is drawn for each row; the token is the one in whose
    stretch of the cumulated probabilities it falls. A logit of −∞ is never drawn.

    Args:
        logits: scores over the vocabulary, (..., words), float; −∞ is allowed.
        rng: where the randomness comes from.

    Returns:
        The places of the tokens drawn, (...), integer.

    Raises:
        TypeError: ``logits`` is not a floating-point NumPy array.
        ValueError: ``logits`` has a row without a choice, or NaN or +∞.
    """
    _check_logits(logits)
    reached = np.cumsum(softmax(logits.astype(np.float64)), axis=-1)
    # The last sum may miss 1 by rounding: draw below what is there.
    drawn = rng.random(logits.shape[:-1])[..., None] * reached[..., -1:]
    return np.asarray((reached <= drawn).sum(axis=-1))


def generate(
    next_logits: Callable[[np.ndarray], np.ndarray],
    ids: Sequence[int] | np.ndarray,
    n: int,
    rng: np.random.Generator,
    choose: Callable[[np.ndarray], np.ndarray] | None = None,
    window: int | None = None,
) -> Int[np.ndarray, " S"]:
    """Let a model go on writing, token by token.

    Args:
        next_logits: the model: tokens (T,) to scores of what comes next, (T,
            words), such as ``DecoderOnly.logits``.
        ids: the beginning, at least one token, (T,), integer.
        n: how many tokens to add.
        rng: where the randomness comes from.
        choose: what is done with the last logits, (words,), before one is drawn,
            such as ``lambda z: top_p(temperature(z, 0.8), 0.9)``. None: nothing.
        window: how many tokens the model can take; it is shown the last so many.
            None: all.

    Returns:
        The beginning and the new tokens, (T + n,).

    Raises:
        TypeError: ``ids`` are not whole numbers, or ``n`` or ``window`` is not one.
        ValueError: ``ids`` is empty or has several axes; ``n`` is negative;
            ``window`` is less than 1.
    """
    ids = np.asarray(ids)
    if ids.ndim != 1 or ids.size == 0:
        raise ValueError(f"ids has shape {ids.shape}; it needs (T,), T at least 1")
    if not np.issubdtype(ids.dtype, np.integer):
        raise TypeError(f"ids must be whole numbers, but their dtype is {ids.dtype}")
    _check_whole(0, n=n)
    if window is not None:
        _check_whole(1, window=window)
    for _ in range(n):
        seen = ids if window is None else ids[-window:]
        logits = next_logits(seen)[-1]
        token = sample(logits if choose is None else choose(logits), rng)
        ids = np.append(ids, token)
    return ids
