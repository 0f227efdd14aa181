"""Analyses on disk: what theory says about one MDP, with pictures for people.

    RESULTS/analyses/NAME.json            one MDP each
    RESULTS/pictures/NAME-start.png       the start state
    RESULTS/pictures/NAME-deciding.png    the state that makes it hard
    RESULTS/pictures/NAME-episode.png     an optimal episode, a sheet of frames

An analysis says what it was made from: the table, the code, the settings, the bounds. One that no longer matches is
made again. Its file is written last, so an analysis that is there has its pictures.
"""

from __future__ import annotations

import inspect
import json
import platform
import time
from collections.abc import Mapping
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon._version import __version__
from efhorizon.bounds.analysis import BEHAVIOUR, Analysis, analysis_of
from efhorizon.bounds.registry import Bound, registered_bounds
from efhorizon.errors import EfhorizonError, InvalidTableError, StoreError
from efhorizon.gorp.decisions import TooManySequencesError, choices_at
from efhorizon.io.behaviour import is_version, source_digest, version_name
from efhorizon.io.files import write_json, written_aside
from efhorizon.io.png import encoded_png
from efhorizon.mdp import TabularMDP
from efhorizon.planning.problem import DEFAULT_MAX_K, Problem, problem
from efhorizon.planning.returns import NoLatticeError
from efhorizon.planning.sweeps import Witness
from efhorizon.study.scenes import optimal_episode, shrunk, sprite_sheet
from efhorizon.suites.action_names import action_names
from efhorizon.suites.drawing import picture

FORMAT, FORMAT_VERSION = "efhorizon-analysis", 1
MAX_BYTES = 64 << 20  # of an analysis file; the largest ones have a few hundred kilobytes
MAX_BINS = 60  # of a histogram
_MAX_LATTICE_POINTS = 1 << 22  # lattice points: beyond these a histogram is left out


def analysis_path(results: Path, name: str) -> Path:
    return results / "analyses" / f"{name}.json"


def is_whole(results: Path, name: str) -> bool:
    """Whether an analysis is there with all its pictures; one that an export brought has none."""
    try:
        return _has_pictures(results, read_analysis(analysis_path(results, name)))
    except StoreError:
        return False


def current_analysis(results: Path, mdp: TabularMDP, *, max_k: int = DEFAULT_MAX_K) -> dict[str, Any] | None:
    """The analysis of a table, if it was made from the same inputs and its pictures are there."""
    path = analysis_path(results, _name(mdp))
    if not path.exists():
        return None
    try:
        content = read_analysis(path)
    except StoreError:
        return None
    provenance = content.get("provenance")
    inputs = _inputs(mdp, max_k)
    if not isinstance(provenance, dict) or None in inputs["bounds"].values():
        return None
    if not is_version(provenance.get("code"), "analysis", BEHAVIOUR):
        return None
    if any(provenance.get(key) != value for key, value in inputs.items() if key != "code"):
        return None
    return content if _has_pictures(results, content) else None


def write_analysis(
    results: Path, mdp: TabularMDP, *, max_k: int = DEFAULT_MAX_K, build_seconds: float | None = None
) -> dict[str, Any]:
    """Analyze a table and write the analysis with its pictures; returns what was written."""
    content, pictures = analysis_record(mdp, max_k=max_k, build_seconds=build_seconds)
    for name, image in pictures.items():
        with written_aside(results / name) as temporary:
            temporary.write_bytes(image)
    write_json(analysis_path(results, content["id"]), content)
    return content


def read_analysis(path: Path) -> dict[str, Any]:
    """An analysis from its file, which may come from anywhere: only its frame is checked here."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise StoreError(f"{path}: {size:,} bytes are too many for an analysis (at most {MAX_BYTES:,})")
        content = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise StoreError(f"{path}: not an analysis; delete it to have it made again") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise StoreError(f"{path}: not an analysis; delete it to have it made again")
    if content.get("format_version") != FORMAT_VERSION:
        raise StoreError(f"{path}: made by another version of efhorizon (format {content.get('format_version')!r})")
    if content.get("id") != path.stem:
        raise StoreError(f"{path}: says that it is about {content.get('id')!r}")
    if not isinstance(content.get("analysis"), dict):
        raise StoreError(f"{path}: has no analysis in it; delete it to have it made again")
    return content


def _has_pictures(results: Path, content: Mapping[str, Any]) -> bool:
    try:
        return all((results / name).is_file() for name in picture_names(content))
    except OSError:  # a name that cannot be one
        return False


def picture_names(content: Mapping[str, Any]) -> list[str]:
    """The pictures that an analysis names, relative to the results directory."""
    holders = (content.get("deciding"), content.get("episode"))
    named = [content.get("start_picture"), *(holder.get("picture") for holder in holders if isinstance(holder, dict))]
    return [name for name in named if isinstance(name, str)]


def analysis_record(
    mdp: TabularMDP, *, max_k: int = DEFAULT_MAX_K, build_seconds: float | None = None
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """All there is to say about a table, and its pictures by name."""
    if not mdp.is_complete:
        raise InvalidTableError(f"{_name(mdp)}: the table is unfinished; a study needs complete ones")
    began = time.monotonic()
    given = problem(mdp, max_k=max_k)
    analysis = analysis_of(given)
    names = action_names(mdp.metadata, mdp.num_actions)
    pictures: dict[str, bytes] = {}
    episode = _episode(given, names, pictures)
    start_picture = _drawn(mdp, 0, "start", pictures)
    deciding = _deciding(given, analysis, names, pictures)
    verification = mdp.metadata.get("verification")
    content = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "id": _name(mdp),
        **{key: mdp.metadata.get(key) for key in ("suite", "game", "unshaped", "shaping")},
        "reward_factor": float(mdp.metadata.get("reward_factor", 1.0)),
        "exploration": "uniform",
        "analysis": analysis.as_json(),
        "titles": dict(analysis.titles),
        "table": {
            "num_states": mdp.num_states,
            "num_raw_states": mdp.metadata.get("num_states_raw"),
            "fingerprint": mdp.fingerprint(),
            "layers": np.diff(given.timeline.starts).tolist(),
            "frameskip": mdp.metadata.get("frameskip"),
            "verification": verification,
        },
        "deciding": deciding,
        "start_picture": start_picture,
        "episode": episode,
        "seconds": {
            "build": build_seconds,
            "verify": verification.get("seconds") if isinstance(verification, dict) else None,
            "analyze": round(time.monotonic() - began, 3),
        },
        "provenance": {
            **_inputs(mdp, max_k),
            "efhorizon": __version__,
            "packages": {name: metadata.version(name) for name in ("numpy", "numba", "scipy")},
            "python": platform.python_version(),
            "machine": platform.machine(),
        },
    }
    return content, pictures


def _name(mdp: TabularMDP) -> str:
    name = mdp.metadata.get("id")
    if not isinstance(name, str) or not name or Path(name).name != name:
        raise InvalidTableError(f"the table's name is {name!r}: nothing that a file can be called")
    return name


def _inputs(mdp: TabularMDP, max_k: int) -> dict[str, Any]:
    """Everything that an analysis depends on."""
    return {
        "table_fingerprint": mdp.fingerprint(),
        "table_inputs": mdp.metadata.get("inputs"),  # screens are no part of the fingerprint
        "code": version_name("analysis", BEHAVIOUR),
        "settings": {"max_k": max_k, "gamma": 1.0, "exploration": "uniform"},
        "bounds": {bound.name: _bound_digest(bound) for bound in registered_bounds()},
    }


def _bound_digest(bound: Bound) -> str | None:
    """What a bound of the user's own does; None where its source is not known, so nobody can tell if it changed."""
    module = bound.function.__module__
    if module.startswith("efhorizon."):
        return "built in"
    try:
        return source_digest(inspect.getsource(bound.function if module == "__main__" else import_module(module)))
    except (OSError, TypeError, ImportError):
        return None


def _drawn(mdp: TabularMDP, state: int, kind: str, pictures: dict[str, bytes]) -> str | None:
    """Draw a state, and say under which name; None where the table has nothing that can be drawn."""
    if mdp.screens is None:
        return None
    try:
        image = shrunk(picture(mdp, state), max_width=2 * 160)
    except EfhorizonError:
        return None  # an observation that is no picture, or a suite that is not installed
    name = f"pictures/{_name(mdp)}-{kind}.png"
    pictures[name] = encoded_png(image)
    return name


def _episode(given: Problem, names: tuple[str, ...], pictures: dict[str, bytes]) -> dict[str, Any] | None:
    mdp = given.mdp
    if mdp.screens is None:
        return None
    episode = optimal_episode(given.timeline, given.optimal)
    try:
        sheet = sprite_sheet(mdp, episode.states)
    except EfhorizonError:
        return None
    name = f"pictures/{_name(mdp)}-episode.png"
    pictures[name] = encoded_png(sheet.image)
    return {
        "picture": name,
        "frames": sheet.frames,
        "columns": sheet.columns,
        "width": sheet.width,
        "height": sheet.height,
        "actions": [names[action] for action in episode.actions],
        "rewards": list(episode.rewards),
    }


def _deciding(
    given: Problem, analysis: Analysis, names: tuple[str, ...], pictures: dict[str, bytes]
) -> dict[str, Any] | None:
    witness = analysis.deciding
    if witness is None:
        return None
    histograms = _histograms(given, witness)
    is_optimal = given.optimal.actions[witness.pair].tolist()
    return {
        "k": witness.k,  # of Q^k below
        "time": witness.time,
        "state": witness.state,
        "picture": _drawn(given.mdp, witness.state, "deciding", pictures),
        "actions": [
            {
                "action": action,
                "name": names[action],
                "q": witness.q_values[action],
                "optimal_q": witness.optimal_q_values[action],
                "is_optimal": is_optimal[action],
                "histogram": histograms[action],
            }
            for action in range(given.mdp.num_actions)
        ],
    }


def _histograms(given: Problem, witness: Witness) -> list[dict[str, list[float]] | None]:
    """For each action the exact distribution of what the best k actions that begin with it pay, and exploring after.

    Its mean is Q^k. The best k actions are those with the largest mean.
    """
    try:
        options = choices_at(given, np.array([witness.pair]), witness.k)
        after = given.return_distributions(options.group_ends, max_points=_MAX_LATTICE_POINTS)
    except (NoLatticeError, TooManySequencesError):
        return [None] * given.mdp.num_actions
    found = []
    means = options.group_prefixes + after.moments().mean
    for action in range(given.mdp.num_actions):
        groups = options.arm_groups[options.arm_actions == action]
        best = int(groups[means[groups].argmax()])
        least, mass = after.of(best)
        positive = np.flatnonzero(mass)
        found.append((float(after.unit) * (int(options.group_prefixes[best]) + least + positive), mass[positive]))
    low = min(float(returns[0]) for returns, _ in found)
    high = max(float(returns[-1]) for returns, _ in found)
    return [_histogram(returns, mass, low, high) for returns, mass in found]


def _histogram(returns: NDArray[Any], mass: NDArray[Any], low: float, high: float) -> dict[str, list[float]]:
    """Returns and their probabilities. Too many are merged into bins from `low` to `high`, each shown at its mean."""
    if len(returns) <= MAX_BINS:
        return {"returns": returns.tolist(), "probabilities": mass.tolist()}
    place = np.minimum((returns - low) / (high - low) * MAX_BINS, MAX_BINS - 1).astype(np.int64)
    total = np.bincount(place, mass, MAX_BINS)
    used = total > 0
    means = np.bincount(place, mass * returns, MAX_BINS)[used] / total[used]
    return {"returns": means.tolist(), "probabilities": total[used].tolist()}


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON")
