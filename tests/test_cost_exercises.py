"""What the exercises on cost say is right is what one measures."""

import tracemalloc

import numpy as np
import pytest
from solutions import SOLUTIONS

from attnbook import cost, ops
from attnbook.exercises import EXERCISES, check


@pytest.fixture(autouse=True)
def _no_work(monkeypatch):
    monkeypatch.setenv("ATTNBOOK_WORK", "off")


def forgets_to_shrink(scores):
    """Return the weight of each key where nothing shrinks, (tiles, keys)."""
    level = np.maximum.accumulate(scores.max(axis=-1, keepdims=True))
    exps = np.exp(scores - level)
    return exps / exps.sum()


def test_predictions_are_what_one_measures():
    before = cost.attention_flops(2_000, 2_000, 3, 8)
    after = cost.attention_flops(20_000, 200, 3, 8)
    assert EXERCISES["ten_times_longer"].answer == after / before

    matrices, cache = 14, 2
    read = {texts: matrices + texts * cache for texts in (1, 9)}
    assert EXERCISES["nine_texts"].answer == read[9] / read[1]

    assert EXERCISES["fewer_kv_heads"].answer == "b"
    llama = cost.CONFIGS["Llama 2 70B"]
    assert (llama.heads, llama.kv_heads) == (64, 8)
    full = cost.kv_cache_bytes(5, llama.layers, llama.heads, llama.head_width)
    assert full == 8 * llama.kv_cache_bytes(5)

    assert EXERCISES["forgotten_shrink"].answer == "c"
    rising = np.sort(np.random.default_rng(0).normal(size=20) * 3).reshape(5, 4)
    ratio = forgets_to_shrink(rising) / ops.softmax(rising.ravel()).reshape(5, 4)
    assert np.isclose(forgets_to_shrink(rising).sum(), 1)
    assert (np.diff(ratio[:, 0]) < 0).all()
    assert ratio[0, 0] > 1 > ratio[-1, 0]


# --- memory -----------------------------------------------------------------


def queries_one_by_one(q, k, v, allow=None, scale=None, tile=128):
    out = np.empty((*q.shape[:-1], v.shape[-1]), q.dtype)
    for t in range(q.shape[-2]):
        row = None
        if allow is not None:
            shape = (*q.shape[:-1], k.shape[-2])
            row = np.broadcast_to(allow, shape)[..., t : t + 1, :]
        one = q[..., t : t + 1, :]
        out[..., t : t + 1, :] = ops.scaled_dot_product_attention(one, k, v, row, scale)
    return out


def all_scores_first(q, k, v, allow=None, scale=None, tile=128):
    _ = q @ k.swapaxes(-1, -2)
    return ops.tiled_attention(q, k, v, allow, scale, tile)


def all_weights_in_pieces(q, k, v, allow=None, scale=None, tile=128):
    pieces = []
    for t in range(0, q.shape[-2], tile):
        rows = slice(t, t + tile)
        shape = (*q.shape[:-1], k.shape[-2])
        part = None if allow is None else np.broadcast_to(allow, shape)[..., rows, :]
        pieces.append(ops.attention_weights(q[..., rows, :], k, part, scale))
    return np.concatenate(pieces, axis=-2) @ v


@pytest.mark.parametrize(
    "frugal", [ops.tiled_attention, SOLUTIONS["tiled_attention"], queries_one_by_one]
)
def test_whoever_holds_few_weights_at_once_is_right(frugal):
    assert check("tiled_attention", frugal).status == "right"


@pytest.mark.parametrize("greedy", [all_scores_first, all_weights_in_pieces])
def test_whoever_holds_all_weights_is_told_so(greedy):
    verdict = check("tiled_attention", greedy)
    assert verdict.mistake == "holds_all_weights"
    assert "expected ≤ 512 KiB" in str(verdict)


def test_the_limit_is_far_from_both():
    exercise = EXERCISES["tiled_attention"]
    whole = exercise.LENGTH**2 * 4
    assert whole == 2 * exercise.LIMIT
    assert exercise._peak(SOLUTIONS["tiled_attention"]) < exercise.LIMIT / 4
    assert exercise._peak(ops.tiled_attention) < exercise.LIMIT / 4
    assert exercise._peak(all_scores_first) >= whole


def test_a_trace_that_is_under_way_goes_on():
    tracemalloc.start()
    try:
        assert check("tiled_attention", ops.tiled_attention).status == "right"
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()
    assert check("tiled_attention", ops.tiled_attention).status == "right"
    assert not tracemalloc.is_tracing()
