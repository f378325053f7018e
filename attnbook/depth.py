"""How large signal and gradient are in a deep stack, layer by layer.

What has a ``_backward`` takes the inputs of the function of that name in
``attnbook.ops`` and the gradient with respect to its output, and returns the
gradient with respect to ``x``. Tests hold each to finite differences; the
chapter on residual connections and norms derives them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnbook import ops

NORMS = ("none", "pre", "post")
KINDS = ("layer", "rms")
EPS = 1e-5


def layer_norm_backward(
    x: np.ndarray, gain: np.ndarray, grad: np.ndarray, eps: float = EPS
) -> np.ndarray:
    """Return the gradient of ``layer_norm`` with respect to ``x``, (..., D)."""
    centred = x - x.mean(axis=-1, keepdims=True)
    size = np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + eps)
    through = _without(centred / size, grad * gain) / size
    return through - through.mean(axis=-1, keepdims=True)


def rms_norm_backward(
    x: np.ndarray, gain: np.ndarray | float, grad: np.ndarray, eps: float = EPS
) -> np.ndarray:
    """Return the gradient of ``rms_norm`` with respect to ``x``, (..., D)."""
    size = np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)
    return _without(x / size, grad * gain) / size


def _without(unit: np.ndarray, grad: np.ndarray) -> np.ndarray:
    """Take from ``grad`` its part along ``unit``: a norm undoes what goes there."""
    return grad - unit * np.mean(unit * grad, axis=-1, keepdims=True)


def gelu_slope(x: np.ndarray) -> np.ndarray:
    """Return the derivative of ``gelu`` at each number of ``x``."""
    root = (2 / np.pi) ** 0.5
    t = np.tanh(root * x * (1 + 0.044715 * x * x))
    inner = root * (1 + 3 * 0.044715 * x * x)
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner


def feed_forward_backward(
    x: np.ndarray,
    w_in: np.ndarray,
    b_in: np.ndarray,
    w_out: np.ndarray,
    grad: np.ndarray,
) -> np.ndarray:
    """Return the gradient of ``feed_forward`` with respect to ``x``, (..., D)."""
    return (grad @ w_out.T * gelu_slope(x @ w_in + b_in)) @ w_in.T


@dataclass(frozen=True)
class Sizes:
    """What ``stack_sizes`` measures; entry l is after l layers, (N + 1,) each.

    Attributes:
        signal: root mean square of the numbers in all tokens.
        gradient: the same of the gradient with respect to them, as a multiple
            of what it is at the output.
        likeness: mean cosine between two different tokens.
    """

    signal: np.ndarray
    gradient: np.ndarray
    likeness: np.ndarray


def random_layers(
    rng: np.random.Generator, layers: int, D: int, F: int, gain: float = 1.0
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Draw (w_in, w_out) of every layer, normal with variance 1 / (rows).

    ``w_out`` is multiplied by ``gain``.
    """
    return [
        (
            rng.standard_normal((D, F)) / D**0.5,
            rng.standard_normal((F, D)) / F**0.5 * gain,
        )
        for _ in range(layers)
    ]


def stack_sizes(
    x: np.ndarray,
    layers: Sequence[tuple[np.ndarray, np.ndarray]],
    grad: np.ndarray,
    residual: bool = True,
    norm: str = "pre",
    kind: str = "rms",
) -> Sizes:
    """Send ``x`` up a stack of feed-forward layers and ``grad`` down again.

    Args:
        x: the tokens, (T, D) with T at least 2, float.
        layers: (w_in, w_out) of each, (D, F) and (F, D); biases are 0.
        grad: the gradient with respect to the last layer's output, (T, D).
        residual: whether a layer adds to its input or replaces it.
        norm: "none"; "pre", of what the layer reads; "post", of what it leaves.
        kind: "layer" or "rms"; gains are 1 and biases 0.

    Returns:
        The sizes at the input and after each layer.

    Raises:
        ValueError: ``norm`` or ``kind`` is none of these.
    """
    if norm not in NORMS:
        raise ValueError(f"norm is {norm!r}; it must be one of {', '.join(NORMS)}")
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}; it must be one of {', '.join(KINDS)}")
    one, zero = np.ones(x.shape[-1]), np.zeros(x.shape[-1])

    def normalise(x: np.ndarray) -> np.ndarray:
        if kind == "layer":
            return ops.layer_norm(x, one, zero, EPS)
        return ops.rms_norm(x, one, EPS)

    def normalise_backward(x: np.ndarray, grad: np.ndarray) -> np.ndarray:
        backward = layer_norm_backward if kind == "layer" else rms_norm_backward
        return backward(x, one, grad, EPS)

    signals, sums = [x], []
    for w_in, w_out in layers:
        x = signals[-1]
        read = normalise(x) if norm == "pre" else x
        added = ops.gelu(read @ w_in) @ w_out
        sums.append(x + added if residual else added)
        signals.append(normalise(sums[-1]) if norm == "post" else sums[-1])

    gradients = [grad]
    for x, total, (w_in, w_out) in reversed(
        list(zip(signals, sums, layers, strict=False))
    ):
        grad = gradients[-1]
        if norm == "post":
            grad = normalise_backward(total, grad)
        read = normalise(x) if norm == "pre" else x
        through = feed_forward_backward(read, w_in, 0.0, w_out, grad)
        if norm == "pre":
            through = normalise_backward(x, through)
        gradients.append(grad + through if residual else through)
    gradients.reverse()
    return Sizes(
        signal=np.array([_rms(x) for x in signals]),
        gradient=np.array([_rms(g) for g in gradients]) / _rms(gradients[-1]),
        likeness=np.array([_likeness(x) for x in signals]),
    )


def _rms(x: np.ndarray) -> float:
    return float(np.sqrt(np.mean(x * x)))


def _likeness(x: np.ndarray) -> float:
    tokens = len(x)
    unit = x / np.linalg.norm(x, axis=-1, keepdims=True)
    return float((np.sum(unit @ unit.T) - tokens) / (tokens * (tokens - 1)))
