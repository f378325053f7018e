"""Run every notebook under nbval and compare it with its stored outputs.

With ``--oldest`` in a child environment that differs in all that may differ
on a reader's machine: the oldest supported NumPy, one thread, another BLAS
kernel, and no published models. Further arguments go to pytest.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
OLDEST = ROOT / ".oldest"
# NumPy 2.0 has no wheels for Python 3.13.
OLDEST_NUMPY = "2.0.2" if sys.version_info < (3, 13) else "2.1.0"
OTHER_KERNEL = "Prescott" if platform.machine() in ("x86_64", "AMD64") else "ARMV8"

DESCRIBE = """
import json, numpy, threadpoolctl
pools = [p for p in threadpoolctl.threadpool_info() if p["user_api"] == "blas"]
print(json.dumps({"numpy": numpy.__version__,
                  "kernels": [p.get("architecture") for p in pools],
                  "threads": [p["num_threads"] for p in pools]}))
"""


def describe(environment: dict[str, str]) -> dict:
    """Return the NumPy version, BLAS kernels and threads of an environment."""
    output = subprocess.check_output(
        [sys.executable, "-c", DESCRIBE], env=environment, text=True
    )
    return json.loads(output)


def oldest_environment() -> dict[str, str]:
    """Make the child environment, and make sure that it is what it says."""
    stamp = OLDEST / f".numpy-{OLDEST_NUMPY}"
    if not stamp.exists():
        subprocess.check_call(
            [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
            + ["--disable-pip-version-check", "--upgrade", "--target", str(OLDEST)]
            + ["--only-binary=numpy", f"numpy=={OLDEST_NUMPY}"]
        )
        stamp.touch()
    child = {
        **os.environ,
        "PYTHONPATH": str(OLDEST),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        # What was recorded must print the same lines.
        "ATTNBOOK_MODELS": "off",
    }
    preset = "OPENBLAS_CORETYPE" in os.environ
    if preset:
        print("OPENBLAS_CORETYPE is set already: the other BLAS kernel is left out")
    else:
        child["OPENBLAS_CORETYPE"] = OTHER_KERNEL
    here, there = describe(dict(os.environ)), describe(child)
    print(f"as pinned: {here}\nchild:     {there}")
    if there["numpy"] != OLDEST_NUMPY:
        sys.exit(f"the child has NumPy {there['numpy']}, not {OLDEST_NUMPY}")
    if set(there["threads"]) != {1}:
        sys.exit(f"the child uses {there['threads']} BLAS threads, not 1")
    if not preset and here["kernels"] == there["kernels"]:
        sys.exit(f"the child has the same BLAS kernel, {there['kernels']}")
    return child


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--oldest", action="store_true")
    parser.add_argument("paths", nargs="*", default=["notebooks"])
    arguments = parser.parse_args()
    environment = oldest_environment() if arguments.oldest else dict(os.environ)
    # A reader's kept answers must not change what is compared.
    environment["ATTNBOOK_WORK"] = "off"
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-q"]
    command += ["-n", "2", "--dist", "loadfile", "-o", "filterwarnings=default"]
    return subprocess.run(
        [*command, *arguments.paths], env=environment, cwd=ROOT
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
