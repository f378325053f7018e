"""What the heads of the two published models do, on sentences of our own.

``record_experiments.py`` runs these and keeps the results. Wherever many heads are
tried, the best is held against the best of all heads under chance.
"""

from __future__ import annotations

import base64
import itertools
import json
import zlib
from pathlib import Path

import numpy as np

from attnbook import ops, train
from attnbook.pretrained import MiniLM, SmolLM2, load_minilm, load_smollm2

DATA = Path(__file__).parents[1] / "attnbook" / "data"

# --- sentences ---------------------------------------------------------------

# A sentence is said in four ways: either noun first, and he or she.
GENDERED = (
    ("The {a} passed the ball to the {b} because {p} was ready.", "boy", "girl"),
    ("The {a} thanked the {b} before {p} went home.", "king", "queen"),
    ("The {a} called the {b} when {p} was ill.", "father", "mother"),
    ("The {a} wrote to the {b} while {p} was away.", "brother", "sister"),
    ("The {a} saw the {b} after {p} came back.", "man", "woman"),
    ("The {a} met the {b} where {p} used to work.", "husband", "wife"),
    ("The {a} paid the {b} once {p} had finished.", "uncle", "aunt"),
    ("The {a} told the {b} that {p} would win.", "son", "daughter"),
    ("The {a} found the {b} as {p} was leaving.", "prince", "princess"),
    ("The {a} asked the {b} whether {p} could stay.", "gentleman", "lady"),
    ("The {a} helped the {b} until {p} was safe.", "actor", "actress"),
    ("The {a} heard the {b} although {p} was far away.", "grandfather", "grandmother"),
)
# Which of the two is meant, only the reason at the end says: the first, the second.
REASONS = (
    ("{a} lent {b} some money because {p} was", "rich", "poor"),
    ("{a} carried {b} home because {p} was", "strong", "tired"),
    ("{a} taught {b} chess because {p} was", "patient", "curious"),
    ("{a} beat {b} at tennis because {p} was", "faster", "slower"),
    ("{a} hid from {b} because {p} was", "afraid", "angry"),
    ("{a} envied {b} because {p} was", "jealous", "lucky"),
    ("{a} hired {b} because {p} was", "busy", "skilled"),
    ("{a} asked {b} for help because {p} was", "weak", "strong"),
    ("{a} comforted {b} because {p} was", "kind", "sad"),
    ("{a} waited for {b} because {p} was", "early", "late"),
    ("{a} shouted at {b} because {p} was", "angry", "deaf"),
    ("{a} visited {b} in hospital because {p} was", "worried", "sick"),
    ("{a} apologized to {b} because {p} was", "wrong", "hurt"),
    ("{a} gave {b} a coat because {p} was", "warm", "cold"),
    ("{a} ran away from {b} because {p} was", "scared", "dangerous"),
    ("{a} punished {b} because {p} was", "strict", "guilty"),
)
FRESH_REASONS = (
    ("{a} fed {b} because {p} was", "generous", "hungry"),
    ("{a} rescued {b} because {p} was", "brave", "trapped"),
    ("{a} borrowed money from {b} because {p} was", "poor", "rich"),
    ("{a} waved to {b} because {p} was", "friendly", "leaving"),
    ("{a} cheated {b} because {p} was", "greedy", "innocent"),
    ("{a} obeyed {b} because {p} was", "loyal", "powerful"),
    ("{a} praised {b} because {p} was", "impressed", "brilliant"),
    ("{a} nursed {b} because {p} was", "gentle", "ill"),
    ("{a} woke {b} because {p} was", "bored", "asleep"),
    ("{a} avoided {b} because {p} was", "shy", "rude"),
    ("{a} interviewed {b} because {p} was", "curious", "famous"),
    ("{a} fired {b} because {p} was", "strict", "lazy"),
)
NAMES = ("Tom", "Jack")

# In each pair the word stands at the same place, so that before the first layer the
# two vectors are one and the same.
APPLE = (
    ("I ate an apple after lunch.", "I sold my apple shares today."),
    ("She peeled the apple with a knife.", "She joined the apple sales team."),
    ("He baked a fresh apple pie.", "He bought a new apple laptop."),
    ("The ripe apple fell from the tree.", "The new apple phone sold out."),
    (
        "They picked a sweet apple in the orchard.",
        "They sued the giant apple in court.",
    ),
    ("We cut the red apple into slices.", "We tried the new apple software."),
)
KEYS = (("fruit", "company"), ("pear", "google"), ("banana", "microsoft"))
NEUTRAL = (
    "The word is {w}.",
    "This is about {w}.",
    "They talked about {w}.",
    "I read something about {w}.",
)

BEGINNINGS = (
    "The opposite of hot is",
    "The capital of France is the city of",
    "The sun rises in the east and sets in the",
    "Two plus two is equal to",
    "The first month of the year is called",
    "She opened the door with her",
    "In winter the lake is covered with",
    "The doctor told the patient to take the",
    "My favourite fruit is a ripe yellow",
    "The cat chased the mouse and the dog chased the",
    "He put on his coat because it was very",
    "We boiled the water to make a cup of",
    "The teacher wrote the answer on the",
    "A week has seven",
    "The king and the",
    "After the rain a beautiful rainbow appeared in the",
    "The baby was crying because she was",
    "They went to the library to borrow a",
    "The largest planet in the solar system is",
    "The bird built a nest in the",
    "I forgot my umbrella and got completely",
    "The train was late, so we missed the",
    "Bees live together in a hive and make",
    "The fisherman caught a big",
    "The piano player sat down and began to",
    "Once upon a time, in a small village, there lived a",
    "The thief stole the money and ran away from the",
    "Please turn off the lights before you leave the",
    "The mother sang a song to help the child fall",
    "Plants need water, air and a lot of",
)

# Written after the first thirty had been measured, before these were: longer, so
# that there is more to rank, and a test of whether the first result holds.
LONGER_BEGINNINGS = (
    "When the water in the pot began to boil, she added the salt and the",
    "The old man sat by the window every morning and watched the birds in the",
    "Because it had not rained for three months, the grass in the garden was",
    "He looked for his keys in every pocket and finally found them under the",
    "The children built a castle of sand on the beach until the waves washed it",
    "My sister plays the violin, my brother plays the drums, and I play the",
    "The judge listened to both sides for hours before she announced her",
    "In the middle of the night the dog heard a noise and began to",
    "After the long flight from London to Tokyo the passengers were very",
    "The baker gets up at three in the morning to bake fresh",
    "The museum closes at five, so the visitors walked quickly to the",
    "Snow had fallen all night and in the morning the whole village was",
    "The farmer milked the cows, fed the chickens and then went to",
    "If you mix blue paint with yellow paint, the colour that you get is",
    "The soldier wrote a letter to his wife and told her that he would soon be",
    "The spider spun a web between two branches and waited for a",
    "She studied hard for the exam all week and was happy when she",
    "The ship left the harbour at dawn and sailed across the wide",
    "The boy dropped the glass on the kitchen floor and it broke into a thousand",
    "To see the stars more clearly, the astronomer looked through a large",
    "The Earth moves around the Sun, and the Moon moves around the",
    "The tailor took a needle and a long piece of black",
    "The doctor looked at the broken arm and said that the bone would",
    "The clock on the tower struck twelve and the streets of the town were",
    "The chef tasted the soup, frowned, and added a little more",
    "The mountain is so high that even in summer its top is covered with",
    "The firemen climbed up the ladder to save the woman from the burning",
    "The lion is often called the king of the",
    "The students opened their books and the teacher wrote a question on the",
    "The carpenter measured the board twice before he cut it with his",
)
# Fewer ranks than these say nothing about two things at once.
ENOUGH = 5


# --- chance -------------------------------------------------------------------


def sign_flips(scores: np.ndarray) -> np.ndarray:
    """Test whether scores are above 0 in the mean, for many heads at once.

    If a head does not care, each block of sentences may as well have the opposite
    sign. All patterns of signs are tried. A head's statistic is the sum of its
    scores over the root of their sum of squares, and each is held against the
    largest that any head reaches under the pattern.

    Args:
        scores: (blocks, heads).

    Returns:
        p for each head, corrected for having looked at all of them, (heads,).
    """
    blocks, heads = scores.shape
    size = np.sqrt((scores**2).sum(axis=0))
    units = scores / np.where(size > 0, size, 1)
    observed = units.sum(axis=0)
    reached = np.zeros(heads)
    # The sign of the first half of the blocks, one pattern at a time; of the rest
    # all patterns at once.
    half = blocks // 2
    signs = [
        np.array(list(itertools.product((1.0, -1.0), repeat=n)))
        for n in (half, blocks - half)
    ]
    rest = signs[1] @ units[half:]
    for sign in signs[0]:
        most = (rest + sign @ units[:half]).max(axis=1)
        # Sums of the same numbers in another order differ in the last bits.
        reached += (most[:, None] >= observed - 1e-9).sum(axis=0)
    return reached / 2**blocks


def by_count(right: int, pairs: int) -> float:
    """Return how likely so many right pairs, or more, are by tossing a coin."""
    coin = np.array([1.0])
    for _ in range(pairs):
        coin = np.convolve(coin, [0.5, 0.5])
    return float(coin[right:].sum())


# --- where a word stands ---------------------------------------------------------


class Reader:
    """A model that reads sentences, and where their words stand.

    Attributes:
        name: "minilm" or "smollm2".
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.model: MiniLM | SmolLM2
        self.model = load_minilm() if name == "minilm" else load_smollm2()

    def tokens(self, text: str) -> list[str]:
        """Return the tokens of a text as words, ``##`` before a piece of one."""
        ids = self.model.encode(text)
        if self.name == "minilm":
            return [self.model.tokens.tokens[int(i)] for i in ids]
        return [self.model.decode([i]).strip() for i in ids]

    def place(self, text: str, word: str) -> int:
        """Return the place of the last token of a word, at its last occurrence.

        Raises:
            ValueError: the word does not stand there.
        """
        if self.name == "minilm":
            word, pieces = (
                word.lower(),
                [t.removeprefix("##") for t in self.tokens(text)],
            )
        else:
            pieces = self.tokens(text)
        for end in range(len(pieces), 0, -1):
            for start in range(end - 1, -1, -1):
                if "".join(pieces[start:end]) == word:
                    return end - 1
        raise ValueError(f"{word!r} does not stand in {text!r}")

    def attention(self, texts: list[str]) -> list[np.ndarray]:
        """Return the weights of each text, (layers, H, T, T)."""
        ids = [self.model.encode(text) for text in texts]
        if self.name == "minilm":
            return [self.model.attention(i) for i in ids]
        seen = []
        for start in range(0, len(ids), 8):
            some = ids[start : start + 8]
            # What comes after a text changes nothing in it.
            longest = max(map(len, some))
            filled = np.array([np.pad(i, (0, longest - len(i))) for i in some])
            weights = self.model.attention(filled)  # (N, B, H, T, T)
            seen += [weights[:, b, :, : len(i), : len(i)] for b, i in enumerate(some)]
        return seen


# --- pronouns ----------------------------------------------------------------------


def gendered() -> list[list[dict]]:
    """Return blocks of sentences: either order, and in each he and she."""
    blocks = []
    for sentence, he, she in GENDERED:
        block = []
        for a, b in ((he, she), (she, he)):
            for pronoun, right, wrong in (("he", he, she), ("she", she, he)):
                text = sentence.format(a=a, b=b, p=pronoun)
                block.append({"text": text, "right": right, "wrong": wrong})
                block[-1]["pronoun"] = pronoun
        blocks.append(block)
    return blocks


def reasoned(sentences=REASONS) -> list[list[dict]]:
    """Return blocks of sentences: either order of the names, and two reasons."""
    blocks = []
    for sentence, first, second in sentences:
        block = []
        for a, b in (NAMES, NAMES[::-1]):
            for reason, right, wrong in ((first, a, b), (second, b, a)):
                text = f"{sentence.format(a=a, b=b, p='he')} {reason}."
                block.append({"text": text, "right": right, "wrong": wrong})
                block[-1] |= {"pronoun": "he", "reason": reason}
        blocks.append(block)
    return blocks


def looks(reader: Reader, blocks: list[list[dict]], asks: str) -> np.ndarray:
    """Return the weights on the right and on the wrong word.

    Args:
        asks: "pronoun", "reason" or "end": whose look it is.

    Returns:
        (blocks, 4, 2, layers, H)
    """
    sentences = [sentence for block in blocks for sentence in block]
    found = []
    weights = reader.attention([s["text"] for s in sentences])
    for s, seen in zip(sentences, weights, strict=True):
        at = reader.place(s["text"], "." if asks == "end" else s[asks])
        words = [reader.place(s["text"], s[which]) for which in ("right", "wrong")]
        found.append(np.moveaxis(seen[:, :, at, words], -1, 0))
    shape = (len(blocks), 4, *found[0].shape)
    return np.array(found, dtype=np.float64).reshape(shape)


def heads_test(weights: np.ndarray) -> dict:
    """Say which heads look more at the right word than at the wrong one.

    A pair's score adds both readings, in which the words change their roles, so
    that what a head likes about a place or a word cancels. A block is two pairs.
    """
    blocks, _, _, layers, heads = weights.shape
    margins = (weights[:, :, 0] - weights[:, :, 1]).reshape(blocks, 4, -1)
    pairs = margins.reshape(blocks, 2, 2, -1).sum(axis=2)  # (blocks, 2, heads)
    p = sign_flips(pairs.sum(axis=1))
    right = (pairs > 0).sum(axis=(0, 1))
    order = np.lexsort((-pairs.mean(axis=(0, 1)), p))
    mean = weights.mean(axis=(0, 1)).reshape(2, -1)

    def head(i: int) -> dict:
        layer, number = divmod(int(i), heads)
        return {
            "layer": layer,
            "head": number,
            "p": round(float(p[i]), 4),
            "pairs": int(right[i]),
            "sentences": int((margins[:, :, i] > 0).sum()),
            "on_right": round(float(mean[0, i]), 3),
            "on_wrong": round(float(mean[1, i]), 3),
        }

    best = head(order[0])
    here = weights[:, :, :, best["layer"], best["head"]].reshape(-1, 2)
    return {
        "heads": layers * heads,
        "pairs": 2 * blocks,
        "below_05": int((p < 0.05).sum()),
        "most_pairs": int(right.max()),
        "best": [head(i) for i in order[:6]],
        "weights": here.round(4).tolist(),
    }


def alone(weights: np.ndarray, layer: int, head: int) -> dict:
    """Test one head, chosen beforehand, on other sentences."""
    test = heads_test(weights[..., layer : layer + 1, head : head + 1])
    chosen = test["best"][0] | {"layer": layer, "head": head}
    coin = round(by_count(chosen["pairs"], test["pairs"]), 4)
    return {"of": test["pairs"], "p_count": coin, **chosen}


def nearness(reader: Reader, blocks: list[list[dict]]) -> list[dict]:
    """Say after which layer the pronoun's vector lies nearer the right name."""
    margins = []
    for s in itertools.chain.from_iterable(blocks):
        vectors = reader.model.token_vectors(reader.model.encode(s["text"]), None)
        near = {
            which: cosine(*(vectors[:, reader.place(s["text"], s[w])] for w in pair))
            for which, pair in (
                ("right", ("pronoun", "right")),
                ("wrong", ("pronoun", "wrong")),
            )
        }
        margins.append(near["right"] - near["wrong"])
    pairs = np.array(margins).reshape(len(blocks), 2, 2, -1).sum(axis=2)
    p = sign_flips(pairs.sum(axis=1))
    return [
        {
            "layer": n,
            "p": round(float(p[n]), 4),
            "pairs": int((pairs[..., n] > 0).sum()),
        }
        for n in range(len(p))
    ]


def behaviour(reader: Reader, blocks: list[list[dict]]) -> dict:
    """Ask the model itself: is the reason likelier after the right name?

    The pronoun is replaced by one name and by the other, and the reason's
    probability is compared.
    """
    margins = []
    for s in itertools.chain.from_iterable(blocks):
        said = [log_probability(reader.model, s, s[who]) for who in ("right", "wrong")]
        margins.append(said[0] - said[1])
    pairs = np.array(margins).reshape(len(blocks), 2, 2).sum(axis=2)
    return {
        "sentences": int((np.array(margins) > 0).sum()),
        "of_sentences": len(margins),
        "pairs": int((pairs > 0).sum()),
        "of": pairs.size,
        "p": round(float(sign_flips(pairs.sum(axis=1)[:, None])[0]), 4),
    }


def log_probability(model: SmolLM2, sentence: dict, name: str) -> float:
    """Return log P of the reason after the sentence with a name for the pronoun."""
    start, _, _ = sentence["text"].rpartition(f" {sentence['reason']}.")
    start = start.replace(" he was", f" {name} was")
    before = model.encode(start)
    ids = np.concatenate([before, model.encode(f" {sentence['reason']}")])
    scores = model.logits(ids)[len(before) - 1 : -1].astype(np.float64)
    shifted = scores - scores.max(axis=-1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    answer = ids[len(before) :]
    return float(logs[np.arange(len(answer)), answer].sum())


def real_pronouns() -> dict:
    """Heads of two real models on a pronoun: do they follow gender, and the reason?"""
    record = {}
    with train.one_thread():
        for name in ("minilm", "smollm2"):
            reader = Reader(name)
            weights = looks(reader, gendered(), "pronoun")
            record[name] = {"gender": heads_test(weights)}
            print(f"  {name}, gender: {record[name]['gender']['best'][:2]}")
            ask = ("pronoun",) if name == "minilm" else ("reason", "end")
            for asks in ask:
                test = heads_test(looks(reader, reasoned(), asks))
                best = test["best"][0]
                fresh = looks(reader, reasoned(FRESH_REASONS), asks)
                test["again"] = alone(fresh, best["layer"], best["head"])
                record[name][f"reason_from_{asks}"] = test
                print(f"  {name}, reason from {asks}: {best}, {test['again']}")
        record["minilm"]["reason_nearness"] = nearness(Reader("minilm"), reasoned())
        writer = Reader("smollm2")
        record["smollm2"]["before_the_reason"] = before_the_reason(writer)
        record["smollm2"]["behaviour"] = behaviour(writer, reasoned())
        print(f"  {record['smollm2']['behaviour']}")
    return record


def before_the_reason(writer: Reader) -> dict:
    """Compare what the pronoun does under the two reasons it has not yet read."""
    weights = looks(writer, reasoned(), "pronoun")
    # The right word of one reading is the wrong one of the other.
    names = np.stack([weights[:, ::2], weights[:, 1::2, ::-1]])
    return {
        "numbers": int(names[0].size),
        "largest_difference": float(np.abs(names[0] - names[1]).max()),
    }


# --- apple ------------------------------------------------------------------------


def cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the cosine of vectors, (..., D) and (..., D) -> (...)."""
    size = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return (a * b).sum(axis=-1) / size


def apple_cosines(reader: Reader, keys: tuple[str, str]) -> np.ndarray:
    """Return how much nearer *apple* lies to the first key word than to the second.

    A key word's vector is its mean over sentences that say nothing about it, after
    the same layer.

    Returns:
        (2, sentences, layers + 1, 2): food and companies; cosines to both keys.
    """
    vectors = [
        np.mean([vectors_of(reader, n.format(w=key), key) for n in NEUTRAL], axis=0)
        for key in keys
    ]
    return np.array(
        [
            [
                np.stack(
                    [cosine(vectors_of(reader, t[side], "apple"), k) for k in vectors],
                    axis=-1,
                )
                for t in APPLE
            ]
            for side in (0, 1)
        ],
        dtype=np.float64,
    )


def vectors_of(reader: Reader, text: str, word: str) -> np.ndarray:
    """Return a word's vectors, (layers + 1, D), 0 for before the first layer."""
    vectors = reader.model.token_vectors(reader.model.encode(text), None)
    return vectors[:, reader.place(text, word)]


def groups_apart(differences: np.ndarray) -> float:
    """Return how likely two groups come so far apart if labels mean nothing.

    All ways of calling half of the sentences food are tried, (2, n) -> p.
    """
    values = differences.ravel()
    half = len(values) // 2
    total, observed = values.sum(), differences[0].sum()
    sums = [
        values[list(some)].sum()
        for some in itertools.combinations(range(len(values)), half)
    ]
    centred = np.abs(np.array(sums) - total / 2)
    return float((centred >= abs(observed - total / 2) - 1e-9).mean())


def real_apple() -> dict:
    """*Apple* among food and among companies in MiniLM, layer by layer."""
    record = {"sentences": [list(pair) for pair in APPLE], "keys": []}
    with train.one_thread():
        reader = Reader("minilm")
        for keys in KEYS:
            near = apple_cosines(reader, keys)
            apart = near[..., 0] - near[..., 1]  # (2, n, layers + 1)
            layers = []
            for n in range(near.shape[2]):
                food, company = apart[:, :, n]
                layers.append(
                    {
                        "food": near[0, :, n].mean(axis=0).round(4).tolist(),
                        "company": near[1, :, n].mean(axis=0).round(4).tolist(),
                        "separation": round(float(food.mean() - company.mean()), 4),
                        "apart": bool(food.min() > company.max()),
                        "right_side": int((food > 0).sum() + (company < 0).sum()),
                        "p": round(groups_apart(apart[:, :, n]), 4),
                        "each": apart[:, :, n].round(3).tolist(),
                    }
                )
            record["keys"].append({"words": list(keys), "layers": layers})
            print(f"  {keys}: {[layer['separation'] for layer in layers]}")
        at = [[reader.place(text, "apple") for text in pair] for pair in APPLE]
        record["places"] = at
    return record


# --- weight against effect ------------------------------------------------------------


def ranks(values: np.ndarray) -> np.ndarray:
    """Return ranks from 0 on; equal values share the mean of theirs."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts + 1) / 2)[which]


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """Return the correlation of ranks; NaN if one side is constant."""
    a, b = (r - r.mean() for r in (ranks(np.asarray(a)), ranks(np.asarray(b))))
    size = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / size) if size > 0 else float("nan")


def partial(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    """Return the correlation of the ranks of a and b that c does not explain."""
    ab, ac, bc = spearman(a, b), spearman(a, c), spearman(b, c)
    left = (1 - ac**2) * (1 - bc**2)
    return (ab - ac * bc) / left**0.5 if left > 1e-12 else float("nan")


def rollout(weights: np.ndarray) -> np.ndarray:
    """Follow attention through the layers, half of each place staying where it is.

    Abnar and Zuidema 2020 (arXiv 2005.00928), (layers, H, T, T) -> (T, T).
    """
    T = weights.shape[-1]
    flow = np.eye(T)
    for layer in weights.mean(axis=1).astype(np.float64):
        flow = (layer + np.eye(T)) / 2 @ flow
    return flow


def effects(text: str) -> dict:
    """Measure for each token how much the likeliest next token owes to it.

    ``masked`` is the drop of its score if no later token may look at the token,
    ``deleted`` that without the token; the last token, which asks, is left out.
    """
    model = load_smollm2()
    ids = model.encode(text)
    T = len(ids)
    weights = model.attention(ids)
    before = model.logits(ids)[-1]
    answer = int(before.argmax())
    without = np.repeat(ops.causal_mask(T)[None, None], T - 1, axis=0)  # (B, 1, T, T)
    for j in range(T - 1):
        without[j, 0, j + 1 :, j] = False
    blind = load_smollm2(causal_mask=lambda T, S=None: without)
    masked = blind.logits(np.repeat(ids[None], T - 1, axis=0))[:, -1, answer]
    shorter = np.array([np.delete(ids, j) for j in range(T - 1)])
    deleted = model.logits(shorter)[:, -1, answer]
    return {
        "text": text,
        "tokens": [model.decode([i]).strip() for i in ids],
        "answer": model.decode([answer]).strip(),
        "masked": (before[answer] - masked).astype(float).round(3).tolist(),
        "deleted": (before[answer] - deleted).astype(float).round(3).tolist(),
        "last": weights[-1, :, -1, :-1].mean(axis=0).astype(float).round(5).tolist(),
        "all": weights[:, :, -1, :-1].mean(axis=(0, 1)).astype(float).round(5).tolist(),
        # It crowds on the first token: rounding would make the others equal.
        "rollout": [float(f"{x:.4g}") for x in rollout(weights)[-1, :-1]],
    }


PREDICTORS = ("last", "all", "rollout", "position", "deleted")


def agreement(sentences: list[dict], first: bool, draws: int = 10_000) -> dict:
    """Compare each predictor with the effect within each sentence.

    Args:
        sentences: what ``effects`` returned.
        first: whether the first token counts.
        draws: of the bootstrap over sentences and of the shuffles within them.
    """
    start = 0 if first else 1
    columns = {name: [] for name in (*PREDICTORS, "last_beyond_position")}
    top = {name: [] for name in PREDICTORS}
    chance, shuffles = [], []
    rng = np.random.default_rng(0)
    for sentence in sentences:
        part = {
            name: np.array(sentence[name][start:])
            for name in (*PREDICTORS, "masked")
            if name != "position"
        }
        part["position"] = np.arange(len(part["masked"]))
        for name in PREDICTORS:
            columns[name].append(spearman(part[name], part["masked"]))
            top[name].append(part[name].argmax() == part["masked"].argmax())
        if len(part["masked"]) >= ENOUGH:
            columns["last_beyond_position"].append(
                partial(part["last"], part["masked"], part["position"])
            )
        chance.append(1 / len(part["masked"]))
        shuffles.append(shuffled(part["last"], part["masked"], rng, draws))
    result = {}
    for name, column in columns.items():
        values = np.array(column)
        values = values[~np.isnan(values)]
        means = rng.choice(values, (draws, len(values))).mean(axis=1)
        low, high = np.quantile(means, (0.025, 0.975))
        result[name] = {
            "mean": round(float(values.mean()), 3),
            "interval": [round(float(low), 3), round(float(high), 3)],
            "sentences": len(values),
        }
        if name in top:
            result[name]["top"] = round(float(np.mean(top[name])), 3)
    by_chance = np.mean(shuffles, axis=0)
    observed = np.mean(columns["last"])
    reached = (np.abs(by_chance) >= abs(observed) - 1e-9).sum()
    result["last"]["p"] = round(float((reached + 1) / (draws + 1)), 4)
    result["top_by_chance"] = round(float(np.mean(chance)), 3)
    return result


def shuffled(
    a: np.ndarray, b: np.ndarray, rng: np.random.Generator, draws: int
) -> np.ndarray:
    """Return the correlations of ranks with b in random orders, (draws,)."""
    a, b = (r - r.mean() for r in (ranks(a), ranks(b)))
    orders = rng.permuted(np.tile(b, (draws, 1)), axis=1)
    return orders @ a / np.sqrt((a @ a) * (b @ b))


def real_effects() -> dict:
    """Weight against effect in SmolLM2, with its controls, on two sets of sentences."""
    record = {}
    with train.one_thread():
        for name, texts in (("short", BEGINNINGS), ("long", LONGER_BEGINNINGS)):
            sentences = []
            for text in texts:
                sentences.append(effects(text))
                print(f"  {text} {sentences[-1]['answer']}")
            record[name] = {
                "with_first": agreement(sentences, True),
                "without_first": agreement(sentences, False),
                "first_token": first_token(sentences),
                "sentences": sentences,
            }
    return record


def first_token(sentences: list[dict]) -> dict:
    """Compare how much the first token is looked at and how much it matters."""
    masked = [np.abs(s["masked"]) for s in sentences]
    means = {
        "weight": [s["last"][0] for s in sentences],
        "rollout": [s["rollout"][0] for s in sentences],
        "effect": [m[0] for m in masked],
        "effect_of_others": [m[1:].mean() for m in masked],
    }
    return {name: round(float(np.mean(each)), 4) for name, each in means.items()}


# --- the attention of a dozen sentences, for the explorer ---------------------

BOTH, READER, WRITER = ("minilm", "smollm2"), ("minilm",), ("smollm2",)
SHOWN = {
    "ball_she": ("The boy passed the ball to the girl because she was ready.", BOTH),
    "ball_he": ("The boy passed the ball to the girl because he was ready.", BOTH),
    "queen_she": ("The king thanked the queen before she went home.", READER),
    "queen_he": ("The king thanked the queen before he went home.", READER),
    "reason_rich": ("Tom lent Jack some money because he was rich.", BOTH),
    "reason_poor": ("Tom lent Jack some money because he was poor.", BOTH),
    "apple_food": ("I ate an apple after lunch.", BOTH),
    "apple_company": ("I sold my apple shares today.", BOTH),
    "trophy_big": (
        "The trophy did not fit in the suitcase because it was too big.",
        READER,
    ),
    "trophy_small": (
        "The trophy did not fit in the suitcase because it was too small.",
        READER,
    ),
    "twice": ("The owl, red lamp and tin. The owl, red lamp and tin.", WRITER),
    "planet": ("The largest planet in the solar system is", WRITER),
}


def pack(weights: np.ndarray, causal: bool) -> str:
    """Write weights in steps of 1/255, without what a causal mask makes 0.

    Args:
        weights: (layers, H, T, T).

    Returns:
        Row after row, deflated, in the letters of base64.
    """
    steps = np.rint(weights.astype(np.float64) * 255).astype(np.uint8)
    if causal:
        steps = steps[:, :, *np.tril_indices(steps.shape[-1])]
    return base64.b64encode(zlib.compress(steps.tobytes(), 9)).decode()


def chosen_heads(readers: dict, seen: dict, pronouns: dict) -> dict:
    """Return what the explorer can go to by name: found by a rule, not by eye.

    For each name its state, and in ``found`` what was measured of that head.
    """
    chosen = {}

    def at(name: str, network: str, text: str, asks: str, target: str) -> dict:
        reader, said = readers[network], SHOWN[text][0]
        chosen[name] = {
            "network": network,
            "text": text,
            "token": reader.place(said, asks),
            "target": reader.place(said, target),
        }
        return chosen[name]

    def tested(name: str, test: str) -> None:
        results = pronouns[chosen[name]["network"]][test]
        best = results["best"][0]
        chosen[name] |= {part: best[part] for part in ("layer", "head")}
        chosen[name]["found"] = {
            "pairs": best["pairs"],
            "of": results["pairs"],
            "p": best["p"],
            "heads": results["heads"],
        }

    def strongest(name: str, scores: np.ndarray) -> None:
        layer, head = np.unravel_index(scores.argmax(), scores.shape)
        chosen[name] |= {"layer": int(layer), "head": int(head)}
        most = round(float(scores.max()), 2)
        chosen[name]["found"] = {"mean": most, "heads": scores.size}

    at("gender_minilm", "minilm", "ball_she", "she", "girl")
    tested("gender_minilm", "gender")
    at("gender_smollm2", "smollm2", "ball_she", "she", "girl")
    tested("gender_smollm2", "gender")
    at("reason_minilm", "minilm", "reason_rich", "he", "Tom")
    tested("reason_minilm", "reason_from_pronoun")
    at("reason_smollm2", "smollm2", "reason_rich", "rich", "Tom")
    tested("reason_smollm2", "reason_from_reason")

    apple = at("apple", "minilm", "apple_food", "apple", "ate")
    food = seen["minilm", "apple_food"]
    strongest("apple", food[:, :, apple["token"], apple["target"]])

    # An induction head looks from a word to what followed the same word before.
    twice = seen["smollm2", "twice"]
    half = twice.shape[-1] // 2
    again = np.arange(half, 2 * half - 1)
    at("induction", "smollm2", "twice", "lamp", "and")
    chosen["induction"]["target"] = chosen["induction"]["token"] - half + 1
    strongest("induction", twice[:, :, again, again - half + 1].mean(axis=-1))

    written = [w for (network, _), w in seen.items() if network == "smollm2"]
    neighbours = [np.diagonal(w, -1, axis1=2, axis2=3).mean(axis=-1) for w in written]
    at("previous", "smollm2", "planet", "solar", "the")
    strongest("previous", np.mean(neighbours, axis=0))
    first = [w[:, :, 1:, 0].mean(axis=-1) for w in written]
    at("sink", "smollm2", "planet", "is", "The")
    strongest("sink", np.mean(first, axis=0))
    return chosen


def attention_explorer() -> dict:
    """The weights of all heads of both models on a dozen sentences."""
    pronouns = json.loads((DATA / "real_pronouns.json").read_text("utf-8"))
    readers, seen, kept, sizes = {}, {}, [], {}
    with train.one_thread():
        for network in BOTH:
            reader = readers[network] = Reader(network)
            causal = network == "smollm2"
            for text, (said, who) in SHOWN.items():
                if network not in who:
                    continue
                (weights,) = reader.attention([said])
                seen[network, text] = weights
                sizes[network] = {
                    "layers": weights.shape[0],
                    "heads": weights.shape[1],
                    "causal": causal,
                }
                kept.append(
                    {
                        "network": network,
                        "text": text,
                        "tokens": reader.tokens(said),
                        "weights": pack(weights, causal),
                    }
                )
    chosen = chosen_heads(readers, seen, pronouns)
    return {
        "networks": sizes,
        "sentences": {text: said for text, (said, _) in SHOWN.items()},
        "found": {name: state.pop("found") for name, state in chosen.items()},
        "presets": chosen,
        "recorded": kept,
    }


EXPERIMENTS = {
    "real_apple": real_apple,
    "real_effects": real_effects,
    "real_pronouns": real_pronouns,
    # Last, for it goes to heads that the others have found.
    "attention_explorer": attention_explorer,
}
