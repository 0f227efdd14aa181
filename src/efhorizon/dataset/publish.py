"""A study as a data set: a folder that can be put on the Hugging Face Hub, Zenodo or any web server as it is.

    README.md          the data card: what is in it, and the questions of a datasheet
    LICENSES.md        which part may be used how
    croissant.json     the same for programs, in the Croissant format
    registry.json      every file with its size and checksum, by MDP: what `ef.load` reads
    SHA256SUMS         the same for `sha256sum --check`
    index.parquet      one row per MDP: theory, practice, and which parts of it are here
    summary.csv, mdps.parquet, runs.parquet, tables.csv     an export of the study, for evaluate and report
    mdps/NAME/         table/ (native), consolidated.npz (BRIDGE), analysis.json, runs.parquet, pictures/
    screens/NAME/      the same table with what a commercial game shows: may be left out

The same study gives the same bytes: there is no time of day in it, and every list is sorted.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from efhorizon._version import __version__
from efhorizon.dataset import card, croissant, index, licences
from efhorizon.dataset import registry as registries
from efhorizon.dataset.registry import FileEntry, MdpEntry, Part, Registry
from efhorizon.errors import EfhorizonError, StoreError
from efhorizon.evaluation.source import StudyData, study_data, write_export
from efhorizon.io import store
from efhorizon.io.checksums import LIST
from efhorizon.io.decode import encoded_record
from efhorizon.io.files import written_aside
from efhorizon.io.names import is_safe_name
from efhorizon.io.tables import load, save
from efhorizon.mdp import TabularMDP
from efhorizon.stochastic import store as stochastic_store
from efhorizon.stochastic.mdp import StochasticMDP
from efhorizon.study import export
from efhorizon.study.analysis_record import SEPARATOR, AnyAnalysis, is_complete
from efhorizon.study.records import Row
from efhorizon.study.results import Results, is_results

_NPZ = "consolidated.npz"  # as the authors call it
_UNKNOWN = "unknown"

OnMessage = Callable[[str], None]


@dataclass(frozen=True)
class Published:
    """A data set that was written."""

    path: Path
    name: str
    version: str
    content: str
    num_mdps: int
    num_tables: int
    num_analyses: int
    num_runs: int
    num_with_screens: int  # MDPs whose screens are a part of their own
    num_files: int
    num_bytes: int
    bytes_of_screens: int  # of the part that may be left out
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Choices:
    """What the publisher decides."""

    name: str = "efhorizon"
    version: str = "1.0.0"
    with_screens: bool = True  # those of commercial games, as a part of their own
    tables: tuple[Path, ...] = ()  # folders of tables, besides that of the study
    address: str | None = None  # where it will be, for the metadata


@dataclass
class _Sources:
    """What is known of each MDP, by name."""

    data: StudyData
    results: Results | None  # where pictures are
    tables: dict[str, Path]
    rows: dict[str, list[Row]]
    notes: list[str] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """All MDPs that are in the data set."""
        return sorted({*self.data.analyses, *self.tables, *(each.name for each in self.data.summaries)})


def publish(
    study: Path, out: Path, choices: Choices | None = None, on_message: OnMessage = lambda _: None
) -> Published:
    """Write the data set of a study; what was in `out` stays until the new one is complete."""
    chosen = choices or Choices()
    for given, what in ((chosen.name, "name"), (chosen.version, "version")):
        if not is_safe_name(given):
            raise EfhorizonError(f"{given[:80]!r} cannot be the {what} of a data set")
    _check_replaceable(out, study)
    sources = _sources(study, chosen)
    if not sources.names:
        raise StoreError(f"{study}: nothing to publish: no analyses and no tables here")
    with written_aside(out) as folder:
        folder.mkdir()
        entries = {}
        for number, name in enumerate(sources.names, 1):
            on_message(f"{number} of {len(sources.names)}: {name}")
            entries[name] = _write_mdp(folder, name, sources, chosen)
        write_export(folder, sources.data)
        (folder / LIST).unlink()  # SHA256SUMS has these files too
        (folder / index.FILE).write_bytes(index.encoded_index(sources.data, entries))
        (folder / "LICENSES.md").write_text(licences.TEXT)
        facts = card.facts_of(sources.data, entries, _sizes(folder), chosen.name, chosen.version)
        (folder / "README.md").write_text(card.data_card(facts))
        files = _sizes(folder)
        (folder / croissant.FILE).write_bytes(croissant.encoded(facts, files, chosen.address))
        files = _sizes(folder)
        entries = {name: _with_files(entry, files) for name, entry in entries.items()}
        registry = Registry(
            name=chosen.name,
            version=chosen.version,
            efhorizon=__version__,
            content=registries.identity(files),
            mdps=entries,
            files=files,
        )
        (folder / registries.FILE).write_bytes(registries.encoded(registry))
        sums = {**files, registries.FILE: _file_entry(folder / registries.FILE)}
        (folder / registries.SUMS).write_text("".join(f"{sums[path].sha256}  {path}\n" for path in sorted(sums)))
    return _published(out, registry, sources)


def _published(out: Path, registry: Registry, sources: _Sources) -> Published:
    parts = [set(entry.parts) for entry in registry.mdps.values()]
    separate = [part for entry in registry.mdps.values() for part in entry.parts.values() if part.separate]
    return Published(
        path=out,
        name=registry.name,
        version=registry.version,
        content=registry.content,
        num_mdps=len(registry.mdps),
        num_tables=sum(registries.TABLE in each for each in parts),
        num_analyses=sum(registries.ANALYSIS in each for each in parts),
        num_runs=sum(entry.num_runs for entry in registry.mdps.values()),
        num_with_screens=sum(registries.SCREENS in each for each in parts),
        num_files=len(registry.files),
        num_bytes=sum(entry.size for entry in registry.files.values()),
        bytes_of_screens=registry.size(separate),
        notes=tuple(sources.notes),
    )


def _check_replaceable(out: Path, study: Path) -> None:
    if out.resolve() == study.resolve() or study.resolve().is_relative_to(out.resolve()):
        raise StoreError(f"{out}: the study itself is there; choose another folder")
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / registries.FILE).is_file())):
        raise StoreError(f"{out}: not empty, and not a data set; choose another folder (nothing was written)")


def _sources(study: Path, chosen: Choices) -> _Sources:
    data = study_data(study)
    rows = defaultdict(list)
    for row in data.runs:
        rows[row.id].append(row)
    folders = [study / "tables", *chosen.tables] if study.is_dir() else list(chosen.tables)
    tables: dict[str, Path] = {}
    for folder in folders:
        if folder in chosen.tables and not folder.is_dir():
            raise StoreError(f"{folder}: no such folder of tables")
        for path in _table_paths(folder):
            tables.setdefault(path.name.removesuffix(".npz"), path)
    unsafe = sorted(name for name in {*tables, *data.analyses} if not is_safe_name(name))
    if unsafe:
        raise StoreError(f"{study}: {unsafe[0][:80]!r} cannot be the name of an MDP in a data set")
    return _Sources(data, Results(study) if is_results(study) else None, tables, rows, list(data.notes))


def _table_paths(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    found = (path for path in folder.iterdir() if not path.name.startswith("."))
    return sorted(path for path in found if path.suffix == ".npz" or (path / "zarr.json").exists())


def _write_mdp(folder: Path, name: str, sources: _Sources, chosen: Choices) -> MdpEntry:
    """Everything about one MDP; its entry, with no files in its parts yet."""
    analysis, rows = sources.data.analyses.get(name), sources.rows.get(name, [])
    table = _table(name, sources, analysis)
    suite = (
        analysis.suite if analysis is not None else str(table.metadata.get("suite", _UNKNOWN)) if table else _UNKNOWN
    )
    place, parts = f"mdps/{name}", dict[str, Part]()
    if isinstance(table, StochasticMDP):
        stochastic_store.save(table, folder / place / "table")
        parts[registries.TABLE] = _part(registries.STOCHASTIC_FORMAT, f"{place}/table")
    elif table is not None:
        parts |= _write_table(folder, name, table, suite, chosen)
    if analysis is not None:
        parts[registries.ANALYSIS] = _part(registries.ANALYSIS_FORMAT, f"{place}/analysis.json")
        _write(folder / place / "analysis.json", encoded_record(analysis))
    if rows:
        parts[registries.RUNS] = _part(registries.RUNS_FORMAT, f"{place}/{export.RUNS}")
        _write(folder / place / export.RUNS, export.encoded_runs(rows))
    if pictures := _pictures(sources, analysis, suite, chosen):
        separate = licences.is_separate(suite)
        at = f"{'screens' if separate else 'mdps'}/{name}/pictures"
        parts[registries.PICTURES] = _part(
            registries.PICTURES_FORMAT, at, licence=licences.screens_licence(suite), separate=separate
        )
        for kind, content in pictures.items():
            _write(folder / at / f"{kind}.png", content)
    if not parts:  # a line of a summary.csv
        sources.notes.append(f"{name}: only its line in summary.csv")
    return _entry(name, suite, table, analysis, sources, len(rows), parts)


def _entry(
    name: str,
    suite: str,
    table: TabularMDP | StochasticMDP | None,
    analysis: AnyAnalysis | None,
    sources: _Sources,
    num_runs: int,
    parts: dict[str, Part],
) -> MdpEntry:
    figures = None if analysis is None else analysis.figures
    horizon = table.horizon if table is not None else None if figures is None else figures.horizon
    num_actions = table.num_actions if table is not None else None if figures is None else figures.num_actions
    of_table = None if analysis is None else analysis.table
    num_states = table.num_states if table is not None else None if of_table is None else of_table.num_states
    known = {each.name: each.is_verified for each in sources.data.tables}
    value = None
    if analysis is not None and is_complete(analysis):
        found = analysis.figures.effective_horizon.value
        value = float(found) if isinstance(found, int | float) else None
    verification = table.metadata.get("verification") if table is not None else None
    verified = bool(verification.get("verified")) if isinstance(verification, dict) else known.get(name)
    return MdpEntry(
        suite=suite,
        kind=registries.STOCHASTIC if isinstance(table, StochasticMDP) else registries.DETERMINISTIC,
        horizon=horizon,
        num_states=num_states,
        num_actions=num_actions,
        fingerprint=table.fingerprint() if table is not None else None if analysis is None else analysis.fingerprint,
        base=name.rpartition(SEPARATOR)[0] or None,
        verified=verified,
        effective_horizon=value,
        num_runs=num_runs,
        parts=parts,
    )


def _table(name: str, sources: _Sources, analysis: AnyAnalysis | None) -> TabularMDP | StochasticMDP | None:
    """The table, every byte of it checked; one that is not what was analyzed is left out."""
    path = sources.tables.get(name)
    if path is None:
        return None
    if stochastic_store.is_stochastic(path):
        return stochastic_store.load(path)
    if path.is_dir() and (damage := store.damage(path)) is not None:
        raise StoreError(damage)
    table = load(path)
    analyzed = None if analysis is None else analysis.fingerprint
    if analyzed is not None and table.fingerprint() != analyzed:
        sources.notes.append(f"{name}: its table is left out, for it is not the one that was analyzed")
        return None
    return table if table.metadata.get("id") else table.with_metadata(id=name)


def _write_table(folder: Path, name: str, table: TabularMDP, suite: str, chosen: Choices) -> dict[str, Part]:
    """The table in both layouts; with what a commercial game shows in a part of its own."""
    separate = licences.is_separate(suite) and (table.screens is not None or table.states is not None)
    shared = _without_screens(table) if separate else table
    parts = _write_layouts(folder, f"mdps/{name}", shared)
    if separate and chosen.with_screens:
        at = f"screens/{name}"
        save(table, folder / at / "table")
        parts[registries.SCREENS] = _part(
            registries.TABLE_FORMAT, f"{at}/table", licence=licences.screens_licence(suite), separate=True
        )
    return parts


def _write_layouts(folder: Path, place: str, table: TabularMDP) -> dict[str, Part]:
    save(table, folder / place / "table")
    parts = {registries.TABLE: _part(registries.TABLE_FORMAT, f"{place}/table")}
    if table.is_complete:  # the published layout has no place for unexplored states
        save(table, folder / place / _NPZ)
        parts[registries.BRIDGE] = _part(registries.BRIDGE_FORMAT, f"{place}/{_NPZ}")
    return parts


def _without_screens(table: TabularMDP) -> TabularMDP:
    """The graph and the rewards alone."""
    return TabularMDP(
        table.transitions,
        (table.reward_codes, table.reward_values),
        table.horizon,
        unexplored=table.unexplored,
        metadata=dict(table.metadata),
    )


def _pictures(sources: _Sources, analysis: AnyAnalysis | None, suite: str, chosen: Choices) -> dict[str, bytes]:
    """PNG files by what they show; none where the study came without them."""
    if sources.results is None or analysis is None or (licences.is_separate(suite) and not chosen.with_screens):
        return {}
    found = {}
    for kind, name in analysis.pictures.items():
        if sources.results.has_picture(name):
            found[kind] = sources.results.picture(name).content
    return found


def _part(format_: str, path: str, *, licence: str = licences.OWN, separate: bool = False) -> Part:
    return Part(format=format_, path=path, files=[], licence=licence, separate=separate)


def _with_files(entry: MdpEntry, files: Mapping[str, FileEntry]) -> MdpEntry:
    """The entry with the files of its parts."""
    parts = {
        kind: Part(
            format=part.format,
            path=part.path,
            files=[path for path in sorted(files) if path == part.path or path.startswith(f"{part.path}/")],
            licence=part.licence,
            separate=part.separate,
        )
        for kind, part in entry.parts.items()
    }
    return _replaced(entry, parts)


def _replaced(entry: MdpEntry, parts: dict[str, Part]) -> MdpEntry:
    import msgspec

    return msgspec.structs.replace(entry, parts=parts)


def _sizes(folder: Path) -> dict[str, FileEntry]:
    """Every file of the folder, by path."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): _file_entry(path) for path in paths}


def _file_entry(path: Path) -> FileEntry:
    with path.open("rb") as file:
        return FileEntry(path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
