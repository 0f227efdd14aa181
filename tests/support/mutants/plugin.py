"""A plugin of pytest for the tests of a mutant: takes over compiled kernels that the mutant cannot have changed.

Kernels are kept in a folder named after all of their sources (`efhorizon/_kernel_cache.py`), so a mutated tree begins
with an empty one. Its files are linked from the folder of the tree without a mutant, but for the modules that import
the mutated one.
"""

from __future__ import annotations

import os
import resource
from pathlib import Path

from efhorizon._kernel_cache import cache_folder

FOLDER, STALE = "MUTANTS_KERNELS", "MUTANTS_STALE"  # the folder without a mutant, and the modules that are left out
_MEMORY = 12 << 30  # a mutant may ask for anything


def stem(module: Path) -> str:
    """How numba begins the name of a module's kernels: by the folder, and the name in it."""
    return f"{module.parent.name}/{module.stem}"


def pytest_configure() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    folder = cache_folder("efhorizon")
    if folder is None or not folder.is_relative_to(Path.cwd()):
        raise RuntimeError(f"kernels are kept in {folder}, not in the copy of the tree at {Path.cwd()}")
    known = Path(os.environ.get(FOLDER, folder))
    stale = set(os.environ.get(STALE, "").split(os.pathsep))
    if known == folder:
        return
    for file in known.glob("*/*"):
        place = file.parent.name.rpartition("_")[0]
        target = folder / file.parent.name / file.name
        if f"{place}/{file.name.partition('.')[0]}" not in stale and not target.exists():
            target.parent.mkdir(exist_ok=True)
            os.link(file, target)  # numba never writes into a file that is there
