"""What attention costs: equal to counting each step, and to real arrays."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnbook import cost, ops
from attnbook.cost import CONFIGS

few = st.integers(1, 4)


class Counter:
    """Multiplies matrices one multiply–add at a time, and counts."""

    def __init__(self):
        self.multiply_adds = self.exponentials = 0

    def product(self, a, b):
        out = np.zeros((len(a), b.shape[1]))
        for i, j, m in np.ndindex(*out.shape, a.shape[1]):
            out[i, j] += a[i, m] * b[m, j]
            self.multiply_adds += 1
        return out

    def softmax(self, scores):
        exps = np.zeros_like(scores)
        for i in np.ndindex(*scores.shape):
            exps[i] = math.exp(scores[i] - scores[i[0]].max())
            self.exponentials += 1
        return exps / exps.sum(axis=-1, keepdims=True)


@given(T=few, G=few, group=few, d=few, D=few)
@settings(max_examples=30)
def test_the_formulas_count_what_a_layer_does(T, G, group, d, D):
    H = G * group
    rng = np.random.default_rng(0)
    x = rng.standard_normal((T, D))
    w_q, w_k, w_v, w_o = (
        rng.standard_normal(s) for s in ((D, H * d), (D, G * d), (D, G * d), (H * d, D))
    )
    projecting, looking = Counter(), Counter()
    q, k, v = (projecting.product(x, w) for w in (w_q, w_k, w_v))
    outs = []
    for h in range(H):
        mine, theirs = (slice(i * d, (i + 1) * d) for i in (h, h // group))
        scores = looking.product(q[:, mine], k[:, theirs].T) / d**0.5
        outs.append(looking.product(looking.softmax(scores), v[:, theirs]))
    out = projecting.product(np.concatenate(outs, axis=1), w_o)
    assert np.allclose(out, ops.multi_head_attention(x, w_q, w_k, w_v, w_o, H, G))
    assert cost.attention_flops(T, T, H, d) == 2 * looking.multiply_adds
    assert cost.attention_exponentials(T, T, H) == looking.exponentials
    assert cost.projection_flops(T, D, H, G, d) == 2 * projecting.multiply_adds


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@given(S=few, N=few, G=few, d=few)
@settings(max_examples=30)
def test_cache_bytes_are_those_of_real_arrays(dtype, S, N, G, d):
    layers = [[np.zeros((G, S, d), dtype) for _ in "KV"] for _ in range(N)]
    held = sum(array.nbytes for layer in layers for array in layer)
    assert cost.kv_cache_bytes(S, N, G, d, np.dtype(dtype).itemsize) == held


@given(T=few, D=few, words=few)
@settings(max_examples=20)
def test_the_scores_over_the_vocabulary_are_one_product(T, D, words):
    counter = Counter()
    counter.product(np.ones((T, D)), np.ones((D, words)))
    assert cost.vocabulary_flops(T, D, words) == 2 * counter.multiply_adds


@pytest.mark.parametrize("bytes_per_number", [1, 2, 4])
def test_all_matrices_are_read_for_a_token(bytes_per_number):
    config = cost.Config(
        layers=3,
        width=5,
        heads=4,
        kv_heads=2,
        head_width=3,
        ffn_width=7,
        ffn_matrices=3,
        vocabulary=11,
        context=8,
        source="none",
    )
    shapes = [(5, 12), (5, 6), (5, 6), (12, 5), (5, 7), (5, 7), (7, 5)] * 3
    numbers = sum(a * b for a, b in [*shapes, (5, 11)])
    assert config.matrix_bytes(bytes_per_number) == numbers * bytes_per_number


def test_one_reader_moves_more_matrices_than_cache():
    for config in CONFIGS.values():
        assert config.matrix_bytes() > config.kv_cache_bytes(config.context)
    qwen = CONFIGS["Qwen2-7B"]
    assert qwen.matrix_bytes() < 2 * qwen.kv_cache_bytes(qwen.context)


def test_qwen2_keeps_a_seventh_of_what_full_heads_would():
    qwen = CONFIGS["Qwen2-7B"]
    assert qwen.kv_cache_bytes(1) == 56 * 1024
    assert qwen.kv_cache_bytes(131072) == 7 * 2**30
    full = cost.kv_cache_bytes(1, qwen.layers, qwen.heads, qwen.head_width)
    assert full == 7 * qwen.kv_cache_bytes(1)
    assert qwen.group == 7


@pytest.mark.parametrize("name", CONFIGS)
def test_a_configuration_agrees_with_itself_and_its_source_is_listed(name):
    config = CONFIGS[name]
    assert config.heads % config.kv_heads == 0
    assert config.group * config.kv_heads == config.heads
    assert config.ffn_matrices in (2, 3)
    bib = Path(__file__).parents[1] / "book" / "en" / "references.bib"
    assert f"{{{config.source}," in bib.read_text("utf-8")
    flops = config.layers * cost.attention_flops(3, 5, config.heads, config.head_width)
    assert config.attention_flops(3, 5) == flops
    one = cost.projection_flops(
        3, config.width, config.heads, config.kv_heads, config.head_width
    )
    assert config.projection_flops(3) == config.layers * one


def test_the_facts_of_the_two_models_the_book_runs_on():
    qwen, smol = CONFIGS["Qwen2-7B"], CONFIGS["SmolLM2-135M"]
    assert (qwen.layers, qwen.width, qwen.heads, qwen.kv_heads) == (28, 3584, 28, 4)
    assert (smol.layers, smol.width, smol.heads, smol.kv_heads) == (30, 576, 9, 3)
    assert (smol.head_width, smol.ffn_width, smol.vocabulary) == (64, 1536, 49152)
    for config in (qwen, smol):
        assert config.heads * config.head_width == config.width
    gemma = CONFIGS["Gemma 7B"]
    assert gemma.heads * gemma.head_width != gemma.width
    assert CONFIGS["Gemma 2B"].kv_heads == 1


def test_configurations_cannot_be_changed():
    with pytest.raises(AttributeError):
        CONFIGS["Qwen2-7B"].layers = 1
    with pytest.raises(TypeError):
        CONFIGS["mine"] = CONFIGS["Qwen2-7B"]


def test_wrong_arguments_are_refused_by_name():
    with pytest.raises(ValueError, match="heads is -1"):
        cost.attention_flops(1, 1, -1, 1)
    with pytest.raises(TypeError, match="tokens must be a whole number"):
        cost.kv_cache_bytes(1.5, 1, 1, 1)
    with pytest.raises(TypeError, match="layers must be a whole number"):
        cost.kv_cache_bytes(1, True, 1, 1)
    with pytest.raises(ValueError, match="keys is -2"):
        cost.attention_exponentials(1, -2, 1)
    with pytest.raises(TypeError, match="width must be"):
        cost.projection_flops(1, "D", 1, 1, 1)
    with pytest.raises(ValueError, match="vocabulary is -3"):
        cost.vocabulary_flops(1, 1, -3)
    with pytest.raises(TypeError, match="bytes_per_number must be"):
        CONFIGS["Qwen2-7B"].matrix_bytes(2.0)
