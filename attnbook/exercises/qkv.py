"""The exercises of the chapter on Q, K and V.

Every wrong version below is one that people write. Each takes the arguments of
the library's function and, last, one *variant*: a way of doing the part around
the mistake, because one mistake seldom comes alone.
"""

import numpy as np

from attnbook import ops
from attnbook.exercises._exercise import Implement, Predict, case

CHAPTER = "01_qkv"

# --- value_of_tart ----------------------------------------------------------

value_of_tart = Predict(
    name="value_of_tart",
    chapter=CHAPTER,
    difficulty=1,
    minutes=3,
    reread="01_qkv.roles",
    answer="c",
    mistakes={"key": "a", "query": "b", "signs": "d"},
)

# --- row_sums ---------------------------------------------------------------

row_sums = Predict(
    name="row_sums",
    chapter=CHAPTER,
    difficulty=1,
    minutes=3,
    reread="01_qkv.softmax",
    answer="b",
    mistakes={"columns": "a", "counts_keys": "c", "nothing": "d"},
)

# --- softmax ----------------------------------------------------------------


def divide_or_zero(exps, total):
    """Divide, but give 0 where everything is 0."""
    return exps / np.where(total == 0, 1, total)


def no_maximum(x, axis, divide):
    exps = np.exp(x)
    return divide(exps, exps.sum(axis=axis, keepdims=True))


def maximum_of_everything(x, axis, divide):
    exps = np.exp(x - x.max())
    return divide(exps, exps.sum(axis=axis, keepdims=True))


def along(x, axis, divide):
    """Softmax along an axis, which the next mistakes choose wrongly."""
    highest = x.max(axis=axis, keepdims=True)
    exps = np.exp(x - np.where(np.isneginf(highest), x.dtype.type(0), highest))
    return divide(exps, exps.sum(axis=axis, keepdims=True))


def ignores_axis(x, axis, divide):
    return along(x, -1, divide)


def first_axis(x, axis, divide):
    return along(x, 0, divide)


def over_everything(x, axis, divide):
    return along(x, None, divide)


def no_keepdims(x, axis, divide):
    exps = np.exp(x - x.max(axis=axis, keepdims=True))
    return divide(exps, exps.sum(axis=axis))


def no_keepdims_twice(x, axis, divide):
    exps = np.exp(x - x.max(axis=axis))
    return divide(exps, exps.sum(axis=axis))


def no_keepdims_no_maximum(x, axis, divide):
    exps = np.exp(x)
    return divide(exps, exps.sum(axis=axis))


def no_exp(x, axis, divide):
    return divide(x, x.sum(axis=axis, keepdims=True))


def largest_is_one(x, axis, divide):
    """Divide by the largest exponential, or subtract the maximum and stop."""
    exps = np.exp(x - x.max(axis=axis, keepdims=True))
    return divide(exps, exps.max(axis=axis, keepdims=True))


def not_divided(x, axis, divide):
    return np.exp(x)


def upside_down(x, axis, divide):
    exps = np.exp(x.min(axis=axis, keepdims=True) - x)
    return divide(exps, exps.sum(axis=axis, keepdims=True))


def logarithm(x, axis, divide):
    return np.log(along(x, axis, divide))


def empty_row(x, axis, divide):
    exps = np.exp(x - x.max(axis=axis, keepdims=True))
    return exps / exps.sum(axis=axis, keepdims=True)


def empty_row_in_float32(x, axis, divide):
    """Add a number to the sum that is 0 in float32."""
    highest = x.max(axis=axis, keepdims=True)
    exps = np.exp(x - np.where(np.isneginf(highest), x.dtype.type(0), highest))
    return exps / (exps.sum(axis=axis, keepdims=True) + x.dtype.type(1e-300))


def finite_infinity(x, axis, divide):
    return along(np.where(np.isneginf(x), x.dtype.type(-1e9), x), axis, divide)


def lowest_for_infinity(x, axis, divide):
    return along(np.where(np.isneginf(x), np.finfo(x.dtype).min, x), axis, divide)


_rng = np.random.default_rng(1)
INF = np.inf


def tenths(*shape: int) -> np.ndarray:
    """Draw numbers of one decimal, which are read more easily."""
    return np.round(_rng.normal(size=shape), 1)


softmax = Implement(
    name="softmax",
    chapter=CHAPTER,
    difficulty=1,
    minutes=10,
    reread="01_qkv.softmax",
    reference=ops.softmax,
    returns="(the shape of x)",
    cases=[
        case(x=np.array([2.0])),
        case(x=np.array([0.0, 1.0])),
        case(x=np.array([0.0, 1.0, 3.0])),
        case(x=np.array([[0.0, 1.0], [2.0, 0.0]])),
        case(x=np.array([[0.0, 1.0], [2.0, 0.0]]), axis=0),
        case(x=np.array([[0.0, 1.0, 3.0], [2.0, 0.0, 1.0]])),
        case(x=np.array([[0.0, 1.0, 3.0], [2.0, 0.0, 1.0]]), axis=0),
        case(x=tenths(2, 3, 4)),
        case(x=tenths(2, 3, 4), axis=1),
        case(x=tenths(2, 3, 4), axis=0),
        case(x=tenths(2, 3, 4), axis=-3),
        case(x=tenths(2, 3, 4), axis=2),
    ],
    extremes=[
        case(x=np.array([-INF, 0.5])),
        case(x=np.array([1000.0, 999.0])),
        case(x=np.array([-1000.0, -1001.0])),
        case(x=np.array([3.0, -3e9])),
        case(x=np.array([-3e9, -INF])),
        case(x=np.array([-INF, -INF])),
        case(x=np.array([0.5, 2.0], dtype=np.float32)),
        case(x=np.array([-INF, -INF], dtype=np.float32)),
        case(x=np.array([[0.0, 1.0], [1000.0, 1001.0]])),
        case(x=np.array([[0.0, 2.0, -INF], [-INF, -INF, -INF]])),
        case(x=np.array([[0.0, -INF, 1.0], [3.0, -INF, 1.0]]), axis=0),
        case(x=np.array([[1, 0, 2], [1000, 3, 0]], dtype=np.float32)),
    ],
    variants=(np.divide, divide_or_zero),
    mistakes={
        "no_exp": no_exp,
        "not_divided": not_divided,
        "largest_is_one": largest_is_one,
        "upside_down": upside_down,
        "logarithm": logarithm,
        "no_maximum": no_maximum,
        "maximum_of_everything": maximum_of_everything,
        "ignores_axis": ignores_axis,
        "first_axis": first_axis,
        "over_everything": over_everything,
        "no_keepdims": (no_keepdims, no_keepdims_twice, no_keepdims_no_maximum),
        "empty_row": (empty_row, empty_row_in_float32),
        "finite_infinity": (finite_infinity, lowest_for_infinity),
    },
    sections={
        "no_maximum": "01_qkv.overflow",
        "maximum_of_everything": "01_qkv.overflow",
        "empty_row": "01_qkv.practice",
        "finite_infinity": "01_qkv.practice",
    },
    unnamed={"dtype": "01_qkv.practice"},
)

# --- scaled_dot_product_attention -------------------------------------------
#
# Wrong weights first, (q, k, allow, scale, softmax) -> (..., T, S); the chapter
# on scaling uses them too. The variants are the softmaxes that readers bring.


def softmax_with_nan(x):
    """Softmax that has no answer where every score is −∞."""
    exps = np.exp(x - x.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


def softmax_that_overflows(x):
    exps = np.exp(x)
    return exps / exps.sum(axis=-1, keepdims=True)


SOFTMAXES = (ops.softmax, softmax_with_nan, softmax_that_overflows)


def root(width: int) -> float:
    return float(width) ** 0.5


def products(q, k):
    return q @ k.swapaxes(-1, -2)


def hide(scores, allow):
    if allow is None:
        return scores
    return np.where(allow, scores, scores.dtype.type(-np.inf))


def scores_of(q, k, scale):
    return products(q, k) * (q.shape[-1] ** -0.5 if scale is None else scale)


def no_scale(q, k, allow, scale, softmax):
    scale = 1.0 if scale is None else scale
    return softmax(hide(products(q, k) * scale, allow))


def no_scale_no_mask(q, k, allow, scale, softmax):
    return softmax(products(q, k))


def divides_by_d(q, k, allow, scale, softmax):
    scale = 1 / q.shape[-1] if scale is None else scale
    return softmax(hide(products(q, k) * scale, allow))


def multiplies_by_root(q, k, allow, scale, softmax):
    scale = root(q.shape[-1]) if scale is None else scale
    return softmax(hide(products(q, k) * scale, allow))


def root_of_keys(q, k, allow, scale, softmax):
    scale = 1 / root(k.shape[-2]) if scale is None else scale
    return softmax(hide(products(q, k) * scale, allow))


def root_of_queries(q, k, allow, scale, softmax):
    scale = 1 / root(q.shape[-2]) if scale is None else scale
    return softmax(hide(products(q, k) * scale, allow))


def root_of_first_axis(q, k, allow, scale, softmax):
    scale = 1 / root(q.shape[0]) if scale is None else scale
    return softmax(hide(products(q, k) * scale, allow))


def scales_weights(q, k, allow, scale, softmax):
    scale = 1 / root(q.shape[-1]) if scale is None else scale
    return softmax(hide(products(q, k), allow)) * scale


def ignores_arguments(q, k, allow, scale, softmax):
    return softmax(scores_of(q, k, None))


def ignores_arguments_in_float64(q, k, allow, scale, softmax):
    return softmax(products(q, k) / np.sqrt(q.shape[-1]))


def ignores_arguments_transposes_all(q, k, allow, scale, softmax):
    return softmax(q @ k.T * q.shape[-1] ** -0.5)


def ignores_arguments_transposes_all_in_float64(q, k, allow, scale, softmax):
    return softmax(q @ k.T / np.sqrt(q.shape[-1]))


def ignores_scale(q, k, allow, scale, softmax):
    return softmax(hide(scores_of(q, k, None), allow))


def zero_scale(q, k, allow, scale, softmax):
    return softmax(hide(scores_of(q, k, scale or None), allow))


def divides_by_scale(q, k, allow, scale, softmax):
    scale = root(q.shape[-1]) if scale is None else scale
    return softmax(hide(products(q, k) / np.asarray(scale, q.dtype), allow))


def scales_twice(q, k, allow, scale, softmax):
    scores = products(q, k) * q.shape[-1] ** -0.5
    return softmax(hide(scores if scale is None else scores * scale, allow))


def ignores_mask(q, k, allow, scale, softmax):
    return softmax(scores_of(q, k, scale))


def ignores_mask_and_zero_scale(q, k, allow, scale, softmax):
    return softmax(scores_of(q, k, scale or None))


def mask_upside_down(q, k, allow, scale, softmax):
    return softmax(hide(scores_of(q, k, scale), None if allow is None else ~allow))


def mask_after_softmax(q, k, allow, scale, softmax):
    weights = softmax(scores_of(q, k, scale))
    return weights if allow is None else weights * allow


def mask_of_zeros(q, k, allow, scale, softmax):
    scores = scores_of(q, k, scale)
    return softmax(scores if allow is None else scores * allow)


def mask_by_index(q, k, allow, scale, softmax):
    scores = scores_of(q, k, scale)
    if allow is not None:
        scores[~allow] = -np.inf
    return softmax(scores)


def mask_times_infinity(q, k, allow, scale, softmax):
    scores = scores_of(q, k, scale)
    return softmax(scores if allow is None else scores + ~allow * -np.inf)


def adds_mask(q, k, allow, scale, softmax):
    scores = scores_of(q, k, scale)
    return softmax(scores if allow is None else scores + allow)


# Any softmax that does not overflow gives the same in these two.
def renormalises(q, k, allow, scale, _):
    weights = ops.softmax(scores_of(q, k, scale))
    if allow is None:
        return weights
    weights = weights * allow
    return weights / weights.sum(axis=-1, keepdims=True)


def renormalises_or_zero(q, k, allow, scale, _):
    weights = ops.softmax(scores_of(q, k, scale))
    if allow is None:
        return weights
    weights = weights * allow
    return divide_or_zero(weights, weights.sum(axis=-1, keepdims=True))


def finite_mask(number):
    """Return weights that hide a score behind a large negative number."""

    # Any softmax that does not overflow gives the same here.
    def replaces(q, k, allow, scale, _):
        scores = scores_of(q, k, scale)
        if allow is None:
            return ops.softmax(scores)
        return ops.softmax(np.where(allow, scores, scores.dtype.type(number)))

    def adds(q, k, allow, scale, _):
        scores = scores_of(q, k, scale)
        if allow is None:
            return ops.softmax(scores)
        return ops.softmax(scores + np.where(allow, 0, number).astype(q.dtype))

    def empty_rows_mended(q, k, allow, scale, _):
        weights = replaces(q, k, allow, scale, _)
        if allow is None:
            return weights
        return weights * allow.any(axis=-1, keepdims=True)

    return replaces, adds, empty_rows_mended


FINITE_MASKS = tuple(
    version
    for number in (-1e4, -1e6, -1e9, -1e10, float(np.finfo(np.float32).min))
    for version in finite_mask(number)
)


def wrong_axis(q, k, allow, scale, softmax):
    scores = hide(scores_of(q, k, scale), allow)
    return softmax(scores.swapaxes(-1, -2)).swapaxes(-1, -2)


def over_all_pairs(q, k, allow, scale, softmax):
    scores = hide(scores_of(q, k, scale), allow)
    flat = scores.reshape(*scores.shape[:-2], -1)
    return softmax(flat).reshape(scores.shape)


def no_softmax(q, k, allow, scale, softmax):
    return hide(scores_of(q, k, scale), allow)


def no_softmax_no_scale(q, k, allow, scale, softmax):
    return hide(products(q, k) * (1.0 if scale is None else scale), allow)


def transposes_everything(q, k, allow, scale, softmax):
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return softmax(hide(q @ k.T * scale, allow))


def not_transposed(q, k, allow, scale, softmax):
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return softmax(hide(q @ k * scale, allow))


def asks_the_wrong_way(q, k, allow, scale, softmax):
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return softmax(hide(products(k, q) * scale, allow))


def empty_row_of_nan(q, k, allow, scale, softmax):
    return softmax_with_nan(hide(scores_of(q, k, scale), allow))


def empty_row_of_nan_in_float64(q, k, allow, scale, softmax):
    scale = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    return softmax_with_nan(hide(products(q, k) * scale, allow))


def empty_row_of_nan_in_float32(q, k, allow, scale, softmax):
    return empty_row_in_float32(hide(scores_of(q, k, scale), allow), -1, np.divide)


def overflows(q, k, allow, scale, softmax):
    return softmax_that_overflows(hide(scores_of(q, k, scale), allow))


def overflows_in_float64(q, k, allow, scale, softmax):
    scale = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    return softmax_that_overflows(hide(products(q, k) * scale, allow))


# Any other softmax gets some numbers wrong as well, and that comes first.
def root_in_float64(q, k, allow, scale, _):
    scale = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    return ops.softmax(hide(products(q, k) * scale, allow))


def scale_in_float64(q, k, allow, scale, _):
    scale = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    return ops.softmax(hide(products(q, k) * np.float64(scale), allow))


def then_mix(weights_of):
    """Turn wrong weights into wrong attention."""

    def attention(q, k, v, allow, scale, softmax):
        return weights_of(q, k, allow, scale, softmax) @ v

    return attention


def root_of_value_width(q, k, v, allow, scale, softmax):
    scale = 1 / root(v.shape[-1]) if scale is None else scale
    return softmax(hide(products(q, k) * scale, allow)) @ v


def keys_for_values(q, k, v, allow, scale, softmax):
    return softmax(hide(scores_of(q, k, scale), allow)) @ k


def softmax_last(q, k, v, allow, scale, softmax):
    return softmax(hide(scores_of(q, k, scale), allow) @ v)


def only_weights(q, k, v, allow, scale, softmax):
    return softmax(hide(scores_of(q, k, scale), allow))


def mean_of_values(q, k, v, allow, scale, softmax):
    """Divide the mix by the number of keys: a mean of what is weighted already."""
    weights = softmax(hide(scores_of(q, k, scale), allow))
    return weights @ v / k.shape[-2]


WRONG_WEIGHTS = {
    "no_softmax": (no_softmax, no_softmax_no_scale),
    "no_scale": (no_scale, no_scale_no_mask),
    "divides_by_d": divides_by_d,
    "multiplies_by_root": multiplies_by_root,
    "scales_weights": scales_weights,
    "ignores_arguments": (
        ignores_arguments,
        ignores_arguments_in_float64,
        ignores_arguments_transposes_all,
        ignores_arguments_transposes_all_in_float64,
    ),
    "ignores_scale": ignores_scale,
    "divides_by_scale": divides_by_scale,
    "scales_twice": scales_twice,
    "zero_scale": zero_scale,
    "wrong_axis": wrong_axis,
    "over_all_pairs": over_all_pairs,
    "ignores_mask": (ignores_mask, ignores_mask_and_zero_scale),
    "mask_upside_down": mask_upside_down,
    "mask_after_softmax": mask_after_softmax,
    "mask_of_zeros": mask_of_zeros,
    "adds_mask": adds_mask,
    "mask_by_index": mask_by_index,
    "mask_times_infinity": mask_times_infinity,
    "empty_row": (
        empty_row_of_nan,
        empty_row_of_nan_in_float64,
        empty_row_of_nan_in_float32,
    ),
    "renormalises": (renormalises, renormalises_or_zero),
    "overflows": (overflows, overflows_in_float64),
    "not_transposed": not_transposed,
    "transposes_everything": transposes_everything,
    "asks_the_wrong_way": asks_the_wrong_way,
    "finite_mask": FINITE_MASKS,
    "promotes_float32": (root_in_float64, scale_in_float64),
}
# Where a mistake is explained, if not where attention as a whole is.
SECTIONS = {
    "no_softmax": "01_qkv.softmax",
    "wrong_axis": "01_qkv.softmax",
    "over_all_pairs": "01_qkv.softmax",
    "overflows": "01_qkv.overflow",
    "ignores_arguments": "01_qkv.practice",
    "ignores_mask": "01_qkv.practice",
    "mask_upside_down": "01_qkv.practice",
    "mask_after_softmax": "01_qkv.practice",
    "mask_of_zeros": "01_qkv.practice",
    "adds_mask": "01_qkv.practice",
    "mask_by_index": "01_qkv.practice",
    "mask_times_infinity": "01_qkv.practice",
    "renormalises": "01_qkv.practice",
    "finite_mask": "01_qkv.practice",
    "empty_row": "01_qkv.practice",
    "promotes_float32": "01_qkv.practice",
}
# The same for a failure that has no name.
UNNAMED = {"dtype": "01_qkv.practice", "allow": "01_qkv.practice"}
WRONG_WIDTHS = (root_of_keys, root_of_queries, root_of_first_axis)


def _mixed(functions):
    if isinstance(functions, tuple):
        return tuple(then_mix(f) for f in functions)
    return then_mix(functions)


def qk(*, T, S, d, batch=(), key_batch=None):
    """Draw queries and keys for one case."""
    key_batch = batch if key_batch is None else key_batch
    return {"q": tenths(*batch, T, d), "k": tenths(*key_batch, S, d)}


def rows(*lines: str) -> np.ndarray:
    """Write a mask: x = may look, . = may not."""
    return np.array([[sign == "x" for sign in line] for line in lines])


def random_mask(*shape: int) -> np.ndarray:
    mask = _rng.random(shape) < 0.6
    mask[..., 0] |= ~mask.any(axis=-1)
    return mask


def ordinary_cases():
    """List calls without values; T, S and d differ, or are all equal on purpose."""
    two = {"q": np.array([[2.0, 0, 0, 0]]), "k": np.array([[1.0, 0, 0, 0], [0] * 4])}
    square = {
        "q": np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]]),
        "k": np.array([[1.0, 0.0, 1.0], [2.0, -1.0, 0.0]]),
    }
    cube = qk(T=3, S=3, d=3, batch=(3,))
    return [
        case(q=np.array([[1.0, 2.0]]), k=np.array([[3.0, -1.0]])),
        case(**two),
        case(**two, allow=rows("x.")),
        case(**two, allow=rows(".x")),
        case(**two, scale=2.0),
        case(**two, scale=0.0),
        case(**square),
        case(**square, allow=rows("x.", "xx")),
        case(**square, allow=np.array([True, False])),
        case(**square, scale=0.25),
        case(**qk(T=2, S=3, d=5)),
        case(**qk(T=3, S=2, d=1)),
        case(**qk(T=2, S=3, d=5), allow=rows("x.x", ".xx")),
        # One axis letter for another is silent when they are equally long.
        case(**cube),
        case(**cube, allow=random_mask(3, 1, 3)),
        case(**cube, allow=random_mask(3, 3)),
        case(**qk(T=3, S=4, d=6, batch=(2,))),
        case(**qk(T=3, S=4, d=6, batch=(2,)), allow=random_mask(2, 3, 4)),
        case(**qk(T=3, S=4, d=6, batch=(2,), key_batch=())),
        case(**qk(T=4, S=5, d=6, batch=(2, 3))),
        case(**qk(T=4, S=5, d=6, batch=(2, 2)), allow=random_mask(2, 1, 4, 5)),
        case(**qk(T=4, S=5, d=6, batch=(2, 3), key_batch=(3,)), scale=1.5),
    ]


def extreme_cases():
    two = {"q": np.array([[2.0, 0, 0, 0]]), "k": np.array([[1.0, 0, 0, 0], [0] * 4])}
    large = {
        "q": np.array([[1000.0, 0, 0, 1]]),
        "k": np.array([[1.0, 0, 0, 0], [1, 0, 0, 2], [-1, 0, 0, 0]]),
    }
    # Any finite number in the place of −∞ would be the largest score here.
    lowest = {
        "q": np.array([[-1e20, 0]]),
        "k": np.array([[2e20, 0], [1e20, 0], [0, 1]]),
    }
    return [
        case(**two, allow=rows("..")),
        case(**in_float32(two), allow=rows("..")),
        case(**in_float32(two)),
        case(**lowest, allow=rows("xx.")),
        case(**large),
        case(**in_float32(large)),
        case(**qk(T=2, S=3, d=5), allow=rows("x.x", "...")),
        case(**qk(T=2, S=3, d=5), allow=rows("x", ".")),
        case(**in_float32(qk(T=2, S=3, d=5)), allow=rows("xx.", ".xx")),
        case(**in_float32(qk(T=3, S=4, d=6, batch=(2,))), scale=0.5),
    ]


def in_float32(arrays):
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def with_values(arguments):
    """Add values to a case; their width d_v is unlike every other axis."""
    k = arguments["k"]
    width = {1: 2, 2: 3, 3: 1}.get(k.shape[-2], 7)
    if width == k.shape[-1]:
        width += 5
    v = np.arange(1.0, k[..., 0].size * width + 1).reshape(*k.shape[:-1], width)
    v = np.where(v % 3 == 2, -v, v).astype(k.dtype)
    rest = {n: a for n, a in arguments.items() if n not in ("q", "k")}
    return case(q=arguments["q"], k=k, v=v, **rest)


ORDINARY = ordinary_cases()
EXTREME = extreme_cases()

scaled_dot_product_attention = Implement(
    name="scaled_dot_product_attention",
    chapter=CHAPTER,
    difficulty=2,
    minutes=20,
    reread="01_qkv.attention",
    reference=ops.scaled_dot_product_attention,
    returns="(..., T, d_v)",
    cases=[with_values(arguments) for arguments in ORDINARY],
    extremes=[with_values(arguments) for arguments in EXTREME],
    variants=SOFTMAXES,
    mistakes={name: _mixed(wrong) for name, wrong in WRONG_WEIGHTS.items()}
    | {
        "wrong_width": (*_mixed(WRONG_WIDTHS), root_of_value_width),
        "keys_for_values": keys_for_values,
        "softmax_last": softmax_last,
        "only_weights": only_weights,
        "mean_of_values": mean_of_values,
    },
    sections=SECTIONS
    | {
        "keys_for_values": "01_qkv.mix",
        "softmax_last": "01_qkv.mix",
        "only_weights": "01_qkv.mix",
        "mean_of_values": "01_qkv.mix",
    },
    unnamed=UNNAMED,
)

# --- swap_query_and_key -----------------------------------------------------

swap_query_and_key = Predict(
    name="swap_query_and_key",
    chapter=CHAPTER,
    kind="break it",
    difficulty=2,
    minutes=6,
    reread="01_qkv.softmax",
    answer="c",
    mistakes={"undone": "a", "rows_reversed": "b", "rows_sum_to_one": "d"},
)

EXERCISES = [
    value_of_tart,
    row_sums,
    softmax,
    scaled_dot_product_attention,
    swap_query_and_key,
]
