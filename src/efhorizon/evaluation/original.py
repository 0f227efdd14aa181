"""The data set that the paper's authors published, read with care: nothing in it is unpickled.

    FOLDER/summary.csv                      one line per MDP: theory, and what PPO, DQN and GORP needed
    FOLDER/summary_sticky.csv               the same with sticky actions (version 1.1 of the data set)
    FOLDER/mdps/NAME/                       consolidated.npz, and beside it
        consolidated_analyzed.json              least k, effective planning window, occupancies
        consolidated_analyzed_sticky_0.25.json  the same with sticky actions
        consolidated_gorp_bounds.json           the bound of Appendix C
        gorp_1.json, gorp_2.json, ...           what GORP needed with this k
        exploration_policy.npy                  the policy that the analysis explores with, where it is not uniform
    FOLDER/mdps_with_reward_shaping/NAME/   the shaped gridworlds, in the same way

Any of these may be missing. `import` writes what was found as published.json; that is read back without the folder.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, field

from efhorizon.errors import EfhorizonError, StoreError
from efhorizon.evaluation import summary_csv
from efhorizon.evaluation.original_sticky import Sticky, sticky_analysis, sticky_summaries
from efhorizon.evaluation.records import MdpSummary
from efhorizon.io.decode import MAX_TEXT, Count, Text, json_object, read_object, record_of, text_of, write_record
from efhorizon.io.files import open_regular, read_bytes
from efhorizon.io.names import is_safe_name

FILE: Final = "published.json"
_FOLDERS = ("mdps", "mdps_with_reward_shaping")
_TABLE, _ANALYZED, _BOUNDS = "consolidated.npz", "consolidated_analyzed.json", "consolidated_gorp_bounds.json"
_FILES = (_TABLE, _ANALYZED)  # one of them makes a folder an MDP
_GORP = re.compile(r"gorp_(\d+)\.json")
_MEDIAN = "median_sample_complexity"
_MAX_MDPS = 10_000
_Finite = Annotated[float, Meta(gt=-1.7e308, lt=1.7e308)]


class OriginalMdp(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the authors published about one MDP; None where they say nothing."""

    name: Text
    horizon: Count | None = None
    num_states: Count | None = None
    num_actions: Count | None = None
    fingerprint: Text | None = None  # of the table
    min_k: Count | None = None
    epw: Count | None = None
    effective_horizon: _Finite | None = None  # their bound by Appendix C
    bound: _Finite | None = None  # T^2 A^H of it, in timesteps
    gorp: dict[Text, _Finite | None] = field(default_factory=dict)  # timesteps by k; None: not within budget
    policies: list[Text] = field(default_factory=list)  # files
    sticky: Sticky | None = None
    needed: dict[Text, _Finite | None] = field(default_factory=dict)  # timesteps by algorithm; None: not within budget


class Original(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that was found."""

    format: Literal["efhorizon-published"] = "efhorizon-published"
    format_version: Literal[1] = 1
    mdps: list[OriginalMdp]
    notes: list[str] = field(default_factory=list)

    @property
    def by_name(self) -> dict[str, OriginalMdp]:
        return {mdp.name: mdp for mdp in self.mdps}


def original(path: Path, on_message: Callable[[str], None] = lambda _: None) -> Original:
    """The authors' folder, or what `import` has made of it."""
    if (path / FILE).exists():
        return record_of(read_object(path / FILE, "an imported data set"), Original, str(path / FILE))
    if not path.is_dir():
        raise StoreError(f"{path}: no such folder")
    summaries = _summaries(path)
    sticky = sticky_summaries(path)
    folders = {folder.name: folder for folder in _mdp_folders(path)}
    if not summaries and not folders:
        raise StoreError(f"{path}: not the published data set: no {summary_csv.FILE} and no mdps/NAME/{_TABLE}")
    notes: list[str] = []
    mdps = []
    for name in sorted({*summaries, *folders}):
        on_message(name)
        mdps.append(_mdp(name, summaries.get(name), folders.get(name), sticky.get(name), notes))
    return Original(mdps=mdps, notes=notes)


def write(found: Original, source: Path, out: Path) -> Path:
    """Keep what was found; with the summary.csv beside it the folder can be evaluated and reported on its own."""
    from efhorizon.io.checksums import LIST, write_listed

    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / FILE).exists())):
        raise StoreError(f"{out}: not empty, and no imported data set; choose another folder (nothing was written)")
    summaries = list(_summaries(source).values()) if not (source / FILE).exists() else []
    if summaries:
        write_listed(out, {summary_csv.FILE: summary_csv.encoded_summaries(summaries)})
    else:
        for name in (summary_csv.FILE, LIST):
            (out / name).unlink(missing_ok=True)
    write_record(out / FILE, found)
    return out / FILE


def _summaries(path: Path) -> dict[str, MdpSummary]:
    file = path / summary_csv.FILE
    return {each.name: each for each in summary_csv.read_summaries(file)} if file.exists() else {}


def _mdp_folders(path: Path) -> list[Path]:
    """mdps/NAME, or NAME itself where the folder of MDPs was given."""
    inside = [path / name for name in _FOLDERS if (path / name).is_dir()] or [path]
    found = sorted(
        folder for each in inside for folder in each.iterdir() if any((folder / name).exists() for name in _FILES)
    )
    if len(found) > _MAX_MDPS:
        raise StoreError(f"{path}: {len(found):,} MDPs are too many (at most {_MAX_MDPS:,})")
    names: dict[str, Path] = {}
    for folder in found:
        if not is_safe_name(folder.name):
            raise StoreError(f"{folder.parent}: {folder.name[:80]!r} cannot be the name of an MDP")
        if names.setdefault(folder.name, folder) != folder:
            raise StoreError(f"{folder}: there is {names[folder.name]} already")
    return found


def _mdp(
    name: str, summary: MdpSummary | None, folder: Path | None, sticky: Sticky | None, notes: list[str]
) -> OriginalMdp:
    facts: dict[str, Any] = {"name": name, "sticky": sticky}
    if folder is not None:
        facts["sticky"] = sticky_analysis(folder, sticky)
        facts |= _table(folder, None if summary is None else summary.horizon, notes)
        facts |= _analyzed(folder) | _gorp(folder, notes) | _policies(folder, notes)
    if summary is not None:
        notes += _differences(facts, summary)
        facts |= {
            "horizon": summary.horizon,
            "num_actions": summary.num_actions,
            "num_states": facts.get("num_states") or summary.num_states,
            "min_k": facts.get("min_k") or summary.k_min,
            "epw": facts.get("epw") or summary.epw,
            "effective_horizon": _or(facts.get("effective_horizon"), _finite(summary.effective_horizon)),
            "needed": {name: _finite(value) for name, value in summary.sample_complexities.items()},
        }
    return record_of(facts, OriginalMdp, str(folder or name))


def _differences(facts: Mapping[str, Any], summary: MdpSummary) -> list[str]:
    """Where a table is not as large as its line says."""
    sizes = {"states": ("num_states", summary.num_states), "actions": ("num_actions", summary.num_actions)}
    return [
        f"{summary.name}: {what} in its table: {facts[key]:,}, in {summary_csv.FILE}: {said:,}"
        for what, (key, said) in sizes.items()
        if facts.get(key) not in (None, said)
    ]


def _table(folder: Path, horizon: int | None, notes: list[str]) -> dict[str, Any]:
    from efhorizon.io.tables import load

    if not (folder / _TABLE).exists():
        return {}
    try:
        mdp = load(folder / _TABLE, horizon=horizon)  # published tables do not say it
    except EfhorizonError as error:
        notes.append(f"table left out: {error}")
        return {}
    sizes = {"horizon": mdp.horizon, "num_states": mdp.num_states, "num_actions": mdp.num_actions}
    return sizes | {"fingerprint": mdp.fingerprint()}


def _analyzed(folder: Path) -> dict[str, Any]:
    found = _json(folder / _ANALYZED)
    known = {"min_k": found.get("min_k"), "epw": found.get("epw")}
    bounds = _json(folder / _BOUNDS)
    return {
        **{key: value for key, value in known.items() if isinstance(value, int)},
        "effective_horizon": _finite(bounds.get("effective_horizon")),
        "bound": _finite(bounds.get("sample_complexity")),
    }


def _gorp(folder: Path, notes: list[str]) -> dict[str, Any]:
    """What GORP needed, by k; a file without a figure is named."""
    found: dict[str, float | None] = {}
    for path in sorted(folder.glob("gorp_*.json")):
        match = _GORP.fullmatch(path.name)
        content = _json(path) if match else {}
        if match is None or _MEDIAN not in content:
            notes.append(f"{path}: no {_MEDIAN} in it")
        else:
            found[match[1]] = _finite(content[_MEDIAN])  # infinity is written as null
    return {"gorp": found}


def _policies(folder: Path, notes: list[str]) -> dict[str, Any]:
    """Files of policies that are arrays [T, S + 1, A]; others are named and not opened."""
    from efhorizon.io.npy import read_header

    found = []
    for path in sorted(folder.glob("*policy*.npy")):
        try:
            with open_regular(path, "an array of probabilities") as file:
                shape = read_header(file, path.name).shape
        except EfhorizonError as error:
            notes.append(f"policy left out: {error}")
            continue
        if len(shape) == 3:
            found.append(path.name)
        else:
            notes.append(f"{path}: not a policy [T, S + 1, A], but {list(shape)}")
    return {"policies": found}


def _json(path: Path) -> Mapping[str, Any]:
    if not path.exists():
        return {}
    what = "a published JSON file"
    return json_object(text_of(read_bytes(path, what, MAX_TEXT), path, what), str(path), what)


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _or(first: Any, second: Any) -> Any:
    return first if first is not None else second


def as_json(found: Original) -> dict[str, Any]:
    """For programs."""
    from efhorizon.io.decode import plain

    content: dict[str, Any] = json.loads(json.dumps(plain(found)))
    return content
