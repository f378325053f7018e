"""What attention in NumPy does, on examples small enough to check by hand."""

import numpy as np
import pytest

from attnbook import ops

ATTENTION = (ops.attention_weights, ops.scaled_dot_product_attention)


def arguments(function, q, k, v):
    return (q, k) if function is ops.attention_weights else (q, k, v)


def random_qkv(rng, batch=(), T=2, S=5, d=3, d_v=4, dtype=np.float64):
    shapes = ((*batch, T, d), (*batch, S, d), (*batch, S, d_v))
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def slow_attention(q, k, v, allow=None, scale=None):
    """One number at a time, for arrays without leading axes."""
    (T, d), (S, d_v) = q.shape, v.shape
    scale = 1 / d**0.5 if scale is None else scale
    allow = np.ones((T, S), bool) if allow is None else np.broadcast_to(allow, (T, S))
    output = np.zeros((T, d_v))
    for t in range(T):
        seen = [s for s in range(S) if allow[t, s]]
        scores = {s: sum(q[t, i] * k[s, i] for i in range(d)) * scale for s in seen}
        exps = {s: np.exp(scores[s] - max(scores.values())) for s in seen}
        for s in seen:
            output[t] += exps[s] / sum(exps.values()) * v[s]
    return output


def test_softmax_by_hand():
    expected = np.array([1, 2, 4]) / 7
    assert np.allclose(ops.softmax(np.log([1.0, 2.0, 4.0])), expected)


def test_softmax_survives_scores_that_exp_does_not():
    with np.errstate(all="raise", under="ignore"):
        weights = ops.softmax(np.array([1000.0, 999.0, -1000.0]))
    assert np.allclose(weights, [np.e / (1 + np.e), 1 / (1 + np.e), 0])


def test_softmax_survives_the_largest_float16_scores():
    with np.errstate(all="raise", under="ignore"):
        weights = ops.softmax(np.array([60000, 60000, 0], np.float16))
    assert weights.tolist() == [0.5, 0.5, 0]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_softmax_survives_scores_further_apart_than_the_type_can_say(dtype):
    ends = np.finfo(dtype).max, np.finfo(dtype).min
    weights = ops.softmax(np.array([ends[0], ends[1]], dtype))
    assert weights.tolist() == [1, 0]


def test_a_score_of_minus_infinity_gets_exactly_nothing():
    assert ops.softmax(np.array([0.0, -np.inf, 0.0])).tolist() == [0.5, 0, 0.5]


def test_where_nobody_may_be_looked_at_the_weights_are_zero():
    scores = np.array([[-np.inf, -np.inf], [0.0, 0.0]])
    assert ops.softmax(scores).tolist() == [[0, 0], [0.5, 0.5]]


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_softmax_sums_to_one_along_the_axis_named(axis):
    scores = np.random.default_rng(0).standard_normal((2, 3, 4))
    assert np.allclose(ops.softmax(scores, axis).sum(axis), 1)


def test_attention_by_hand():
    # Query 1 matches the first key with score ln 3, the second with 0.
    q, k = np.array([[np.log(3)]]), np.array([[1.0], [0.0]])
    v = np.array([[4.0, 0.0], [0.0, 8.0]])
    assert np.allclose(ops.attention_weights(q, k), [[0.75, 0.25]])
    assert np.allclose(ops.scaled_dot_product_attention(q, k, v), [[3.0, 2.0]])


@pytest.mark.parametrize("scale", [None, 1.0, 0.2])
def test_attention_equals_the_slow_loop(scale):
    rng = np.random.default_rng(1)
    q, k, v = random_qkv(rng)
    allow = rng.random((2, 5)) < 0.5
    for mask in (None, allow, allow[0], np.zeros((2, 5), bool)):
        fast = ops.scaled_dot_product_attention(q, k, v, mask, scale)
        assert np.allclose(fast, slow_attention(q, k, v, mask, scale))


def test_the_scale_is_the_root_of_the_width_of_queries_and_keys():
    q, k, _ = random_qkv(np.random.default_rng(2), d=9)
    scores = q @ k.T / 3
    assert np.allclose(ops.attention_weights(q, k), ops.softmax(scores))


def test_each_of_many_sentences_is_as_if_alone():
    q, k, v = random_qkv(np.random.default_rng(3), batch=(2, 3))
    together = ops.scaled_dot_product_attention(q, k, v)
    for i in np.ndindex(2, 3):
        alone = ops.scaled_dot_product_attention(q[i], k[i], v[i])
        assert np.allclose(together[i], alone)


def test_shared_keys_and_values_broadcast():
    rng = np.random.default_rng(4)
    q, _, _ = random_qkv(rng, batch=(2, 3))
    _, k, v = random_qkv(rng, batch=(3,))
    out = ops.scaled_dot_product_attention(q, k, v)
    assert out.shape == (2, 3, 2, 4)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_what_comes_in_goes_out(dtype):
    q, k, v = random_qkv(np.random.default_rng(5), dtype=dtype)
    allow = np.ones((2, 5), bool)
    for scale in (None, 0.5, np.float64(0.5)):
        out = ops.scaled_dot_product_attention(q, k, v, allow, scale)
        assert out.dtype == dtype
    assert ops.softmax(q).dtype == dtype
    assert ops.entropy(ops.softmax(q)).dtype == dtype
    assert ops.softmax_jacobian(ops.softmax(q)).dtype == dtype


def test_inputs_are_left_as_they_were():
    arrays = random_qkv(np.random.default_rng(6))
    copies = [array.copy() for array in arrays]
    ops.scaled_dot_product_attention(*arrays, allow=np.zeros((2, 5), bool))
    ops.softmax(arrays[0])
    ops.softmax_jacobian(arrays[0])
    assert all(np.array_equal(a, b) for a, b in zip(arrays, copies, strict=True))


def test_entropy_counts_bits():
    weights = np.array([[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0.25, 0.25, 0.25, 0.25]])
    assert ops.entropy(weights).tolist() == [0, 1, 2]


def test_entropy_has_no_minus_sign_where_nothing_is_undecided():
    for row in ([1.0], [0.0, 1.0, 0.0], [0.0, 0.0], []):
        assert not np.signbit(ops.entropy(np.array(row)))


def test_the_entropy_of_a_query_that_may_look_at_nothing_is_zero():
    weights = ops.softmax(np.array([[-np.inf, -np.inf], [0.0, 0.0]]))
    assert ops.entropy(weights).tolist() == [0, 1]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_entropy_takes_the_rounding_of_softmax(dtype):
    scores = np.random.default_rng(9).standard_normal((3000, 20)).astype(dtype)
    assert np.isfinite(ops.entropy(ops.softmax(scores))).all()
    assert np.isfinite(ops.entropy(ops.softmax(scores.T.copy()))).all()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([4.0, 0.0], "weights must sum to 1 .* but a row sums to 4"),
        ([[0.5, 0.5], [0.5, 0.25]], "a row sums to 0.75"),
        ([np.inf, 0.0], "a row sums to inf"),
        ([np.nan, 1.0], "weights must be at least 0; the smallest is nan"),
        ([-1.0, 2.0], "weights must be at least 0; the smallest is -1"),
        (0.5, "weights has shape .* at least 1 axes"),
    ],
)
def test_entropy_refuses_what_are_not_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        ops.entropy(np.array(weights))


def test_the_jacobian_says_how_weights_move():
    scores = np.random.default_rng(7).standard_normal((2, 3, 5))
    jacobian = ops.softmax_jacobian(ops.softmax(scores))
    for j in range(5):
        step = 1e-6 * np.eye(5)[j]
        moved = (ops.softmax(scores + step) - ops.softmax(scores - step)) / 2e-6
        assert np.allclose(jacobian[..., j], moved, atol=1e-9)


def test_the_variance_of_dot_products_is_the_width():
    rng = np.random.default_rng(8)
    for d in (1, 4, 64, 300):
        products = ops.sample_dot_products(rng, d, (100, 300))
        assert products.shape == (100, 300)
        assert abs(products.var() / d - 1) < 0.05
        assert abs(products.mean()) < 0.03 * d**0.5


def test_dot_products_are_drawn_for_numpy_integers_as_for_pythons():
    def draw(d, shape):
        return ops.sample_dot_products(np.random.default_rng(0), d, shape)

    for shape in (5, (5,), [5], np.int64(5), (np.int32(5),), np.array([5])):
        assert np.array_equal(draw(np.int64(3), shape), draw(3, 5))
    assert draw(3, ()).shape == ()


@pytest.mark.parametrize(
    ("d", "shape", "error", "message"),
    [
        (0, 3, ValueError, "d is 0; it must be at least 1"),
        (2.0, 3, TypeError, "d must be a whole number"),
        (True, 3, TypeError, "d must be a whole number"),
        (2, 3.5, TypeError, "shape must be a whole number"),
        (2, (3, -1), ValueError, "shape is -1; it must be at least 0"),
    ],
)
def test_dot_products_of_no_shape_are_refused(d, shape, error, message):
    with pytest.raises(error, match=message):
        ops.sample_dot_products(np.random.default_rng(0), d, shape)


def ones(*shape):
    return np.ones(shape)


REFUSED = {
    "lists": (([[1.0]], ones(1, 1), ones(1, 1)), TypeError, "q must be a NumPy array"),
    "integers": ((np.ones((1, 1), int), ones(1, 1), ones(1, 1)), TypeError, "int"),
    "one axis": ((ones(3), ones(2, 3), ones(2, 3)), ValueError, r"q has shape \(3,\)"),
    "key without axis": ((ones(2, 3), ones(3), ones(2, 3)), ValueError, "k has shape"),
    "widths": ((ones(2, 3), ones(5, 4), ones(5, 3)), ValueError, "width d"),
    "no keys": (
        (ones(2, 3), ones(0, 3), ones(0, 3)),
        ValueError,
        r"k has shape \(0, 3\); its axis S must not be empty",
    ),
    "no width": ((ones(2, 0), ones(5, 0), ones(5, 3)), ValueError, "at least 1"),
    "batches": ((ones(2, 2, 3), ones(3, 5, 3), ones(5, 1)), ValueError, "leading axes"),
    "dtypes": ((ones(2, 3).astype("f4"), ones(5, 3), ones(5, 3)), TypeError, "float32"),
}
REFUSED_VALUES = {
    "count": (
        (ones(2, 3), ones(5, 3), ones(4, 3)),
        ValueError,
        r"v has shape \(4, 3\)",
    ),
    "axes": ((ones(2, 3), ones(5, 3), ones(5)), ValueError, "v has shape"),
    "type": ((ones(2, 3), ones(5, 3), ones(5, 3).astype("f4")), TypeError, "v has"),
    "batch": ((ones(2, 2, 3), ones(2, 5, 3), ones(3, 5, 3)), ValueError, "of v"),
}
REFUSED_MASKS = {
    "integers": (np.ones((2, 5), int), TypeError, "allow must be a boolean"),
    "a list": ([True], TypeError, "allow must be a boolean NumPy array"),
    "shape": (np.ones((5, 2), bool), ValueError, r"allow has shape \(5, 2\)"),
    "more axes": (np.ones((3, 2, 5), bool), ValueError, r"allow has shape \(3, 2, 5\)"),
}


@pytest.mark.parametrize("function", ATTENTION)
@pytest.mark.parametrize("case", REFUSED)
def test_wrong_queries_and_keys_are_refused(function, case):
    arrays, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        function(*arguments(function, *arrays))


@pytest.mark.parametrize("case", REFUSED_VALUES)
def test_wrong_values_are_refused(case):
    arrays, error, message = REFUSED_VALUES[case]
    with pytest.raises(error, match=message):
        ops.scaled_dot_product_attention(*arrays)


@pytest.mark.parametrize("function", ATTENTION)
@pytest.mark.parametrize("case", REFUSED_MASKS)
def test_wrong_masks_are_refused(function, case):
    allow, error, message = REFUSED_MASKS[case]
    q, k, v = ones(2, 3), ones(5, 3), ones(5, 4)
    with pytest.raises(error, match=message):
        function(*arguments(function, q, k, v), allow=allow)


def test_other_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="axis is 2"):
        ops.softmax(ones(2, 3), axis=2)
    with pytest.raises(ValueError, match="must not be empty"):
        ops.softmax(ones(2, 0))
    with pytest.raises(TypeError, match="x must be a NumPy array"):
        ops.softmax([1.0])
    with pytest.raises(ValueError, match="at least 1 axes"):
        ops.softmax_jacobian(np.array(1.0))
