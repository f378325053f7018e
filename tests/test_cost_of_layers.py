"""The arithmetic and the bytes of whole layers, against counters and real arrays."""

import numpy as np
import pytest

from attnbook import cost, ops


class Counted(np.ndarray):
    """An array whose matrix products are counted, two FLOPs a multiply–add."""

    flops = 0

    def __matmul__(self, other):
        Counted.flops += 2 * self.size * other.shape[-1]
        return np.asarray(self) @ np.asarray(other)


def test_feed_forward_flops_are_those_of_its_products():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((5, 6)).view(Counted)
    matrices = [rng.standard_normal((6, 16)) for _ in range(2)]
    Counted.flops = 0
    gate, up = x @ matrices[0], x @ matrices[1]
    (gate * up).view(Counted) @ rng.standard_normal((16, 6))
    assert Counted.flops == cost.feed_forward_flops(5, 6, 16, 3)
    assert cost.feed_forward_flops(5, 6, 16) * 3 == Counted.flops * 2


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_weights_bytes_are_those_of_a_real_array(dtype):
    rng = np.random.default_rng(1)
    q = rng.standard_normal((3, 7, 4)).astype(dtype)
    k = rng.standard_normal((3, 9, 4)).astype(dtype)
    weights = ops.attention_weights(q, k)
    size = np.dtype(dtype).itemsize
    assert cost.weights_bytes(7, 9, heads=3, bytes_per_number=size) == weights.nbytes


@pytest.mark.parametrize("name", cost.CONFIGS)
def test_attention_overtakes_the_rest_where_it_says(name):
    config = cost.CONFIGS[name]
    rest = config.projection_flops(1) + config.feed_forward_flops(1)
    level = config.level_keys()
    assert config.attention_flops(1, level) > rest
    assert config.attention_flops(1, level - 1) <= rest


def test_wrong_counts_are_refused():
    with pytest.raises(ValueError, match="ffn_width is -1"):
        cost.feed_forward_flops(1, 2, -1)
    with pytest.raises(TypeError, match="heads must be a whole number"):
        cost.weights_bytes(1, 2, heads=1.5)
    with pytest.raises(ValueError, match="head_width is 0; it must be at least 1"):
        cost.level_keys(8, 2, 1, head_width=0, ffn_width=16)
