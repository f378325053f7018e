"""Pictures of plots, lighter and without a jump: WebP, with their size, lazily.

The notebooks store PNG, which every notebook reader shows. The pages carry the
same pixels as lossless WebP, less than half the bytes.
"""

import re
from pathlib import Path

from PIL import Image

_IMAGE = re.compile(r'<img (?P<before>[^>]*?)src="(?P<source>[^"]+)"')


def as_webp(png: Path) -> tuple[Path, tuple[int, int]]:
    """Replace a PNG by the same picture as lossless WebP; return it and its size."""
    webp = png.with_suffix(".webp")
    with Image.open(png) as image:
        # exact: also the colour of transparent pixels stays what it was.
        image.save(webp, "WEBP", lossless=True, quality=100, method=6, exact=True)
        size = image.size
    png.unlink()
    return webp, size


def _convert(app, exception) -> None:
    if exception is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    pictures = {
        png.name: as_webp(png) for png in sorted((out / "_images").glob("*.png"))
    }

    def lighter(match: re.Match) -> str:
        folder, _, name = match["source"].rpartition("/")
        lazy = f'<img loading="lazy" {match["before"]}'
        if not folder.endswith("_images") or name not in pictures:
            return f'{lazy}src="{match["source"]}"'
        webp, (width, height) = pictures[name]
        return f'{lazy}width="{width}" height="{height}" src="{folder}/{webp.name}"'

    for path in sorted(out.glob("*.html")):
        path.write_text(_IMAGE.sub(lighter, path.read_text("utf-8")), "utf-8")


def setup(app):
    # Before book_slim, which looks at the finished links.
    app.connect("build-finished", _convert, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
