"""What holds for attention on whatever shapes and values."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from attnbook import ops

sizes = st.integers(1, 5)
scores_of_any_shape = npst.arrays(
    np.float64,
    npst.array_shapes(min_dims=1, max_dims=4, max_side=5),
    elements=st.floats(-1e4, 1e4) | st.just(-np.inf),
)


@st.composite
def crowds(draw):
    """Queries, keys, values and a mask, of shapes that go together."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    batch = draw(npst.array_shapes(min_dims=0, max_dims=2, max_side=3))
    T, S, d, d_v = (draw(sizes) for _ in range(4))
    size = draw(st.sampled_from([0.01, 1.0, 100.0]))
    q, k = (size * rng.standard_normal((*batch, n, d)) for n in (T, S))
    v = rng.standard_normal((*batch, S, d_v))
    return q, k, v, rng.random((*batch, T, S)) < draw(st.sampled_from([0.2, 0.7, 1]))


@given(scores_of_any_shape)
def test_weights_are_shares(scores):
    weights = ops.softmax(scores)
    seen = ~np.isneginf(scores).all(axis=-1)
    assert (weights >= 0).all()
    assert np.allclose(weights.sum(axis=-1), seen)
    assert (weights[np.isneginf(scores)] == 0).all()


@given(scores_of_any_shape, st.floats(-1e3, 1e3))
def test_only_differences_of_scores_count(scores, shift):
    assert np.allclose(ops.softmax(scores + shift), ops.softmax(scores), atol=1e-9)


@given(scores_of_any_shape)
def test_a_higher_score_never_gets_less(scores):
    weights = ops.softmax(scores)
    order = np.argsort(scores, axis=-1)
    assert (np.diff(np.take_along_axis(weights, order, -1), axis=-1) >= 0).all()


@given(scores_of_any_shape)
def test_entropy_lies_between_one_key_and_all(scores):
    bits = ops.entropy(ops.softmax(scores))
    assert (bits >= 0).all()
    assert (bits <= np.log2(scores.shape[-1]) + 1e-9).all()


@given(scores_of_any_shape)
def test_what_a_weight_wins_the_others_lose(scores):
    jacobian = ops.softmax_jacobian(ops.softmax(scores))
    assert np.allclose(jacobian.sum(axis=-2), 0)
    assert np.array_equal(jacobian, jacobian.swapaxes(-1, -2))


@given(crowds())
def test_outputs_lie_among_the_values_seen(crowd):
    q, k, v, allow = crowd
    out = ops.scaled_dot_product_attention(q, k, v, allow)
    seen = allow.any(axis=-1)[..., None]
    low, high = v.min(axis=-2, keepdims=True), v.max(axis=-2, keepdims=True)
    assert ((out >= low - 1e-9) | ~seen).all()
    assert ((out <= high + 1e-9) | ~seen).all()
    assert (out[~np.broadcast_to(seen, out.shape)] == 0).all()


@given(crowds(), st.randoms(use_true_random=False))
def test_the_order_of_keys_changes_nothing(crowd, random):
    q, k, v, allow = crowd
    order = list(range(k.shape[-2]))
    random.shuffle(order)
    shuffled = ops.scaled_dot_product_attention(
        q, k[..., order, :], v[..., order, :], allow[..., order]
    )
    assert np.allclose(shuffled, ops.scaled_dot_product_attention(q, k, v, allow))


@given(crowds(), st.randoms(use_true_random=False))
def test_shuffled_queries_give_shuffled_outputs(crowd, random):
    q, k, v, allow = crowd
    order = list(range(q.shape[-2]))
    random.shuffle(order)
    shuffled = ops.scaled_dot_product_attention(
        q[..., order, :], k, v, allow[..., order, :]
    )
    straight = ops.scaled_dot_product_attention(q, k, v, allow)
    assert np.allclose(shuffled, straight[..., order, :])


@given(crowds(), st.integers(0, 4))
def test_a_key_nobody_may_see_is_as_if_deleted(crowd, index):
    q, k, v, allow = crowd
    hidden = index % k.shape[-2]
    allow[..., hidden] = False
    kept = np.delete(np.arange(k.shape[-2]), hidden)
    if len(kept) == 0:
        return
    without = ops.scaled_dot_product_attention(
        q, k[..., kept, :], v[..., kept, :], allow[..., kept]
    )
    masked = ops.scaled_dot_product_attention(q, k, v, allow)
    assert np.allclose(masked, without)


@given(crowds())
def test_disturbing_a_hidden_key_changes_no_bit(crowd):
    q, k, v, allow = crowd
    allow[..., 0] = False
    before = ops.scaled_dot_product_attention(q, k, v, allow)
    k[..., 0, :] += 1e3
    v[..., 0, :] -= 1e3
    assert np.array_equal(ops.scaled_dot_product_attention(q, k, v, allow), before)


@given(crowds(), st.floats(0.01, 4))
@settings(max_examples=50)
def test_scaling_scores_is_scaling_queries(crowd, scale):
    q, k, _, allow = crowd
    on_scores = ops.attention_weights(q, k, allow, scale=scale)
    on_queries = ops.attention_weights(q * scale, k, allow, scale=1.0)
    assert np.allclose(on_scores, on_queries)
