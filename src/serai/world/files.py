"""Files that people write by hand: their text, the rows of a CSV file, and all that is wrong in one message."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from serai.core.errors import BadInput

_MOST_TOLD = 20  # problems; the rest is only counted


def read_text(path: Path) -> str:
    """The file's text."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not a text file in UTF-8 (byte {error.start})") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror or error}") from None


def csv_rows(path: Path, text: str) -> list[tuple[int, list[str]]]:
    """Line and cells of each row of a CSV file that is not empty, the header first."""
    reader = csv.reader(io.StringIO(text), strict=True)
    try:
        return [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise BadInput(f"{path}: line {reader.line_num}: {error}") from None


def bad_file(path: Path, problems: Sequence[str]) -> BadInput:
    """All problems in one message, as far as anybody wants to read them."""
    told = [f"{path}: {problem}" for problem in problems[:_MOST_TOLD]]
    if len(problems) > _MOST_TOLD:
        told.append(f"{path}: and {len(problems) - _MOST_TOLD} more problems")
    return BadInput("\n".join(told))
