"""The exercises of the chapter on residual connections and norms."""

import numpy as np

from attnbook import ops
from attnbook.exercises._exercise import Implement, Predict, case

CHAPTER = "05_residual_norm"

# --- size_of_the_stream -----------------------------------------------------

# in the question
START, STEPS, STEP = 3.0, 40, 2.0
MEAN_SQUARE = START**2 + STEPS * STEP**2

size_of_the_stream = Predict(
    name="size_of_the_stream",
    chapter=CHAPTER,
    difficulty=1,
    minutes=4,
    reread="05_residual_norm.residual",
    answer=MEAN_SQUARE**0.5,
    tolerance=0.02,
    mistakes={
        "adds_sizes": START + STEPS * STEP,
        "mean_square": MEAN_SQUARE,
        "root_of_sizes": (START + STEPS * STEP) ** 0.5,
        "increments_of_one": (START**2 + STEPS) ** 0.5,
        "forgets_original": (STEPS * STEP**2) ** 0.5,
        "stays": START,
        "normed": 1.0,
    },
)

# --- layer_norm -------------------------------------------------------------


def mean(x, axis=-1):
    return x.mean(axis=axis, keepdims=True)


def inside(square, eps):
    return np.sqrt(square + eps)


def outside(square, eps):
    return np.sqrt(square) + eps


# Whoever makes another mistake may have put ε outside the root, too.
ROOTS = (inside, outside)


def unit_layer(x, eps, root=inside):
    return (x - mean(x)) / root(x.var(axis=-1, keepdims=True), eps)


def no_centring(x, gain, bias, eps, root):
    return x / root(mean(x * x), eps) * gain + bias


def no_centring_above(x, gain, bias, eps, root):
    return x / root(x.var(axis=-1, keepdims=True), eps) * gain + bias


def no_centring_below(x, gain, bias, eps, root):
    return (x - mean(x)) / root(mean(x * x), eps) * gain + bias


def only_centres(x, gain, bias, eps, _):
    return (x - mean(x)) * gain + bias


def adds_mean(x, gain, bias, eps, root):
    return (x + mean(x)) / root(x.var(axis=-1, keepdims=True), eps) * gain + bias


def divides_by_variance(x, gain, bias, eps, _):
    return (x - mean(x)) / (x.var(axis=-1, keepdims=True) + eps) * gain + bias


def multiplies(x, gain, bias, eps, root):
    return (x - mean(x)) * root(x.var(axis=-1, keepdims=True), eps) * gain + bias


def sample_variance(x, gain, bias, eps, root):
    square = x.var(axis=-1, keepdims=True, ddof=1)
    return (x - mean(x)) / root(square, eps) * gain + bias


def sum_of_squares(x, gain, bias, eps, root):
    square = np.sum((x - mean(x)) ** 2, axis=-1, keepdims=True)
    return (x - mean(x)) / root(square, eps) * gain + bias


def eps_outside(x, gain, bias, eps, _):
    return (x - mean(x)) / (x.std(axis=-1, keepdims=True) + eps) * gain + bias


def ignores_eps(x, gain, bias, eps, root):
    return unit_layer(x, 1e-5, root) * gain + bias


def ignores_eps_entirely(x, gain, bias, eps, root):
    return unit_layer(x, 0.0, root) * gain + bias


def eps_squared(x, gain, bias, eps, root):
    return unit_layer(x, eps * eps, root) * gain + bias


def over_tokens(x, gain, bias, eps, root):
    centred = x - mean(x, -2)
    return centred / root(x.var(axis=-2, keepdims=True), eps) * gain + bias


def over_the_first_axis(x, gain, bias, eps, root):
    return (x - mean(x, 0)) / root(x.var(axis=0, keepdims=True), eps) * gain + bias


def over_everything(x, gain, bias, eps, root):
    return (x - x.mean()) / root(x.var(), eps) * gain + bias


def one_size_for_all(x, gain, bias, eps, root):
    return (x - mean(x)) / root(x.var(), eps) * gain + bias


def no_keepdims(x, gain, bias, eps, root):
    return (x - x.mean(axis=-1)) / root(x.var(axis=-1), eps) * gain + bias


def no_keepdims_below(x, gain, bias, eps, root):
    return (x - mean(x)) / root(x.var(axis=-1), eps) * gain + bias


def no_gain(x, gain, bias, eps, root):
    return unit_layer(x, eps, root) + bias


def no_bias(x, gain, bias, eps, root):
    return unit_layer(x, eps, root) * gain


def neither(x, gain, bias, eps, root):
    return unit_layer(x, eps, root)


def bias_first(x, gain, bias, eps, root):
    return (unit_layer(x, eps, root) + bias) * gain


def gain_first(x, gain, bias, eps, root):
    return unit_layer(x * gain, eps, root) + bias


def gain_and_bias_first(x, gain, bias, eps, root):
    return unit_layer(x * gain + bias, eps, root)


def exchanged(x, gain, bias, eps, root):
    return unit_layer(x, eps, root) * bias + gain


def in_float64(x, gain, bias, eps, _):
    wide = x.astype(np.float64)
    return unit_layer(wide, eps) * gain + bias


_rng = np.random.default_rng(5)


def tenths(*shape: int) -> np.ndarray:
    return np.round(_rng.normal(size=shape), 1)


def vectors(*shape: int, bias: bool = True, eps: float = 1e-5, level: float = 0.5):
    """Arguments of a norm: tokens with a mean that is not 0, a gain and a bias."""
    D = shape[-1]
    arguments = case(x=tenths(*shape) + level, gain=1 + np.abs(tenths(D)), eps=eps)
    if bias:
        arguments["bias"] = tenths(D) + 0.3
    return arguments


def in_float32(arguments: dict) -> dict:
    return {
        n: a.astype(np.float32) if isinstance(a, np.ndarray) else a
        for n, a in arguments.items()
    }


SIMPLE = {"x": np.array([1.0, 5.0]), "gain": np.array([1.0, 2.0])}

layer_norm = Implement(
    name="layer_norm",
    chapter=CHAPTER,
    difficulty=2,
    minutes=12,
    reread="05_residual_norm.norm",
    reference=ops.layer_norm,
    returns="(..., D)",
    cases=[
        case(**SIMPLE, bias=np.array([0.0, 1.0]), eps=0.0),
        case(
            x=np.array([1.0, 2.0, 6.0]),
            gain=np.array([1.0, 2.0, 3.0]),
            bias=np.array([0.5, 0.0, 1.0]),
            eps=0.5,
        ),
        vectors(3),
        vectors(3, 2),
        vectors(2, 3),
        vectors(3, 3, eps=0.25),
        vectors(2, 3, 4),
        vectors(3, 3, 3),
        vectors(2, 2, 3, 5, eps=2.0),
    ],
    extremes=[
        in_float32(vectors(3)),
        case(
            x=np.full((2, 3), 4.0),
            gain=np.ones(3),
            bias=np.array([1.0, 2, 3]),
            eps=1e-5,
        ),
        in_float32(vectors(2, 3, 4)),
        case(x=tenths(2, 3) * 1e-3, gain=np.ones(3), bias=np.zeros(3), eps=1e-5),
    ],
    variants=ROOTS,
    mistakes={
        "no_centring": (no_centring, no_centring_above, no_centring_below),
        "only_centres": only_centres,
        "adds_mean": adds_mean,
        "divides_by_variance": divides_by_variance,
        "multiplies": multiplies,
        "sample_variance": sample_variance,
        "sum_of_squares": sum_of_squares,
        "eps_outside": eps_outside,
        "ignores_eps": (ignores_eps, ignores_eps_entirely),
        "eps_squared": eps_squared,
        "over_tokens": (over_tokens, over_the_first_axis),
        "over_everything": (over_everything, one_size_for_all),
        "no_keepdims": (no_keepdims, no_keepdims_below),
        "no_gain": no_gain,
        "no_bias": no_bias,
        "no_gain_no_bias": neither,
        "bias_first": bias_first,
        "gain_first": (gain_first, gain_and_bias_first),
        "exchanged": exchanged,
        "promotes_float32": in_float64,
    },
    sections={
        "eps_outside": "05_residual_norm.practice",
        "promotes_float32": "05_residual_norm.practice",
    },
)

# --- rms_norm ---------------------------------------------------------------


def unit_rms(x, eps, root=inside):
    return x / root(mean(x * x), eps)


def rms_centres(x, gain, eps, root):
    return unit_layer(x, eps, root) * gain


def rms_of_the_deviation(x, gain, eps, root):
    return x / root(x.var(axis=-1, keepdims=True), eps) * gain


def rms_centres_above(x, gain, eps, root):
    return (x - mean(x)) / root(mean(x * x), eps) * gain


def rms_no_root(x, gain, eps, _):
    return x / (mean(x * x) + eps) * gain


def rms_no_square(x, gain, eps, root):
    return x / root(mean(x), eps) * gain


def rms_square_of_mean(x, gain, eps, root):
    return x / root(mean(x) ** 2, eps) * gain


def rms_absolute(x, gain, eps, _):
    return x / (mean(np.abs(x)) + eps) * gain


def rms_sum(x, gain, eps, root):
    return x / root(np.sum(x * x, axis=-1, keepdims=True), eps) * gain


def rms_length(x, gain, eps, _):
    return x / (np.linalg.norm(x, axis=-1, keepdims=True) + eps) * gain


def rms_sample(x, gain, eps, root):
    square = np.sum(x * x, axis=-1, keepdims=True) / (x.shape[-1] - 1)
    return x / root(square, eps) * gain


def rms_multiplies(x, gain, eps, root):
    return x * root(mean(x * x), eps) * gain


def rms_eps_outside(x, gain, eps, _):
    return x / (np.sqrt(mean(x * x)) + eps) * gain


def rms_ignores_eps(x, gain, eps, root):
    return unit_rms(x, 1e-5, root) * gain


def rms_ignores_eps_entirely(x, gain, eps, root):
    return unit_rms(x, 0.0, root) * gain


def rms_eps_squared(x, gain, eps, root):
    return unit_rms(x, eps * eps, root) * gain


def rms_over_tokens(x, gain, eps, root):
    return x / root(mean(x * x, -2), eps) * gain


def rms_over_the_first_axis(x, gain, eps, root):
    return x / root(mean(x * x, 0), eps) * gain


def rms_over_everything(x, gain, eps, root):
    return x / root(np.mean(x * x), eps) * gain


def rms_no_keepdims(x, gain, eps, root):
    return x / root(np.mean(x * x, axis=-1), eps) * gain


def rms_no_gain(x, gain, eps, root):
    return unit_rms(x, eps, root)


def rms_gain_first(x, gain, eps, root):
    return unit_rms(x * gain, eps, root)


def rms_adds_gain(x, gain, eps, root):
    return unit_rms(x, eps, root) + gain


def rms_one_plus_gain(x, gain, eps, root):
    return unit_rms(x, eps, root) * (1 + gain)


def rms_in_float64(x, gain, eps, _):
    return unit_rms(x.astype(np.float64), eps) * gain


rms_norm = Implement(
    name="rms_norm",
    chapter=CHAPTER,
    difficulty=1,
    minutes=8,
    reread="05_residual_norm.rms",
    reference=ops.rms_norm,
    returns="(..., D)",
    cases=[
        case(**SIMPLE, eps=0.0),
        case(x=np.array([1.0, 4.0, -8.0]), gain=np.array([1.0, 2.0, 3.0]), eps=0.5),
        vectors(3, bias=False),
        vectors(3, 2, bias=False),
        vectors(2, 3, bias=False),
        vectors(3, 3, bias=False, eps=0.25),
        vectors(2, 3, 4, bias=False),
        vectors(3, 3, 3, bias=False),
        vectors(2, 2, 3, 5, bias=False, eps=2.0),
    ],
    extremes=[
        in_float32(vectors(3, bias=False)),
        case(x=np.zeros((2, 3)), gain=np.ones(3), eps=1e-5),
        in_float32(vectors(2, 3, 4, bias=False)),
        case(x=tenths(2, 3) * 1e-3, gain=np.ones(3), eps=1e-5),
    ],
    variants=ROOTS,
    mistakes={
        "centres": (rms_centres, rms_of_the_deviation, rms_centres_above),
        "no_root": rms_no_root,
        "no_square": (rms_no_square, rms_square_of_mean, rms_absolute),
        "sum_not_mean": (rms_sum, rms_length),
        "sample_mean": rms_sample,
        "multiplies": rms_multiplies,
        "eps_outside": rms_eps_outside,
        "ignores_eps": (rms_ignores_eps, rms_ignores_eps_entirely),
        "eps_squared": rms_eps_squared,
        "over_tokens": (rms_over_tokens, rms_over_the_first_axis),
        "over_everything": rms_over_everything,
        "no_keepdims": rms_no_keepdims,
        "no_gain": rms_no_gain,
        "gain_first": rms_gain_first,
        "adds_gain": (rms_adds_gain, rms_one_plus_gain),
        "promotes_float32": rms_in_float64,
    },
    sections={
        "eps_outside": "05_residual_norm.practice",
        "promotes_float32": "05_residual_norm.practice",
    },
)

# --- pre_norm_block ---------------------------------------------------------
#
# Sublayers and norms that are no norms at all: none of them undoes, repeats or
# hides another, so that every wrong order gives other numbers.


def named(function):
    """Wrap a function in a type of its name, for messages show the type."""
    return type(function.__name__, (), {"__call__": staticmethod(function)})()


@named
def adds_one(x):
    return x + 1


@named
def halves(x):
    return x / 2


@named
def times_ten(x):
    return x * 10


@named
def squares(x):
    return x * x


@named
def returns_zeros(x):
    return np.zeros_like(x)


@named
def turns_tokens_round(x):
    return x[..., ::-1, :] * 3


@named
def unit_rms_of_each(x):
    return ops.rms_norm(x, np.ones(x.shape[-1], x.dtype))


def residual_from_normalised(x, sublayer, norm, _):
    return norm(x) + sublayer(norm(x))


def post_norm(x, sublayer, norm, _):
    return norm(x + sublayer(x))


def norms_the_sum_too(x, sublayer, norm, _):
    return norm(x + sublayer(norm(x)))


def norms_the_increment(x, sublayer, norm, _):
    return x + norm(sublayer(x))


def norms_the_increment_too(x, sublayer, norm, _):
    return x + norm(sublayer(norm(x)))


def no_residual(x, sublayer, norm, _):
    return sublayer(norm(x))


def no_residual_no_norm(x, sublayer, norm, _):
    return sublayer(x)


def no_norm(x, sublayer, norm, _):
    return x + sublayer(x)


def no_sublayer(x, sublayer, norm, _):
    return x + norm(x)


def subtracts(x, sublayer, norm, _):
    return x - sublayer(norm(x))


def multiplies_by_increment(x, sublayer, norm, _):
    return x * sublayer(norm(x))


def averages(x, sublayer, norm, _):
    return (x + sublayer(norm(x))) / 2


def adds_twice(x, sublayer, norm, _):
    return 2 * x + sublayer(norm(x))


def adds_normalised_too(x, sublayer, norm, _):
    return x + norm(x) + sublayer(norm(x))


def block_in_float64(x, sublayer, norm, _):
    return x.astype(np.float64) + sublayer(norm(x))


pre_norm_block = Implement(
    name="pre_norm_block",
    chapter=CHAPTER,
    difficulty=1,
    minutes=6,
    reread="05_residual_norm.placed",
    reference=ops.pre_norm_block,
    returns="(..., D)",
    cases=[
        case(x=np.array([[3.0, -1.0]]), sublayer=times_ten, norm=halves),
        case(x=np.array([[1.0, 2.0]]), sublayer=squares, norm=adds_one),
        case(x=tenths(2, 3), sublayer=returns_zeros, norm=halves),
        case(x=tenths(3, 2), sublayer=turns_tokens_round, norm=adds_one),
        case(x=tenths(2, 3, 4), sublayer=adds_one, norm=squares),
        case(x=tenths(2, 3, 4), sublayer=turns_tokens_round, norm=unit_rms_of_each),
    ],
    extremes=[
        case(x=tenths(2, 3).astype("f4"), sublayer=squares, norm=unit_rms_of_each),
        case(x=100 * tenths(2, 3), sublayer=halves, norm=unit_rms_of_each),
    ],
    variants=(None,),
    mistakes={
        "residual_from_normalised": residual_from_normalised,
        "post_norm": post_norm,
        "norms_the_sum_too": norms_the_sum_too,
        "norms_the_increment": (norms_the_increment, norms_the_increment_too),
        "no_residual": (no_residual, no_residual_no_norm),
        "no_norm": no_norm,
        "no_sublayer": no_sublayer,
        "subtracts": subtracts,
        "multiplies": multiplies_by_increment,
        "averages": averages,
        "adds_twice": (adds_twice, adds_normalised_too),
        "promotes_float32": block_in_float64,
    },
    sections={
        "post_norm": "05_residual_norm.placed",
        "norms_the_sum_too": "05_residual_norm.placed",
        "promotes_float32": "05_residual_norm.practice",
    },
)

# --- norms_removed, norm_on_the_path ----------------------------------------

norms_removed = Predict(
    name="norms_removed",
    chapter=CHAPTER,
    kind="break it",
    difficulty=2,
    minutes=5,
    reread="05_residual_norm.depth",
    answer="c",
    mistakes={"root_rule": "a", "still_explodes": "b", "vanishes": "d"},
)

norm_on_the_path = Predict(
    name="norm_on_the_path",
    chapter=CHAPTER,
    kind="break it",
    difficulty=2,
    minutes=5,
    reread="05_residual_norm.placed",
    answer="c",
    mistakes={"unchanged": "a", "explodes": "b", "vanishes": "d"},
)

EXERCISES = [
    size_of_the_stream,
    rms_norm,
    layer_norm,
    pre_norm_block,
    norms_removed,
    norm_on_the_path,
]
