"""Read safetensors: eight bytes, a header in JSON, and the arrays behind it.

The format: https://huggingface.co/docs/safetensors. It holds nothing but numbers,
so reading it runs nothing.
"""

from __future__ import annotations

import json
import math
import struct

import numpy as np

from attnbook.pretrained.gguf import BrokenFile

__all__ = ["read_safetensors"]

_DTYPES = {"F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4"}


def read_safetensors(data: bytes, name: str = "the data") -> dict[str, np.ndarray]:
    """Return the arrays of a safetensors file, as read-only views of ``data``.

    Args:
        data: the whole file.
        name: what errors call it.

    Raises:
        BrokenFile: it does not hold to the format, is cut off, or has arrays of
            other types than F32, F16, I64 and I32.
    """
    if len(data) < 8:
        raise BrokenFile(f"{name} is too short to be a safetensors file")
    (length,) = struct.unpack_from("<Q", data)
    if length > len(data) - 8:
        raise BrokenFile(f"{name} is cut off: its header should have {length} bytes")
    try:
        header = json.loads(data[8 : 8 + length])
        items = dict(header).items()
    except (ValueError, TypeError, RecursionError):
        raise BrokenFile(f"{name} has a header that is not JSON") from None
    body, arrays = memoryview(data)[8 + length :], {}
    for key, entry in items:
        if key == "__metadata__":
            continue
        try:
            dtype = np.dtype(_DTYPES[entry["dtype"]])
            shape = tuple(int(n) for n in entry["shape"])
            start, end = (int(n) for n in entry["data_offsets"])
        except (KeyError, TypeError, ValueError):
            raise BrokenFile(f"{name}: {key} is described wrongly: {entry}") from None
        if min((*shape, start), default=0) < 0 or not start <= end <= len(body):
            raise BrokenFile(f"{name}: {key} should lie at {start} to {end}, outside")
        if end - start != math.prod(shape) * dtype.itemsize:
            raise BrokenFile(
                f"{name}: {key} has shape {shape}, and {end - start} bytes for it"
            )
        arrays[key] = np.frombuffer(body[start:end], dtype).reshape(shape)
    return arrays
