"""Norms, feed-forward and the block; and how large signal and gradient become."""

import math
import subprocess
import sys
from functools import partial

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper
from onnx.reference import ReferenceEvaluator

from attnbook import depth, ops
from attnbook.exercises import EXERCISES, check

seeds = st.integers(0, 2**32 - 1)


def draw(seed, *shapes, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


# --- norms ------------------------------------------------------------------


def test_layer_norm_by_hand():
    x = np.array([1.0, 3.0, 5.0, 7.0])  # mean 4, variance 5
    gain, bias = np.array([1.0, 1, 2, 1]), np.array([0.0, 10, 0, 0])
    expected = np.array([-3, -1, 2 * 1, 3]) / 5**0.5 + bias
    assert np.allclose(ops.layer_norm(x, gain, bias, 0.0), expected)


def test_rms_norm_by_hand():
    x = np.array([1.0, -1.0, 5.0, 3.0])  # mean square 9
    gain = np.array([1.0, 1, 1, 2])
    assert np.allclose(ops.rms_norm(x, gain, 0.0), [1 / 3, -1 / 3, 5 / 3, 2])


def test_eps_is_inside_the_root():
    x = np.array([3.0, -3.0])
    one, zero = np.ones(2), np.zeros(2)
    assert np.allclose(ops.layer_norm(x, one, zero, 16.0), x / 5)
    assert np.allclose(ops.rms_norm(x, one, 16.0), x / 5)


@given(seeds, st.floats(-100, 100), st.floats(0.1, 100))
def test_layer_norm_forgets_level_and_size_and_rms_norm_the_size_alone(seed, b, a):
    (x,) = draw(seed, (3, 4))
    one, zero = np.ones(4), np.zeros(4)
    before = ops.layer_norm(x, one, zero, 0.0)
    assert np.allclose(ops.layer_norm(a * x + b, one, zero, 0.0), before)
    assert np.allclose(ops.rms_norm(a * x, one, 0.0), ops.rms_norm(x, one, 0.0))
    assert np.allclose(before.mean(-1), 0)
    assert np.allclose(before.var(-1), 1)


@given(seeds)
def test_of_centred_vectors_the_two_norms_agree(seed):
    x, gain = draw(seed, (2, 3, 5), (5,))
    x -= x.mean(axis=-1, keepdims=True)
    both = ops.layer_norm(x, gain, np.zeros(5)), ops.rms_norm(x, gain)
    assert np.allclose(*both)


def test_each_token_is_normalised_as_if_alone():
    x, gain, bias = draw(0, (2, 3, 5), (5,), (5,))
    for norm in (
        lambda x: ops.layer_norm(x, gain, bias),
        lambda x: ops.rms_norm(x, gain),
    ):
        for i in np.ndindex(2, 3):
            assert np.allclose(norm(x)[i], norm(x[i]))


def test_a_vector_of_equal_numbers_gives_the_bias_and_never_nan():
    x, bias = np.full((2, 3), 7.0), np.array([1.0, 2, 3])
    with np.errstate(all="raise"):
        assert np.allclose(ops.layer_norm(x, np.ones(3), bias), bias)
        assert ops.rms_norm(np.zeros((2, 3)), np.ones(3)).tolist() == [[0] * 3] * 2


def test_float16_is_squared_in_a_wider_type():
    x = np.array([1000.0, -1000.0, 2000.0], np.float16)  # 1000² is beyond float16
    one = np.ones(3, np.float16)
    with np.errstate(all="raise"):
        out = ops.rms_norm(x, one)
        centred = ops.layer_norm(x, one, np.zeros(3, np.float16))
    assert np.allclose(out, x / np.sqrt(2e6), rtol=1e-3)
    assert np.isclose(centred.astype(float).var(), 1, rtol=1e-2)


def onnx_run(operator, opset, inputs, **attributes):
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in inputs.items()
    ]
    first = next(iter(inputs.values()))
    kind = helper.np_dtype_to_tensor_dtype(first.dtype)
    output = helper.make_tensor_value_info("Y", kind, first.shape)
    node = helper.make_node(operator, list(inputs), ["Y"], **attributes)
    graph = helper.make_graph([node], "norm", infos, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    onnx.checker.check_model(model)
    return ReferenceEvaluator(model).run(None, inputs)[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("eps", [1e-5, 0.5])
@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 3, 5)])
def test_norms_equal_the_onnx_operators(dtype, eps, shape):
    x, gain, bias = draw(1, shape, (5,), (5,), dtype=dtype)
    x += 3  # a mean that centring takes away and RMSNorm does not
    tolerance = {"atol": 2e-6 if dtype == np.float32 else 1e-6, "rtol": 0}
    inputs = {"X": x, "Scale": gain, "B": bias}
    theirs = onnx_run("LayerNormalization", 17, inputs, epsilon=eps, axis=-1)
    ours = ops.layer_norm(x, gain, bias, eps)
    assert np.allclose(ours, theirs, **tolerance)
    inputs = {"X": x, "scale": gain}
    theirs = onnx_run("RMSNormalization", 23, inputs, epsilon=eps, axis=-1)
    ours = ops.rms_norm(x, gain, eps)
    assert np.allclose(ours, theirs, **tolerance)
    assert not np.allclose(ours, ops.layer_norm(x, gain, 0 * bias, eps), atol=0.1)


# --- feed-forward -----------------------------------------------------------


def test_gelu_is_close_to_the_exact_one_and_silu_is_x_times_its_logistic():
    x = np.linspace(-8, 8, 321)
    exact = [v * 0.5 * (1 + math.erf(v / 2**0.5)) for v in x]
    assert np.abs(ops.gelu(x) - exact).max() < 5e-4
    assert np.allclose(ops.silu(x), x / (1 + np.exp(-x)))
    with np.errstate(all="raise"):
        ends = np.array([-1e6, 1e6])
        assert ops.silu(ends).tolist() == [0, 1e6]
        assert ops.gelu(ends).tolist() == [0, 1e6]


def test_gelu_equals_the_onnx_operator():
    x = np.linspace(-5, 5, 101)
    theirs = onnx_run("Gelu", 20, {"X": x}, approximate="tanh")
    assert np.allclose(ops.gelu(x), theirs, atol=1e-12)


def test_feed_forward_equals_the_slow_loop():
    x, w_in, b_in, w_out, b_out = draw(2, (3, 4), (4, 6), (6,), (6, 4), (4,))
    out = ops.feed_forward(x, w_in, b_in, w_out, b_out)
    for t in range(3):
        middle = [
            float(
                ops.gelu(
                    np.array(sum(x[t, i] * w_in[i, f] for i in range(4)) + b_in[f])
                )
            )
            for f in range(6)
        ]
        for j in range(4):
            slow = sum(middle[f] * w_out[f, j] for f in range(6)) + b_out[j]
            assert np.isclose(out[t, j], slow)


def test_gated_feed_forward_equals_the_slow_loop():
    x, w_gate, w_up, w_down = draw(3, (3, 4), (4, 6), (4, 6), (6, 4))
    out = ops.gated_feed_forward(x, w_gate, w_up, w_down)
    for t in range(3):
        gate, up = x[t] @ w_gate, x[t] @ w_up
        middle = [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up, strict=True)]
        assert np.allclose(out[t], np.array(middle) @ w_down)


def test_a_closed_gate_lets_nothing_through():
    x, w_up, w_down = draw(4, (3, 4), (4, 6), (6, 4))
    out = ops.gated_feed_forward(x, np.zeros((4, 6)), w_up, w_down)
    assert not out.any()


@given(seeds, st.integers(0, 2))
def test_a_token_is_not_touched_by_others(seed, t):
    x, w_in, b_in, w_out, b_out = draw(seed, (3, 4), (4, 6), (6,), (6, 4), (4,))
    before = ops.feed_forward(x, w_in, b_in, w_out, b_out)
    others = np.arange(3) != t
    x[others] += 5
    after = ops.feed_forward(x, w_in, b_in, w_out, b_out)
    assert np.allclose(after[t], before[t])
    assert not np.allclose(after[others], before[others])


# --- the block --------------------------------------------------------------


def test_with_a_sublayer_that_returns_zero_the_block_is_the_identity():
    (x,) = draw(5, (2, 3, 4))
    out = ops.pre_norm_block(x, np.zeros_like, lambda x: ops.rms_norm(x, np.ones(4)))
    assert np.array_equal(out, x)


def test_the_sublayer_reads_the_normalised_and_its_work_is_added_to_the_original():
    x = np.array([[3.0, -3.0]])
    norm = partial(ops.rms_norm, gain=np.ones(2), eps=0.0)
    assert np.allclose(ops.pre_norm_block(x, lambda u: 10 * u, norm), [[13, -13]])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_what_comes_in_goes_out(dtype):
    x, w, v = draw(6, (3, 4), (4, 6), (6, 4), dtype=dtype)
    gain, bias, wide = (np.ones(n, dtype) for n in (4, 4, 6))
    eps = np.float64(1e-5)
    for out in (
        ops.layer_norm(x, gain, bias, eps),
        ops.rms_norm(x, gain, eps),
        ops.gelu(x),
        ops.silu(x),
        ops.feed_forward(x, w, wide, v, bias),
        ops.gated_feed_forward(x, w, w, v),
        ops.pre_norm_block(x, lambda u: u, lambda u: u),
    ):
        assert out.dtype == dtype


def test_inputs_are_left_as_they_were():
    arrays = draw(7, (3, 4), (4,), (4,), (4, 6), (6,), (6, 4))
    copies = [a.copy() for a in arrays]
    x, gain, bias, w, b, v = arrays
    ops.layer_norm(x, gain, bias)
    ops.rms_norm(x, gain)
    ops.feed_forward(x, w, b, v, bias)
    ops.gated_feed_forward(x, w, w, v)
    ops.pre_norm_block(x, lambda u: u, lambda u: u)
    assert all(np.array_equal(a, c) for a, c in zip(arrays, copies, strict=True))


def ones(*shape):
    return np.ones(shape)


REFUSED = {
    "a list": (lambda: ops.rms_norm([1.0], ones(1)), TypeError, "x must be"),
    "integers": (lambda: ops.rms_norm(np.ones(2, int), ones(2)), TypeError, "int64"),
    "no axis": (
        lambda: ops.rms_norm(np.array(1.0), ones(1)),
        ValueError,
        "x has shape",
    ),
    "gain": (
        lambda: ops.rms_norm(ones(2, 3), ones(2)),
        ValueError,
        r"gain has .*\(2,\)",
    ),
    "bias": (
        lambda: ops.layer_norm(ones(2, 3), ones(3), ones(1)),
        ValueError,
        r"bias has shape \(1,\)",
    ),
    "dtype": (
        lambda: ops.layer_norm(ones(2, 3), ones(3), ones(3).astype("f4")),
        TypeError,
        "bias has dtype float32",
    ),
    "eps": (lambda: ops.rms_norm(ones(2), ones(2), -1), ValueError, "eps is -1"),
    "w_in": (
        lambda: ops.feed_forward(ones(2, 3), ones(4, 5), ones(5), ones(5, 3), ones(3)),
        ValueError,
        r"w_in has shape \(4, 5\).*3, the width of x",
    ),
    "b_in": (
        lambda: ops.feed_forward(ones(2, 3), ones(3, 5), ones(3), ones(5, 3), ones(3)),
        ValueError,
        r"b_in has shape \(3,\); it needs \(5,\)",
    ),
    "w_out": (
        lambda: ops.feed_forward(ones(2, 3), ones(3, 5), ones(5), ones(4, 3), ones(3)),
        ValueError,
        r"w_out has shape \(4, 3\)",
    ),
    "b_out": (
        lambda: ops.feed_forward(ones(2, 3), ones(3, 5), ones(5), ones(5, 3), ones(2)),
        ValueError,
        r"b_out has shape \(2,\)",
    ),
    "w_up": (
        lambda: ops.gated_feed_forward(ones(2, 3), ones(3, 5), ones(3, 4), ones(5, 3)),
        ValueError,
        r"w_up has shape \(3, 4\)",
    ),
    "w_down": (
        lambda: ops.gated_feed_forward(ones(2, 3), ones(3, 5), ones(3, 5), ones(3, 5)),
        ValueError,
        "w_down has shape",
    ),
    "sublayer": (
        lambda: ops.pre_norm_block(ones(2, 3), lambda u: u[:1], lambda u: u),
        ValueError,
        r"sublayer returns the shape \(1, 3\)",
    ),
    "sublayer's dtype": (
        lambda: ops.pre_norm_block(ones(2), lambda u: u.astype("f4"), lambda u: u),
        TypeError,
        "what sublayer returns has dtype float32",
    ),
    "sublayer's type": (
        lambda: ops.pre_norm_block(ones(2), lambda u: None, lambda u: u),
        TypeError,
        "what sublayer returns must be a NumPy array",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_by_name(case):
    call, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        call()


UNDER_THE_HOOK = """
import numpy as np
from jaxtyping import TypeCheckError, install_import_hook
with install_import_hook("attnbook", "beartype.beartype"):
    from attnbook import ops
one = np.ones
for batch in ((), (2,), (2, 3)):
    x = one((*batch, 4))
    ops.layer_norm(x, one(4), one(4)), ops.rms_norm(x, one(4))
    ops.gelu(x), ops.silu(x), ops.pre_norm_block(x, lambda u: u, lambda u: u)
    ops.feed_forward(x, one((4, 6)), one(6), one((6, 4)), one(4))
    ops.gated_feed_forward(x, one((4, 6)), one((4, 6)), one((6, 4)))
try:
    ops.rms_norm(one((2, 4)), one(3))
except TypeCheckError:
    print("all shapes hold, and the hook bites")
"""


def test_the_annotated_shapes_hold():
    out = subprocess.check_output([sys.executable, "-c", UNDER_THE_HOOK], text=True)
    assert out.strip() == "all shapes hold, and the hook bites"


# --- backward, and the deep stack -------------------------------------------


def by_nudging(function, x, grad, step=1e-6):
    """Return d(sum(grad · function(x))) / dx, one number at a time."""
    result = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i] += step
        down[i] -= step
        result[i] = np.sum(grad * (function(up) - function(down))) / (2 * step)
    return result


@given(seeds)
def test_backward_passes_equal_finite_differences(seed):
    x, grad, gain, bias = draw(seed, (2, 3, 5), (2, 3, 5), (5,), (5,))
    w_in, b_in, w_out = draw(seed + 1, (5, 7), (7,), (7, 5))
    close = {"atol": 1e-6, "rtol": 1e-5}
    for eps in (1e-5, 0.3):
        nudged = by_nudging(
            partial(ops.layer_norm, gain=gain, bias=bias, eps=eps), x, grad
        )
        assert np.allclose(
            depth.layer_norm_backward(x, gain, grad, eps), nudged, **close
        )
        nudged = by_nudging(partial(ops.rms_norm, gain=gain, eps=eps), x, grad)
        assert np.allclose(depth.rms_norm_backward(x, gain, grad, eps), nudged, **close)
    weights = {"w_in": w_in, "b_in": b_in, "w_out": w_out}
    nudged = by_nudging(partial(ops.feed_forward, b_out=bias, **weights), x, grad)
    back = depth.feed_forward_backward(x, **weights, grad=grad)
    assert np.allclose(back, nudged, **close)


ARRANGEMENTS = [
    (residual, norm, kind)
    for residual in (False, True)
    for norm in depth.NORMS
    for kind in depth.KINDS
]


def forward_alone(x, layers, residual, norm, kind):
    """The stack once more, written with the functions of the block."""
    one, zero = np.ones(x.shape[-1]), np.zeros(x.shape[-1])
    normalise = {
        "layer": partial(ops.layer_norm, gain=one, bias=zero),
        "rms": partial(ops.rms_norm, gain=one),
    }[kind]
    states = [x]
    for w_in, w_out in layers:
        middle = np.zeros(w_in.shape[1])
        think = partial(
            ops.feed_forward, w_in=w_in, b_in=middle, w_out=w_out, b_out=zero
        )
        if norm == "pre" and residual:
            x = ops.pre_norm_block(x, think, normalise)
        else:
            new = think(normalise(x) if norm == "pre" else x)
            new = x + new if residual else new
            x = normalise(new) if norm == "post" else new
        states.append(x)
    return states


@pytest.mark.parametrize(("residual", "norm", "kind"), ARRANGEMENTS)
def test_sizes_are_those_of_the_states_and_of_their_finite_differences(
    residual, norm, kind
):
    rng = np.random.default_rng(8)
    x, grad = rng.standard_normal((2, 3, 6))
    layers = depth.random_layers(rng, 4, 6, 10, gain=1.5)
    sizes = depth.stack_sizes(x, layers, grad, residual, norm, kind)
    states = forward_alone(x, layers, residual, norm, kind)
    rms = [np.sqrt(np.mean(s**2)) for s in states]
    assert np.allclose(sizes.signal, rms)
    for place in range(5):
        rest = partial(
            forward_alone,
            layers=layers[place:],
            residual=residual,
            norm=norm,
            kind=kind,
        )
        nudged = by_nudging(lambda x, f=rest: f(x)[-1], states[place], grad)
        expected = np.sqrt(np.mean(nudged**2)) / np.sqrt(np.mean(grad**2))
        assert np.isclose(sizes.gradient[place], expected, rtol=1e-4)
    unit = states[-1] / np.linalg.norm(states[-1], axis=-1, keepdims=True)
    cosines = [unit[i] @ unit[j] for i in range(3) for j in range(i)]
    assert np.isclose(sizes.likeness[-1], np.mean(cosines))


def test_random_layers_have_the_variance_that_is_promised():
    layers = depth.random_layers(np.random.default_rng(9), 3, 64, 256, gain=2.0)
    assert len(layers) == 3
    for w_in, w_out in layers:
        assert np.isclose(w_in.var(), 1 / 64, rtol=0.05)
        assert np.isclose(w_out.var(), 4 / 256, rtol=0.05)


@pytest.mark.parametrize("name", ["norm", "kind"])
def test_unknown_arrangements_are_refused(name):
    x = np.ones((2, 3))
    with pytest.raises(ValueError, match=f"{name} is 'batch'; it must be one of"):
        depth.stack_sizes(x, [], x, **{name: "batch"})


# --- the exercises -----------------------------------------------------------


def test_the_right_predictions_are_what_one_measures():
    rng = np.random.default_rng(10)
    stream = 3 * rng.standard_normal(20_000)
    for _ in range(40):
        stream += 2 * rng.standard_normal(20_000)
    measured = np.sqrt(np.mean(stream**2))
    assert measured == pytest.approx(EXERCISES["size_of_the_stream"].answer, rel=0.03)

    x, grad = rng.standard_normal((2, 4, 32))
    assert EXERCISES["norms_removed"].answer == "c"  # between 1 and 2
    turned_down = depth.random_layers(rng, 128, 32, 128, gain=128**-0.5)
    bare = depth.stack_sizes(x, turned_down, grad, norm="none")
    assert 1 < bare.signal[-1] / bare.signal[0] < 2

    assert EXERCISES["norm_on_the_path"].answer == "c"  # size 1, original gone
    layers = depth.random_layers(rng, 128, 32, 128)
    tidied, one = x, np.ones(32)
    for w_in, w_out in layers:
        tidied = ops.rms_norm(tidied, one)
        tidied = tidied + ops.gelu(tidied @ w_in) @ w_out
    assert 0.9 < np.sqrt(np.mean(tidied**2)) < 2
    assert abs(np.corrcoef(tidied.ravel(), x.ravel())[0, 1]) < 0.15


def test_the_check_says_which_sublayer_it_tried():
    verdict = check("pre_norm_block", lambda x, sublayer, norm: norm(x + sublayer(x)))
    assert verdict.mistake == "post_norm"
    assert "sublayer = times_ten" in str(verdict)
    assert "norm = halves" in str(verdict)
