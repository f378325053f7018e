"""Small trainings: hand-written backward passes, and the optimiser.

What has a ``_backward`` beside it takes the gradient of the loss with respect
to a function's output and returns that with respect to its inputs. Tests hold
each of them to finite differences.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attnbook import model, ops
from attnbook.depth import gelu_slope, rms_norm_backward
from attnbook.ops import softmax

try:
    from threadpoolctl import threadpool_limits
except ModuleNotFoundError:  # in the browser, where there is one thread anyway
    threadpool_limits = None

_DATA = Path(__file__).parent / "data"

Parameters = dict[str, np.ndarray]


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold BLAS to one thread: small matrices lose time on more."""
    if threadpool_limits is None:
        yield
        return
    with threadpool_limits(limits=1, user_api="blas"):
        yield


# --- pieces ------------------------------------------------------------------


def unit_rms(x: np.ndarray) -> np.ndarray:
    """Divide each vector by the root of its mean square, (..., d) -> (..., d)."""
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5)


def unit_rms_backward(x: np.ndarray, grad: np.ndarray) -> np.ndarray:
    """Return the gradient of ``unit_rms`` with respect to ``x``."""
    return rms_norm_backward(x, 1, grad)


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


# --- the three families ------------------------------------------------------

Backward = Callable[[np.ndarray], np.ndarray]


def gelu_backward(x: np.ndarray, grad: np.ndarray) -> np.ndarray:
    """Return the gradient of ``ops.gelu`` with respect to ``x``."""
    return grad * gelu_slope(x)


class Pass:
    """One pass through a family of ``attnbook.model``, and the way back.

    Each method returns what it computes and the function that takes the gradient
    back through it; on the way back, gradients of parameters are added to
    ``grads``. ``multiply_adds`` counts those of all products of matrices, both
    ways. RMSNorm, the plain feed-forward, learned positions and as many key/value
    heads as query heads are all it knows.
    """

    def __init__(self, family: model.EncoderOnly) -> None:
        self.parameters, self.heads = family.parameters, family.heads
        self.layers = family.layers
        self.grads = {name: np.zeros_like(p) for name, p in self.parameters.items()}
        self.multiply_adds = 0

    def _times(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        out = a @ b
        self.multiply_adds += out.size * a.shape[-1]
        return out

    def embed(self, ids: np.ndarray) -> tuple[np.ndarray, Callable]:
        """Return vectors of tokens at their positions, (n, T) -> (n, T, D)."""
        T = ids.shape[1]

        def backward(grad: np.ndarray) -> None:
            np.add.at(self.grads["tokens"], ids, grad)
            self.grads["positions"][:T] += grad.sum(axis=0)

        p = self.parameters
        return p["tokens"][ids] + p["positions"][:T], backward

    def linear(self, x: np.ndarray, name: str) -> tuple[np.ndarray, Backward]:
        """Multiply by a matrix, (..., D) -> (..., F)."""
        w, rows = self.parameters[name], x.reshape(-1, x.shape[-1])

        def backward(grad: np.ndarray) -> np.ndarray:
            flat = grad.reshape(-1, grad.shape[-1])
            self.grads[name] += self._times(rows.T, flat)
            return self._times(flat, w.T).reshape(x.shape)

        return self._times(rows, w).reshape(*x.shape[:-1], -1), backward

    def norm(self, x: np.ndarray, name: str) -> tuple[np.ndarray, Backward]:
        """Apply RMSNorm, (..., D) -> (..., D)."""
        gain, unit = self.parameters[f"{name}.gain"], unit_rms(x)

        def backward(grad: np.ndarray) -> np.ndarray:
            self.grads[f"{name}.gain"] += (grad * unit).sum(axis=(0, 1))
            return unit_rms_backward(x, grad * gain)

        return unit * gain, backward

    def attention(
        self, x: np.ndarray, memory: np.ndarray, name: str, allow: np.ndarray | None
    ) -> tuple[np.ndarray, Callable]:
        """Let x look at the memory; the way back gives the gradients of both."""
        flat_q, back_q = self.linear(x, f"{name}.w_q")
        flat_k, back_k = self.linear(memory, f"{name}.w_k")
        flat_v, back_v = self.linear(memory, f"{name}.w_v")
        q, k, v = (ops.split_heads(a, self.heads) for a in (flat_q, flat_k, flat_v))
        scale = q.shape[-1] ** -0.5
        scores = self._times(q, k.swapaxes(-1, -2)) * scale  # (n, H, T, S)
        if allow is not None:
            scores = np.where(allow, scores, scores.dtype.type(-np.inf))
        weights = softmax(scores)
        mixed = ops.merge_heads(self._times(weights, v))
        out, back_o = self.linear(mixed, f"{name}.w_o")

        def backward(grad: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            grad_mixed = ops.split_heads(back_o(grad), self.heads)
            grad_v = self._times(weights.swapaxes(-1, -2), grad_mixed)
            grad_weights = self._times(grad_mixed, v.swapaxes(-1, -2))
            # A hidden score has the weight 0, and so no gradient.
            grad_scores = softmax_backward(weights, grad_weights) * scale
            grad_q = self._times(grad_scores, k)
            grad_k = self._times(grad_scores.swapaxes(-1, -2), q)
            to_memory = back_k(ops.merge_heads(grad_k))
            to_memory = to_memory + back_v(ops.merge_heads(grad_v))
            return back_q(ops.merge_heads(grad_q)), to_memory

        return out, backward

    def feed_forward(self, x: np.ndarray, name: str) -> tuple[np.ndarray, Backward]:
        """Let each token think for itself, (..., D) -> (..., D)."""
        p = self.parameters
        product, back_in = self.linear(x, f"{name}.w_in")
        inner = product + p[f"{name}.b_in"]
        out, back_out = self.linear(ops.gelu(inner), f"{name}.w_out")

        def backward(grad: np.ndarray) -> np.ndarray:
            self.grads[f"{name}.b_out"] += grad.sum(axis=(0, 1))
            grad_inner = gelu_backward(inner, back_out(grad))
            self.grads[f"{name}.b_in"] += grad_inner.sum(axis=(0, 1))
            return back_in(grad_inner)

        return out + p[f"{name}.b_out"], backward

    def stack(
        self,
        stack: str,
        x: np.ndarray,
        allow: np.ndarray | None,
        memory: np.ndarray | None = None,
    ) -> tuple[np.ndarray, Callable]:
        """Run a whole stack; the way back gives the gradients of x and memory."""
        ways = []
        for layer in range(self.layers(stack)):
            for part in ("attention", "cross", "feed_forward"):
                if part == "cross" and memory is None:
                    continue
                name = f"{stack}.{layer}.{part}"
                h, back_norm = self.norm(x, name)
                if part == "feed_forward":
                    out, back = self.feed_forward(h, name)
                elif part == "cross":
                    out, back = self.attention(h, memory, name, None)
                else:
                    out, back = self.attention(h, h, name, allow)
                x = x + out
                ways.append((part, back_norm, back))
        out, back_last = self.norm(x, f"{stack}.norm")

        def backward(grad: np.ndarray) -> tuple[np.ndarray, np.ndarray | float]:
            grad, grad_memory = back_last(grad), 0.0
            for part, back_norm, back in reversed(ways):
                into = back(grad)
                if part == "cross":
                    grad_memory = grad_memory + into[1]
                    into = into[0]
                elif part == "attention":
                    into = into[0] + into[1]
                grad = grad + back_norm(into)
            return grad, grad_memory

        return out, backward

    def answers(
        self, x: np.ndarray, asked: np.ndarray, targets: np.ndarray
    ) -> tuple[float, Callable]:
        """Return the mean loss at the places that are asked, (n, T) boolean."""
        logits, back = self.linear(x[asked], "unembedding")
        loss, grad_logits = cross_entropy(logits, targets[asked])

        def backward() -> np.ndarray:
            grad = np.zeros_like(x)
            grad[asked] = back(grad_logits)
            return grad

        return loss, backward


def family_loss(
    family: model.EncoderOnly | model.DecoderOnly | model.EncoderDecoder,
    inputs: np.ndarray,
    asked: np.ndarray,
    targets: np.ndarray,
    source: np.ndarray | None = None,
) -> tuple[float, Pass]:
    """Return the mean loss of a batch and the pass, with its gradients.

    Args:
        family: which one it is decides about masks and stacks.
        inputs: what the stack that answers is given, (n, T), integer.
        asked: where a loss is taken, (n, T), boolean, True at least once.
        targets: the right answer at each place, (n, T), integer.
        source: what an encoder–decoder reads, (n, S), integer.
    """
    run, name = Pass(family), family.STACKS[-1]
    T = inputs.shape[1]
    allow = ops.causal_mask(T) if name == "decoder" else None
    memory = None
    if source is not None:
        read, back_source = run.embed(source)
        memory, back_encoder = run.stack("encoder", read, None)
    x, back_inputs = run.embed(inputs)
    x, back_stack = run.stack(name, x, allow, memory)
    loss, back_answers = run.answers(x, asked, targets)
    grad, grad_memory = back_stack(back_answers())
    back_inputs(grad)
    if source is not None:
        back_source(back_encoder(grad_memory)[0])
    return loss, run


class MarkovChain:
    """Texts in which a token decides about a later one, up to one surprise in ten.

    Each token has a usual successor, which follows it with probability 0.9, and
    another, which follows it otherwise. With ``back`` = 1 the successor comes next;
    with 2 it comes after one more token, so that the token before says nothing
    and a model has to look past it.
    """

    TOKENS, LENGTH, USUAL = 32, 16, 0.9
    MASK, START = 32, 33  # two signs that occur in no text
    VOCABULARY = 34

    def __init__(self, rng: np.random.Generator, back: int = 1) -> None:
        self.back = back
        pairs = [rng.choice(self.TOKENS, 2, replace=False) for _ in range(self.TOKENS)]
        self.successors = np.array(pairs)  # (TOKENS, 2), the usual one first

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Draw ``n`` texts, (n, LENGTH)."""
        texts = np.empty((n, self.LENGTH), int)
        texts[:, : self.back] = rng.integers(self.TOKENS, size=(n, self.back))
        for t in range(self.back, self.LENGTH):
            other = rng.random(n) >= self.USUAL
            texts[:, t] = self.successors[texts[:, t - self.back], other.astype(int)]
        return texts

    def usual(self, texts: np.ndarray, place: int) -> float:
        """Return how often the usual successor stands at a place.

        Whoever knows the chain and sees only what comes before is right so often.
        """
        expected = self.successors[texts[:, place - self.back], 0]
        return float((expected == texts[:, place]).mean())


@dataclass(frozen=True)
class Objective:
    """What a family is asked while it learns.

    ``hidden``: the share of the input tokens that a mask sign replaces; ``asked``:
    the share of places at which a loss is taken. ``in_place``: whether the token
    that stands at a place is asked for, and not the next one; then a place is
    hidden where it is asked. ``last``: whether only the last token of a text is
    asked for. ``looks``: whether attention brings anything; else its output is
    held at 0.
    """

    family: type
    asked: float = 1.0
    hidden: float = 0.0
    in_place: bool = False
    last: bool = False
    looks: bool = True


def _masked(share: float, family: type = model.EncoderOnly, **more) -> Objective:
    return Objective(family, share, share, in_place=True, **more)


OBJECTIVES = {
    "decoder": Objective(model.DecoderOnly),
    "encoder_decoder": Objective(model.EncoderDecoder),
    "masked_15": _masked(0.15),
    "masked_40": _masked(0.40),
    "decoder_asked_15": Objective(model.DecoderOnly, asked=0.15),
    "decoder_hidden_15": Objective(model.DecoderOnly, hidden=0.15),
    "decoder_no_look": Objective(model.DecoderOnly, looks=False),
    "decoder_last": Objective(model.DecoderOnly, last=True),
    "masked_last": _masked(1.0, last=True),
    # The stack and the mask of a decoder, with the question of an encoder.
    "masked_15_causal": _masked(0.15, model.DecoderOnly),
}


def hide_tokens(
    ids: np.ndarray,
    draws: np.ndarray,
    share: float,
    mask_sign: int,
    padding: int | None = None,
) -> np.ndarray:
    """Cover tokens for a masked model, and keep what stood there as its answers.

    This is the masking of BERT (Devlin et al. 2018, section 3.1) without its
    refinement of leaving or exchanging some of the chosen tokens.

    Args:
        ids: tokens, (..., T), integer.
        draws: random numbers from 0 to below 1, (..., T); a token is chosen where
            its number is less than ``share``.
        share: of the tokens that are covered, from 0 to 1.
        mask_sign: the token that covers.
        padding: the token that fills up texts and is never chosen; None if there
            is none.

    Returns:
        (2, ..., T): the inputs, and the answers with −1 where nothing is asked.

    Raises:
        TypeError: if ``ids`` is not integer.
        ValueError: if ``draws`` has another shape, or ``share`` is no share.
    """
    if ids.dtype.kind not in "iu":
        raise TypeError(f"ids must be whole numbers; it has dtype {ids.dtype}")
    if draws.shape != ids.shape:
        raise ValueError(f"draws has shape {draws.shape}; it needs {ids.shape}")
    if not 0 <= share <= 1:
        raise ValueError(f"share is {share}; it must be from 0 to 1")
    chosen = draws < share
    if padding is not None:
        chosen &= ids != padding
    return np.stack([np.where(chosen, mask_sign, ids), np.where(chosen, ids, -1)])


def question(
    objective: Objective, texts: np.ndarray, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Turn texts into what ``family_loss`` is given."""
    chain, n = MarkovChain, len(texts)
    if objective.family is model.EncoderDecoder:
        half = chain.LENGTH // 2
        source, targets = texts[:, :half], texts[:, half:]
        start = np.full((n, 1), chain.START)
        inputs = np.concatenate([start, targets[:, :-1]], axis=1)
        asked = np.ones(targets.shape, bool)
        return dict(inputs=inputs, asked=asked, targets=targets, source=source)
    inputs = targets = texts
    if not objective.in_place:
        inputs, targets = texts[:, :-1], texts[:, 1:]
    draws = rng.random(targets.shape)
    if objective.last:
        draws[:, :-1] = 1  # never chosen
    asked = draws < objective.asked
    if objective.in_place:
        inputs, _ = hide_tokens(texts, draws, objective.asked, chain.MASK)
    elif objective.hidden:
        draws = rng.random(inputs.shape)
        inputs, _ = hide_tokens(inputs, draws, objective.hidden, chain.MASK)
    if not asked.any():
        raise ValueError("texts: none of them is asked anything; draw more")
    return dict(inputs=inputs, asked=asked, targets=targets)


def chain_accuracy(
    family, texts: np.ndarray, in_place: bool | None = None
) -> dict[str, float | None]:
    """Return how often the best guess is right, at the last token and at a middle one.

    ``last``: from all tokens before it. ``middle``: from all other tokens for an
    encoder, from those before it for a decoder; an encoder–decoder, which reads
    the first half and writes the second, is not asked (None). ``in_place``: whether
    the token is covered and asked for where it stands; None for encoders only.
    """
    if in_place is None:
        in_place = isinstance(family, model.EncoderOnly)
    chain, half = MarkovChain, MarkovChain.LENGTH // 2

    def right(logits: np.ndarray, place: int) -> float:
        return float((logits.argmax(axis=-1) == texts[:, place]).mean())

    if isinstance(family, model.EncoderDecoder):
        start = np.full((len(texts), 1), chain.START)
        written = np.concatenate([start, texts[:, half:-1]], axis=1)
        logits = family.logits(texts[:, :half], written)
        return {"last": right(logits[:, -1], -1), "middle": None}
    if not in_place:
        logits = family.logits(texts[:, :-1])
        return {
            "last": right(logits[:, -1], -1),
            "middle": right(logits[:, half - 1], half),
        }
    found = {}
    for name, place in (("last", chain.LENGTH - 1), ("middle", half)):
        covered = texts.copy()
        covered[:, place] = chain.MASK
        found[name] = right(family.logits(covered)[:, place], place)
    return found


def chain_and_test(back: int = 1) -> tuple[MarkovChain, np.ndarray]:
    """Return the chain of the trainings and the 500 texts of their tests."""
    chain = MarkovChain(np.random.default_rng(1), back)
    return chain, chain.draw(np.random.default_rng(99), 500)


def train_family(
    name: str,
    seed: int,
    budget: float,
    batch: int = 64,
    every: int = 10,
    threshold: float = 1.0,
    back: int = 1,
    rate: float = 4e-3,
) -> tuple[model.EncoderOnly, list[dict]]:
    """Train a tiny family on a chain until ``budget`` multiply–adds are spent.

    Args:
        name: of ``OBJECTIVES``.
        seed: of the first parameters and of the texts.
        budget: multiply–adds of products of matrices, forward and backward.
        batch: texts in a step.
        every: steps between two tests.
        threshold: stop early once the last token is right this often.
        back: how far back the token stands that decides, in the ``MarkovChain``.
        rate: the learning rate, constant after 50 steps.

    Returns:
        The model, and after each test ``step``, ``multiply_adds``, ``signals``
        (losses taken so far) and what ``chain_accuracy`` found on 500 texts.
    """
    objective = OBJECTIVES[name]
    chain, test = chain_and_test(back)
    rng = np.random.default_rng(seed)
    family = objective.family.random(
        rng, chain.VOCABULARY, chain.LENGTH, heads=1, dtype=np.float32
    )
    silent = []
    if not objective.looks:  # what attention brings is multiplied by 0, for ever
        silent = [n for n in family.parameters if n.endswith("attention.w_o")]
    for matrix in silent:
        family.parameters[matrix][:] = 0
    optimiser, curve = Adam(family.parameters), []
    step = spent = signals = 0
    with one_thread():
        while spent < budget:
            step += 1
            asked = question(objective, chain.draw(rng, batch), rng)
            _, run = family_loss(family, **asked)
            for matrix in silent:
                run.grads[matrix][:] = 0
            optimiser.step(family.parameters, run.grads, rate * min(1, step / 50))
            spent += run.multiply_adds
            signals += int(asked["asked"].sum())
            if step % every and spent < budget:
                continue
            point = {"step": step, "multiply_adds": spent, "signals": signals}
            curve.append(point | chain_accuracy(family, test, objective.in_place))
            if curve[-1]["last"] >= threshold:
                break
    return family, curve


# --- a model that writes (the chapter on building one) -----------------------


class Letters:
    """The letters of a text, in the order of the alphabet, as a vocabulary."""

    def __init__(self, text: str) -> None:
        self.letters = "".join(sorted(set(text)))
        self._index = {letter: i for i, letter in enumerate(self.letters)}

    def __len__(self) -> int:
        return len(self.letters)

    def encode(self, text: str) -> np.ndarray:
        """Return the number of each letter, (T,); all must be in the vocabulary."""
        unknown = sorted(set(text) - set(self.letters))
        if unknown:
            raise ValueError(f"text has {unknown[0]!r}, which is not in the vocabulary")
        return np.array([self._index[letter] for letter in text], int)

    def decode(self, ids: np.ndarray) -> str:
        """Return the text that the numbers stand for."""
        return "".join(self.letters[i] for i in ids)


def alice() -> str:
    """Return *Alice's Adventures in Wonderland* (Carroll 1865) in small letters.

    Chapter headings, quotation marks, brackets and underscores are left out, and
    each paragraph is one line. The book is in the public domain.
    """
    return (_DATA / "alice.txt").read_text("utf-8")


def held_out(ids: np.ndarray, share: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Cut a text in two: what is learned from, and its end, which is not."""
    cut = round(len(ids) * (1 - share))
    return ids[:cut], ids[cut:]


def pieces(ids: np.ndarray, starts: np.ndarray, T: int) -> dict[str, np.ndarray]:
    """Return pieces of T tokens and, for each token, the one after it, (n, T)."""
    windows = ids[starts[:, None] + np.arange(T + 1)]
    inputs, targets = windows[:, :-1], windows[:, 1:]
    return dict(inputs=inputs, targets=targets, asked=np.ones(inputs.shape, bool))


def loss_on(writer: model.DecoderOnly, ids: np.ndarray) -> float:
    """Return the mean loss of a model on a text, cut into pieces of its length.

    The first tokens of each piece see little before them, as in training.
    """
    T = len(writer.parameters["positions"])
    cut = pieces(ids, np.arange(0, len(ids) - T, T), T)
    logits = writer.logits(cut["inputs"])
    rows = logits.reshape(-1, logits.shape[-1])
    return cross_entropy(rows, cut["targets"].ravel())[0]


def counting_loss(ids: np.ndarray, test: np.ndarray, words: int, order: int) -> float:
    """Return the mean loss of a table of counts, in nats: no model, a baseline.

    What followed the last ``order − 1`` tokens is counted in ``ids``. A context
    that is rare there is mixed with the next shorter one, down to every token alike:
    ``p = (count + kinds · p_shorter) / (total + kinds)``, where ``kinds`` is how many
    different tokens followed.

    Witten and Bell 1991, method C, mixed as in interpolated smoothing.
    """
    learned, asked = ids.tolist(), test.tolist()
    tables = []
    for n in range(order):
        table: dict[tuple, Counter] = defaultdict(Counter)
        for i in range(n, len(learned)):
            table[tuple(learned[i - n : i])][learned[i]] += 1
        tables.append({c: (k, sum(k.values()), len(k)) for c, k in table.items()})
    total = 0.0
    for i in range(order - 1, len(asked)):
        p = 1 / words
        for n, table in enumerate(tables):
            found = table.get(tuple(asked[i - n : i]))
            if found is None:
                break
            counts, times, kinds = found
            p = (counts[asked[i]] + kinds * p) / (times + kinds)
        total -= np.log(p)
    return float(total / (len(asked) - order + 1))


WRITER = {"length": 48, "width": 64, "layers": 2, "heads": 4}


def new_writer(seed: int, words: int) -> tuple[model.DecoderOnly, np.random.Generator]:
    """Return an untrained model of the chapter's sizes, and its generator."""
    rng = np.random.default_rng(seed)
    return model.DecoderOnly.random(rng, words, **WRITER, dtype=np.float32), rng


def train_writer(
    seed: int, ids: np.ndarray, words: int, steps: int = 700, batch: int = 16
) -> tuple[model.DecoderOnly, list[float]]:
    """Train a small decoder to say which token comes next in a text.

    Returns:
        The model, and the loss at each step.
    """
    writer, rng = new_writer(seed, words)
    optimiser, losses, T = Adam(writer.parameters), [], WRITER["length"]
    with one_thread():
        for step in range(1, steps + 1):
            starts = rng.integers(len(ids) - T, size=batch)
            loss, run = family_loss(writer, **pieces(ids, starts, T))
            rate = warm_up_and_cosine(step, steps, highest=1e-2)
            optimiser.step(writer.parameters, run.grads, rate)
            losses.append(loss)
    return writer, losses


def recorded_writer() -> model.DecoderOnly:
    """Return the model of ``train_writer(0, …)`` as it was recorded, in float32.

    Training amplifies the last bits in which machines differ; what is written with
    these numbers is the same everywhere.
    """
    with np.load(_DATA / "small_writer.npz") as kept:
        parameters = {name: kept[name].astype(np.float32) for name in kept.files}
    return model.DecoderOnly(parameters, heads=WRITER["heads"])


def without_head(writer: model.DecoderOnly, layer: int, head: int) -> model.DecoderOnly:
    """Return the model with one head silenced: what it brings home is not added."""
    name = f"decoder.{layer}.attention.w_o"
    w_o = writer.parameters[name].copy()
    d = len(w_o) // writer.heads
    w_o[head * d : (head + 1) * d] = 0
    return model.DecoderOnly({**writer.parameters, name: w_o}, heads=writer.heads)


def weight_by_distance(weights: np.ndarray, farthest: int = 8) -> np.ndarray:
    """Return how much is looked 0, 1, … ``farthest`` places back, on average.

    Args:
        weights: (..., H, T, T), causal.

    Returns:
        (H, farthest + 1), over all leading axes and all places that have so many
        before them.
    """
    T = weights.shape[-1]
    t = np.arange(farthest, T)
    back = [weights[..., t, t - n].mean(axis=-1) for n in range(farthest + 1)]
    by_head = np.stack(back, axis=-1)  # (..., H, farthest + 1)
    return by_head.reshape(-1, *by_head.shape[-2:]).mean(axis=0)
