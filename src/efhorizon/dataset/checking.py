"""Whether every file of a data set is what its registry says."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from efhorizon.dataset import registry as registries
from efhorizon.dataset.cache import cached_sets
from efhorizon.dataset.registry import SUMS, Registry
from efhorizon.errors import StoreError


@dataclass(frozen=True)
class Checked:
    """What was compared, and what is wrong."""

    num_files: int
    num_bytes: int
    wrong: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        return not self.wrong

    @property
    def verdict(self) -> str:
        return "all as the registry says" if self.is_right else f"{len(self.wrong)} wrong: {self.wrong[0]}"


def check_folder(folder: Path) -> Checked:
    """A data set on disk, all of it."""
    if not (folder / registries.FILE).exists():
        raise StoreError(f"{folder}: not a data set: there is no {registries.FILE}")
    registry = registries.read(folder / registries.FILE)
    left_out = [
        part
        for mdp in registry.mdps.values()
        for part in mdp.parts.values()
        if part.separate and not (folder / part.path).exists()
    ]
    skipped = {path for part in left_out for path in part.files}
    paths = [path for path in registry.files if path not in skipped]
    found = _checked(folder, registry, paths)
    listed = {*registry.files, registries.FILE, SUMS}
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    unlisted = sorted(path for path in present - listed if not path.startswith("."))
    wrong = (*found.wrong, *(f"{path}: not in the registry" for path in unlisted))
    notes = (f"left out: {len(left_out)} parts, as they may be",) if left_out else ()
    return Checked(found.num_files, found.num_bytes, wrong, notes)


def check_cache() -> Checked:
    """Everything that was downloaded."""
    parts = []
    for each in cached_sets():
        here = [part for mdp in each.registry.mdps.values() for part in mdp.parts.values() if each.has(part)]
        parts.append(_checked(each.folder, each.registry, [path for part in here for path in part.files]))
    wrong = tuple(line for each in parts for line in each.wrong)
    return Checked(sum(each.num_files for each in parts), sum(each.num_bytes for each in parts), wrong, ())


def _checked(folder: Path, registry: Registry, paths: Iterable[str]) -> Checked:
    num_files, num_bytes, wrong = 0, 0, []
    for path in paths:
        expected, place = registry.files[path], folder / path
        num_files += 1
        if place.is_symlink() or not place.is_file():
            wrong.append(f"{place}: not there")
            continue
        size = place.stat().st_size
        num_bytes += size
        if size != expected.size:
            wrong.append(f"{place}: {size:,} bytes, not {expected.size:,}")
            continue
        with place.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != expected.sha256:
                wrong.append(f"{place}: its SHA-256 is not what the registry says")
    return Checked(num_files, num_bytes, tuple(wrong), ())
