"""CSV files for people and spreadsheets, written so that every text comes back as it was.

A text that a spreadsheet would take for a formula, or that begins or ends with a blank, gets an apostrophe in front, as
spreadsheets do it themselves; reading takes it away again. Around other cells, blanks do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

_QUOTED = re.compile(r'[,"\r\n]')  # csv.writer leaves a carriage return as it is, and cannot read it back
_FORMULA = tuple("=+-@")


def encoded_csv(columns: Sequence[str], lines: Iterable[Mapping[str, str | float | None]]) -> bytes:
    """The content of a file; None and what a line does not have are empty."""
    header = ",".join(map(_quoted, columns))
    rest = (",".join(_quoted(_cell(line.get(name))) for name in columns) for line in lines)
    return "".join(f"{line}\n" for line in (header, *rest)).encode()


def text_of_cell(cell: str) -> str:
    """The text that was written."""
    return cell[1:] if cell.startswith("'") and _is_marked(cell[1:]) else cell.strip()


def _cell(value: str | float | None) -> str:
    if isinstance(value, str):
        return f"'{value}" if _is_marked(value) else value
    return "" if value is None else repr(value)


def _is_marked(text: str) -> bool:
    """Apostrophes in front make no difference: such a text gets one more."""
    inside = text.lstrip("'")
    return inside.startswith(_FORMULA) or inside != inside.strip()


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if _QUOTED.search(cell) else cell
