"""The reader's own functions, as a later chapter takes them up."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from attnbook.language import translate


@dataclass(frozen=True, repr=False)
class Kept(Mapping[str, Callable]):
    """Functions by name, to be passed on with ``**``; prints what is in it.

    Attributes:
        functions: those that are right now.
        left_out: why others that were kept are not used, by name.
        trouble: what kept the record from being read, if anything did.
        waiting: those that are there and were not run, since nobody asked.
    """

    functions: Mapping[str, Callable] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    trouble: str = ""
    waiting: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Callable:
        return self.functions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.functions)

    def __len__(self) -> int:
        return len(self.functions)

    def __str__(self) -> str:
        lines = [self.trouble] if self.trouble else []
        if self.functions:
            names = ", ".join(self.functions)
            lines.append(translate("exercise.kept.used", names=names))
        elif self.waiting:
            names = ", ".join(self.waiting)
            lines.append(translate("exercise.kept.waiting", names=names))
        elif not self.trouble:
            lines.append(translate("exercise.kept.none"))
        for name, why in self.left_out.items():
            lines.append(translate("exercise.kept.left_out", name=name, why=why))
        return "\n".join(lines)

    __repr__ = __str__
