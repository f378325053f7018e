"""What the exercises on heads say is right is what one measures."""

import numpy as np
import pytest

from attnbook import cost, ops
from attnbook.exercises import EXERCISES, check


@pytest.fixture(autouse=True)
def _no_work(monkeypatch):
    monkeypatch.setenv("ATTNBOOK_WORK", "off")


def test_predictions_are_what_one_measures():
    many = cost.attention_flops(5, 5, 28, 128)
    assert many == cost.attention_flops(5, 5, 1, 3584)
    assert EXERCISES["cut_into_heads"].answer == "b"

    rng = np.random.default_rng(0)
    k, q = rng.standard_normal((2, 5, 3)), rng.standard_normal((6, 4, 3))
    right = ops.attention_weights(q, ops.repeat_kv(k, 3))
    wrong = ops.attention_weights(q, np.tile(k, (3, 1, 1)))
    differing = np.abs(right - wrong).max(axis=(1, 2)) > 1e-9
    assert differing.sum() == EXERCISES["heads_tiled"].answer
    assert np.flatnonzero(differing).tolist() == [1, 4]

    answers = np.arange(12).reshape(2, 3, 2)
    assert answers.reshape(3, 4)[0].tolist() == answers[0, :2].ravel().tolist()
    assert EXERCISES["merged_unturned"].answer == "b"


@pytest.mark.parametrize("number", [int, float, np.int64, np.float64])
def test_a_count_may_be_any_whole_number(number):
    def kv_cache_bytes(tokens, layers, kv_heads, head_width, bytes_per_number=2):
        return number(2 * layers * kv_heads * tokens * head_width * bytes_per_number)

    assert check("kv_cache_bytes", kv_cache_bytes).status == "right"


@pytest.mark.parametrize(
    ("value", "says"),
    [("56", "returns str; it needs to return a whole number"), (None, "returns None"),
     (True, "returns bool"), (0.5, "returns float64"), ([1], "returns list")],
)  # fmt: skip
def test_what_is_no_count_is_told_so(value, says):
    def kv_cache_bytes(tokens, layers, kv_heads, head_width, bytes_per_number=2):
        return value

    verdict = check("kv_cache_bytes", kv_cache_bytes)
    assert verdict.status == "wrong"
    assert says in verdict.message


def test_a_count_off_by_one_is_shown_with_the_smallest_example():
    def kv_cache_bytes(tokens, layers, kv_heads, head_width, bytes_per_number=2):
        return cost.kv_cache_bytes(tokens, layers, kv_heads, head_width) + 1

    verdict = check("kv_cache_bytes", kv_cache_bytes)
    assert (verdict.status, verdict.mistake) == ("wrong", None)
    assert "expected 4" in str(verdict)
    assert "received 5" in str(verdict)
