"""From text to numbers and back, exactly as the two models were trained.

Both ways of cutting are learned lists, and both are applied to the letter: a
model that is given other pieces than those it was trained on is another model.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

__all__ = ["BytePairs", "WordPieces"]

# White space as Unicode defines it; Python's \s has four control signs more.
_SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
# What GPT-2 cuts a text into: endings of English, letters, other signs, each with
# the space before it, and spaces. Where numbers have been taken out before, Python's
# \w are the letters and the underscore.
_PIECES = re.compile(
    rf"'s|'t|'re|'ve|'m|'ll|'d| ?[^\W_]+| ?(?:[^\w{_SPACE}]|_)+"
    rf"|[{_SPACE}]+(?![^{_SPACE}])|[{_SPACE}]+"
)


def _visible_bytes() -> dict[int, str]:
    """Give each of the 256 bytes a visible character of its own, as GPT-2 did."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    names = {byte: chr(byte) for byte in visible}
    for byte in range(256):
        if byte not in names:
            names[byte] = chr(256 + len(names) - len(visible))
    return names


def _any_of(tokens: Iterable[str]) -> re.Pattern:
    """Match any of the tokens, as a group so that split() keeps what it matched."""
    longest_first = sorted(tokens, key=len, reverse=True)
    return re.compile(f"({'|'.join(map(re.escape, longest_first)) or '(?!)'})")


class BytePairs:
    """Byte-level byte-pair encoding, with numbers cut into single digits.

    A text is cut into words, each word into its bytes, and then the two neighbours
    that stand first in the list of merges become one, again and again.

    Args:
        tokens: the vocabulary; a token's place is its number.
        merges: pairs with a space between, the first to be merged first.
        special: those tokens that stand for no text, such as ``<|im_start|>``.

    Sennrich et al. 2015 (arXiv 1508.07909); Radford et al. 2019, section 2.2.
    """

    def __init__(
        self, tokens: Sequence[str], merges: Iterable[str], special: Iterable[str] = ()
    ) -> None:
        self.tokens = list(tokens)
        self._ids = {token: number for number, token in enumerate(self.tokens)}
        self._rank = {tuple(pair.split(" ")): i for i, pair in enumerate(merges)}
        self._special = frozenset(special)
        self._cut = _any_of(self._special)
        self._names = _visible_bytes()
        self._bytes = {name: byte for byte, name in self._names.items()}
        self._word = lru_cache(maxsize=65536)(self._merge)

    def encode(self, text: str) -> np.ndarray:
        """Return the numbers of a text's tokens, (T,), whole numbers."""
        ids: list[int] = []
        for part in self._cut.split(text):
            ids += [self._ids[part]] if part in self._special else self._plain(part)
        return np.array(ids, dtype=np.int64)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of tokens; bytes that are no UTF-8 become �.

        Raises:
            IndexError: there is no such token.
        """
        data = bytearray()
        for number in ids:
            if not 0 <= number < len(self.tokens):
                raise IndexError(f"there is no token {number}")
            token = self.tokens[number]
            if token in self._special:
                data += token.encode()
            else:
                data += bytes(self._bytes[sign] for sign in token)
        return data.decode(errors="replace")

    def _plain(self, text: str) -> list[int]:
        ids: list[int] = []
        run = ""
        for sign in text:
            if unicodedata.category(sign).startswith("N"):
                ids += self._words(run)
                ids += self._word(sign)
                run = ""
            else:
                run += sign
        return ids + self._words(run)

    def _words(self, text: str) -> list[int]:
        return [i for word in _PIECES.findall(text) for i in self._word(word)]

    def _merge(self, word: str) -> tuple[int, ...]:
        # A few bytes, met in no text of the training, have no token: they are left out.
        names = [self._names[byte] for byte in word.encode(errors="replace")]
        parts = [name for name in names if name in self._ids]
        while len(parts) > 1:
            pairs = list(pairwise(parts))
            best = min(pairs, key=lambda pair: self._rank.get(pair, len(self._rank)))
            if best not in self._rank:
                break
            merged, i = [], 0
            while i < len(parts):
                if i + 1 < len(parts) and (parts[i], parts[i + 1]) == best:
                    merged.append(parts[i] + parts[i + 1])
                    i += 2
                else:
                    merged.append(parts[i])
                    i += 1
            parts = merged
        return tuple(self._ids[part] for part in parts)


class WordPieces:
    """BERT's tokens: words without case and accents, cut into the longest pieces.

    Args:
        ids: the number of each token.
        longest: words with more letters become ``[UNK]``.
        special: those tokens that stand for no text, such as ``[MASK]``.

    Devlin et al. 2018 (arXiv 1810.04805), section 3.
    """

    def __init__(
        self, ids: dict[str, int], longest: int = 100, special: Iterable[str] = ()
    ) -> None:
        self._ids = dict(ids)
        self._special = frozenset(special)
        self._cut = _any_of(self._special)
        self.tokens = {number: token for token, number in ids.items()}
        self._longest = longest

    def encode(self, text: str) -> np.ndarray:
        """Return the tokens' numbers, ``[CLS]`` first and ``[SEP]`` last, (T,)."""
        ids = [self._ids["[CLS]"]]
        for part in self._cut.split(text):
            if part in self._special:
                ids.append(self._ids[part])
                continue
            for word in self._words(part):
                ids += self._pieces(word)
        return np.array([*ids, self._ids["[SEP]"]], dtype=np.int64)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the tokens with spaces between, pieces joined to their words."""
        return " ".join(self.tokens[int(i)] for i in ids).replace(" ##", "")

    def _words(self, text: str) -> list[str]:
        clean = "".join(self._spaced(sign) for sign in text)
        plain = "".join(
            sign
            for sign in unicodedata.normalize("NFD", clean)
            if unicodedata.category(sign) != "Mn"
        )
        # Sign by sign: a whole word's lower() would treat a final sigma apart.
        lower = "".join(sign.lower() for sign in plain)
        return "".join(map(_apart, lower)).split()

    @staticmethod
    def _spaced(sign: str) -> str:
        """Drop what cannot be seen; set spaces around Chinese characters."""
        if sign in "\t\n\r" or unicodedata.category(sign) == "Zs":
            return " "
        if sign in "\0\ufffd" or unicodedata.category(sign).startswith("C"):
            return ""
        return f" {sign} " if _is_chinese(ord(sign)) else sign

    def _pieces(self, word: str) -> list[int]:
        unknown = [self._ids["[UNK]"]]
        if len(word) > self._longest:
            return unknown
        found, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = ("##" if start else "") + word[start:end]
                if piece in self._ids:
                    found.append(self._ids[piece])
                    start = end
                    break
            else:
                return unknown
        return found


def _apart(sign: str) -> str:
    """Set spaces around punctuation; of ASCII, around all signs."""
    ascii_sign = sign.isascii() and sign.isprintable() and not sign.isalnum()
    if sign != " " and (ascii_sign or unicodedata.category(sign).startswith("P")):
        return f" {sign} "
    return sign


def _is_chinese(code: int) -> bool:
    ranges = (
        (0x4E00, 0x9FFF),
        (0x3400, 0x4DBF),
        (0x20000, 0x2A6DF),
        (0x2A700, 0x2B73F),
        (0x2B740, 0x2B81F),
        (0x2B920, 0x2CEAF),
        (0xF900, 0xFAFF),
        (0x2F800, 0x2FA1F),
    )
    return any(low <= code <= high for low, high in ranges)
