"""A summary of what the reader has solved."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from attnbook.language import translate


@dataclass(frozen=True, repr=False)
class Progress:
    """Shows itself as a small table; prints as text.

    Attributes:
        chapters: for each chapter its exercises and whether they are solved.
        trouble: what kept the record from being read, if anything did.
    """

    chapters: Mapping[str, Sequence[tuple[str, bool]]]
    trouble: str = ""

    def _rows(self) -> list[tuple[str, str, list[tuple[str, bool]]]]:
        return [
            (
                translate(f"exercise.chapter.{chapter}"),
                _count(exercises),
                list(exercises),
            )
            for chapter, exercises in self.chapters.items()
        ]

    def _total(self) -> str:
        return _count([e for exercises in self.chapters.values() for e in exercises])

    def __str__(self) -> str:
        lines = [self.trouble] if self.trouble else []
        for title, count, exercises in self._rows():
            lines.append(f"{title}: {count}")
            lines += [f"  {_mark(solved)} {name}" for name, solved in exercises]
        lines.append(f"{translate('exercise.progress.total')}: {self._total()}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        escape = html.escape
        trouble = f"<p>{escape(self.trouble)}</p>" if self.trouble else ""
        rows = "".join(
            f'<tr><th scope="row" style="text-align:left">{escape(title)}</th>'
            f"<td>{escape(count)}</td><td style='text-align:left'>"
            + "<br>".join(f"{_mark(s)} <code>{escape(n)}</code>" for n, s in exercises)
            + "</td></tr>"
            for title, count, exercises in self._rows()
        )
        total = escape(translate("exercise.progress.total"))
        return (
            f'<div class="attn-progress" style="color:inherit">{trouble}<table>'
            f"<tbody>{rows}</tbody><tfoot><tr>"
            f'<th scope="row" style="text-align:left">{total}</th>'
            f"<td>{escape(self._total())}</td><td></td></tr></tfoot></table></div>"
        )


def _count(exercises: Sequence[tuple[str, bool]]) -> str:
    right = sum(solved for _, solved in exercises)
    return translate("exercise.progress.count", right=right, all=len(exercises))


def _mark(solved: bool) -> str:
    return "✓" if solved else "○"
