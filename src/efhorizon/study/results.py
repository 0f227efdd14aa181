"""A results folder. No other code opens one.

    DIR/results.json                      what this folder is
    DIR/rows/NAME.json                    one run each; the name says id, algorithm, backend, setting, seed and a digest
    DIR/claims/NAME.lock                  locked by the process that is making this row; the lock ends with the process
    DIR/analyses/NAME.json                one MDP each
    DIR/pictures/NAME-start.png           the start state
    DIR/pictures/NAME-deciding.png        the state that decides the bound of Theorem 5.4
    DIR/pictures/NAME-reason-1.png        a state where GORP loses its chance; up to three
    DIR/pictures/NAME-episode.png         an optimal episode, a sheet of frames
    DIR/study.json                        what was planned, and the result for each environment
    DIR/tables/, DIR/tables.csv           the tables that were built here, and what is known about those built elsewhere
    DIR/stochastic/NAME.json              one MDP with chance each: see stochastic_results.py
    DIR/checksums.txt                     of tables.csv; every JSON file carries its own, and pictures have theirs

The digest in a row's name covers everything that the row depends on: hyperparameters, protocol, the fingerprint of the
table, the version of the learner. So a row whose inputs have changed is another row, and is made again. Any number of
sweeps can share a folder: a row is made by whoever holds its lock, and a file appears complete or not at all. An
analysis is written after its pictures. What is damaged is refused by name. Files of older versions have no checksums.
"""

from __future__ import annotations

import fcntl
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from efhorizon.errors import StoreError
from efhorizon.io.checksums import write_listed
from efhorizon.io.decode import read_object, record_of, write_record
from efhorizon.io.files import read_bytes, written_aside
from efhorizon.io.names import safe_name
from efhorizon.study import built_tables
from efhorizon.study.analysis_record import AnyAnalysis, analysis_of
from efhorizon.study.built_tables import BuiltTable
from efhorizon.study.pictures import Picture, checked_png
from efhorizon.study.records import FORMAT_VERSION, RESULTS_FORMAT, ResultsMarker, Row, RunKey, StudyRecord

MAX_PICTURE_BYTES = 8 << 20
_FILES = "[!.]*.json"  # not those that are being written
_REMEDY = "; delete it and it will be made again"


def is_results(path: Path) -> bool:
    """Whether a folder looks like a results folder; its marker may be missing."""
    return any((path / name).exists() for name in ("results.json", "analyses", "rows"))


class Results:
    """A results folder."""

    def __init__(self, path: Path) -> None:
        """Opens and writes nothing yet; what is missing counts as empty."""
        self.path = path
        self._rows, self._claims, self._analyses = path / "rows", path / "claims", path / "analyses"

    @classmethod
    def opened(cls, path: Path) -> Results:
        """To read: refused if it is something else."""
        results = cls(path)
        results._check_marker()
        return results

    @classmethod
    def made(cls, path: Path) -> Results:
        """To write: opened, or made if there is nothing."""
        marker = path / "results.json"
        if not marker.is_file():
            if path.exists() and (not path.is_dir() or not all(map(_is_unfinished_marker, path.iterdir()))):
                raise StoreError(
                    f"{path}: not a results directory, and not empty; choose another folder (nothing was written)"
                )
            write_record(marker, ResultsMarker())
        results = cls.opened(path)
        results._rows.mkdir(exist_ok=True)
        results._claims.mkdir(exist_ok=True)
        return results

    def _check_marker(self) -> None:
        marker = self.path / "results.json"
        if not marker.exists():
            return
        what = "the mark of a results directory"
        content = read_object(marker, what)
        if content.get("format") != RESULTS_FORMAT:
            raise StoreError(f"{marker}: not {what}; nothing was written")
        if content.get("format_version") != FORMAT_VERSION:
            raise StoreError(f"{marker}: made by another version of efhorizon; nothing was written")
        record_of(content, ResultsMarker, str(marker))

    # rows

    def has(self, key: RunKey) -> bool:
        return self._row_file(key).exists()

    def append(self, key: RunKey, row: Row) -> Path:
        """Add a row; the caller holds its claim."""
        path = self._row_file(key)
        if path.exists():
            raise StoreError(f"{path}: this row already exists")
        write_record(path, row)
        return path

    def row(self, key: RunKey) -> Row | None:
        """The row of a key, if it is there."""
        path = self._row_file(key)
        return _read_row(path) if path.exists() else None

    def rows(self) -> Iterator[Row]:
        """All rows, in the order of their names."""
        yield from map(_read_row, sorted(self._rows.glob(_FILES)))

    def num_rows(self) -> Counter[str]:
        """How many rows there are of each MDP, algorithm, backend and setting, by what their names begin with."""
        return Counter(path.name.split("__seed")[0] for path in self._rows.glob(_FILES))

    @contextmanager
    def claimed(self, keys: list[RunKey]) -> Iterator[list[RunKey]]:
        """The keys that have no row and that no other process is working on; they are ours within the block."""
        descriptors: list[int] = []
        ours: list[RunKey] = []
        try:
            for key in keys:
                if self.has(key):
                    continue
                descriptor = os.open(self._claims / f"{key.name}.lock", os.O_RDWR | os.O_CREAT, 0o644)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    os.close(descriptor)
                    continue
                descriptors.append(descriptor)
                if not self.has(key):  # it may have been written between the look and the lock
                    ours.append(key)
            yield ours
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _row_file(self, key: RunKey) -> Path:
        name = key.name
        if name.startswith("."):  # the file would be hidden
            raise StoreError(f"{key.id[:80]!r} cannot be the beginning of a file's name")
        return self._rows / f"{name}.json"

    # analyses

    def has_analysis(self, name: str) -> bool:
        return self._analysis_file(name).exists()

    def has_analyses(self) -> bool:
        return any(self._analyses.glob(_FILES))

    def analysis(self, name: str) -> AnyAnalysis:
        """The analysis in the file of this name."""
        path = self._analysis_file(name)
        analysis = _read_analysis(path)
        if analysis.id != name:
            raise StoreError(f"{path}: says that it is about {analysis.id!r}")
        return analysis

    def analyses(self) -> dict[str, AnyAnalysis]:
        """All analyses by the names of their MDPs."""
        found: dict[str, AnyAnalysis] = {}
        for path in sorted(self._analyses.glob(_FILES)):
            analysis = _read_analysis(path)
            if analysis.name in found:
                raise StoreError(f"{path}: there is another analysis of {analysis.name}")
            found[analysis.name] = analysis
        return found

    def write_analysis(self, analysis: AnyAnalysis, pictures: Mapping[str, bytes] | None = None) -> None:
        """An analysis, after its pictures."""
        self.write_pictures(pictures or {})
        write_record(self._analysis_file(analysis.id), analysis)

    def _analysis_file(self, name: str) -> Path:
        return self._analyses / f"{safe_name(name)}.json"

    # pictures

    def write_pictures(self, pictures: Mapping[str, bytes]) -> None:
        for name, image in pictures.items():
            with written_aside(self.path / name) as temporary:
                temporary.write_bytes(image)

    def has_picture(self, name: str) -> bool:
        try:
            return (self.path / name).is_file()
        except (OSError, ValueError):  # a name that cannot be one
            return False

    def picture(self, name: str) -> Picture:
        """The picture that an analysis names, which must lie in the folder of pictures; the error says why not."""
        path = self.path / name
        try:
            folder, resolved = (self.path / "pictures").resolve(), path.resolve(strict=True)
        except (OSError, ValueError, RuntimeError):  # missing, a name with a NUL, a circle of links
            raise StoreError(f"{path}: no such picture") from None
        if not resolved.is_relative_to(folder) or not resolved.is_file():
            raise StoreError(f"{path}: not a picture inside {folder}")
        return checked_png(read_bytes(resolved, "a picture", MAX_PICTURE_BYTES), str(path))

    # the study

    def study(self) -> StudyRecord | None:
        """What was planned and the results, if there is a record of them."""
        path = self.path / "study.json"
        if not path.exists():
            return None
        return record_of(read_object(path, "the record of a study"), StudyRecord, str(path))

    def write_study(self, study: StudyRecord) -> None:
        write_record(self.path / "study.json", study)

    def tables(self) -> tuple[BuiltTable, ...]:
        """The tables that are here, and those that were built elsewhere before an export brought the study here."""
        elsewhere = {table.name: table for table in built_tables.read_tables(self._table_list)}
        here = {table.name: table for table in built_tables.tables_in(self.path / "tables")}
        tables = elsewhere | here
        return tuple(tables[name] for name in sorted(tables))

    def list_tables(self, tables: tuple[BuiltTable, ...]) -> int:
        """Add tables to the list of those that were built elsewhere; returns how many are new."""
        listed = {table.name: table for table in built_tables.read_tables(self._table_list)}
        new = {table.name: table for table in tables if table.name not in listed}
        if new:
            write_listed(self.path, {built_tables.FILE: built_tables.encoded_tables([*listed.values(), *new.values()])})
        return len(new)

    @property
    def _table_list(self) -> Path:
        return self.path / built_tables.FILE


def _is_unfinished_marker(path: Path) -> bool:
    """Left behind by a process that was killed while it made a folder."""
    return path.name.startswith(".results.json.") and path.suffix == ".tmp"


def _read_row(path: Path) -> Row:
    return record_of(_content(path, "a row"), Row, str(path))


def _read_analysis(path: Path) -> AnyAnalysis:
    return analysis_of(_content(path, "an analysis"), str(path))


def _content(path: Path, what: str) -> dict[str, Any]:
    """The content of a file that can be made again."""
    try:
        return read_object(path, what)
    except StoreError as error:
        raise StoreError(f"{error}{_REMEDY}") from None
