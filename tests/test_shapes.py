"""The shapes in the annotations are true: checked by jaxtyping's import hook.

The hook must come before the first import of the module, so each check runs in
a Python of its own.
"""

import subprocess
import sys

UNDER_THE_HOOK = """
import numpy as np
from jaxtyping import TypeCheckError, install_import_hook
with install_import_hook("attnbook", "beartype.beartype"):
    from attnbook import ops, sampling
"""
RIGHT = """
rng = np.random.default_rng(0)
for batch in ((), (2,), (2, 3)):
    for dtype in (np.float32, np.float64):
        q, k, v = (rng.standard_normal((*batch, *s)).astype(dtype)
                   for s in ((2, 3), (5, 3), (5, 4)))
        for allow in (None, np.ones((2, 5), bool), np.zeros(5, bool)):
            w = ops.attention_weights(q, k, allow)
            ops.scaled_dot_product_attention(q, k, v, allow, 0.5)
        ops.softmax(q, 0), ops.entropy(w), ops.softmax_jacobian(w)
        sampling.temperature(q, 0.5), sampling.temperature(q, 0)
        sampling.top_k(q, 2), sampling.top_p(q, 0.5), sampling.sample(q, rng)
ops.sample_dot_products(rng, 4, (2, 3)), ops.sample_dot_products(rng, 4, 5)
sampling.generate(lambda ids: np.zeros((len(ids), 5)), [1], 3, rng)
print("all shapes hold")
"""
WRONG = """
try:
    ops.attention_weights(np.ones((2, 3)), np.ones((5, 4)))
except TypeCheckError:
    print("the hook bites")
"""


def python(code: str) -> str:
    return subprocess.check_output([sys.executable, "-c", code], text=True).strip()


def test_the_annotated_shapes_hold():
    assert python(UNDER_THE_HOOK + RIGHT) == "all shapes hold"


def test_the_hook_would_notice_a_wrong_shape():
    assert python(UNDER_THE_HOOK + WRONG) == "the hook bites"


def test_readers_do_not_need_jaxtyping():
    code = "import sys; import attnbook.sampling; print('jaxtyping' in sys.modules)"
    assert python(code) == "False"
