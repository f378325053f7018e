"""One right answer to each *implement* exercise, as a reader would write it."""

import numpy as np


def softmax(x, axis=-1):
    highest = x.max(axis=axis, keepdims=True)
    exps = np.exp(x - np.where(np.isneginf(highest), 0, highest))
    total = exps.sum(axis=axis, keepdims=True)
    return exps / np.where(total == 0, 1, total)


def attention_weights(q, k, allow=None, scale=None):
    if scale is None:
        scale = q.shape[-1] ** -0.5
    scores = q @ k.swapaxes(-1, -2) * scale
    if allow is not None:
        scores = np.where(allow, scores, -np.inf)
    return softmax(scores)


def scaled_dot_product_attention(q, k, v, allow=None, scale=None):
    if scale is None:
        scale = q.shape[-1] ** -0.5
    scores = q @ k.swapaxes(-1, -2) * scale
    if allow is not None:
        scores = np.where(allow, scores, -np.inf)
    return softmax(scores) @ v


def softmax_jacobian(weights):
    eye = np.eye(weights.shape[-1], dtype=weights.dtype)
    diagonal = weights[..., :, None] * eye
    return diagonal - weights[..., :, None] * weights[..., None, :]


SOLUTIONS = {
    function.__name__: function
    for function in (
        softmax,
        attention_weights,
        scaled_dot_product_attention,
        softmax_jacobian,
    )
}


# --- arguments to try a changed solution with -------------------------------


def _scores(rng, shape):
    x = rng.normal(size=shape) * rng.choice([1.0, 5.0, 1000.0])
    if rng.random() < 0.4:
        x[rng.random(shape) < 0.5] = -np.inf
    if rng.random() < 0.2:
        x[0] = -np.inf
    return x.astype(rng.choice(["f4", "f8"]))


def _probe_softmax(rng):
    shape = tuple(rng.integers(1, 5, size=rng.integers(1, 4)))
    axis = int(rng.integers(-len(shape), len(shape)))
    return {"x": _scores(rng, shape), "axis": axis}


def _probe_weights(rng):
    dtype = rng.choice(["f4", "f8"])
    T, S, d = rng.integers(1, 6, size=3)
    batch = tuple(rng.integers(1, 4, size=rng.integers(0, 3)))
    times = rng.choice([1.0, 1.0, 30.0, 1e6 if dtype == "f8" else 1.0])
    arguments = {
        "q": (rng.normal(size=(*batch, T, d)) * times).astype(dtype),
        "k": rng.normal(size=(*batch, S, d)).astype(dtype),
    }
    if rng.random() < 0.6:
        shapes = [(T, S), (S,), (T, 1), (*batch, T, S)]
        shape = shapes[rng.integers(len(shapes))]
        arguments["allow"] = rng.random(shape) < rng.choice([0.2, 0.6])
    if rng.random() < 0.4:
        arguments["scale"] = float(rng.choice([0.0, 0.3, 1.0, -2.0]))
    return arguments


def _probe_attention(rng):
    arguments = _probe_weights(rng)
    k = arguments["k"]
    v = rng.normal(size=(*k.shape[:-1], rng.integers(1, 6))).astype(k.dtype)
    return {"q": arguments.pop("q"), "k": arguments.pop("k"), "v": v, **arguments}


def _probe_jacobian(rng):
    shape = tuple(rng.integers(1, 5, size=rng.integers(1, 4)))
    return {"weights": softmax(_scores(rng, shape))}


PROBES = {
    "softmax": _probe_softmax,
    "attention_weights": _probe_weights,
    "scaled_dot_product_attention": _probe_attention,
    "softmax_jacobian": _probe_jacobian,
}
