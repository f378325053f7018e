"""Print what pyproject.toml asks for with its pins let go: == becomes >=.

For the weekly trial of what the pins hide. What makes the pages stays pinned, for
it moves as one: Jupyter Book 2 is another program, and the rest goes with 1.x.
The onnx release stays, for it decides which operators there are to compare with.
"""

import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
KEPT = ("jupyter-book", "sphinx", "myst-nb", "sphinx-book-theme", "onnx")


def loosened(project: dict) -> list[str]:
    """Return the requirements of a project and of all its extras, pins let go."""
    extras = project.get("optional-dependencies", {}).values()
    listed = [*project.get("dependencies", ()), *(r for e in extras for r in e)]
    return [
        requirement
        if requirement.split("==")[0] in KEPT
        else requirement.replace("==", ">=")
        for requirement in listed
    ]


def main() -> None:
    project = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]
    print(*loosened(project), sep="\n")


if __name__ == "__main__":
    main()
