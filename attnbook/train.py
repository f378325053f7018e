"""Small trainings: hand-written backward passes, and the optimiser.

What has a ``_backward`` beside it takes the gradient of the loss with respect
to a function's output and returns that with respect to its inputs. Tests hold
each of them to finite differences.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from attnbook.ops import softmax

_DATA = Path(__file__).parent / "data"

Parameters = dict[str, np.ndarray]


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold BLAS to one thread: small matrices lose time on more."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield


# --- pieces ------------------------------------------------------------------


def unit_rms(x: np.ndarray) -> np.ndarray:
    """Divide each vector by the root of its mean square, (..., d) -> (..., d)."""
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5)


def unit_rms_backward(x: np.ndarray, grad: np.ndarray) -> np.ndarray:
    """Return the gradient of ``unit_rms`` with respect to ``x``."""
    size = np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5)
    y = x / size
    return (grad - y * np.mean(grad * y, axis=-1, keepdims=True)) / size


def softmax_backward(weights: np.ndarray, grad: np.ndarray) -> np.ndarray:
    """Return the gradient with respect to the scores, (..., S) -> (..., S).

    This is the product with the Jacobian of the chapter on scaling, without
    ever building it.
    """
    return weights * (grad - np.sum(grad * weights, axis=-1, keepdims=True))


def cross_entropy(logits: np.ndarray, targets: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the mean loss in nats and its gradient with respect to the logits.

    Args:
        logits: one row of scores over the vocabulary for each answer, (n, words).
        targets: the index of each right answer, (n,), integer.
    """
    n = np.arange(len(targets))
    probabilities = softmax(logits)
    # The smallest positive number stands in where a probability has underflowed.
    floor = np.finfo(logits.dtype).tiny
    loss = -np.log(np.maximum(probabilities[n, targets], floor)).mean()
    grad = probabilities.copy()
    grad[n, targets] -= 1
    return float(loss), grad / len(targets)


class Adam:
    """The optimiser of Kingma and Ba 2014 (arXiv 1412.6980), algorithm 1."""

    def __init__(self, parameters: Parameters, beta1=0.9, beta2=0.98) -> None:
        self.beta1, self.beta2, self.steps = beta1, beta2, 0
        self.mean = {name: np.zeros_like(p) for name, p in parameters.items()}
        self.square = {name: np.zeros_like(p) for name, p in parameters.items()}

    def step(self, parameters: Parameters, grads: Parameters, rate: float) -> None:
        """Move every parameter, in place, against its gradient."""
        self.steps += 1
        for name, grad in grads.items():
            mean, square = self.mean[name], self.square[name]
            mean += (1 - self.beta1) * (grad - mean)
            square += (1 - self.beta2) * (grad * grad - square)
            corrected = mean / (1 - self.beta1**self.steps)
            root = np.sqrt(square / (1 - self.beta2**self.steps)) + 1e-8
            parameters[name] -= rate * corrected / root


def warm_up_and_cosine(step: int, steps: int, highest: float, warm_up=30) -> float:
    """Return the learning rate of a step: up in a line, down to a tenth in a cosine."""
    cosine = 0.55 + 0.45 * np.cos(np.pi * step / steps)
    return highest * min(1.0, step / warm_up) * cosine


# --- the pronoun (prologue) --------------------------------------------------


@dataclass(frozen=True)
class Sentences:
    """A batch of sentences of the little grammar, as word indices.

    ``words`` is (n, T); the other arrays are (n,): where the first and second
    name, the pronoun and the reason stand, and whether the second name is meant.
    """

    words: np.ndarray
    first: np.ndarray
    second: np.ndarray
    pronoun: np.ndarray
    reason: np.ndarray
    means_second: np.ndarray

    @property
    def answers(self) -> np.ndarray:
        """The word that the pronoun stands for, (n,)."""
        places = np.where(self.means_second, self.second, self.first)
        return self.words[np.arange(len(places)), places]


class PronounGrammar:
    """[opening] NAME action NAME because he was REASON.

    The reason alone decides whom the pronoun means: half of the reasons fit the
    giver, half the receiver. ``known`` names are for training; ``unseen`` names
    never occur in it.
    """

    LENGTH = 14

    def __init__(self, rng: np.random.Generator, known: int = 80) -> None:
        text = json.loads((_DATA / "pronoun.json").read_text("utf-8"))
        self.openings, self.actions = text["openings"], text["actions"]
        self.giver = text["reasons_of_the_giver"]
        self.receiver = text["reasons_of_the_receiver"]
        names = [str(name) for name in rng.permutation(text["names"])]
        self.known, self.unseen = names[:known], names[known:]
        plain = {"because", "he", "was", *self.giver, *self.receiver}
        plain.update(word for group in self.openings + self.actions for word in group)
        self.plain_words = [".", *sorted(plain)]
        self.vocabulary = self.plain_words + names
        self.index = {word: i for i, word in enumerate(self.vocabulary)}

    def sentence(
        self, first: str, second: str, reason: str, action: int = 0, opening: int = 0
    ) -> list[str]:
        """Return the words of one sentence, filled up with full stops."""
        words = [*self.openings[opening], first, *self.actions[action], second]
        words += ["because", "he", "was", reason]
        return words + ["."] * (self.LENGTH - len(words))

    def batch(self, sentences: list[list[str]]) -> Sentences:
        """Return sentences that ``sentence`` made, as indices."""
        names = {*self.known, *self.unseen}
        places = [[i for i, w in enumerate(s) if w in names] for s in sentences]
        pronoun = np.array([s.index("he") for s in sentences])
        first, second = np.array(places).T
        reasons = [s[p + 2] for s, p in zip(sentences, pronoun, strict=True)]
        return Sentences(
            words=np.array([[self.index[w] for w in s] for s in sentences]),
            first=first,
            second=second,
            pronoun=pronoun,
            reason=pronoun + 2,
            means_second=np.array([reason in self.receiver for reason in reasons]),
        )

    def draw(self, rng: np.random.Generator, n: int, names: list[str]) -> Sentences:
        """Draw ``n`` sentences about two different people of ``names``."""
        reasons = self.giver + self.receiver
        return self.batch(
            [
                self.sentence(
                    *(str(name) for name in rng.choice(names, 2, replace=False)),
                    reason=reasons[rng.integers(len(reasons))],
                    action=int(rng.integers(len(self.actions))),
                    opening=int(rng.integers(len(self.openings))),
                )
                for _ in range(n)
            ]
        )


class PronounReader:
    """The smallest model that can resolve the pronoun: it looks once or twice.

    Only the pronoun asks. In the first look it may find the reason; what it
    takes home is added to its own vector, and with that it looks again. The
    answer is the mixture of word vectors that the last look brings, compared
    with every word of the vocabulary. The vectors of names are random and never
    trained, so that an unseen name is as good as a known one.
    """

    def __init__(
        self, grammar: PronounGrammar, rng: np.random.Generator, looks=2, d=32
    ) -> None:
        self.looks, self.d = looks, d
        self.plain = len(grammar.plain_words)

        def matrix() -> np.ndarray:
            return rng.standard_normal((d, d)) / np.sqrt(d)

        vectors = rng.standard_normal((len(grammar.vocabulary), d))
        self.names = vectors[self.plain :]
        self.parameters: Parameters = {
            "words": vectors[: self.plain].copy(),
            "positions": 0.5 * rng.standard_normal((grammar.LENGTH, d)),
        }
        for look in range(looks):
            self.parameters[f"W_Q{look}"] = matrix()
            self.parameters[f"W_K{look}"] = matrix()
            if look < looks - 1:
                self.parameters[f"W_V{look}"] = matrix()

    def _forward(self, batch: Sentences) -> tuple[np.ndarray, dict]:
        p, n = self.parameters, np.arange(len(batch.words))
        vectors = np.concatenate([p["words"], self.names])  # (vocabulary, d)
        values = vectors[batch.words]  # (n, T, d)
        before = values + p["positions"]
        x = unit_rms(before)
        u = x[n, batch.pronoun]  # (n, d)
        kept: dict = {"vectors": vectors, "values": values, "before": before, "x": x}
        for look in range(self.looks):
            asking = unit_rms(u)
            q = asking @ p[f"W_Q{look}"]  # (n, d)
            k = x @ p[f"W_K{look}"]  # (n, T, d)
            weights = softmax(np.einsum("nd,ntd->nt", q, k) / np.sqrt(self.d))
            taken = np.einsum("nt,ntd->nd", weights, values)
            kept[look] = (u, asking, q, k, weights, taken)
            if look < self.looks - 1:
                u = u + taken @ p[f"W_V{look}"]
        return taken @ vectors.T, kept

    def loss(self, batch: Sentences) -> tuple[float, Parameters]:
        """Return the loss on a batch and its gradient for every parameter."""
        logits, kept = self._forward(batch)
        loss, grad_logits = cross_entropy(logits, batch.answers)
        p, n = self.parameters, np.arange(len(batch.words))
        x, values = kept["x"], kept["values"]
        grads = {name: np.zeros_like(value) for name, value in p.items()}
        grad_taken = grad_logits @ kept["vectors"]
        grad_vectors = grad_logits.T @ kept[self.looks - 1][-1]
        grad_x, grad_values = np.zeros_like(x), np.zeros_like(values)
        grad_u = np.zeros((len(n), self.d))
        for look in reversed(range(self.looks)):
            u, asking, q, k, weights, taken = kept[look]
            if look < self.looks - 1:
                grads[f"W_V{look}"] = taken.T @ grad_u
                grad_taken = grad_u @ p[f"W_V{look}"].T
            grad_weights = np.einsum("nd,ntd->nt", grad_taken, values)
            grad_values += np.einsum("nt,nd->ntd", weights, grad_taken)
            grad_scores = softmax_backward(weights, grad_weights) / np.sqrt(self.d)
            grad_q = np.einsum("nt,ntd->nd", grad_scores, k)
            grad_k = np.einsum("nt,nd->ntd", grad_scores, q)
            grads[f"W_Q{look}"] = asking.T @ grad_q
            grads[f"W_K{look}"] = np.einsum("ntd,nte->de", x, grad_k)
            grad_x += grad_k @ p[f"W_K{look}"].T
            grad_u = grad_u + unit_rms_backward(u, grad_q @ p[f"W_Q{look}"].T)
        grad_x[n, batch.pronoun] += grad_u
        grad_before = unit_rms_backward(kept["before"], grad_x)
        grads["positions"] = grad_before.sum(axis=0)
        np.add.at(grad_vectors, batch.words, grad_values + grad_before)
        grads["words"] = grad_vectors[: self.plain]
        return loss, grads

    def attention(self, batch: Sentences) -> list[np.ndarray]:
        """Return the pronoun's weights in each look, (n, T) each."""
        _, kept = self._forward(batch)
        return [kept[look][4] for look in range(self.looks)]

    def right(self, batch: Sentences) -> np.ndarray:
        """Say for each sentence whether, of the two names, the right one wins, (n,)."""
        logits, _ = self._forward(batch)
        n = np.arange(len(batch.words))
        first, second = (
            logits[n, batch.words[n, place]] for place in (batch.first, batch.second)
        )
        return (second > first) == batch.means_second


def train_pronoun_reader(
    seed: int, looks: int = 2, steps: int = 600, batch: int = 64
) -> tuple[PronounGrammar, PronounReader, list[float]]:
    """Train a reader on sentences about known names.

    Returns:
        The grammar, with its unseen names; the reader; the loss at each step.
    """
    grammar = PronounGrammar(np.random.default_rng(seed))
    rng = np.random.default_rng(seed + 100)
    reader = PronounReader(grammar, rng, looks)
    optimiser = Adam(reader.parameters)
    losses = []
    with one_thread():
        for step in range(1, steps + 1):
            loss, grads = reader.loss(grammar.draw(rng, batch, grammar.known))
            rate = warm_up_and_cosine(step, steps, highest=1e-2)
            optimiser.step(reader.parameters, grads, rate)
            losses.append(loss)
    return grammar, reader, losses
