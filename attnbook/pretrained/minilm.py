"""all-MiniLM-L6-v2 on the functions of this book: an encoder that reads sentences."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import ClassVar

import numpy as np

from attnbook import ops
from attnbook.pretrained import files
from attnbook.pretrained.safetensors import read_safetensors
from attnbook.pretrained.tokens import WordPieces

__all__ = ["MiniLM", "exact_feed_forward", "load_minilm"]

_erf = np.frompyfunc(math.erf, 1, 1)


def exact_feed_forward(
    x: np.ndarray,
    w_in: np.ndarray,
    b_in: np.ndarray,
    w_out: np.ndarray,
    b_out: np.ndarray,
) -> np.ndarray:
    """``ops.feed_forward`` with the exact GELU, ``x · Φ(x)``, as BERT was trained.

    Hendrycks and Gimpel 2016 (arXiv 1606.08415), section 2.
    """
    middle = x @ w_in + b_in
    below = 0.5 * (1 + _erf(middle / 2**0.5).astype(x.dtype))
    return (middle * below) @ w_out + b_out


class MiniLM:
    """A published encoder: 6 layers of 12 heads, each token sees the whole text.

    Its blocks are those of the first Transformer: the norm stands *after* each
    addition, ``layer_norm(x + part(x))``, and each projection has a bias.

    ``load_minilm`` makes one.

    Attributes:
        functions: what may be replaced, by name.
    """

    functions: ClassVar[dict[str, Callable]] = {
        "attention_weights": ops.attention_weights,
        "feed_forward": exact_feed_forward,
        "layer_norm": ops.layer_norm,
        "merge_heads": ops.merge_heads,
        "scaled_dot_product_attention": ops.scaled_dot_product_attention,
        "split_heads": ops.split_heads,
    }

    def __init__(
        self,
        parameters: dict[str, np.ndarray],
        tokens: WordPieces,
        layers: int,
        heads: int,
        eps: float,
        **functions: Callable,
    ) -> None:
        unknown = sorted(set(functions) - set(self.functions))
        if unknown:
            raise TypeError(
                f"{unknown[0]} cannot be replaced; what can: "
                f"{', '.join(self.functions)}"
            )
        self.parameters, self.tokens = parameters, tokens
        self.layers, self.heads, self.eps = layers, heads, eps
        self._f = {**self.functions, **functions}

    def encode(self, text: str) -> np.ndarray:
        """Return the numbers of a text's tokens, ``[CLS]`` and ``[SEP]`` too, (T,)."""
        return self.tokens.encode(text)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of tokens, without case and accents."""
        return self.tokens.decode(ids)

    def token_vectors(self, ids: np.ndarray, layer: int | None = -1) -> np.ndarray:
        """Return one vector for each token, (T, D).

        Args:
            ids: tokens, (T,).
            layer: after which layer, 0 for before the first; −1: the last. None:
                all of them, (layers + 1, T, D).

        Raises:
            IndexError: there is no such layer.
            ValueError, TypeError: ``ids`` are not tokens.
        """
        states, _ = self._run(ids, False)
        return np.stack(states) if layer is None else states[layer]

    def attention(self, ids: np.ndarray) -> np.ndarray:
        """Return the weights of all layers and heads, (layers, H, T, T)."""
        return np.stack(self._run(ids, True)[1])

    def _check_ids(self, ids: np.ndarray) -> np.ndarray:
        ids = np.asarray(ids)
        if not np.issubdtype(ids.dtype, np.integer) or ids.ndim != 1:
            raise TypeError(
                f"ids must be whole numbers, (T,), but it has dtype {ids.dtype} and "
                f"shape {ids.shape}"
            )
        words, longest = (
            len(self.parameters[f"embeddings.{part}_embeddings.weight"])
            for part in ("word", "position")
        )
        if ids.size == 0 or ids.min() < 0 or ids.max() >= words:
            raise ValueError(
                f"ids must hold tokens from 0 to {words - 1}, at least one"
            )
        if len(ids) > longest:
            raise ValueError(
                f"ids has {len(ids)} tokens; at most {longest} have places"
            )
        return ids

    def _run(self, ids: np.ndarray, look: bool) -> tuple[list, list]:
        ids = self._check_ids(ids)
        p, seen = self.parameters, []
        x = p["embeddings.word_embeddings.weight"][ids]  # (T, D)
        x = x + p["embeddings.position_embeddings.weight"][: len(ids)]
        x = x + p["embeddings.token_type_embeddings.weight"][0]
        x = self._norm(x, "embeddings.LayerNorm")
        states = [x]
        for layer in range(self.layers):
            name = f"encoder.layer.{layer}"
            x = self._norm(
                x + self._look(x, f"{name}.attention", seen if look else None),
                f"{name}.attention.output.LayerNorm",
            )
            x = self._norm(x + self._think(x, name), f"{name}.output.LayerNorm")
            states.append(x)
        return states, seen

    def _norm(self, x: np.ndarray, name: str) -> np.ndarray:
        gain, bias = (self.parameters[f"{name}.{part}"] for part in ("weight", "bias"))
        return self._f["layer_norm"](x, gain, bias, self.eps)

    def _matrix(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        p = self.parameters
        return p[f"{name}.weight"].T, p[f"{name}.bias"]

    def _look(self, x: np.ndarray, name: str, seen: list | None) -> np.ndarray:
        f, made = self._f, []
        for part in ("query", "key", "value"):
            w, b = self._matrix(f"{name}.self.{part}")
            made.append(f["split_heads"](x @ w + b, self.heads))  # (H, T, d)
        q, k, v = made
        if seen is not None:
            seen.append(f["attention_weights"](q, k))
        w, b = self._matrix(f"{name}.output.dense")
        return f["merge_heads"](f["scaled_dot_product_attention"](q, k, v)) @ w + b

    def _think(self, x: np.ndarray, name: str) -> np.ndarray:
        into = self._matrix(f"{name}.intermediate.dense")
        back = self._matrix(f"{name}.output.dense")
        return self._f["feed_forward"](x, *into, *back)


@lru_cache(maxsize=1)
def _read() -> tuple[dict[str, np.ndarray], WordPieces, int, int, float]:
    """Read the files once in a process; all models share their arrays."""
    with zipfile.ZipFile(files.find(files.MINILM)) as archive:
        said = json.loads(archive.read("config.json"))
        cut = json.loads(archive.read("tokenizer.json"))
        data = archive.read("model.safetensors")
    arrays = read_safetensors(data, "model.safetensors")
    words, special = cut["model"], [token["content"] for token in cut["added_tokens"]]
    tokens = WordPieces(words["vocab"], words["max_input_chars_per_word"], special)
    layers, heads = said["num_hidden_layers"], said["num_attention_heads"]
    return arrays, tokens, layers, heads, said["layer_norm_eps"]


def load_minilm(**functions: Callable) -> MiniLM:
    """Return all-MiniLM-L6-v2, with any of its functions replaced.

    Args:
        functions: those of ``MiniLM.functions`` by name; each takes the arguments
            of the one it replaces.

    Raises:
        ModelUnavailable: its file is not installed or is another one.
        TypeError: there is no function of that name to replace.
    """
    parameters, tokens, layers, heads, eps = _read()
    return MiniLM(parameters, tokens, layers, heads, eps, **functions)
