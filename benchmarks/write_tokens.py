"""How fast a published model writes on the book's functions, and what limits it.

To write one token each weight is read once, so the pace of the memory is the limit:
it is measured by one large product of a matrix with a vector, in turn with the
writing. With ``BENCH_TORCH_PYTHON`` set to an interpreter that has torch,
transformers and gguf, the same weights are also run there, in the same turns.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import threadpoolctl

from attnbook.pretrained import files, load_smollm2

HERE = Path(__file__).parent
PROMPT = "Once upon a time, there was a"
TOKENS = 24
LOAD = """
import json, resource, sys, time
start = time.perf_counter()
from attnbook.pretrained import load_smollm2
load_smollm2()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
unit = 1 if sys.platform == "darwin" else 1024
print(json.dumps([time.perf_counter() - start, peak * unit]))
"""


def load() -> tuple[float, int]:
    """Return seconds and the most memory, in bytes, in a process of its own."""
    runs = [
        json.loads(subprocess.check_output([sys.executable, "-c", LOAD], text=True))
        for _ in range(3)
    ]
    return statistics.median(s for s, _ in runs), max(m for _, m in runs)


def pace_of_memory(matrix: np.ndarray) -> float:
    """Return bytes a second of a product that reads a large matrix once."""
    vector = np.ones(matrix.shape[1], np.float32)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        matrix @ vector
        times.append(time.perf_counter() - start)
    return matrix.nbytes / statistics.median(times)


def pace_of_writing(model, ids: np.ndarray) -> float:
    """Return tokens a second, the prompt not counted."""
    stream, times = model.stream(ids), []
    next(stream)
    for _ in range(TOKENS):
        start = time.perf_counter()
        next(stream)
        times.append(time.perf_counter() - start)
    return 1 / statistics.median(times)


class Torch:
    """Another interpreter, which writes when it is told to."""

    def __init__(self, python: str, ids: np.ndarray, threads: int) -> None:
        self.process = subprocess.Popen(
            [python, HERE / "torch_writer.py", str(files.find(files.SMOLLM2))]
            + [json.dumps(ids.tolist()), str(TOKENS), str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.says = self._answer()["says"]

    def _answer(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the interpreter in BENCH_TORCH_PYTHON has stopped")
        return json.loads(line)

    def pace(self) -> float:
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return 1 / self._answer()["median"]

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=30)


def measure(rounds: int = 7) -> dict:
    """Return load time, memory, paces, and the ratios of each round."""
    seconds, peak = load()
    model = load_smollm2()
    ids = model.encode(PROMPT)
    parts = ("w_q", "w_k", "w_v", "w_gate", "w_up")  # views into joined arrays
    read = sum(a.nbytes for n, a in model.parameters.items() if not n.endswith(parts))
    pools = threadpoolctl.threadpool_info()
    threads = max(p["num_threads"] for p in pools if p["user_api"] == "blas")
    python = os.environ.get("BENCH_TORCH_PYTHON")
    torch = Torch(python, ids, threads) if python else None
    if torch and torch.says != model.generate(ids, TOKENS):
        raise RuntimeError("PyTorch writes something else")
    matrix = np.ones((12_000, 6_000), np.float32)
    turns = []
    for _ in range(rounds):
        turn = {"memory": pace_of_memory(matrix), "book": pace_of_writing(model, ids)}
        if torch:
            turn["torch"] = torch.pace()
        turns.append(turn)
    if torch:
        torch.close()

    def middle(value) -> float:
        return statistics.median(value(turn) for turn in turns)

    return {
        "threads": threads,
        "load": seconds,
        "peak": peak,
        "read": read,
        "memory": middle(lambda t: t["memory"]),
        "pace": middle(lambda t: t["book"]),
        "share": middle(lambda t: t["book"] * read / t["memory"]),
        "torch": middle(lambda t: t["torch"]) if torch else None,
        "faster": middle(lambda t: t["book"] / t["torch"]) if torch else None,
        "turns": turns,
    }


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
