"""Where the machine code of kernels is kept: in a folder that changes its name when any kernel changes.

numba keeps the code of a kernel until the kernel's own file changes. It does not see a change in another kernel that is
compiled into it, or in a constant from another module, and would go on running the old code. So the folder's name is a
digest of all kernels of a package and of every module that they name, with the versions of what compiles them. Folders
that have not been used for longest are removed.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import sys
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm
import numba

_KERNELS = "compiled"  # no module has kernels without this word
_FOLDERS_KEPT = 4  # of a package: for as many branches that are worked on in turn


def cache_folder(module: str) -> Path | None:
    """The folder for the kernels of a module; None if there is no place for one, and nothing is kept."""
    return _folder_of(module.partition(".")[0])


@cache
def _folder_of(root: str) -> Path | None:
    file = getattr(sys.modules.get(root), "__file__", None)
    if file is None or not Path(file).is_file():
        return None
    name = f"kernels-{_digest(root, Path(file))}"
    for place in (Path(file).parent / "__pycache__", Path("~/.cache/efhorizon").expanduser()):
        try:
            (place / name).mkdir(parents=True, exist_ok=True)
            os.utime(place / name)
        except (OSError, RuntimeError):  # read-only, or there is no home
            continue
        _prune(place, name)
        return place / name
    return None


def _digest(root: str, file: Path) -> str:
    """A hash of everything that the machine code of a package's kernels depends on."""
    sources = _sources("efhorizon", Path(__file__).with_name("__init__.py"))
    if root != "efhorizon":
        sources |= _sources(root, file)
    versions = (numba.__version__, llvm.llvm_version_info, platform.python_version(), llvm.get_host_cpu_name())
    digest = hashlib.sha256(repr(versions).encode())
    for name in sorted(_needed(sources, re.compile(rf"(?:efhorizon|{re.escape(root)})(?:\.\w+)+"))):
        digest.update(f"{name}\0{sources[name]}\0".encode())
    return digest.hexdigest()[:16]


def _sources(root: str, file: Path) -> dict[str, str]:
    """The text of each module of a package, or of the one module if it is none, by its dotted name."""
    if file.name != "__init__.py":
        return {root: file.read_text(encoding="utf-8")}
    found = {}
    for folder, _, names in os.walk(file.parent):
        place = ".".join([root, *os.path.relpath(folder, file.parent).replace(".", "").split(os.sep)]).rstrip(".")
        for name in names:
            if name.endswith(".py"):
                module = f"{place}.{name.removesuffix('.py')}".removesuffix(".__init__")
                found[module] = Path(folder, name).read_text(encoding="utf-8")
    return found


def _needed(sources: Mapping[str, str], dotted: re.Pattern[str]) -> set[str]:
    """Modules with kernels, all modules that they name anywhere in their text, and so on."""
    inside: dict[str, set[str]] = defaultdict(set)  # the modules that lie in a folder
    for name in sources:
        inside[name.rpartition(".")[0]].add(name)
    found: set[str] = set()
    waiting = {name for name, source in sources.items() if _KERNELS in source}
    while waiting:
        name = waiting.pop()
        found.add(name)
        for text in set(dotted.findall(sources[name])):
            module = _longest_known(text, sources)
            if "." in module:  # `from efhorizon.suites import atari` names a folder and one of its modules
                waiting |= ({module} | inside[module]) - found
    return found


def _longest_known(dotted: str, sources: Mapping[str, str]) -> str:
    """The module that a dotted name is, or has at its beginning; empty if there is none."""
    while dotted and dotted not in sources:
        dotted = dotted.rpartition(".")[0]
    return dotted


def _prune(place: Path, current: str) -> None:
    folders = [path for path in place.glob("kernels-*") if path.name != current and path.is_dir()]
    for path in sorted(folders, key=_last_use, reverse=True)[_FOLDERS_KEPT - 1 :]:
        shutil.rmtree(path, ignore_errors=True)  # another process may be removing it


def _last_use(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
