"""Who sees whom in the three families, and cross-attention by itself."""

import subprocess
import sys

import numpy as np
import pytest
from test_ops_oracle import onnx_attention

from attnbook import ops
from attnbook.model import DecoderOnly, EncoderDecoder, EncoderOnly

KINDS = [
    {},
    {"layer_norm": True, "kv_heads": 1},
    {"gated": True, "rope_base": 10_000.0, "kv_heads": 2},
]


def build(family, dtype=np.float64, **kind):
    rng = np.random.default_rng(0)
    options = {"width": 16, "layers": 2, "heads": 4, "dtype": dtype, **kind}
    return family.random(rng, vocabulary=11, length=9, **options)


def some_ids(*shape, seed=1):
    return np.random.default_rng(seed).integers(11, size=shape)


def who_moves(function, ids):
    """Row t, column s: does the output at t move if token s does?"""
    before = function(ids)
    moves = np.zeros((before.shape[-2], ids.shape[-1]), bool)
    for s in range(ids.shape[-1]):
        other = ids.copy()
        other[..., s] = (ids[..., s] + 1) % 11
        moves[:, s] = (function(other) != before).any(axis=(0, -1))
    return moves


# Cross-attention.


def weights_of(rng, D, heads, kv_heads, d):
    shapes = [(D, heads * d), (D, kv_heads * d), (D, kv_heads * d), (heads * d, D)]
    return [rng.standard_normal(shape) for shape in shapes]


@pytest.mark.parametrize(("heads", "kv_heads"), [(1, 1), (4, 2), (4, 1)])
def test_cross_attention_by_loops(heads, kv_heads):
    rng = np.random.default_rng(0)
    D, d = 6, 3
    x, memory = rng.standard_normal((3, D)), rng.standard_normal((5, D))
    w_q, w_k, w_v, w_o = weights_of(rng, D, heads, kv_heads, d)
    expected = np.zeros((3, D))
    for t in range(3):
        brought = []
        for h in range(heads):
            own = slice(h * d, (h + 1) * d)
            g = h // (heads // kv_heads)
            theirs = slice(g * d, (g + 1) * d)
            q = x[t] @ w_q[:, own]
            scores = [q @ (m @ w_k[:, theirs]) / np.sqrt(d) for m in memory]
            exps = np.exp(scores) / np.exp(scores).sum()
            brought.append(
                sum(e * (m @ w_v[:, theirs]) for e, m in zip(exps, memory, strict=True))
            )
        expected[t] = np.concatenate(brought) @ w_o
    out = ops.cross_attention(x, memory, w_q, w_k, w_v, w_o, heads, kv_heads)
    assert np.allclose(out, expected, atol=1e-12)


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
def test_cross_attention_equals_the_onnx_operator(kv_heads):
    rng = np.random.default_rng(4)
    x, memory = rng.standard_normal((2, 3, 8)), rng.standard_normal((2, 5, 8))
    w_q, w_k, w_v, w_o = weights_of(rng, 8, 4, kv_heads, 2)
    padding = ops.padding_mask([5, 3], 5)
    q = ops.split_heads(x @ w_q, 4)
    k, v = (ops.split_heads(memory @ w, kv_heads) for w in (w_k, w_v))
    mask = np.broadcast_to(padding, (2, 4, 3, 5)).copy()
    theirs = ops.merge_heads(onnx_attention(q, k, v, mask, None)) @ w_o
    ours = ops.cross_attention(x, memory, w_q, w_k, w_v, w_o, 4, kv_heads, padding)
    assert np.allclose(ours, theirs, atol=1e-12)


def test_looking_at_oneself_is_multi_head_attention():
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((2, 5, 8)), weights_of(rng, 8, 4, 2, 2)
    one = ops.cross_attention(x, x, *w, 4, 2, ops.causal_mask(5))
    assert np.array_equal(
        one, ops.multi_head_attention(x, *w, 4, 2, ops.causal_mask(5))
    )


def test_the_order_of_the_memory_does_not_matter_and_hidden_memory_neither():
    rng = np.random.default_rng(2)
    x, memory = rng.standard_normal((2, 3, 8)), rng.standard_normal((2, 6, 8))
    w = weights_of(rng, 8, 2, 2, 4)
    out = ops.cross_attention(x, memory, *w, 2)
    assert np.allclose(ops.cross_attention(x, memory[:, ::-1], *w, 2), out)
    hidden = ops.padding_mask([4, 4], 6)
    cut = ops.cross_attention(x, memory[:, :4], *w, 2)
    assert np.allclose(ops.cross_attention(x, memory, *w, 2, allow=hidden), cut)


def test_one_memory_may_serve_a_batch_and_dtype_is_kept():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((3, 2, 4)).astype(np.float32)
    memory = rng.standard_normal((5, 4)).astype(np.float32)
    w = [m.astype(np.float32) for m in weights_of(rng, 4, 2, 1, 2)]
    out = ops.cross_attention(x, memory, *w, 2, 1)
    assert out.dtype == np.float32
    assert np.allclose(out[1], ops.cross_attention(x[1], memory, *w, 2, 1), atol=1e-6)


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"memory": np.ones((5, 3))}, ValueError, "memory has shape"),
        ({"memory": np.ones((5, 4), np.float32)}, TypeError, "memory has dtype"),
        ({"memory": np.ones((5, 4), int)}, TypeError, "memory must hold"),
        ({"memory": np.ones(4)}, ValueError, "memory has shape"),
        ({"memory": np.ones((3, 5, 4))}, ValueError, "leading axes of x"),
        ({"w_k": np.ones((4, 3))}, ValueError, "w_k has shape"),
        ({"allow": np.ones((2, 2), bool)}, ValueError, "allow has shape"),
    ],
)
def test_cross_attention_names_what_is_wrong(change, error, says):
    w = dict.fromkeys(("w_q", "w_k", "w_v", "w_o"), np.ones((4, 4)))
    arguments = {"x": np.ones((2, 2, 4)), "memory": np.ones((5, 4)), **w, "heads": 2}
    ops.cross_attention(**arguments)
    with pytest.raises(error, match=says):
        ops.cross_attention(**arguments | change)


# The families.


@pytest.mark.parametrize("kind", KINDS)
def test_a_decoder_sees_no_bit_of_the_future(kind):
    model = build(DecoderOnly, **kind)
    assert np.array_equal(who_moves(model.logits, some_ids(2, 7)), ops.causal_mask(7))


@pytest.mark.parametrize("kind", KINDS)
def test_an_encoder_sees_both_sides(kind):
    assert who_moves(build(EncoderOnly, **kind).logits, some_ids(2, 7)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_an_encoder_decoder_sees_the_source_and_its_own_past(kind):
    model = build(EncoderDecoder, **kind)
    source, target = some_ids(2, 5), some_ids(2, 4, seed=2)
    assert who_moves(lambda ids: model.logits(ids, target), source).all()
    own = who_moves(lambda ids: model.logits(source, ids), target)
    assert np.array_equal(own, ops.causal_mask(4))
    memory = model.encode(source)
    assert who_moves(lambda ids: model.encode(ids), source).all()
    assert np.array_equal(model.decode(target, memory), model.logits(source, target))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chunks", [[2, 2, 1], [1, 1, 1, 1, 1], [5]])
def test_with_a_cache_as_without(kind, chunks):
    decoder, both = build(DecoderOnly, **kind), build(EncoderDecoder, **kind)
    ids, memory = some_ids(2, 5), both.encode(some_ids(2, 6, seed=3))
    for model, whole, piece in (
        (decoder, decoder.logits(ids), decoder.logits),
        (
            both,
            both.decode(ids, memory),
            lambda new, caches: both.decode(new, memory, caches=caches),
        ),
    ):
        caches, start, parts = model.new_caches(), 0, []
        for size in chunks:
            parts.append(piece(ids[:, start : start + size], caches=caches))
            start += size
        assert [len(cache) for cache in caches] == [5, 5]
        assert np.allclose(np.concatenate(parts, axis=1), whole, atol=1e-12)


def test_padding_changes_nothing():
    encoder, both = build(EncoderOnly), build(EncoderDecoder)
    ids, target = some_ids(2, 6), some_ids(2, 3)
    padded = encoder.logits(ids, lengths=[4, 6])
    assert np.allclose(padded[0, :4], encoder.logits(ids[0, :4]))
    assert np.allclose(padded[1], encoder.logits(ids[1]))
    padded = both.logits(ids, target, lengths=[4, 6])
    assert np.allclose(padded[0], both.logits(ids[0, :4], target[0]))


@pytest.mark.parametrize("kind", KINDS)
def test_attention_shows_who_looked_at_whom(kind):
    ids, target = some_ids(2, 6), some_ids(2, 3)
    seen = build(EncoderDecoder, **kind).attention(ids, target)
    shapes = {"encoder": (6, 6), "decoder": (3, 3), "cross": (3, 6)}
    for name, last in shapes.items():
        assert [w.shape for w in seen[name]] == [(2, 4, *last)] * 2
        assert all(np.allclose(w.sum(axis=-1), 1) for w in seen[name])
    for weights in build(DecoderOnly, **kind).attention(ids):
        assert (weights[..., ~ops.causal_mask(6)] == 0).all()
    for weights in build(EncoderOnly, **kind).attention(ids):
        assert (weights > 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_dtype_is_that_of_the_parameters(dtype):
    ids = some_ids(3)
    for kind in KINDS:
        assert build(EncoderOnly, dtype, **kind).logits(ids).dtype == dtype
        assert build(DecoderOnly, dtype, **kind).logits(ids).dtype == dtype
        assert build(EncoderDecoder, dtype, **kind).logits(ids, ids).dtype == dtype


def test_a_decoder_by_hand():
    model = build(DecoderOnly, layers=1)
    p, ids = model.parameters, some_ids(4)
    x = p["tokens"][ids] + p["positions"][:4]
    w = [p[f"decoder.0.attention.w_{m}"] for m in "qkvo"]
    x = x + ops.multi_head_attention(
        ops.rms_norm(x, p["decoder.0.attention.gain"]), *w, 4, None, ops.causal_mask(4)
    )
    names = ("w_in", "b_in", "w_out", "b_out")
    w = [p[f"decoder.0.feed_forward.{name}"] for name in names]
    x = x + ops.feed_forward(ops.rms_norm(x, p["decoder.0.feed_forward.gain"]), *w)
    out = ops.rms_norm(x, p["decoder.norm.gain"]) @ p["unembedding"]
    assert np.allclose(model.logits(ids), out, atol=1e-12)
    tied = {name: array for name, array in p.items() if name != "unembedding"}
    out = ops.rms_norm(x, p["decoder.norm.gain"]) @ p["tokens"].T
    assert np.allclose(DecoderOnly(tied, heads=4).logits(ids), out, atol=1e-12)


def test_functions_can_be_replaced():
    called = []

    def noted(name):
        def function(*arguments, **named):
            called.append(name)
            return getattr(ops, name)(*arguments, **named)

        return function

    names = ("causal_mask", "cross_attention", "rms_norm", "repeat_kv", "feed_forward")
    model = build(EncoderDecoder, **{name: noted(name) for name in names})
    model.logits(some_ids(3), some_ids(2))
    assert set(called) == set(names)
    with pytest.raises(TypeError, match="softmax cannot be replaced"):
        build(EncoderDecoder, softmax=ops.softmax)


@pytest.mark.parametrize(
    ("ids", "error", "says"),
    [
        ([0.5], TypeError, "ids must be whole numbers"),
        ([11], ValueError, "from 0 to 10"),
        ([-1], ValueError, "from 0 to 10"),
        ([0] * 10, ValueError, "positions for 9 tokens"),
    ],
)
def test_tokens_that_do_not_exist_are_refused(ids, error, says):
    with pytest.raises(error, match=says):
        build(DecoderOnly).logits(np.array(ids))


def test_what_a_family_refuses():
    model = build(DecoderOnly)
    with pytest.raises(ValueError, match="caches has 1 entries"):
        model.logits(some_ids(2), model.new_caches()[:1])
    caches = model.new_caches()
    model.logits(some_ids(8), caches)
    with pytest.raises(ValueError, match="reaches position 10"):
        model.logits(some_ids(2), caches)
    for name in ("tokens", "positions", "decoder.norm.gain"):
        less = {n: p for n, p in model.parameters.items() if n != name}
        with pytest.raises(ValueError, match=name):
            DecoderOnly(less, heads=4)
    with pytest.raises(ValueError, match="must divide width"):
        build(DecoderOnly, heads=3)


def test_the_annotated_shapes_hold():
    code = """
import subprocess
import sys

import numpy as np
from jaxtyping import TypeCheckError, install_import_hook
with install_import_hook("attnbook", "beartype.beartype"):
    from attnbook import model, ops
ids, rng = np.arange(6).reshape(2, 3), np.random.default_rng(0)
decoder = model.DecoderOnly.random(rng, 6, 3)
decoder.logits(ids, decoder.new_caches()), decoder.attention(ids[0])
encoder = model.EncoderOnly.random(rng, 6, 3, dtype=np.float32)
encoder.logits(ids, [3, 2]), encoder.vectors(ids), encoder.attention(ids)
both = model.EncoderDecoder.random(rng, 6, 3, layer_norm=True, gated=True)
both.logits(ids, ids[:, :2], [1, 3]), both.attention(ids, ids)
w = dict.fromkeys(("w_q", "w_k", "w_v", "w_o"), np.ones((4, 4)))
ops.cross_attention(np.ones((2, 3, 4)), np.ones((5, 4)), **w, heads=2)
try:
    ops.cross_attention(np.ones((3, 4)), np.ones((5, 3)), **w, heads=2)
except TypeCheckError:
    print("all hold, and the hook bites")
"""
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.stdout.strip() == "all hold, and the hook bites", run.stderr
