"""A table of a data set by its name: from the cache, or else from the remote."""

from __future__ import annotations

from pathlib import Path

from efhorizon.dataset import registry as registries
from efhorizon.dataset.cache import CachedSet, OnProgress, asked, cached_sets, entry, known
from efhorizon.dataset.remote import Remote, configured
from efhorizon.errors import StoreError


def table(name: str, remote: str | Path | None = None, on_progress: OnProgress | None = None) -> Path | None:
    """Where the table is now; it is downloaded if it has to be. None if there is neither a remote nor a copy of it.

    Without a remote the cache alone is asked, and two data sets whose files of this table differ are an error.
    """
    place = configured(remote)
    if place is None:
        return _anywhere(name)
    there = known(place)
    found = None if there is None else there.table(name)
    return found if found is not None else downloaded(asked(place), place, name, on_progress)


def downloaded(
    dataset: CachedSet,
    remote: Remote,
    name: str,
    on_progress: OnProgress | None = None,
    *,
    to_open: bool = True,
) -> Path:
    """The table of an MDP, which is downloaded if it is not in the cache: with screens, where the data set has them.

    If it need not be opened as a deterministic table, it may be one with chance.
    """
    mdp = entry(dataset.registry, name, remote.given)
    base = name if mdp.base is None or _tables(dataset, name) else mdp.base
    kinds = _tables(dataset, base) if base in dataset.registry.mdps else []
    other = dataset.registry.mdps[base].parts.get(registries.TABLE) if base in dataset.registry.mdps else None
    if not kinds and other is not None and other.format == registries.STOCHASTIC_FORMAT and not to_open:
        dataset.add(remote, base, [registries.TABLE], on_progress)
        return dataset.folder / other.path
    if not kinds:
        what = "no table of it" if other is None else "no table of it that this version opens"
        raise StoreError(
            f"{name}: the data set {dataset.registry.name} {dataset.registry.version} has {what}, "
            f"only: {', '.join(mdp.parts) or 'nothing'}"
        )
    for kind in kinds:
        dataset.add(remote, base, [kind], on_progress)
        found = dataset.table(base)
        if found is not None:
            return found
    raise StoreError(f"{name}: its table is not at {remote.given}")


def _tables(dataset: CachedSet, name: str) -> list[str]:
    """The parts of an MDP that are tables and can be opened, the best first."""
    parts = dataset.registry.mdps[name].parts
    order = (registries.SCREENS, registries.TABLE, registries.BRIDGE)
    return [kind for kind in order if kind in parts and parts[kind].format in registries.OPENED]


def _anywhere(name: str) -> Path | None:
    found = [(each, path) for each in cached_sets() if (path := each.table(name)) is not None]
    if len({each.checksums(name) for each, _ in found}) > 1:
        sets = ", ".join(f"{each.registry.name} {each.registry.version}" for each, _ in found)
        raise StoreError(f"{name}: in several data sets of the cache, and not the same: {sets}; set EFHORIZON_REMOTE")
    return found[0][1] if found else None
