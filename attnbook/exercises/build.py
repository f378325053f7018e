"""The exercises of the chapter on building one."""

import numpy as np

from attnbook import sampling
from attnbook.exercises._exercise import Implement, Predict, case

CHAPTER = "08_build"
_rng = np.random.default_rng(8)


def tenths(*shape: int) -> np.ndarray:
    """Draw logits that are all different, rounded so that one can follow them."""
    count = int(np.prod(shape))
    return (_rng.permutation(4 * count)[:count].reshape(shape) - 2 * count) / 10


def softmax(x, axis=-1):
    exps = np.exp(x - x.max(axis=axis, keepdims=True))
    return exps / exps.sum(axis=axis, keepdims=True)


def log_softmax(x):
    below = x - x.max(axis=-1, keepdims=True)
    return below - np.log(np.exp(below).sum(axis=-1, keepdims=True))


NEVER = -np.inf

# --- one_more_block ---------------------------------------------------------

WIDTH, MIDDLE = 64, 128  # in the question

one_more_block = Predict(
    name="one_more_block",
    chapter=CHAPTER,
    difficulty=1,
    minutes=4,
    reread="08_build.assemble",
    answer=float(4 * WIDTH**2 + 2 * WIDTH * MIDDLE + MIDDLE + WIDTH + 2 * WIDTH),
    tolerance=0.02,
    mistakes={
        "attention_alone": 4.0 * WIDTH**2,
        "no_output_projection": 3.0 * WIDTH**2 + 2 * WIDTH * MIDDLE,
        "wide_middle": 4.0 * WIDTH**2 + 2 * WIDTH * 4 * WIDTH,
        "each_head_whole": 4.0 * 4 * WIDTH**2 + 2 * WIDTH * MIDDLE,
        "one_matrix": 4.0 * WIDTH**2 + WIDTH * MIDDLE,
    },
)

# --- half_the_temperature ---------------------------------------------------

LIKELY, HALF = 0.8, 0.5  # in the question: two tokens, 0.8 and 0.2, at t = 0.5

half_the_temperature = Predict(
    name="half_the_temperature",
    chapter=CHAPTER,
    difficulty=1,
    minutes=4,
    reread="08_build.temperature",
    answer=LIKELY**2 / (LIKELY**2 + (1 - LIKELY) ** 2),
    tolerance=0.005,
    mistakes={
        "unchanged": LIKELY,
        "halved": LIKELY * HALF,
        "not_renormalised": LIKELY**2,
        "warmer": LIKELY**HALF / (LIKELY**HALF + (1 - LIKELY) ** HALF),
        "certain": 1.0,
    },
)

# --- size_of_the_nucleus ----------------------------------------------------

size_of_the_nucleus = Predict(
    name="size_of_the_nucleus",
    chapter=CHAPTER,
    difficulty=1,
    minutes=3,
    reread="08_build.cuts",
    answer=2.0,
    tolerance=0.001,
    mistakes={
        "one_too_few": 1.0,
        "as_listed": 4.0,
        "share_of_the_tokens": 3.0,
        "each_by_itself": 0.0,
    },
)

# --- temperature ------------------------------------------------------------


def greedy(logits):
    """Return what t = 0 should give."""
    return np.where(
        np.arange(logits.shape[-1]) == logits.argmax(axis=-1)[..., None],
        logits,
        logits.dtype.type(NEVER),
    )


def hot(function, cold=greedy):
    """Return a temperature of one formula for t > 0 and one for t = 0."""

    def version(logits, t, _):
        return cold(logits) if t == 0 else function(logits, t)

    return version


def divided(logits, t):
    return logits / t


def all_largest(logits):
    best = logits == logits.max(axis=-1, keepdims=True)
    return np.where(best, logits, logits.dtype.type(NEVER))


def one_hot(logits):
    best = logits.argmax(axis=-1)[..., None]
    return (np.arange(logits.shape[-1]) == best).astype(logits.dtype)


def best_of_everything(logits):
    return np.where(logits == logits.max(), logits, logits.dtype.type(NEVER))


def best_at_zero(logits):
    return np.where(np.isfinite(greedy(logits)), logits.dtype.type(0), greedy(logits))


def which_token(logits):
    return logits.argmax(axis=-1)


def one_index_for_all_rows(logits):
    best = logits.argmax(axis=-1)
    out = np.full_like(logits, NEVER)
    out[..., best] = logits[..., best]
    return out


def simply_divided(logits, t, _):
    return logits / np.asarray(t, logits.dtype)


def with_a_floor(logits, t, _):
    return logits / max(t, 1e-8)


def with_an_offset(logits, t, _):
    return logits / (t + 1e-8)


temperature = Implement(
    name="temperature",
    chapter=CHAPTER,
    difficulty=1,
    minutes=8,
    reread="08_build.temperature",
    reference=sampling.temperature,
    returns="(..., vocabulary)",
    cases=[
        case(logits=np.array([2.0, 1.0]), t=0.5),
        case(logits=np.array([3.0, -1.0, 2.0]), t=2.0),
        case(logits=np.array([2.0, 1.0, 0.0]), t=1.0),
        case(logits=tenths(1, 2, 3), t=0.25),
        case(logits=tenths(3, 1, 4), t=3.0),
        case(logits=tenths(2, 3, 4), t=0.7),
    ],
    extremes=[
        case(logits=np.array([1.0, 3.0]), t=0),
        case(logits=np.array([3.0, -1.0, 3.0]), t=0),
        case(logits=np.array([1.0, NEVER, 3.0]), t=2.0),
        case(logits=tenths(3).astype("f4"), t=0.7),
        case(logits=tenths(1, 2, 3).astype("f4"), t=0),
        case(logits=tenths(2, 2, 3), t=0),
    ],
    variants=(None,),
    mistakes={
        "multiplies": (
            hot(lambda z, t: z * t),
            lambda z, t, _: np.where(np.isneginf(z), z, z * z.dtype.type(t)),
        ),
        "after_softmax": (
            hot(lambda z, t: softmax(z) / t),
            lambda z, t, _: softmax(z) / t,
        ),
        "returns_probabilities": (
            hot(lambda z, t: softmax(z / t)),
            hot(lambda z, t: softmax(z / t), one_hot),
            lambda z, t, _: softmax(z / t),
        ),
        "power_of_probabilities": (
            hot(lambda z, t: softmax(z) ** (1 / t)),
            hot(lambda z, t: softmax(z) ** t),
        ),
        "shifted": (
            hot(lambda z, t: log_softmax(z / t)),
            hot(lambda z, t: log_softmax(z) / t),
            hot(lambda z, t: (z - z.max(axis=-1, keepdims=True)) / t),
        ),
        "root": hot(lambda z, t: z / t**0.5),
        "subtracts": (hot(lambda z, t: z - t), hot(lambda z, t: z + t)),
        "ignores_t": (hot(lambda z, t: z), lambda z, t, _: z),
        "zero_divides": simply_divided,
        "nearly_zero": (with_a_floor, with_an_offset),
        "zero_unchanged": hot(divided, lambda z: z),
        "greedy_one_hot": hot(divided, one_hot),
        "greedy_zero": hot(divided, best_at_zero),
        "greedy_ties": hot(divided, all_largest),
        "greedy_over_everything": hot(divided, best_of_everything),
        "greedy_token": hot(divided, which_token),
        "greedy_rows_mixed": hot(divided, one_index_for_all_rows),
        "promotes_float32": (
            hot(lambda z, t: z / np.float64(t)),
            hot(divided, lambda z: greedy(z).astype(np.float64)),
            hot(lambda z, t: z / np.float64(t), lambda z: greedy(z).astype("f8")),
        ),
    },
    sections={"promotes_float32": "08_build.practice"},
)

# --- top_k ------------------------------------------------------------------


def falling(logits):
    """Return places from the largest to the smallest, ties as they stand."""
    return np.argsort(-logits, axis=-1, kind="stable")


def falling_backwards(logits):
    """The same, but ties from the end: what ``argsort(…)[::-1]`` gives."""
    return np.argsort(logits, axis=-1, kind="stable")[..., ::-1]


def falling_unstably(logits):
    """The same without a promise about ties, which shows in a longer row."""
    return np.argsort(-logits, axis=-1)


def falling_backwards_unstably(logits):
    return np.argsort(logits, axis=-1)[..., ::-1]


MANY_TIES = _rng.integers(3, size=60).astype(float)


def rising(logits):
    return np.argsort(logits, axis=-1, kind="stable")


def put_back(kept, order):
    """Return which places are kept, of which ranks are."""
    out = np.zeros(order.shape, bool)
    np.put_along_axis(out, order, np.broadcast_to(kept, order.shape), axis=-1)
    return out


def cut(logits, keep, value=NEVER):
    return np.where(keep, logits, logits.dtype.type(value))


# Whoever makes another mistake may have sorted in one of these ways as well.
ORDERS = (falling, falling_backwards_unstably, falling_unstably)


def by_rank(*, order=None, more=0, least=0, value=NEVER):
    def version(logits, k, falls):
        ranks = np.arange(logits.shape[-1]) < max(k + more, least)
        return cut(logits, put_back(ranks, (order or falls)(logits)), value)

    return version


RANKED = by_rank()


def over_threshold(logits, k, _):
    threshold = np.sort(logits, axis=-1)[..., -min(k, logits.shape[-1])]
    return cut(logits, logits >= threshold[..., None])


def above_threshold(logits, k, _):
    threshold = np.sort(logits, axis=-1)[..., -min(k, logits.shape[-1])]
    return cut(logits, logits > threshold[..., None])


def threshold_out_of_range(logits, k, falls):
    """What most people write first; of equal logits it keeps too many as well."""
    threshold = np.sort(logits, axis=-1)[..., -k]
    return cut(logits, logits >= threshold[..., None])


def largest_of_everything(logits, k, falls):
    return RANKED(logits.reshape(-1), k, falls).reshape(logits.shape)


def largest_of_columns(logits, k, falls):
    if logits.ndim == 1:
        return RANKED(logits, k, falls)
    return RANKED(logits.swapaxes(0, -1), k, falls).swapaxes(0, -1)


def left_sorted(logits, k, _):
    chosen = -np.sort(-logits, axis=-1)
    return cut(chosen, np.arange(logits.shape[-1]) < k)


def only_k(logits, k, _):
    return -np.sort(-logits, axis=-1)[..., :k]


def only_k_rising(logits, k, _):
    return np.sort(logits, axis=-1)[..., -k:]


def order_for_ranks(logits, k, falls):
    return cut(logits, falls(logits) < k)


top_k = Implement(
    name="top_k",
    chapter=CHAPTER,
    difficulty=2,
    minutes=12,
    reread="08_build.cuts",
    reference=sampling.top_k,
    returns="(..., vocabulary)",
    cases=[
        case(logits=np.array([1.0, 3.0, 2.0]), k=1),
        case(logits=np.array([2.0, 1.0, 3.0, -1.0]), k=2),
        case(logits=tenths(1, 2, 3), k=2),
        case(logits=tenths(3, 1, 3), k=2),
        case(logits=tenths(1, 3, 4), k=1),
        case(logits=tenths(5), k=3),
        case(logits=tenths(2, 3, 4), k=3),
    ],
    extremes=[
        case(logits=np.array([1.0, 2.0]), k=3),
        case(logits=np.array([1.0, 2.0, 2.0, 0.0]), k=1),
        case(logits=tenths(4).astype("f4"), k=2),
        case(logits=np.array([0.0, NEVER, 1.0, NEVER]), k=3),
        case(logits=np.array([[[1.0, 0, 1, 1, 0], [0, 0, 0, 0, 0]]]), k=2),
        case(logits=MANY_TIES, k=30),
    ],
    variants=ORDERS,
    mistakes={
        "one_too_many": by_rank(more=1),
        "one_too_few": (by_rank(more=-1), by_rank(more=-1, least=1), above_threshold),
        "smallest": by_rank(order=rising),
        "keeps_ties": over_threshold,
        "ties_from_the_end": (
            by_rank(order=falling_backwards),
            by_rank(order=falling_backwards_unstably),
        ),
        "ties_anyhow": by_rank(order=falling_unstably),
        "beyond_the_vocabulary": threshold_out_of_range,
        "zero_for_cut": by_rank(value=0),
        "finite_cut": (by_rank(value=-1e9), by_rank(value=-1e4)),
        "returns_probabilities": lambda z, k, falls: softmax(RANKED(z, k, falls)),
        "cuts_probabilities": lambda z, k, falls: RANKED(softmax(z), k, falls),
        "left_sorted": left_sorted,
        "only_k": (only_k, only_k_rising),
        "order_for_ranks": order_for_ranks,
        "over_everything": largest_of_everything,
        "wrong_axis": largest_of_columns,
        "promotes_float32": lambda z, k, falls: RANKED(z, k, falls).astype(np.float64),
    },
    sections={"promotes_float32": "08_build.practice"},
)

# --- top_p ------------------------------------------------------------------


def reached_before(probabilities):
    """What those before each token sum to."""
    sums = np.cumsum(probabilities, axis=-1)
    return np.concatenate([np.zeros_like(sums[..., :1]), sums[..., :-1]], axis=-1)


def before_p(probabilities, p):
    """The right ones: before which p is not reached. All, if p is 1."""
    return (reached_before(probabilities) < p) | (p == 1)


def nucleus(
    *,
    order=None,
    kept=before_p,
    weigh=softmax,
    back=put_back,
    value=NEVER,
    source=lambda z: z,
):
    """Return a top-p made of these parts."""

    def version(logits, p, falls):
        places = (order or falls)(logits)
        weights = weigh(np.take_along_axis(source(logits), places, axis=-1))
        return cut(logits, back(kept(weights, p), places), value)

    return version


NUCLEUS = nucleus()


def with_the_first(kept):
    """Keep the most probable token in any case."""

    def version(probabilities, p):
        first = np.arange(probabilities.shape[-1]) == 0
        return kept(probabilities, p) | first

    return version


def up_to(probabilities, p):
    return (np.cumsum(probabilities, axis=-1) <= p) | (p == 1)


def below(probabilities, p):
    return (np.cumsum(probabilities, axis=-1) < p) | (p == 1)


def including(probabilities, p):
    return (reached_before(probabilities) <= p) | (p == 1)


def and_one_more(probabilities, p):
    kept = before_p(probabilities, p)
    first = np.ones_like(kept[..., :1])
    return np.concatenate([first, kept[..., :-1]], axis=-1) | kept


def as_they_stand(logits):
    return np.broadcast_to(np.arange(logits.shape[-1]), logits.shape)


def not_back(kept, order):
    return kept


def back_by_order(kept, order):
    return np.take_along_axis(np.broadcast_to(kept, order.shape), order, axis=-1)


def p_left_sorted(logits, p, falls):
    cut_logits = NUCLEUS(logits, p, falls)
    return np.take_along_axis(cut_logits, falls(logits), axis=-1)


def each_by_itself(logits, p, _):
    return cut(logits, softmax(logits) >= p)


def share_of_the_best(logits, p, _):
    probabilities = softmax(logits)
    return cut(logits, probabilities >= p * probabilities.max(axis=-1, keepdims=True))


def p_keeps_ties(logits, p, falls):
    kept = np.isfinite(NUCLEUS(logits, p, falls))
    lowest = np.where(kept, logits, np.inf).min(axis=-1, keepdims=True)
    return cut(logits, logits >= lowest)


def share_of_the_tokens(rounding):
    def version(logits, p, falls):
        return RANKED(logits, max(1, int(rounding(p * logits.shape[-1]))), falls)

    return version


def p_returns_probabilities(logits, p, falls):
    return softmax(NUCLEUS(logits, p, falls))


def p_not_renormalised(logits, p, falls):
    kept = np.isfinite(NUCLEUS(logits, p, falls))
    return np.where(kept, softmax(logits), logits.dtype.type(0))


def p_log_probabilities(logits, p, falls):
    return log_softmax(NUCLEUS(logits, p, falls))


def nucleus_of_everything(logits, p, falls):
    return NUCLEUS(logits.reshape(-1), p, falls).reshape(logits.shape)


def nucleus_of_columns(logits, p, falls):
    if logits.ndim == 1:
        return NUCLEUS(logits, p, falls)
    return NUCLEUS(logits.swapaxes(0, -1), p, falls).swapaxes(0, -1)


def probabilities(*numbers: float) -> np.ndarray:
    return np.round(np.log(numbers), 3)


top_p = Implement(
    name="top_p",
    chapter=CHAPTER,
    difficulty=3,
    minutes=20,
    reread="08_build.cuts",
    reference=sampling.top_p,
    returns="(..., vocabulary)",
    cases=[
        case(logits=probabilities(0.2, 0.8), p=0.5),
        case(logits=probabilities(0.3, 0.6, 0.1), p=0.7),
        case(logits=probabilities(0.5, 0.2, 0.3), p=0.1),
        case(logits=probabilities(0.05, 0.4, 0.15, 0.3, 0.1), p=0.8),
        case(logits=tenths(1, 2, 3), p=0.6),
        case(logits=tenths(3, 1, 3), p=0.75),
        case(logits=tenths(1, 3, 5), p=0.9),
        case(logits=tenths(2, 3, 4) / 2, p=0.65),
    ],
    extremes=[
        case(logits=np.array([0.0, -100.0]), p=1),
        case(logits=np.zeros(4), p=0.5),
        case(logits=np.array([0.0, NEVER, 1.0, NEVER]), p=0.9),
        case(logits=tenths(4).astype("f4"), p=0.7),
        case(logits=np.array([[[1.0, 0, 1, 0, 0], [0, 1, 1, 1, 0]]]), p=0.35),
        case(logits=MANY_TIES, p=0.8),
    ],
    variants=ORDERS,
    mistakes={
        "one_too_few": (
            nucleus(kept=up_to),
            nucleus(kept=below),
            nucleus(kept=with_the_first(up_to)),
            nucleus(kept=with_the_first(below)),
        ),
        "boundary": nucleus(kept=including),
        "one_too_many": nucleus(kept=and_one_more),
        "not_sorted": (
            nucleus(order=as_they_stand),
            nucleus(order=as_they_stand, kept=with_the_first(up_to)),
            nucleus(order=as_they_stand, kept=up_to),
        ),
        "from_the_smallest": nucleus(order=rising),
        "not_unsorted": nucleus(back=not_back),
        "unsorted_by_order": nucleus(back=back_by_order),
        "left_sorted": p_left_sorted,
        "sums_logits": (
            nucleus(weigh=lambda z: z),
            nucleus(weigh=lambda z: z, kept=with_the_first(up_to)),
        ),
        "sums_exponentials": nucleus(weigh=np.exp),
        "each_by_itself": each_by_itself,
        "share_of_the_best": share_of_the_best,
        "share_of_the_tokens": (
            share_of_the_tokens(np.ceil),
            share_of_the_tokens(np.floor),
            share_of_the_tokens(np.round),
        ),
        "complement": nucleus(kept=lambda w, p: before_p(w, 1 - p)),
        "keeps_ties": p_keeps_ties,
        "ties_from_the_end": (
            nucleus(order=falling_backwards),
            nucleus(order=falling_backwards_unstably),
        ),
        "ties_anyhow": nucleus(order=falling_unstably),
        "zero_for_cut": nucleus(value=0),
        "finite_cut": (nucleus(value=-1e9), nucleus(value=-1e4)),
        "returns_probabilities": (p_returns_probabilities, p_not_renormalised),
        "returns_logarithms": p_log_probabilities,
        "over_everything": nucleus_of_everything,
        "wrong_axis": nucleus_of_columns,
        "one_is_reached_early": nucleus(kept=lambda w, p: reached_before(w) < p),
        "promotes_float32": lambda z, p, falls: NUCLEUS(z, p, falls).astype(np.float64),
    },
    sections={"promotes_float32": "08_build.practice"},
)

# --- wrong_end --------------------------------------------------------------

wrong_end = Predict(
    name="wrong_end",
    chapter=CHAPTER,
    kind="break it",
    difficulty=2,
    minutes=5,
    reread="08_build.temperature",
    answer="c",
    mistakes={"hardly": "a", "too_long": "b", "once_more": "d"},
)

# --- what_a_head_shows ------------------------------------------------------

what_a_head_shows = Predict(
    name="what_a_head_shows",
    chapter=CHAPTER,
    difficulty=2,
    minutes=4,
    reread="08_build.heads",
    answer="b",
    mistakes={"worth": "a", "place": "c", "rule": "d"},
)

EXERCISES = [
    one_more_block,
    half_the_temperature,
    size_of_the_nucleus,
    temperature,
    top_k,
    top_p,
    wrong_end,
    what_a_head_shows,
]
