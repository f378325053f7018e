"""Read GGUF, a file format for language models: what is in it, and its arrays.

A header says what there is, as pairs of key and value; a table gives each array's
name, shape, type and place; the arrays follow. Large matrices are *quantised*: 32
numbers at a time share a scale, and each is kept as a whole number of 4 or 8 bits.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Every length
and place in a file is checked before it is used.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["BrokenFile", "Gguf"]


class BrokenFile(ValueError):
    """A model's file does not hold to its format."""


# Types of values in the header, by their numbers in the file.
_NUMBERS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_STRING, _ARRAY = 8, 9
_MOST_AXES = 4
_ALIGNMENT = 32
_TOGETHER = 32  # numbers that share a scale


def _half(blocks: np.ndarray, at: int) -> np.ndarray:
    """Return the float16 at byte ``at`` of each block as float32, (blocks, 1)."""
    return blocks[:, at : at + 2].copy().view("<f2").astype(np.float32)


def _q4_1(blocks: np.ndarray) -> np.ndarray:
    """Scale and lowest value, then 32 numbers of 4 bits: low halves come first."""
    scale, lowest, packed = _half(blocks, 0), _half(blocks, 2), blocks[:, 4:]
    out = np.empty((len(blocks), _TOGETHER), np.float32)
    np.multiply(packed & 15, scale, out=out[:, :16])
    np.multiply(packed >> 4, scale, out=out[:, 16:])
    out += lowest
    return out


def _q8_0(blocks: np.ndarray) -> np.ndarray:
    """A scale, then 32 numbers of 8 bits with sign."""
    return blocks[:, 2:].view(np.int8) * _half(blocks, 0)


@dataclass(frozen=True)
class _Kind:
    name: str
    numbers: int  # in one block
    size: int  # bytes of one block
    read: Callable[[np.ndarray], np.ndarray]  # (blocks, bytes) -> (blocks, numbers)


_KINDS = {
    0: _Kind("F32", 1, 4, lambda blocks: blocks.view("<f4").astype(np.float32)),
    1: _Kind("F16", 1, 2, lambda blocks: blocks.view("<f2").astype(np.float32)),
    3: _Kind("Q4_1", _TOGETHER, 20, _q4_1),
    8: _Kind("Q8_0", _TOGETHER, 34, _q8_0),
}


@dataclass(frozen=True)
class _Place:
    shape: tuple[int, ...]
    kind: _Kind
    start: int
    bytes: int


class Gguf:
    """An open GGUF file.

    Args:
        path: where it lies.

    Attributes:
        values: what the header says, by key.
        shapes: of all arrays, by name, outer axis first.

    Raises:
        BrokenFile: it is not GGUF of version 2 or 3, is cut off, or points outside.
        OSError: it cannot be opened.
    """

    def __init__(self, path: str | Path) -> None:
        self._path, self._name = Path(path), Path(path).name
        if Path(path).stat().st_size < 24:
            raise BrokenFile(f"{self._name} is too short to be a GGUF file")
        self._bytes = np.memmap(path, np.uint8, "r")
        self._at = 0
        if self._take(4).tobytes() != b"GGUF":
            raise BrokenFile(f"{self._name} does not begin with GGUF")
        version = self._number("<I")
        if version not in (2, 3):
            raise BrokenFile(f"{self._name} has version {version}; 2 and 3 can be read")
        arrays, pairs = self._number("<Q"), self._number("<Q")
        self.values: dict[str, Any] = {}
        for _ in range(pairs):
            key = self._string()
            if key in self.values:
                raise BrokenFile(f"{self._name} says twice what {key!r} is")
            self.values[key] = self._value(self._number("<I"))
        self._places = self._table(arrays)

    @property
    def size(self) -> int:
        """Bytes of the whole file."""
        return len(self._bytes)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: place.shape for name, place in self._places.items()}

    def array(self, name: str) -> np.ndarray:
        """Return one array as float32, read and dequantised now.

        Raises:
            KeyError: there is no array of that name.
        """
        place = self._places[name]
        return place.kind.read(self.blocks(name)).reshape(place.shape)

    def blocks(self, name: str) -> np.ndarray:
        """Return the bytes of one array, a row for each block, (blocks, bytes).

        Raises:
            KeyError: there is no array of that name.
        """
        place = self._places[name]
        # Not through the map: its pages would stay in memory beside the arrays.
        raw = np.fromfile(self._path, np.uint8, place.bytes, offset=place.start)
        return raw.reshape(-1, place.kind.size)

    def kind(self, name: str) -> str:
        """Return how the numbers of an array are kept, such as ``Q4_1``.

        Raises:
            KeyError: there is no array of that name.
        """
        return self._places[name].kind.name

    def _take(self, count: int) -> np.ndarray:
        if count > len(self._bytes) - self._at:
            raise BrokenFile(
                f"{self._name} is cut off: {count} bytes are needed at {self._at}, "
                f"and it ends at {len(self._bytes)}"
            )
        start, self._at = self._at, self._at + count
        return self._bytes[start : self._at]

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)).tobytes())[0]

    def _string(self) -> str:
        try:
            return self._take(self._number("<Q")).tobytes().decode()
        except UnicodeDecodeError:
            raise BrokenFile(f"{self._name} holds a text that is not UTF-8") from None

    def _value(self, kind: int) -> Any:
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            return self._list()
        raise BrokenFile(f"{self._name} holds a value of unknown type {kind}")

    def _list(self) -> list:
        kind, count = self._number("<I"), self._number("<Q")
        if kind in _NUMBERS:
            form = _NUMBERS[kind]
            raw = self._take(count * struct.calcsize(form)).tobytes()
            return [value for (value,) in struct.iter_unpack(form, raw)]
        if kind != _STRING:
            raise BrokenFile(f"{self._name} holds a list of unknown type {kind}")
        # One at a time would be slow: a vocabulary has tens of thousands.
        whole, ends = memoryview(self._bytes), len(self._bytes)
        at, texts = self._at, []
        for _ in range(count):
            if at + 8 > ends:
                raise BrokenFile(f"{self._name} is cut off in a list at {at}")
            (length,) = struct.unpack_from("<Q", whole, at)
            at += 8
            if length > ends - at:
                raise BrokenFile(f"{self._name} is cut off in a list at {at}")
            texts.append(bytes(whole[at : at + length]))
            at += length
        self._at = at
        try:
            return [text.decode() for text in texts]
        except UnicodeDecodeError:
            raise BrokenFile(f"{self._name} holds a text that is not UTF-8") from None

    def _table(self, count: int) -> dict[str, _Place]:
        found: dict[str, tuple] = {}
        for _ in range(count):
            name, axes = self._string(), self._number("<I")
            if axes > _MOST_AXES:
                raise BrokenFile(f"{self._name}: {name} has {axes} axes")
            # The file names the inner axis first.
            shape = tuple(self._number("<Q") for _ in range(axes))[::-1]
            kind, offset = self._number("<I"), self._number("<Q")
            if name in found:
                raise BrokenFile(f"{self._name} has two arrays {name!r}")
            if kind not in _KINDS:
                known = ", ".join(k.name for k in _KINDS.values())
                raise BrokenFile(
                    f"{self._name}: {name} has type {kind}; what can be read: {known}"
                )
            found[name] = shape, _KINDS[kind], offset
        alignment = self.values.get("general.alignment", _ALIGNMENT)
        if not isinstance(alignment, int) or alignment < 1:
            raise BrokenFile(f"{self._name} has the alignment {alignment!r}")
        start = -(-self._at // alignment) * alignment
        return {name: self._place(name, start, *rest) for name, rest in found.items()}

    def _place(
        self, name: str, start: int, shape: tuple, kind: _Kind, offset: int
    ) -> _Place:
        if shape and shape[-1] % kind.numbers:
            raise BrokenFile(
                f"{self._name}: {name} has rows of {shape[-1]} numbers, and "
                f"{kind.name} keeps {kind.numbers} together"
            )
        size = math.prod(shape) // kind.numbers * kind.size
        if start + offset + size > len(self._bytes):
            raise BrokenFile(
                f"{self._name}: {name} should end at byte {start + offset + size}, "
                f"and the file ends at {len(self._bytes)}"
            )
        return _Place(shape, kind, start + offset, size)
