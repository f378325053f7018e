"""Attention and norms against the test vectors that are stored in the onnx package.

They were computed by other people's code, long before this book's, and are read
from files: nothing of ONNX runs here.
"""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from attnbook import ops

NODES = Path(onnx.__file__).parent / "backend" / "test" / "data" / "node"


class Vector:
    """One stored case: attributes, inputs by name, and the first output."""

    def __init__(self, folder: Path) -> None:
        (node,) = onnx.load(folder / "model.onnx").graph.node
        attributes = {
            a.name: onnx.helper.get_attribute_value(a) for a in node.attribute
        }
        self.attribute = attributes.get
        stored = folder / "test_data_set_0"
        given = [name for name in node.input if name]
        arrays = [self._load(stored / f"input_{i}.pb") for i in range(len(given))]
        self.input = dict(zip(given, arrays, strict=True)).get
        self.output = self._load(stored / "output_0.pb")

    @staticmethod
    def _load(file: Path) -> np.ndarray:
        return numpy_helper.to_array(onnx.load_tensor(file))


def cases(prefix: str) -> list[str]:
    """Return the names of the stored cases, without those that only unfold others."""
    return sorted(
        folder.name.removeprefix(prefix)
        for folder in NODES.glob(f"{prefix}*")
        if "expanded" not in folder.name
    )


# Capping scores by tanh is not in the book.
ATTENTION = [name for name in cases("test_attention_") if "softcap" not in name]


def scores_with(q: np.ndarray, k: np.ndarray, scale: float, bias: np.ndarray):
    """Return queries and keys whose scores, unscaled, are ``q k^T · scale + bias``.

    Each query gets a 1 in a place of its own, and each key what is added for the
    query of that place; so an added mask goes through the book's function, too.
    """
    T, S = q.shape[-2], k.shape[-2]
    bias = np.broadcast_to(bias, (*k.shape[:-2], T, S))
    own_place = np.broadcast_to(np.eye(T, dtype=q.dtype), (*q.shape[:-2], T, T))
    return (
        np.concatenate([q * q.dtype.type(scale), own_place], axis=-1),
        np.concatenate([k, bias.swapaxes(-1, -2).astype(k.dtype)], axis=-1),
    )


def attention(case: Vector) -> np.ndarray:
    """Compute the case with the book's functions alone."""
    q, k, v = (case.input(name) for name in "QKV")
    flat = q.ndim == 3
    if flat:
        q = ops.split_heads(q, case.attribute("q_num_heads"))
        k, v = (ops.split_heads(x, case.attribute("kv_num_heads")) for x in (k, v))
    past = 0
    if case.input("past_key") is not None:
        past = case.input("past_key").shape[-2]
        k = np.concatenate([case.input("past_key"), k], axis=-2)
        v = np.concatenate([case.input("past_value"), v], axis=-2)
    group = q.shape[-3] // k.shape[-3]
    k, v = ops.repeat_kv(k, group), ops.repeat_kv(v, group)
    T, S = q.shape[-2], k.shape[-2]

    allow = np.ones((T, S), bool)
    if case.attribute("is_causal"):
        # ONNX counts from the first new key, the book from the last query.
        allow = ops.causal_mask(T, past + T)
        allow = np.pad(allow, ((0, 0), (0, S - past - T)))
    if case.input("nonpad_kv_seqlen") is not None:
        allow = allow & ops.padding_mask(case.input("nonpad_kv_seqlen"), S)
    mask = case.input("attn_mask")
    scale = case.attribute("scale") or q.shape[-1] ** -0.5
    if mask is not None and mask.dtype == bool:
        allow = allow & mask
    elif mask is not None:
        added = np.pad(mask, [(0, 0)] * (mask.ndim - 1) + [(0, S - mask.shape[-1])])
        q, k = scores_with(q, k, scale, added)
        scale = 1.0
    output = ops.scaled_dot_product_attention(q, k, v, allow, scale)
    return ops.merge_heads(output) if flat else output


def test_there_are_vectors_of_every_kind():
    assert len(ATTENTION) > 40
    for kind in ("gqa", "causal", "past", "bool", "fp16", "scaled", "padded_kv"):
        assert any(kind in name for name in ATTENTION), kind


@pytest.mark.parametrize("name", ATTENTION)
def test_attention_equals_the_stored_vector(name):
    case = Vector(NODES / f"test_attention_{name}")
    ours = attention(case)
    assert ours.dtype == case.output.dtype
    tolerance = 2e-3 if ours.dtype == np.float16 else 1e-5
    assert np.allclose(ours, case.output, atol=tolerance, rtol=0)


def test_a_wrong_attention_does_not_equal_the_vectors():
    case = Vector(NODES / "test_attention_4d_gqa")
    q, k, v = (case.input(name) for name in "QKV")
    tiled = (np.tile(x, (1, 3, 1, 1)) for x in (k, v))
    wrong = ops.scaled_dot_product_attention(q, *tiled)
    assert not np.allclose(wrong, case.output, atol=1e-2)


@pytest.mark.parametrize("name", cases("test_layer_normalization_"))
def test_layer_norm_equals_the_stored_vector(name):
    case = Vector(NODES / f"test_layer_normalization_{name}")
    x, gain, bias = (case.input(name) for name in ("X", "W", "B"))
    ours = over_the_last_axes(ops.layer_norm, case, x, gain, bias)
    assert np.allclose(ours, case.output, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", cases("test_rms_normalization_"))
def test_rms_norm_equals_the_stored_vector(name):
    case = Vector(NODES / f"test_rms_normalization_{name}")
    x, gain = (case.input(name) for name in ("X", "W"))
    ours = over_the_last_axes(ops.rms_norm, case, x, gain)
    assert np.allclose(ours, case.output, atol=1e-5, rtol=0)


def over_the_last_axes(norm, case: Vector, x: np.ndarray, *learned: np.ndarray):
    """Norm over all axes from the case's axis on; the book's norms take one."""
    axis = case.attribute("axis")
    axis = -1 if axis is None else axis
    lead = x.shape[: axis if axis >= 0 else x.ndim + axis]
    eps = case.attribute("epsilon") or 1e-5
    flat = [array.reshape(-1) for array in learned]
    return norm(x.reshape(*lead, -1), *flat, eps).reshape(x.shape)


@pytest.mark.parametrize("prefix", ["test_layer_normalization_", "test_rms_normal"])
def test_there_are_vectors_of_norms(prefix):
    assert len(cases(prefix)) > 10
