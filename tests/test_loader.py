"""The loader of static pages, tried with a module that tells what it was given."""

import pytest
from widget_support import served, write_page

from attnbook.widgets import WIDGETS

# What the loader asks of a widget's module, and nothing else.
PROBE = """
export default {
  accepts: () => true,
  async render({ el, signal }) {
    const told = { el, signal, cleaned: 0 };
    (globalThis.told ??= []).push(told);
    el.textContent = "alive";
    await globalThis.pause;
    return () => { told.cleaned++; };
  },
};
"""
STATE = '{"a":1,"b":[1,2],"c":"x"}'


class Probe:
    """Stands for a widget where a page is written."""

    def to_html(self) -> str:
        picture = "<figure>still</figure>"
        return f"<div data-widget='probe' data-state='{STATE}'>{picture}</div>"


@pytest.fixture
def open_probe(browser, tmp_path):
    """Open a page with one probe; ``hold`` keeps its module on the way."""
    write_page(tmp_path, Probe())
    (tmp_path / "_static" / "widgets" / "probe.js").write_text(PROBE)
    pages = []
    with served(tmp_path) as address:

        def open_probe(hold=None, before=""):
            pages.append(browser.new_page())
            if before:
                pages[-1].add_init_script(before)
            if hold is not None:
                pages[-1].route("**/probe.js", lambda route: hold.append(route))
            pages[-1].goto(address)
            return pages[-1]

        yield open_probe
        for page in pages:
            page.close()


def run(page, body: str):
    """Run JavaScript that knows the loader and the probe's host."""
    return page.evaluate(
        f"""async () => {{
            const loader = await import("/_static/widgets/loader.js");
            const host = document.querySelector("[data-widget]");
            {body}
        }}"""
    )


SHOWN = """({
    children: host.children.length,
    hydrated: host.dataset.hydrated ?? null,
    picture: !host.querySelector("figure").hidden,
    model: loader.modelOf(host) !== undefined,
})"""
A_PICTURE = {"children": 1, "hydrated": None, "picture": True, "model": False}


def test_dispose_aborts_the_signal_that_render_was_given(open_probe):
    page = open_probe()
    page.locator("[data-hydrated='1']").wait_for()
    before, after, cleaned = run(
        page,
        """const before = told[0].signal.aborted;
        await loader.dispose(host);
        await loader.dispose(host);
        return [before, told[0].signal.aborted, told[0].cleaned];""",
    )
    assert (before, after, cleaned) == (False, True, 1)
    assert run(page, f"return {SHOWN};") == A_PICTURE


def test_a_widget_disposed_while_its_module_is_on_the_way_is_not_rendered(open_probe):
    held = []
    page = open_probe(hold=held)
    while not held:
        page.wait_for_timeout(20)
    run(page, "await loader.dispose(host);")
    held[0].continue_()
    # The same import resolves for the loader first, which asked first.
    arrived = """await import("/_static/widgets/probe.js");
        await new Promise((done) => setTimeout(done, 50));"""
    assert run(page, f"{arrived} return globalThis.told ?? null;") is None
    assert run(page, f"return {SHOWN};") == A_PICTURE
    assert run(page, "await loader.hydrate(host); return told.length;") == 1


def test_a_widget_disposed_while_it_is_rendered_leaves_nothing(open_probe):
    page = open_probe(
        before="globalThis.pause = new Promise((go) => (globalThis.go = go));"
    )
    page.get_by_text("alive").wait_for()
    run(
        page,
        """await loader.dispose(host);
        go();
        await new Promise((done) => setTimeout(done, 50));""",
    )
    assert run(page, "return [told[0].signal.aborted, told[0].cleaned];") == [True, 1]
    assert run(page, f"return {SHOWN};") == A_PICTURE


def test_an_address_holds_the_changed_traits_and_no_others(open_probe):
    page = open_probe()
    page.locator("[data-hydrated='1']").wait_for()
    fragments = run(
        page,
        """const model = loader.modelOf(host);
        const fragment = () => new URL(model.address()).hash;
        const seen = [fragment()];
        for (const [name, value] of
            [["b", [1, 3]], ["a", 1], ["c", "y & z"], ["b", [1, 2]], ["c", "x"]]) {
            model.set(name, value);
            seen.push(fragment());
        }
        return seen;""",
    )
    assert fragments == [
        "",
        "#w.1.b=%5B1%2C3%5D",
        "#w.1.b=%5B1%2C3%5D",
        "#w.1.b=%5B1%2C3%5D&w.1.c=%22y%20%26%20z%22",
        "#w.1.c=%22y%20%26%20z%22",  # an equal list is no change
        "",
    ]


# --- every widget there is ----------------------------------------------------


@pytest.fixture(scope="module")
def address_of_all(tmp_path_factory):
    folder = tmp_path_factory.mktemp("all")
    write_page(folder, *(make() for make in WIDGETS.values()))
    with served(folder) as address:
        yield address


@pytest.mark.parametrize("width", [320, 900])
@pytest.mark.parametrize("name", WIDGETS)
def test_every_widget_comes_alive_fits_and_goes(browser, address_of_all, name, width):
    page, reports = browser.new_page(viewport={"width": width, "height": 900}), []
    page.on("console", lambda message: reports.append(message.text))
    page.on("pageerror", lambda error: reports.append(str(error)))
    page.goto(address_of_all)
    host = page.locator(f"[data-widget={name}]")
    host.scroll_into_view_if_needed()
    host.locator(".attn-root").wait_for()
    assert host.get_attribute("data-hydrated") == "1"
    assert len(host.locator(".attn-sentence").inner_text()) > 20
    assert host.locator("[id]").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    left = host.evaluate(
        """async (host) => {
            const loader = await import("/_static/widgets/loader.js");
            const model = loader.modelOf(host);
            const before = model.listenerCount;
            await loader.dispose(host);
            return [before > 0, model.listenerCount, host.children.length];
        }"""
    )
    assert left == [True, 0, 1]
    page.close()
    assert reports == []
