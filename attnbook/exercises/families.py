"""The exercises of the chapter on families; wrong versions as in ``heads``."""

import numpy as np

from attnbook import ops, train
from attnbook.exercises import heads as layers
from attnbook.exercises._exercise import Implement, Predict, case
from attnbook.exercises.qkv import SOFTMAXES

CHAPTER = "06_families"
_rng = np.random.default_rng(6)


def tenths(*shape: int) -> np.ndarray:
    return np.round(_rng.normal(size=shape), 1)


# --- count_signals ----------------------------------------------------------

TOKENS, PERCENT = 200, 15

count_signals = Predict(
    name="count_signals",
    chapter=CHAPTER,
    difficulty=1,
    minutes=3,
    reread="06_families.signals",
    answer=float(TOKENS - 1 - TOKENS * PERCENT // 100),
    tolerance=0.001,
    mistakes={
        "last_token_too": float(TOKENS - TOKENS * PERCENT // 100),
        "decoder_alone": float(TOKENS - 1),
        "encoder_alone": float(TOKENS * PERCENT // 100),
        "all_tokens": float(TOKENS),
    },
)

# --- cross_attention --------------------------------------------------------
#
# A wrong version is the right one with one part exchanged; the variants are the
# softmaxes that readers bring.


def right_roles(x, memory):
    """Say of which text queries, keys and values are made."""
    return x, memory, memory


def crossing(
    *,
    roles=right_roles,
    split=layers.split,
    merge=layers.merge,
    repeat=layers.in_place,
    look=layers.look,
):
    """Return attention from one text to another, made of these parts."""

    def attention(x, memory, w_q, w_k, w_v, w_o, heads, kv_heads, allow, softmax):
        kv_heads = heads if kv_heads is None else kv_heads
        group = heads // kv_heads
        asks, found, given = roles(x, memory)
        q = split(asks @ w_q, heads)
        k = repeat(split(found @ w_k, kv_heads), group)
        v = repeat(split(given @ w_v, kv_heads), group)
        return merge(look(q, k, v, allow, softmax)) @ w_o

    return attention


RIGHT = crossing()


def with_triangle(corner):
    """Return a look that hides what the target's causal mask would hide."""

    def look(q, k, v, allow, softmax):
        T, S = q.shape[-2], k.shape[-2]
        triangle = np.tril(np.ones((T, S), bool), S - T if corner == "bottom" else 0)
        return layers.look(
            q, k, v, triangle if allow is None else triangle & allow, softmax
        )

    return look


def triangle_for_allow(q, k, v, allow, softmax):
    """Put the target's own mask, (T, T), in the place of the memory's."""
    return layers.look(q, k, v, ops.causal_mask(q.shape[-2]), softmax)


def mask_turned(q, k, v, allow, softmax):
    allow = allow.swapaxes(-1, -2) if allow is not None and allow.ndim > 1 else allow
    return layers.look(q, k, v, allow, softmax)


def joined_texts(x, memory, w_q, w_k, w_v, w_o, heads, kv_heads, allow, softmax):
    """Let x look at itself as well, as a decoder-only model would."""
    batch = np.broadcast_shapes(x.shape[:-2], memory.shape[:-2])
    both = np.concatenate(
        [
            np.broadcast_to(memory, (*batch, *memory.shape[-2:])),
            np.broadcast_to(x, (*batch, *x.shape[-2:])),
        ],
        axis=-2,
    )
    return RIGHT(x, both, w_q, w_k, w_v, w_o, heads, kv_heads, None, softmax)


def residual_added(x, memory, *rest):
    return x + RIGHT(x, memory, *rest)


def one_wide_head(x, memory, w_q, w_k, w_v, w_o, heads, kv_heads, allow, softmax):
    return RIGHT(x, memory, w_q, w_k, w_v, w_o, 1, 1, allow, softmax)


def ignores_kv_heads(x, memory, w_q, w_k, w_v, w_o, heads, kv_heads, allow, softmax):
    return RIGHT(x, memory, w_q, w_k, w_v, w_o, heads, heads, allow, softmax)


def not_projected(x, memory, w_q, w_k, w_v, w_o, heads, kv_heads, allow, softmax):
    eye = np.eye(w_q.shape[1], dtype=x.dtype)
    return RIGHT(x, memory, w_q, w_k, w_v, eye, heads, kv_heads, allow, softmax)


def matrices_exchanged(x, memory, w_q, w_k, w_v, w_o, heads, kv_heads, allow, softmax):
    return RIGHT(x, memory, w_q, w_v, w_k, w_o, heads, kv_heads, allow, softmax)


def keys_for_values(x, memory, w_q, w_k, w_v, w_o, heads, kv_heads, allow, softmax):
    return RIGHT(x, memory, w_q, w_k, w_k, w_o, heads, kv_heads, allow, softmax)


def cross_case(*, T, S, D, H, d, G=None, batch=(), times=1.0, dtype=float, **more):
    """Draw the arguments of one call."""
    groups = H if G is None else G
    arrays = {
        "x": tenths(*batch, T, D) * times,
        "memory": tenths(*batch, S, D) * times,
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


PADDED = np.array([[[[True, True, False]]], [[[True, False, False]]]])

cross_attention = Implement(
    name="cross_attention",
    chapter=CHAPTER,
    difficulty=2,
    minutes=20,
    reread="06_families.cross",
    reference=ops.cross_attention,
    returns="(..., T, D)",
    cases=[
        cross_case(T=1, S=1, D=2, H=1, d=1),
        cross_case(T=2, S=2, D=2, H=1, d=2),
        cross_case(T=1, S=2, D=2, H=2, d=2),
        cross_case(T=2, S=3, D=2, H=2, d=2),
        cross_case(T=3, S=2, D=4, H=2, d=2),
        cross_case(T=3, S=3, D=4, H=2, d=3, allow=mask(3, 3)),
        cross_case(T=2, S=3, D=4, H=4, d=2, G=2),
        cross_case(T=3, S=3, D=5, H=4, d=2, G=2, batch=(2,)),
        cross_case(T=2, S=3, D=6, H=3, d=3, batch=(2,), allow=PADDED),
        cross_case(T=3, S=4, D=6, H=6, d=2, G=3, allow=mask(3, 4)),
        cross_case(T=4, S=3, D=6, H=4, d=3, G=1, batch=(3,), allow=mask(4, 4, 3)),
        # A second mask without groups, for those who look at neither argument yet.
        cross_case(T=2, S=3, D=2, H=2, d=2, allow=mask(2, 3)),
    ],
    extremes=[
        cross_case(T=2, S=2, D=2, H=2, d=1, allow=np.array([[1, 0], [0, 0]], bool)),
        cross_case(T=2, S=3, D=3, H=2, d=2, G=1, times=1000.0),
        cross_case(T=2, S=3, D=3, H=2, d=2, dtype=np.float32),
        cross_case(T=3, S=4, D=5, H=4, d=2, G=2, batch=(2,), dtype=np.float32),
    ],
    variants=SOFTMAXES,
    mistakes={
        "roles_swapped": crossing(roles=lambda x, m: (m, x, x)),
        "query_of_memory": crossing(roles=lambda x, m: (m, m, m)),
        "ignores_memory": crossing(roles=lambda x, m: (x, x, x)),
        "keys_of_x": crossing(roles=lambda x, m: (x, x, m)),
        "values_of_x": crossing(roles=lambda x, m: (x, m, x)),
        "joined_texts": joined_texts,
        "causal": (
            crossing(look=with_triangle("bottom")),
            crossing(look=with_triangle("top")),
            crossing(look=triangle_for_allow),
        ),
        "keys_for_values": keys_for_values,
        "matrices_exchanged": matrices_exchanged,
        "residual_added": residual_added,
        "merged_without_transpose": crossing(merge=layers.merge_unturned),
        "split_without_transpose": (
            crossing(split=layers.split_unturned),
            crossing(split=layers.split_unturned, merge=layers.merge_unturned),
        ),
        "tiled": crossing(repeat=lambda x, n: np.concatenate([x] * n, axis=-3)),
        "one_wide_head": one_wide_head,
        "ignores_kv_heads": ignores_kv_heads,
        "not_projected": not_projected,
        "no_scale": crossing(look=layers.unscaled),
        "wrong_width": (
            crossing(look=layers.root_of_all_heads),
            crossing(look=layers.divides_by_d),
        ),
        "wrong_axis": (
            crossing(look=layers.softmax_over_queries),
            crossing(look=layers.softmax_over_heads),
        ),
        "ignores_mask": crossing(look=layers.unmasked),
        "mask_upside_down": crossing(look=layers.upside_down),
        "mask_turned": crossing(look=mask_turned),
        "mask_after_softmax": crossing(look=layers.after_softmax),
        "empty_row": (
            crossing(look=layers.nan_rows),
            crossing(look=layers.nan_rows_in_float64),
        ),
        "overflows": (
            crossing(look=layers.overflowing),
            crossing(look=layers.overflowing_in_float64),
        ),
        "promotes_float32": crossing(look=layers.right_in_float64),
    },
    sections={
        "causal": "06_families.practice",
        "merged_without_transpose": "03_heads.merge",
        "split_without_transpose": "03_heads.cut",
        "tiled": "03_heads.groups",
        "ignores_kv_heads": "03_heads.groups",
        "one_wide_head": "03_heads.cut",
        "not_projected": "03_heads.merge",
        "no_scale": "03_heads.cut",
        "wrong_width": "03_heads.cut",
        "mask_upside_down": "03_heads.practice",
        "mask_after_softmax": "03_heads.practice",
        "empty_row": "03_heads.practice",
        "promotes_float32": "03_heads.practice",
    },
)

# --- triangle_across --------------------------------------------------------

triangle_across = Predict(
    name="triangle_across",
    chapter=CHAPTER,
    kind="break it",
    difficulty=2,
    minutes=6,
    reread="06_families.cross",
    answer="b",
    mistakes={"nothing": "a", "sees_nobody": "c", "future": "d"},
)

# --- hide_tokens ------------------------------------------------------------


def right_choice(ids, draws, share, padding):
    chosen = draws < share
    return chosen if padding is None else chosen & (ids != padding)


def right_cover(ids, chosen, mask_sign, padding):
    return np.where(chosen, mask_sign, ids)


def hiding(*, choose=right_choice, cover=right_cover, asked=None, nothing=-1):
    """Return a way to hide tokens, made of these parts.

    ``asked`` makes the answers of the tokens, the inputs, and where a token was
    chosen.
    """

    def hide(ids, draws, share, mask_sign, padding, variant):
        chosen = choose(ids, draws, share, padding)
        inputs = cover(ids, chosen, mask_sign, padding)
        answers = np.where(chosen, ids, nothing)
        if asked is not None:
            answers = asked(ids, inputs, chosen)
        return np.stack([inputs, answers])

    return hide


def hides_padding(*, cover, ask):
    """Return a version that treats padding like any token in one half or in both."""

    def hide(ids, draws, share, mask_sign, padding, variant):
        right = train.hide_tokens(ids, draws, share, mask_sign, padding)
        wrong = train.hide_tokens(ids, draws, share, mask_sign)
        return np.stack([(wrong if cover else right)[0], (wrong if ask else right)[1]])

    return hide


def asks_whether_padding_is_true(ids, draws, share, mask_sign, padding, variant):
    """Write ``if padding:``, which 0 does not pass."""
    return train.hide_tokens(ids, draws, share, mask_sign, padding or None)


def exchanged(ids, draws, share, mask_sign, padding, variant):
    return train.hide_tokens(ids, draws, share, mask_sign, padding)[::-1]


def choosing(compare):
    """Return a choice with another comparison; padding is left out as it should."""

    def choose(ids, draws, share, padding):
        chosen = compare(draws, share)
        return chosen if padding is None else chosen & (ids != padding)

    return choose


def first_text_decides(draws, share):
    return np.broadcast_to(draws.reshape(-1, draws.shape[-1])[0] < share, draws.shape)


def next_token(ids, inputs, chosen):
    """Ask for the token after the hole, as a decoder is asked."""
    after = np.concatenate([ids[..., 1:], np.full_like(ids[..., :1], -1)], axis=-1)
    return np.where(chosen, after, -1)


def hide_case(ids, draws, share, mask_sign=10, **more):
    arrays = {"ids": np.array(ids), "draws": np.array(draws)}
    return case(**arrays, share=share, mask_sign=mask_sign, **more)


hide_tokens = Implement(
    name="hide_tokens",
    chapter=CHAPTER,
    difficulty=2,
    minutes=10,
    reread="06_families.signals",
    reference=train.hide_tokens,
    returns="(2, ..., T)",
    cases=[
        hide_case([5], [0.0], 0.5),
        hide_case([5, 7], [0.1, 0.9], 0.15),
        hide_case([7, 5, 7], [0.5, 0.02, 0.9], 0.15),
        hide_case([3, 8, 5, 6], [0.9, 0.2, 0.1, 0.3], 0.25),
        hide_case([3, 8, 5, 6], [0.4, 0.25, 0.0, 0.7], 0.25),
        hide_case([4, 6, 2], [0.0, 0.4, 0.99], 1.0),
        hide_case([4, 6, 2], [0.0, 0.4, 0.99], 0.0),
        hide_case([2, 6, 2, 9, 4], [0.8, 0.1, 0.6, 0.3, 0.39], 0.4, mask_sign=11),
        hide_case([2, 6, 1, 1], [0.9, 0.1, 0.1, 0.9], 0.4, mask_sign=11, padding=1),
        hide_case([9, 6, 8, 0], [0.1, 0.9, 0.6, 0.05], 0.15, padding=0),
        hide_case([0, 0, 5, 6], [0.3, 0.0, 0.2, 0.7], 0.4, padding=0),
        hide_case(
            [[5, 6, 7], [8, 9, 2]],
            [[0.1, 0.9, 0.9], [0.8, 0.0, 0.1]],
            0.15,
        ),
        hide_case(
            [[5, 6, 7, 3], [8, 9, 0, 0]],
            [[0.9, 0.9, 0.1, 0.6], [0.05, 0.7, 0.0, 0.9]],
            0.15,
            padding=0,
        ),
        hide_case(
            [[[5, 6], [7, 3]], [[8, 0], [4, 4]]],
            [[[0.9, 0.1], [0.2, 0.1]], [[0.6, 0.1], [0.0, 0.7]]],
            0.2,
            padding=0,
        ),
    ],
    extremes=[],
    variants=(None,),
    mistakes={
        "padding_chosen": hides_padding(cover=True, ask=True),
        "padding_covered": hides_padding(cover=True, ask=False),
        "padding_asked": hides_padding(cover=False, ask=True),
        "zero_is_no_padding": asks_whether_padding_is_true,
        "asked_everywhere": hiding(asked=lambda ids, inputs, chosen: ids),
        "asked_where_seen": hiding(
            asked=lambda ids, inputs, chosen: np.where(chosen, -1, ids)
        ),
        "answers_hidden_too": (
            hiding(asked=lambda ids, inputs, chosen: np.where(chosen, inputs, -1)),
            hiding(asked=lambda ids, inputs, chosen: inputs),
        ),
        "next_token_asked": hiding(asked=next_token),
        "not_covered": hiding(cover=lambda ids, chosen, mask_sign, padding: ids),
        "covered_by_padding": hiding(
            cover=lambda ids, chosen, mask_sign, padding: np.where(
                chosen, 0 if padding is None else padding, ids
            )
        ),
        "share_kept": (
            hiding(choose=choosing(lambda draws, share: draws > share)),
            hiding(choose=choosing(lambda draws, share: draws >= share)),
            hiding(choose=choosing(lambda draws, share: draws < 1 - share)),
        ),
        "border_chosen": hiding(choose=choosing(lambda draws, share: draws <= share)),
        "first_text_decides": hiding(choose=choosing(first_text_decides)),
        "other_sign": (hiding(nothing=0), hiding(nothing=-100)),
        "exchanged": exchanged,
    },
)

# --- which_control ----------------------------------------------------------

which_control = Predict(
    name="which_control",
    chapter=CHAPTER,
    difficulty=2,
    minutes=5,
    reread="06_families.look",
    answer="c",
    mistakes={"more_holes": "a", "fewer_losses": "b", "more_data": "d"},
)

# --- unshifted --------------------------------------------------------------

unshifted = Predict(
    name="unshifted",
    chapter=CHAPTER,
    kind="break it",
    difficulty=2,
    minutes=6,
    reread="06_families.signals",
    answer="d",
    mistakes={"shapes": "a", "mask_saves": "b", "slower": "c"},
)

EXERCISES = [
    count_signals,
    hide_tokens,
    which_control,
    cross_attention,
    triangle_across,
    unshifted,
]
