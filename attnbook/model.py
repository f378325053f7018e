"""Models made of the functions of ``ops``, and what they remember while writing.

Everything here keeps the conventions of ``ops``: arrays are ``(..., T, d)`` with
heads before time, masks are boolean with True = may look, and the dtype that goes
in comes out. What remembers comes first, then the functions that use it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from attnbook import ops

if TYPE_CHECKING or "jaxtyping" in sys.modules:
    from jaxtyping import Float, Int

__all__ = [
    "REPLACEABLE",
    "DecoderOnly",
    "EncoderDecoder",
    "EncoderOnly",
    "KVCache",
    "attend_with_past",
]

Parameters = dict[str, np.ndarray]


class KVCache:
    """The keys and values of all tokens so far, of one layer.

    A causal model never has to compute them again, because a later token changes
    nothing about an earlier one. Queries are not kept: each is used once.

    The first ``append`` decides about leading axes, widths and dtype. Room is
    doubled when it runs out, unless a capacity was given.

    Args:
        capacity: the most tokens that will ever come; room for all of them is
            taken at once, and more are refused. None: as many as come.

    Raises:
        TypeError: ``capacity`` is not a whole number.
        ValueError: it is less than 1.

    Derived in the chapter on the causal mask.
    """

    def __init__(self, capacity: int | None = None) -> None:
        if capacity is not None:
            ops._check_whole(1, capacity=capacity)
        self.capacity = capacity
        self._length = 0
        self._keys: np.ndarray | None = None  # (..., G, room, d)
        self._values: np.ndarray | None = None  # (..., G, room, d_v)

    def __len__(self) -> int:
        """How many tokens are remembered."""
        return self._length

    def __repr__(self) -> str:
        if self._keys is None:
            return "KVCache(empty)"
        return f"KVCache({len(self)} tokens, {self.nbytes} bytes)"

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and values so far; room not yet used does not count."""
        if self._keys is None:
            return 0
        return sum(array.nbytes for array in self._so_far())

    def append(
        self,
        k: Float[np.ndarray, "*B T d"],
        v: Float[np.ndarray, "*B T d_v"],
    ) -> tuple[Float[np.ndarray, "*B S d"], Float[np.ndarray, "*B S d_v"]]:
        """Remember the keys and values of T new tokens; return those of all S.

        Args:
            k: keys, (..., G, T, d), float.
            v: values, (..., G, T, d_v), of the dtype of ``k``.

        Returns:
            All keys and all values so far, (..., G, S, d) and (..., G, S, d_v):
            views that cannot be written to and that later tokens do not change.

        Raises:
            TypeError: an array is not floating point, or of another dtype than
                those before.
            ValueError: shapes do not go together or with those before, or there
                is no room for so many tokens.
        """
        self._check(k, v)
        after = self._length + k.shape[-2]
        if self.capacity is not None and after > self.capacity:
            raise ValueError(
                f"k has {k.shape[-2]} tokens, but of the capacity {self.capacity} "
                f"only {self.capacity - self._length} are left"
            )
        self._keys = self._with_room(self._keys, k, after)
        self._values = self._with_room(self._values, v, after)
        self._keys[..., self._length : after, :] = k
        self._values[..., self._length : after, :] = v
        self._length = after
        return self._so_far()

    def _so_far(self) -> tuple[np.ndarray, np.ndarray]:
        views = []
        for room in (self._keys, self._values):
            view = room[..., : self._length, :]
            view.flags.writeable = False
            views.append(view)
        return views[0], views[1]

    def _with_room(
        self, kept: np.ndarray | None, new: np.ndarray, after: int
    ) -> np.ndarray:
        """Return an array with room for ``after`` tokens and what is kept so far."""
        if kept is not None and after <= kept.shape[-2]:
            return kept
        size = self.capacity or max(after, 2 * self._length)
        # Zeros, for what stands in unused room could be NaN, and 0 · NaN is NaN.
        room = np.zeros((*new.shape[:-2], size, new.shape[-1]), new.dtype)
        if kept is not None:
            room[..., : self._length, :] = kept[..., : self._length, :]
        return room

    def _check(self, k: np.ndarray, v: np.ndarray) -> None:
        ops._check_float(k=k, v=v)
        ops._check_last_axes(2, "(..., G, T, d)", k=k, v=v)
        if k.shape[:-1] != v.shape[:-1]:
            raise ValueError(
                f"k has shape {k.shape} and v has shape {v.shape}; all their axes "
                f"but the last must be the same"
            )
        if k.dtype != v.dtype:
            raise TypeError(f"v has dtype {v.dtype}; it must be that of k, {k.dtype}")
        for name, new, kept in (("k", k, self._keys), ("v", v, self._values)):
            if kept is None:
                continue
            needed = (*kept.shape[:-2], new.shape[-2], kept.shape[-1])
            if new.shape != needed:
                raise ValueError(
                    f"{name} has shape {new.shape}; after what is remembered it "
                    f"must have {needed}"
                )
            if new.dtype != kept.dtype:
                raise TypeError(
                    f"{name} has dtype {new.dtype}; what is remembered has {kept.dtype}"
                )


def attend_with_past(
    q: Float[np.ndarray, "*B T d"],
    k: Float[np.ndarray, "*B T d"],
    v: Float[np.ndarray, "*B T d_v"],
    past_k: Float[np.ndarray, "*B P d"],
    past_v: Float[np.ndarray, "*B P d_v"],
) -> Float[np.ndarray, "*B T d_v"]:
    """Let the tokens that have just come look at themselves and all before them.

    The T new tokens may look at the P remembered ones and, among themselves,
    only backwards. Nothing remembered is computed again.

    Args:
        q, k: queries and keys of the new tokens, (..., T, d), float.
        v: their values, (..., T, d_v).
        past_k, past_v: what is remembered, (..., P, d) and (..., P, d_v); P may
            be 0.

    Returns:
        One output for each new token, (..., T, d_v).

    Raises:
        TypeError, ValueError: as ``ops.scaled_dot_product_attention``, and for
            the remembered arrays.

    Derived in the chapter on the causal mask.
    """
    ops._check_float(q=q, k=k, v=v, past_k=past_k, past_v=past_v)
    ops._check_last_axes(2, "(..., T, d)", q=q, k=k, v=v)
    for name, past, new_name, new in (
        ("past_k", past_k, "k", k),
        ("past_v", past_v, "v", v),
    ):
        needed = (*new.shape[:-2], past.shape[-2] if past.ndim > 1 else 0)
        if past.shape != (*needed, new.shape[-1]):
            raise ValueError(
                f"{name} has shape {past.shape} and {new_name} has {new.shape}; all "
                f"their axes but the next-to-last must be the same"
            )
        if past.dtype != new.dtype:
            raise TypeError(
                f"{name} has dtype {past.dtype}; it must be that of {new_name}, "
                f"{new.dtype}"
            )
    if q.shape[-2] != k.shape[-2]:
        raise ValueError(
            f"q has shape {q.shape} and k has shape {k.shape}; each new token has "
            f"one query and one key, so their next-to-last axis T must be the same"
        )
    all_k = np.concatenate([past_k, k], axis=-2)  # (..., P + T, d)
    all_v = np.concatenate([past_v, v], axis=-2)  # (..., P + T, d_v)
    allow = ops.causal_mask(q.shape[-2], all_k.shape[-2])  # (T, P + T)
    return ops.scaled_dot_product_attention(q, all_k, all_v, allow)


# --- the three families ------------------------------------------------------
#
# One block serves all three: what differs is the mask, and whether there is a
# second text to look at. What a block is made of is read off its parameters.

REPLACEABLE = (
    "attention_weights",
    "causal_mask",
    "cross_attention",
    "feed_forward",
    "gated_feed_forward",
    "layer_norm",
    "merge_heads",
    "pre_norm_block",
    "repeat_kv",
    "rms_norm",
    "rope",
    "scaled_dot_product_attention",
    "split_heads",
)


def random_block(
    rng: np.random.Generator,
    width: int,
    middle: int,
    heads: int,
    kv_heads: int,
    cross: bool = False,
    layer_norm: bool = False,
    gated: bool = False,
) -> Parameters:
    """Return parameters of one block, by their names within it, float64."""

    def matrix(rows: int, columns: int, size: float = 1.0) -> np.ndarray:
        return size * rng.standard_normal((rows, columns)) / np.sqrt(rows)

    block: Parameters = {}
    for part in ("attention", *(["cross"] if cross else []), "feed_forward"):
        block[f"{part}.gain"] = np.ones(width)
        if layer_norm:
            block[f"{part}.bias"] = np.zeros(width)
        if part != "feed_forward":
            narrow = kv_heads * (width // heads)
            block[f"{part}.w_q"] = matrix(width, width)
            block[f"{part}.w_k"] = matrix(width, narrow)
            block[f"{part}.w_v"] = matrix(width, narrow, 0.5)
            block[f"{part}.w_o"] = matrix(width, width, 0.5)
        elif gated:
            block[f"{part}.w_gate"] = matrix(width, middle)
            block[f"{part}.w_up"] = matrix(width, middle)
            block[f"{part}.w_down"] = matrix(middle, width, 0.5)
        else:
            block[f"{part}.w_in"] = matrix(width, middle)
            block[f"{part}.b_in"] = np.zeros(middle)
            block[f"{part}.w_out"] = matrix(middle, width, 0.5)
            block[f"{part}.b_out"] = np.zeros(width)
    return block


class _Family:
    """What the three families share: vectors for tokens, a stack, and logits.

    ``parameters`` maps names to arrays. Of the whole model: ``tokens``
    (vocabulary, D); ``positions`` (longest, D), left out with rotary positions;
    ``unembedding`` (D, vocabulary), left out where ``tokens`` serves both ends.
    Of layer 0 of the stack ``decoder``, and so on: ``decoder.0.attention.w_q``,
    ``w_k``, ``w_v`` and ``w_o``; ``decoder.0.feed_forward.w_in``, ``b_in``,
    ``w_out`` and ``b_out``, or ``w_gate``, ``w_up`` and ``w_down``. Each part has a
    norm before it with a ``gain``, and the stack one at its end,
    ``decoder.norm.gain``. With a ``bias`` beside it a norm is LayerNorm, without
    one RMSNorm.
    """

    STACKS: tuple[str, ...] = ()

    def __init__(
        self,
        parameters: Parameters,
        heads: int,
        kv_heads: int | None = None,
        rope_base: float | None = None,
        eps: float = 1e-5,
        **functions: Callable,
    ) -> None:
        unknown = sorted(set(functions) - set(REPLACEABLE))
        if unknown:
            raise TypeError(
                f"{unknown[0]} cannot be replaced; what can: {', '.join(REPLACEABLE)}"
            )
        ops._check_float(**parameters)
        needed = ["tokens", *(f"{stack}.norm.gain" for stack in self.STACKS)]
        if rope_base is None:
            needed.append("positions")
        for name in needed:
            if name not in parameters:
                raise ValueError(f"parameters has no array {name!r}")
        self.parameters = parameters
        self.heads = heads
        self.kv_heads = heads if kv_heads is None else kv_heads
        self.rope_base, self.eps = rope_base, eps
        self._f = {
            name: functions.get(name, getattr(ops, name)) for name in REPLACEABLE
        }

    @classmethod
    def random(
        cls,
        rng: np.random.Generator,
        vocabulary: int,
        length: int,
        width: int = 32,
        layers: int = 2,
        heads: int = 2,
        kv_heads: int | None = None,
        middle: int | None = None,
        layer_norm: bool = False,
        gated: bool = False,
        rope_base: float | None = None,
        dtype: type = np.float64,
        **functions: Callable,
    ) -> _Family:
        """Return an untrained model.

        Args:
            rng: where the numbers come from.
            vocabulary: how many tokens there are.
            length: the longest text, in tokens.
            width: of a token's vector, D, a multiple of ``heads``.
            layers: blocks in each stack.
            heads, kv_heads: query heads and key/value heads.
            middle: width in the middle of the feed-forward part; None: 2 D.
            layer_norm: LayerNorm in place of RMSNorm.
            gated: the gated feed-forward in place of the plain one.
            rope_base: rotary positions with this base; None: learned positions.
            dtype: of all arrays.
            functions: functions of ``ops`` to be replaced, by name.
        """
        ops._check_whole(
            1,
            vocabulary=vocabulary,
            length=length,
            width=width,
            layers=layers,
            heads=heads,
        )
        if width % heads:
            raise ValueError(f"heads is {heads}; it must divide width, {width}")
        parameters = {"tokens": rng.standard_normal((vocabulary, width)) * 0.3}
        if rope_base is None:
            parameters["positions"] = rng.standard_normal((length, width)) * 0.3
        for stack in cls.STACKS:
            for layer in range(layers):
                block = random_block(
                    rng,
                    width,
                    2 * width if middle is None else middle,
                    heads,
                    heads if kv_heads is None else kv_heads,
                    cross=len(cls.STACKS) > 1 and stack == "decoder",
                    layer_norm=layer_norm,
                    gated=gated,
                )
                for name, array in block.items():
                    parameters[f"{stack}.{layer}.{name}"] = array
            parameters[f"{stack}.norm.gain"] = np.ones(width)
            if layer_norm:
                parameters[f"{stack}.norm.bias"] = np.zeros(width)
        out = rng.standard_normal((width, vocabulary)) / np.sqrt(width)
        parameters["unembedding"] = out
        parameters = {name: p.astype(dtype) for name, p in parameters.items()}
        return cls(parameters, heads, kv_heads, rope_base, **functions)

    def layers(self, stack: str | None = None) -> int:
        """How many blocks a stack has; None: the last stack."""
        stack = self.STACKS[-1] if stack is None else stack
        names = self.parameters
        return len(
            {
                n.split(".")[1]
                for n in names
                if n.endswith("attention.w_q") and n.startswith(f"{stack}.")
            }
        )

    def _check_ids(self, name: str, ids: np.ndarray, start: int = 0) -> np.ndarray:
        ids = np.asarray(ids)
        if not np.issubdtype(ids.dtype, np.integer) or ids.ndim == 0:
            raise TypeError(
                f"{name} must be whole numbers, (..., T), but it has dtype "
                f"{ids.dtype} and shape {ids.shape}"
            )
        vocabulary = len(self.parameters["tokens"])
        if ids.size == 0 or ids.min() < 0 or ids.max() >= vocabulary:
            raise ValueError(
                f"{name} must hold tokens from 0 to {vocabulary - 1}, at least one"
            )
        if self.rope_base is None:
            longest = len(self.parameters["positions"])
            if start + ids.shape[-1] > longest:
                raise ValueError(
                    f"{name} reaches position {start + ids.shape[-1]}, but there are "
                    f"positions for {longest} tokens only"
                )
        return ids

    def _embed(self, ids: np.ndarray, start: int = 0) -> np.ndarray:
        x = self.parameters["tokens"][ids]  # (..., T, D)
        if self.rope_base is None:
            x = x + self.parameters["positions"][start : start + ids.shape[-1]]
        return x

    def _norm(self, x: np.ndarray, name: str) -> np.ndarray:
        gain, bias = (
            self.parameters.get(f"{name}.{part}") for part in ("gain", "bias")
        )
        if bias is None:
            return self._f["rms_norm"](x, gain, self.eps)
        return self._f["layer_norm"](x, gain, bias, self.eps)

    def _project(self, x: np.ndarray, name: str) -> list[np.ndarray]:
        """Make queries, keys and values, not yet cut into heads."""
        return [x @ self.parameters[f"{name}.{w}"] for w in ("w_q", "w_k", "w_v")]

    def _own(self, x, name, allow, cache, seen) -> np.ndarray:
        """Let the tokens look at one another, (..., T, D) -> (..., T, D)."""
        f, p = self._f, self.parameters
        q, k, v = self._project(x, name)
        q = f["split_heads"](q, self.heads)  # (..., H, T, d)
        k = f["split_heads"](k, self.kv_heads)  # (..., G, T, d)
        v = f["split_heads"](v, self.kv_heads)
        if self.rope_base is not None:
            start = 0 if cache is None else len(cache)
            places = np.arange(start, start + x.shape[-2])
            q = f["rope"](q, places, self.rope_base)
            k = f["rope"](k, places, self.rope_base)
        if cache is not None:
            k, v = cache.append(k, v)  # (..., G, S, d)
        group = self.heads // self.kv_heads
        k, v = f["repeat_kv"](k, group), f["repeat_kv"](v, group)
        if seen is not None:
            seen.append(f["attention_weights"](q, k, allow))
        out = f["scaled_dot_product_attention"](q, k, v, allow)
        return f["merge_heads"](out) @ p[f"{name}.w_o"]

    def _other(self, x, name, memory, allow, seen) -> np.ndarray:
        """Let the tokens look at the memory, (..., T, D) -> (..., T, D)."""
        w = [self.parameters[f"{name}.{part}"] for part in ("w_q", "w_k", "w_v", "w_o")]
        if seen is not None:
            q = ops.split_heads(x @ w[0], self.heads)
            k = ops.split_heads(memory @ w[1], self.kv_heads)
            k = ops.repeat_kv(k, self.heads // self.kv_heads)
            seen.append(self._f["attention_weights"](q, k, allow))
        cross_attention = self._f["cross_attention"]
        return cross_attention(x, memory, *w, self.heads, self.kv_heads, allow)

    def _think(self, x: np.ndarray, name: str) -> np.ndarray:
        def part(last: str) -> np.ndarray:
            return self.parameters[f"{name}.{last}"]

        if f"{name}.w_gate" in self.parameters:
            gated = self._f["gated_feed_forward"]
            return gated(x, part("w_gate"), part("w_up"), part("w_down"))
        plain = self._f["feed_forward"]
        return plain(x, part("w_in"), part("b_in"), part("w_out"), part("b_out"))

    def _stack(
        self,
        stack: str,
        x: np.ndarray,
        allow: np.ndarray | None,
        memory: np.ndarray | None = None,
        allow_memory: np.ndarray | None = None,
        caches: Sequence[KVCache] | None = None,
        seen: dict[str, list] | None = None,
    ) -> np.ndarray:
        """Run the blocks of one stack and its last norm, (..., T, D)."""
        own = None if seen is None else seen[stack]
        crossing = None if seen is None else seen.get("cross")
        for layer in range(self.layers(stack)):
            name = f"{stack}.{layer}"
            cache = None if caches is None else caches[layer]
            x = self._add(x, f"{name}.attention", self._own, allow, cache, own)
            if memory is not None:
                cross = f"{name}.cross"
                x = self._add(x, cross, self._other, memory, allow_memory, crossing)
            x = self._add(x, f"{name}.feed_forward", self._think)
        return self._norm(x, f"{stack}.norm")

    def _add(self, x: np.ndarray, name: str, part: Callable, *rest) -> np.ndarray:
        """Add to ``x`` what one part of a block makes of it, behind its norm."""
        return self._f["pre_norm_block"](
            x, lambda h: part(h, name, *rest), lambda h: self._norm(h, name)
        )

    def _read(self, name, ids, lengths=None, seen=None) -> np.ndarray:
        """Run the encoder over whole texts, (..., T) -> (..., T, D)."""
        ids = self._check_ids(name, ids)
        allow = None if lengths is None else ops.padding_mask(lengths, ids.shape[-1])
        return self._stack("encoder", self._embed(ids), allow, seen=seen)

    def _to_logits(self, x: np.ndarray) -> np.ndarray:
        out = self.parameters.get("unembedding")
        return x @ (self.parameters["tokens"].T if out is None else out)

    def _causal(self, T: int, caches: Sequence[KVCache] | None) -> np.ndarray:
        past = 0 if caches is None else len(caches[0])
        # By name: another mask may take something else in the second place.
        return self._f["causal_mask"](T, S=past + T)

    def new_caches(self) -> list[KVCache]:
        """Return an empty cache for each layer that writes."""
        return [KVCache() for _ in range(self.layers())]

    def _check_caches(self, caches: Sequence[KVCache] | None) -> int:
        """Return how many tokens are remembered."""
        if caches is None:
            return 0
        if len(caches) != self.layers():
            raise ValueError(
                f"caches has {len(caches)} entries; it needs one for each of the "
                f"{self.layers()} layers"
            )
        return len(caches[0])


class EncoderOnly(_Family):
    """Reads: each token sees the whole text, on both sides. BERT is of this family.

    Devlin et al. 2018 (arXiv 1810.04805). Derived in the chapter on families.
    """

    STACKS = ("encoder",)

    def vectors(
        self,
        ids: Int[np.ndarray, "*B T"],
        lengths: Sequence[int] | None = None,
    ) -> Float[np.ndarray, "*B T D"]:
        """Return one vector for each token, which knows its whole surroundings.

        Args:
            ids: tokens, (..., T), integer; (B, T) if there are ``lengths``.
            lengths: how many tokens of each text are real, (B,); None: all.
        """
        return self._read("ids", ids, lengths)

    def logits(
        self, ids: Int[np.ndarray, "*B T"], lengths: Sequence[int] | None = None
    ) -> Float[np.ndarray, "*B T words"]:
        """Return for each place the scores of what stands *there*."""
        return self._to_logits(self.vectors(ids, lengths))

    def attention(
        self, ids: Int[np.ndarray, "*B T"], lengths: Sequence[int] | None = None
    ) -> list[Float[np.ndarray, "*B H T T"]]:
        """Return the weights of each layer."""
        seen: dict[str, list] = {"encoder": []}
        self._read("ids", ids, lengths, seen)
        return seen["encoder"]


class DecoderOnly(_Family):
    """Writes: each token sees itself and what came before. GPT is of this family.

    Radford et al. 2018. Derived in the chapter on families.
    """

    STACKS = ("decoder",)

    def _run(self, ids, caches=None, seen=None) -> np.ndarray:
        start = self._check_caches(caches)
        ids = self._check_ids("ids", ids, start)
        allow = self._causal(ids.shape[-1], caches)
        x = self._embed(ids, start)
        return self._stack("decoder", x, allow, caches=caches, seen=seen)

    def logits(
        self,
        ids: Int[np.ndarray, "*B T"],
        caches: Sequence[KVCache] | None = None,
    ) -> Float[np.ndarray, "*B T words"]:
        """Return for each place the scores of what comes *next*.

        Args:
            ids: tokens, (..., T), integer; with ``caches`` the new ones only.
            caches: what ``new_caches`` returned and earlier calls filled. None:
                ``ids`` are all there is.
        """
        return self._to_logits(self._run(ids, caches))

    def attention(
        self, ids: Int[np.ndarray, "*B T"]
    ) -> list[Float[np.ndarray, "*B H T T"]]:
        """Return the weights of each layer."""
        seen: dict[str, list] = {"decoder": []}
        self._run(ids, seen=seen)
        return seen["decoder"]


class EncoderDecoder(_Family):
    """Reads one text and writes another. T5 and the first Transformer are these.

    Both stacks share ``tokens`` and ``positions``. Each block of the decoder has,
    between the other two parts, one in which it looks at the encoder's vectors,
    ``decoder.0.cross.w_q`` and so on.

    Vaswani et al. 2017 (arXiv 1706.03762), figure 1. Derived in the chapter on
    families.
    """

    STACKS = ("encoder", "decoder")

    def encode(
        self,
        source: Int[np.ndarray, "*B S"],
        lengths: Sequence[int] | None = None,
    ) -> Float[np.ndarray, "*B S D"]:
        """Read the source once; return the memory that the decoder looks at."""
        return self._read("source", source, lengths)

    def decode(
        self,
        target: Int[np.ndarray, "*B T"],
        memory: Float[np.ndarray, "*B S D"],
        lengths: Sequence[int] | None = None,
        caches: Sequence[KVCache] | None = None,
    ) -> Float[np.ndarray, "*B T words"]:
        """Return for each place of the target the scores of what comes next.

        Args:
            target: what is written so far, (..., T); with ``caches`` the new part.
            memory: what ``encode`` returned.
            lengths: how many tokens of each source are real, (B,); None: all.
            caches: as in ``DecoderOnly.logits``.
        """
        return self._write(target, memory, lengths, caches)

    def _write(self, target, memory, lengths, caches=None, seen=None) -> np.ndarray:
        start = self._check_caches(caches)
        target = self._check_ids("target", target, start)
        x, allow = self._embed(target, start), self._causal(target.shape[-1], caches)
        see = None if lengths is None else ops.padding_mask(lengths, memory.shape[-2])
        x = self._stack("decoder", x, allow, memory, see, caches, seen)
        return self._to_logits(x)

    def logits(
        self,
        source: Int[np.ndarray, "*B S"],
        target: Int[np.ndarray, "*B T"],
        lengths: Sequence[int] | None = None,
    ) -> Float[np.ndarray, "*B T words"]:
        """Return for each place of the target the scores of what comes *next*."""
        return self.decode(target, self.encode(source, lengths), lengths)

    def attention(
        self,
        source: Int[np.ndarray, "*B S"],
        target: Int[np.ndarray, "*B T"],
        lengths: Sequence[int] | None = None,
    ) -> dict[str, list[np.ndarray]]:
        """Return the weights of each layer of ``encoder``, ``decoder``, ``cross``.

        Their last two axes are (S, S), (T, T) and (T, S).
        """
        seen: dict[str, list] = {"encoder": [], "decoder": [], "cross": []}
        memory = self._read("source", source, lengths, seen)
        self._write(target, memory, lengths, seen=seen)
        return seen
