"""Models made of the functions of ``ops``, and what they remember while writing.

Everything here keeps the conventions of ``ops``: arrays are ``(..., T, d)`` with
heads before time, masks are boolean with True = may look, and the dtype that goes
in comes out. What remembers comes first, then the functions that use it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

from attnbook import ops

if TYPE_CHECKING or "jaxtyping" in sys.modules:
    from jaxtyping import Float

__all__ = ["KVCache", "attend_with_past"]


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
