"""Right and wrong answers, to be judged alike wherever a check runs.

Each is an answer to an exercise of one chapter, as a reader would write it into the
stub's cell, with the status and the mistake that its verdict must have.
"""

import dataclasses
from dataclasses import dataclass

from attnbook.exercises import Verdict, check
from attnbook.language import translate

CHAPTER = "01_qkv"


@dataclass(frozen=True)
class Case:
    stub: str  # the id of the stub's cell; its check's is alike
    exercise: str
    source: str
    status: str
    mistake: str | None = None

    @property
    def check(self) -> str:
        """The id of the check's cell."""
        return f"{self.stub.removesuffix('-stub')}-check"


def _softmax(lines: str) -> str:
    return f"def softmax(x, axis=-1):\n{lines}"


_ATTENTION = """\
def scaled_dot_product_attention(q, k, v, allow=None, scale=None):
    if scale is None:
        scale = {scale}
    scores = q @ k.swapaxes(-1, -2) * scale
    if allow is not None:
        scores = np.where({allow}, scores, -np.inf)
    highest = scores.max(axis=-1, keepdims=True)
    exps = np.exp(scores - np.where(np.isneginf(highest), 0, highest))
    total = exps.sum(axis=-1, keepdims=True)
    return exps / np.where(total == 0, 1, total) @ v
"""
_RIGHT_SOFTMAX = """\
    highest = x.max(axis=axis, keepdims=True)
    exps = np.exp(x - np.where(np.isneginf(highest), 0, highest))
    total = exps.sum(axis=axis, keepdims=True)
    return exps / np.where(total == 0, 1, total)
"""
_OVERFLOWS = "    e = np.exp(x)\n    return e / e.sum(axis=axis, keepdims=True)\n"

CASES = {
    "a stub": Case(
        "softmax-stub",
        "softmax",
        _softmax("    raise NotImplementedError\n"),
        "not started",
    ),
    "a right softmax": Case(
        "softmax-stub", "softmax", _softmax(_RIGHT_SOFTMAX), "right"
    ),
    "one that overflows": Case(
        "softmax-stub", "softmax", _softmax(_OVERFLOWS), "mistake", "no_maximum"
    ),
    "one that raises": Case(
        "softmax-stub", "softmax", _softmax("    return x.sofmax()\n"), "error"
    ),
    "right attention": Case(
        "attention-stub",
        "scaled_dot_product_attention",
        _ATTENTION.format(scale="q.shape[-1] ** -0.5", allow="allow"),
        "right",
    ),
    "attention scaled by d": Case(
        "attention-stub",
        "scaled_dot_product_attention",
        _ATTENTION.format(scale="1 / q.shape[-1]", allow="allow"),
        "mistake",
        "divides_by_d",
    ),
    "a mask upside down": Case(
        "attention-stub",
        "scaled_dot_product_attention",
        _ATTENTION.format(scale="q.shape[-1] ** -0.5", allow="~allow"),
        "mistake",
        "mask_upside_down",
    ),
    "a right prediction": Case(
        "value-of-tart-stub", "value_of_tart", 'value_of_tart = "c"', "right"
    ),
    "a wrong prediction": Case(
        "value-of-tart-stub",
        "value_of_tart",
        'value_of_tart = "a"',
        "mistake",
        "key",
    ),
}


def told(verdict: Verdict) -> str:
    """Return what a verdict says on every machine.

    A browser's NumPy has no floating-point warnings to pass on.
    """
    label = translate("exercise.check.warned")
    example = tuple(pair for pair in verdict.example if pair[0] != label)
    return plain(dataclasses.replace(verdict, example=example).message)


def judge(case: Case) -> Verdict:
    """Return the library's own verdict on a case."""
    names: dict = {}
    exec("import numpy as np", names)
    exec(compile(case.source, "answer", "exec"), names)
    return check(case.exercise, names[case.exercise])


def plain(text: str) -> str:
    """Return a verdict's text without the marks and spaces that only lay it out."""
    return " ".join(text.replace("`", "").split())
