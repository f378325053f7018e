"""Rotary positions: turning changes no length, and only differences count."""

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper
from onnx.reference import ReferenceEvaluator

from attnbook import ops


def test_a_pair_turns_by_its_angle():
    x = np.array([[1.0, 0.0, 1.0, 0.0]])
    turned = ops.rope(x, positions=np.array([3]), base=100.0)
    angles = 3 * np.array([1.0, 0.1])  # 100^0 and 100^(-2/4)
    expected = [
        [np.cos(angles[0]), np.sin(angles[0]), np.cos(angles[1]), np.sin(angles[1])]
    ]
    assert np.allclose(turned, expected)


@given(st.integers(0, 2**32), st.integers(-500, 500), st.sampled_from([2, 4, 10]))
def test_dot_products_depend_on_the_difference_only(seed, shift, d):
    rng = np.random.default_rng(seed)
    q, k = rng.standard_normal((3, d)), rng.standard_normal((5, d))
    at_q, at_k = rng.integers(0, 100, 3), rng.integers(0, 100, 5)
    here = ops.rope(q, at_q) @ ops.rope(k, at_k).T
    there = ops.rope(q, at_q + shift) @ ops.rope(k, at_k + shift).T
    assert np.allclose(here, there, atol=1e-9)


@given(st.integers(0, 2**32), st.integers(0, 10**6))
def test_turning_changes_no_length(seed, position):
    x = np.random.default_rng(seed).standard_normal((2, 1, 8))
    turned = ops.rope(x, np.array([position]))
    assert np.allclose(np.linalg.norm(turned, axis=-1), np.linalg.norm(x, axis=-1))


def test_position_zero_changes_nothing():
    x = np.random.default_rng(0).standard_normal((1, 6))
    assert np.array_equal(ops.rope(x), x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rope_equals_the_onnx_operator(dtype):
    rng = np.random.default_rng(1)
    B, H, T, d = 2, 3, 5, 8
    x = rng.standard_normal((B, H, T, d)).astype(dtype)
    angles = np.arange(T)[:, None] * 10_000.0 ** (-np.arange(0, d, 2) / d)
    inputs = {
        "X": x,
        "cos": np.cos(angles).astype(dtype),
        "sin": np.sin(angles).astype(dtype),
        "at": np.tile(np.arange(T), (B, 1)),
    }
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in inputs.items()
    ]
    output = helper.make_tensor_value_info(
        "Y", infos[0].type.tensor_type.elem_type, x.shape
    )
    node = helper.make_node("RotaryEmbedding", list(inputs), ["Y"], interleaved=1)
    graph = helper.make_graph([node], "rope", infos, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)])
    onnx.checker.check_model(model)
    theirs = ReferenceEvaluator(model).run(None, inputs)[0]
    assert np.allclose(ops.rope(x), theirs, atol=1e-6)


def test_what_comes_in_goes_out_and_stays_as_it_was():
    x = np.ones((3, 4), np.float32)
    assert ops.rope(x).dtype == np.float32
    assert (x == 1).all()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((np.ones((2, 3)),), ValueError, "must be even"),
        ((np.ones(4),), ValueError, "x has shape"),
        ((np.ones((2, 4)), np.arange(3)), ValueError, r"positions has shape \(3,\)"),
        ((np.ones((2, 4)), np.ones(2)), TypeError, "whole numbers"),
        ((np.ones((2, 4)), None, 0.0), ValueError, "base is 0.0"),
        (([[1.0, 2.0]],), TypeError, "x must be a NumPy array"),
    ],
)
def test_wrong_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        ops.rope(*arguments)
