"""SmolLM2-135M-Instruct on the functions of this book, in float32."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from attnbook import ops
from attnbook.model import DecoderOnly, KVCache
from attnbook.pretrained import files
from attnbook.pretrained.gguf import BrokenFile, Gguf
from attnbook.pretrained.tokens import BytePairs

__all__ = ["SmolLM2", "load_smollm2", "open_smollm2"]

_JOINED = {("w_q", "w_k", "w_v"): "w_qkv", ("w_gate", "w_up"): "w_gate_up"}
_SPECIAL = 3  # how the file marks tokens that stand for no text


class SmolLM2(DecoderOnly):
    """A published decoder-only model: 30 layers, 9 query heads on 3 key/value heads.

    All of it is ``DecoderOnly``; what is added here are its tokens, its greedy
    continuation and shortcuts: projections of the same vector lie side by side in
    memory, so that one product makes them all. A function of the reader's that
    takes a matrix gets its part of the joined one.

    ``load_smollm2`` makes one.
    """

    def __init__(
        self, parameters: dict[str, np.ndarray], tokens: BytePairs, **settings: Any
    ) -> None:
        super().__init__(parameters, **settings)
        self.tokens = tokens

    def encode(self, text: str) -> np.ndarray:
        """Return the numbers of a text's tokens, (T,)."""
        return self.tokens.encode(text)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of tokens."""
        return self.tokens.decode(ids)

    def attention(self, ids: np.ndarray) -> np.ndarray:
        """Return the weights of all layers and heads, (N, ..., H, T, T)."""
        return np.stack(super().attention(ids))

    def generate(self, ids: np.ndarray, n: int) -> list[int]:
        """Continue a text by the likeliest token, n times; return the new tokens.

        Args:
            ids: tokens so far, (T,), at least one.
            n: how many tokens to write.
        """
        ops._check_whole(0, n=n)
        stream = self.stream(ids)
        return [next(stream)[0] for _ in range(n)]

    def stream(self, ids: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield, without end, the likeliest next token and the scores, (vocabulary,).

        Keys and values of earlier tokens are kept, never computed again.
        """
        caches = [KVCache() for _ in range(self.layers())]
        new = np.asarray(ids)
        while True:
            # Only the last place says what comes next.
            last = self._run(new, caches)[-1:]
            scores = self._to_logits(last)[0]
            token = int(scores.argmax())
            yield token, scores
            new = np.array([token])

    def _embed(self, ids: np.ndarray, start: int = 0) -> np.ndarray:
        return np.ascontiguousarray(super()._embed(ids, start))

    def _project(self, x: np.ndarray, name: str) -> list[np.ndarray]:
        p = self.parameters
        query = p[f"{name}.w_q"].shape[1]
        key = query + p[f"{name}.w_k"].shape[1]
        made = x @ p[f"{name}.w_qkv"]
        return [made[..., :query], made[..., query:key], made[..., key:]]

    def _think(self, x: np.ndarray, name: str) -> np.ndarray:
        if self._f["gated_feed_forward"] is not ops.gated_feed_forward:
            return super()._think(x, name)
        p = self.parameters
        made = x @ p[f"{name}.w_gate_up"]
        middle = made.shape[-1] // 2
        return (ops.silu(made[..., :middle]) * made[..., middle:]) @ p[f"{name}.w_down"]


def open_smollm2() -> Gguf:
    """Return the model's file, opened, not yet read.

    Raises:
        ModelUnavailable: it is not installed or is another one.
    """
    return Gguf(files.find(files.SMOLLM2))


@lru_cache(maxsize=1)
def _read() -> tuple[dict[str, np.ndarray], BytePairs, dict[str, Any]]:
    """Read the file once in a process; all models share its arrays."""
    file = open_smollm2()
    said = file.values
    if said.get("general.architecture") != "llama":
        raise BrokenFile(f"the architecture is {said.get('general.architecture')!r}")
    # Kept the other way round in memory: the scores of what comes next take twice
    # as long on rows, and looking a token up costs nothing either way.
    tokens_turned = np.ascontiguousarray(file.array("token_embd.weight").T)
    parameters = {
        "tokens": tokens_turned.T,
        "decoder.norm.gain": file.array("output_norm.weight"),
    }
    for layer in range(said["llama.block_count"]):
        there = f"blk.{layer}"
        for part, parts in (
            ("attention", {"w_q": "attn_q", "w_k": "attn_k", "w_v": "attn_v"}),
            ("attention", {"w_o": "attn_output"}),
            ("feed_forward", {"w_gate": "ffn_gate", "w_up": "ffn_up"}),
            ("feed_forward", {"w_down": "ffn_down"}),
        ):
            here = f"decoder.{layer}.{part}"
            arrays = {
                name: file.array(f"{there}.{theirs}.weight")
                for name, theirs in parts.items()
            }
            for name, array in _side_by_side(arrays).items():
                parameters[f"{here}.{name}"] = array
        for part, norm in (("attention", "attn_norm"), ("feed_forward", "ffn_norm")):
            gain = file.array(f"{there}.{norm}.weight")
            parameters[f"decoder.{layer}.{part}.gain"] = gain
    for array in (tokens_turned, *parameters.values()):
        array.flags.writeable = False  # shared
    pieces = said["tokenizer.ggml.tokens"]
    kinds = said["tokenizer.ggml.token_type"]
    special = [p for p, k in zip(pieces, kinds, strict=True) if k == _SPECIAL]
    tokens = BytePairs(pieces, said["tokenizer.ggml.merges"], special)
    settings = {
        "heads": said["llama.attention.head_count"],
        "kv_heads": said["llama.attention.head_count_kv"],
        "rope_base": said["llama.rope.freq_base"],
        "eps": said["llama.attention.layer_norm_rms_epsilon"],
    }
    return parameters, tokens, settings


def _side_by_side(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Turn (out, in) matrices into (in, out) views of one array that holds them all."""
    width = next(iter(arrays.values())).shape[1]
    joined = np.empty((width, sum(len(a) for a in arrays.values())), np.float32)
    views, at = {}, 0
    for name, array in arrays.items():
        views[name] = joined[:, at : at + len(array)]
        views[name][:] = array.T
        at += len(array)
    if len(arrays) > 1:
        views[_JOINED[tuple(arrays)]] = joined
    return views


def load_smollm2(**functions: Callable) -> SmolLM2:
    """Return SmolLM2-135M-Instruct, with any of its functions replaced.

    The weights are read once in a process and shared, so that a second model with
    other functions costs nothing.

    Args:
        functions: functions of ``ops`` by name, those of ``model.REPLACEABLE``;
            each takes the arguments of the one it replaces.

    Raises:
        ModelUnavailable: its file is not installed or is another one.
        TypeError: there is no function of that name to replace.
    """
    parameters, tokens, settings = _read()
    return SmolLM2(parameters, tokens, **settings, **functions)
