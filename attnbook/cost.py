"""What attention costs: arithmetic, memory, and the sizes of published models.

Axis letters as everywhere: T queries, S keys, H query heads, G key/value heads,
d head width, D model width, N layers. One multiply–add counts as 2 FLOPs. All
counts are exact whole numbers; tests hold them to a counter that counts each
multiply–add and to ``.nbytes`` of real arrays.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = [
    "CONFIGS",
    "Config",
    "attention_exponentials",
    "attention_flops",
    "feed_forward_flops",
    "kv_cache_bytes",
    "level_keys",
    "projection_flops",
    "vocabulary_flops",
    "weights_bytes",
]


def _check(**counts: int) -> None:
    """Refuse what is not a whole number of at least 0, naming the argument."""
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int):
            raise TypeError(f"{name} must be a whole number, but it is {count!r}")
        if count < 0:
            raise ValueError(f"{name} is {count}; it must not be negative")


# --- arithmetic -------------------------------------------------------------


def attention_flops(queries: int, keys: int, heads: int, head_width: int) -> int:
    """Count the arithmetic of scores and mixing: ``2 · 2 · T · S · H · d``.

    Each query head multiplies T queries with S keys of width d, and then T rows
    of S weights with S values of width d. How many key/value heads there are
    does not matter. Softmax is not in it; see ``attention_exponentials``.

    Args:
        queries, keys: T and S, the tokens that look and are looked at.
        heads: query heads, H.
        head_width: d.

    Returns:
        FLOPs, 2 for each multiply–add, in one layer.

    Raises:
        TypeError, ValueError: an argument is not a whole number from 0.

    Counted in the chapter on heads.
    """
    _check(queries=queries, keys=keys, heads=heads, head_width=head_width)
    return 2 * 2 * queries * keys * heads * head_width


def attention_exponentials(queries: int, keys: int, heads: int) -> int:
    """Count the exponentials of softmax: ``T · S · H``.

    Args:
        queries, keys: T and S.
        heads: query heads, H; each has a softmax of its own.

    Returns:
        Exponentials in one layer.

    Raises:
        TypeError, ValueError: an argument is not a whole number from 0.

    Counted in the chapter on heads.
    """
    _check(queries=queries, keys=keys, heads=heads)
    return queries * keys * heads


def projection_flops(
    tokens: int, width: int, heads: int, kv_heads: int, head_width: int
) -> int:
    """Count the four projections of a layer: ``2 · T · D · (2 · H · d + 2 · G · d)``.

    W_Q and W_O have D · H · d entries each, W_K and W_V have D · G · d each, and
    each entry is multiplied once for each token.

    Args:
        tokens: T.
        width: model width, D.
        heads, kv_heads: H and G.
        head_width: d.

    Returns:
        FLOPs, 2 for each multiply–add, in one layer.

    Raises:
        TypeError, ValueError: an argument is not a whole number from 0.

    Counted in the chapter on heads.
    """
    _check(
        tokens=tokens,
        width=width,
        heads=heads,
        kv_heads=kv_heads,
        head_width=head_width,
    )
    return 2 * tokens * width * 2 * (heads + kv_heads) * head_width


def feed_forward_flops(
    tokens: int, width: int, ffn_width: int, ffn_matrices: int = 2
) -> int:
    """Count the feed-forward part of a layer: ``2 · T · D · ffn_width · matrices``.

    Args:
        tokens: T.
        width: model width, D.
        ffn_width: numbers between its matrices.
        ffn_matrices: 3 where the part is gated, 2 where it is not.

    Returns:
        FLOPs, 2 for each multiply–add, in one layer.

    Raises:
        TypeError, ValueError: an argument is not a whole number from 0.

    Counted in the chapter on cost.
    """
    _check(tokens=tokens, width=width, ffn_width=ffn_width, ffn_matrices=ffn_matrices)
    return 2 * tokens * width * ffn_width * ffn_matrices


def vocabulary_flops(tokens: int, width: int, vocabulary: int) -> int:
    """Count the scores over the vocabulary: ``2 · T · D · vocabulary``.

    They are taken once, above the last layer, for each token whose next token is
    asked for.

    Args:
        tokens: T.
        width: model width, D.
        vocabulary: how many tokens there are to choose from.

    Returns:
        FLOPs, 2 for each multiply–add.

    Raises:
        TypeError, ValueError: an argument is not a whole number from 0.

    Counted in the chapter on cost.
    """
    _check(tokens=tokens, width=width, vocabulary=vocabulary)
    return 2 * tokens * width * vocabulary


def level_keys(
    width: int,
    heads: int,
    kv_heads: int,
    head_width: int,
    ffn_width: int,
    ffn_matrices: int = 2,
) -> int:
    """Count the keys from which scores and mixing cost more than the rest of a layer.

    The rest is the projections and the feed-forward part, which cost the same for
    each token however long the text is. With S keys a token costs ``4 · S · H · d``
    for scores and mixing; the smallest S for which that is more than the rest.

    Args:
        width: model width, D.
        heads, kv_heads: H and G.
        head_width: d.
        ffn_width: numbers between the matrices of the feed-forward part.
        ffn_matrices: 3 where that part is gated, 2 where it is not.

    Returns:
        Keys, a whole number.

    Raises:
        TypeError, ValueError: an argument is not a whole number from 0, or there
            are no heads or they have no width.

    Counted in the chapter on cost.
    """
    rest = projection_flops(1, width, heads, kv_heads, head_width)
    rest += feed_forward_flops(1, width, ffn_width, ffn_matrices)
    one_key = attention_flops(1, 1, heads, head_width)
    if one_key == 0:
        name = "heads" if heads == 0 else "head_width"
        raise ValueError(f"{name} is 0; it must be at least 1")
    return rest // one_key + 1


# --- memory -----------------------------------------------------------------


def weights_bytes(
    queries: int, keys: int, heads: int, bytes_per_number: int = 2
) -> int:
    """Count the bytes of all attention weights of a layer: ``H · T · S · bytes``.

    Args:
        queries, keys: T and S.
        heads: query heads, H.
        bytes_per_number: 2 for float16 and bfloat16, 4 for float32.

    Returns:
        Bytes, for one sequence and one layer.

    Raises:
        TypeError, ValueError: an argument is not a whole number from 0.

    Counted in the chapter on cost.
    """
    _check(queries=queries, keys=keys, heads=heads, bytes_per_number=bytes_per_number)
    return heads * queries * keys * bytes_per_number


def kv_cache_bytes(
    tokens: int,
    layers: int,
    kv_heads: int,
    head_width: int,
    bytes_per_number: int = 2,
) -> int:
    """Count the bytes of a key/value cache: ``2 · N · G · S · d · bytes``.

    Args:
        tokens: S, how many tokens are kept.
        layers: N; each keeps its own keys and values.
        kv_heads: G; query heads are not kept.
        head_width: d.
        bytes_per_number: 2 for float16 and bfloat16, 4 for float32.

    Returns:
        Bytes, for one sequence.

    Raises:
        TypeError, ValueError: an argument is not a whole number from 0.

    Derived in the chapter on heads.
    """
    _check(
        tokens=tokens,
        layers=layers,
        kv_heads=kv_heads,
        head_width=head_width,
        bytes_per_number=bytes_per_number,
    )
    keys_and_values = 2
    return keys_and_values * layers * kv_heads * tokens * head_width * bytes_per_number


# --- published configurations -----------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Config:
    """The sizes of a published decoder-only model.

    Attributes:
        layers: N.
        width: model width, D.
        heads: query heads, H.
        kv_heads: key/value heads, G, a divisor of H.
        head_width: d; H · d need not equal D.
        ffn_width: numbers between the matrices of the feed-forward part.
        ffn_matrices: 3 where that part is gated, 2 where it is not.
        vocabulary: rows of the embedding matrix as published.
        context: the longest sequence that the configuration provides for.
        source: the key of its entry in the book's references.
    """

    layers: int
    width: int
    heads: int
    kv_heads: int
    head_width: int
    ffn_width: int
    ffn_matrices: int
    vocabulary: int
    context: int
    source: str

    @property
    def group(self) -> int:
        """How many query heads share one key/value head, H / G."""
        return self.heads // self.kv_heads

    def attention_flops(self, queries: int, keys: int) -> int:
        """``attention_flops`` of all layers."""
        one = attention_flops(queries, keys, self.heads, self.head_width)
        return self.layers * one

    def projection_flops(self, tokens: int) -> int:
        """``projection_flops`` of all layers."""
        return self.layers * projection_flops(
            tokens, self.width, self.heads, self.kv_heads, self.head_width
        )

    def feed_forward_flops(self, tokens: int) -> int:
        """``feed_forward_flops`` of all layers."""
        return self.layers * feed_forward_flops(
            tokens, self.width, self.ffn_width, self.ffn_matrices
        )

    def vocabulary_flops(self, tokens: int) -> int:
        """``vocabulary_flops`` of this model."""
        return vocabulary_flops(tokens, self.width, self.vocabulary)

    def matrix_bytes(self, bytes_per_number: int = 2) -> int:
        """Bytes of all matrices that are read to compute the next token.

        Those of the layers and the one of the scores over the vocabulary. Each of
        their numbers is multiplied once for a token. Of the embeddings a token
        reads one row; that and the gains of the norms are left out.
        """
        _check(bytes_per_number=bytes_per_number)
        layers = self.projection_flops(1) + self.feed_forward_flops(1)
        return (layers + self.vocabulary_flops(1)) // 2 * bytes_per_number

    def level_keys(self) -> int:
        """``level_keys`` of this model; it is the same in each layer."""
        return level_keys(
            self.width,
            self.heads,
            self.kv_heads,
            self.head_width,
            self.ffn_width,
            self.ffn_matrices,
        )

    def kv_cache_bytes(self, tokens: int, bytes_per_number: int = 2) -> int:
        """``kv_cache_bytes`` of this model."""
        return kv_cache_bytes(
            tokens, self.layers, self.kv_heads, self.head_width, bytes_per_number
        )


CONFIGS: Mapping[str, Config] = MappingProxyType(
    {
        "Qwen2-7B": Config(
            layers=28,
            width=3584,
            heads=28,
            kv_heads=4,
            head_width=128,
            ffn_width=18944,
            ffn_matrices=3,
            vocabulary=152064,
            context=131072,
            source="qwen2config",
        ),
        "SmolLM2-135M": Config(
            layers=30,
            width=576,
            heads=9,
            kv_heads=3,
            head_width=64,
            ffn_width=1536,
            ffn_matrices=3,
            vocabulary=49152,
            context=8192,
            source="smollm2config",
        ),
        "Llama 2 7B": Config(
            layers=32,
            width=4096,
            heads=32,
            kv_heads=32,
            head_width=128,
            ffn_width=11008,
            ffn_matrices=3,
            vocabulary=32000,
            context=4096,
            source="llama27bconfig",
        ),
        "Llama 2 70B": Config(
            layers=80,
            width=8192,
            heads=64,
            kv_heads=8,
            head_width=128,
            ffn_width=28672,
            ffn_matrices=3,
            vocabulary=32000,
            context=4096,
            source="llama270bconfig",
        ),
        "Gemma 2B": Config(
            layers=18,
            width=2048,
            heads=8,
            kv_heads=1,
            head_width=256,
            ffn_width=16384,  # of one matrix; the paper counts gate and up together
            ffn_matrices=3,
            vocabulary=256128,
            context=8192,
            source="gemma2024",
        ),
        "Gemma 7B": Config(
            layers=28,
            width=3072,
            heads=16,
            kv_heads=16,
            head_width=256,
            ffn_width=24576,  # the same
            ffn_matrices=3,
            vocabulary=256128,
            context=8192,
            source="gemma2024",
        ),
    }
)
