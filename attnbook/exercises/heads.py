"""The exercises of the chapter on heads; wrong versions as in ``qkv``."""

import numpy as np

from attnbook import cost, ops
from attnbook.exercises._exercise import Implement, Predict, case
from attnbook.exercises.qkv import SOFTMAXES, hide, softmax_that_overflows
from attnbook.exercises.qkv import softmax_with_nan as softmax_of_nan

CHAPTER = "03_heads"
_rng = np.random.default_rng(3)


def tenths(*shape: int) -> np.ndarray:
    return np.round(_rng.normal(size=shape), 1)


# --- cut_into_heads ---------------------------------------------------------

cut_into_heads = Predict(
    name="cut_into_heads",
    chapter=CHAPTER,
    difficulty=1,
    minutes=3,
    reread="03_heads.cut",
    answer="c",
    mistakes={"multiplied": "a", "unchanged": "b", "divided": "d"},
)

# --- repeat_kv --------------------------------------------------------------


def tiled(x, n, _):
    return np.concatenate([x] * n, axis=-3)


def tiled_on_the_last_axis(x, n, _):
    return np.tile(x, n)


def repeats_tokens(x, n, _):
    return np.repeat(x, n, axis=-2)


def repeats_numbers(x, n, _):
    return np.repeat(x, n, axis=-1)


def repeats_batch(x, n, _):
    return np.repeat(x, n, axis=0)


def axis_from_the_front(x, n, _):
    return np.repeat(x, n, axis=1)


def repeats_flat(x, n, _):
    return np.repeat(x, n)


def multiplies(x, n, _):
    return x * n


def copies_once_more(x, n, _):
    return np.repeat(x, n + 1, axis=-3)


def leaves_the_axis(x, n, _):
    return np.repeat(x[..., None, :, :], n, axis=-3)


def stacks_copies(x, n, _):
    return np.stack([x] * n)


def reshapes_only(x, n, _):
    """Copy in front of the heads, then read the heads off in that order."""
    copies = np.repeat(x[..., None, :], n, axis=-2)
    return copies.reshape(*x.shape[:-3], x.shape[-3] * n, *x.shape[-2:])


def fills_zeros(x, n, _):
    out = np.zeros((*x.shape[:-3], x.shape[-3] * n, *x.shape[-2:]))
    for h in range(out.shape[-3]):
        out[..., h, :, :] = x[..., h // n, :, :]
    return out


repeat_kv = Implement(
    name="repeat_kv",
    chapter=CHAPTER,
    difficulty=1,
    minutes=8,
    reread="03_heads.groups",
    reference=ops.repeat_kv,
    returns="(..., G·n, S, d)",
    cases=[
        case(x=np.array([[[1.0]]]), n=1),
        case(x=np.array([[[1.0]], [[2.0]]]), n=2),
        case(x=np.array([[[1.0, 2.0]], [[3.0, 4.0]]]), n=3),
        case(x=np.array([[[1.0], [2.0]], [[3.0], [4.0]]]), n=2),
        case(x=tenths(3, 2, 4), n=2),
        case(x=tenths(2, 2, 3, 1), n=3),
        case(x=tenths(3, 3, 3, 3), n=3),
        case(x=tenths(2, 3, 2, 4, 5), n=2),
    ],
    extremes=[
        case(x=np.array([[[1.0]], [[2.0]]], dtype=np.float32), n=2),
        case(x=tenths(2, 3, 2, 4).astype(np.float32), n=3),
    ],
    variants=(None,),
    mistakes={
        "tiled": tiled,
        "repeats_tokens": repeats_tokens,
        "repeats_numbers": (repeats_numbers, tiled_on_the_last_axis),
        "repeats_batch": repeats_batch,
        "axis_from_the_front": axis_from_the_front,
        "repeats_flat": repeats_flat,
        "multiplies": multiplies,
        "copies_once_more": copies_once_more,
        "leaves_the_axis": (leaves_the_axis, stacks_copies),
        "reshapes_only": reshapes_only,
        "promotes_float32": fills_zeros,
    },
)

# --- multi_head_attention ---------------------------------------------------
#
# A wrong version is the right layer with one part exchanged; the variants are
# the softmaxes that readers bring.


def split(x, heads):
    return ops.split_heads(x, heads)


def merge(x):
    return x.swapaxes(-2, -3).reshape(*x.shape[:-3], x.shape[-2], -1)


def split_unturned(x, heads):
    return x.reshape(*x.shape[:-2], heads, x.shape[-2], -1)


def merge_unturned(x):
    return x.reshape(*x.shape[:-3], x.shape[-2], -1)


def split_strided(x, heads):
    """Deal the numbers out in turn: head 0 gets numbers 0, H, 2H, …"""
    return np.moveaxis(x.reshape(*x.shape[:-1], -1, heads), -1, -3)


def merge_strided(x):
    return np.moveaxis(x, -3, -1).reshape(*x.shape[:-3], x.shape[-2], -1)


def look(q, k, v, allow, softmax, scale=None):
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return softmax(hide(q @ k.swapaxes(-1, -2) * scale, allow)) @ v


def in_place(x, n):
    return np.repeat(x, n, axis=-3)


def layer(*, split=split, merge=merge, repeat=in_place, look=look):
    """Return a layer of several heads, made of these parts."""

    def attention(x, w_q, w_k, w_v, w_o, heads, kv_heads, allow, softmax):
        kv_heads = heads if kv_heads is None else kv_heads
        group = heads // kv_heads
        q = split(x @ w_q, heads)
        k = repeat(split(x @ w_k, kv_heads), group)
        v = repeat(split(x @ w_v, kv_heads), group)
        return merge(look(q, k, v, allow, softmax)) @ w_o

    return attention


RIGHT = layer()


def unscaled(q, k, v, allow, softmax):
    return look(q, k, v, allow, softmax, 1.0)


def divides_by_d(q, k, v, allow, softmax):
    return look(q, k, v, allow, softmax, 1 / q.shape[-1])


def root_of_all_heads(q, k, v, allow, softmax):
    width = q.shape[-1] * q.shape[-3]
    return look(q, k, v, allow, softmax, width**-0.5)


def root_in_float64(q, k, v, allow, softmax):
    return look(q, k, v, allow, softmax, 1 / np.sqrt(q.shape[-1]))


# Any other softmax gets some numbers wrong as well, and that comes first.
def right_in_float64(q, k, v, allow, _):
    return root_in_float64(q, k, v, allow, ops.softmax)


def unmasked(q, k, v, allow, softmax):
    return look(q, k, v, None, softmax)


def upside_down(q, k, v, allow, softmax):
    return look(q, k, v, None if allow is None else ~allow, softmax)


def mask_with_one_more_axis(q, k, v, allow, softmax):
    allow = None if allow is None else allow[..., None, :, :]
    return look(q, k, v, allow, softmax)


def after_softmax(q, k, v, allow, softmax):
    weights = softmax(q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5)
    return (weights if allow is None else weights * allow) @ v


def softmax_over_heads(q, k, v, allow, softmax):
    scores = hide(q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5, allow)
    return softmax(scores.swapaxes(-1, -3)).swapaxes(-1, -3) @ v


def softmax_over_queries(q, k, v, allow, softmax):
    scores = hide(q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5, allow)
    return softmax(scores.swapaxes(-1, -2)).swapaxes(-1, -2) @ v


def nan_rows(q, k, v, allow, _):
    return look(q, k, v, allow, softmax_of_nan)


def nan_rows_in_float64(q, k, v, allow, _):
    return root_in_float64(q, k, v, allow, softmax_of_nan)


def overflowing(q, k, v, allow, _):
    return look(q, k, v, allow, softmax_that_overflows)


def overflowing_in_float64(q, k, v, allow, _):
    return root_in_float64(q, k, v, allow, softmax_that_overflows)


def root_of_model_width(x, w_q, w_k, w_v, w_o, heads, kv_heads, allow, softmax):
    def over(q, k, v, allow, softmax):
        return look(q, k, v, allow, softmax, x.shape[-1] ** -0.5)

    return layer(look=over)(x, w_q, w_k, w_v, w_o, heads, kv_heads, allow, softmax)


def one_wide_head(x, w_q, w_k, w_v, w_o, heads, kv_heads, allow, softmax):
    return RIGHT(x, w_q, w_k, w_v, w_o, 1, 1, allow, softmax)


def ignores_kv_heads(x, w_q, w_k, w_v, w_o, heads, kv_heads, allow, softmax):
    return RIGHT(x, w_q, w_k, w_v, w_o, heads, heads, allow, softmax)


def not_projected(x, w_q, w_k, w_v, w_o, heads, kv_heads, allow, softmax):
    eye = np.eye(w_q.shape[1], dtype=x.dtype)
    return RIGHT(x, w_q, w_k, w_v, eye, heads, kv_heads, allow, softmax)


def output_transposed(x, w_q, w_k, w_v, w_o, heads, kv_heads, allow, softmax):
    return RIGHT(x, w_q, w_k, w_v, w_o.T, heads, kv_heads, allow, softmax)


def keys_for_values(x, w_q, w_k, w_v, w_o, heads, kv_heads, allow, softmax):
    return RIGHT(x, w_q, w_k, w_k, w_o, heads, kv_heads, allow, softmax)


def slices_the_tokens(x, w_q, w_k, w_v, w_o, heads, kv_heads, allow, softmax):
    """Give each head a slice of the token rather than a view of all of it."""
    kv_heads = heads if kv_heads is None else kv_heads
    d, D = w_q.shape[1] // heads, x.shape[-1]
    if D % heads:
        raise ValueError
    part = D // heads
    outs = []
    for h in range(heads):
        rows = slice(h * part, (h + 1) * part)
        g = h // (heads // kv_heads)
        mine, theirs = slice(h * d, (h + 1) * d), slice(g * d, (g + 1) * d)
        some = x[..., rows]
        mask = allow
        if allow is not None and allow.ndim > 2:
            mask = allow[..., min(h, allow.shape[-3] - 1), :, :]
        outs.append(
            look(
                some @ w_q[rows, mine],
                some @ w_k[rows, theirs],
                some @ w_v[rows, theirs],
                mask,
                softmax,
            )
        )
    return np.concatenate(outs, axis=-1) @ w_o


def mask_over_groups(x, w_q, w_k, w_v, w_o, heads, kv_heads, allow, softmax):
    """Group the queries instead of copying the keys, and leave the mask as it is.

    Its axis for the heads lies over the queries of a group then, and its batch
    axis over the groups.
    """
    kv_heads = heads if kv_heads is None else kv_heads
    by_group = (*x.shape[:-2], kv_heads, heads // kv_heads, x.shape[-2], -1)
    q = split(x @ w_q, heads).reshape(by_group)
    k, v = (split(x @ w, kv_heads)[..., None, :, :] for w in (w_k, w_v))
    answers = look(q, k, v, allow, softmax)
    together = answers.reshape(*x.shape[:-2], heads, *answers.shape[-2:])
    return merge(together) @ w_o


def layer_case(*, T, D, H, d, G=None, batch=(), times=1.0, dtype=np.float64, **more):
    """Draw the arguments of one call."""
    groups = H if G is None else G
    arrays = {
        "x": tenths(*batch, T, D) * times,
        "w_q": tenths(D, H * d),
        "w_k": tenths(D, groups * d),
        "w_v": tenths(D, groups * d),
        "w_o": tenths(H * d, D),
    }
    arrays = {name: array.astype(dtype) for name, array in arrays.items()}
    counts = {"heads": H} if G is None else {"heads": H, "kv_heads": G}
    return case(**arrays, **counts, **more)


def mask(*shape: int) -> np.ndarray:
    allowed = _rng.random(shape) < 0.6
    allowed[..., 0] |= ~allowed.any(axis=-1)
    return allowed


NOBODY = np.array([[True, False], [False, False]])

multi_head_attention = Implement(
    name="multi_head_attention",
    chapter=CHAPTER,
    difficulty=3,
    minutes=25,
    reread="03_heads.merge",
    reference=ops.multi_head_attention,
    returns="(..., T, D)",
    cases=[
        layer_case(T=1, D=1, H=1, d=1),
        layer_case(T=2, D=2, H=1, d=2),
        layer_case(T=2, D=2, H=2, d=1),
        layer_case(T=2, D=2, H=2, d=1, G=1),
        layer_case(T=2, D=4, H=2, d=2),
        layer_case(T=3, D=2, H=2, d=3),
        layer_case(T=3, D=4, H=4, d=2, G=2),
        layer_case(T=2, D=4, H=2, d=2, allow=np.array([[1, 0], [1, 1]], bool)),
        layer_case(T=2, D=6, H=6, d=1, G=2),
        layer_case(T=3, D=5, H=6, d=2, G=3, allow=mask(3, 3)),
        layer_case(T=3, D=6, H=3, d=4, batch=(3,), allow=mask(3, 1, 3, 3)),
        layer_case(T=4, D=6, H=3, d=2, batch=(2,), allow=mask(3, 4, 4)),
        # As many sentences as groups: a mask lined up with the groups is silent.
        layer_case(T=3, D=5, H=4, d=2, G=2, batch=(2,), allow=mask(2, 1, 3, 3)),
        layer_case(T=3, D=8, H=4, d=3, G=1, batch=(2,)),
        layer_case(T=4, D=6, H=4, d=5, G=2, batch=(2, 3), allow=mask(4, 4)),
        # A second mask without groups, for those who look at neither argument yet.
        layer_case(T=3, D=2, H=2, d=1, allow=mask(3, 3)),
    ],
    extremes=[
        layer_case(T=2, D=2, H=2, d=1, allow=NOBODY),
        layer_case(T=2, D=3, H=2, d=2, G=1, times=1000.0),
        layer_case(T=2, D=3, H=2, d=2, dtype=np.float32),
        layer_case(T=3, D=5, H=4, d=2, G=2, batch=(2,), dtype=np.float32),
    ],
    variants=SOFTMAXES,
    mistakes={
        "merged_without_transpose": layer(merge=merge_unturned),
        "split_without_transpose": (
            layer(split=split_unturned),
            layer(split=split_unturned, merge=merge_unturned),
        ),
        "strided_heads": (
            layer(split=split_strided),
            layer(split=split_strided, merge=merge_strided),
            layer(merge=merge_strided),
        ),
        "tiled": layer(repeat=lambda x, n: np.concatenate([x] * n, axis=-3)),
        "one_wide_head": one_wide_head,
        "ignores_kv_heads": ignores_kv_heads,
        "slices_the_tokens": slices_the_tokens,
        "not_projected": not_projected,
        "output_transposed": output_transposed,
        "keys_for_values": keys_for_values,
        "no_scale": layer(look=unscaled),
        "wrong_width": (
            layer(look=root_of_all_heads),
            root_of_model_width,
            layer(look=divides_by_d),
        ),
        "wrong_axis": (
            layer(look=softmax_over_queries),
            layer(look=softmax_over_heads),
        ),
        "ignores_mask": layer(look=unmasked),
        "mask_upside_down": layer(look=upside_down),
        "mask_after_softmax": layer(look=after_softmax),
        "extra_mask_axis": layer(look=mask_with_one_more_axis),
        "mask_over_groups": mask_over_groups,
        "empty_row": (layer(look=nan_rows), layer(look=nan_rows_in_float64)),
        "overflows": (layer(look=overflowing), layer(look=overflowing_in_float64)),
        "promotes_float32": layer(look=right_in_float64),
    },
    sections={
        "split_without_transpose": "03_heads.cut",
        "strided_heads": "03_heads.cut",
        "one_wide_head": "03_heads.cut",
        "wrong_width": "03_heads.cut",
        "no_scale": "03_heads.cut",
        "slices_the_tokens": "03_heads.misreadings",
        "tiled": "03_heads.groups",
        "ignores_kv_heads": "03_heads.groups",
        "ignores_mask": "01_qkv.practice",
        "mask_upside_down": "01_qkv.practice",
        "mask_after_softmax": "01_qkv.practice",
        "extra_mask_axis": "03_heads.practice",
        "mask_over_groups": "03_heads.practice",
        "empty_row": "01_qkv.practice",
        "promotes_float32": "01_qkv.practice",
    },
)

# --- kv_cache_bytes ---------------------------------------------------------


def keys_only(S, N, G, d, size, _):
    return N * G * S * d * size


def one_layer(S, N, G, d, size, _):
    return 2 * G * S * d * size


def one_head(S, N, G, d, size, _):
    return 2 * N * S * d * size


def one_token(S, N, G, d, size, _):
    return 2 * N * G * d * size


def one_number_a_head(S, N, G, d, size, _):
    return 2 * N * G * S * size


def numbers(S, N, G, d, size, _):
    return 2 * N * G * S * d


def always_two_bytes(S, N, G, d, size, _):
    return 2 * N * G * S * d * 2


def bits(S, N, G, d, size, _):
    return 2 * N * G * S * d * size * 8


def every_pair(S, N, G, d, size, _):
    return 2 * N * G * S * S * d * size


def queries_too(S, N, G, d, size, _):
    return 3 * N * G * S * d * size


def in_kibibytes(S, N, G, d, size, _):
    return 2 * N * G * S * d * size / 1024


kv_cache_bytes = Implement(
    name="kv_cache_bytes",
    chapter=CHAPTER,
    difficulty=1,
    minutes=6,
    reread="03_heads.cache",
    reference=cost.kv_cache_bytes,
    returns="a whole number",
    cases=[
        case(tokens=1, layers=1, kv_heads=1, head_width=1),
        case(tokens=3, layers=1, kv_heads=1, head_width=1),
        case(tokens=1, layers=5, kv_heads=1, head_width=1),
        case(tokens=1, layers=1, kv_heads=7, head_width=1),
        case(tokens=1, layers=1, kv_heads=1, head_width=11),
        case(tokens=3, layers=5, kv_heads=7, head_width=11),
        case(tokens=3, layers=5, kv_heads=7, head_width=11, bytes_per_number=4),
        case(tokens=3, layers=5, kv_heads=7, head_width=11, bytes_per_number=1),
    ],
    extremes=[
        case(tokens=131072, layers=28, kv_heads=4, head_width=128),
        case(tokens=0, layers=28, kv_heads=4, head_width=128),
    ],
    variants=(None,),
    mistakes={
        "keys_only": keys_only,
        "one_layer": one_layer,
        "one_head": one_head,
        "one_token": one_token,
        "one_number_a_head": one_number_a_head,
        "numbers": numbers,
        "always_two_bytes": always_two_bytes,
        "bits": bits,
        "every_pair": every_pair,
        "queries_too": queries_too,
        "in_kibibytes": in_kibibytes,
    },
)

# --- heads_tiled, merged_unturned -------------------------------------------

RIGHT_READERS = np.repeat([0, 1, 2], 3)
TILED_READERS = np.tile([0, 1, 2], 3)

heads_tiled = Predict(
    name="heads_tiled",
    chapter=CHAPTER,
    kind="break it",
    difficulty=2,
    minutes=5,
    reread="03_heads.groups",
    answer=float((RIGHT_READERS != TILED_READERS).sum()),
    mistakes={"none": 0.0, "agreeing": 3.0, "all_but_the_first": 8.0, "all": 9.0},
)

merged_unturned = Predict(
    name="merged_unturned",
    chapter=CHAPTER,
    kind="break it",
    difficulty=2,
    minutes=5,
    reread="03_heads.merge",
    answer="b",
    mistakes={"as_it_should": "a", "one_answer_early": "c", "error": "d"},
)

EXERCISES = [
    cut_into_heads,
    repeat_kv,
    multi_head_attention,
    kv_cache_bytes,
    heads_tiled,
    merged_unturned,
]
