"""Text becomes the tokens the two models were trained on, to the letter."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnbook.pretrained import load_minilm, load_smollm2
from attnbook.pretrained.tokens import BytePairs, WordPieces

REFERENCE = json.loads(
    Path(__file__).with_name("data").joinpath("reference.json").read_text("utf-8")
)


@pytest.fixture(scope="module")
def pairs():
    return load_smollm2().tokens


@pytest.fixture(scope="module")
def pieces():
    return load_minilm().tokens


@pytest.mark.parametrize(("text", "ids"), REFERENCE["tricky"])
def test_byte_pairs_are_those_of_the_reference(pairs, text, ids):
    assert pairs.encode(text).tolist() == ids
    assert pairs.decode(ids) == text.replace("\x1d", "")  # without a token


@pytest.mark.parametrize(("text", "ids"), REFERENCE["minilm_tricky"])
def test_word_pieces_are_those_of_the_reference(pieces, text, ids):
    assert pieces.encode(text).tolist() == ids


@given(text=st.text())
def test_every_text_comes_back_but_for_bytes_without_a_token(text):
    tokens = load_smollm2().tokens
    known = {byte for byte, name in tokens._names.items() if name in tokens._ids}
    assert len(known) > 200
    ids = tokens.encode(text)
    left = bytes(byte for byte in text.encode() if byte in known)
    assert tokens.decode(ids) == left.decode(errors="replace")


def small_pairs():
    letters = [chr(code) for code in range(ord("a"), ord("e"))] + ["Ġ", "1"]
    return BytePairs(
        [*letters, "ab", "abc", "Ġa", "<end>"], ["a b", "ab c", "Ġ a"], ["<end>"]
    )


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("abc", ["abc"]),
        ("abab", ["ab", "ab"]),
        ("bca", ["b", "c", "a"]),
        (" abc", ["Ġ", "abc"]),  # "a b" stands before "Ġ a"
        (" ac", ["Ġa", "c"]),
        ("a11", ["a", "1", "1"]),
        ("ab<end>c", ["ab", "<end>", "c"]),
        ("", []),
    ],
)
def test_the_first_merge_of_the_list_comes_first(text, tokens):
    pairs = small_pairs()
    ids = pairs.encode(text)
    assert [pairs.tokens[i] for i in ids] == tokens
    assert pairs.decode(ids) == text


@pytest.mark.parametrize("number", [-1, 10, 10**9])
def test_there_is_no_text_for_a_token_that_does_not_exist(number):
    with pytest.raises(IndexError, match=f"no token {number}"):
        small_pairs().decode([number])


def small_pieces():
    special = ["[UNK]", "[CLS]", "[SEP]"]
    words = [*special, "play", "##ing", "##er", "a", ".", "plays"]
    return WordPieces({word: i for i, word in enumerate(words)}, 12, special)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Playing", "playing"),
        ("PLAYS.", "plays ."),
        ("player, a", "player [UNK] a"),
        ("play[SEP]ing", "play [SEP] [UNK]"),
        ("pláyer", "player"),
        ("playinginging", "[UNK]"),  # longer than 12
        ("ingplay", "[UNK]"),
    ],
)
def test_words_are_cut_into_the_longest_pieces_from_the_left(text, said):
    pieces = small_pieces()
    assert pieces.decode(pieces.encode(text)) == f"[CLS] {said} [SEP]"
