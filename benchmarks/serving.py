"""What the benchmarks share: a server on a free loopback port, and the browser."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

import browser


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a line for each."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder on loopback; give the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def browser_options() -> dict:
    """Return Playwright's launch options for the browser of this machine."""
    return {
        "executable_path": browser.find(),
        "args": ["--no-sandbox", "--disable-background-networking", "--disable-sync"]
        + ["--disable-gpu", "--disable-component-update", "--no-first-run"],
    }
