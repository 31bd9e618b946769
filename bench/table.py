"""The table that a run of benchmarks prints."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Aim:
    """What a ratio of measured to bare should be."""

    bound: float
    least: bool

    def met_by(self, ratio: float) -> bool:
        return ratio >= self.bound if self.least else ratio <= self.bound

    def __str__(self) -> str:
        return f"{'≥' if self.least else '≤'} {self.bound:g}"


@dataclass(frozen=True, slots=True)
class Line:
    """One comparison. `aim` is None where the numbers are only to be known."""

    what: str
    measured: str
    bare: str
    ratio: float
    aim: Aim | None

    @property
    def met(self) -> bool:
        return self.aim is None or self.aim.met_by(self.ratio)


def ratio_of(measured: Sequence[float], bare: Sequence[float]) -> float:
    """The median of the rounds' ratios: what slows the machine for a while slows both halves of a round."""
    return median(one / other for one, other in zip(measured, bare, strict=True))


def printed(lines: Iterable[Line]) -> str:
    """The lines as a table for a terminal."""
    verdict = {True: "ok", False: "NOT"}
    rows = [("", "measured", "bare", "ratio", "aim", "")]
    for line in lines:
        aim = str(line.aim) if line.aim else "-"
        rows.append(
            (line.what, line.measured, line.bare, f"{line.ratio:.2f}", aim, verdict[line.met] if line.aim else "")
        )
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if 0 < column < 4 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
