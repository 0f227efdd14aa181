"""The page of a diagnosis: the answer, the path as a film, the gaps with their intervals, and what to try."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from efhorizon.diagnose.stored import diagnosis_paths, film_path, read_diagnosis
from efhorizon.errors import EfhorizonError, StoreError
from efhorizon.io.files import read_bytes
from efhorizon.render import numbers
from efhorizon.render.charts.gaps import gaps_chart
from efhorizon.render.html.mdp_page import Fact
from efhorizon.render.html.names import slug
from efhorizon.study.pictures import checked_png

FOLDER = "diagnoses"
_MAX_FILM = 32 << 20
_CLOSE_SHOWN = 8
_UNKNOWN = "not known"


def diagnosis_link(name: str) -> str:
    """Where the page of a diagnosis is, seen from the site's front page."""
    return quote(f"{FOLDER}/{slug(name)}.html")


def diagnoses(results: Path) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The contexts of all pages of a results folder by the name of their file, and what was wrong with others."""
    found: dict[str, dict[str, Any]] = {}
    notes = []
    for path in diagnosis_paths(results) if results.is_dir() else []:
        try:
            found[path.stem] = _context(read_diagnosis(path), path)
        except EfhorizonError as error:
            notes.append(f"diagnosis left out: {error}")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            notes.append(f"diagnosis left out: {path}: {type(error).__name__} at {error}")
    return found, notes


def film_of(results: Path, stem: str) -> bytes:
    """The checked film of a diagnosis."""
    path = film_path(results, stem)
    content = read_bytes(path, "the film of a diagnosis", _MAX_FILM)
    checked_png(content, str(path))
    return content


def _context(content: Mapping[str, Any], path: Path) -> dict[str, Any]:
    shown = _shown(content)
    k = None if shown is None else shown[0]
    steps = [] if shown is None else shown[1]["path"]
    names = content["action_names"]
    play = content["random_play"]
    return {
        "title": str(content["id"]),
        "verdict": _verdict(content),
        "facts": _facts(content),
        "rows": [_row(number, each) for number, each in content["by_k"].items()],
        "k": k,
        "film": _film(content, steps, names) if film_path(path.parent.parent, path.stem).exists() else None,
        "chart": gaps_chart(steps, name=str(content["id"]), no_signal_from=shown[1]["no_signal_from"])
        if shown and steps
        else None,
        "signal": None if shown is None else _signal(shown[1]),
        "close": [_close(each, names) for each in _closest(steps)],
        "advice": [str(each) for each in content["what_to_try"]],
        "assumptions": [str(each) for each in content["assumptions"]],
        "forecast": [_forecast(name, each) for name, each in content["forecast"].items()],
        "play": {
            "episodes": numbers.counted(int(play["episodes"]), "episode"),
            "mean": _between(play["mean_return"]),
            "length": _between(play["mean_length"]),
            "rewarded": numbers.percent(float(play["rewarded"]["estimate"])),
            "best": numbers.significant(float(play["best_return"])),
        },
        "command": f"efhorizon diagnose ENV --max-steps {int(content['budget'])} --seed {int(content['seed'])}",
    }


def _shown(content: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]] | None:
    """The k whose path is shown, as in `film.shown_path`."""
    by_k = content["by_k"]
    best = by_k.get(str(content["k"]))
    if best is not None and best["path"]:
        return str(content["k"]), best
    return next(((k, each) for k, each in by_k.items() if each["path"]), None)


def _verdict(content: Mapping[str, Any]) -> str:
    found = content["effective_horizon"]
    if found is None or found["estimate"] is None:
        return "Its effective horizon is not known: no run of GORP reached the best return within this budget."
    return f"Effective horizon {_between(found, 2)} of {int(content['horizon'])}, with sequences of {content['k']}."


def _facts(content: Mapping[str, Any]) -> list[Fact]:
    given = "given" if content["best_return_is_given"] else "best found"
    facts = [
        ("horizon", f"{int(content['horizon']):,}"),
        ("actions", str(int(content["num_actions"]))),
        ("chance", {"none": "none found", "start": "random start", "steps": "random steps"}[content["chance"]]),
        ("best return", f"{numbers.significant(float(content['best_return']))} ({given})"),
        ("greedy return", _number(content["greedy_return"])),
        ("steps played", f"{int(content['steps_played']):,}"),
    ]
    return [Fact(title, value) for title, value in facts]


def _row(k: str, each: Mapping[str, Any]) -> dict[str, str]:
    return {
        "k": k,
        "m": _between(each["m"], 0),
        "horizon": _between(each["effective_horizon"], 2),
        "greedy": _number(each["greedy_return"]),
        "runs": str(each["num_runs"]),
        "note": str(each["reason"] or ""),
    }


def _signal(shown: Mapping[str, Any]) -> str:
    if not any(each["signal"] for each in shown["path"]):
        return "Random play gave no signal anywhere on this path: all returns that were sampled are equal."
    if shown["no_signal_from"] is None:
        return "Random play gave a signal up to the end of this path."
    return f"From step {int(shown['no_signal_from'])} on random play gave no signal: all sampled returns are equal."


def _closest(steps: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The steps that need most episodes."""
    known = [each for each in steps if each["signal"]]
    return sorted(known, key=lambda each: -(each["m"]["estimate"] or math.inf))[:_CLOSE_SHOWN]


def _close(each: Mapping[str, Any], names: list[str]) -> dict[str, str]:
    return {
        "step": str(int(each["step"])),
        "action": _action(int(each["action"]), names),
        "gap": _between(each["gap"]),
        "m": _between(each["m"], 0),
    }


def _film(content: Mapping[str, Any], steps: list[Mapping[str, Any]], names: list[str]) -> dict[str, Any] | None:
    sheet = content["film"]
    if sheet is None:
        return None
    if not all(isinstance(sheet[name], int) for name in ("frames", "columns", "width", "height")):
        raise StoreError(f"{content['id']}: the film has no proper size")
    data = {
        **{name: sheet[name] for name in ("frames", "columns", "width", "height")},
        "actions": [_action(int(each["action"]), names) for each in steps],
        "rewards": [float(each["reward"]) for each in steps],
    }
    return {"data": data, "total": numbers.significant(sum(data["rewards"]))}


def _forecast(name: str, each: Mapping[str, Any]) -> str:
    steps = {key: numbers.short_steps(float(value)) for key, value in each["timesteps"].items()}
    return f"{name.upper()} takes about {steps['median']} timesteps ({steps['low']} to {steps['high']})."


def _action(action: int, names: list[str]) -> str:
    return str(names[action]) if action < len(names) else str(action)


def _number(value: float | None) -> str:
    return _UNKNOWN if value is None else numbers.significant(float(value))


def _between(each: Mapping[str, Any], digits: int | None = None) -> str:
    """5 (4 to 8)."""
    low, middle, high = (_shown_number(each[name], digits) for name in ("low", "estimate", "high"))
    if low is None:
        return _UNKNOWN
    if high is None:
        return f"at least {low}" if middle is None else f"{middle} (at least {low})"
    return str(middle) if low == high else f"{middle} ({low} to {high})"


def _shown_number(value: float | None, digits: int | None) -> str | None:
    if value is None:
        return None
    return numbers.significant(float(value)) if digits is None else f"{float(value):,.{digits}f}"
