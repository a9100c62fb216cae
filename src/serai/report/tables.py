"""A table once, in every form: HTML rows, CSV, LaTeX, Markdown, and plain text for the terminal."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass, field
from typing import Final

from serai.core.statistics import Estimate, with_interval
from serai.report.wording import Scale


@dataclass(frozen=True)
class Cell:
    """What stands in one place: its text, and the number behind it, if it is one."""

    text: str
    value: float | None = None
    half_width: float | None = None
    strong: bool = False
    remark: str = ""
    right: bool = False
    """Stands among numbers though it is none."""


@dataclass(frozen=True)
class Table:
    """A table with a name (its file's), a caption, the heads of its columns, and remarks below."""

    name: str
    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    remarks: tuple[str, ...] = field(default_factory=tuple)

    def numeric(self, column: int) -> bool:
        """Whether a column holds numbers, which stand to the right."""
        return any(row[column].value is not None or row[column].right for row in self.rows)

    @property
    def explains(self) -> bool:
        """Whether each row is a few words or numbers, and last a sentence: on a phone the sentence goes below them."""
        is_brief = len(self.heads) <= 4 and all(len(row[0].text) <= 40 for row in self.rows)
        return is_brief and any(len(row[-1].text) > 25 for row in self.rows)

    def with_intervals(self, column: int) -> bool:
        """Whether the numbers of a column have intervals."""
        return any(row[column].half_width is not None for row in self.rows)


def text(words: str, strong: bool = False, remark: str = "") -> Cell:
    """A cell of words."""
    return Cell(words, strong=strong, remark=remark)


def estimated(estimate: Estimate, scale: Scale, strong: bool = False, remark: str = "") -> Cell:
    """A cell with a mean and its interval, in the unit that is printed."""
    return Cell(
        with_interval(estimate, scale.factor),
        _finite(scale.factor * estimate.mean),
        _finite(scale.factor * estimate.half_width()),
        strong,
        remark,
    )


def plain(value: float, shown: str, strong: bool = False) -> Cell:
    """A cell with a number that has no interval."""
    return Cell(shown, _finite(value), strong=strong)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


# --- The same as text


def to_csv(table: Table) -> str:
    """Comma-separated, numbers in full; a column with intervals is followed by one of their half widths."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    columns = range(len(table.heads))
    heads = []
    for column in columns:
        heads += [table.heads[column], f"{table.heads[column]}: ±"][: 2 if table.with_intervals(column) else 1]
    writer.writerow(heads)
    for row in table.rows:
        line: list[str] = []
        for column in columns:
            cell = row[column]
            line.append(_in_full(cell.value) if table.numeric(column) and cell.value is not None else cell.text)
            if table.with_intervals(column):
                line.append(_in_full(cell.half_width))
        writer.writerow(line)
    return lines.getvalue()


def _in_full(value: float | None) -> str:
    return "" if value is None else f"{value:.10g}"


_LATEX: Final = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "±": r"$\pm$",
        "−": r"$-$",
        "–": "--",
        "·": r"$\cdot$",
        "α": r"$\alpha$",
        "γ": r"$\gamma$",
        "≈": r"$\approx$",
        "×": r"$\times$",
        "→": r"$\to$",
    }
)


def to_latex(table: Table) -> str:
    """A `table` environment for the package booktabs."""
    columns = "".join("r" if table.numeric(column) else "l" for column in range(len(table.heads)))
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{_latex(table.caption)}}}",
        rf"  \label{{tab:{table.name}}}",
        rf"  \begin{{tabular}}{{{columns}}}",
        r"    \toprule",
        f"    {' & '.join(map(_latex, table.heads))} \\\\",
        r"    \midrule",
        *(f"    {' & '.join(map(_latex_cell, row))} \\\\" for row in table.rows),
        r"    \bottomrule",
        r"  \end{tabular}",
        *(rf"  \par\small {_latex(remark)}" for remark in table.remarks),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex(words: str) -> str:
    return words.translate(_LATEX)


def _latex_cell(cell: Cell) -> str:
    words = _latex(f"{cell.text} {cell.remark}".strip())
    return rf"\textbf{{{words}}}" if cell.strong else words


def to_markdown(table: Table) -> str:
    """The table for a page of documentation."""
    rules = ["---:" if table.numeric(column) else "---" for column in range(len(table.heads))]
    lines = [_markdown_row(list(table.heads)), _markdown_row(rules)]
    lines += [_markdown_row([_markdown_cell(cell) for cell in row]) for row in table.rows]
    return "\n".join(lines) + "\n"


def _markdown_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: Cell) -> str:
    words = f"{cell.text} {cell.remark}".strip().replace("|", r"\|")
    return f"**{words}**" if cell.strong and words else words


def to_text(table: Table) -> str:
    """The table for a terminal: columns as wide as they need, two spaces apart."""
    lines = [table.heads, *(tuple(f"{cell.text} {cell.remark}".strip() for cell in row) for row in table.rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(table.heads))]
    return "\n".join(
        " " + "  ".join(_aligned(line[c], widths[c], table.numeric(c)) for c in range(len(widths))).rstrip()
        for line in lines
    )


def _aligned(words: str, width: int, right: bool) -> str:
    return f"{words:>{width}}" if right else f"{words:<{width}}"
