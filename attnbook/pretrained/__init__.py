"""Two published models, read from their files and run on the functions of this book.

``load_smollm2`` writes, ``load_minilm`` reads. Any function of theirs can be replaced
by one of the reader's own, by name.
"""

from attnbook.pretrained.files import INSTALL, ModelUnavailable
from attnbook.pretrained.gguf import BrokenFile
from attnbook.pretrained.minilm import MiniLM, load_minilm
from attnbook.pretrained.recorded import Recorded
from attnbook.pretrained.smollm2 import SmolLM2, load_smollm2, open_smollm2

__all__ = [
    "INSTALL",
    "BrokenFile",
    "MiniLM",
    "ModelUnavailable",
    "Recorded",
    "SmolLM2",
    "load_minilm",
    "load_smollm2",
    "open_smollm2",
]
