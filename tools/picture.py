"""The README's picture: lines of a terminal, from standard input, drawn as SVG on standard output.

make run 2>&1 | head -12 | python -m tools.picture > docs/terminal.svg
"""

import re
import sys
from collections.abc import Iterable, Iterator
from html import escape
from textwrap import wrap

COLUMNS = 104
SIZE, LINE, MARGIN, BAR = 13, 20, 18, 34  # pixels
ADVANCE = 7.85  # of one character at this size, in the fonts named below
COLOURS = {"found": "#f2cc60", "push": "#7ee787", "alert": "#7ee787", "detect": "#79c0ff", "drain": "#79c0ff"}
PLAIN, DIM, GROUND, FRAME = "#e6edf3", "#8b949e", "#0d1117", "#30363d"


def draw(lines: Iterable[str]) -> str:
    """An SVG of the lines, which are wrapped, their times dimmed and their first words coloured."""
    rows = [row for line in lines for row in _rows(line.rstrip("\n"))]
    width, height = round(COLUMNS * ADVANCE + 2 * MARGIN), BAR + MARGIN + LINE * len(rows)
    dots = "".join(
        f'<circle cx="{MARGIN + 4 + 18 * number}" cy="{BAR // 2}" r="5.5" fill="{colour}"/>'
        for number, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    texts = "\n".join(f'<text x="{MARGIN}" y="{BAR + LINE * n + 12}">{row}</text>' for n, row in enumerate(rows))
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>make run: an opening is found at the stand-in booking site, and a push is accepted</title>
<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="10" fill="{GROUND}" stroke="{FRAME}"/>
{dots}
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="{SIZE}"
 fill="{PLAIN}" xml:space="preserve">
{texts}
</g>
</svg>
"""


def _rows(line: str) -> Iterator[str]:
    time, _, rest = line.partition(" ")
    timed = re.fullmatch(r"\d\d:\d\d:\d\d", time) is not None
    indent = " " * 9 if timed else ""
    colour = COLOURS.get(rest.split(" ", 1)[0], PLAIN)
    for number, part in enumerate(wrap(rest if timed else line, COLUMNS - len(indent)) or [""]):
        begin = f'<tspan fill="{DIM}">{time} </tspan>' if timed and not number else indent
        yield f'{begin}<tspan fill="{colour}">{escape(part)}</tspan>' if timed else escape(part)


if __name__ == "__main__":
    sys.stdout.write(draw(sys.stdin))
