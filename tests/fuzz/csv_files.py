"""Mutations of CSV: columns, fields, quotes, lines."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from random import Random

from .json_files import ABSURD_NUMBERS, HOSTILE_TEXTS, TEXT
from .mutations import ANY_FILE, SPECIAL_FILES, Mutations, NotApplicableError, Target

Lines = list[list[str]]
_LONG_FIELD = 200_000  # characters: more than Python's csv takes
CELLS = Mutations()


def _cells_change(change: Callable[[Lines, Random], str]) -> None:
    def apply(target: Target, rng: Random) -> str:
        lines = list(csv.reader(io.StringIO(target.file.read_text(encoding="utf-8"), newline="")))
        if len(lines) < 2:
            raise NotApplicableError
        what = change(lines, rng)
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(lines)
        target.file.write_text(text.getvalue().replace("OUTSIDE", str(target.outside)), "utf-8", "replace", newline="")
        return what

    apply.__name__ = change.__name__.strip("_")
    CELLS.add()(apply)


@_cells_change
def _column_missing(lines: Lines, rng: Random) -> str:
    place = rng.randrange(len(lines[0]))
    name = lines[0][place]
    for line in lines:
        del line[place]
    return f"no column {name}"


@_cells_change
def _column_renamed(lines: Lines, rng: Random) -> str:
    place = rng.randrange(len(lines[0]))
    name, lines[0][place] = lines[0][place], rng.choice(["", "x", lines[0][0], "mdp_name", "bound_\x1b_log10", "=1"])
    return f"column {name} is called {lines[0][place]!r}"


@_cells_change
def _columns_swapped(lines: Lines, rng: Random) -> str:
    one, other = rng.randrange(len(lines[0])), rng.randrange(len(lines[0]))
    lines[0][one], lines[0][other] = lines[0][other], lines[0][one]
    return f"the names of columns {one} and {other} changed places"


@_cells_change
def _absurd_number(lines: Lines, rng: Random) -> str:
    line, place = rng.choice(lines[1:]), rng.randrange(len(lines[0]))
    line[place] = rng.choice([*ABSURD_NUMBERS, "inf", "-inf", "nan", "1_000", "0x10", "1,5", " 3 ", "٣"])
    return f"{lines[0][place]} is {line[place][:40]}"


@_cells_change
def _hostile_text(lines: Lines, rng: Random) -> str:
    line, place = rng.choice(lines[1:]), rng.choice([0, 0, rng.randrange(len(lines[0]))])
    line[place] = rng.choice(HOSTILE_TEXTS)
    return f"{lines[0][place]} is {line[place][:40]!r}"


@_cells_change
def _fields_missing(lines: Lines, rng: Random) -> str:
    line = rng.choice(lines[1:])
    del line[rng.randrange(len(line)) :]
    return f"a line of {len(line)} fields"


@_cells_change
def _fields_too_many(lines: Lines, rng: Random) -> str:
    rng.choice(lines).extend(["x"] * rng.choice([1, 10_000]))
    return "a line with more fields"


@_cells_change
def _line_twice(lines: Lines, rng: Random) -> str:
    lines.append(rng.choice(lines))
    return "a line twice"


@_cells_change
def _many_lines(lines: Lines, rng: Random) -> str:
    del lines[2:]
    lines += [[f"{lines[1][0]}{number}", *lines[1][1:]] for number in range(200)]
    return "200 lines"


@_cells_change
def _long_field(lines: Lines, rng: Random) -> str:
    rng.choice(lines)[0] = "x" * _LONG_FIELD
    return f"a field of {_LONG_FIELD} characters"


@_cells_change
def _header_only(lines: Lines, rng: Random) -> str:
    del lines[1:]
    return "no line but the header"


@CELLS.add()
def open_quote(target: Target, rng: Random) -> str:
    text = target.file.read_text(encoding="utf-8")
    place = rng.randrange(len(text))
    target.file.write_text(text[:place] + '"' + text[place:], encoding="utf-8")
    return f"a quote at character {place}"


CSV = Mutations(CELLS, CELLS, TEXT, ANY_FILE, SPECIAL_FILES)
