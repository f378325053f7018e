"""Serve the built site on this machine only, and print its address.

Usage: python tools/serve.py (port 8000 or the next free one; PORT=… chooses)

In the packed book this file lies beside the site, and opens it in the browser, too.
It needs nothing but Python.
"""

import functools
import http.server
import os
import webbrowser
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKED = (HERE / "site" / "index.html").exists()
SITE = HERE / "site" if PACKED else HERE.parent / "_build" / "site"
HOST = "127.0.0.1"


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files with the types that browsers insist on, and the book's 404."""

    extensions_map = {  # noqa: RUF012 (the base class declares it so)
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
        ".svg": "image/svg+xml",
        ".json": "application/json",
        ".ipynb": "application/x-ipynb+json",
        ".woff2": "font/woff2",
    }

    def send_error(self, code, message=None, explain=None) -> None:
        page = Path(self.directory) / "404.html"
        if code != 404 or not page.exists():
            super().send_error(code, message, explain)
            return
        body = page.read_bytes()
        self.send_response(404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def end_headers(self) -> None:
        # A rebuilt page must not be hidden by the browser's memory of the old one.
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, format, *arguments) -> None:
        """Say nothing: the address is what the terminal is for."""


def open_server(site: Path, port: int | None = None) -> http.server.ThreadingHTTPServer:
    """Return a server for ``site`` on ``port``, or on the first free one from 8000.

    Raises ``OSError`` if ``port`` is given and taken, or if all are.
    """
    handler = functools.partial(Handler, directory=str(site))
    candidates = [port] if port is not None else range(8000, 8100)
    for candidate in candidates:
        try:
            return http.server.ThreadingHTTPServer((HOST, candidate), handler)
        except OSError as error:
            taken = error
    raise taken


def main() -> None:
    if not (SITE / "index.html").exists():
        raise SystemExit("The site is not built yet: run make book first.")
    wanted = os.environ.get("PORT")
    if wanted is not None and not (wanted.isdigit() and int(wanted) < 65536):
        raise SystemExit(f"PORT is {wanted!r}: a number up to 65535 is needed.")
    try:
        server = open_server(SITE, int(wanted) if wanted else None)
    except OSError as error:
        raise SystemExit(
            f"Port {wanted or '8000 to 8099'}: {error.strerror}."
        ) from None
    with server:
        address = f"http://{HOST}:{server.server_port}/"
        print(f"Serving the book at {address} (Ctrl-C stops)", flush=True)
        if PACKED:
            webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()
