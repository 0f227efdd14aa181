"""Whether an installed efhorizon works: run by `make release` in an empty environment, with the extra as argument.

python -I smoke.py [EXTRA]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import efhorizon as ef

LOCK = ef.TabularMDP([[0, 1], [0, 2], [0, -1]], [[0, 0], [0, 0], [0, 1]], 3, metadata={"id": "lock"})


def begun() -> None:
    """With any extra: the commands answer, quickly, and a table is stored and found."""
    for arguments in (["--help"], ["--version"], ["list"], ["dataset", "--help"]):
        command("efhorizon", *arguments)
    code = "import sys, efhorizon; from efhorizon.commands import main; sys.exit('numba' in sys.modules)"
    command(sys.executable, "-c", code)
    ef.save(LOCK, "tables/lock")
    ef.save(LOCK, "lock.npz")
    assert ef.load("lock").fingerprint() == ef.load("lock.npz").fingerprint() == LOCK.fingerprint()


def core() -> None:
    """Analysis and GORP, for which Numba compiles a minute."""
    assert ef.analyze(LOCK).effective_horizon.kind == "exact"
    assert 0 < ef.gorp(LOCK, k=1, m=4, seed=0).success_rate <= 1
    command("efhorizon", "analyze", "lock")


def environment(name: str) -> None:
    simulator = ef.build(name, verify_episodes=2)
    assert simulator.num_states > 1
    assert ef.load(name).fingerprint() == simulator.fingerprint()


def lander() -> None:
    assert ef.build("LunarLander-v3", horizon=2, verify_episodes=2).num_states > 1


def report() -> None:
    command("efhorizon", "analyze", "lock", "--results", "results")
    command("efhorizon", "report", "results", "--out", "report")
    command("efhorizon", "dataset", "publish", "results", "published", "--tables", "tables")
    assert ef.load("lock", tables="nowhere", remote="published").num_states == LOCK.num_states


def train() -> None:
    assert ef.train(LOCK, algo="dqn", steps=2000, seeds=1).rows


def plot() -> None:
    assert LOCK.plot() is not None


def pandas() -> None:
    assert len(LOCK.to_pandas()) == 6


def openspiel() -> None:
    command("efhorizon", "build", "openspiel:catch")


def ray() -> None:
    command("efhorizon", "build", "lattice-2x20", "--engine", "ray", "--workers", "1")


def gymnax() -> None:
    command("efhorizon", "build", "gymnax-Catch-bsuite", "--batched")


def command(*arguments: str) -> None:
    program, *rest = arguments
    path = str(Path(sys.executable).parent / program) if program == "efhorizon" else program
    done = subprocess.run([path, *rest], capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(arguments)}: {done.stderr}"


CHECKS = {
    "core": [core],
    "sdist": [core],
    "atari": [lambda: environment("freeway_10_fs30")],
    "procgen": [lambda: environment("maze_easy_l0_30_fs1")],
    "minigrid": [lambda: environment("MiniGrid-Empty-5x5-v0")],
    "box2d": [lander],
    "report": [report],
    "train": [train],
    "plot": [plot],
    "pandas": [pandas],
    "openspiel": [openspiel],
    "ray": [ray],
    "gymnax": [gymnax],
    "all": [lambda: environment("MiniGrid-Empty-5x5-v0"), report],
}

if __name__ == "__main__":
    extra = sys.argv[1] if len(sys.argv) > 1 else "core"
    with tempfile.TemporaryDirectory() as folder:
        import os

        os.chdir(folder)
        begun()
        for check in CHECKS[extra]:
            check()
    print(f"efhorizon {ef.__version__} [{extra}] works on Python {sys.version.split()[0]}")
