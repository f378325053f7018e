"""Print the path of a Chromium for the tests, installing one where there is none.

Looked for in this order: ``$CHROMIUM``, the system's, Debian's package (as
root), Playwright's own.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
APPLICATIONS = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)


def on_this_machine() -> str | None:
    """Return the browser that ``$CHROMIUM`` names or that the system has.

    Raises ``SystemExit`` if ``$CHROMIUM`` names nothing that can be run.
    """
    named = os.environ.get("CHROMIUM")
    if named:
        if not shutil.which(named):
            sys.exit(f"$CHROMIUM is {named!r}, which is not a program")
        return shutil.which(named)
    found = [path for name in NAMES if (path := shutil.which(name))]
    found += [path for path in APPLICATIONS if os.access(path, os.X_OK)]
    return found[0] if found else None


def playwrights_own() -> str | None:
    """Return the browser that Playwright downloaded, if it has."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def from_debian() -> None:
    if not shutil.which("apt-get") or os.geteuid() != 0:
        return
    print("installing Debian's chromium for the tests", file=sys.stderr)
    # A failed update may leave an old list that still serves: install decides.
    subprocess.run(["apt-get", "update", "-qq"], stdout=sys.stderr)
    subprocess.run(
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends"]
        + ["chromium", "fonts-dejavu-core"],
        stdout=sys.stderr,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
    )


def from_playwright() -> None:
    print("downloading Playwright's chromium for the tests", file=sys.stderr)
    subprocess.run(
        [sys.executable, "-m", "playwright", "install", "chromium"], stdout=sys.stderr
    )


def find() -> str:
    """Return the path of a browser, or exit with one line saying what is missing."""
    path = on_this_machine()
    if not path:
        from_debian()
        path = on_this_machine() or playwrights_own()
    if not path:
        from_playwright()
        path = playwrights_own()
    if not path:
        sys.exit("missing: Chromium (install it, or set CHROMIUM to its path)")
    return path


if __name__ == "__main__":
    print(find())
