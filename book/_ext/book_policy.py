"""A strict Content-Security-Policy in every page.

Scripts come from the book itself; the few inline ones are named by their hash,
computed from the finished page, so that the policy cannot drift from it. Inline
event handlers cannot be allowed this way, so a page that has one fails.
"""

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

from sphinx.errors import ExtensionError

_SCRIPT = re.compile(r"<script(?P<attributes>[^>]*)>(?P<code>.*?)</script>", re.S)
_LIVE = re.compile(r'<script type="module" src="[./]*live/start\.\w+\.js">')
_CHARSET = re.compile(r'<meta charset="[^"]*"\s*/?>', re.I)


class _Handlers(HTMLParser):
    """Collects the tags that carry an inline event handler, however it is quoted."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if any(name.startswith("on") for name, _ in attrs):
            self.found.append(self.get_starttag_text() or tag)


def inline_handlers(html: str) -> list[str]:
    """Return the tags of a page that have an inline event handler."""
    parser = _Handlers()
    parser.feed(html)
    parser.close()
    return parser.found


def script_hashes(html: str) -> list[str]:
    """Return the sorted CSP hash sources of the page's inline scripts."""
    hashes = set()
    for match in _SCRIPT.finditer(html):
        if "src=" not in match["attributes"]:
            digest = hashlib.sha256(match["code"].encode()).digest()
            hashes.add(f"'sha256-{base64.b64encode(digest).decode()}'")
    return sorted(hashes)


def runs_python(html: str) -> bool:
    """Say whether Python can be started from a page."""
    return bool(_LIVE.search(html))


def policy(html: str) -> str:
    """Return the Content-Security-Policy for a page."""
    scripts = ["'self'", *script_hashes(html)]
    workers = []
    if runs_python(html):
        scripts.append("'wasm-unsafe-eval'")
        # A worker from a blob inherits this policy; one from an address would not.
        workers = ["worker-src blob:"]
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {' '.join(scripts)}",
            *workers,
            # KaTeX and the widgets place things with style attributes.
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data:",
            "font-src 'self'",
            "connect-src 'self'",
            "form-action 'self'",
            "base-uri 'none'",
        ]
    )


def protect(html: str, name: str) -> str:
    """Return the page with its policy put before anything that it governs.

    Raises ``ExtensionError`` if the page has an inline event handler, or no
    ``<meta charset>`` after which the policy could stand.
    """
    handlers = inline_handlers(html)
    if handlers:
        raise ExtensionError(f"{name}: inline event handler: {handlers[0]}")
    charset = _CHARSET.search(html)
    if not charset:
        raise ExtensionError(f"{name}: no <meta charset>")
    meta = (
        f'\n    <meta http-equiv="Content-Security-Policy" content="{policy(html)}" />'
    )
    return html[: charset.end()] + meta + html[charset.end() :]


def _protect_all(app, exception) -> None:
    if exception is None and app.builder.format == "html":
        for path in sorted(Path(app.outdir).rglob("*.html")):
            path.write_text(protect(path.read_text("utf-8"), path.name), "utf-8")


def setup(app):
    # After book_slim, which writes the pages' links anew.
    app.connect("build-finished", _protect_all, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
