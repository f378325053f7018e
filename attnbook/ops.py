"""Attention in NumPy, as the chapters derive it.

Axis letters: B batch, T queries, S keys, H query heads, G key/value heads,
d head width, D model width.
Arrays are ``(..., T, d)``; whatever dtype comes in goes out. Masks are
boolean, True = may look, and a query that may look at nothing gets zeros.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

# Readers never need jaxtyping: the annotations matter in one test run only.
if TYPE_CHECKING or "jaxtyping" in sys.modules:
    from jaxtyping import Bool, Float

__all__ = [
    "attention_weights",
    "causal_mask",
    "cross_attention",
    "entropy",
    "feed_forward",
    "gated_feed_forward",
    "gelu",
    "layer_norm",
    "padding_mask",
    "pre_norm_block",
    "rms_norm",
    "rope",
    "sample_dot_products",
    "scaled_dot_product_attention",
    "silu",
    "sliding_window_mask",
    "softmax",
    "softmax_jacobian",
    "split_heads",
    "tiled_attention",
]


def _check_float(**arrays: np.ndarray) -> None:
    """Refuse anything but floating-point arrays, naming the argument."""
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise TypeError(
                f"{name} must be a NumPy array, but it is a {type(array).__name__}"
            )
        if not np.issubdtype(array.dtype, np.floating):
            raise TypeError(
                f"{name} must hold floating-point numbers, but its dtype is "
                f"{array.dtype}; convert it with {name}.astype(float)"
            )


def _check_last_axes(count: int, shape: str, **arrays: np.ndarray) -> None:
    for name, array in arrays.items():
        if array.ndim < count:
            raise ValueError(
                f"{name} has shape {array.shape}; it needs at least {count} axes, "
                f"{shape}"
            )


def _check_queries_and_keys(q: np.ndarray, k: np.ndarray) -> None:
    _check_float(q=q, k=k)
    _check_last_axes(2, "(..., T, d)", q=q)
    _check_last_axes(2, "(..., S, d)", k=k)
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(
            f"q has shape {q.shape} and k has shape {k.shape}; their last axis, the "
            f"width d, must be the same"
        )
    if q.shape[-1] == 0:
        raise ValueError(f"q has shape {q.shape}; its width d must be at least 1")
    if k.shape[-2] == 0:
        raise ValueError(f"k has shape {k.shape}; its axis S must not be empty")
    if q.dtype != k.dtype:
        raise TypeError(
            f"q has dtype {q.dtype} and k has dtype {k.dtype}; they must be the same, "
            f"for one float64 array makes a float32 model compute in float64"
        )
    _check_broadcast(q.shape[:-2], "q", k.shape[:-2], "k")


def _check_broadcast(one: tuple, one_name: str, two: tuple, two_name: str) -> tuple:
    try:
        return np.broadcast_shapes(one, two)
    except ValueError:
        raise ValueError(
            f"the leading axes of {one_name}, {one}, and of {two_name}, {two}, do not "
            f"go together: each pair must be equal, or one of them 1"
        ) from None


def _check_values(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> None:
    """Refuse values that do not go with queries and keys that do."""
    _check_float(v=v)
    _check_last_axes(2, "(..., S, d_v)", v=v)
    if v.shape[-2] != k.shape[-2]:
        raise ValueError(
            f"v has shape {v.shape} and k has shape {k.shape}; each key needs one "
            f"value, so their next-to-last axis S must be the same"
        )
    if v.dtype != q.dtype:
        raise TypeError(f"v has dtype {v.dtype}; it must be that of q, {q.dtype}")
    leading = np.broadcast_shapes(q.shape[:-2], k.shape[:-2])
    _check_broadcast(leading, "q and k", v.shape[:-2], "v")


def _check_allow(allow: np.ndarray, scores_shape: tuple[int, ...]) -> None:
    if not isinstance(allow, np.ndarray) or allow.dtype != np.bool_:
        got = allow.dtype if isinstance(allow, np.ndarray) else type(allow).__name__
        raise TypeError(
            f"allow must be a boolean NumPy array (True = may look), but it is "
            f"{got}; convert 0 and 1 with allow.astype(bool)"
        )
    try:
        fits = np.broadcast_shapes(allow.shape, scores_shape) == scores_shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"allow has shape {allow.shape}; it must broadcast to the scores' shape "
            f"(..., T, S) = {scores_shape}"
        )


def softmax(
    x: Float[np.ndarray, "*axes"], axis: int = -1
) -> Float[np.ndarray, "*axes"]:
    """Turn scores into weights that are positive and sum to 1 along ``axis``.

    ``softmax(x)_i = exp(x_i) / Σ_j exp(x_j)``, computed after subtracting the
    maximum, which changes nothing but keeps ``exp`` from overflowing. A score
    of −∞ gets the weight 0 exactly, and where all scores are −∞ so are the
    weights 0: nobody to look at, nothing seen.

    Args:
        x: scores, any shape, float.
        axis: the axis along which the weights sum to 1.

    Returns:
        Weights of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is not a floating-point NumPy array.
        ValueError: ``axis`` does not exist or has length 0.

    Derived in the chapter on Q, K and V.
    """
    _check_float(x=x)
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis is {axis}, but x has shape {x.shape}")
    if x.shape[axis] == 0:
        raise ValueError(f"x has shape {x.shape}; axis {axis} must not be empty")
    highest = x.max(axis=axis, keepdims=True)
    # Where every score is −∞ the maximum is too, and −∞ − −∞ would be NaN.
    # The lowest score may be out of the type's reach below the highest; it then
    # becomes −∞, and its weight 0, as it should.
    with np.errstate(over="ignore"):
        below = x - np.where(np.isneginf(highest), x.dtype.type(0), highest)
    exps = np.exp(below)
    total = exps.sum(axis=axis, keepdims=True)
    return exps / np.where(total == 0, x.dtype.type(1), total)


def attention_weights(
    q: Float[np.ndarray, "*Bq T d"],
    k: Float[np.ndarray, "*Bk S d"],
    allow: Bool[np.ndarray, "*mask"] | None = None,
    scale: float | None = None,
) -> Float[np.ndarray, "*B T S"]:
    """Say how much each query looks at each key: ``softmax(scale · q kᵀ)``.

    Args:
        q: queries, (..., T, d), float.
        k: keys, (..., S, d), of the dtype of ``q``.
        allow: boolean, broadcasting to (..., T, S); True = this query may look
            at this key. None: all may.
        scale: what the dot products are multiplied by; None: 1/√d.

    Returns:
        Weights, (..., T, S). A row sums to 1; if it may look at nothing it is 0.

    Raises:
        TypeError: an array is not floating point, dtypes differ, or ``allow``
            is not boolean.
        ValueError: shapes do not go together; the message names the argument.

    Vaswani et al. 2017 (arXiv 1706.03762), the softmax factor of equation 1.
    Derived in the chapters on Q, K and V and on scaling.
    """
    _check_queries_and_keys(q, k)
    # A Python float leaves float32 alone; a NumPy float64 would promote it.
    scale = q.shape[-1] ** -0.5 if scale is None else float(scale)
    scores = (q @ k.swapaxes(-1, -2)) * scale  # (..., T, S)
    if allow is not None:
        _check_allow(allow, scores.shape)
        scores = np.where(allow, scores, scores.dtype.type(-np.inf))
    return softmax(scores)


def scaled_dot_product_attention(
    q: Float[np.ndarray, "*Bq T d"],
    k: Float[np.ndarray, "*Bk S d"],
    v: Float[np.ndarray, "*Bv S d_v"],
    allow: Bool[np.ndarray, "*mask"] | None = None,
    scale: float | None = None,
) -> Float[np.ndarray, "*B T d_v"]:
    """Mix the values by how much each query looks at each key.

    ``softmax(q kᵀ / √d) v``

    Args:
        q: queries, (..., T, d), float.
        k: keys, (..., S, d), of the dtype of ``q``.
        v: values, (..., S, d_v), of the dtype of ``q``.
        allow: boolean, broadcasting to (..., T, S); True = may look.
        scale: what the dot products are multiplied by; None: 1/√d.

    Returns:
        One mixed value for each query, (..., T, d_v).

    Raises:
        TypeError, ValueError: as ``attention_weights``, and for ``v``.

    Vaswani et al. 2017 (arXiv 1706.03762), equation 1. Derived in the chapter
    on Q, K and V.
    """
    weights = attention_weights(q, k, allow, scale)
    _check_values(q, k, v)
    return weights @ v


def _check_sums(weights: np.ndarray) -> None:
    """Refuse rows of weights that neither sum to 1 nor are all 0."""
    sums = np.atleast_1d(weights.sum(axis=-1, dtype=np.float64))
    # Rounding in a softmax along this axis stays far below, in float16 as well.
    wrong = sums[(sums != 0) & (np.abs(sums - 1) > 0.01)]
    if wrong.size:
        raise ValueError(
            f"weights must sum to 1 along the last axis, or be all 0, but a row "
            f"sums to {wrong[0]:.6g}"
        )


def entropy(
    weights: Float[np.ndarray, "*axes S"],
) -> Float[np.ndarray, "*axes"]:
    """Measure how widely weights are spread, in bits: ``−Σ w log₂ w``.

    0 where one key takes all, ``log₂ S`` where all S keys share evenly. A query
    that may look at nothing has weights of 0 only, and an entropy of 0.

    Args:
        weights: (..., S), float. Along the last axis they sum to 1, up to
            rounding, or are all 0.

    Returns:
        The entropy of each row, (...), in bits.

    Raises:
        TypeError: ``weights`` is not a floating-point NumPy array.
        ValueError: ``weights`` has no axis, a weight is negative or not a number,
            or a row sums to anything but 1 or 0.

    Shannon 1948, section 6. Used in the chapter on scaling.
    """
    _check_float(weights=weights)
    _check_last_axes(1, "(..., S)", weights=weights)
    if not (weights >= 0).all():
        raise ValueError(f"weights must be at least 0; the smallest is {weights.min()}")
    _check_sums(weights)
    # 0 · log 0 counts as 0: a key that gets nothing adds no uncertainty.
    logs = np.log2(weights, out=np.zeros_like(weights), where=weights > 0)
    # The sum is at most 0, and −0 where one key takes all; neither sign is wanted.
    return np.abs(np.sum(weights * logs, axis=-1))


def softmax_jacobian(
    weights: Float[np.ndarray, "*axes S"],
) -> Float[np.ndarray, "*axes S S"]:
    """Say how each weight moves when each score does: ``diag(w) − w wᵀ``.

    Args:
        weights: what softmax gave, (..., S), float.

    Returns:
        (..., S, S); entry ``[i, j]`` is ∂w_i / ∂s_j for the score s_j.

    Raises:
        TypeError: ``weights`` is not a floating-point NumPy array.
        ValueError: ``weights`` has no axis.

    Derived in the chapter on scaling.
    """
    _check_float(weights=weights)
    _check_last_axes(1, "(..., S)", weights=weights)
    eye = np.eye(weights.shape[-1], dtype=weights.dtype)
    return weights[..., :, None] * (eye - weights[..., None, :])


def sample_dot_products(
    rng: np.random.Generator, d: int, shape: int | tuple[int, ...]
) -> Float[np.ndarray, "*pairs"]:
    """Draw dot products of independent standard-normal queries and keys.

    Args:
        rng: where the randomness comes from.
        d: width of the vectors, at least 1.
        shape: how many pairs, as an array shape.

    Returns:
        Dot products, of ``shape``, float64. Their variance is ``d``.

    Raises:
        TypeError: ``d``, or a length in ``shape``, is not a whole number.
        ValueError: ``d`` is less than 1, or a length less than 0.

    Vaswani et al. 2017 (arXiv 1706.03762), footnote 4. Measured in the chapter
    on scaling.
    """
    _check_whole(1, d=d)
    axes = tuple(np.atleast_1d(shape))
    for length in axes:
        _check_whole(0, shape=length)
    q = rng.standard_normal((*axes, d))
    k = rng.standard_normal((*axes, d))
    return np.einsum("...d,...d->...", q, k)


def _check_whole(least: int, **numbers: int | np.integer) -> None:
    """Refuse anything but whole numbers of at least ``least``."""
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise TypeError(
                f"{name} must be a whole number, but it is {number!r}, "
                f"a {type(number).__name__}"
            )
        if number < least:
            raise ValueError(f"{name} is {number}; it must be at least {least}")


def causal_mask(T: int, S: int | None = None) -> Bool[np.ndarray, "T S"]:
    """Let each query look at its own place and at all places before it.

    The queries are the *last* T of the S tokens, so query t stands at place
    S − T + t: ``allow[t, s] = s ≤ S − T + t``. The triangle touches the bottom
    right corner, which makes the mask right with a cache: one new token may look
    at everything so far.

    Args:
        T: how many queries.
        S: how many keys; None: as many as queries.

    Returns:
        (T, S), True = may look. If S < T the first T − S rows are all False.

    Raises:
        TypeError: ``T`` or ``S`` is not a whole number.
        ValueError: one of them is less than 1.

    Vaswani et al. 2017 (arXiv 1706.03762), section 3.2.3. Derived in the chapter
    on the causal mask.
    """
    S = T if S is None else S
    _check_whole(1, T=T, S=S)
    places = np.arange(S - T, S)[:, None]  # (T, 1), where each query stands
    return np.arange(S) <= places


def sliding_window_mask(
    T: int, window: int, S: int | None = None
) -> Bool[np.ndarray, "T S"]:
    """Let each query look at its own place and at ``window − 1`` places before it.

    The causal mask, cut off on the left: ``S − T + t − window < s ≤ S − T + t``.

    Args:
        T: how many queries.
        window: how many places a query may look at, its own included.
        S: how many keys; None: as many as queries. The queries are the last.

    Returns:
        (T, S), True = may look.

    Raises:
        TypeError: an argument is not a whole number.
        ValueError: one of them is less than 1.

    Beltagy et al. 2020 (arXiv 2004.05150), section 3.1, one-sided. Used in the
    chapter on the causal mask.
    """
    _check_whole(1, window=window)
    allow = causal_mask(T, S)
    T, S = allow.shape
    return allow & (np.arange(S) > np.arange(S - T, S)[:, None] - window)


def padding_mask(
    lengths: Sequence[int] | np.ndarray, S: int
) -> Bool[np.ndarray, "B 1 1 S"]:
    """Hide what was appended to make the sequences of a batch equally long.

    Args:
        lengths: how many real tokens each sequence has, (B,); they come first.
        S: the length that all were brought to.

    Returns:
        (B, 1, 1, S), True = a real token, for scores of shape (B, H, T, S).
        Combine it with a causal mask by ``&``.

    Raises:
        TypeError: ``lengths`` are not whole numbers, or ``S`` is not one.
        ValueError: ``lengths`` has another shape than (B,), or one of them is
            negative or greater than ``S``; or ``S`` is less than 1.

    Used in the chapter on the causal mask.
    """
    _check_whole(1, S=S)
    counts = np.asarray(lengths)
    if counts.ndim != 1:
        raise ValueError(f"lengths has shape {counts.shape}; it needs one axis, (B,)")
    if counts.size and not np.issubdtype(counts.dtype, np.integer):
        raise TypeError(
            f"lengths must hold whole numbers, but its dtype is {counts.dtype}"
        )
    for length in counts:
        if not 0 <= length <= S:
            raise ValueError(f"lengths holds {length}; each must be 0 to S = {S}")
    return (np.arange(S) < counts[:, None])[:, None, None, :]


# --- several heads ----------------------------------------------------------


def split_heads(
    x: Float[np.ndarray, "*B T Hd"], heads: int
) -> Float[np.ndarray, "*B H T d"]:
    """Cut the width into heads, and put the heads before time.

    Head h of a token holds its numbers h·d to (h + 1)·d.

    Args:
        x: all heads side by side, (..., T, H·d), float.
        heads: how many heads, H.

    Returns:
        (..., H, T, d), of the dtype of ``x``.

    Raises:
        TypeError: ``x`` is not a floating-point NumPy array, or ``heads`` is not
            a whole number.
        ValueError: ``heads`` is less than 1 or does not divide the width.

    Vaswani et al. 2017 (arXiv 1706.03762), section 3.2.2. Derived in the chapter
    on heads.
    """
    _check_float(x=x)
    _check_last_axes(2, "(..., T, H·d)", x=x)
    _check_whole(1, heads=heads)
    if x.shape[-1] % heads:
        raise ValueError(
            f"heads is {heads}, but x has shape {x.shape}; heads must divide its last "
            f"axis, the width"
        )
    d = x.shape[-1] // heads
    return x.reshape(*x.shape[:-1], heads, d).swapaxes(-2, -3)


def merge_heads(
    x: Float[np.ndarray, "*B H T d"],
) -> Float[np.ndarray, "*B T Hd"]:
    """Put the heads of each token side by side again: ``split_heads`` undone.

    Args:
        x: one array for each head, (..., H, T, d), float.

    Returns:
        (..., T, H·d), of the dtype of ``x``.

    Raises:
        TypeError: ``x`` is not a floating-point NumPy array.
        ValueError: ``x`` has fewer than three axes.

    Vaswani et al. 2017 (arXiv 1706.03762), Concat in section 3.2.2. Derived in
    the chapter on heads.
    """
    _check_float(x=x)
    _check_last_axes(3, "(..., H, T, d)", x=x)
    *batch, heads, tokens, d = x.shape
    return x.swapaxes(-2, -3).reshape(*batch, tokens, heads * d)


def repeat_kv(
    x: Float[np.ndarray, "*B G S d"], n: int
) -> Float[np.ndarray, "*B Gn S d"]:
    """Repeat each key/value head n times in place: heads 0, 0, 0, 1, 1, 1.

    Query head h then meets key/value head ``h // n``.

    Args:
        x: keys or values, (..., G, S, d), float.
        n: how many query heads share one key/value head.

    Returns:
        (..., G·n, S, d), of the dtype of ``x``.

    Raises:
        TypeError: ``x`` is not a floating-point NumPy array, or ``n`` is not a
            whole number.
        ValueError: ``x`` has fewer than three axes, or ``n`` is less than 1.

    Ainslie et al. 2023 (arXiv 2305.13245), section 2.2. Derived in the chapter
    on heads.
    """
    _check_float(x=x)
    _check_last_axes(3, "(..., G, S, d)", x=x)
    _check_whole(1, n=n)
    return np.repeat(x, n, axis=-3)


def _check_matrix(name: str, matrix: np.ndarray, shape: str, x: np.ndarray) -> None:
    _check_float(**{name: matrix})
    if matrix.ndim != 2:
        raise ValueError(f"{name} has shape {matrix.shape}; it must be {shape}")
    if matrix.dtype != x.dtype:
        raise TypeError(
            f"{name} has dtype {matrix.dtype}; it must be that of x, {x.dtype}"
        )


def _check_projections(
    x: np.ndarray,
    w_q: np.ndarray,
    w_k: np.ndarray,
    w_v: np.ndarray,
    w_o: np.ndarray,
    heads: int,
    kv_heads: int,
) -> None:
    _check_float(x=x)
    _check_last_axes(2, "(..., T, D)", x=x)
    _check_whole(1, heads=heads)
    _check_whole(1, kv_heads=kv_heads)
    if heads % kv_heads:
        raise ValueError(
            f"kv_heads is {kv_heads} and heads is {heads}; kv_heads must divide heads, "
            f"so that each key/value head serves equally many query heads"
        )
    into = {"w_q": w_q, "w_k": w_k, "w_v": w_v}
    shapes = {"w_q": "(D, H·d)", "w_k": "(D, G·d)", "w_v": "(D, G·d)"}
    for name, matrix in into.items():
        _check_matrix(name, matrix, shapes[name], x)
        if matrix.shape[0] != x.shape[-1]:
            raise ValueError(
                f"{name} has shape {matrix.shape} and x has shape {x.shape}; {name} "
                f"needs as many rows as a token has numbers, D = {x.shape[-1]}"
            )
    if w_q.shape[1] == 0 or w_q.shape[1] % heads:
        raise ValueError(
            f"w_q has shape {w_q.shape}; its columns must be a multiple of heads, "
            f"{heads}"
        )
    d = w_q.shape[1] // heads
    for name in ("w_k", "w_v"):
        if into[name].shape[1] != kv_heads * d:
            raise ValueError(
                f"{name} has shape {into[name].shape}; with {kv_heads} key/value heads "
                f"of width {d} it needs {kv_heads * d} columns"
            )
    _check_matrix("w_o", w_o, "(H·d, D)", x)
    if w_o.shape != (heads * d, x.shape[-1]):
        raise ValueError(
            f"w_o has shape {w_o.shape}; it must be (H·d, D) = "
            f"{(heads * d, x.shape[-1])}"
        )


def multi_head_attention(
    x: Float[np.ndarray, "*B T D"],
    w_q: Float[np.ndarray, "D Hd"],
    w_k: Float[np.ndarray, "D Gd"],
    w_v: Float[np.ndarray, "D Gd"],
    w_o: Float[np.ndarray, "Hd D"],
    heads: int,
    kv_heads: int | None = None,
    allow: Bool[np.ndarray, "*mask"] | None = None,
) -> Float[np.ndarray, "*B T D"]:
    """Let several heads look at the same tokens, and mix what they bring back.

    ``Concat(head_1, …, head_H) W_O``, each head being attention with its own
    queries and with the keys and values of its group.

    Args:
        x: the tokens, (..., T, D), float.
        w_q: makes queries, (D, H·d).
        w_k, w_v: make keys and values, (D, G·d).
        w_o: the output projection, (H·d, D).
        heads: query heads, H.
        kv_heads: key/value heads, G, a divisor of H. None: as many as H, which
            is multi-head attention; 1 is multi-query attention.
        allow: boolean, broadcasting to (..., H, T, T); True = may look. A mask
            for each sentence needs an axis of length 1 for the heads.

    Returns:
        (..., T, D), of the dtype of ``x``.

    Raises:
        TypeError, ValueError: dtypes or shapes do not go together; the message
            names the argument.

    Vaswani et al. 2017 (arXiv 1706.03762), section 3.2.2; groups by Ainslie et
    al. 2023 (arXiv 2305.13245). Derived in the chapter on heads.
    """
    kv_heads = heads if kv_heads is None else kv_heads
    _check_projections(x, w_q, w_k, w_v, w_o, heads, kv_heads)
    q = split_heads(x @ w_q, heads)  # (..., H, T, d)
    k = split_heads(x @ w_k, kv_heads)  # (..., G, T, d)
    v = split_heads(x @ w_v, kv_heads)  # (..., G, T, d)
    group = heads // kv_heads
    out = scaled_dot_product_attention(
        q, repeat_kv(k, group), repeat_kv(v, group), allow
    )
    return merge_heads(out) @ w_o


# --- norms, feed-forward, the block ------------------------------------------


def _check_per_feature(x: np.ndarray, **vectors: np.ndarray) -> None:
    """Hold gains and biases to one number for each of the D features of ``x``."""
    _check_float(x=x, **vectors)
    _check_last_axes(1, "(..., D)", x=x)
    for name, vector in vectors.items():
        if vector.shape != x.shape[-1:]:
            raise ValueError(
                f"{name} has shape {vector.shape}; it needs one number for each "
                f"feature of x, {x.shape[-1:]}"
            )
    _check_same_dtype("x", x, **vectors)


def _check_same_dtype(name: str, first: np.ndarray, **others: np.ndarray) -> None:
    for other, array in others.items():
        if array.dtype != first.dtype:
            raise TypeError(
                f"{other} has dtype {array.dtype}; it must be that of {name}, "
                f"{first.dtype}"
            )


def _check_eps(eps: float) -> float:
    if not eps >= 0:
        raise ValueError(f"eps is {eps}; it must be at least 0")
    return float(eps)


def _statistics_of(x: np.ndarray) -> np.ndarray:
    """Give what means are taken of: float16 would overflow when squared."""
    return x.astype(np.promote_types(x.dtype, np.float32), copy=False)


def layer_norm(
    x: Float[np.ndarray, "*B D"],
    gain: Float[np.ndarray, " D"],
    bias: Float[np.ndarray, " D"],
    eps: float = 1e-5,
) -> Float[np.ndarray, "*B D"]:
    """Give every vector mean 0 and variance 1, then a learned gain and bias.

    ``gain · (x − mean) / √(variance + ε) + bias``; mean and (population)
    variance are those of the D numbers of one vector.

    Args:
        x: vectors, (..., D), float.
        gain: (D,), of the dtype of ``x``.
        bias: (D,), of the dtype of ``x``.
        eps: what keeps the root away from 0, inside it.

    Returns:
        (..., D), of the dtype of ``x``.

    Raises:
        TypeError: an array is not floating point, or dtypes differ.
        ValueError: ``gain`` or ``bias`` is not (D,), or ``eps`` is negative.

    Ba et al. 2016 (arXiv 1607.06450), equations 3 and 4. Derived in the chapter
    on residual connections and norms.
    """
    _check_per_feature(x, gain=gain, bias=bias)
    wide = _statistics_of(x)
    centred = wide - wide.mean(axis=-1, keepdims=True)
    variance = np.mean(centred * centred, axis=-1, keepdims=True)
    unit = centred / np.sqrt(variance + _check_eps(eps))
    return unit.astype(x.dtype, copy=False) * gain + bias


def rms_norm(
    x: Float[np.ndarray, "*B D"],
    gain: Float[np.ndarray, " D"],
    eps: float = 1e-5,
) -> Float[np.ndarray, "*B D"]:
    """Divide every vector by its root mean square, then a learned gain.

    ``gain · x / √(mean of x² + ε)``, over the D numbers of one vector.

    Args:
        x: vectors, (..., D), float.
        gain: (D,), of the dtype of ``x``.
        eps: what keeps the root away from 0, inside it.

    Returns:
        (..., D), of the dtype of ``x``.

    Raises:
        TypeError: an array is not floating point, or dtypes differ.
        ValueError: ``gain`` is not (D,), or ``eps`` is negative.

    Zhang and Sennrich 2019 (arXiv 1910.07467), equation 4. Derived in the
    chapter on residual connections and norms.
    """
    _check_per_feature(x, gain=gain)
    wide = _statistics_of(x)
    mean_square = np.mean(wide * wide, axis=-1, keepdims=True)
    unit = wide / np.sqrt(mean_square + _check_eps(eps))
    return unit.astype(x.dtype, copy=False) * gain


def gelu(x: Float[np.ndarray, "*axes"]) -> Float[np.ndarray, "*axes"]:
    """Let large numbers through and hold negative ones back, smoothly.

    ``x · Φ(x)`` with Φ the normal distribution function, in the form with the
    hyperbolic tangent: ``x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))``. It
    differs from the exact one by less than 0.0005.

    Raises:
        TypeError: ``x`` is not a floating-point NumPy array.

    Hendrycks and Gimpel 2016 (arXiv 1606.08415), section 2.
    """
    _check_float(x=x)
    inner = x * (1 + 0.044715 * x * x)
    return 0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * inner))


def silu(x: Float[np.ndarray, "*axes"]) -> Float[np.ndarray, "*axes"]:
    """Return ``x / (1 + exp(−x))``: x times its logistic function.

    Raises:
        TypeError: ``x`` is not a floating-point NumPy array.

    Hendrycks and Gimpel 2016 (arXiv 1606.08415), section 2.
    """
    _check_float(x=x)
    # 1 / (1 + exp(−x)), written so that nothing overflows.
    return x * (0.5 * (1 + np.tanh(0.5 * x)))


def _check_linear(x_name: str, width: int, **matrix: np.ndarray) -> int:
    """Hold a matrix to (width, anything); return the width of what comes out."""
    ((name, array),) = matrix.items()
    if array.ndim != 2 or array.shape[0] != width:
        raise ValueError(
            f"{name} has shape {array.shape}; it needs two axes, the first of length "
            f"{width}, the width of {x_name}"
        )
    return array.shape[1]


def _check_bias(width: int, **vector: np.ndarray) -> None:
    ((name, array),) = vector.items()
    if array.shape != (width,):
        raise ValueError(f"{name} has shape {array.shape}; it needs ({width},)")


def feed_forward(
    x: Float[np.ndarray, "*B D"],
    w_in: Float[np.ndarray, "D F"],
    b_in: Float[np.ndarray, " F"],
    w_out: Float[np.ndarray, "F D_out"],
    b_out: Float[np.ndarray, " D_out"],
) -> Float[np.ndarray, "*B D_out"]:
    """Let each token think for itself: ``gelu(x W_in + b_in) W_out + b_out``.

    GELU in the form of ``gelu``, with the hyperbolic tangent.

    Args:
        x: vectors, (..., D), float.
        w_in, b_in: (D, F) and (F,), to the wide middle.
        w_out, b_out: (F, D) and (D,), back again.

    Returns:
        (..., D), of the dtype of ``x``.

    Raises:
        TypeError: an array is not floating point, or dtypes differ.
        ValueError: shapes do not go together; the message names the argument.

    Vaswani et al. 2017 (arXiv 1706.03762), equation 2, which has ReLU in place
    of GELU. Derived in the chapter on residual connections and norms.
    """
    _check_float(x=x, w_in=w_in, b_in=b_in, w_out=w_out, b_out=b_out)
    _check_last_axes(1, "(..., D)", x=x)
    _check_same_dtype("x", x, w_in=w_in, b_in=b_in, w_out=w_out, b_out=b_out)
    middle = _check_linear("x", x.shape[-1], w_in=w_in)
    _check_bias(middle, b_in=b_in)
    width = _check_linear("the middle", middle, w_out=w_out)
    _check_bias(width, b_out=b_out)
    return gelu(x @ w_in + b_in) @ w_out + b_out


def gated_feed_forward(
    x: Float[np.ndarray, "*B D"],
    w_gate: Float[np.ndarray, "D F"],
    w_up: Float[np.ndarray, "D F"],
    w_down: Float[np.ndarray, "F D_out"],
) -> Float[np.ndarray, "*B D_out"]:
    """Let one half of the middle open and close the other, number by number.

    ``(silu(x W_gate) · (x W_up)) W_down``, also called SwiGLU.

    Args:
        x: vectors, (..., D), float.
        w_gate, w_up: (D, F).
        w_down: (F, D).

    Returns:
        (..., D), of the dtype of ``x``.

    Raises:
        TypeError: an array is not floating point, or dtypes differ.
        ValueError: shapes do not go together; the message names the argument.

    Shazeer 2020 (arXiv 2002.05202), equation 6. Derived in the chapter on
    residual connections and norms.
    """
    _check_float(x=x, w_gate=w_gate, w_up=w_up, w_down=w_down)
    _check_last_axes(1, "(..., D)", x=x)
    _check_same_dtype("x", x, w_gate=w_gate, w_up=w_up, w_down=w_down)
    middle = _check_linear("x", x.shape[-1], w_gate=w_gate)
    if _check_linear("x", x.shape[-1], w_up=w_up) != middle:
        raise ValueError(
            f"w_up has shape {w_up.shape}; it must be that of w_gate, {w_gate.shape}"
        )
    _check_linear("the middle", middle, w_down=w_down)
    return (silu(x @ w_gate) * (x @ w_up)) @ w_down


def pre_norm_block(
    x: Float[np.ndarray, "*B D"],
    sublayer: Callable[[np.ndarray], np.ndarray],
    norm: Callable[[np.ndarray], np.ndarray],
) -> Float[np.ndarray, "*B D"]:
    """Add to ``x`` what a sublayer makes of the normalised ``x``.

    ``x + sublayer(norm(x))``. The first ``x`` is the original, not the
    normalised one: where the sublayer returns zeros, ``x`` comes out unchanged.

    Args:
        x: vectors, (..., D), float.
        sublayer: attention or feed-forward; keeps the shape.
        norm: keeps the shape.

    Returns:
        (..., D), of the dtype of ``x``.

    Raises:
        TypeError: ``x`` is not floating point, or another dtype comes out of
            ``sublayer``.
        ValueError: ``sublayer`` returns another shape than that of ``x``.

    He et al. 2015 (arXiv 1512.03385), equation 1; Xiong et al. 2020 (arXiv
    2002.04745), the pre-norm layer. Derived in the chapter on residual
    connections and norms.
    """
    _check_float(x=x)
    increment = sublayer(norm(x))
    _check_float(**{"what sublayer returns": increment})
    if increment.shape != x.shape:
        raise ValueError(
            f"sublayer returns the shape {increment.shape}; it needs that of x, "
            f"{x.shape}, since the two are added"
        )
    _check_same_dtype("x", x, **{"what sublayer returns": increment})
    return x + increment


def tiled_attention(
    q: Float[np.ndarray, "*Bq T d"],
    k: Float[np.ndarray, "*Bk S d"],
    v: Float[np.ndarray, "*Bv S d_v"],
    allow: Bool[np.ndarray, "*mask"] | None = None,
    scale: float | None = None,
    tile: int = 128,
) -> Float[np.ndarray, "*B T d_v"]:
    """Compute ``scaled_dot_product_attention`` without ever holding all weights.

    Queries and keys are taken ``tile`` at a time. For each query a running
    maximum m, sum l and mixture o of what has been seen so far are kept; when a
    tile raises the maximum to m', the old sum and mixture shrink by ``exp(m − m')``
    before the tile's own are added.

    Args:
        q, k, v, allow, scale: as ``scaled_dot_product_attention``.
        tile: how many queries and how many keys at a time, at least 1.

    Returns:
        One mixed value for each query, (..., T, d_v), the same up to rounding.

    Raises:
        TypeError, ValueError: as ``scaled_dot_product_attention``; ``tile`` is not
            a whole number of at least 1.

    The running maximum and sum: Milakov and Gimelshein 2018 (arXiv 1805.02867),
    algorithm 3. The running mixture: Rabe and Staats 2021 (arXiv 2112.05682).
    Tiles of queries as well: Dao et al. 2022 (arXiv 2205.14135), algorithm 1.
    Derived in the chapter on cost.
    """
    _check_queries_and_keys(q, k)
    _check_values(q, k, v)
    _check_whole(1, tile=tile)
    (T, d), S = q.shape[-2:], k.shape[-2]
    leading = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    if allow is not None:
        shape = np.broadcast_shapes(q.shape[:-2], k.shape[:-2])
        _check_allow(allow, (*shape, T, S))
        allow = np.broadcast_to(allow, (*shape, T, S))
    scale = d**-0.5 if scale is None else float(scale)
    zero = q.dtype.type(0)
    out = np.empty((*leading, T, v.shape[-1]), q.dtype)
    for t in range(0, T, tile):
        rows = slice(t, t + tile)
        highest = np.full((*leading, len(range(T)[rows]), 1), -np.inf, q.dtype)
        total = np.zeros_like(highest)
        mixture = np.zeros((*highest.shape[:-1], v.shape[-1]), q.dtype)
        for s in range(0, S, tile):
            columns = slice(s, s + tile)
            scores = (q[..., rows, :] @ k[..., columns, :].swapaxes(-1, -2)) * scale
            if allow is not None:
                seen = allow[..., rows, columns]
                scores = np.where(seen, scores, scores.dtype.type(-np.inf))
            raised = np.maximum(highest, scores.max(axis=-1, keepdims=True))
            # Until something may be looked at, −∞ − −∞ would be NaN.
            level = np.where(np.isneginf(raised), zero, raised)
            with np.errstate(over="ignore"):
                shrink, exps = np.exp(highest - level), np.exp(scores - level)
            total = total * shrink + exps.sum(axis=-1, keepdims=True)
            mixture = mixture * shrink + exps @ v[..., columns, :]
            highest = raised
        out[..., rows, :] = mixture / np.where(total == 0, zero + 1, total)
    return out


@lru_cache(maxsize=8)  # queries and keys of all layers turn alike
def _turns(
    positions: tuple[int, ...], d: int, base: float, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray]:
    """Return cosine and sine of the angle of each pair at each position."""
    # Angles in double precision: far out, single precision would blur them.
    speeds = base ** (-np.arange(0, d, 2) / d)  # (d/2,)
    angles = np.array(positions)[:, None] * speeds  # (T, d/2)
    return np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)


def rope(
    x: Float[np.ndarray, "*B T d"],
    positions: np.ndarray | None = None,
    base: float = 10_000.0,
) -> Float[np.ndarray, "*B T d"]:
    """Turn each vector by angles that grow with its position.

    The numbers are taken in pairs of neighbours, (0, 1), (2, 3) and so on, and
    pair i at position p is turned by the angle ``p · base^(−2i/d)``. The dot
    product of two vectors turned so depends on their positions only through the
    difference.

    Args:
        x: queries or keys, (..., T, d), float, d even.
        positions: where each stands, (T,), whole numbers; None: 0, 1, … T − 1.
        base: sets the slowest angle; larger for longer texts.

    Returns:
        The turned vectors, of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is not a floating-point NumPy array, or ``positions`` are
            not whole numbers.
        ValueError: d is odd or 0, ``positions`` do not match, or ``base`` is not
            above 0.

    Su et al. 2021 (arXiv 2104.09864), equation 34. Derived in the chapter on
    limits.
    """
    _check_float(x=x)
    _check_last_axes(2, "(..., T, d)", x=x)
    T, d = x.shape[-2:]
    if d % 2 or d == 0:
        raise ValueError(f"x has shape {x.shape}; its width d must be even, for pairs")
    if not base > 0:
        raise ValueError(f"base is {base}; it must be above 0")
    positions = np.arange(T) if positions is None else np.asarray(positions)
    if not np.issubdtype(positions.dtype, np.integer):
        raise TypeError(
            f"positions must be whole numbers, but their dtype is {positions.dtype}"
        )
    if positions.shape != (T,):
        raise ValueError(
            f"positions has shape {positions.shape}; x has shape {x.shape}, so one "
            f"position for each of its T = {T} rows is needed, ({T},)"
        )
    cos, sin = _turns(tuple(positions.tolist()), d, float(base), x.dtype)  # (T, d/2)
    first, second = x[..., 0::2], x[..., 1::2]  # (..., T, d/2)
    turned = np.empty_like(x)
    turned[..., 0::2] = first * cos - second * sin
    turned[..., 1::2] = first * sin + second * cos
    return turned


def _check_memory(x: np.ndarray, memory: np.ndarray) -> None:
    _check_float(x=x, memory=memory)
    _check_last_axes(2, "(..., T, D)", x=x)
    _check_last_axes(2, "(..., S, D)", memory=memory)
    if memory.shape[-1] != x.shape[-1]:
        raise ValueError(
            f"memory has shape {memory.shape} and x has shape {x.shape}; their last "
            f"axis, the width D, must be the same"
        )
    _check_same_dtype("x", x, memory=memory)
    _check_broadcast(x.shape[:-2], "x", memory.shape[:-2], "memory")


def cross_attention(
    x: Float[np.ndarray, "*Bx T D"],
    memory: Float[np.ndarray, "*Bm S D"],
    w_q: Float[np.ndarray, "D Hd"],
    w_k: Float[np.ndarray, "D Gd"],
    w_v: Float[np.ndarray, "D Gd"],
    w_o: Float[np.ndarray, "Hd D"],
    heads: int,
    kv_heads: int | None = None,
    allow: Bool[np.ndarray, "*mask"] | None = None,
) -> Float[np.ndarray, "*B T D"]:
    """Let the tokens of one text look at those of another.

    ``multi_head_attention`` with queries from ``x`` and with keys and values from
    ``memory``. The two have no order in common, so no causal mask belongs here.

    Args:
        x: the tokens that look, (..., T, D), float.
        memory: the tokens looked at, (..., S, D), of the dtype of ``x``.
        w_q: makes queries of ``x``, (D, H·d).
        w_k, w_v: make keys and values of ``memory``, (D, G·d).
        w_o: the output projection, (H·d, D).
        heads: query heads, H.
        kv_heads: key/value heads, G, a divisor of H. None: as many as H.
        allow: boolean, broadcasting to (..., H, T, S); True = may look. Usually
            it hides nothing but padding in ``memory``.

    Returns:
        One vector for each token that looks, (..., T, D).

    Raises:
        TypeError, ValueError: dtypes or shapes do not go together; the message
            names the argument.

    Vaswani et al. 2017 (arXiv 1706.03762), section 3.2.3, "encoder-decoder
    attention". Derived in the chapter on families.
    """
    kv_heads = heads if kv_heads is None else kv_heads
    _check_memory(x, memory)
    _check_projections(x, w_q, w_k, w_v, w_o, heads, kv_heads)
    q = split_heads(x @ w_q, heads)  # (..., H, T, d)
    k = split_heads(memory @ w_k, kv_heads)  # (..., G, S, d)
    v = split_heads(memory @ w_v, kv_heads)  # (..., G, S, d)
    group = heads // kv_heads
    out = scaled_dot_product_attention(
        q, repeat_kv(k, group), repeat_kv(v, group), allow
    )
    return merge_heads(out) @ w_o
