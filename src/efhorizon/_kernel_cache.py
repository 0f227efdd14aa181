"""Where the machine code of kernels is kept: for each module, in a folder named after all that it depends on.

numba keeps the code of a kernel until the kernel's own file changes. It does not see a change in another kernel that is
compiled into it, or in a constant from another module, and would go on running the old code. So the name of the folder
is a digest of the module's source, of the constants that it has imported, of the modules whose kernels and tuples it
has imported, and so on, with the versions of what compiles them. Folders that have not been used for longest are
removed.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import llvmlite.binding as llvm
import numba
import numpy as np
from numba.core.registry import CPUDispatcher

_FOLDERS_KEPT = 4  # of a module: for as many branches that are worked on in turn
_CONSTANTS = (bool, int, float, complex, str, bytes, tuple, np.generic)


@cache
def cache_folder(module: str) -> Path | None:
    """The folder for the kernels of a module; None if there is no place for one, and nothing is kept.

    It is asked for while the module is being imported, by its first kernel: everything that it takes from other modules
    is there by then, and what it defines itself is in its source.
    """
    file = _source(module)
    if file is None:
        return None
    name = f"{module}-{_digest(module)}"
    for place in (file.parent / "__pycache__" / "kernels", Path("~/.cache/efhorizon/kernels").expanduser()):
        try:
            (place / name).mkdir(parents=True, exist_ok=True)
            os.utime(place / name)
        except (OSError, RuntimeError):  # read-only, or there is no home
            continue
        _prune(place, module, name)
        return place / name
    return None


def _digest(module: str) -> str:
    """A hash of everything that the machine code of a module's kernels depends on."""
    versions = (numba.__version__, llvm.llvm_version_info, platform.python_version(), llvm.get_host_cpu_name())
    digest = hashlib.sha256(repr(versions).encode())
    for name in sorted(_needed(module)):
        file = _source(name)
        digest.update(name.encode() + (b"" if file is None else file.read_bytes()))
        for constant, value in sorted(vars(sys.modules[name]).items()):
            if isinstance(value, _CONSTANTS) and not constant.startswith("__"):
                digest.update(f"{constant} = {value!r}".encode())
            elif isinstance(value, np.ndarray):
                digest.update(f"{constant} = {value.dtype} {value.shape}".encode() + value.tobytes())
    return digest.hexdigest()[:16]


def _needed(module: str) -> set[str]:
    """The module, those whose kernels and tuples it has imported, and so on."""
    found: set[str] = set()
    waiting = {module}
    packages = {"efhorizon", module.partition(".")[0]}
    while waiting:
        name = waiting.pop()
        found.add(name)
        origins = {_origin(value) for value in vars(sys.modules[name]).values()}
        waiting |= {each for each in origins if each in sys.modules and each.partition(".")[0] in packages} - found
    return found


def _origin(value: object) -> str:
    """The module in which something was defined that kernels can use; else an empty text."""
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, CPUDispatcher):
        return str(value.py_func.__module__)
    return value.__module__ if isinstance(value, type) and issubclass(value, tuple) else ""


def _source(module: str) -> Path | None:
    file = getattr(sys.modules.get(module), "__file__", None)
    return Path(file) if file is not None and Path(file).is_file() else None


def _prune(place: Path, module: str, current: str) -> None:
    folders = [path for path in place.glob(f"{module}-*") if path.name != current and path.is_dir()]
    for path in sorted(folders, key=_last_use, reverse=True)[_FOLDERS_KEPT - 1 :]:
        shutil.rmtree(path, ignore_errors=True)  # another process may be removing it


def _last_use(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
