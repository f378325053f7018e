"""Sampling: what is cut, what is kept, and what is drawn."""

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnbook.ops import softmax
from attnbook.sampling import generate, sample, temperature, top_k, top_p

NUMBERS = st.floats(-30, 30, width=32)
LOGITS = st.sampled_from([np.float32, np.float64]).flatmap(
    lambda dtype: hnp.arrays(
        dtype, hnp.array_shapes(max_dims=3, max_side=6), elements=NUMBERS
    )
)
COARSE = hnp.arrays(  # many equal ones
    np.float64, hnp.array_shapes(max_dims=2, max_side=6), elements=st.integers(-2, 2)
)
RESHAPED = [temperature, top_k, top_p]
THREE = np.log([0.5, 0.3, 0.2])


def slow_top_k(row, k):
    left, kept = list(range(len(row))), set()
    while left and len(kept) < k:
        best = max(left, key=lambda i: (row[i], -i))
        kept.add(best)
        left.remove(best)
    return np.array([x if i in kept else -np.inf for i, x in enumerate(row)])


def slow_top_p(row, p):
    probabilities = [np.exp(x - max(row)) for x in row]
    total = sum(probabilities)
    left, kept, reached = list(range(len(row))), set(), 0.0
    while left and (reached < p or p == 1):
        best = max(left, key=lambda i: (row[i], -i))
        kept.add(best)
        left.remove(best)
        reached += probabilities[best] / total
    return np.array([x if i in kept else -np.inf for i, x in enumerate(row)])


# --- temperature ------------------------------------------------------------


def test_a_temperature_divides():
    assert np.array_equal(temperature(np.array([1.0, -2.0]), 0.5), [2.0, -4.0])


def test_half_the_temperature_squares_the_probabilities():
    p = softmax(temperature(THREE, 0.5))
    assert np.allclose(p, np.array([0.25, 0.09, 0.04]) / 0.38)


@given(LOGITS)
def test_a_temperature_of_one_changes_nothing(logits):
    assert np.array_equal(temperature(logits, 1.0), logits)


def test_a_temperature_of_zero_keeps_the_first_of_the_largest():
    logits = np.array([[1.0, 3.0, 3.0], [0.0, -1.0, 0.0]])
    greedy = temperature(logits, 0)
    assert np.array_equal(greedy, [[-np.inf, 3, -np.inf], [0, -np.inf, -np.inf]])


@given(LOGITS, st.floats(0.1, 5), st.floats(0.1, 5))
def test_a_lower_temperature_makes_the_best_more_probable(logits, one, two):
    low, high = sorted((one, two))
    cold = softmax(temperature(logits, low)).max(axis=-1)
    warm = softmax(temperature(logits, high)).max(axis=-1)
    assert (cold >= warm - 1e-6).all()


def test_a_tiny_temperature_is_refused_rather_than_overflowing():
    with pytest.raises(ValueError, match=r"t is 1e-300.*reach of float64"):
        temperature(np.array([1e10, 0.0]), 1e-300)
    with pytest.raises(ValueError, match="t is 1e-300"):
        temperature(np.array([-1e10, -2e10]), 1e-300)
    # What falls below is out of reach and cut; the best one stays.
    assert temperature(np.array([0.0, -1e10]), 1e-300).tolist() == [0, -np.inf]


# --- top-k and top-p --------------------------------------------------------


@given(st.one_of(LOGITS, COARSE), st.integers(1, 8))
def test_top_k_is_the_slow_loop(logits, k):
    slow = np.apply_along_axis(slow_top_k, -1, logits, k)
    assert np.array_equal(top_k(logits, k), slow)


@given(COARSE, st.sampled_from([0.01, 0.13, 0.37, 0.62, 0.9, 0.999, 1.0]))
def test_top_p_is_the_slow_loop(logits, p):
    slow = np.apply_along_axis(slow_top_p, -1, logits, p)
    assert np.array_equal(top_p(logits, p), slow)


@given(st.one_of(LOGITS, COARSE), st.integers(1, 8))
def test_top_k_keeps_exactly_k(logits, k):
    kept = np.isfinite(top_k(logits, k)).sum(axis=-1)
    assert (kept == min(k, logits.shape[-1])).all()


@given(LOGITS, st.floats(0.001, 1))
def test_top_p_keeps_enough_and_no_more(logits, p):
    kept = np.isfinite(top_p(logits, p))
    probabilities = softmax(logits.astype(np.float64))
    assert (np.sum(probabilities * kept, axis=-1) >= p - 1e-9).all()
    smallest = np.where(kept, probabilities, np.inf).min(axis=-1)
    rest = np.sum(probabilities * kept, axis=-1) - smallest
    assert (rest < p).all() or p == 1


@given(LOGITS, st.sampled_from([(top_k, 2), (top_p, 0.7), (top_k, 1), (top_p, 0.1)]))
def test_what_is_kept_is_as_it_was_and_no_less_than_what_is_cut(logits, way):
    function, number = way
    out = function(logits, number)
    kept = np.isfinite(out)
    assert np.array_equal(out[kept], logits[kept])
    assert np.isneginf(out[~kept]).all()
    lowest = np.where(kept, logits, np.inf).min(axis=-1)
    highest = np.where(kept, -np.inf, logits).max(axis=-1)
    assert (lowest >= highest).all()


def test_the_token_that_reaches_p_is_kept():
    halves = np.log([0.5, 0.25, 0.125, 0.125])
    assert np.isfinite(top_p(halves, 0.5)).sum() == 1
    assert np.isfinite(top_p(halves, 0.51)).sum() == 2
    assert np.isfinite(top_p(halves, 1e-9)).sum() == 1


def test_p_of_one_cuts_nothing_even_where_rounding_reaches_one_early():
    logits = np.array([0.0, -200.0])
    assert np.array_equal(top_p(logits, 1), logits)
    assert np.array_equal(top_p(logits, 1.0), logits)


def test_of_equal_ones_the_first_stay():
    even = np.zeros(4)
    assert np.isfinite(top_k(even, 2)).tolist() == [True, True, False, False]
    assert np.isfinite(top_p(even, 0.5)).tolist() == [True, True, False, False]


def test_cuts_can_follow_each_other():
    assert np.isfinite(top_p(top_k(THREE, 2), 0.6)).tolist() == [True, False, False]
    assert np.isfinite(top_k(top_p(THREE, 0.6), 3)).tolist() == [True, True, False]


@given(LOGITS, st.permutations(range(6)))
def test_the_order_of_the_vocabulary_does_not_matter(logits, order):
    logits = logits + 1e-3 * np.arange(logits.shape[-1], dtype=logits.dtype)
    places = [i for i in order if i < logits.shape[-1]]
    distinct = all(
        len(set(row)) == len(row) for row in logits.reshape(-1, logits.shape[-1])
    )
    if distinct:
        assert np.array_equal(
            top_k(logits, 2)[..., places], top_k(logits[..., places], 2)
        )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    "reshape",
    [lambda z: temperature(z, np.float64(0.7)), lambda z: temperature(z, 0)]
    + [lambda z: top_k(z, np.int64(2)), lambda z: top_p(z, np.float64(0.7))],
)
def test_the_dtype_is_kept_and_the_input_left_alone(dtype, reshape):
    logits = np.array([[1.0, 2, -np.inf], [0, 0, 0]], dtype)
    before = logits.copy()
    out = reshape(logits)
    assert out.dtype == dtype
    assert out is not logits
    assert np.array_equal(logits, before)


@pytest.mark.parametrize("function", RESHAPED)
@pytest.mark.parametrize(
    ("logits", "error", "says"),
    [
        ([1.0, 2.0], TypeError, "logits must be a NumPy array"),
        (np.array([1, 2]), TypeError, "logits must hold floating-point"),
        (np.array(1.0), ValueError, r"logits has shape \(\)"),
        (np.ones((2, 0)), ValueError, r"logits has shape \(2, 0\)"),
        (np.array([1.0, np.nan]), ValueError, "logits must be finite or −∞"),
        (np.array([1.0, np.inf]), ValueError, "logits must be finite or −∞"),
        (np.full(3, -np.inf), ValueError, "logits has a row of −∞ only"),
    ],
)
def test_logits_without_a_choice_are_refused(function, logits, error, says):
    with pytest.raises(error, match=says):
        function(logits, 1)


@pytest.mark.parametrize(
    ("function", "number", "error", "says"),
    [
        (temperature, -1, ValueError, "t is -1.0; it must be at least 0"),
        (temperature, np.inf, ValueError, "t is inf; it must be finite"),
        (temperature, "hot", TypeError, "t must be a number, but it is 'hot'"),
        (temperature, True, TypeError, "t must be a number"),
        (top_k, 0, ValueError, "k is 0; it must be at least 1"),
        (top_k, 2.0, TypeError, "k must be a whole number"),
        (top_p, 0, ValueError, "p is 0.0; it must be above 0 and at most 1"),
        (top_p, 1.1, ValueError, "p is 1.1; it must be above 0"),
        (top_p, 90, ValueError, "p is 90.0"),
        (top_p, None, TypeError, "p must be a number"),
    ],
)
def test_a_number_that_does_not_fit_is_refused(function, number, error, says):
    with pytest.raises(error, match=says):
        function(THREE, number)


# --- drawing ----------------------------------------------------------------


def test_tokens_are_drawn_as_often_as_they_should_be():
    rows = np.broadcast_to(THREE, (20_000, 3))
    drawn = sample(rows, np.random.default_rng(0))
    assert drawn.shape == (20_000,)
    share = np.bincount(drawn, minlength=3) / len(drawn)
    assert np.abs(share - np.exp(THREE)).max() < 0.01


@given(LOGITS, st.integers(0, 2**32 - 1))
def test_what_is_cut_is_never_drawn(logits, seed):
    cut = top_k(logits, 2)
    drawn = sample(cut, np.random.default_rng(seed))
    assert np.issubdtype(drawn.dtype, np.integer)
    assert np.isfinite(np.take_along_axis(cut, drawn[..., None], -1)).all()


def test_a_greedy_draw_is_the_largest():
    logits = np.random.default_rng(1).normal(size=(50, 7))
    drawn = sample(temperature(logits, 0), np.random.default_rng(2))
    assert np.array_equal(drawn, logits.argmax(axis=-1))


class Counter:
    """A model that says what follows: one more, up to ten; it notes what it sees."""

    def __init__(self):
        self.lengths = []

    def __call__(self, ids):
        self.lengths.append(len(ids))
        logits = np.full((len(ids), 10), -np.inf)
        logits[np.arange(len(ids)), (ids + 1) % 10] = 0.0
        return logits


def test_a_model_goes_on_writing_within_its_window():
    model = Counter()
    ids = generate(model, [7, 8], 4, np.random.default_rng(0), window=3)
    assert ids.tolist() == [7, 8, 9, 0, 1, 2]
    assert model.lengths == [2, 3, 3, 3]
    assert generate(model, [7], 0, np.random.default_rng(0)).tolist() == [7]


def test_what_is_chosen_from_decides():
    def even(ids):
        return np.zeros((len(ids), 5))

    ids = generate(even, [0], 20, np.random.default_rng(0), lambda z: top_k(z, 1))
    assert (ids == 0).all()
    free = generate(even, [0], 20, np.random.default_rng(0))
    assert len(set(free.tolist())) > 2


@pytest.mark.parametrize(
    ("changed", "error", "says"),
    [
        ({"ids": []}, ValueError, r"ids has shape \(0,\)"),
        ({"ids": [[1]]}, ValueError, r"ids has shape \(1, 1\)"),
        ({"ids": [0.5]}, TypeError, "ids must be whole numbers"),
        ({"n": -1}, ValueError, "n is -1"),
        ({"window": 0}, ValueError, "window is 0"),
    ],
)
def test_a_beginning_that_does_not_fit_is_refused(changed, error, says):
    arguments = {"ids": [1], "n": 1, "window": None, **changed}
    with pytest.raises(error, match=says):
        generate(Counter(), rng=np.random.default_rng(0), **arguments)
