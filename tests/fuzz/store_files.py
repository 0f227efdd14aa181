"""Mutations of the native store: its JSON, its chunks, and headers forged so that their digest is right."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import xxhash

from .json_files import FIELDS, TEXT, changed_text
from .mutations import ANY_FILE, SPECIAL_FILES, Mutations, NotApplicableError, Target, copy_of_another

FORGED = "the digest is that of the changed header: a store that somebody else made"
_HEADER = ("horizon", "metadata", "digests")  # what the digest is of
_CHUNKS = Mutations()
_FORGERIES = Mutations()


def _store_of(file: Path) -> Path:
    """The folder of the store in which a file lies."""
    return next(
        parent
        for parent in file.parents
        if (parent / "zarr.json").exists() and "group" in (parent / "zarr.json").read_text()
    )


def _chunk(target: Target, rng: Random) -> Path:
    chunks = sorted(path for path in _store_of(target.file).rglob("c/**/*") if path.is_file())
    if not chunks:
        raise NotApplicableError
    return rng.choice(chunks)


def _named(chunk: Path) -> str:
    return "/".join(chunk.parts[-4:])


@_CHUNKS.add()
def chunk_emptied(target: Target, rng: Random) -> str:
    chunk = _chunk(target, rng)
    chunk.write_bytes(b"")
    return f"{_named(chunk)} has no bytes"


@_CHUNKS.add()
def chunk_missing(target: Target, rng: Random) -> str:
    chunk = _chunk(target, rng)
    chunk.unlink()
    return f"{_named(chunk)} is missing"


@_CHUNKS.add()
def chunk_cut_short(target: Target, rng: Random) -> str:
    chunk = _chunk(target, rng)
    content = chunk.read_bytes()
    length = rng.randrange(len(content))
    chunk.write_bytes(content[:length])
    return f"{_named(chunk)} has {length} of {len(content)} bytes"


@_CHUNKS.add()
def chunk_longer(target: Target, rng: Random) -> str:
    chunk = _chunk(target, rng)
    content, more = chunk.read_bytes(), rng.randbytes(rng.choice([1, 16, 1000]))
    chunk.write_bytes(rng.choice([content + more, more + content, content + content]))
    return f"{_named(chunk)} is longer"


@_CHUNKS.add()
def chunk_of_zeros(target: Target, rng: Random) -> str:
    chunk = _chunk(target, rng)
    chunk.write_bytes(bytes(chunk.stat().st_size))
    return f"{_named(chunk)} is all zeros"


@_CHUNKS.add()
def chunks_swapped(target: Target, rng: Random) -> str:
    one, other = _chunk(target, rng), _chunk(target, rng)
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    return f"{_named(one)} and {_named(other)} changed places"


@_CHUNKS.add()
def chunks_reordered(target: Target, rng: Random) -> str:
    chunk = _chunk(target, rng)
    other = chunk.with_name(rng.choice(["1", "7", "x", "00", "-1"]))
    chunk.rename(other)
    return f"{_named(chunk)} is called {other.name}"


@_CHUNKS.add()
def more_files(target: Target, rng: Random) -> str:
    store = _store_of(target.file)
    name = rng.choice(["zarr.json.bak", ".DS_Store", "screens/c/9/9", "more/zarr.json", ".zgroup", "c/0"])
    (store / name).parent.mkdir(parents=True, exist_ok=True)
    (store / name).write_bytes(rng.choice([b"", b"{}", b"x" * 100]))
    return f"another file {name}"


_CHUNKS.add()(copy_of_another)


def header_digest(attributes: dict[str, Any]) -> str:
    """What a store says that its header is."""
    header = {name: attributes.get(name) for name in _HEADER}
    return xxhash.xxh3_128(json.dumps(header, sort_keys=True).encode()).hexdigest()


def _forged(target: Target, rng: Random, change: Any) -> str:
    """Change the attributes of the group, and write the digest that goes with them."""
    file = _store_of(target.file) / "zarr.json"
    group = json.loads(file.read_text())
    what = change(group["attributes"])
    attributes = group["attributes"]
    attributes["header_digest"] = header_digest(attributes)
    file.write_text(json.dumps(group).replace("OUTSIDE", str(target.outside)))
    return f"forged: {what}"


@_FORGERIES.add(may_differ=FORGED)
def header_forged(target: Target, rng: Random) -> str:
    def change(attributes: dict[str, Any]) -> str:
        for _ in range(20):  # what is no JSON for Python cannot have a digest either
            text, what = changed_text(json.dumps({name: attributes[name] for name in _HEADER}), rng)
            try:
                attributes.update(json.loads(text))
            except (ValueError, RecursionError):
                continue
            return what
        raise NotApplicableError

    return _forged(target, rng, change)


@_FORGERIES.add(may_differ=FORGED)
def horizon_and_name_forged(target: Target, rng: Random) -> str:
    def change(attributes: dict[str, Any]) -> str:
        attributes["horizon"] = rng.choice([attributes["horizon"], 0, -1, 1.5, True, "9", None, 10**6, 2**31, 2**63])
        name = rng.choice(["x", "../outside/x", "OUTSIDE/x", "\x1b[31m", "[/bold]", 3, None, ["a"], "=1+1"])
        attributes["metadata"]["id"] = name
        return f"horizon {attributes['horizon']}, id {name!r}"

    return _forged(target, rng, change)


@_FORGERIES.add(may_differ=FORGED)
def huge_array_forged(target: Target, rng: Random) -> str:
    """An array that says it is huge, in the header and in its own zarr.json; its chunks are as they were."""
    length = rng.choice([10**6, 2**31, 2**33, 2**40, 2**62, 2**64])

    def change(attributes: dict[str, Any]) -> str:
        name = rng.choice(sorted(attributes["digests"]))
        file = _store_of(target.file) / name / "zarr.json"
        array = json.loads(file.read_text())
        array["shape"][0] = length
        if rng.random() < 0.5:
            array["chunk_grid"]["configuration"]["chunk_shape"][0] = length
            for codec in array["codecs"]:
                if codec["name"] == "sharding_indexed":
                    codec["configuration"]["chunk_shape"][0] = length
        file.write_text(json.dumps(array))
        attributes["digests"][name]["shape"][0] = length
        return f"{name} has {length:,} rows"

    return _forged(target, rng, change)


@_FORGERIES.add(may_differ=FORGED)
def array_description_forged(target: Target, rng: Random) -> str:
    """The zarr.json of an array changed, and its shape and type in the header with it."""

    def change(attributes: dict[str, Any]) -> str:
        name = rng.choice(sorted(attributes["digests"]))
        file = _store_of(target.file) / name / "zarr.json"
        text, what = changed_text(file.read_text(), rng)
        file.write_text(text, "utf-8")
        try:
            array = json.loads(text)
            attributes["digests"][name]["shape"] = array["shape"]
            attributes["digests"][name]["dtype"] = array["data_type"]
        except (ValueError, RecursionError, KeyError, TypeError):
            pass
        return f"{name}: {what}"

    return _forged(target, rng, change)


STORE = Mutations(FIELDS, _FORGERIES, _FORGERIES, _FORGERIES, TEXT, ANY_FILE, SPECIAL_FILES)  # of zarr.json files
STORE_CHUNKS = Mutations(_CHUNKS, _CHUNKS, ANY_FILE, SPECIAL_FILES)
