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


@pytest.mark.parametrize("back", [1, 2])
def test_a_chain_follows_its_successors(back):
    chain = train.MarkovChain(np.random.default_rng(1), back)
    texts = chain.draw(np.random.default_rng(0), 2000)
    assert texts.shape == (2000, 16)
    assert set(np.unique(texts)) == set(range(32))
    before, after = texts[:, :-back], texts[:, back:]
    usual, other = (chain.successors[before, i] == after for i in (0, 1))
    assert (usual ^ other).all()
    assert abs(usual.mean() - 0.9) < 0.01
    assert chain.usual(texts, 5) == usual[:, 5 - back].mean()
    assert chain.usual(texts, -1) == usual[:, -1].mean()


def test_in_the_second_chain_the_token_before_says_nothing():
    chain = train.MarkovChain(np.random.default_rng(1), 2)
    texts = chain.draw(np.random.default_rng(0), 20_000)
    pairs = np.zeros((32, 32))
    np.add.at(pairs, (texts[:, 8], texts[:, 9]), 1)
    # Some tokens are nobody's successor and have died out by then.
    pairs = pairs[pairs.any(axis=1)][:, pairs.any(axis=0)]
    apart = np.outer(pairs.sum(axis=1), pairs.sum(axis=0)) / pairs.sum()
    free = np.prod(np.array(pairs.shape) - 1)
    chi_square = ((pairs - apart) ** 2 / apart).sum()
    assert chi_square < 1.3 * free


@pytest.mark.parametrize("name", train.OBJECTIVES)
def test_the_questions_are_what_they_say(name):
    objective = train.OBJECTIVES[name]
    texts = train.MarkovChain(np.random.default_rng(1)).draw(
        np.random.default_rng(0), 3000
    )
    batch = train.question(objective, texts, np.random.default_rng(2))
    asked, covered = batch["asked"], batch["inputs"] == train.MarkovChain.MASK
    if objective.last:
        assert asked[:, -1].all()
        assert not asked[:, :-1].any()
    else:
        assert abs(asked.mean() - objective.asked) < 0.01
    if objective.family is EncoderDecoder:
        assert np.array_equal(batch["source"], texts[:, :8])
        assert np.array_equal(batch["targets"], texts[:, 8:])
        assert np.array_equal(batch["inputs"][:, 1:], texts[:, 8:-1])
        assert (batch["inputs"][:, 0] == train.MarkovChain.START).all()
    elif objective.in_place:
        assert np.array_equal(covered, asked)
        assert np.array_equal(batch["targets"], texts)
        assert np.array_equal(batch["inputs"][~asked], texts[~asked])
    else:
        assert objective.family is DecoderOnly
        assert abs(covered.mean() - objective.hidden) < 0.01
        assert np.array_equal(batch["targets"], texts[:, 1:])
        assert np.array_equal(batch["inputs"][~covered], texts[:, :-1][~covered])


def test_every_encoder_is_asked_in_place():
    for objective in train.OBJECTIVES.values():
        if objective.family is EncoderOnly:
            assert objective.in_place


def test_hiding_covers_and_asks_where_a_draw_says_so_but_never_padding():
    ids = np.array([[5, 6, 7, 3], [8, 9, 0, 0]])
    draws = np.array([[0.9, 0.1, 0.15, 0.6], [0.05, 0.7, 0.0, 0.9]])
    inputs, answers = train.hide_tokens(ids, draws, 0.15, 10, padding=0)
    assert inputs.tolist() == [[5, 10, 7, 3], [10, 9, 0, 0]]
    assert answers.tolist() == [[-1, 6, -1, -1], [8, -1, -1, -1]]
    inputs, answers = train.hide_tokens(ids, draws, 0.15, 10)
    assert inputs[1].tolist() == [10, 9, 10, 0]
    assert answers[1].tolist() == [8, -1, 0, -1]
    rng = np.random.default_rng(0)
    ids = rng.integers(9, size=(100, 200))
    _, answers = train.hide_tokens(ids, rng.random(ids.shape), 0.15, 9)
    assert abs((answers >= 0).mean() - 0.15) < 0.01


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"ids": np.ones(3)}, TypeError, "ids must be whole numbers"),
        ({"draws": np.ones(2)}, ValueError, "draws has shape"),
        ({"share": 1.5}, ValueError, "share is 1.5"),
    ],
)
def test_hiding_names_what_is_wrong(change, error, says):
    arguments = {"ids": np.arange(3), "draws": np.ones(3), "share": 0.5}
    with pytest.raises(error, match=says):
        train.hide_tokens(**arguments | change, mask_sign=9)


def test_without_a_look_only_the_own_token_counts():
    family, _ = train.train_family("decoder_no_look", 0, 4e8, back=2)
    ids = np.random.default_rng(0).integers(32, size=(4, 9))
    other = ids.copy()
    other[:, :5] = (ids[:, :5] + 1) % 32
    one, two = family.logits(ids), family.logits(other)
    assert np.array_equal(one[:, 5:], two[:, 5:])
    assert not np.array_equal(one[:, :5], two[:, :5])
    family, _ = train.train_family("decoder", 0, 4e8, back=2)
    assert not np.array_equal(family.logits(ids)[:, 5:], family.logits(other)[:, 5:])


def test_a_question_that_asks_nothing_is_refused():
    texts = np.zeros((1, 16), int)
    never = train.Objective(EncoderOnly, asked=0.0, hidden=0.0)
    with pytest.raises(ValueError, match="none of them is asked"):
        train.question(never, texts, np.random.default_rng(0))


def test_a_training_repeats_to_the_last_bit():
    one, two = (train.train_family("masked_15", 3, 4e8)[1] for _ in range(2))
    assert one == two
    assert one[-1]["multiply_adds"] >= 4e8


@pytest.mark.parametrize(("name", "back"), [("decoder", 1), ("decoder_last", 2)])
def test_the_recorded_trainings_can_be_repeated(name, back):
    recorded = json.loads(RECORD.read_text("utf-8"))
    assert recorded["budgets"] == record_experiments.BUDGETS
    run = next(
        r
        for r in recorded["runs"]
        if (r["objective"], r["back"], r["seed"]) == (name, back, 0)
    )
    again = record_experiments.family_run(name, 0, run["batch"], back, run["rate"])
    # Training amplifies the last bits in which machines differ.
    assert abs(again["cost"] - run["cost"]) <= 1.2
    assert abs(again["last"] - run["last"]) < 0.03


def test_the_record_has_every_objective_and_seed():
    recorded = json.loads(RECORD.read_text("utf-8"))
    runs, seeds = recorded["runs"], recorded["seeds"]
    keys = ("objective", "back", "batch", "rate", "seed")
    have = {tuple(run[key] for key in keys) for run in runs}
    assert len(have) == len(runs)
    rate = recorded["rate"]
    need = {
        (name, back, 64, rate, seed)
        for name in train.OBJECTIVES
        for back in (1, 2)
        for seed in seeds
    }
    assert need <= have
    assert len(have - need) == len(seeds) * (2 + 4)  # small batches; other rates
    for back, best in recorded["best"].items():
        chain, test = train.chain_and_test(int(back))
        assert best == {"last": chain.usual(test, -1), "middle": chain.usual(test, 8)}
    for run in runs:
        if "curve" not in run:
            continue
        enough = recorded["best"][str(run["back"])]["last"] - recorded["short"]
        right = [value >= enough for _, value in run["curve"]]
        first = [i for i in range(len(right) - 2) if all(right[i : i + 3])]
        assert run["cost"] == (run["curve"][first[0]][0] if first else None)
