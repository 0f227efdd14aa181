"""An analysis on the command line: its time, a live line of progress, and what an interrupted one has kept."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from efhorizon.commands import _exit

if TYPE_CHECKING:
    from efhorizon.bounds.course import Course, Standing

DEFAULT_SECONDS = 30.0  # of the search for exact figures: with reasons (15 s) and all else, an answer within a minute
_SECONDS_A_LINE = 0.1  # between two changes of the live line


@contextmanager
def course(path: Path, options: argparse.Namespace) -> Iterator[Course]:
    """The course of one table's analysis, with one live line on stderr; plain lines where that is no terminal.

    It is also put into `options.courses`, where `kept` looks.
    """
    from rich.progress import SpinnerColumn

    from efhorizon.bounds.course import Course
    from efhorizon.bounds.notes import FOLDER
    from efhorizon.commands import _terminal

    with _terminal.bars(SpinnerColumn(), _terminal.LineColumn("{task.description}")) as bar:
        task, lines, last = bar.add_task(f"analyzing {path}"), _terminal.SlowLines(), 0.0

        def on_progress(standing: Standing) -> None:
            nonlocal last
            if time.monotonic() - last > _SECONDS_A_LINE:
                last = time.monotonic()
                line = progress_line(path.name, standing)
                bar.update(task, description=line)
                lines.say(line)

        made = Course(
            seconds=DEFAULT_SECONDS if options.max_minutes is None else 60 * options.max_minutes,
            further=options.max_minutes is not None,
            keep_in=path.parent / FOLDER,
            fresh=options.fresh,
            on_progress=on_progress,
            on_message=lambda line: _terminal.say(f"note: {line}", style="yellow"),
        )
        options.courses = [*getattr(options, "courses", []), (path.name, made)]
        yield made


def progress_line(name: str, standing: Standing) -> str:
    """Where an analysis stands, in one line; what matters most comes first: a narrow terminal cuts off the rest."""
    parts = [f"{name}: {standing.phase}", standing.detail]
    left = standing.step_seconds_left
    if left is not None and left < standing.seconds_left:
        parts.append(f"about {_seconds(left)} left in this step")
    parts.append(f"{_seconds(standing.seconds)} so far")
    if standing.seconds_left < float("inf"):
        parts.append(f"at most {_seconds(max(0.0, standing.seconds_left))} left for exact figures")
    return ", ".join(filter(None, parts))


def kept(options: argparse.Namespace) -> str:
    """What an interrupted analysis has left behind, and what goes on from there."""
    courses: list[tuple[str, Course]] = getattr(options, "courses", [])
    parts = [f"what was found for {name}" for name, _ in courses[:-1]]
    if courses and (found := _found(courses[-1][1])):
        parts.append(f"for {courses[-1][0]}, {found}")
    if not parts:
        return _exit.NOTHING_KEPT
    return f"kept: {'; '.join(parts)}; to go on: {_same_command(options)}"


def _found(last: Course) -> str:
    """The k that are finished, and the m that are ruled out of others."""
    if last.notes.path is None:
        return ""
    finished = sorted({note.k for note in last.notes.exact.values()})
    parts = [f"k = {k} finished" for k in finished]
    for note in last.notes.searches.values():
        if note.k not in finished and note.num_failing:
            parts.append(f"k = {note.k} up to m = {note.num_failing:,}")
    return ", ".join(parts)


def _same_command(options: argparse.Namespace) -> str:
    return "efhorizon " + shlex.join(word for word in options.typed if word != "--fresh")


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
