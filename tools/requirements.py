"""Compile requirements.txt and binder/requirements.txt from pyproject.toml."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMMON = ["--universal", "--generate-hashes", "--no-annotate", "--quiet"]
COMMON += ["--custom-compile-command", "make requirements"]


def compile_to(output: str, *options: str) -> None:
    subprocess.check_call(
        ["uv", "pip", "compile", "pyproject.toml", *COMMON, *options, "-o", output],
        cwd=ROOT,
    )


def main() -> None:
    compile_to("requirements.txt", "--all-extras")
    # What the notebooks need is a part of the same set, at the same versions.
    compile_to(
        "binder/requirements.txt", "--extra", "lab", "--constraint", "requirements.txt"
    )


if __name__ == "__main__":
    main()
