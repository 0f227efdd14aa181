"""The cache of what was downloaded.

    CACHE/sets/NAME-DIGEST/registry.json       of one data set; DIGEST is the beginning of this file's SHA-256
    CACHE/sets/NAME-DIGEST/mdps/MDP/...        complete parts of MDPs: a part is there or it is not
    CACHE/sets/NAME-DIGEST/partial/SHA256      what has come of a file
    CACHE/remotes/DIGEST.json                  which data set a remote had when it was last asked

Nothing that one data set says can change another: their folders differ as soon as their registries do.

CACHE is EFHORIZON_CACHE, or `efhorizon` in the platform's folder for caches. One process at a time writes to one.
A registry is kept with the first part that is complete, so a refused download leaves nothing. It is checked whenever it
is read, and every file when it is downloaded.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from efhorizon.dataset import registry as registries
from efhorizon.dataset.answers import MissingFileError, RefusedError, place
from efhorizon.dataset.registry import MdpEntry, Part, Registry
from efhorizon.dataset.remote import Remote
from efhorizon.dataset.transfer import fetch, small_file
from efhorizon.errors import EfhorizonError, StoreError
from efhorizon.io.decode import Text, read_object, record_of, write_record
from efhorizon.io.files import written_aside

VARIABLE = "EFHORIZON_CACHE"
_TABLES = (registries.SCREENS, registries.TABLE, registries.BRIDGE)  # what a table is opened from, the best first

OnProgress = Callable[[str, int, int], None]  # name of the MDP, bytes so far, bytes in all


class _Pointer(Struct, frozen=True):
    """Which data set a remote had."""

    remote: Text
    set: Text


def cache_folder() -> Path:
    """Where downloads are kept."""
    given = os.environ.get(VARIABLE, "")
    if given.strip():
        return Path(given).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "efhorizon"
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "efhorizon"


class CachedSet:
    """One data set in the cache."""

    def __init__(self, folder: Path, registry: Registry, told: tuple[Remote, bytes] | None = None) -> None:
        """`told` is the remote that has told the registry, which is kept with the first part that is added."""
        self.folder, self.registry, self._told = folder, registry, told

    def has(self, part: Part) -> bool:
        return (self.folder / part.path).exists()

    def parts(self, name: str) -> list[str]:
        """The parts of an MDP that are here."""
        return [kind for kind, part in self.registry.mdps[name].parts.items() if self.has(part)]

    def table(self, name: str) -> Path | None:
        """The table of an MDP, if it is here, in the form that shows most."""
        part = self._table(name)
        return None if part is None else self.folder / part.path

    def checksums(self, name: str) -> tuple[str, ...]:
        """Those of the files of that table."""
        part = self._table(name)
        return () if part is None else tuple(self.registry.files[path].sha256 for path in part.files)

    def _table(self, name: str) -> Part | None:
        mdp = self.registry.mdps.get(name)
        parts = (_openable(mdp, kind) for kind in _TABLES)
        return next((part for part in parts if part is not None and self.has(part)), None)

    def add(self, remote: Remote, name: str, kinds: Iterable[str], on_progress: OnProgress | None = None) -> list[str]:
        """Download parts of an MDP; returns those that are here now. A part that may be left out may be missing."""
        mdp = entry(self.registry, name, remote.given)
        wanted = {kind: mdp.parts[kind] for kind in kinds if kind in mdp.parts}
        total, done = self.registry.size(wanted.values()), 0

        def report(count: int) -> None:
            nonlocal done
            done += count
            if on_progress is not None:
                on_progress(name, done, total)

        with self._locked():
            for part in wanted.values():
                if self.has(part):
                    report(self.registry.size([part]))
                    continue
                try:
                    self._add_part(remote, part, report)
                except MissingFileError:
                    if not part.separate:
                        raise
        return [kind for kind, part in wanted.items() if self.has(part)]

    def _add_part(self, remote: Remote, part: Part, report: Callable[[int], None]) -> None:
        """A part appears as a whole. One refused file, and nothing of it is kept."""
        partials = {path: self.folder / registries.PARTIAL / self.registry.files[path].sha256 for path in part.files}
        try:
            for path, partial in partials.items():
                fetch(remote, path, self.registry.files[path], partial, report)
        except (RefusedError, MissingFileError):
            for partial in partials.values():
                partial.unlink(missing_ok=True)
            self._remove_empty()
            raise
        self._keep_registry()
        target = self.folder / part.path
        with written_aside(target) as temporary:
            for path, partial in partials.items():
                place = temporary if path == part.path else temporary / path[len(part.path) + 1 :]
                place.parent.mkdir(parents=True, exist_ok=True)
                _linked(partial, place)  # two files of a data set may be the same
        for partial in partials.values():
            partial.unlink(missing_ok=True)
        self._remove_empty()

    def _keep_registry(self) -> None:
        if self._told is None:
            return
        remote, content = self._told
        path = self.folder / registries.FILE
        if not path.exists() or path.read_bytes() != content:
            with written_aside(path) as temporary:
                temporary.write_bytes(content)
        write_record(_pointer_file(remote), _Pointer(remote.given, self.folder.name))
        self._told = None

    def _remove_empty(self) -> None:
        with suppress(OSError):  # not empty
            for folder in (self.folder / registries.PARTIAL, self.folder, self.folder.parent):
                folder.rmdir()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One process at a time; the lock ends with the process."""
        try:
            descriptor = self._lock()
        except OSError as error:
            raise _unwritable(error) from None
        try:
            yield
        except OSError as error:
            raise _unwritable(error) from None
        finally:
            os.close(descriptor)
            self._remove_empty()

    def _lock(self) -> int:
        while True:
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.folder, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):  # another process may have removed it, empty, while this one waited
                if os.path.samestat(os.fstat(descriptor), self.folder.stat()):
                    return descriptor
            os.close(descriptor)


def _unwritable(error: OSError) -> EfhorizonError:
    return EfhorizonError(
        f"{cache_folder()}: cannot be written ({error.strerror}); what has come is kept; make room, or set {VARIABLE} "
        "to another folder"
    )


def _linked(file: Path, place: Path) -> None:
    """The same file under another name: no second copy on disk, where the file system can."""
    try:
        os.link(file, place)
    except OSError:
        shutil.copyfile(file, place)


def _openable(mdp: MdpEntry | None, kind: str) -> Part | None:
    part = None if mdp is None else mdp.parts.get(kind)
    return part if part is not None and part.format in registries.OPENED else None


def entry(registry: Registry, name: str, where: str) -> MdpEntry:
    """What the registry has under a name."""
    from difflib import get_close_matches

    if name not in registry.mdps:
        close = get_close_matches(name, registry.mdps, n=3)
        hint = f"; did you mean {', '.join(close)}?" if close else ""
        raise StoreError(f"{name}: not in the data set {registry.name} {registry.version} at {where}{hint}")
    return registry.mdps[name]


def asked(remote: Remote) -> CachedSet:
    """The data set that the remote has now."""
    content = small_file(remote, registries.FILE, registries.MAX_BYTES)
    if remote.pin is not None and hashlib.sha256(content).hexdigest() != remote.pin:
        raise RefusedError(f"{remote.given[:200]}: its registry is not the one that was pinned; refused")
    registry = registries.decoded(content, place(remote, registries.FILE))
    digest = hashlib.sha256(content).hexdigest()[:32]
    return CachedSet(cache_folder() / "sets" / f"{registry.name}-{digest}", registry, (remote, content))


def known(remote: Remote) -> CachedSet | None:
    """The data set that the remote had when it was last asked, without asking it."""
    path = _pointer_file(remote)
    if not path.exists():
        return None
    pointer = record_of(read_object(path, "the cache's note on a remote"), _Pointer, str(path))
    return next((each for each in cached_sets() if each.folder.name == pointer.set), None)


def cached_sets() -> list[CachedSet]:
    """Every data set of which something is in the cache."""
    files = sorted((cache_folder() / "sets").glob(f"*/{registries.FILE}"))
    return [CachedSet(file.parent, registries.read(file)) for file in files]


def _pointer_file(remote: Remote) -> Path:
    digest = hashlib.sha256(remote.given.encode()).hexdigest()[:32]
    return cache_folder() / "remotes" / f"{digest}.json"
