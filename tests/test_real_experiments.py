"""What is recorded of the two published models is what they do."""

import itertools
import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

import real_models

from attnbook import train

DATA = Path(__file__).parents[1] / "attnbook" / "data"


@pytest.fixture(autouse=True)
def one_thread():
    """Do as the recorder does."""
    with train.one_thread():
        yield


def record(name):
    return json.loads((DATA / f"{name}.json").read_text("utf-8"))


# ---- chance ----


def test_sign_flips_are_those_of_all_patterns():
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((6, 4)) + np.array([0, 1, 0, 0.3])
    units = scores / np.sqrt((scores**2).sum(axis=0))
    most = [
        (np.array(signs) @ units).max()
        for signs in itertools.product((1, -1), repeat=6)
    ]
    expected = [(np.array(most) >= x - 1e-9).mean() for x in units.sum(axis=0)]
    np.testing.assert_allclose(real_models.sign_flips(scores), expected)


def test_sign_flips_find_what_is_there_and_nothing_else():
    rng = np.random.default_rng(1)
    low = 0
    for _ in range(60):
        p = real_models.sign_flips(rng.standard_normal((8, 20)))
        low += p.min() < 0.1
    assert 0 < low < 15  # about a tenth, though twenty heads were tried each time
    scores = rng.standard_normal((10, 50))
    scores[:, 7] += 3
    p = real_models.sign_flips(scores)
    assert p.argmin() == 7
    assert p[7] < 0.01
    assert real_models.sign_flips(np.zeros((4, 3))).tolist() == [1, 1, 1]


def test_a_liking_for_a_place_or_a_word_cancels():
    rng = np.random.default_rng(2)
    weights = np.zeros((8, 4, 2, 1, 2))
    # Head 0 always likes one noun: right in one reading, wrong in the other.
    for reading in range(4):
        weights[:, reading, reading % 2, 0, 0] = 0.9
    weights[..., 1] = rng.random((8, 4, 2, 1)) * 0.01
    test = real_models.heads_test(weights)
    heads = {head["head"]: head for head in test["best"]}
    assert heads[0]["pairs"] == 0
    assert heads[0]["p"] == 1


def test_the_coin_and_the_labels():
    assert real_models.by_count(3, 3) == pytest.approx(1 / 8)
    assert real_models.by_count(0, 5) == pytest.approx(1)
    apart = np.array([[5.0, 6, 7], [1, 2, 3]])
    assert real_models.groups_apart(apart) == pytest.approx(2 / 20)
    assert real_models.groups_apart(np.ones((2, 3))) == 1


def test_ranks_and_their_correlations():
    assert real_models.ranks(np.array([3.0, 1, 3, 9])).tolist() == [1.5, 0, 1.5, 3]
    a = np.array([1.0, 5, 2, 8])
    assert real_models.spearman(a, a**3) == pytest.approx(1)
    assert real_models.spearman(a, -a) == pytest.approx(-1)
    assert np.isnan(real_models.spearman(a, np.ones(4)))
    rng = np.random.default_rng(0)
    c = rng.standard_normal(4000)
    x, y = c + rng.standard_normal((2, 4000)) / 2
    assert real_models.spearman(x, y) > 0.7
    assert abs(real_models.partial(x, y, c)) < 0.1


def test_rollout_is_a_product_of_half_steps():
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(3), (2, 4, 3))  # (layers, H, T, T)
    one, two = (weights.mean(axis=1) + np.eye(3)) / 2
    flow = real_models.rollout(weights)
    np.testing.assert_allclose(flow, two @ one)
    np.testing.assert_allclose(flow.sum(axis=-1), 1)


# ---- the records ----


@pytest.mark.parametrize("name", ["minilm", "smollm2"])
def test_heads_that_follow_gender_do(name):
    held = record("real_pronouns")[name]["gender"]
    best = held["best"][0]
    assert best["pairs"] == held["pairs"] == 24
    assert best["p"] < 0.001
    again = real_models.looks(
        real_models.Reader(name), real_models.gendered()[:1], "pronoun"
    )
    here = again[0, :, :, best["layer"], best["head"]]
    np.testing.assert_allclose(here, held["weights"][:4], atol=2e-4)
    margins = np.diff(np.array(held["weights"]), axis=1).ravel() < 0
    assert margins.sum() == best["sentences"]


@pytest.mark.parametrize(
    ("name", "asks"), [("minilm", "pronoun"), ("smollm2", "reason"), ("smollm2", "end")]
)
def test_no_head_follows_the_reason(name, asks):
    held = record("real_pronouns")[name][f"reason_from_{asks}"]
    assert held["below_05"] == 0
    assert held["best"][0]["p"] > 0.05
    assert held["again"]["p"] > 0.05
    assert held["again"]["p_count"] > 0.05
    best = held["best"][0]
    reader = real_models.Reader(name)
    again = real_models.looks(reader, real_models.reasoned()[:1], asks)
    here = again[0, :, :, best["layer"], best["head"]]
    np.testing.assert_allclose(here, held["weights"][:4], atol=2e-4)


def test_a_pronoun_cannot_know_what_comes_after_it():
    writer = real_models.Reader("smollm2")
    blocks = real_models.reasoned()[:1]
    weights = real_models.looks(writer, blocks, "pronoun")[0]
    assert np.array_equal(weights[0], weights[1, ::-1])
    assert np.array_equal(weights[2], weights[3, ::-1])
    held = record("real_pronouns")["smollm2"]
    assert held["before_the_reason"]["largest_difference"] == 0
    assert held["behaviour"]["p"] > 0.05


def test_apple_moves_as_recorded():
    held = record("real_apple")
    assert [list(pair) for pair in real_models.APPLE] == held["sentences"]
    assert all(food == company for food, company in held["places"])
    reader = real_models.Reader("minilm")
    keys = held["keys"][0]
    near = real_models.apple_cosines(reader, tuple(keys["words"]))
    apart = near[..., 0] - near[..., 1]
    for n, layer in enumerate(keys["layers"]):
        np.testing.assert_allclose(apart[:, :, n], layer["each"], atol=6e-4)
        mean = apart[:, :, n].mean(axis=1)
        assert layer["separation"] == pytest.approx(mean[0] - mean[1], abs=2e-4)
    for keys in held["keys"]:
        # Before the first layer a vector is its word and its place.
        assert keys["layers"][0]["separation"] == 0
        assert all(layer["separation"] > 0.1 for layer in keys["layers"][1:])
        assert all(layer["p"] < 0.01 for layer in keys["layers"][1:])


@pytest.mark.parametrize("part", ["short", "long"])
def test_effects_are_as_recorded(part):
    held = record("real_effects")[part]
    texts = {"short": real_models.BEGINNINGS, "long": real_models.LONGER_BEGINNINGS}
    assert [s["text"] for s in held["sentences"]] == list(texts[part])
    shortest = min(held["sentences"], key=lambda s: len(s["tokens"]))
    again = real_models.effects(shortest["text"])
    for name, value in shortest.items():
        if isinstance(value[0], str):
            assert again[name] == value
        else:
            np.testing.assert_allclose(again[name], value, rtol=2e-2, atol=2e-3)
    summary = real_models.agreement(held["sentences"], False, draws=100)
    for name, column in held["without_first"].items():
        if isinstance(column, dict):
            assert summary[name]["mean"] == pytest.approx(column["mean"], abs=0.01)


def test_the_small_bench_of_effects_is_right_where_it_must_be():
    """A token that nobody may look at and a causal mask are no two things."""
    model = real_models.load_smollm2()
    ids = model.encode("The opposite of hot is")
    blind = np.tril(np.ones((5, 5), bool))
    blind[4, 3] = False
    masked = real_models.load_smollm2(causal_mask=lambda T, S=None: blind)
    answer = int(model.logits(ids)[-1].argmax())
    drop = model.logits(ids)[-1, answer] - masked.logits(ids)[-1, answer]
    held = record("real_effects")["short"]["sentences"][0]
    assert drop == pytest.approx(held["masked"][3], abs=2e-3)
