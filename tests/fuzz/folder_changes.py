"""Mutations of a whole results folder: what is in it, and under which names."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from random import Random

from .mutations import Mutations, NotApplicableError, Target

_PARTS = ("rows", "analyses", "pictures", "tables", "claims")
FOLDERS = Mutations()


def _study(target: Target) -> Path:
    return next(parent for parent in target.file.parents if parent.name == "study")


def _part(target: Target, rng: Random) -> Path:
    parts = [_study(target) / name for name in _PARTS if (_study(target) / name).is_dir()]
    return rng.choice(parts)


def _files(folder: Path, pattern: str) -> list[Path]:
    found = sorted(folder.glob(pattern))
    if not found:
        raise NotApplicableError
    return found


@FOLDERS.add()
def part_missing(target: Target, rng: Random) -> str:
    part = _part(target, rng)
    shutil.rmtree(part)
    return f"no {part.name}"


@FOLDERS.add()
def part_is_a_file(target: Target, rng: Random) -> str:
    part = _part(target, rng)
    shutil.rmtree(part)
    part.write_text("x")
    return f"{part.name} is a file"


@FOLDERS.add()
def part_is_a_pipe(target: Target, rng: Random) -> str:
    part = _part(target, rng)
    shutil.rmtree(part)
    os.mkfifo(part)
    return f"{part.name} is a pipe"


@FOLDERS.add()
def part_is_a_link(target: Target, rng: Random) -> str:
    part = _part(target, rng)
    where = rng.choice([part, target.outside / "nothing"])
    shutil.rmtree(part)
    part.symlink_to(where)
    return f"{part.name} is a link to {where.name}"


@FOLDERS.add()
def parts_swapped(target: Target, rng: Random) -> str:
    one, other = _part(target, rng), _part(target, rng)
    aside = one.with_name("aside")
    one.rename(aside)
    if other != one:
        other.rename(one)
        aside.rename(other)
    return f"{one.name} and {other.name} changed places" if other != one else f"{one.name} is called aside"


@FOLDERS.add()
def file_in_another_part(target: Target, rng: Random) -> str:
    row, analysis = (
        rng.choice(_files(_study(target), "rows/*.json")),
        rng.choice(_files(_study(target), "analyses/*.json")),
    )
    source, folder = rng.choice([(row, "analyses"), (analysis, "rows"), (_study(target) / "study.json", "rows")])
    shutil.copyfile(source, _study(target) / folder / f"more{source.name}")
    return f"{source.parent.name}/{source.name[:40]} among the {folder}"


@FOLDERS.add()
def file_twice(target: Target, rng: Random) -> str:
    pattern = rng.choice(["rows/*.json", "analyses/*.json"])
    file = rng.choice(_files(_study(target), pattern))
    shutil.copyfile(file, file.with_name(f"x{file.name}"))
    return f"{file.name[:60]} twice"


@FOLDERS.add()
def files_swapped(target: Target, rng: Random) -> str:
    files = _files(_study(target), rng.choice(["rows/*.json", "analyses/*.json"]))
    one, other = rng.choice(files), rng.choice(files)
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    return f"{one.name[:60]} and {other.name[:60]} changed places"


@FOLDERS.add()
def odd_names(target: Target, rng: Random) -> str:
    part = rng.choice(["rows", "analyses", "tables", "claims", "pictures"])
    name = rng.choice(
        [b"\xff\xfe.json", b"a\nb.json", b"\x1b[31m.json", b" .json", b".hidden.json", b"x" * 250 + b".json"]
    )
    folder = os.fsencode(_study(target) / part)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(rng.choice([b"", b"{}", b"x"]))
    return f"{part}/{name[:30]!r}"


@FOLDERS.add()
def folders_as_files(target: Target, rng: Random) -> str:
    name = rng.choice(["rows/x.json", "analyses/x.json", "tables/x/zarr.json", "pictures/x.png", "tables.csv"])
    (_study(target) / name).mkdir(parents=True, exist_ok=True)
    return f"{name} is a folder"


@FOLDERS.add()
def pipes_as_files(target: Target, rng: Random) -> str:
    name = rng.choice(["rows/x.json", "analyses/x.json", "tables/x/zarr.json", "tables.csv", "tables/y.npz"])
    (_study(target) / name).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(_study(target) / name)
    return f"{name} is a pipe"


@FOLDERS.add()
def temporary_files(target: Target, rng: Random) -> str:
    for name in (".x.json.1.tmp", "rows/.x.json.1.tmp", "analyses/.x.json.2.tmp", "tables/.x.3.tmp/zarr.json"):
        (_study(target) / name).parent.mkdir(parents=True, exist_ok=True)
        (_study(target) / name).write_text("{")
    return "files that a killed process has left behind"


@FOLDERS.add()
def foreign_tables(target: Target, rng: Random) -> str:
    table = _study(target) / "tables" / rng.choice(["x", "[red]", "=1+1", "a b"])
    table.mkdir(parents=True, exist_ok=True)
    (table / "zarr.json").write_text(
        rng.choice(["", "{}", "x", '{"zarr_format": 3, "node_type": "group", "attributes": {}}'])
    )
    return f"tables/{table.name} is no table"


@FOLDERS.add()
def deep_folders(target: Target, rng: Random) -> str:
    folder = _study(target) / rng.choice(_PARTS)
    for _ in range(60):
        folder = folder / "deep"
    folder.mkdir(parents=True)
    return "sixty folders in each other"


@FOLDERS.add()
def one_file_missing(target: Target, rng: Random) -> str:
    file = rng.choice([path for path in _files(_study(target), "**/*") if path.is_file()])
    file.unlink()
    return f"{file.parent.name}/{file.name[:60]} is missing"
