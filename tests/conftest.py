"""What tests of the built pages share: the site, a server, and a browser."""

import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import hypothesis
import pytest
from playwright.sync_api import Browser, Page, Request, Route, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "_build" / "site"
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
sys.path[:0] = [str(ROOT / p) for p in ("tools", "book/_ext", "live")]

import serve  # noqa: E402 (after the path to it)

# Speed is measured in benchmarks/, and never by a test on a busy machine.
hypothesis.settings.register_profile("book", deadline=None)
hypothesis.settings.load_profile("book")

# A test asks no other host for anything, and neither does the browser itself.
BROWSER_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def pages(folder: Path = SITE) -> list[str]:
    """Return the editions' pages by address: no entrance, no root 404, no lab."""
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.glob("*/*.html")
        if (path.parent / "_static").is_dir()
    )


def browser_path() -> str | None:
    """Return the browser to drive; None means the one Playwright has installed."""
    given = os.environ.get("CHROMIUM")
    if given:
        return given
    if Path("/usr/bin/chromium").exists():
        return "/usr/bin/chromium"
    return shutil.which("chromium")


@pytest.fixture(scope="session")
def site() -> Path:
    """The built site; a test that needs it fails if there is none."""
    if not (SITE / "index.html").exists():
        pytest.fail("The site is not built: run make book first.", pytrace=False)
    return SITE


@pytest.fixture(scope="session")
def live(site: Path) -> Path:
    """The site, with Python in its pages; a test that needs it fails without."""
    if not (site / "pyodide").is_dir():
        pytest.fail("The site has no Python: live/fetch.py says why.", pytrace=False)
    return site


@pytest.fixture(scope="session")
def serve_folder() -> Iterator[Callable[[Path], str]]:
    """Serve a folder on loopback and return its address, without a last slash."""
    servers = []

    def start(folder: Path) -> str:
        server = serve.open_server(folder, 0)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="session")
def site_url(site: Path, serve_folder: Callable[[Path], str]) -> str:
    """The address at which the built site is served."""
    return serve_folder(site)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium: $CHROMIUM, the system's, or Playwright's own.

    One for each module, because other tests cannot run an event loop meanwhile.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_path(), args=BROWSER_ARGUMENTS
        )
        yield browser
        browser.close()


@dataclass
class Visit:
    """An open page, and what happened while it was open."""

    page: Page
    errors: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    cut_off: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    requested: list[str] = field(default_factory=list)

    def note_failure(self, request: Request) -> None:
        """Note a failed request; one that was cut off may mean a page was left."""
        cut_off = request.failure == "net::ERR_ABORTED"
        (self.cut_off if cut_off else self.failed).append(request.url)

    def assert_clean(self) -> None:
        """Fail if there was an error, a failed request or a look at another host."""
        assert self.errors == []
        assert self.failed == []
        stayed = self.page.url.partition("#")[0] == self.requested[0]
        assert self.cut_off == [] or not stayed
        assert self.refused == []


def open_visit(browser: Browser, url: str, **options: object) -> Visit:
    """Open an address in a fresh context in which all other hosts are refused.

    Keyword arguments go to Playwright's ``new_context``.
    """
    options = {"viewport": {"width": 1400, "height": 900}, **options}
    context = browser.new_context(**options)
    visit = Visit(context.new_page())
    host = urlsplit(url).netloc

    def guard(route: Route) -> None:
        address = urlsplit(route.request.url)
        if address.scheme in ("http", "https") and address.netloc != host:
            visit.refused.append(route.request.url)
            route.abort()
        else:
            visit.requested.append(route.request.url)
            route.continue_()

    context.route("**/*", guard)
    page = visit.page
    page.on("console", lambda m: m.type == "error" and visit.errors.append(m.text))
    page.on("pageerror", lambda error: visit.errors.append(str(error)))
    page.on("requestfailed", visit.note_failure)
    page.on(
        "response",
        lambda r: r.status >= 400 and visit.failed.append(f"{r.status} {r.url}"),
    )
    page.goto(url, wait_until="load")
    return visit


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """Open addresses as ``open_visit`` does; all are closed at the end."""
    visits = []

    def start(url: str, **options: object) -> Visit:
        visits.append(open_visit(browser, url, **options))
        return visits[-1]

    yield start
    for visit in visits:
        visit.page.context.close()


def wake_widgets(page: Page) -> None:
    """Scroll to every widget of a page and wait until all are alive."""
    for host in page.locator("[data-widget]").all():
        host.scroll_into_view_if_needed()
        # Playwright's own waiting evaluates a string, which the policy forbids.
        for _ in range(100):
            if host.get_attribute("data-hydrated"):
                break
            page.wait_for_timeout(50)
        assert host.get_attribute("data-hydrated") == "1"


@pytest.fixture
def open_page(browser: Browser, address: str) -> Iterator[Callable[..., Page]]:
    """Open the page with widgets at the module's ``address``.

    At the end nothing may have been reported in its console, and nothing failed.
    """
    contexts, reports = [], []

    def open_page(fragment: str = "", **settings) -> Page:
        settings = {"viewport": {"width": 800, "height": 900}, **settings}
        contexts.append(browser.new_context(**settings))
        page = contexts[-1].new_page()
        page.on("console", lambda message: reports.append(message.text))
        page.on("pageerror", lambda error: reports.append(str(error)))
        page.on("requestfailed", lambda request: reports.append(request.url))
        page.goto(address + fragment)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert reports == []


def pytest_terminal_summary(terminalreporter) -> None:
    """Report the mutation score: how many wrong versions the checks have refused."""
    reports = terminalreporter.getreports("passed") + terminalreporter.getreports(
        "failed"
    )
    found = [dict(report.user_properties) for report in reports]
    counts = [f for f in found if "mutants" in f]
    if counts:
        made = sum(f["mutants"] for f in counts)
        refused = made - sum(f["accepted"] for f in counts)
        terminalreporter.write_line(
            f"mutation score: {refused} of {made} mechanical mutants of "
            f"{len(counts)} solutions refused ({refused / made:.1%})"
        )
