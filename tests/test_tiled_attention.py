"""Attention in tiles is attention, and holds less in memory at once."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_ops_properties import crowds

from attnbook import ops


@given(crowds(), st.integers(1, 7))
def test_tiles_change_nothing(crowd, tile):
    q, k, v, allow = crowd
    direct = ops.scaled_dot_product_attention(q, k, v, allow)
    tiled = ops.tiled_attention(q, k, v, allow, tile=tile)
    assert np.allclose(tiled, direct, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("tile", [1, 3, 5, 8])
@pytest.mark.parametrize("scale", [None, 0.0, 2.0])
def test_scores_of_any_size_and_empty_rows(tile, scale):
    rng = np.random.default_rng(0)
    q, k = 30 * rng.standard_normal((2, 7, 4)), 30 * rng.standard_normal((2, 8, 4))
    v = rng.standard_normal((2, 8, 3))
    allow = rng.random((2, 7, 8)) < 0.3
    allow[:, 2] = False
    allow[:, 3, :5] = False  # the first tiles hold nothing for this query
    with np.errstate(all="raise", under="ignore"):
        tiled = ops.tiled_attention(q, k, v, allow, scale, tile)
    assert np.allclose(tiled, ops.scaled_dot_product_attention(q, k, v, allow, scale))
    assert (tiled[:, 2] == 0).all()


def test_leading_axes_of_keys_and_values_broadcast():
    rng = np.random.default_rng(1)
    q = rng.standard_normal((2, 3, 5, 4))
    k, v = rng.standard_normal((3, 6, 4)), rng.standard_normal((3, 6, 2))
    tiled = ops.tiled_attention(q, k, v, tile=4)
    assert np.allclose(tiled, ops.scaled_dot_product_attention(q, k, v))


def test_what_comes_in_goes_out():
    rng = np.random.default_rng(2)
    q, k, v = (rng.standard_normal((5, 4)).astype(np.float32) for _ in range(3))
    assert ops.tiled_attention(q, k, v, tile=2).dtype == np.float32


@pytest.mark.parametrize("tile", [0, -1, 2.0, True])
def test_a_tile_is_a_whole_number(tile):
    q = np.ones((2, 2))
    with pytest.raises((TypeError, ValueError), match="tile"):
        ops.tiled_attention(q, q, q, tile=tile)


def test_values_that_do_not_fit_are_refused():
    q = np.ones((2, 3))
    with pytest.raises(ValueError, match=r"v has shape \(4, 3\)"):
        ops.tiled_attention(q, q, np.ones((4, 3)))
    with pytest.raises(ValueError, match=r"allow has shape \(3, 2\)"):
        ops.tiled_attention(q, q, q, np.ones((3, 2), bool))


def peak_bytes(function, *arrays):
    tracemalloc.start()
    function(*arrays)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_the_memory_of_tiles_does_not_grow_with_the_square():
    rng = np.random.default_rng(3)
    short, long = (
        [rng.standard_normal((n, 16)).astype(np.float32) for _ in range(3)]
        for n in (512, 2048)
    )
    direct = [peak_bytes(ops.scaled_dot_product_attention, *a) for a in (short, long)]
    tiled = [peak_bytes(ops.tiled_attention, *a) for a in (short, long)]
    assert direct[1] > 14 * direct[0]  # four times longer, sixteen times more
    assert tiled[1] < 4 * tiled[0]
    assert tiled[1] < direct[1] / 20
