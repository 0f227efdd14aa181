"""Writing the parameters of a network as a .npz, which `agents.deep.pretrained.load_parameters` reads.

The same numbers give the same bytes: no time is written, as `np.savez` would.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.io.files import written_aside
from efhorizon.io.npy import write_header


def save_parameters(path: Path, parameters: Mapping[str, NDArray[Any]]) -> Path:
    """Write arrays by their names; what was at `path` stays until the file is complete."""
    with written_aside(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, array in parameters.items():
            values = np.ascontiguousarray(array, np.float32)
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w") as file:  # dated 1980
                write_header(file, values.shape, values.dtype)
                file.write(values.tobytes())
    return path
