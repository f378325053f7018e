"""What the exercises on the pronoun and the mask say is right is what one measures."""

import numpy as np
import pytest

from attnbook import ops, train
from attnbook.exercises import EXERCISES


def test_the_nearest_name_is_right_where_the_answer_stays_in_its_place():
    grammar = train.PronounGrammar(np.random.default_rng(1))
    one, two = grammar.known[:2]
    pairs = {
        "reason": [(one, two, "rich", 0), (one, two, "needy", 0)],
        "names": [(one, two, "needy", 0), (two, one, "needy", 0)],
        "opening": [(one, two, "needy", 0), (one, two, "needy", 1)],
    }
    right = {}
    for what, sentences in pairs.items():
        pair = grammar.batch(
            [grammar.sentence(a, b, why, opening=o) for a, b, why, o in sentences]
        )
        assert (pair.second > pair.first).all()  # the receiver is the nearer one
        right[what] = int(pair.means_second.sum())
    assert right == {"reason": 1, "names": 2, "opening": 2}
    assert EXERCISES["pairs_for_distance"].answer == "b"


def test_hidden_pairs_are_those_of_the_new_tokens():
    hidden = ~ops.causal_mask(4, 10)
    assert hidden.sum() == EXERCISES["hidden_pairs"].answer
    mistakes = EXERCISES["hidden_pairs"].mistakes
    assert (~np.tril(np.ones((4, 10), bool))).sum() == mistakes["top_left"]
    assert (~ops.causal_mask(10)).sum() == mistakes["whole_square"]


def test_a_mask_of_integers_turned_with_a_tilde_is_a_list_of_places():
    scores = np.array([0.5, 1.0, 1.5, 2.0])
    scores[~np.array([1, 1, 0, 1])] = -np.inf
    assert np.isneginf(scores).tolist() == [False, False, True, True]
    assert EXERCISES["integer_mask"].answer == "b"


def test_dividing_once_more_mends_a_late_mask_but_for_a_loud_hidden_score():
    rng = np.random.default_rng(1)
    six = rng.normal(size=(6, 4))
    causal = ops.causal_mask(6)

    def masked_late(x):
        weights = ops.attention_weights(x, x) * causal
        with np.errstate(invalid="ignore"):
            return weights / weights.sum(axis=-1, keepdims=True) @ x

    other = six.copy()
    other[-1] *= -3
    assert np.allclose(masked_late(six)[:5], masked_late(other)[:5], atol=1e-14)
    loud = six.copy()
    loud[-1] = 4000 * six[0]
    assert np.isnan(masked_late(loud)[0]).all()
    assert EXERCISES["hide_afterwards"].answer == "c"


@pytest.mark.parametrize("query", [0, 1, 2])
def test_under_a_top_left_triangle_a_chunk_sees_the_oldest_keys(query):
    seen = np.flatnonzero(np.tril(np.ones((3, 8), bool))[query])
    assert seen.tolist() == list(range(query + 1))
    assert ops.causal_mask(3, 8)[-1].all()
    assert EXERCISES["flag_with_cache"].answer == "b"
