"""Where a diagnosis is kept in a results folder: its content as JSON, its film as PNG, and the log it goes on from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from efhorizon.diagnose.diagnosis import Diagnosis
from efhorizon.diagnose.film import Film
from efhorizon.errors import StoreError
from efhorizon.io.decode import read_object
from efhorizon.io.files import write_json, written_aside

FORMAT = "efhorizon-diagnosis"
FORMAT_VERSION = 1
_LONGEST = 120


def folder_of(results: Path) -> Path:
    return results / "diagnoses"


def log_path(results: Path, name: str, seed: int) -> Path:
    return folder_of(results) / f"{_stem(name, seed)}.log.jsonl"


def store(results: Path, found: Diagnosis, film: Film | None) -> Path:
    """Write a diagnosis in place of an older one of the same environment and seed."""
    path = folder_of(results) / f"{_stem(found.id, found.seed)}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = path.with_suffix(".png")
    if film is None:
        picture.unlink(missing_ok=True)
    else:
        with written_aside(picture) as temporary:
            temporary.write_bytes(film.png)
    sheet = None if film is None else {name: getattr(film, name) for name in ("frames", "columns", "width", "height")}
    head = {"format": FORMAT, "format_version": FORMAT_VERSION, "film": sheet}
    write_json(path, {**head, **found.as_json()})
    return path


def film_path(results: Path, stem: str) -> Path:
    return folder_of(results) / f"{stem}.png"


def diagnosis_paths(results: Path) -> list[Path]:
    """All diagnoses of a results folder, by name."""
    return sorted(folder_of(results).glob("*.json"))


def read_diagnosis(path: Path) -> dict[str, Any]:
    """The content of a file that `store` wrote."""
    content = read_object(path, "a diagnosis")
    if content.get("format") != FORMAT or content.get("format_version") != FORMAT_VERSION:
        raise StoreError(f"{path}: not a diagnosis of this version")
    return content


def _stem(name: str, seed: int) -> str:
    return f"{name.replace('/', '_').replace(':', '_')[:_LONGEST]}-seed{seed}"
