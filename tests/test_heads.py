"""Several heads and grouped keys: what they compute, and against ONNX's evaluator."""

import subprocess
import sys

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from onnx.reference import ReferenceEvaluator

from attnbook import ops

sizes = st.integers(1, 4)


@st.composite
def layers(draw):
    """Tokens, projections, head counts and a mask; no two axes need agree."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    batch = draw(st.sampled_from([(), (2,), (2, 3)]))
    G, group, T, d, D = (draw(sizes) for _ in range(5))
    H = G * group
    x = rng.standard_normal((*batch, T, D))
    matrices = [
        rng.standard_normal(shape)
        for shape in ((D, H * d), (D, G * d), (D, G * d), (H * d, D))
    ]
    allow = rng.random((*batch, H, T, T)) < draw(st.sampled_from([0.3, 1]))
    return x, matrices, H, G, allow


def slow_multi_head_attention(x, w_q, w_k, w_v, w_o, heads, kv_heads, allow):
    """Head by head, token by token, for one sentence."""
    T = len(x)
    d = w_q.shape[1] // heads
    output = np.zeros((T, heads * d))
    for h in range(heads):
        g = h // (heads // kv_heads)
        q = x @ w_q[:, h * d : (h + 1) * d]
        k = x @ w_k[:, g * d : (g + 1) * d]
        v = x @ w_v[:, g * d : (g + 1) * d]
        for t in range(T):
            seen = [s for s in range(T) if allow[h, t, s]]
            if not seen:
                continue
            scores = np.array([q[t] @ k[s] / d**0.5 for s in seen])
            weights = np.exp(scores - scores.max())
            weights /= weights.sum()
            output[t, h * d : (h + 1) * d] = weights @ v[seen]
    return output @ w_o


@given(layers())
@settings(max_examples=60)
def test_several_heads_equal_the_slow_loop_for_each_sentence(layer):
    x, matrices, H, G, allow = layer
    fast = ops.multi_head_attention(x, *matrices, H, G, allow)
    for i in np.ndindex(*x.shape[:-2]):
        slow = slow_multi_head_attention(x[i], *matrices, H, G, allow[i])
        assert np.allclose(fast[i], slow)


@given(layers())
@settings(max_examples=60)
def test_groups_equal_full_heads_whose_keys_are_equal_within_a_group(layer):
    x, (w_q, w_k, w_v, w_o), H, G, allow = layer
    d = w_q.shape[1] // H

    def repeated(w):  # the columns of each key/value head, once for each query head
        columns = w.reshape(len(w), G, d)
        return np.repeat(columns, H // G, axis=1).reshape(len(w), H * d)

    grouped = ops.multi_head_attention(x, w_q, w_k, w_v, w_o, H, G, allow)
    full = ops.multi_head_attention(
        x, w_q, repeated(w_k), repeated(w_v), w_o, H, None, allow
    )
    assert np.allclose(grouped, full)


@given(layers())
@settings(max_examples=40)
def test_the_output_is_the_sum_of_what_each_head_adds(layer):
    x, (w_q, w_k, w_v, w_o), H, G, _ = layer
    d = w_q.shape[1] // H
    total = 0
    for h in range(H):
        mine = slice(h * d, (h + 1) * d)
        g = h // (H // G)
        theirs = slice(g * d, (g + 1) * d)
        total = total + ops.multi_head_attention(
            x, w_q[:, mine], w_k[:, theirs], w_v[:, theirs], w_o[mine], 1
        )
    assert np.allclose(total, ops.multi_head_attention(x, w_q, w_k, w_v, w_o, H, G))


@given(layers())
@settings(max_examples=40)
def test_one_head_is_plain_attention(layer):
    x, (w_q, *_), _, _, _ = layer
    w_k, w_v = w_q[:, ::-1].copy(), 2 * w_q
    w_o = np.eye(w_q.shape[1])[:, : x.shape[-1]]
    if w_o.shape[1] < x.shape[-1]:
        return
    one = ops.multi_head_attention(x, w_q, w_k, w_v, w_o, 1)
    plain = ops.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v)
    assert np.allclose(one, plain @ w_o)


@given(layers(), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_shuffled_tokens_give_shuffled_outputs(layer, random):
    x, matrices, H, G, _ = layer
    order = list(range(x.shape[-2]))
    random.shuffle(order)
    straight = ops.multi_head_attention(x, *matrices, H, G)
    shuffled = ops.multi_head_attention(x[..., order, :], *matrices, H, G)
    assert np.allclose(shuffled, straight[..., order, :])


def test_a_head_of_a_token_holds_neighbouring_numbers():
    x = np.arange(2 * 3 * 8.0).reshape(2, 3, 8)
    heads = ops.split_heads(x, 2)
    assert heads.shape == (2, 2, 3, 4)
    assert np.array_equal(heads[:, 1], x[..., 4:])
    assert np.array_equal(ops.merge_heads(heads), x)


def test_each_key_head_is_repeated_in_place_and_never_tiled():
    x = np.arange(2.0).reshape(2, 1, 1)
    assert ops.repeat_kv(x, 3).ravel().tolist() == [0, 0, 0, 1, 1, 1]
    assert np.array_equal(ops.repeat_kv(x, 1), x)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_what_comes_in_goes_out_and_inputs_stay(dtype):
    rng = np.random.default_rng(0)
    shapes = ((2, 3, 8), (8, 8), (8, 4), (8, 4), (8, 8))
    arrays = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    copies = [array.copy() for array in arrays]
    out = ops.multi_head_attention(*arrays, 4, 2, np.ones((3, 3), bool))
    assert out.dtype == dtype
    assert out.shape == (2, 3, 8)
    assert ops.repeat_kv(ops.split_heads(arrays[0], 4), 2).dtype == dtype
    assert all(np.array_equal(a, b) for a, b in zip(arrays, copies, strict=True))


@pytest.mark.parametrize(("H", "G"), [(6, 6), (6, 3), (6, 2), (6, 1)])
def test_grouped_attention_equals_the_onnx_operator(H, G):
    rng = np.random.default_rng(1)
    B, T, d, D = 2, 4, 5, 7
    x = rng.standard_normal((B, T, D)).astype(np.float32)
    w_q = rng.standard_normal((D, H * d)).astype(np.float32)
    w_k, w_v = rng.standard_normal((2, D, G * d)).astype(np.float32)
    w_o = np.eye(H * d, D, dtype=np.float32)
    allow = rng.random((B, H, T, T)) < 0.6
    allow[..., 0] = True  # ONNX leaves a row without any key undefined
    # The operator takes heads side by side in three axes and splits them itself.
    inputs = {"Q": x @ w_q, "K": x @ w_k, "V": x @ w_v, "attn_mask": allow}
    node = helper.make_node(
        "Attention", list(inputs), ["Y"], q_num_heads=H, kv_num_heads=G
    )
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in inputs.items()
    ]
    y = helper.make_tensor_value_info("Y", onnx.TensorProto.FLOAT, (B, T, H * d))
    graph = helper.make_graph([node], "attention", infos, [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)])
    onnx.checker.check_model(model)
    theirs = ReferenceEvaluator(model).run(None, inputs)[0] @ w_o
    ours = ops.multi_head_attention(x, w_q, w_k, w_v, w_o, H, G, allow)
    assert np.allclose(ours, theirs, atol=2e-6, rtol=1e-5)


def ones(*shape):
    return np.ones(shape)


def layer(**changed):
    given = {
        "x": ones(3, 6),
        "w_q": ones(6, 8),
        "w_k": ones(6, 4),
        "w_v": ones(6, 4),
        "w_o": ones(8, 6),
        "heads": 4,
        "kv_heads": 2,
    }
    return given | changed


REFUSED = {
    "a list": (layer(x=[[1.0]]), TypeError, "x must be a NumPy array"),
    "integers": (layer(w_k=np.ones((6, 4), int)), TypeError, "w_k must hold floating"),
    "one axis": (layer(x=ones(6)), ValueError, r"x has shape \(6,\)"),
    "three axes": (layer(w_v=ones(1, 6, 4)), ValueError, r"w_v has .* \(D, G·d\)"),
    "rows": (layer(w_q=ones(5, 8)), ValueError, r"w_q has shape \(5, 8\).*D = 6"),
    "cut": (layer(w_q=ones(6, 7)), ValueError, r"w_q has .* multiple of heads, 4"),
    "empty": (layer(w_q=ones(6, 0)), ValueError, r"w_q has shape \(6, 0\)"),
    "keys": (layer(w_k=ones(6, 8)), ValueError, r"w_k has .* needs 4 columns"),
    "values": (layer(w_v=ones(6, 2)), ValueError, r"w_v has .* needs 4 columns"),
    "output": (layer(w_o=ones(6, 8)), ValueError, r"w_o .* \(8, 6\)"),
    "dtype": (layer(w_o=ones(8, 6).astype("f4")), TypeError, "w_o has dtype float32"),
    "heads": (layer(heads=0), ValueError, "heads is 0"),
    "half": (layer(heads=4.0), TypeError, "heads must be a whole number"),
    "groups": (layer(kv_heads=3), ValueError, "kv_heads is 3 and heads is 4"),
    "true": (layer(kv_heads=True), TypeError, "kv_heads must be a whole number"),
    "mask": (layer(allow=np.ones((3, 3), int)), TypeError, "allow must be a boolean"),
    "mask shape": (layer(allow=ones(2, 3, 3) > 0), ValueError, "allow has shape"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_go_together_is_refused_by_name(what):
    arguments, error, message = REFUSED[what]
    with pytest.raises(error, match=message):
        ops.multi_head_attention(**arguments)


def test_wrong_arguments_of_the_parts_are_refused():
    with pytest.raises(ValueError, match=r"heads is 3, but x has shape \(2, 8\)"):
        ops.split_heads(ones(2, 8), 3)
    with pytest.raises(ValueError, match="x has shape"):
        ops.split_heads(ones(8), 2)
    with pytest.raises(ValueError, match=r"at least 3 axes, \(..., H, T, d\)"):
        ops.merge_heads(ones(2, 8))
    with pytest.raises(ValueError, match=r"at least 3 axes, \(..., G, S, d\)"):
        ops.repeat_kv(ones(2, 8), 2)
    with pytest.raises(ValueError, match="n is 0"):
        ops.repeat_kv(ones(2, 8, 3), 0)
    with pytest.raises(TypeError, match="n must be a whole number"):
        ops.repeat_kv(ones(2, 8, 3), 1.5)


UNDER_THE_HOOK = """
import numpy as np
from jaxtyping import install_import_hook
with install_import_hook("attnbook", "beartype.beartype"):
    from attnbook import ops
for batch in ((), (2,), (2, 3)):
    for dtype in (np.float32, np.float64):
        x = np.ones((*batch, 3, 6), dtype)
        w = [np.ones(s, dtype) for s in ((6, 8), (6, 4), (6, 4), (8, 6))]
        ops.multi_head_attention(x, *w, 4, 2, np.ones((3, 3), bool))
        ops.repeat_kv(ops.split_heads(x, 2), 3)
        ops.merge_heads(ops.split_heads(x, 2))
print("all shapes hold")
"""


def test_the_annotated_shapes_hold():
    command = [sys.executable, "-c", UNDER_THE_HOOK]
    assert subprocess.check_output(command, text=True).strip() == "all shapes hold"
