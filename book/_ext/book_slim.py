"""A page carries what it uses: one style sheet, cut fonts, no spare files.

The theme's style sheets are joined, without the rules for classes that occur
nowhere in the edition; the mathematics and icon fonts keep the glyphs that do
occur. What no page, style sheet or script then refers to is not published.
"""

import hashlib
import html
import io
import itertools
import logging
import re
import shutil
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import tinycss2
from book_math import KATEX
from fontTools import subset
from fontTools.ttLib import TTFont

# It tells of every table that it keeps.
logging.getLogger("fontTools").setLevel(logging.WARNING)

LIVE = Path(__file__).resolve().parents[2] / "live"
_STYLESHEET = re.compile(r'[ \t]*<link [^>]*rel="stylesheet"[^>]*>\n?')
_HREF = re.compile(r'href="([^"]+)"')
_CLASS = re.compile(r'class="([^"]*)"')
_URL = re.compile(r"url\((['\"]?)(?!data:|#)([^)'\"]+)\1\)")
_IMPORT = re.compile(r"""@import\s+["']([^"']+)["']\s*;""")
_PROPERTY = re.compile(r"--[A-Za-z][\w-]*")
_READ = re.compile(r"var\(\s*(--[\w-]+)")
_WORD = re.compile(r"[A-Za-z_][\w-]*")
_TAG = re.compile(r"<[^>]+>")
_MATHML = re.compile(r'<span class="katex-mathml">.*?</math></span>', re.S)


# --- style sheets ----------------------------------------------------------


@dataclass(frozen=True)
class Uses:
    """The classes that pages and scripts use, and the text in which they do."""

    classes: frozenset[str]
    text: str = ""


def prune(css: str, uses: Uses) -> str:
    """Return the style sheet without what no page can need.

    A selector goes if it names a class that is not in use; what stands in
    ``:not()`` and its like is left alone. A custom property goes if neither the
    style sheet nor the pages' text names it. Licence comments stay.
    """
    elsewhere = set(_PROPERTY.findall(uses.text))
    while True:
        read = frozenset(elsewhere.union(_READ.findall(css)))
        rules = tinycss2.parse_stylesheet(css, skip_whitespace=True)
        pruned = _serialize(rules, uses.classes, read)
        # A property may have been read by one that is gone now.
        if pruned == css:
            return css
        css = pruned


def _serialize(rules: list, used: frozenset[str], read: frozenset[str]) -> str:
    parts = []
    for rule in rules:
        if rule.type == "comment" and rule.value.startswith("!"):
            parts.append(f"/*{rule.value}*/")
        elif rule.type == "qualified-rule":
            selectors = [s for s in _selectors(rule.prelude) if _lives(s, used)]
            declarations = _declarations(rule.content, read)
            if selectors and declarations:
                prelude = ",".join(_text(selector) for selector in selectors)
                parts.append(f"{prelude}{{{declarations}}}")
        elif rule.type == "at-rule":
            parts.append(_at_rule(rule, used, read))
    return "".join(parts)


def _at_rule(rule, used: frozenset[str], read: frozenset[str]) -> str:
    name = rule.lower_at_keyword
    prelude = " ".join(tinycss2.serialize(rule.prelude).split())
    head = f"@{name} {prelude}" if prelude else f"@{name}"
    if rule.content is None:
        return "" if name == "charset" else f"{head};"
    if name in ("media", "supports", "layer", "container"):
        inner = tinycss2.parse_rule_list(rule.content, skip_whitespace=True)
        body = _serialize(inner, used, read)
        return f"{head}{{{body}}}" if body else ""
    return f"{head}{{{tinycss2.serialize(rule.content).strip()}}}"


def _declarations(content: list, read: frozenset[str]) -> str:
    """Return the declarations of a rule on one line, without comments."""
    return ";".join(
        f"{d.name}:{tinycss2.serialize(d.value).strip()}"
        + ("!important" if d.important else "")
        for d in tinycss2.parse_blocks_contents(
            content, skip_comments=True, skip_whitespace=True
        )
        if d.type == "declaration" and (d.name[:2] != "--" or d.name in read)
    )


def _selectors(prelude: list) -> list[list]:
    selectors = [[]]
    for token in prelude:
        if token.type == "literal" and token.value == ",":
            selectors.append([])
        elif token.type != "comment":
            selectors[-1].append(token)
    return selectors


def _lives(selector: list, used: frozenset[str]) -> bool:
    return all(
        following.value in used
        for token, following in itertools.pairwise(selector)
        if token == "." and following.type == "ident"
    )


def _text(selector: list) -> str:
    return " ".join(tinycss2.serialize(selector).split())


def _uses(pages: dict[Path, str], scripts: list[Path]) -> Uses:
    classes = set()
    for text in pages.values():
        for match in _CLASS.finditer(text):
            classes.update(html.unescape(match[1]).split())
    code = [path.read_text("utf-8") for path in scripts]
    for text in code:
        classes.update(_WORD.findall(text))
    return Uses(frozenset(classes), "\n".join([*pages.values(), *code]))


def _joined(out: Path, hrefs: list[str]) -> str:
    """Return the text of the style sheets, imports included.

    Their addresses are made relative to ``_static``.
    """
    return "\n".join(_sheet(out, PurePosixPath(href.split("?")[0])) for href in hrefs)


def _sheet(out: Path, path: PurePosixPath) -> str:
    def imported(match: re.Match) -> str:
        return _sheet(out, _normal(path.parent / match[1]))

    def relative(match: re.Match) -> str:
        target = _normal(path.parent / match[2].split("?")[0].split("#")[0])
        return f"url({target.relative_to('_static')})"

    text = _URL.sub(relative, (out / path).read_text("utf-8"))
    return _IMPORT.sub(imported, text)


def _normal(path: PurePosixPath) -> PurePosixPath:
    parts = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return PurePosixPath(*parts)


def _join_stylesheets(out: Path, pages: dict[Path, str], live: list[Path]) -> None:
    uses = _uses(pages, [*sorted((out / "_static").rglob("*.js")), *live])
    written = {}
    for path, text in pages.items():
        up = "../" * (len(path.relative_to(out).parts) - 1)
        links = _STYLESHEET.findall(text)
        hrefs = tuple(
            html.unescape(_HREF.search(link)[1]).removeprefix(up) for link in links
        )
        if hrefs not in written:
            css = _only_woff2(prune(_joined(out, list(hrefs)), uses))
            name = f"_static/book-{hashlib.sha256(css.encode()).hexdigest()[:8]}.css"
            (out / name).write_text(css, "utf-8")
            written[hrefs] = name
        first = True

        def once(match: re.Match, name=f"{up}{written[hrefs]}") -> str:
            nonlocal first
            link = f'  <link rel="stylesheet" href="{name}" />\n' if first else ""
            first = False
            return link

        pages[path] = _STYLESHEET.sub(once, text)


# --- fonts -----------------------------------------------------------------


def _only_woff2(css: str) -> str:
    """Keep, of every font's sources, the woff2 that all browsers read.

    Of the icon fonts only the solid one is in use.
    """
    css = re.sub(r"@font-face\{[^}]*/fa-(?:brands|regular)-[^}]*\}", "", css)
    return re.sub(
        r"src:(url\([^)]*\.woff2\)\s*format\(.woff2.\))[^;}]*", r"src:\1", css
    )


def cut_font(path: Path, characters: set[str]) -> None:
    """Leave in a woff2 font only the glyphs for ``characters``."""
    options = subset.Options(flavor="woff2", notdef_outline=True, desubroutinize=True)
    options.drop_tables += ["FFTM"]
    font = TTFont(path, recalcTimestamp=False)
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=sorted(map(ord, characters)))
    cutter.subset(font)
    buffer = io.BytesIO()
    subset.save_font(font, buffer, options)
    path.write_bytes(buffer.getvalue())


def _cut_fonts(out: Path, formulas: list[str]) -> None:
    static = out / "_static"
    css = "".join(path.read_text("utf-8") for path in sorted(static.glob("book-*.css")))
    icons = {
        char
        for text in re.findall(r"""["']([^"']*)["']""", css)
        for char in re.sub(
            r"\\([0-9a-fA-F]{1,6}) ?", lambda m: chr(int(m[1], 16)), text
        )
        if "\ue000" <= char <= "\uf8ff"
    }
    for path in sorted((static / "vendor").rglob("fa-solid-*.woff2")):
        cut_font(path, icons)
    glyphs = {
        char
        for text in formulas
        for char in html.unescape(_TAG.sub("", _MATHML.sub("", text)))
    }
    for path in sorted((static / "katex" / "fonts").glob("*.woff2")):
        cut_font(path, glyphs)


# --- files -----------------------------------------------------------------


def _drop_spare_files(out: Path, pages: dict[Path, str]) -> None:
    """Delete below _static and _sources what nothing refers to.

    Modules of widgets are found by name at run time, so their folder stays.
    """
    referred = set()
    for path, text in pages.items():
        for link in re.findall(r'(?:href|src)="([^"#?:]+)', text):
            referred.add((path.parent / html.unescape(link)).resolve())
    static = out / "_static"
    for sheet in sorted(static.glob("book-*.css")):
        for _, link in _URL.findall(sheet.read_text("utf-8")):
            referred.add((static / link).resolve())
    referred.add((static / "card.png").resolve())
    for folder in (static, out / "_sources"):
        for path in sorted(folder.rglob("*")):
            if (
                path.is_file()
                and path.resolve() not in referred
                and static / "widgets" not in path.parents
            ):
                path.unlink()
        for path in sorted(folder.rglob("*"), reverse=True):
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()
    (out / "objects.inv").unlink(missing_ok=True)
    (out / ".buildinfo").unlink(missing_ok=True)


def _add_katex(app) -> None:
    app.add_css_file("katex/katex.min.css")


def _slim(app, exception) -> None:
    if exception is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    katex = out / "_static" / "katex"
    shutil.copytree(KATEX / "fonts", katex / "fonts", dirs_exist_ok=True)
    shutil.copy(KATEX / "katex.min.css", katex)
    pages = {
        path: path.read_text("utf-8")
        for path in sorted(out.rglob("*.html"))
        if out / "_static" not in path.parents  # the theme leaves templates there
    }
    live = [LIVE / "start.js"] if app.config.book_live else []
    _join_stylesheets(out, pages, live)
    _cut_fonts(out, list(app.formulas.values()))
    _drop_spare_files(out, pages)
    for path, text in pages.items():
        path.write_text(text, "utf-8")


def setup(app):
    app.connect("builder-inited", _add_katex)
    app.connect("build-finished", _slim, priority=800)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
