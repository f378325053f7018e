"""Who may look at whom: the masks, and attention under them."""

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper
from onnx.reference import ReferenceEvaluator

from attnbook import ops

sizes = st.integers(1, 7)


def drawn(mask: np.ndarray) -> list[str]:
    return ["".join(".x"[int(seen)] for seen in row) for row in mask]


def some_qkv(T, S, d=3, d_v=4, batch=(), seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    shapes = ((*batch, T, d), (*batch, S, d), (*batch, S, d_v))
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


# --- the masks --------------------------------------------------------------


def test_a_causal_mask_is_a_triangle():
    assert drawn(ops.causal_mask(3)) == ["x..", "xx.", "xxx"]
    assert ops.causal_mask(3).dtype == np.bool_


def test_with_more_keys_the_triangle_touches_the_bottom_right():
    assert drawn(ops.causal_mask(2, 5)) == ["xxxx.", "xxxxx"]
    assert drawn(ops.causal_mask(1, 5)) == ["xxxxx"]


def test_with_fewer_keys_the_first_queries_look_at_nothing():
    assert drawn(ops.causal_mask(4, 2)) == ["..", "..", "x.", "xx"]


@given(T=sizes, S=sizes, window=sizes)
def test_masks_are_the_rows_that_their_rule_gives(T, S, window):
    causal, sliding = ops.causal_mask(T, S), ops.sliding_window_mask(T, window, S)
    for t in range(T):
        place = S - T + t
        assert causal[t].tolist() == [s <= place for s in range(S)]
        near = [place - window < s <= place for s in range(S)]
        assert sliding[t].tolist() == near


@given(T=sizes, S=sizes, data=st.data())
def test_the_last_rows_of_a_larger_mask_are_the_smaller_mask(T, S, data):
    whole = data.draw(st.integers(T, 9))
    assert (
        ops.causal_mask(whole, S + whole)[-T:] == ops.causal_mask(T, S + whole)
    ).all()
    sliding = ops.sliding_window_mask
    assert (sliding(whole, 3, 9)[-T:] == sliding(T, 3, 9)).all()


def test_a_window_as_long_as_the_sequence_is_the_causal_mask():
    assert (ops.sliding_window_mask(5, 5) == ops.causal_mask(5)).all()
    assert drawn(ops.sliding_window_mask(4, 2)) == ["x...", "xx..", ".xx.", "..xx"]
    assert drawn(ops.sliding_window_mask(2, 1, 3)) == [".x.", "..x"]


def test_padding_hides_what_comes_after_the_length():
    mask = ops.padding_mask([3, 0, 1], 3)
    assert mask.shape == (3, 1, 1, 3)
    assert drawn(mask[:, 0, 0]) == ["xxx", "...", "x.."]
    both = mask & ops.causal_mask(3)
    assert both.shape == (3, 1, 3, 3)
    assert drawn(both[2, 0]) == ["x..", "x..", "x.."]
    assert ops.padding_mask(np.array([2], np.uint8), 4).sum() == 2


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.causal_mask(0), ValueError, "T is 0; it must be at least 1"),
        (lambda: ops.causal_mask(2, 0), ValueError, "S is 0"),
        (lambda: ops.causal_mask(2.0), TypeError, "T must be a whole number.* float"),
        (lambda: ops.causal_mask(True), TypeError, "T must be .* bool"),
        (lambda: ops.sliding_window_mask(2, 0), ValueError, "window is 0"),
        (lambda: ops.sliding_window_mask(2, 1.5), TypeError, "window must be"),
        (lambda: ops.padding_mask([4], 3), ValueError, "lengths holds 4; .* S = 3"),
        (lambda: ops.padding_mask([-1], 3), ValueError, "lengths holds -1"),
        (lambda: ops.padding_mask([[1]], 3), ValueError, r"lengths has shape \(1, 1\)"),
        (lambda: ops.padding_mask([1.0], 3), TypeError, "lengths .* float64"),
        (lambda: ops.padding_mask([1], 0), ValueError, "S is 0"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()


# --- attention under a mask -------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_changing_a_future_token_changes_no_earlier_output_bit_for_bit(dtype):
    rng = np.random.default_rng(5)
    T = 7
    for mask in (ops.causal_mask(T), ops.sliding_window_mask(T, 3)):
        q, k, v = some_qkv(T, T, batch=(2,), dtype=dtype)
        before = ops.scaled_dot_product_attention(q, k, v, mask)
        for s in range(T):
            changed = [array.copy() for array in (q, k, v)]
            for array in changed:
                array[:, s] = 100 * rng.standard_normal(array[:, s].shape)
            after = ops.scaled_dot_product_attention(*changed, mask)
            assert after[:, :s].tobytes() == before[:, :s].tobytes()
            assert not np.array_equal(after[:, s], before[:, s])


def test_a_hidden_key_has_the_weight_zero_exactly():
    q, k, _ = some_qkv(6, 6)
    weights = ops.attention_weights(100 * q, k, ops.causal_mask(6))
    assert (weights[~ops.causal_mask(6)] == 0).all()
    assert np.allclose(weights.sum(axis=-1), 1)


@given(
    T=st.integers(1, 6),
    lengths=st.lists(st.integers(0, 6), min_size=1, max_size=3),
    causal=st.booleans(),
)
def test_padding_that_is_masked_is_padding_that_is_not_there(T, lengths, causal):
    S, B = 6, len(lengths)
    q, k, v = some_qkv(T, S, batch=(B, 2))
    allow = ops.padding_mask(lengths, S)
    if causal:
        allow = allow & ops.causal_mask(T, S)
    padded = ops.scaled_dot_product_attention(q, k, v, allow)
    for b, length in enumerate(lengths):
        if length == 0:
            assert (padded[b] == 0).all()
            continue
        kept = ops.causal_mask(T, S)[:, :length] if causal else None
        alone = ops.scaled_dot_product_attention(
            q[b], k[b, :, :length], v[b, :, :length], kept
        )
        assert np.allclose(padded[b], alone, atol=1e-12)


# --- against ONNX -----------------------------------------------------------


def onnx_attention(q, k, v, allow=None, is_causal=0, past=()):
    inputs = {"Q": q, "K": k, "V": v}
    if allow is not None:
        inputs["attn_mask"] = allow
    inputs.update(zip(("past_key", "past_value"), past, strict=bool(past)))
    names = list(inputs)
    if past and allow is None:
        names.insert(3, "")  # the place of the mask
    outputs = ["Y", "present_key", "present_value"] if past else ["Y"]
    node = helper.make_node("Attention", names, outputs, is_causal=is_causal)
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in inputs.items()
    ]
    output = helper.make_tensor_value_info(
        "Y", onnx.TensorProto.DOUBLE, (*q.shape[:-1], v.shape[-1])
    )
    graph = helper.make_graph([node], "attention", infos, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)])
    onnx.checker.check_model(model)
    return ReferenceEvaluator(model).run(None, inputs)[0]


@pytest.mark.parametrize(("T", "S"), [(5, 5), (2, 5), (1, 4)])
def test_our_masks_given_to_onnx_give_our_attention(T, S):
    q, k, v = some_qkv(T, S, batch=(2, 3))
    masks = [
        ops.causal_mask(T, S),
        ops.sliding_window_mask(T, 2, S),
        np.broadcast_to(ops.padding_mask([S, 2], S), (2, 1, T, S)).copy(),
    ]
    for allow in masks:
        ours = ops.scaled_dot_product_attention(q, k, v, allow)
        assert np.allclose(ours, onnx_attention(q, k, v, allow), atol=1e-12)


def test_the_causal_flag_of_onnx_is_ours_on_a_square_and_top_left_beside_it():
    q, k, v = some_qkv(4, 4, batch=(1, 1))
    ours = ops.scaled_dot_product_attention(q, k, v, ops.causal_mask(4))
    assert np.allclose(onnx_attention(q, k, v, is_causal=1), ours, atol=1e-12)

    q, k, v = some_qkv(2, 5, batch=(1, 1))
    theirs = onnx_attention(q, k, v, is_causal=1)
    top_left = np.tril(np.ones((2, 5), bool))
    at_the_top = ops.scaled_dot_product_attention(q, k, v, top_left)
    ours = ops.scaled_dot_product_attention(q, k, v, ops.causal_mask(2, 5))
    assert np.allclose(theirs, at_the_top, atol=1e-12)
    assert not np.allclose(theirs, ours, atol=0.01)


def test_the_causal_flag_of_onnx_is_ours_where_the_past_is_given_as_the_past():
    q, k, v = some_qkv(2, 5, batch=(1, 1))
    ours = ops.scaled_dot_product_attention(q, k, v, ops.causal_mask(2, 5))
    past = k[..., :3, :], v[..., :3, :]
    theirs = onnx_attention(q, k[..., 3:, :], v[..., 3:, :], is_causal=1, past=past)
    assert np.allclose(theirs, ours, atol=1e-12)
