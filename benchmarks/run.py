"""Measure what must stay fast, in one run, and write the table in the README.

Every comparison is a ratio of two things measured in the same run. A target
that is missed is said in the table and makes the run end with exit code 1.
"""

import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

import move_slider
import run_python
import weigh_page
import write_tokens

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import run_notebooks  # noqa: E402 (after the path of tools)

README = ROOT / "README.md"
TABLE = re.compile(r"(<!-- bench -->\n).*?(<!-- /bench -->)", re.S)
FRAME = 1000 / 60  # milliseconds


def seconds_to_build() -> float:
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, ROOT / "tools" / "build.py"]
        + ["--output", ROOT / "_build" / "bench-site"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - start


def seconds_to_execute() -> dict[str, float]:
    times = {}
    for path in run_notebooks.notebooks():
        start = time.perf_counter()
        run_notebooks.run(path)
        times[path.stem] = time.perf_counter() - start
    return times


def rows() -> list[tuple[str, str, str, bool]]:
    """Measure everything; return what, the figure, the target, whether it is met."""
    print("[1/6] executing every notebook")
    notebooks = seconds_to_execute()
    print("[2/6] building the book")
    build = seconds_to_build()
    print("[3/6] weighing a chapter against a default Jupyter Book page")
    weight = weigh_page.measure()
    print("[4/6] moving the slider, in the page and on a kernel")
    slider = move_slider.measure()

    print("[5/6] writing with the published model, against memory and PyTorch")
    writer = write_tokens.measure()
    print("[6/6] starting Python in the page and in the lab")
    python = run_python.measure()

    ours, theirs = weight["book"], weight["default"]
    share = ours["bytes"] / theirs["bytes"]
    page, work, kernel = (slider[n] for n in ("page", "page work", "kernel"))
    faster = kernel["median"] / page["median"]
    slowest = max(notebooks, key=notebooks.get)
    return [
        (
            "Slider to painted frame in the page, median (p95)",
            f"{page['median']:.1f} ms ({page['p95']:.1f} ms)",
            "",
            True,
        ),
        (
            "The same with `interact` and matplotlib on a local kernel",
            f"{kernel['median']:.0f} ms ({kernel['p95']:.0f} ms)",
            "",
            True,
        ),
        (
            "How many times faster, by the medians",
            f"{faster:.0f}",
            "at least 20",
            faster >= 20,
        ),
        (
            "Work for one step of the slider, median (p95)",
            f"{work['median']:.1f} ms ({work['p95']:.1f} ms)",
            "p95 within a 60 Hz frame",
            work["p95"] <= FRAME,
        ),
        (
            "A chapter page, gzip, all its requests",
            f"{ours['bytes'] / 1000:.0f} kB in {ours['requests']} requests, "
            f"{ours['other hosts']} to other hosts",
            "no other host",
            ours["other hosts"] == 0,
        ),
        (
            "The same notebook in a default Jupyter Book 1",
            f"{theirs['bytes'] / 1000:.0f} kB in {theirs['requests']} requests, "
            f"{theirs['other hosts']} to other hosts",
            "",
            True,
        ),
        ("Share of its bytes", f"{share:.3f}", "at most 0.1", share <= 0.1),
        ("Build from stored outputs", f"{build:.0f} s", "", True),
        (
            f"Execution of all {len(notebooks)} notebooks",
            f"{sum(notebooks.values()):.0f} s",
            "under 240 s",
            sum(notebooks.values()) < 240,
        ),
        (
            f"The slowest of them (`{slowest}`)",
            f"{notebooks[slowest]:.0f} s",
            "under 30 s",
            notebooks[slowest] < 30,
        ),
        *rows_of_writing(writer),
        *rows_of_python(python),
    ]


def rows_of_python(python: dict) -> list[tuple[str, str, str, bool]]:
    cold, warm, lab = python["cold"], python["warm"], python["lab"]
    asked = python["other hosts"]["requests"]
    return [
        (
            "Files of Python that a page loads before the first Run",
            f"{cold['before']}",
            "none",
            cold["before"] == 0,
        ),
        (
            "Python in the page: first text, cold (again in a warm page)",
            f"{cold['text']:.1f} s, {cold['text bytes'] / 1e6:.1f} MB "
            f"({warm['text']:.1f} s)",
            "warm under 9 s",
            warm["text"] < 9,
        ),
        (
            "The first plot after that (the same)",
            f"{cold['plot']:.1f} s, {cold['plot bytes'] / 1e6:.1f} MB in all "
            f"({warm['plot']:.1f} s)",
            "",
            True,
        ),
        (
            "A cell run again: text, plot",
            f"{warm['text again']:.2f} s, {warm['plot again']:.2f} s",
            "text under 0.2 s",
            warm["text again"] < 0.2,
        ),
        (
            "The lab until a chapter's first cell has run",
            f"{lab['cold']:.0f} s, {lab['bytes'] / 1e6:.1f} MB",
            "",
            True,
        ),
        (
            "Requests of all that to other hosts",
            f"{asked}",
            "none",
            asked == 0,
        ),
    ]


def rows_of_writing(writer: dict) -> list[tuple[str, str, str, bool]]:
    rows = [
        (
            "Reading the published model (most memory)",
            f"{writer['load']:.1f} s ({writer['peak'] / 1e6:.0f} MB)",
            "under 3 s, 700 MB",
            writer["load"] < 3 and writer["peak"] < 700e6,
        ),
        (
            f"Its tokens a second, {writer['threads']} threads",
            f"{writer['pace']:.1f}",
            "",
            True,
        ),
        (
            "Share of what reading the weights allows "
            f"({writer['memory'] / 1e9:.0f} GB/s in the same turns)",
            f"{writer['share']:.2f}",
            "at least 0.65",
            writer["share"] >= 0.65,
        ),
    ]
    if writer["faster"] is not None:
        rows.append(
            (
                "How many times faster than PyTorch, float32, eager",
                f"{writer['faster']:.1f} ({writer['torch']:.1f} tokens a second)",
                "at least 2",
                writer["faster"] >= 2,
            )
        )
    return rows


def main() -> int:
    measured = rows()
    lines = ["| What | Measured | Target |", "|---|---|---|"]
    for what, figure, target, met in measured:
        lines.append(f"| {what} | {figure} | {target}{'' if met else ' (missed)'} |")
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"
    lines.append(f"\nMeasured by `make bench` in one run ({machine}).")
    table = "\n".join(lines) + "\n"
    print("\n" + table)
    text = README.read_text("utf-8")
    README.write_text(TABLE.sub(lambda m: m[1] + table + m[2], text), "utf-8")
    return 0 if all(met for *_, met in measured) else 1


if __name__ == "__main__":
    sys.exit(main())
