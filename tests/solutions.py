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


def causal_mask(T, S=None):
    if S is None:
        S = T
    query = np.arange(T)[:, None] + (S - T)
    key = np.arange(S)
    return key <= query


def attend_with_past(q, k, v, past_k, past_v):
    all_k = np.concatenate([past_k, k], axis=-2)
    all_v = np.concatenate([past_v, v], axis=-2)
    allow = causal_mask(q.shape[-2], all_k.shape[-2])
    scores = q @ all_k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    return softmax(np.where(allow, scores, -np.inf)) @ all_v


def repeat_kv(x, n):
    groups, keys, d = x.shape[-3:]
    out = np.zeros((*x.shape[:-3], groups * n, keys, d), x.dtype)
    for h in range(groups * n):
        out[..., h, :, :] = x[..., h // n, :, :]
    return out


def multi_head_attention(x, w_q, w_k, w_v, w_o, heads, kv_heads=None, allow=None):
    if kv_heads is None:
        kv_heads = heads
    group = heads // kv_heads
    d = w_q.shape[-1] // heads
    cut, cut_kv = (*x.shape[:-1], heads, d), (*x.shape[:-1], kv_heads, d)
    q = (x @ w_q).reshape(cut).swapaxes(-2, -3)
    k = (x @ w_k).reshape(cut_kv).swapaxes(-2, -3)
    v = (x @ w_v).reshape(cut_kv).swapaxes(-2, -3)
    k, v = np.repeat(k, group, axis=-3), np.repeat(v, group, axis=-3)
    mixed = scaled_dot_product_attention(q, k, v, allow)
    merged = (*x.shape[:-1], heads * d)
    return mixed.swapaxes(-2, -3).reshape(merged) @ w_o


def cross_attention(x, memory, w_q, w_k, w_v, w_o, heads, kv_heads=None, allow=None):
    if kv_heads is None:
        kv_heads = heads
    group = heads // kv_heads
    d = w_q.shape[-1] // heads
    q = (x @ w_q).reshape((*x.shape[:-1], heads, d)).swapaxes(-2, -3)
    cut = (*memory.shape[:-1], kv_heads, d)
    k = (memory @ w_k).reshape(cut).swapaxes(-2, -3)
    v = (memory @ w_v).reshape(cut).swapaxes(-2, -3)
    k, v = np.repeat(k, group, axis=-3), np.repeat(v, group, axis=-3)
    mixed = scaled_dot_product_attention(q, k, v, allow)
    merged = (*x.shape[:-1], heads * d)
    return mixed.swapaxes(-2, -3).reshape(merged) @ w_o


def hide_tokens(ids, draws, share, mask_sign, padding=None):
    chosen = draws < share
    if padding is not None:
        chosen = chosen & (ids != padding)
    inputs = np.where(chosen, mask_sign, ids)
    answers = np.where(chosen, ids, -1)
    return np.stack([inputs, answers])


def kv_cache_bytes(tokens, layers, kv_heads, head_width, bytes_per_number=2):
    return 2 * layers * kv_heads * tokens * head_width * bytes_per_number


def layer_norm(x, gain, bias, eps=1e-5):
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = np.mean(centred * centred, axis=-1, keepdims=True)
    return centred / np.sqrt(variance + eps) * gain + bias


def rms_norm(x, gain, eps=1e-5):
    mean_square = np.mean(x * x, axis=-1, keepdims=True)
    return x / np.sqrt(mean_square + eps) * gain


def pre_norm_block(x, sublayer, norm):
    return x + sublayer(norm(x))


def level_keys(width, heads, kv_heads, head_width, ffn_width, ffn_matrices=2):
    projections = 2 * width * 2 * (heads + kv_heads) * head_width
    feed_forward = 2 * width * ffn_width * ffn_matrices
    return (projections + feed_forward) // (2 * 2 * heads * head_width) + 1


def tiled_attention(q, k, v, allow=None, scale=None, tile=128):
    (T, d), S = q.shape[-2:], k.shape[-2]
    scale = d**-0.5 if scale is None else scale
    if allow is not None:
        allow = np.broadcast_to(allow, (*q.shape[:-2], T, S))
    highest = np.full((*q.shape[:-1], 1), -np.inf, q.dtype)
    total = np.zeros_like(highest)
    mixture = np.zeros((*q.shape[:-1], v.shape[-1]), q.dtype)
    for s in range(0, S, tile):
        columns = slice(s, s + tile)
        scores = q @ k[..., columns, :].swapaxes(-1, -2) * scale
        if allow is not None:
            scores = np.where(allow[..., columns], scores, -np.inf)
        raised = np.maximum(highest, scores.max(axis=-1, keepdims=True))
        level = np.where(np.isneginf(raised), 0, raised)
        shrink, exps = np.exp(highest - level), np.exp(scores - level)
        total = total * shrink + exps.sum(axis=-1, keepdims=True)
        mixture = mixture * shrink + exps @ v[..., columns, :]
        highest = raised
    return mixture / np.where(total == 0, 1, total)


def temperature(logits, t):
    if t == 0:
        best = logits.argmax(axis=-1)
        places = np.arange(logits.shape[-1])
        return np.where(places == best[..., None], logits, -np.inf)
    return logits / t


def top_k(logits, k):
    order = np.argsort(-logits, axis=-1, kind="stable")
    kept = order[..., :k]
    out = np.full_like(logits, -np.inf)
    chosen = np.take_along_axis(logits, kept, axis=-1)
    np.put_along_axis(out, kept, chosen, axis=-1)
    return out


def top_p(logits, p):
    if p == 1:
        return logits.copy()
    order = np.argsort(-logits, axis=-1, kind="stable")
    probabilities = softmax(np.take_along_axis(logits, order, axis=-1))
    before = np.cumsum(probabilities, axis=-1) - probabilities
    rank = np.argsort(order, axis=-1)
    kept = np.take_along_axis(before < p, rank, axis=-1)
    return np.where(kept, logits, -np.inf)


SOLUTIONS = {
    function.__name__: function
    for function in (
        softmax,
        attention_weights,
        scaled_dot_product_attention,
        softmax_jacobian,
        repeat_kv,
        multi_head_attention,
        cross_attention,
        hide_tokens,
        kv_cache_bytes,
        causal_mask,
        attend_with_past,
        layer_norm,
        rms_norm,
        pre_norm_block,
        level_keys,
        tiled_attention,
        temperature,
        top_k,
        top_p,
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


def _probe_mask(rng):
    T, S = (int(n) for n in rng.integers(1, 7, size=2))
    return {"T": T} if rng.random() < 0.3 else {"T": T, "S": S}


def _probe_past(rng):
    arguments = _probe_attention(rng)
    q, v = arguments["q"], arguments["v"]
    batch, T = q.shape[:-2], q.shape[-2]
    P = rng.integers(0, 5)
    past_k, k = (
        rng.normal(size=(*batch, n, q.shape[-1])).astype(q.dtype) for n in (P, T)
    )
    past_v, v = (
        rng.normal(size=(*batch, n, v.shape[-1])).astype(q.dtype) for n in (P, T)
    )
    return {"q": q, "k": k, "v": v, "past_k": past_k, "past_v": past_v}


def _probe_repeat_kv(rng):
    shape = tuple(rng.integers(1, 4, size=rng.integers(3, 6)))
    x = rng.normal(size=shape).astype(rng.choice(["f4", "f8"]))
    return {"x": x, "n": int(rng.integers(1, 4))}


def _probe_multi_head_attention(rng):
    dtype = rng.choice(["f4", "f8"])
    T, D, G, group, d = rng.integers(1, 4, size=5)
    batch = tuple(rng.integers(1, 4, size=rng.integers(0, 3)))
    if rng.random() < 0.4:
        group = 1
    H = G * group
    shapes = {
        "x": (*batch, T, D),
        "w_q": (D, H * d),
        "w_k": (D, G * d),
        "w_v": (D, G * d),
        "w_o": (H * d, D),
    }
    arguments = {n: rng.normal(size=s).astype(dtype) for n, s in shapes.items()}
    arguments["heads"] = int(H)
    if group > 1 or rng.random() < 0.5:
        arguments["kv_heads"] = int(G)
    if rng.random() < 0.6:
        shapes = [(T, T), (H, T, T), (*batch, H, T, T)]
        shape = shapes[rng.integers(len(shapes))]
        arguments["allow"] = rng.random(shape) < rng.choice([0.3, 0.8])
    return arguments


def _probe_cross_attention(rng):
    arguments = _probe_multi_head_attention(rng)
    x, S = arguments["x"], int(rng.integers(1, 4))
    memory = rng.normal(size=(*x.shape[:-2], S, x.shape[-1])).astype(x.dtype)
    if "allow" in arguments:
        shape = (*arguments["allow"].shape[:-1], S)
        arguments["allow"] = rng.random(shape) < 0.7
    return {"x": arguments.pop("x"), "memory": memory, **arguments}


def _probe_hide_tokens(rng):
    shape = tuple(rng.integers(1, 5, size=rng.integers(1, 4)))
    share = float(rng.choice([0.0, 0.15, 0.5, 1.0]))
    draws = np.where(rng.random(shape) < 0.1, min(share, 0.9), rng.random(shape))
    arguments = {"ids": rng.integers(0, 6, shape), "draws": draws, "share": share}
    arguments["mask_sign"] = int(rng.choice([6, 9]))
    if rng.random() < 0.6:
        arguments["padding"] = int(rng.integers(0, 3))
    return arguments


def _probe_kv_cache_bytes(rng):
    names = ("tokens", "layers", "kv_heads", "head_width")
    arguments = {name: int(rng.integers(1, 30)) for name in names}
    if rng.random() < 0.6:
        arguments["bytes_per_number"] = int(rng.choice([1, 2, 4]))
    return arguments


def _probe_norm(rng):
    shape = tuple(rng.integers(1, 5, size=rng.integers(1, 4)))
    size = rng.choice([1e-3, 1.0, 1e3])
    numbers = (size * rng.normal(size=shape) + 1, *rng.normal(size=(2, shape[-1])))
    x, gain, bias = (
        a.astype(dtype) for dtype in [rng.choice(["f4", "f8"])] for a in numbers
    )
    eps = float(rng.choice([1e-5, 0.3]))
    return {"x": x, "gain": gain, "bias": bias, "eps": eps}


def _probe_rms_norm(rng):
    arguments = _probe_norm(rng)
    del arguments["bias"]
    return arguments


def _probe_block(rng):
    shape = tuple(rng.integers(1, 5, size=rng.integers(2, 4)))
    return {
        "x": rng.normal(size=shape).astype(rng.choice(["f4", "f8"])),
        "sublayer": [np.tanh, np.square, np.zeros_like][rng.integers(3)],
        "norm": [np.exp, np.negative, lambda x: x[..., ::-1]][rng.integers(3)],
    }


def _probe_level_keys(rng):
    G, group = (int(n) for n in rng.integers(1, 5, size=2))
    names = ("width", "head_width", "ffn_width")
    arguments = {name: int(rng.integers(1, 30)) for name in names}
    arguments |= {"heads": G * group, "kv_heads": G}
    if rng.random() < 0.6:
        arguments["ffn_matrices"] = int(rng.choice([1, 2, 3]))
    return arguments


def _probe_tiles(rng):
    return {**_probe_attention(rng), "tile": int(rng.integers(1, 5))}


def _probe_logits(rng):
    shape = tuple(rng.integers(1, 6, size=rng.integers(1, 4)))
    logits = rng.normal(size=shape) * rng.choice([1.0, 3.0])
    if rng.random() < 0.3:
        logits = np.round(logits)  # ties
    return logits.astype(rng.choice(["f4", "f8"]))


def _probe_temperature(rng):
    return {"logits": _probe_logits(rng), "t": float(rng.choice([0, 0.5, 1, 3]))}


def _probe_top_k(rng):
    return {"logits": _probe_logits(rng), "k": int(rng.integers(1, 7))}


def _probe_top_p(rng):
    shares = [0.03, 0.277, 0.613, 0.871, 1.0]
    return {"logits": _probe_logits(rng), "p": float(rng.choice(shares))}


PROBES = {
    "softmax": _probe_softmax,
    "attention_weights": _probe_weights,
    "scaled_dot_product_attention": _probe_attention,
    "softmax_jacobian": _probe_jacobian,
    "repeat_kv": _probe_repeat_kv,
    "multi_head_attention": _probe_multi_head_attention,
    "cross_attention": _probe_cross_attention,
    "hide_tokens": _probe_hide_tokens,
    "kv_cache_bytes": _probe_kv_cache_bytes,
    "causal_mask": _probe_mask,
    "attend_with_past": _probe_past,
    "layer_norm": _probe_norm,
    "rms_norm": _probe_rms_norm,
    "pre_norm_block": _probe_block,
    "level_keys": _probe_level_keys,
    "tiled_attention": _probe_tiles,
    "temperature": _probe_temperature,
    "top_k": _probe_top_k,
    "top_p": _probe_top_p,
}
