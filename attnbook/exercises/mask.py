"""The exercises of the chapter on the causal mask; wrong versions as in ``qkv``."""

import numpy as np

from attnbook import model, ops
from attnbook.exercises._exercise import Implement, Predict, case
from attnbook.exercises.qkv import (
    SOFTMAXES,
    hide,
    in_float32,
    products,
    scores_of,
    softmax_that_overflows,
    tenths,
)

CHAPTER = "04_mask"

# --- hidden_pairs -----------------------------------------------------------

NEW, SEEN = 4, 10  # in the question: queries of the chunk, keys in all

hidden_pairs = Predict(
    name="hidden_pairs",
    chapter=CHAPTER,
    difficulty=1,
    minutes=4,
    reread="04_mask.cache",
    answer=float(NEW * (NEW - 1) // 2),
    tolerance=0.001,
    mistakes={
        "allowed": float(NEW * SEEN - NEW * (NEW - 1) // 2),
        "diagonal_too": float(NEW * (NEW + 1) // 2),
        "whole_square": float(SEEN * (SEEN - 1) // 2),
        "top_left": float(NEW * SEEN - NEW * (NEW + 1) // 2),
        "no_mask": 0.0,
    },
)

# --- causal_mask ------------------------------------------------------------
#
# The variant is the dtype: a triangle of numbers seldom comes alone.


def places(T, S):
    """Where each query stands, (T, 1), and each key, (S,)."""
    return np.arange(S - T, S)[:, None], np.arange(S)


def keys_or_queries(T, S):
    return T if S is None else S


def top_left(T, S, dtype):
    return np.tril(np.ones((T, keys_or_queries(T, S)), dtype))


def upside_down(T, S, dtype):
    return (~ops.causal_mask(T, S)).astype(dtype)


def looks_ahead(T, S, dtype):
    query, key = places(T, keys_or_queries(T, S))
    return (key >= query).astype(dtype)


def excludes_itself(T, S, dtype):
    query, key = places(T, keys_or_queries(T, S))
    return (key < query).astype(dtype)


def one_too_far(T, S, dtype):
    query, key = places(T, keys_or_queries(T, S))
    return (key <= query + 1).astype(dtype)


def ignores_keys(T, S, dtype):
    return ops.causal_mask(T).astype(dtype)


def ignores_queries(T, S, dtype):
    return ops.causal_mask(keys_or_queries(T, S)).astype(dtype)


def offset_turned(T, S, dtype):
    S = keys_or_queries(T, S)
    return np.tril(np.ones((T, S), dtype), T - S)


def offset_never_negative(T, S, dtype):
    S = keys_or_queries(T, S)
    return np.tril(np.ones((T, S), dtype), max(S - T, 0))


def axes_swapped(T, S, dtype):
    S = keys_or_queries(T, S)
    return np.tril(np.ones((S, T), dtype), T - S)


def axes_swapped_at_top_left(T, S, dtype):
    return np.tril(np.ones((keys_or_queries(T, S), T), dtype))


def everything(T, S, dtype):
    return np.ones((T, keys_or_queries(T, S)), dtype)


def diagonal_only(T, S, dtype):
    S = keys_or_queries(T, S)
    return np.eye(T, S, S - T, dtype=dtype)


def forgets_none(T, S, dtype):
    query, key = np.arange(T)[:, None] + S - T, np.arange(S)
    return (key <= query).astype(dtype)


def forgets_none_by_shape(T, S, dtype):
    return np.tril(np.ones((T, S), dtype), S - T)


def numbers(dtype):
    def right_but_for_its_dtype(T, S, _):
        return ops.causal_mask(T, S).astype(dtype)

    return right_but_for_its_dtype


def to_be_added(number):
    def zero_or_very_negative(T, S, _):
        return np.where(ops.causal_mask(T, S), 0.0, number)

    return zero_or_very_negative


causal_mask = Implement(
    name="causal_mask",
    chapter=CHAPTER,
    difficulty=1,
    minutes=10,
    reread="04_mask.forbid",
    reference=ops.causal_mask,
    returns="(T, S)",
    # Whoever gets the square right but not the cache is told so.
    cases=[case(T=1), case(T=2), case(T=3), case(T=5), case(T=4, S=4)],
    extremes=[
        case(T=1, S=3),
        case(T=2, S=3),
        case(T=2, S=5),
        case(T=3, S=2),
        case(T=5, S=2),
    ],
    variants=(bool, float, int),
    mistakes={
        "top_left": top_left,
        "upside_down": upside_down,
        "looks_ahead": looks_ahead,
        "excludes_itself": excludes_itself,
        "one_too_far": one_too_far,
        "ignores_keys": (ignores_keys, ignores_queries),
        "offset_turned": offset_turned,
        "offset_never_negative": offset_never_negative,
        "axes_swapped": (axes_swapped, axes_swapped_at_top_left),
        "everything": everything,
        "diagonal_only": diagonal_only,
        "forgets_none": (forgets_none, forgets_none_by_shape),
        "numbers": tuple(numbers(dtype) for dtype in (float, int, np.uint8)),
        "to_be_added": tuple(to_be_added(n) for n in (-np.inf, -1e9, -1e4)),
    },
    sections={
        "top_left": "04_mask.cache",
        "ignores_keys": "04_mask.cache",
        "offset_turned": "04_mask.cache",
        "offset_never_negative": "04_mask.cache",
        "axes_swapped": "04_mask.cache",
        "forgets_none": "04_mask.cache",
    },
)

# --- attend_with_past -------------------------------------------------------
#
# The variant is the softmax that the reader brings.


def joined(past, new):
    return np.concatenate([past, new], axis=-2)


def attend(q, k, v, allow, softmax):
    return softmax(hide(scores_of(q, k, None), allow)) @ v


def mask_for(q, k):
    return ops.causal_mask(q.shape[-2], k.shape[-2])


def with_mask(mask):
    """Return attention to everything with the mask that ``mask`` makes of T and S."""

    def attention(q, k, v, past_k, past_v, softmax):
        k, v = joined(past_k, k), joined(past_v, v)
        return attend(q, k, v, mask(q.shape[-2], k.shape[-2]), softmax)

    return attention


def mask_is_missing(T, S):
    return None


def mask_top_left(T, S):
    return top_left(T, S, bool)


def mask_upside_down(T, S):
    return upside_down(T, S, bool)


def mask_without_oneself(T, S):
    return excludes_itself(T, S, bool)


def mask_one_too_far(T, S):
    return one_too_far(T, S, bool)


def past_hidden(T, S):
    return np.hstack([np.zeros((T, S - T), bool), ops.causal_mask(T)])


def forgets_past(q, k, v, past_k, past_v, softmax):
    return attend(q, k, v, ops.causal_mask(q.shape[-2]), softmax)


def forgets_new(q, k, v, past_k, past_v, softmax):
    return attend(q, past_k, past_v, None, softmax)


def past_last(q, k, v, past_k, past_v, softmax):
    k, v = joined(k, past_k), joined(v, past_v)
    return attend(q, k, v, mask_for(q, k), softmax)


def values_in_other_order(q, k, v, past_k, past_v, softmax):
    k, v = joined(past_k, k), joined(v, past_v)
    return attend(q, k, v, mask_for(q, k), softmax)


def past_values_forgotten(q, k, v, past_k, past_v, softmax):
    k = joined(past_k, k)
    return attend(q, k, v, mask_for(q, k), softmax)


def joined_along(axis):
    def attention(q, k, v, past_k, past_v, softmax):
        k = np.concatenate([past_k, k], axis=axis)
        v = np.concatenate([past_v, v], axis=axis)
        return attend(q, k, v, mask_for(q, k), softmax)

    return attention


def mask_after_softmax(q, k, v, past_k, past_v, softmax):
    k, v = joined(past_k, k), joined(past_v, v)
    return (softmax(scores_of(q, k, None)) * mask_for(q, k)) @ v


def mask_of_zeros(q, k, v, past_k, past_v, softmax):
    k, v = joined(past_k, k), joined(past_v, v)
    return softmax(scores_of(q, k, None) * mask_for(q, k)) @ v


def finite_mask(number):
    """Return attention that hides a score behind a large negative number."""

    # Any softmax that does not overflow gives the same here.
    def replaces(q, k, v, past_k, past_v, _):
        k, v = joined(past_k, k), joined(past_v, v)
        scores = scores_of(q, k, None)
        low = scores.dtype.type(number)
        return ops.softmax(np.where(mask_for(q, k), scores, low)) @ v

    def adds(q, k, v, past_k, past_v, _):
        k, v = joined(past_k, k), joined(past_v, v)
        low = np.where(mask_for(q, k), 0, number).astype(q.dtype)
        return ops.softmax(scores_of(q, k, None) + low) @ v

    return replaces, adds


def no_scale(q, k, v, past_k, past_v, softmax):
    k, v = joined(past_k, k), joined(past_v, v)
    return softmax(hide(products(q, k), mask_for(q, k))) @ v


def overflows(q, k, v, past_k, past_v, _):
    k, v = joined(past_k, k), joined(past_v, v)
    return attend(q, k, v, mask_for(q, k), softmax_that_overflows)


def attend_in_float64(q, k, v, past_k, past_v, softmax):
    k, v = joined(past_k, k), joined(past_v, v)
    scores = products(q, k) / np.sqrt(q.shape[-1])
    return softmax(hide(scores, mask_for(q, k))) @ v


def overflows_in_float64(q, k, v, past_k, past_v, _):
    return attend_in_float64(q, k, v, past_k, past_v, softmax_that_overflows)


# A softmax that overflows gets some numbers wrong as well, and that comes first.
def promotes_float32(q, k, v, past_k, past_v, _):
    return attend_in_float64(q, k, v, past_k, past_v, ops.softmax)


def arrival(*, T, P, d, d_v, batch=()):
    """Draw T new tokens and P remembered ones."""
    return case(
        q=tenths(*batch, T, d),
        k=tenths(*batch, T, d),
        v=tenths(*batch, T, d_v),
        past_k=tenths(*batch, P, d),
        past_v=tenths(*batch, P, d_v),
    )


NO_PAST = {"past_k": np.zeros((0, 2)), "past_v": np.zeros((0, 1))}
TWO_VALUES = np.array([[1.0], [-1.0]])
LARGE = case(
    q=np.array([[1000.0, 0.0], [0.0, 1000.0]]),
    k=np.array([[2.0, 1.0], [0.0, 2.0]]),
    v=TWO_VALUES,
    **NO_PAST,
)
# Any finite number in the place of −∞ would be the largest score of the first row.
LOWEST = case(
    q=np.array([[-1e20, 0.0], [0.0, 1.0]]),
    k=np.array([[2e20, 0.0], [0.0, 1.0]]),
    v=TWO_VALUES,
    **NO_PAST,
)

attend_with_past = Implement(
    name="attend_with_past",
    chapter=CHAPTER,
    difficulty=2,
    minutes=20,
    reread="04_mask.cache",
    reference=model.attend_with_past,
    returns="(..., T, d_v)",
    cases=[
        arrival(T=2, P=0, d=1, d_v=1),
        arrival(T=1, P=2, d=2, d_v=1),
        arrival(T=2, P=1, d=2, d_v=1),
        arrival(T=2, P=3, d=4, d_v=1),
        arrival(T=3, P=3, d=2, d_v=4),
        arrival(T=2, P=2, d=3, d_v=4, batch=(2,)),
        arrival(T=3, P=2, d=5, d_v=4, batch=(2,)),
        arrival(T=2, P=4, d=3, d_v=5, batch=(2, 3)),
    ],
    extremes=[
        LARGE,
        LOWEST,
        case(**in_float32(arrival(T=2, P=3, d=5, d_v=4))),
    ],
    variants=SOFTMAXES,
    mistakes={
        "no_mask": with_mask(mask_is_missing),
        "top_left": with_mask(mask_top_left),
        "upside_down": with_mask(mask_upside_down),
        "excludes_itself": with_mask(mask_without_oneself),
        "one_too_far": with_mask(mask_one_too_far),
        "forgets_past": (with_mask(past_hidden), forgets_past),
        "forgets_new": forgets_new,
        "past_last": past_last,
        "values_in_other_order": values_in_other_order,
        "past_values_forgotten": past_values_forgotten,
        "wrong_axis": (joined_along(0), joined_along(-1)),
        "mask_after_softmax": mask_after_softmax,
        "mask_of_zeros": mask_of_zeros,
        "finite_mask": tuple(
            version
            for number in (-1e4, -1e9, float(np.finfo(np.float32).min))
            for version in finite_mask(number)
        ),
        "no_scale": no_scale,
        "overflows": (overflows, overflows_in_float64),
        "promotes_float32": promotes_float32,
    },
    sections={
        "upside_down": "04_mask.forbid",
        "excludes_itself": "04_mask.forbid",
        "one_too_far": "04_mask.forbid",
        "mask_after_softmax": "04_mask.leak",
        "mask_of_zeros": "04_mask.forbid",
        "finite_mask": "04_mask.leak",
        "no_scale": "02_scaling.root",
        "overflows": "01_qkv.overflow",
        "promotes_float32": "01_qkv.practice",
    },
)

# --- integer_mask, hide_afterwards, flag_with_cache -------------------------

integer_mask = Predict(
    name="integer_mask",
    chapter=CHAPTER,
    difficulty=2,
    minutes=5,
    reread="04_mask.practice",
    answer="b",
    mistakes={"as_intended": "a", "all_true": "c", "error": "d"},
)

hide_afterwards = Predict(
    name="hide_afterwards",
    chapter=CHAPTER,
    kind="break it",
    difficulty=2,
    minutes=6,
    reread="04_mask.leak",
    answer="c",
    mistakes={"still_divided": "a", "as_good": "b", "weights_remain": "d"},
)

flag_with_cache = Predict(
    name="flag_with_cache",
    chapter=CHAPTER,
    kind="break it",
    difficulty=3,
    minutes=6,
    reread="04_mask.cache",
    answer="b",
    mistakes={"everything": "a", "own_chunk": "c", "error": "d"},
)

EXERCISES = [
    hidden_pairs,
    causal_mask,
    attend_with_past,
    integer_mask,
    hide_afterwards,
    flag_with_cache,
]
