"""The exercises of the chapter on scaling; wrong versions as in ``qkv``."""

import math

import numpy as np

from attnbook import ops
from attnbook.exercises._exercise import Implement, Predict, case
from attnbook.exercises.qkv import (
    EXTREME,
    ORDINARY,
    SECTIONS,
    SOFTMAXES,
    UNNAMED,
    WRONG_WEIGHTS,
    WRONG_WIDTHS,
)

CHAPTER = "02_scaling"

# --- which_is_saturated -----------------------------------------------------

which_is_saturated = Predict(
    name="which_is_saturated",
    chapter=CHAPTER,
    difficulty=1,
    minutes=3,
    reread="02_scaling.saturation",
    answer="a",
    mistakes={"entropy_upside_down": "b", "most_is_enough": "c", "small_ones": "d"},
)

# --- spread_of_scores -------------------------------------------------------

WIDTH = 256  # of the keys and queries in the question

spread_of_scores = Predict(
    name="spread_of_scores",
    chapter=CHAPTER,
    difficulty=1,
    minutes=3,
    reread="02_scaling.growth",
    answer=math.sqrt(WIDTH),
    tolerance=0.05,
    mistakes={
        "variance": float(WIDTH),
        "one_product": 1.0,
        "half": WIDTH / 2,
        "in_proportion": 8.0 * WIDTH / 64,
        "chapter_example": 8.0,
        "scaled": 1 / math.sqrt(WIDTH),
    },
)

# --- attention_weights ------------------------------------------------------

attention_weights = Implement(
    name="attention_weights",
    chapter=CHAPTER,
    difficulty=2,
    minutes=10,
    reread="02_scaling.root",
    reference=ops.attention_weights,
    returns="(..., T, S)",
    cases=ORDINARY,
    extremes=EXTREME,
    variants=SOFTMAXES,
    mistakes=WRONG_WEIGHTS | {"wrong_width": WRONG_WIDTHS},
    sections=SECTIONS
    | {
        "no_scale": "02_scaling.saturation",
        "scales_weights": "02_scaling.practice",
    },
    unnamed=UNNAMED,
)

# --- softmax_jacobian -------------------------------------------------------


def outer(w):
    return w[..., :, None] * w[..., None, :]


def diagonal(w):
    return w[..., :, None] * np.eye(w.shape[-1], dtype=w.dtype)


def diagonal_only(w, _):
    return diagonal(w)


def derivatives_only(w, _):
    return diagonal(w * (1 - w))


def sign_flipped(w, _):
    return outer(w) - diagonal(w)


def adds_outer(w, _):
    return diagonal(w) + outer(w)


def outer_only(w, _):
    return -outer(w)


def outer_only_positive(w, _):
    return outer(w)


def same_everywhere(w, _):
    return w[..., :, None] * (1 - w[..., None, :])


def same_everywhere_turned(w, _):
    return w[..., None, :] * (1 - w[..., :, None])


def ones_on_diagonal(w, _):
    return np.eye(w.shape[-1], dtype=w.dtype) - outer(w)


def forgets_outer_factor(w, _):
    return np.eye(w.shape[-1], dtype=w.dtype) - w[..., None, :]


def subtracts_row(w, _):
    return diagonal(w) - w[..., None, :]


def subtracts_column(w, _):
    return diagonal(w) - w[..., :, None]


def one_row_only(w, _):
    return np.diag(w) - np.outer(w, w)


def one_row_only_product(w, _):
    return np.diag(w) - w @ w.T


def one_row_only_product_turned(w, _):
    return np.diag(w) - w.T @ w


def softmax_first(w, _):
    return ops.softmax_jacobian(ops.softmax(w))


def sums_rows(w, _):
    """Add up the Jacobians of all rows: w.T @ w."""
    eye = np.eye(w.shape[-1], dtype=w.dtype)
    return w[..., None] * eye - w.swapaxes(-1, -2) @ w


def promotes_float32(w, _):
    return w[..., :, None] * np.eye(w.shape[-1]) - outer(w)


_rng = np.random.default_rng(2)


def weights(*shape: int) -> np.ndarray:
    return ops.softmax(np.round(_rng.normal(size=shape), 1))


softmax_jacobian = Implement(
    name="softmax_jacobian",
    chapter=CHAPTER,
    difficulty=3,
    minutes=15,
    reread="02_scaling.gradients",
    reference=ops.softmax_jacobian,
    returns="(..., S, S)",
    cases=[
        case(weights=np.array([1.0])),
        case(weights=np.array([0.25, 0.75])),
        case(weights=np.array([0.0, 1.0, 0.0])),
        case(weights=np.array([0.5, 0.25, 0.25])),
        case(weights=np.array([0.0, 0.0, 0.0])),
        case(weights=np.array([[0.5, 0.5], [0.25, 0.75]])),
        case(weights=np.array([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]])),
        case(weights=weights(3, 3)),
        case(weights=weights(3, 2, 4)),
        case(weights=weights(2, 3, 3, 4)),
    ],
    extremes=[
        case(weights=np.array([0.25, 0.75], dtype=np.float32)),
        case(weights=weights(3, 4).astype(np.float32)),
    ],
    variants=(None,),
    mistakes={
        "diagonal_only": (diagonal_only, derivatives_only),
        "sign_flipped": sign_flipped,
        "adds_outer": adds_outer,
        "outer_only": (outer_only, outer_only_positive),
        "same_everywhere": (same_everywhere, same_everywhere_turned),
        "ones_on_diagonal": (ones_on_diagonal, forgets_outer_factor),
        "subtracts_weights": (subtracts_row, subtracts_column),
        "one_row_only": (
            one_row_only,
            one_row_only_product,
            one_row_only_product_turned,
            sums_rows,
        ),
        "softmax_first": softmax_first,
        "promotes_float32": promotes_float32,
    },
)

# --- divide_by_d, half_precision --------------------------------------------

divide_by_d = Predict(
    name="divide_by_d",
    chapter=CHAPTER,
    kind="break it",
    difficulty=2,
    minutes=5,
    reread="02_scaling.root",
    answer="d",
    mistakes={"saturated": "a", "drowned": "b", "zero": "c"},
)

half_precision = Predict(
    name="half_precision",
    chapter=CHAPTER,
    kind="break it",
    difficulty=2,
    minutes=6,
    reread="02_scaling.misreadings",
    answer="b",
    mistakes={"subtracts_the_maximum": "a", "only_the_first": "c", "stops_there": "d"},
)

EXERCISES = [
    which_is_saturated,
    spread_of_scores,
    attention_weights,
    softmax_jacobian,
    divide_by_d,
    half_precision,
]
