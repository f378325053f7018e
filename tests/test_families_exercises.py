"""What the exercises on families say is right is what one measures."""

import numpy as np
import pytest

from attnbook import ops
from attnbook.exercises import EXERCISES, check


@pytest.fixture(autouse=True)
def _no_work(monkeypatch):
    monkeypatch.setenv("ATTNBOOK_WORK", "off")


def test_predictions_are_what_one_measures():
    text = np.arange(200)
    decoder, encoder = text[1:].size, round(0.15 * text.size)
    assert EXERCISES["count_signals"].answer == decoder - encoder
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, 5, 3))
    weights = ops.attention_weights(q, k, ops.causal_mask(5))
    assert weights[0].tolist() == [1, 0, 0, 0, 0]
    assert EXERCISES["triangle_across"].answer == "b"


def test_a_triangle_is_named_though_the_given_mask_is_used_too():
    def cross_attention(
        x, memory, w_q, w_k, w_v, w_o, heads, kv_heads=None, allow=None
    ):
        triangle = ops.causal_mask(x.shape[-2], memory.shape[-2])
        allow = triangle if allow is None else triangle & allow
        arguments = (x, memory, w_q, w_k, w_v, w_o, heads, kv_heads, allow)
        return ops.cross_attention(*arguments)

    assert check("cross_attention", cross_attention).mistake == "causal"
