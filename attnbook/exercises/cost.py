"""The exercises of the chapter on cost; wrong versions as in ``qkv``."""

import tracemalloc

import numpy as np

from attnbook import cost, ops
from attnbook.exercises._exercise import Implement, Predict, case, say
from attnbook.exercises._run import Watch, run
from attnbook.exercises._verdict import Verdict

CHAPTER = "07_cost"
_rng = np.random.default_rng(7)

# --- ten_times_longer, fewer_kv_heads, nine_texts ---------------------------

ten_times_longer = Predict(
    name="ten_times_longer",
    chapter=CHAPTER,
    difficulty=2,
    minutes=4,
    reread="07_cost.pairs",
    answer=1.0,
    tolerance=0.001,
    mistakes={
        "no_window": 100.0,
        "longer_only": 10.0,
        "window_only": 0.1,
        "window_squared": 0.01,
    },
)

fewer_kv_heads = Predict(
    name="fewer_kv_heads",
    chapter=CHAPTER,
    difficulty=2,
    minutes=4,
    reread="07_cost.writing",
    answer="b",
    mistakes={"scores": "a", "weights": "c", "all": "d"},
)

nine_texts = Predict(
    name="nine_texts",
    chapter=CHAPTER,
    difficulty=2,
    minutes=4,
    reread="07_cost.writing",
    answer=2.0,
    tolerance=0.01,
    mistakes={
        "matrices_each_time": 9.0,
        "caches_free": 1.0,
        "first_cache_forgotten": 32 / 14,
        "shared_cache": 16 / 32,
    },
)

# --- level_keys -------------------------------------------------------------


def projections(D, H, G, d):
    return 2 * D * 2 * (H + G) * d


def exact(D, H, G, d, F, m):
    """Return the number of keys at which both bills are equal, maybe broken."""
    return (projections(D, H, G, d) + 2 * D * F * m) / (4 * H * d)


def equal_is_enough(D, H, G, d, F, m, whole):
    return -(-(projections(D, H, G, d) + 2 * D * F * m) // (4 * H * d))


def last_below(D, H, G, d, F, m, whole):
    return (projections(D, H, G, d) + 2 * D * F * m) // (4 * H * d)


def not_whole(D, H, G, d, F, m, whole):
    return exact(D, H, G, d, F, m)


def not_whole_plus_one(D, H, G, d, F, m, whole):
    return exact(D, H, G, d, F, m) + 1


def no_feed_forward(D, H, G, d, F, m, whole):
    return whole(projections(D, H, G, d), 4 * H * d)


def no_projections(D, H, G, d, F, m, whole):
    return whole(2 * D * F * m, 4 * H * d)


def never_gated(D, H, G, d, F, m, whole):
    return whole(projections(D, H, G, d) + 2 * D * F * 2, 4 * H * d)


def one_matrix(D, H, G, d, F, m, whole):
    return whole(projections(D, H, G, d) + 2 * D * F, 4 * H * d)


def ungrouped(D, H, G, d, F, m, whole):
    return whole(projections(D, H, H, d) + 2 * D * F * m, 4 * H * d)


def three_projections(D, H, G, d, F, m, whole):
    return whole(2 * D * (H + 2 * G) * d + 2 * D * F * m, 4 * H * d)


def grouped_scores(D, H, G, d, F, m, whole):
    return whole(projections(D, H, G, d) + 2 * D * F * m, 4 * G * d)


def scores_only(D, H, G, d, F, m, whole):
    return whole(projections(D, H, G, d) + 2 * D * F * m, 2 * H * d)


def width_for_heads(D, H, G, d, F, m, whole):
    return whole(projections(D, H, G, d) + 2 * D * F * m, 4 * D)


def square_projections(D, H, G, d, F, m, whole):
    return whole(4 * 2 * D * D + 2 * D * F * m, 4 * D)


def multiply_adds(D, H, G, d, F, m, whole):
    return whole((projections(D, H, G, d) + 2 * D * F * m) // 2, 4 * H * d)


def one_head(D, H, G, d, F, m, whole):
    return whole(projections(D, H, G, d) + 2 * D * F * m, 4 * d)


def all_pairs(D, H, G, d, F, m, whole):
    """Take T = S for one token: the keys whose square is the rest."""
    return int(np.sqrt(exact(D, H, G, d, F, m))) + 1


def first_above(rest, one_key):
    return rest // one_key + 1


def first_from(rest, one_key):
    return -(-rest // one_key)


def sizes(D, H, G, d, F, m=None):
    gated = {} if m is None else {"ffn_matrices": m}
    return case(width=D, heads=H, kv_heads=G, head_width=d, ffn_width=F, **gated)


level_keys = Implement(
    name="level_keys",
    chapter=CHAPTER,
    difficulty=2,
    minutes=12,
    reread="07_cost.rest",
    reference=cost.level_keys,
    returns="a whole number",
    cases=[
        sizes(1, 1, 1, 1, 1),
        sizes(8, 2, 2, 4, 32),
        sizes(8, 4, 2, 2, 30),
        sizes(10, 3, 1, 7, 46, 3),
        sizes(24, 6, 2, 5, 90, 3),
        sizes(21, 5, 5, 3, 40, 4),
        sizes(576, 9, 3, 64, 1536, 3),
        sizes(3584, 28, 4, 128, 18944, 3),
        sizes(2048, 8, 1, 256, 16384, 3),
    ],
    extremes=[sizes(8, 2, 1, 4, 0), sizes(8192, 64, 8, 128, 28672, 3)],
    variants=(first_above, first_from),
    mistakes={
        "equal_is_enough": equal_is_enough,
        "last_below": last_below,
        "not_whole": (not_whole, not_whole_plus_one),
        "no_feed_forward": no_feed_forward,
        "no_projections": no_projections,
        "never_gated": (never_gated, one_matrix),
        "ungrouped": ungrouped,
        "three_projections": three_projections,
        "grouped_scores": grouped_scores,
        "scores_only": scores_only,
        "width_for_heads": (width_for_heads, square_projections),
        "multiply_adds": multiply_adds,
        "one_head": one_head,
        "all_pairs": all_pairs,
    },
    sections={
        "all_pairs": "07_cost.writing",
        "scores_only": "07_cost.arithmetic",
        "multiply_adds": "07_cost.arithmetic",
        "ungrouped": "03_heads.groups",
        "grouped_scores": "03_heads.groups",
        "width_for_heads": "03_heads.cut",
    },
)

# --- tiled_attention --------------------------------------------------------
#
# A wrong version is the walk through the keys with one step exchanged. Most take
# all queries at once; that changes no result.


def tenths(*shape: int) -> np.ndarray:
    return np.round(_rng.normal(size=shape), 1)


def full_tiles(S, tile):
    return range(0, S - S % tile, tile)


def all_tiles(S, tile):
    return range(0, S, tile)


def counted_tiles(S, tile):
    return range(0, S, S // tile)


def running(highest, scores):
    return np.maximum(highest, scores.max(axis=-1, keepdims=True))


def of_this_tile(highest, scores):
    return scores.max(axis=-1, keepdims=True)


def nothing(highest, scores):
    return np.zeros_like(highest)


def as_it_should(old, new):
    return np.exp(old - new)


def not_at_all(old, new):
    return np.ones_like(old)


def upwards(old, new):
    return np.exp(np.where(np.isneginf(old), 0, new - old))


def only_when_seen(level):
    return np.where(np.isneginf(level), 0, level)


def divide(mixture, total):
    return mixture / np.where(total == 0, 1, total)


def spread(allow, q, k):
    if allow is None:
        return None
    shape = np.broadcast_shapes(q.shape[:-2], k.shape[:-2])
    return np.broadcast_to(allow, (*shape, q.shape[-2], k.shape[-2]))


def right_columns(allow, columns):
    return allow[..., columns]


def first_columns(allow, columns):
    return allow[..., : columns.stop - columns.start]


def walk(
    *,
    starts=all_tiles,
    raise_to=running,
    shrink_total=as_it_should,
    shrink_mixture=as_it_should,
    careful=only_when_seen,
    look=right_columns,
    broadcast=spread,
    finish=divide,
    scale_of=lambda scale, d: d**-0.5 if scale is None else float(scale),
    dtype=None,
    each=lambda mixture, total: mixture,
):
    """Return attention in tiles of keys, made of these steps."""

    def attention(q, k, v, allow, scale, tile, _):
        T, S = q.shape[-2], k.shape[-2]
        scale = scale_of(scale, q.shape[-1])
        allow = broadcast(allow, q, k)
        leading = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
        kind = q.dtype if dtype is None else dtype
        highest = np.full((*leading, T, 1), -np.inf, kind)
        total = np.zeros((*leading, T, 1), kind)
        mixture = np.zeros((*leading, T, v.shape[-1]), kind)
        for s in starts(S, tile):
            columns = slice(s, min(s + tile, S))
            scores = q @ k[..., columns, :].swapaxes(-1, -2) * scale
            if allow is not None:
                seen = look(allow, columns)
                scores = np.where(seen, scores, scores.dtype.type(-np.inf))
            raised = raise_to(highest, scores)
            level = careful(raised).astype(scores.dtype)
            exps = np.exp(scores - level)
            fresh = np.isneginf(highest)
            by_total = np.where(fresh, 0, shrink_total(highest, level))
            by_mixture = np.where(fresh, 0, shrink_mixture(highest, level))
            if careful is plain:
                by_total = by_mixture = np.exp(highest - level)
            by_total = by_total.astype(total.dtype)
            by_mixture = by_mixture.astype(mixture.dtype)
            total = total * by_total + exps.sum(axis=-1, keepdims=True)
            mixture = mixture * by_mixture + exps @ v[..., columns, :]
            mixture = each(mixture, total)
            highest = raised
        return finish(mixture, total)

    return attention


def plain(level):
    """Subtract −∞ from −∞ where nothing may be looked at yet."""
    return level


RIGHT = walk()


def drops_last_queries(q, k, v, allow, scale, tile, _):
    out = RIGHT(q, k, v, allow, scale, tile, _)
    out[..., q.shape[-2] - q.shape[-2] % tile :, :] = 0
    return out


def drops_last_of_both(q, k, v, allow, scale, tile, _):
    out = walk(starts=full_tiles)(q, k, v, allow, scale, tile, _)
    out[..., q.shape[-2] - q.shape[-2] % tile :, :] = 0
    return out


def outputs_of_tiles(q, k, v, allow, scale, tile):
    """Return the output that each tile of keys alone would give."""
    allow = spread(allow, q, k)
    return [
        ops.scaled_dot_product_attention(
            q,
            k[..., s : s + tile, :],
            v[..., s : s + tile, :],
            None if allow is None else allow[..., s : s + tile],
            scale,
        )
        for s in range(0, k.shape[-2], tile)
    ]


def mean_of_tiles(q, k, v, allow, scale, tile, _):
    tiles = outputs_of_tiles(q, k, v, allow, scale, tile)
    return sum(tiles) / len(tiles)


def sum_of_tiles(q, k, v, allow, scale, tile, _):
    return sum(outputs_of_tiles(q, k, v, allow, scale, tile))


def last_tile(q, k, v, allow, scale, tile, _):
    return outputs_of_tiles(q, k, v, allow, scale, tile)[-1]


def splits_in_parts(q, k, v, allow, scale, tile, _):
    """Cut the keys into ``tile`` parts; parts without keys have no maximum."""
    for part in np.array_split(k, tile, axis=-2):
        if part.shape[-2] == 0:
            raise ValueError
    return RIGHT(q, k, v, allow, scale, 1, _)


def ignores_mask(q, k, v, allow, scale, tile, _):
    return RIGHT(q, k, v, None, scale, tile, _)


def ignores_scale(q, k, v, allow, scale, tile, _):
    return RIGHT(q, k, v, allow, None, tile, _)


def ignores_both(q, k, v, allow, scale, tile, _):
    return RIGHT(q, k, v, None, None, tile, _)


def rows_of_first_tile(q, k, v, allow, scale, tile, _):
    """Take for each tile of queries the mask's first rows."""
    if allow is not None:
        rows = np.arange(q.shape[-2]) % tile
        allow = spread(allow, q, k)[..., rows, :]
    return RIGHT(q, k, v, allow, scale, tile, _)


def corner_of_the_mask(q, k, v, allow, scale, tile, _):
    """Take for each tile the mask's first rows and columns."""
    if allow is not None:
        rows, columns = np.arange(q.shape[-2]) % tile, np.arange(k.shape[-2]) % tile
        allow = spread(allow, q, k)[..., rows, :][..., columns]
    return RIGHT(q, k, v, allow, scale, tile, _)


def holds_all_weights(q, k, v, allow, scale, tile, _):
    return ops.scaled_dot_product_attention(q, k, v, allow, scale)


def tiled_case(*, T, S, d, d_v, tile, batch=(), allow=None, dtype=np.float64, **more):
    """Draw the arguments of one call."""
    arrays = {
        "q": tenths(*batch, T, d),
        "k": tenths(*batch, S, d),
        "v": tenths(*batch, S, d_v),
    }
    arrays = {name: array.astype(dtype) for name, array in arrays.items()}
    if allow is not None:
        more["allow"] = allow
    return case(**arrays, tile=tile, **more)


def mask(*shape: int, tile: int) -> np.ndarray:
    """Draw a mask in which each query may look at a key of each tile."""
    allowed = _rng.random(shape) < 0.6
    allowed[..., ::tile] = True
    allowed[..., 1::tile] &= _rng.random(allowed[..., 1::tile].shape) < 0.5
    return allowed


def large(*keys):
    """One number a key, so large that no exponential of a score is finite."""
    return case(
        q=np.array([[1.0], [2.0]]),
        k=np.array(keys)[:, None],
        v=np.arange(1.0, len(keys) + 1)[:, None],
        tile=1,
    )


FIRST_TILE_HIDDEN = np.array(
    [[True, True, True], [False, False, True], [False, False, False]]
)


class TiledAttention(Implement):
    """The check also measures what is held at once.

    The numbers are the same whether or not all weights are ever written down. So
    a function that is right is called once more, with so long a text that all the
    weights alone take twice the memory it may use.
    """

    LENGTH = 512  # queries and keys of that call
    TILE = 8
    LIMIT = LENGTH * LENGTH * 4 // 2  # bytes: half the weights, in float32

    def check(self, answer: object) -> Verdict:
        verdict = super().check(answer)
        if verdict.status != "right":
            return verdict
        peak = self._peak(answer)
        if peak <= self.LIMIT:
            return verdict
        mistake = "holds_all_weights"
        return self._verdict(
            "mistake",
            say("mistake", what=self.say(mistake)),
            mistake=mistake,
            example=[
                (f"T = S = {self.LENGTH}, tile = {self.TILE}", ""),
                (say("expected"), f"≤ {self.LIMIT // 1024} KiB"),
                (say("received"), f"{peak // 1024} KiB"),
            ],
        )

    def _peak(self, answer) -> int:
        """Return the most bytes that the answer holds at once, beyond its input."""
        rng = np.random.default_rng(0)
        q, k, v = (rng.standard_normal((self.LENGTH, 4), np.float32) for _ in range(3))
        traced = tracemalloc.is_tracing()
        if not traced:
            tracemalloc.start()
        try:
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            run(answer, (q, k, v), {"tile": self.TILE}, Watch())
            return tracemalloc.get_traced_memory()[1] - before
        finally:
            if not traced:
                tracemalloc.stop()


tiled_attention = TiledAttention(
    name="tiled_attention",
    chapter=CHAPTER,
    difficulty=3,
    minutes=25,
    reread="07_cost.tiles",
    reference=ops.tiled_attention,
    returns="(..., T, d_v)",
    cases=[
        tiled_case(T=1, S=2, d=1, d_v=1, tile=1),
        tiled_case(T=2, S=2, d=1, d_v=1, tile=2),
        tiled_case(T=2, S=3, d=2, d_v=1, tile=2),
        tiled_case(T=3, S=4, d=2, d_v=3, tile=2, scale=0.5),
        tiled_case(T=3, S=4, d=2, d_v=3, tile=1, scale=-2.0),
        tiled_case(T=5, S=4, d=3, d_v=2, tile=2, allow=mask(5, 4, tile=2)),
        tiled_case(T=4, S=7, d=3, d_v=2, tile=3, allow=mask(4, 7, tile=3)),
        tiled_case(T=5, S=6, d=2, d_v=3, tile=4, batch=(2,), scale=0.0),
        tiled_case(T=3, S=5, d=4, d_v=2, tile=2, batch=(3,)),
        tiled_case(T=4, S=8, d=3, d_v=2, tile=3, batch=(2, 3)),
        tiled_case(
            T=7, S=8, d=3, d_v=2, tile=3, batch=(2,), allow=mask(2, 7, 8, tile=3)
        ),
    ],
    extremes=[
        large(400.0, 900.0),
        large(100.0, 900.0, -900.0, 901.0),
        tiled_case(T=3, S=3, d=1, d_v=2, tile=2, allow=FIRST_TILE_HIDDEN),
        tiled_case(T=2, S=3, d=2, d_v=2, tile=5),
        tiled_case(T=3, S=4, d=2, d_v=2, tile=2, dtype=np.float32),
        tiled_case(
            T=3, S=4, d=2, d_v=2, tile=2, allow=np.array([[True], [False], [True]])
        ),
        tiled_case(
            T=4,
            S=5,
            d=3,
            d_v=2,
            tile=2,
            batch=(2,),
            allow=mask(5, tile=2),
            dtype=np.float32,
        ),
    ],
    variants=(None,),
    mistakes={
        "sum_not_shrunk": walk(shrink_total=not_at_all),
        "mixture_not_shrunk": walk(shrink_mixture=not_at_all),
        "nothing_shrunk": walk(shrink_total=not_at_all, shrink_mixture=not_at_all),
        "shrunk_upwards": walk(shrink_total=upwards, shrink_mixture=upwards),
        "maximum_of_tile": (
            walk(
                raise_to=of_this_tile,
                shrink_total=not_at_all,
                shrink_mixture=not_at_all,
            ),
            walk(raise_to=of_this_tile),
        ),
        "no_maximum": (
            walk(raise_to=nothing, shrink_total=not_at_all, shrink_mixture=not_at_all),
            walk(
                raise_to=nothing,
                shrink_total=not_at_all,
                shrink_mixture=not_at_all,
                finish=lambda m, t: m / t,
            ),
        ),
        "mean_of_tiles": (mean_of_tiles, sum_of_tiles),
        "last_tile_only": last_tile,
        "divided_each_time": walk(each=divide, finish=lambda m, t: m),
        "divided_twice": walk(each=divide),
        "not_divided": walk(finish=lambda m, t: m),
        "last_tile_dropped": (
            walk(starts=full_tiles),
            walk(starts=full_tiles, finish=lambda m, t: m / t),
            drops_last_queries,
            drops_last_of_both,
        ),
        "empty_tile": walk(careful=plain),
        "empty_row": walk(finish=lambda m, t: m / t),
        "mask_of_first_tile": (
            walk(look=first_columns),
            rows_of_first_tile,
            corner_of_the_mask,
        ),
        "mask_not_spread": walk(broadcast=lambda allow, q, k: allow),
        "ignores_mask": ignores_mask,
        "mask_upside_down": walk(look=lambda a, c: ~a[..., c]),
        "ignores_scale": ignores_scale,
        "ignores_arguments": ignores_both,
        "no_scale": walk(scale_of=lambda scale, d: 1.0 if scale is None else scale),
        "zero_scale": walk(scale_of=lambda scale, d: scale or d**-0.5),
        "tile_is_a_count": (walk(starts=counted_tiles), splits_in_parts),
        "promotes_float32": walk(dtype=np.float64),
        "holds_all_weights": holds_all_weights,
    },
    sections={
        "ignores_mask": "04_mask.forbid",
        "mask_upside_down": "04_mask.forbid",
        "ignores_scale": "02_scaling.root",
        "no_scale": "02_scaling.root",
        "zero_scale": "02_scaling.root",
        "no_maximum": "01_qkv.overflow",
        "promotes_float32": "01_qkv.practice",
    },
)

# --- forgotten_shrink -------------------------------------------------------

forgotten_shrink = Predict(
    name="forgotten_shrink",
    chapter=CHAPTER,
    kind="break it",
    difficulty=3,
    minutes=6,
    reread="07_cost.tiles",
    answer="c",
    mistakes={"cancels": "a", "no_mean": "b", "late_keys": "d"},
)

EXERCISES = [
    ten_times_longer,
    fewer_kv_heads,
    nine_texts,
    level_keys,
    tiled_attention,
    forgotten_shrink,
]
