"""Pack the built site into one archive that opens offline through one command.

Usage: python tools/pack.py [--site _build/site] [--output _build/who-looks-at-whom.zip]

The archive holds the site and the little server of ``make serve``; whoever has
Python unpacks it and types ``python who-looks-at-whom/serve.py``. Pages cannot be
opened as files, because browsers load no modules from there. The same commit
gives the same bytes.
"""

import argparse
import os
import time
import zipfile
from pathlib import Path

from build import commit_time  # it makes book/_ext importable, too

# isort: split
from book_pages import PUBLISHED

ROOT = Path(__file__).resolve().parents[1]
NAME = PUBLISHED.removesuffix(".zip")
# Already compressed: deflating them again costs time and saves nothing.
PACKED = {".webp", ".png", ".woff2", ".whl", ".zip"}


def pack(site: Path, archive: Path) -> None:
    """Write ``site`` and its server into ``archive``.

    Raises ``SystemExit`` if the site is not built.
    """
    if not (site / "index.html").exists():
        raise SystemExit("The site is not built yet: run make book first.")
    files = {
        f"site/{path.relative_to(site).as_posix()}": path
        for path in site.rglob("*")
        # A published site holds its archive, which cannot hold itself.
        if path.is_file() and path != site / PUBLISHED
    }
    files["serve.py"] = ROOT / "tools" / "serve.py"
    moment = time.gmtime(int(commit_time()))[:6]
    unfinished = archive.with_name(archive.name + ".new")
    with zipfile.ZipFile(unfinished, "w") as packed:
        for name in sorted(files):
            info = zipfile.ZipInfo(f"{NAME}/{name}", moment)
            info.external_attr = 0o644 << 16
            info.compress_type = (
                zipfile.ZIP_STORED
                if files[name].suffix in PACKED
                else zipfile.ZIP_DEFLATED
            )
            packed.writestr(info, files[name].read_bytes(), compresslevel=9)
    unfinished.replace(archive)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--site", type=Path, default=ROOT / "_build" / "site")
    parser.add_argument("--output", type=Path, default=ROOT / "_build" / PUBLISHED)
    arguments = parser.parse_args()
    pack(arguments.site.resolve(), arguments.output.resolve())
    size = arguments.output.stat().st_size / 1e6
    print(f"The book is in {os.path.relpath(arguments.output)} ({size:.1f} MB).")


if __name__ == "__main__":
    main()
