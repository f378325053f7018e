"""What a model remembers while it writes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_shapes import python

from attnbook import ops
from attnbook.model import KVCache, attend_with_past


def some(shape, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@given(
    chunks=st.lists(st.integers(0, 4), min_size=1, max_size=6),
    room=st.sampled_from([None, 30]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_a_cache_gives_back_what_came_whatever_the_chunks(chunks, room, dtype):
    S = sum(chunks)
    k, v = some((2, 3, S, 4), dtype=dtype), some((2, 3, S, 5), 1, dtype)
    cache, start, earlier = KVCache(room), 0, []
    for size in chunks:
        part = slice(start, start + size)
        all_k, all_v = cache.append(k[..., part, :], v[..., part, :])
        start += size
        assert len(cache) == start
        assert all_k.dtype == all_v.dtype == dtype
        assert np.array_equal(all_k, k[..., :start, :])
        assert np.array_equal(all_v, v[..., :start, :])
        assert cache.nbytes == k[..., :start, :].nbytes + v[..., :start, :].nbytes
        earlier.append((all_k, all_k.copy()))
    # What was given out before is still what it was.
    for view, copy in earlier:
        assert np.array_equal(view, copy)


@given(chunks=st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_attention_in_chunks_equals_attention_at_once(chunks):
    T = sum(chunks)
    q, k, v = some((2, T, 3)), some((2, T, 3), 1), some((2, T, 4), 2)
    at_once = ops.scaled_dot_product_attention(q, k, v, ops.causal_mask(T))
    cache, parts = KVCache(), []
    for stop, size in zip(np.cumsum(chunks), chunks, strict=True):
        new = slice(stop - size, stop)
        past = slice(0, stop - size)
        all_k, all_v = cache.append(k[:, new], v[:, new])
        allow = ops.causal_mask(size, len(cache))
        parts.append(ops.scaled_dot_product_attention(q[:, new], all_k, all_v, allow))
        remembered = attend_with_past(
            q[:, new], k[:, new], v[:, new], k[:, past], v[:, past]
        )
        assert np.array_equal(remembered, parts[-1])
    assert np.allclose(np.concatenate(parts, axis=1), at_once, atol=1e-12)


def test_what_is_given_out_cannot_be_written_to():
    all_k, _ = KVCache().append(np.ones((1, 2, 3)), np.ones((1, 2, 3)))
    with pytest.raises(ValueError, match="read-only"):
        all_k[0] = 5


def test_what_is_given_in_may_change_afterwards():
    k = np.ones((1, 2, 3))
    all_k, _ = KVCache().append(k, k)
    k[:] = 7
    assert (all_k == 1).all()


def test_room_is_doubled_so_that_many_tokens_cost_few_copies():
    cache, rooms = KVCache(), set()
    for _ in range(1000):
        all_k, _ = cache.append(np.ones((1, 1, 2)), np.ones((1, 1, 2)))
        rooms.add(all_k.base.shape[-2])
    assert len(rooms) <= 11
    assert max(rooms) < 2100


def test_a_cache_says_what_it_holds():
    cache = KVCache(8)
    assert (len(cache), cache.nbytes, repr(cache)) == (0, 0, "KVCache(empty)")
    cache.append(np.ones((4, 2, 3), np.float32), np.ones((4, 2, 3), np.float32))
    assert repr(cache) == "KVCache(2 tokens, 192 bytes)"


FIRST = np.ones((2, 3, 4))


@pytest.mark.parametrize(
    ("k", "v", "error", "message"),
    [
        (FIRST[:1], FIRST, ValueError, r"k has shape \(1, 3, 4\) and v has"),
        (FIRST[..., :2], FIRST, ValueError, r"k has .* must have \(2, 3, 4\)"),
        (FIRST, FIRST[..., :2], ValueError, r"v has .* must have \(2, 3, 4\)"),
        (FIRST[:1], FIRST[:1], ValueError, r"k has shape \(1, 3, 4\); after what"),
        (FIRST[0, 0], FIRST[0, 0], ValueError, r"k has shape \(4,\).*2 axes"),
        (FIRST.astype("f4"), FIRST, TypeError, "v has dtype float64"),
        (FIRST.astype("f4"), FIRST.astype("f4"), TypeError, "remembered has float64"),
        (FIRST.astype(int), FIRST, TypeError, "k must hold floating-point"),
        (FIRST.tolist(), FIRST, TypeError, "k must be a NumPy array"),
        (np.ones((2, 6, 4)), np.ones((2, 6, 4)), ValueError, "capacity 8 only 5"),
    ],
)
def test_what_does_not_go_with_the_cache_is_refused_and_changes_nothing(
    k, v, error, message
):
    cache = KVCache(8)
    cache.append(FIRST, FIRST)
    with pytest.raises(error, match=message):
        cache.append(k, v)
    assert len(cache) == 3
    assert np.array_equal(cache.append(FIRST, FIRST)[0][:, :3], FIRST)


@pytest.mark.parametrize(
    ("capacity", "error"), [(0, ValueError), (1.5, TypeError), ("8", TypeError)]
)
def test_a_capacity_that_is_none_is_refused(capacity, error):
    with pytest.raises(error, match="capacity"):
        KVCache(capacity)


@pytest.mark.parametrize(
    ("name", "array", "error"),
    [
        ("past_k", np.ones((1, 5)), ValueError),
        ("past_k", np.ones((2, 1, 3)), ValueError),
        ("past_k", np.ones(3), ValueError),
        ("past_v", np.ones((1, 3)), ValueError),
        ("past_v", np.ones((1, 4), np.float32), TypeError),
        ("past_k", None, TypeError),
        ("q", np.ones((1, 3)), ValueError),
    ],
)
def test_attention_with_a_past_refuses_what_does_not_fit(name, array, error):
    arguments = {
        "q": np.ones((2, 3)),
        "k": np.ones((2, 3)),
        "v": np.ones((2, 4)),
        "past_k": np.ones((1, 3)),
        "past_v": np.ones((1, 4)),
    }
    attend_with_past(**arguments)
    with pytest.raises(error, match=name):
        attend_with_past(**{**arguments, name: array})


def test_without_a_past_it_is_causal_attention():
    q, k, v = some((3, 2)), some((3, 2), 1), some((3, 4), 2)
    none = np.zeros((0, 2)), np.zeros((0, 4))
    expected = ops.scaled_dot_product_attention(q, k, v, ops.causal_mask(3))
    assert np.array_equal(attend_with_past(q, k, v, *none), expected)


def test_the_annotated_shapes_hold_and_are_looked_at():
    code = """
import numpy as np
from jaxtyping import TypeCheckError, install_import_hook
with install_import_hook("attnbook", "beartype.beartype"):
    from attnbook import model, ops
for T, S in ((1, 1), (2, 5), (4, 2)):
    ops.causal_mask(T, S), ops.sliding_window_mask(T, 2, S)
ops.causal_mask(3), ops.padding_mask([2, 0], 3), ops.padding_mask(np.array([1]), 4)
for batch in ((), (2,), (2, 3)):
    q, k, v, past_k, past_v = (
        np.ones((*batch, *s), np.float32)
        for s in ((2, 3), (2, 3), (2, 4), (5, 3), (5, 4))
    )
    model.attend_with_past(q, k, v, past_k, past_v)
    cache = model.KVCache()
    cache.append(past_k, past_v), cache.append(k, v)
try:
    model.attend_with_past(q, k[..., :1, :], v, past_k, past_v)
except TypeCheckError:
    print("all hold, and the hook bites")
"""
    assert python(code) == "all hold, and the hook bites"
