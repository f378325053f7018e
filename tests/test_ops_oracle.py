"""Attention against an independent implementation: ONNX's reference evaluator."""

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from attnbook import ops


def onnx_attention(q, k, v, allow, scale):
    """Evaluate the ONNX operator Attention (opset 23) on (B, H, T, d) arrays."""
    inputs = {"Q": q, "K": k, "V": v}
    if allow is not None:
        inputs["attn_mask"] = allow
    node = helper.make_node(
        "Attention", list(inputs), ["Y"], **({} if scale is None else {"scale": scale})
    )
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in inputs.items()
    ]
    shape = (*q.shape[:-1], v.shape[-1])
    output = helper.make_tensor_value_info(
        "Y", helper.np_dtype_to_tensor_dtype(q.dtype), shape
    )
    graph = helper.make_graph([node], "attention", infos, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)])
    onnx.checker.check_model(model)
    return ReferenceEvaluator(model).run(None, inputs)[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [None, 0.25])
@pytest.mark.parametrize("mask", ["none", "random", "one row for all", "one key"])
def test_attention_equals_the_onnx_operator(dtype, scale, mask):
    rng = np.random.default_rng(0)
    B, H, T, S, d, d_v = 2, 3, 4, 5, 6, 7
    q = rng.standard_normal((B, H, T, d)).astype(dtype)
    k = rng.standard_normal((B, H, S, d)).astype(dtype)
    v = rng.standard_normal((B, H, S, d_v)).astype(dtype)
    some = rng.random((B, H, T, S)) < 0.6
    some[..., 0] = True  # ONNX leaves a row without any key undefined
    allow = {
        "none": None,
        "random": some,
        "one row for all": np.broadcast_to(some[:1, :1, :1], some.shape).copy(),
        "one key": np.broadcast_to(np.arange(S) == 2, some.shape).copy(),
    }[mask]
    ours = ops.scaled_dot_product_attention(q, k, v, allow, scale)
    theirs = onnx_attention(q, k, v, allow, scale)
    tolerance = 1e-6 if dtype == np.float32 else 1e-12
    assert np.allclose(ours, theirs, atol=tolerance, rtol=0)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_equals_the_onnx_operator(axis):
    x = 30 * np.random.default_rng(1).standard_normal((3, 4, 5))
    info = helper.make_tensor_value_info("X", onnx.TensorProto.DOUBLE, x.shape)
    output = helper.make_tensor_value_info("Y", onnx.TensorProto.DOUBLE, x.shape)
    node = helper.make_node("Softmax", ["X"], ["Y"], axis=axis)
    graph = helper.make_graph([node], "softmax", [info], [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    theirs = ReferenceEvaluator(model).run(None, {"X": x})[0]
    assert np.allclose(ops.softmax(x, axis), theirs, atol=1e-15)
