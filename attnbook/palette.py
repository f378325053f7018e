"""The book's colours: one meaning each, in prose, figures, plots and widgets.

The five hues are told apart in the common forms of colour blindness, have a
contrast of at least 4.5 to 1 against the page in both themes, and never stand
without a letter or a word.
"""

from types import MappingProxyType

LIGHT = MappingProxyType(
    {
        "query": "#0063a6",
        "key": "#ad4400",
        "value": "#00734f",
        "weight": "#8b3a92",
        "output": "#6b5b00",
        "ink": "#1f2328",
        "muted": "#59636e",
        "line": "#c4ccd4",
        "surface": "#f4f6f8",
        "page": "#ffffff",
    }
)
DARK = MappingProxyType(
    {
        "query": "#6cb8ff",
        "key": "#ff9f5a",
        "value": "#4fd3a4",
        "weight": "#dc9bef",
        "output": "#ecd25e",
        "ink": "#e6e9ed",
        "muted": "#a3adb8",
        "line": "#47505a",
        "surface": "#1d2229",
        "page": "#121212",
    }
)


def css() -> str:
    """Return both themes as CSS custom properties (``--attn-query`` and so on).

    The book's pages tell their theme by ``html[data-theme]``, JupyterLab by
    ``body[data-jp-theme-light]``.
    """

    def block(selector: str, colours: MappingProxyType) -> str:
        lines = "".join(f"  --attn-{name}: {hex_};\n" for name, hex_ in colours.items())
        return f"{selector} {{\n{lines}}}\n"

    dark = 'html[data-theme="dark"], body[data-jp-theme-light="false"]'
    return block(":root", LIGHT) + block(dark, DARK)
