"""The hand-written gradients are right, and the small trainings learn what they say."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from attnbook import train
from attnbook.ops import softmax

ROOT = Path(__file__).parents[1]
DATA = ROOT / "attnbook" / "data"
sys.path.insert(0, str(ROOT / "tools"))

import record_experiments  # noqa: E402 (after the path of tools)


def slope(function, array, index, step=1e-6):
    """The derivative of a number with respect to one entry, by nudging it."""
    kept = array[index]
    array[index] = kept + step
    up = function()
    array[index] = kept - step
    down = function()
    array[index] = kept
    return (up - down) / (2 * step)


def assert_gradient(function, array, grad, entries=None):
    """Hold ``grad`` of the number ``function()`` in ``array`` to finite differences."""
    everywhere = list(np.ndindex(array.shape))
    for index in everywhere if entries is None else entries:
        assert np.isclose(grad[index], slope(function, array, index), atol=1e-7), index


def test_the_gradient_of_unit_rms():
    rng = np.random.default_rng(0)
    x, into = rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 3, 4))
    grad = train.unit_rms_backward(x, into)
    assert_gradient(lambda: (into * train.unit_rms(x)).sum(), x, grad)


def test_the_gradient_of_softmax():
    rng = np.random.default_rng(1)
    x, into = rng.standard_normal((3, 5)), rng.standard_normal((3, 5))
    grad = train.softmax_backward(softmax(x), into)
    assert_gradient(lambda: (into * softmax(x)).sum(), x, grad)


def test_the_gradient_of_cross_entropy():
    rng = np.random.default_rng(2)
    logits, targets = rng.standard_normal((4, 6)), rng.integers(6, size=4)
    _, grad = train.cross_entropy(logits, targets)
    assert_gradient(lambda: train.cross_entropy(logits, targets)[0], logits, grad)


def test_cross_entropy_by_hand():
    loss, _ = train.cross_entropy(np.log([[1.0, 3.0]]), np.array([0]))
    assert np.isclose(loss, np.log(4))
    loss, _ = train.cross_entropy(np.array([[0.0, 1e4]]), np.array([0]))
    assert np.isfinite(loss)


def test_adam_s_first_step_has_the_size_of_the_rate():
    parameters = {"a": np.array([1.0, -2.0])}
    train.Adam(parameters).step(parameters, {"a": np.array([5.0, -0.01])}, 0.1)
    assert np.allclose(parameters["a"], [0.9, -1.9])


def test_adam_finds_the_bottom_of_a_bowl():
    parameters = {"a": np.array([3.0, -2.0])}
    adam = train.Adam(parameters)
    for _ in range(2000):
        adam.step(parameters, {"a": 2 * (parameters["a"] - 1)}, 0.01)
    assert np.allclose(parameters["a"], 1, atol=1e-3)


def test_the_rate_rises_and_falls():
    rates = [train.warm_up_and_cosine(step, 600, 1.0) for step in range(1, 601)]
    assert np.argmax(rates) == 29
    assert rates[0] < 0.04
    assert np.isclose(rates[-1], 0.1)


# The pronoun.


@pytest.fixture(scope="module")
def grammar():
    return train.PronounGrammar(np.random.default_rng(0))


def test_the_reason_alone_decides(grammar):
    for reason in grammar.giver + grammar.receiver:
        words = grammar.sentence("Ming", "Gang", reason, action=1, opening=3)
        batch = grammar.batch([words])
        meant = "Gang" if reason in grammar.receiver else "Ming"
        assert grammar.vocabulary[batch.answers[0]] == meant
        assert words[batch.pronoun[0]] == "he"
        assert words[batch.reason[0]] == reason
        assert words[batch.first[0]] == "Ming"
        assert words[batch.second[0]] == "Gang"


def test_unseen_names_are_not_known(grammar):
    assert not set(grammar.known) & set(grammar.unseen)
    batch = grammar.draw(np.random.default_rng(1), 200, grammar.known)
    seen = {grammar.vocabulary[i] for i in batch.words.ravel()}
    assert not seen & set(grammar.unseen)


@pytest.mark.parametrize("looks", [1, 2, 3])
def test_the_gradient_of_the_reader(grammar, looks):
    reader = train.PronounReader(grammar, np.random.default_rng(3), looks, d=6)
    batch = grammar.draw(np.random.default_rng(4), 5, grammar.known)
    _, grads = reader.loss(batch)
    assert set(grads) == set(reader.parameters)
    rng = np.random.default_rng(5)
    for name, value in reader.parameters.items():
        entries = [tuple(rng.integers(value.shape)) for _ in range(8)]
        assert_gradient(lambda: reader.loss(batch)[0], value, grads[name], entries)
        assert np.abs(grads[name]).max() > 0, name


def test_a_training_repeats_to_the_last_bit():
    one, two = (train.train_pronoun_reader(seed=5, steps=20)[2] for _ in range(2))
    assert one == two


def test_names_are_never_trained():
    _, reader, _ = train.train_pronoun_reader(seed=0, steps=5)
    grammar = train.PronounGrammar(np.random.default_rng(0))
    fresh = train.PronounReader(grammar, np.random.default_rng(100))
    assert np.array_equal(reader.names, fresh.names)
    assert not np.array_equal(reader.parameters["words"], fresh.parameters["words"])


@pytest.mark.parametrize("looks", [1, 2])
def test_the_recorded_trainings_can_be_repeated(looks):
    recorded = json.loads((DATA / "pronoun_looks.json").read_text("utf-8"))
    run = next(r for r in recorded["runs"] if r["looks"] == looks)
    again = record_experiments.pronoun_run(run["seed"], looks)
    # Training amplifies the last bits in which machines differ.
    assert abs(again["right"] - run["right"]) < 0.03


@pytest.mark.parametrize("name", ["attention_times", "local_times", "stream_times"])
def test_recorded_times_cover_what_they_say(name):
    recorded = json.loads((DATA / f"{name}.json").read_text("utf-8"))
    assert recorded["threads"] == 1
    for run in recorded["runs"]:
        assert all(seconds > 0 for seconds in run["seconds"].values())


@pytest.mark.parametrize("places", [5, 24])
def test_the_ways_that_are_timed_find_the_same(places):
    signal = np.random.default_rng(0).standard_normal(places, np.float32)
    pattern = np.array([-1, 0.5, 2], np.float32)
    looks = record_experiments.neighbour_looks(places, 3)
    padded = np.concatenate([[0], signal, [0]])
    expected = sum(pattern[j] * padded[j : j + places] for j in range(3))
    for found in (
        record_experiments.by_sliding(signal, pattern),
        record_experiments.by_heads(signal, pattern, looks),
        record_experiments.by_windows(signal, pattern),
    ):
        assert found.dtype == np.float32
        assert np.allclose(found, expected, atol=1e-6)
