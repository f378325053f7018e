"""The three small families: gradients, arithmetic, questions, and a recorded run."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from attnbook import ops, train
from attnbook.model import DecoderOnly, EncoderDecoder, EncoderOnly

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "attnbook" / "data" / "families.json"
sys.path.insert(0, str(ROOT / "tools"))

import record_experiments  # noqa: E402 (after the path of tools)
from test_train import assert_gradient  # noqa: E402 (after the path of tools)

FAMILIES = [EncoderOnly, DecoderOnly, EncoderDecoder]


def small(family):
    """A family of float64 with every parameter away from its special first value."""
    rng = np.random.default_rng(0)
    model = family.random(rng, 7, 5, width=8, layers=2, heads=2, middle=6)
    for array in model.parameters.values():
        array += 0.1 * rng.standard_normal(array.shape)
    return model


def batch_for(family):
    rng = np.random.default_rng(1)
    asked = rng.random((3, 4)) < 0.6
    batch = {
        "inputs": rng.integers(7, size=(3, 4)),
        "asked": asked,
        "targets": rng.integers(7, size=(3, 4)),
    }
    if family is EncoderDecoder:
        batch["source"] = rng.integers(7, size=(3, 5))
    return batch


def logits_of(model, batch):
    if "source" in batch:
        return model.logits(batch["source"], batch["inputs"])
    return model.logits(batch["inputs"])


def test_the_gradient_of_gelu():
    rng = np.random.default_rng(0)
    x, into = 2 * rng.standard_normal((3, 4)), rng.standard_normal((3, 4))
    grad = train.gelu_backward(x, into)
    assert_gradient(lambda: (into * ops.gelu(x)).sum(), x, grad)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_loss_is_that_of_the_model_s_own_logits(family):
    model, batch = small(family), batch_for(family)
    loss, _ = train.family_loss(model, **batch)
    logits = logits_of(model, batch)[batch["asked"]]
    expected, _ = train.cross_entropy(logits, batch["targets"][batch["asked"]])
    assert np.isclose(loss, expected, atol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_gradient_of_a_family(family):
    model, batch = small(family), batch_for(family)
    _, run = train.family_loss(model, **batch)
    assert set(run.grads) == set(model.parameters)
    rng = np.random.default_rng(2)
    for name, value in model.parameters.items():
        entries = [tuple(rng.integers(value.shape)) for _ in range(4)]
        entries.append(np.unravel_index(np.abs(run.grads[name]).argmax(), value.shape))
        assert_gradient(
            lambda: train.family_loss(model, **batch)[0],
            value,
            run.grads[name],
            entries,
        )
        assert np.abs(run.grads[name]).max() > 0, name


def stack_products(T, S, D, middle, layers):
    """Multiply–adds of one stack, forward: projections, feed-forward, attention."""
    return layers * (T * (4 * D * D + 2 * D * middle) + 2 * T * S * D)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_arithmetic_is_what_one_counts_by_hand(family):
    model, batch = small(family), batch_for(family)
    _, run = train.family_loss(model, **batch)
    n, T, D, middle, layers, words = 3, 4, 8, 6, 2, 7
    forward = n * stack_products(T, T, D, middle, layers)
    if family is EncoderDecoder:
        S = 5
        forward += n * stack_products(S, S, D, middle, layers)
        crossing = T * 2 * D * D + S * 2 * D * D + 2 * T * S * D
        forward += n * layers * crossing
    forward += int(batch["asked"].sum()) * D * words
    # Back through a product there are two, of the same size each.
    assert run.multiply_adds == 3 * forward


def test_a_chain_follows_its_successors():
    chain = train.MarkovChain(np.random.default_rng(1))
    texts = chain.draw(np.random.default_rng(0), 2000)
    assert texts.shape == (2000, 16)
    assert set(np.unique(texts)) == set(range(32))
    before, after = texts[:, :-1], texts[:, 1:]
    usual, other = (chain.successors[before, i] == after for i in (0, 1))
    assert (usual ^ other).all()
    assert abs(usual.mean() - 0.9) < 0.01


@pytest.mark.parametrize("name", train.OBJECTIVES)
def test_the_questions_are_what_they_say(name):
    objective = train.OBJECTIVES[name]
    texts = train.MarkovChain(np.random.default_rng(1)).draw(
        np.random.default_rng(0), 3000
    )
    batch = train.question(objective, texts, np.random.default_rng(2))
    asked, covered = batch["asked"], batch["inputs"] == train.MarkovChain.MASK
    assert abs(asked.mean() - objective.asked) < 0.01
    if objective.family is EncoderOnly:
        assert np.array_equal(covered, asked)
        assert np.array_equal(batch["targets"], texts)
        assert np.array_equal(batch["inputs"][~asked], texts[~asked])
        return
    assert abs(covered.mean() - objective.hidden) < 0.01
    if objective.family is DecoderOnly:
        assert np.array_equal(batch["targets"], texts[:, 1:])
        assert np.array_equal(batch["inputs"][~covered], texts[:, :-1][~covered])
    else:
        assert np.array_equal(batch["source"], texts[:, :8])
        assert np.array_equal(batch["targets"], texts[:, 8:])
        assert np.array_equal(batch["inputs"][:, 1:], texts[:, 8:-1])
        assert (batch["inputs"][:, 0] == train.MarkovChain.START).all()


def test_a_question_that_asks_nothing_is_refused():
    texts = np.zeros((1, 16), int)
    never = train.Objective(EncoderOnly, asked=0.0, hidden=0.0)
    with pytest.raises(ValueError, match="none of them is asked"):
        train.question(never, texts, np.random.default_rng(0))


def test_a_training_repeats_to_the_last_bit():
    one, two = (train.train_family("masked_15", 3, 4e8)[1] for _ in range(2))
    assert one == two
    assert one[-1]["multiply_adds"] >= 4e8


def test_the_recorded_trainings_can_be_repeated():
    recorded = json.loads(RECORD.read_text("utf-8"))
    run = next(r for r in recorded["runs"] if r["objective"] == "decoder")
    again = record_experiments.family_run(
        run["objective"], run["seed"], run["batch"], budget=4e9
    )
    first = next(i for i, point in enumerate(run["curve"]) if point[0] > 3.9)
    # Training amplifies the last bits in which machines differ.
    assert abs(again["curve"][first][1] - run["curve"][first][1]) < 0.03
    assert abs(again["cost"] - run["cost"]) <= 1.2
    assert again["best"] == run["best"] == recorded["best"]


def test_the_record_has_every_objective_and_seed():
    recorded = json.loads(RECORD.read_text("utf-8"))
    have = {(r["objective"], r["batch"], r["seed"]) for r in recorded["runs"]}
    need = {
        (name, batch, seed)
        for name in train.OBJECTIVES
        for batch in recorded["batches"]
        for seed in recorded["seeds"]
    }
    assert have == need
    for run in recorded["runs"]:
        reached = [g for g, right in run["curve"] if right >= recorded["threshold"]]
        assert run["cost"] == (reached[0] if reached else None)
