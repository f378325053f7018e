"""Answers measured where a model is at hand, and read from a record elsewhere."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import numpy as np

__all__ = ["Recorded"]

_DIGITS = 5


class Recorded:
    """Asks a model if there is one, and otherwise the record of what it said.

    ``ask(question, measure)`` calls ``measure`` when live and returns what was
    recorded under ``question`` when not. Either way the answer consists of plain
    lists, numbers and texts, with numbers rounded to five digits, so that what
    follows is the same.

    Args:
        name: of the record, ``attnbook/data/<name>.json``.
        live: whether to measure.

    Attributes:
        answers: of all questions so far.
    """

    def __init__(self, name: str, live: bool) -> None:
        self.name, self.live = name, live
        self.answers: dict[str, Any] = {}
        path = files("attnbook") / "data" / f"{name}.json"
        self._record: dict[str, Any] = json.loads(path.read_text("utf-8"))

    def __call__(self, question: str, measure: Callable[[], Any]) -> Any:
        """Return the answer to a question.

        Raises:
            KeyError: nothing was recorded under this question.
        """
        if self.live:
            answer = _plain(measure())
        elif question in self._record:
            answer = self._record[question]
        else:
            raise KeyError(
                f"nothing was recorded under {question!r}; to measure it, the model "
                f"is needed"
            )
        self.answers[question] = answer
        return answer

    def differences(self) -> list[str]:
        """Return the questions that were answered otherwise than is recorded.

        Numbers may differ by a hundredth of their size, and small ones by 0.002:
        machines differ in the last bits, and thirty blocks make more of them. When
        not live there are none, for then the answers *are* the record.
        """
        return [
            question
            for question, answer in self.answers.items()
            if question not in self._record
            or not _alike(answer, self._record[question])
        ]


def _alike(one: Any, two: Any) -> bool:
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(_alike, one, two))
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(_alike(one[k], two[k]) for k in one)
    if isinstance(one, float | int) and isinstance(two, float | int):
        return math.isclose(one, two, rel_tol=0.01, abs_tol=0.002)
    return one == two


def _plain(value: Any) -> Any:
    """Turn arrays, tuples and NumPy's numbers into what JSON has."""
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    number = float(value)
    # JSON has no NaN.
    return float(f"{number:.{_DIGITS}g}") if np.isfinite(number) else None
