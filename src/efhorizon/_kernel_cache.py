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
from collections.abc import Iterable, Mapping
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
    sources = {**_sources("efhorizon", Path(__file__)), **_sources(root, file)}
    kernels = [name for name, source in sources.items() if _KERNELS in source]
    digest = hashlib.sha256()
    versions = (numba.__version__, llvm.llvm_version_info, platform.python_version(), llvm.get_host_cpu_name())
    digest.update(repr(versions).encode())
    for name in sorted(_closure(kernels, sources, re.compile(rf"\b(?:efhorizon|{re.escape(root)})(?:\.\w+)+"))):
        digest.update(f"{name}\0{sources[name]}\0".encode())
    return digest.hexdigest()[:16]


def _sources(root: str, file: Path) -> dict[str, str]:
    """The text of each module of a package, or of the one module if it is none, by its dotted name."""
    if file.name != "__init__.py" and root != "efhorizon":
        return {root: file.read_text(encoding="utf-8")}
    found = {}
    for path in file.parent.rglob("*.py"):
        parts = (root, *path.relative_to(file.parent).with_suffix("").parts)
        found[".".join(parts).removesuffix(".__init__")] = path.read_text(encoding="utf-8")
    return found


def _closure(names: Iterable[str], sources: Mapping[str, str], dotted: re.Pattern[str]) -> set[str]:
    """The modules, all that they name anywhere in their text, and so on; a folder stands for what lies in it."""
    found: set[str] = set()
    waiting = set(names)
    while waiting:
        name = waiting.pop()
        found.add(name)
        mentioned = {module for text in set(dotted.findall(sources[name])) for module in _modules(text, sources)}
        waiting |= mentioned - found
    return found


def _modules(dotted: str, sources: Mapping[str, str]) -> list[str]:
    """`a.b.c` may be a module, a name in module a.b, or folder a.b with a module that is named in the same line."""
    while dotted not in sources:
        dotted, _, last = dotted.rpartition(".")
        if not last:
            return []
    inside = [name for name in sources if name.rpartition(".")[0] == dotted]
    return [dotted, *inside] if "." in dotted else []


def _prune(place: Path, current: str) -> None:
    folders = [path for path in place.glob("kernels-*") if path.name != current and path.is_dir()]
    for path in sorted(folders, key=_last_use, reverse=True)[_FOLDERS_KEPT - 1 :]:
        shutil.rmtree(path, ignore_errors=True)  # another process may be removing it


def _last_use(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
