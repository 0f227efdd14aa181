"""Small real files of every kind, made by the product itself."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from .npz_files import read_zip, zipped
from .store_files import header_digest

LAVA, EMPTY = "MiniGrid-LavaGapS5-v0", "MiniGrid-Empty-5x5-v0"  # 16 and 32 states
HORIZON = 8  # so that a command takes milliseconds
SHORT, UNFINISHED = f"{LAVA}-T{HORIZON}", f"{EMPTY}-T{HORIZON}-unfinished"  # names of tables
CHECKPOINT = f"{EMPTY} --live --horizon {HORIZON} --m 1 --max-steps 300"
BUDGET_ENDED = 3
# Tables with rewards of other sorts need other kernels, which must not be compiled within the time of a case.
_ODD = ("uneven", "nothing")
ODD_LINES = (
    *(f"analyze ../given/odd/{name}.npz --max-k 1 --json" for name in _ODD),
    *(f"gorp ../given/odd/{name}.npz --m 2 --runs 3 --json" for name in _ODD),
    f"train ../given/odd/{_ODD[1]}.npz --algo gorp --settings k1 --json",  # in the other GORP hardly succeeds: a minute
    "analyze ../given/npz/table.npz --max-k 2 --gamma 0.5 --json",
)


def make_if_needed(folder: Path) -> None:
    """Make all of it, in this process; what the same code has made before is kept, so that cases are the same."""
    made_by = folder / "made-by"
    digest = _digest()
    if made_by.exists() and made_by.read_text() == digest:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _make(folder)
    made_by.write_text(digest)


def _digest() -> str:
    import efhorizon

    files = [Path(__file__), *sorted(Path(efhorizon.__file__).parent.rglob("*.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _make(folder: Path) -> None:
    before = Path.cwd()
    os.chdir(folder)
    try:
        _tables()
        _study()
        _starts()
    finally:
        os.chdir(before)


def efhorizon(line: str, code: int = 0) -> None:
    from efhorizon.commands import main

    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        ended = main(line.split())
    if ended != code:
        raise RuntimeError(f"efhorizon {line}: exit code {ended}\n{output.getvalue()}")


def _tables() -> None:
    efhorizon(f"build {LAVA} --horizon {HORIZON} --out tables --workers 1")
    efhorizon(f"build {EMPTY} --horizon {HORIZON} --out tables --workers 1")
    unfinished = f"build {EMPTY} --horizon {HORIZON} --out begun --max-states 12 --keep-unfinished --workers 1"
    efhorizon(unfinished, BUDGET_ENDED)
    shutil.move(f"begun/{UNFINISHED}", "tables")
    Path("npz").mkdir()
    for name, file in ((SHORT, "table"), (f"{EMPTY}-T{HORIZON}", "other")):
        efhorizon(f"export tables/{name} npz/{file}.npz")
    shutil.copytree("npz", "odd")
    make_older(Path("odd"))
    members, comment = read_zip(Path("odd/table.npz").read_bytes())
    rng = np.random.default_rng(0)
    rewards = np.load(io.BytesIO(members["rewards.npy"]))
    odd = {"uneven": rng.random(rewards.shape), "nothing": rewards * 0}
    for name in _ODD:
        file = io.BytesIO()
        np.save(file, odd[name].astype("f4"))
        Path(f"odd/{name}.npz").write_bytes(zipped({**members, "rewards.npy": file.getvalue()}, comment))
    published = Path("published") / LAVA
    published.mkdir(parents=True)
    (published / "consolidated.npz").write_bytes(zipped(members))


def _study() -> None:
    efhorizon(f"study {LAVA} {EMPTY} --out study --algos gorp --workers 1")
    efhorizon(
        f"train {LAVA} --tables study/tables --results study --algo ppo --settings rollout128 --seeds 2 --steps 512"
    )
    shutil.move("study/report", "site")
    efhorizon("evaluate study --resamples 5 --export export")


def _starts() -> None:
    """What runs may start from: a checkpoint, an exploration policy, parameters."""
    from efhorizon.agents.deep.networks import network_for
    from efhorizon.agents.deep.observations import observed_table
    from efhorizon.io.tables import load

    efhorizon(f"gorp {CHECKPOINT} --checkpoints saved --max-steps 100", BUDGET_ENDED)
    rng = np.random.default_rng(1)
    table = load(Path("tables") / SHORT)
    policy = rng.random((table.num_states, table.num_actions))
    np.save("policy.npy", policy / policy.sum(axis=1, keepdims=True))
    shapes = network_for("actor_critic", observed_table(table)).torch_shapes
    np.savez("initial.npz", **{name: rng.normal(0, 0.1, shape).astype("f4") for name, shape in shapes.items()})


def make_older(folder: Path) -> None:
    """Take the checksums out of all that is in a folder: what older versions wrote had none."""
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        if path.name == "zarr.json":
            _make_store_older(path)
        elif path.suffix == ".json":
            content = json.loads(path.read_text())
            content.pop("checksum", None)
            path.write_text(json.dumps(content, indent=1))
        elif path.name == "checksums.txt":
            path.unlink()
        elif path.suffix == ".parquet":
            pq.write_table(
                pq.read_table(path, use_threads=False).replace_schema_metadata(None), path, compression="zstd"
            )
        elif path.suffix == ".npz" and (archive := read_zip(path.read_bytes()))[1]:
            content = json.loads(archive[1])
            content.pop("checksum", None)
            path.write_bytes(zipped(archive[0], json.dumps(content).encode()))


def _make_store_older(path: Path) -> None:
    """Stores of older versions had a digest of each array, and none of single chunks."""
    content = json.loads(path.read_text())
    attributes = content.get("attributes", {})
    if "digests" not in attributes:
        return  # that of an array
    for name, digest in attributes["digests"].items():
        attributes["digests"][name] = {key: digest[key] for key in ("xxh128", "shape", "dtype", "chunks")}
    attributes["header_digest"] = header_digest(attributes)
    path.write_text(json.dumps(content))
