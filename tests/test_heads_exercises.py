"""What the exercises on heads say is right is what one measures."""

import numpy as np
import pytest

from attnbook import cost, ops
from attnbook.exercises import EXERCISES, check


@pytest.fixture(autouse=True)
def _no_work(monkeypatch):
    monkeypatch.setenv("ATTNBOOK_WORK", "off")


def test_predictions_are_what_one_measures():
    wide = cost.attention_flops(5, 5, 28, 256)
    assert wide == 2 * cost.attention_flops(5, 5, 1, 3584)
    assert EXERCISES["cut_into_heads"].answer == "c"

    rng = np.random.default_rng(0)
    k, q = rng.standard_normal((3, 5, 3)), rng.standard_normal((9, 4, 3))
    right = ops.attention_weights(q, ops.repeat_kv(k, 3))
    wrong = ops.attention_weights(q, np.tile(k, (3, 1, 1)))
    differing = np.abs(right - wrong).max(axis=(1, 2)) > 1e-9
    assert differing.sum() == EXERCISES["heads_tiled"].answer
    assert np.flatnonzero(~differing).tolist() == [0, 4, 8]

    answers = np.arange(12).reshape(3, 2, 2)
    second = np.concatenate([answers[1, 1], answers[2, 0], answers[2, 1]])
    assert answers.reshape(2, 6)[1].tolist() == second.tolist()
    assert EXERCISES["merged_unturned"].answer == "b"


def test_a_mask_lined_up_with_the_groups_is_an_error_unless_there_are_as_many():
    wrong = EXERCISES["multi_head_attention"].wrong_versions("mask_over_groups")[0]
    rng = np.random.default_rng(5)
    w_q, w_o = rng.normal(size=(6, 8)), rng.normal(size=(8, 6))
    w_k, w_v = rng.normal(size=(2, 6, 4))
    right = ops.multi_head_attention
    for B in (2, 3):
        x = rng.normal(size=(B, 3, 6))
        allow = ops.padding_mask([1, 2, 3][:B], 3)
        arguments = (x, w_q, w_k, w_v, w_o, 4, 2)
        if B == 2:  # as many sentences as groups
            assert not np.allclose(wrong(*arguments, allow), right(*arguments, allow))
        else:
            with pytest.raises(ValueError, match="broadcast"):
                wrong(*arguments, allow)


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
