"""The small model that writes: its gradients, its baselines, and its record."""

import json
import sys
from pathlib import Path

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import grad, value_and_grad

from attnbook import ops, train
from attnbook.model import DecoderOnly
from attnbook.sampling import generate, temperature

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "attnbook" / "data" / "small_writer.json"
sys.path.insert(0, str(ROOT / "tools"))

import record_experiments  # noqa: E402 (after the path of tools)


def small(heads=2):
    """A decoder of float64 with every parameter away from its special first value."""
    rng = np.random.default_rng(3)
    writer = DecoderOnly.random(rng, 9, 6, width=8, layers=2, heads=heads, middle=10)
    for array in writer.parameters.values():
        array += 0.1 * rng.standard_normal(array.shape)
    return writer


@pytest.fixture(scope="module")
def texts():
    text = train.alice()
    letters = train.Letters(text)
    return letters, *train.held_out(letters.encode(text))


# --- gradients, against an independent differentiation ------------------------
#
# The forward pass a second time, from the formulas, in autograd's NumPy. It calls
# nothing of the book's, so an error here and there would have to be the same one.


def unit(x):
    return x / anp.sqrt(anp.mean(x * x, axis=-1, keepdims=True) + 1e-5)


def probabilities(x):
    exps = anp.exp(x - anp.max(x, axis=-1, keepdims=True))
    return exps / anp.sum(exps, axis=-1, keepdims=True)


def bend(x):
    return x / 2 * (1 + anp.tanh(anp.sqrt(2 / anp.pi) * (x + 0.044715 * x**3)))


def by_formula(p, ids, heads):
    n, T = ids.shape
    x = p["tokens"][ids] + p["positions"][:T]
    D = x.shape[-1]
    d = D // heads
    hidden = anp.triu(anp.ones((T, T)), 1) * 1e30

    def cut(a):
        return anp.swapaxes(anp.reshape(a, (n, T, heads, d)), 1, 2)

    for name in ("decoder.0", "decoder.1"):
        w = {k.removeprefix(name + "."): a for k, a in p.items() if k.startswith(name)}
        h = unit(x) * w["attention.gain"]
        q, k, v = (cut(anp.dot(h, w[f"attention.w_{part}"])) for part in "qkv")
        scores = anp.einsum("nhtd,nhsd->nhts", q, k) / anp.sqrt(d) - hidden
        mixed = anp.einsum("nhts,nhsd->nhtd", probabilities(scores), v)
        merged = anp.reshape(anp.swapaxes(mixed, 1, 2), (n, T, D))
        x = x + anp.dot(merged, w["attention.w_o"])
        h = unit(x) * w["feed_forward.gain"]
        middle = bend(anp.dot(h, w["feed_forward.w_in"]) + w["feed_forward.b_in"])
        x = x + anp.dot(middle, w["feed_forward.w_out"]) + w["feed_forward.b_out"]
    return anp.dot(unit(x) * p["decoder.norm.gain"], p["unembedding"])


def loss_by_formula(p, inputs, targets, heads):
    p_next = probabilities(by_formula(p, inputs, heads))
    n, t = np.indices(targets.shape)
    return -anp.mean(anp.log(p_next[n, t, targets]))


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_every_gradient_is_the_one_autograd_finds(heads):
    writer = small(heads)
    ids = np.random.default_rng(4).integers(9, size=30)
    batch = train.pieces(ids, np.array([0, 7, 20]), 6)
    loss, run = train.family_loss(writer, **batch)
    expected, grads = value_and_grad(loss_by_formula)(
        writer.parameters, batch["inputs"], batch["targets"], heads
    )
    assert np.isclose(loss, expected, atol=1e-12)
    assert set(run.grads) == set(grads)
    for name, by_autograd in grads.items():
        assert np.abs(by_autograd).max() > 1e-4, name
        assert np.allclose(run.grads[name], by_autograd, rtol=1e-9, atol=1e-12), name


PIECES = {
    "unit_rms": (unit, train.unit_rms_backward),
    "gelu": (bend, train.gelu_backward),
    "softmax": (
        probabilities,
        lambda x, into: train.softmax_backward(ops.softmax(x), into),
    ),
}


@pytest.mark.parametrize("name", PIECES)
def test_each_piece_goes_back_as_autograd_does(name):
    forward, backward = PIECES[name]
    x, into = np.random.default_rng(5).standard_normal((2, 3, 7))
    by_autograd = grad(lambda x: anp.sum(into * forward(x)))(x)
    assert np.allclose(backward(x, into), by_autograd, atol=1e-12)


def test_cross_entropy_goes_back_as_autograd_does():
    rng = np.random.default_rng(6)
    logits, targets = rng.standard_normal((4, 6)), rng.integers(6, size=4)

    def loss(z):
        return -anp.mean(anp.log(probabilities(z)[np.arange(4), targets]))

    found, by_hand = train.cross_entropy(logits, targets)
    assert np.isclose(found, loss(logits))
    assert np.allclose(by_hand, grad(loss)(logits), atol=1e-12)


def test_the_formula_is_the_model():
    writer = small()
    ids = np.random.default_rng(7).integers(9, size=(2, 5))
    assert np.allclose(by_formula(writer.parameters, ids, 2), writer.logits(ids))


# --- text and baselines -------------------------------------------------------


def test_the_text_is_small_letters_and_few_signs():
    text = train.alice()
    assert set(text) == set("abcdefghijklmnopqrstuvwxyz \n.,;:!?'-")
    assert 130_000 < len(text) < 150_000
    assert "  " not in text
    assert "\n\n" not in text
    assert text.startswith("alice was beginning to get very tired")
    assert text.endswith("and the happy summer days.\n")


def test_letters_come_back():
    letters = train.Letters("the cat\n")
    assert letters.decode(letters.encode("tea cat")) == "tea cat"
    assert len(letters) == 7
    with pytest.raises(ValueError, match="'x', which is not"):
        letters.encode("x")


def test_pieces_ask_for_the_letter_after():
    ids = np.arange(20)
    cut = train.pieces(ids, np.array([0, 15]), 4)
    assert cut["inputs"].tolist() == [[0, 1, 2, 3], [15, 16, 17, 18]]
    assert np.array_equal(cut["targets"], cut["inputs"] + 1)
    assert cut["asked"].all()


def test_a_table_of_counts_by_hand():
    ids = np.array([0, 1, 0, 1, 0, 0])  # four times 0, twice 1
    p = {0: (4 + 2 / 2) / 8, 1: (2 + 2 / 2) / 8}  # two kinds, half each below
    test = np.array([0, 1, 1])
    by_hand = -np.mean(np.log([p[0], p[1], p[1]]))
    assert np.isclose(train.counting_loss(ids, test, 2, 1), by_hand)
    after_0 = {0: (1 + 2 * p[0]) / 5, 1: (2 + 2 * p[1]) / 5}
    after_1 = {0: (2 + p[0]) / 3, 1: p[1] / 3}
    by_hand = -np.mean(np.log([after_0[1], after_1[1]]))
    assert np.isclose(train.counting_loss(ids, test, 2, 2), by_hand)
    assert np.isclose(sum(after_0.values()), 1)
    assert np.isclose(sum(after_1.values()), 1)


def test_counts_of_nothing_are_even():
    ids, test = np.array([0]), np.array([1, 2, 1])
    loss = train.counting_loss(ids, test, 3, 1)
    assert np.isclose(loss, -np.mean(np.log([1 / 6, 1 / 6, 1 / 6])))


def test_the_weight_by_distance_of_a_head_that_looks_one_back():
    weights = np.zeros((2, 2, 10, 10))
    weights[:, 0] = np.eye(10, k=-1)
    weights[:, 1] = np.eye(10)
    found = train.weight_by_distance(weights, 3)
    assert found.tolist() == [[0, 1, 0, 0], [1, 0, 0, 0]]


def test_a_silenced_head_adds_nothing_and_the_others_are_as_they_were():
    writer = small()
    silent = train.without_head(writer, 1, 0)
    changed = [n for n, a in writer.parameters.items() if a is not silent.parameters[n]]
    assert changed == ["decoder.1.attention.w_o"]
    before, after = (m.parameters[changed[0]] for m in (writer, silent))
    assert (after[:4] == 0).all()
    assert np.array_equal(after[4:], before[4:])
    assert before[:4].any()


# --- training and the record --------------------------------------------------


def test_a_training_repeats_to_the_last_bit(texts):
    letters, ids, _ = texts
    one, two = (train.train_writer(1, ids, len(letters), 5)[1] for _ in range(2))
    assert one == two
    assert np.log(len(letters)) < one[0] < 5


def test_the_recorded_training_can_be_repeated(texts):
    letters, ids, test = texts
    record = json.loads(RECORD.read_text("utf-8"))
    run = record["runs"][0]
    writer, losses = train.train_writer(run["seed"], ids, len(letters))
    untrained, _ = train.new_writer(run["seed"], len(letters))
    again = record_experiments.writer_run(
        run["seed"], writer, untrained, ids, test, losses
    )
    # Training amplifies the last bits in which machines differ.
    assert abs(again["test"] - run["test"]) < 0.03
    assert abs(again["learned"] - run["learned"]) < 0.03
    assert np.allclose(again["seen"][2:], run["seen"][2:], atol=0.06)
    assert np.allclose(again["without_layer"], run["without_layer"], atol=0.3)
    for kind in ("random", "held_out"):
        gains = [r["repeating"][kind] for r in (again, run)]
        one, two = (gain["another"] - gain["itself"] for gain in gains)
        assert abs(one - two) < 0.05
    assert abs(again["first"] - run["first"]) < 0.002
    assert np.allclose(again["untrained"], run["untrained"], atol=0.002)
    assert np.abs(np.array(again["heads"]) - run["heads"]).max() < 0.15
    costs = [np.array(r["without"]) - r["test"] for r in (again, run)]
    assert np.abs(costs[0] - costs[1]).max() < 0.25
    assert abs(train.loss_on(train.recorded_writer(), test) - run["test"]) < 0.005


def test_what_is_seen_is_cut_and_the_letters_asked_for_stay(texts):
    *_, test = texts
    writer = train.recorded_writer()
    test = test[:1500]
    starts = np.arange(0, len(test) - 48, 5)
    cut = train.pieces(test, starts, 48)
    targets = cut["targets"][:, -1]
    for n in (1, 5, 48):
        last = writer.logits(cut["inputs"][:, -n:])[:, -1]
        expected = train.cross_entropy(last, targets)[0]
        found = record_experiments.loss_seeing(writer, test, n)
        assert np.isclose(found, expected, atol=1e-5)


def test_a_layer_without_heads_adds_nothing():
    writer = small()
    silent = record_experiments.without_layer(writer, 1)
    changed = [n for n, a in writer.parameters.items() if a is not silent.parameters[n]]
    assert changed == ["decoder.1.attention.w_o"]
    assert not silent.parameters[changed[0]].any()


def test_a_model_that_repeats_is_found_to():
    class Repeats:
        """Expects the letter that stood half a text before, if it can look there."""

        def logits(self, ids):
            expected = np.zeros((*ids.shape, 9))
            rows, t = np.indices(ids.shape)
            half = 24
            ready = t + 1 >= half
            following = ids[rows, np.maximum(t + 1 - half, 0)]
            expected[rows[ready], t[ready], following[ready]] = 9.0
            return expected

    rng = np.random.default_rng(1)
    other, half = rng.integers(9, size=(2, 50, 24))
    itself = record_experiments.loss_on_second(Repeats(), half, half)
    another = record_experiments.loss_on_second(Repeats(), other, half)
    assert itself < 0.01
    assert another > 3


def test_the_record_has_every_seed_and_the_model_s_own_logits(texts):
    letters, *_ = texts
    record = json.loads(RECORD.read_text("utf-8"))
    assert [run["seed"] for run in record["runs"]] == [0, 1, 2, 3, 4]
    assert [run["seed"] for run in record["longer"]["runs"]] == [0, 1, 2]
    assert record["longer"]["steps"] == 4 * 700
    assert record["letters"] == letters.letters
    writer = train.recorded_writer()
    for beginning in record["beginnings"]:
        ids = letters.encode(beginning["text"][-48:])
        assert np.allclose(writer.logits(ids)[-1], beginning["logits"], atol=2e-3)


def test_what_the_recorded_model_writes_hangs_on_no_last_bit(texts):
    letters, *_ = texts
    writer = train.recorded_writer()
    start = letters.encode("alice ")

    def written(noise):
        shake = np.random.default_rng(1)

        def choose(z):
            return temperature(z, 0.8) + noise * shake.standard_normal(z.shape)

        rng = np.random.default_rng(0)
        return generate(writer.logits, start, 100, rng, choose, window=48)

    assert np.array_equal(written(0.0), written(1e-6))
