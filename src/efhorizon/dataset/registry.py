"""registry.json: what is in a data set, each file with its size and checksum.

    format, format_version    what this is
    name, version             of the data set
    content                   SHA-256 of the list of all files with their checksums: the identity of the data set
    mdps                      by name: suite, licence, facts for a listing, and its parts
    files                     by path, relative to the registry: size in bytes, SHA-256

A part of an MDP is something that can be downloaded on its own: `table`, `bridge`, `analysis`, `runs`, `pictures`, and
`screens`, a table that shows what a commercial game shows. Each names its format. Another version may add parts and
formats; those that this one does not know are listed and downloaded, but not opened.

A registry may come from anywhere. Its paths are those of plain files inside the data set, or it is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field

from efhorizon.errors import StoreError
from efhorizon.io.checksums import check_sealed
from efhorizon.io.decode import MAX_TEXT, Count, Text, encoded_record, json_object, record_of, text_of
from efhorizon.io.files import read_bytes
from efhorizon.io.names import is_safe_name

FILE: Final = "registry.json"
SUMS: Final = "SHA256SUMS"
FORMAT: Final = "efhorizon-dataset"
FORMAT_VERSION: Final = 1
MAX_BYTES: Final = MAX_TEXT  # some 50,000 files
MAX_PARTS: Final = 12  # of a path
TABLE, BRIDGE, ANALYSIS, RUNS, PICTURES, SCREENS = "table", "bridge", "analysis", "runs", "pictures", "screens"
TABLE_FORMAT, BRIDGE_FORMAT = "efhorizon-table-1", "bridge-npz"
STOCHASTIC_FORMAT = "efhorizon-stochastic-table-1"  # downloaded for the commands; `ef.load` opens deterministic ones
DETERMINISTIC, STOCHASTIC = "deterministic", "stochastic"  # kinds
ANALYSIS_FORMAT, RUNS_FORMAT, PICTURES_FORMAT = "efhorizon-analysis-1", "efhorizon-runs-parquet-1", "png"
OPENED = {TABLE_FORMAT, BRIDGE_FORMAT}  # formats of tables that this version opens
WHAT = "the registry of a data set"
PARTIAL: Final = "partial"  # the folder of the cache for files that are not complete
_RESERVED = (FILE, PARTIAL)

Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]


class FileEntry(Struct, frozen=True):
    """One file of a data set."""

    size: Count
    sha256: Sha256


class Part(Struct, frozen=True, kw_only=True):
    """Something of an MDP that can be downloaded on its own."""

    format: Text
    path: Text  # a file, or a folder
    files: list[Text]  # relative to the data set
    licence: Text
    separate: bool = False  # may be left out by whoever hosts the data set


class MdpEntry(Struct, frozen=True, kw_only=True):
    """What a listing says about an MDP, and its parts."""

    suite: Text
    kind: Text = DETERMINISTIC  # of the table; another version may know others
    horizon: Count | None = None
    num_states: Count | None = None
    num_actions: Count | None = None
    fingerprint: Text | None = None  # of the table
    base: Text | None = None  # of a variant: the MDP whose table it shares
    verified: bool | None = None
    effective_horizon: float | None = None
    num_runs: Count = 0
    parts: dict[str, Part] = field(default_factory=dict)

    @property
    def num_files(self) -> int:
        return sum(len(part.files) for part in self.parts.values())


class Registry(Struct, frozen=True, kw_only=True):
    """A whole data set."""

    format: Literal["efhorizon-dataset"] = FORMAT
    format_version: Literal[1] = FORMAT_VERSION
    name: Text
    version: Text
    efhorizon: Text
    content: Sha256
    mdps: dict[str, MdpEntry]
    files: dict[str, FileEntry]

    def size(self, parts: Iterable[Part]) -> int:
        """Bytes of all files of these parts."""
        return sum(self.files[path].size for part in parts for path in part.files)


def identity(files: Mapping[str, FileEntry]) -> str:
    """The SHA-256 of the list of all files."""
    lines = (f"{files[path].sha256}  {path}\n" for path in sorted(files))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def encoded(registry: Registry) -> bytes:
    """The content of registry.json, if it can be read again."""
    content = encoded_record(registry)
    if len(content) > MAX_BYTES:
        raise StoreError(f"{len(registry.files):,} files are too many for one data set: its {FILE} would be too large")
    return content


def read(path: Path) -> Registry:
    """The registry in a folder that is a data set."""
    return decoded(read_bytes(path, WHAT, MAX_BYTES), str(path))


def decoded(content: bytes, where: str) -> Registry:
    """A registry whose every path, size and checksum was checked; `where` is for messages."""
    found = json_object(text_of(content, Path(where), WHAT), where, WHAT)
    if found.get("format") != FORMAT:
        raise StoreError(f"{where}: not {WHAT}")
    if found.get("format_version") != FORMAT_VERSION:
        raise StoreError(f"{where}: a data set of another version; a newer efhorizon may read it")
    check_sealed(content, found.pop("checksum", None), where)
    registry = record_of(found, Registry, where)
    _check(registry, where)
    return registry


def _check(registry: Registry, where: str) -> None:
    if not is_safe_name(registry.name) or not is_safe_name(registry.version):
        raise StoreError(f"{where}: {registry.name[:60]!r} {registry.version[:60]!r} cannot be the name of a data set")
    for path in registry.files:
        _check_path(path, where)
    if inside := _inside_another(registry.files):
        raise StoreError(f"{where}: {inside[:120]!r} is in a folder that is a file too")
    parts: set[str] = set()
    for name, mdp in registry.mdps.items():
        if not is_safe_name(name):
            raise StoreError(f"{where}: {name[:80]!r} cannot be the name of an MDP")
        for part in mdp.parts.values():
            _check_part(part, registry, f"{where}: {name}")
            parts.add(part.path)
    if inside := _inside_another(parts):
        raise StoreError(f"{where}: {inside[:120]!r} is a part inside another")
    if identity(registry.files) != registry.content:
        raise StoreError(f"{where}: damaged or changed: its list of files is not what its checksum says")


def _check_part(part: Part, registry: Registry, where: str) -> None:
    _check_path(part.path, where)
    if part.path.partition("/")[0] in _RESERVED:
        raise StoreError(f"{where}: {part.path[:120]!r} cannot be a part: the cache has files of that name")
    if not part.files:
        raise StoreError(f"{where}: {part.path[:120]!r} has no files")
    for path in part.files:
        if path not in registry.files:
            raise StoreError(f"{where}: {path[:120]!r} is not in the list of files")
        if path != part.path and not path.startswith(f"{part.path}/"):
            raise StoreError(f"{where}: {path[:120]!r} is outside of {part.path[:120]!r}")


def _inside_another(paths: Collection[str]) -> str | None:
    """A path that leads through another one."""
    known = set(paths)
    return next((path for path in paths if any(str(each) in known for each in PurePosixPath(path).parents)), None)


def _check_path(path: str, where: str) -> None:
    """A plain path inside the data set: no `..`, nothing absolute, nothing hidden."""
    parts = path.split("/")
    if len(parts) > MAX_PARTS or not all(map(is_safe_name, parts)) or PurePosixPath(path).is_absolute():
        raise StoreError(f"{where}: the path {path[:120]!r} leads out of the data set or is no plain path; refused")
