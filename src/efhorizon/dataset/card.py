"""The data card: what is in a data set, counted, and the questions of a datasheet (Gebru et al., 2021) answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from efhorizon._version import __version__
from efhorizon.dataset import registry as registries
from efhorizon.dataset.registry import FileEntry, MdpEntry
from efhorizon.evaluation.records import EXPLORATION, SHAPED
from efhorizon.evaluation.source import StudyData
from efhorizon.render import numbers
from efhorizon.study.analysis_record import is_complete

_MB = 1e6
_Key = TypeVar("_Key", bound=tuple[object, ...])


@dataclass(frozen=True)
class Facts:
    """What is counted for the card and the metadata."""

    name: str
    version: str
    date: str | None  # of the newest run
    oldest: str | None
    columns: Mapping[str, str]  # of index.parquet
    num_mdps: int
    suites: Mapping[str, int]
    types: Mapping[str, int]  # original, shaped, exploration
    parts: Mapping[str, int]  # MDPs that have each
    num_unfinished: int
    num_without_runs: int
    num_verified: int
    num_runs: int
    runs: Mapping[str, int]  # by algorithm
    seeds: Mapping[str, str]  # by algorithm: how many runs of a setting, from and to
    budgets: Mapping[str, str]
    backends: tuple[str, ...]
    packages: tuple[str, ...]  # that made the analyses
    exact: int
    upper: int
    infinite: int
    example: str | None  # an MDP with a table
    size: float
    size_of_screens: float


def facts_of(
    data: StudyData, entries: Mapping[str, MdpEntry], files: Mapping[str, FileEntry], name: str, version: str
) -> Facts:
    """Everything that is said about a data set, counted from it."""
    from efhorizon.dataset import index

    parts = Counter(kind for entry in entries.values() for kind in entry.parts)
    kinds = Counter(each.effective_horizon_kind or "none" for each in data.summaries)
    dates = sorted(made[:10] for row in data.runs if isinstance(made := row.provenance.made, str) and made)
    packages = {
        f"{package} {number}"
        for analysis in data.analyses.values()
        if analysis.provenance is not None
        for package, number in analysis.provenance.packages.items()
    }
    settings = Counter((row.algorithm, row.id, row.backend, row.setting) for row in data.runs)
    tables = [each for each, entry in entries.items() if registries.TABLE in entry.parts]
    return Facts(
        name=name,
        version=version,
        date=dates[-1] if dates else None,
        oldest=dates[0] if dates else None,
        columns=index.columns(data),
        num_mdps=len(entries),
        suites=dict(sorted(Counter(entry.suite for entry in entries.values()).items())),
        types=Counter(each.type for each in data.summaries),
        parts=dict(sorted(parts.items())),
        num_unfinished=sum(not is_complete(each) for each in data.analyses.values()),
        num_without_runs=sum(not entry.num_runs for entry in entries.values()),
        num_verified=sum(bool(entry.verified) for entry in entries.values()),
        num_runs=len(data.runs),
        runs=dict(sorted(Counter(row.algorithm for row in data.runs).items())),
        seeds=_spans(settings),
        budgets=_spans({(row.algorithm, number): row.protocol.max_steps for number, row in enumerate(data.runs)}),
        backends=tuple(sorted({row.backend for row in data.runs})),
        packages=tuple(sorted(packages)),
        exact=kinds["exact"],
        upper=kinds["upper"],
        infinite=kinds["none"],
        example="freeway_10_fs30" if "freeway_10_fs30" in tables else tables[0] if tables else None,
        size=sum(entry.size for entry in files.values()) / _MB,
        size_of_screens=sum(entry.size for path, entry in files.items() if path.startswith("screens/")) / _MB,
    )


def _spans(counts: Mapping[_Key, int]) -> dict[str, str]:
    """The least and the largest by what the key begins with."""
    grouped: dict[str, list[int]] = {}
    for key, count in counts.items():
        grouped.setdefault(str(key[0]), []).append(count)
    return {
        name: f"{min(each):,}" if min(each) == max(each) else f"{min(each):,} to {max(each):,}"
        for name, each in sorted(grouped.items())
    }


def data_card(facts: Facts) -> str:
    """README.md, with the header that the Hugging Face Hub reads."""
    return "\n".join((_header(facts), _summary(facts), _use(facts), _datasheet(facts)))


def _header(facts: Facts) -> str:
    return f"""\
---
pretty_name: {facts.name}
license: cc-by-4.0
language: [en]
tags: [reinforcement-learning, mdp, effective-horizon]
configs:
  - {{config_name: index, data_files: index.parquet}}
  - {{config_name: runs, data_files: runs.parquet}}
---
"""


def _summary(facts: Facts) -> str:
    suites = "\n".join(f"| {name} | {count} |" for name, count in facts.suites.items())
    parts = "\n".join(f"| {_PARTS.get(kind, kind)} | {count} |" for kind, count in facts.parts.items())
    return f"""\
# {facts.name} {facts.version}

Environments of deep RL as Markov decision processes with known transitions and rewards: how hard each is in theory, and
what GORP, PPO and DQN needed on it. {facts.num_mdps} MDPs, {facts.num_runs:,} runs, {_megabytes(facts.size)}, of which
{_megabytes(facts.size_of_screens)} are screens that may be left out. Written by efhorizon {__version__}.

| suite | MDPs |
|---|---|
{suites}

| part | MDPs that have it |
|---|---|
{parts or "| none | |"}
"""


def _megabytes(size: float) -> str:
    return f"{size:.1f} MB" if size >= 1 else f"{size * 1000:.0f} kB"


_PARTS = {
    registries.TABLE: "`table`: transitions and rewards, native (`mdps/NAME/table`)",
    registries.BRIDGE: "`bridge`: the same in the published BRIDGE layout (`mdps/NAME/consolidated.npz`)",
    registries.ANALYSIS: "`analysis`: every bound, and the state that decides it (`mdps/NAME/analysis.json`)",
    registries.RUNS: "`runs`: one row per training run, with its learning curve (`mdps/NAME/runs.parquet`)",
    registries.PICTURES: "`pictures`: start state, deciding state, an optimal episode",
    registries.SCREENS: "`screens`: the table with screens of a commercial game (`screens/NAME/table`)",
}


def _use(facts: Facts) -> str:
    if facts.example is None:
        load = "This data set has no tables: `ef.load` finds nothing in it. Analyses and runs can be read:"
        code = 'import pandas as pd\n\npd.read_parquet("index.parquet")'
    else:
        load = "With `pip install efhorizon`, and `EFHORIZON_REMOTE` set to where this folder is:"
        code = f'import efhorizon as ef\n\nmdp = ef.load("{facts.example}")\nef.analyze(mdp)'
    return f"""\
## Use

{load}

```python
{code}
```

`efhorizon evaluate FOLDER` and `efhorizon report FOLDER` read this folder. Without efhorizon: `index.parquet` has a row
for each MDP, `runs.parquet` one for each run, and `numpy.load("mdps/NAME/consolidated.npz")` gives `transitions`
[S, A] (state 0 is the start, -1 the end) and `rewards` [S, A]. `sha256sum --check SHA256SUMS` checks every file.
"""


def _datasheet(facts: Facts) -> str:
    answered = "\n".join(
        f"### {section}\n\n" + "\n\n".join(f"**{question}** {answer}" for question, answer in questions) + "\n"
        for section, questions in _questions(facts).items()
    )
    return f"""\
## Datasheet

The questions are those of Gebru et al., "Datasheets for Datasets". Every number below was counted in this data set.

{answered}"""


def _questions(facts: Facts) -> dict[str, list[tuple[str, str]]]:
    of_types = (
        f"{facts.types.get(SHAPED, 0)} have shaped rewards and {facts.types.get(EXPLORATION, 0)} start from a policy "
        "that is not uniformly random; they share their environment with another MDP"
    )
    runs = "; ".join(
        f"{name.upper()}: {count:,} runs, {facts.seeds[name]} per setting, at most {facts.budgets[name]} timesteps"
        for name, count in facts.runs.items()
    )
    tables = facts.parts.get(registries.TABLE, 0)
    separate = facts.parts.get(registries.SCREENS, 0)
    packages = ", ".join(facts.packages) or "not recorded"
    when = "not recorded"
    if facts.oldest and facts.date:
        when = facts.date if facts.oldest == facts.date else f"{facts.oldest} to {facts.date}"
    missing = (
        f"Yes. {facts.num_mdps - tables} of {facts.num_mdps} MDPs come without their table, "
        f"{facts.num_without_runs} without runs, {facts.num_unfinished} with an analysis of an unfinished table, whose "
        "figures are intervals."
    )
    horizons = (
        f"Of the MDPs whose analysis is complete, {facts.exact} have an exact effective horizon, {facts.upper} an "
        f"upper bound, and {facts.infinite} none within the k that were tried; each says which."
    )
    return {
        "Motivation": [
            (
                "For what purpose was the data set created?",
                "To compare what theory says about the difficulty of an environment with what deep RL needs on it, MDP "
                "by MDP, and to let others compute figures of their own on exact tables.",
            ),
            ("Who created it, and who funded it?", "Whoever ran this study with efhorizon. The data do not say."),
        ],
        "Composition": [
            ("What do the instances represent?", "Markov decision processes: environments with a horizon."),
            (
                "How many are there?",
                f"{facts.num_mdps}: {_listed(facts.suites)}. Among those that were analyzed completely, {of_types}.",
            ),
            (
                "Is it a sample of a larger set?",
                "Yes, and not a random one: deterministic environments with discrete actions whose states could be "
                "enumerated within the horizon. Hard and large environments are missing more often than easy ones.",
            ),
            (
                "What does each instance consist of?",
                f"Parts, which not every MDP has: {_listed(facts.parts)}. {horizons} The transition and reward of "
                f"every state-action pair are in the table; {facts.num_verified} tables were replayed against a fresh "
                "environment.",
            ),
            ("Is there a label?", f"The sample complexity of each run. {runs or 'There are no runs.'}"),
            ("Is any information missing?", missing),
            (
                "Are relationships between instances explicit?",
                "Yes: `base_mdp_name` and `base` name the MDP that was shaped or given a policy, `family` the game.",
            ),
            ("Are there recommended splits?", "No. MDPs of one `family` resemble each other: split by family."),
            (
                "Are there errors, noise or redundancies?",
                "Runs are random, and few per setting. Sample complexities above the budget are unknown (`inf`). One "
                "game often appears with several horizons. The learnt figures leave out what random play solves.",
            ),
            (
                "Is it self-contained?",
                "Tables, analyses and runs are. Playing the environments themselves takes their packages.",
            ),
            ("Does it contain confidential or offensive data, or data about people?", "No."),
        ],
        "Collection": [
            (
                "How was the data acquired?",
                "By exhaustive search of the environments in their simulators, exact planning on the tables, and "
                f"training (backend: {', '.join(facts.backends) or 'none'}). Packages of the analyses: {packages}.",
            ),
            ("Over what time?", f"The runs: {when}."),
            ("Was there an ethical review?", "No; no people are concerned."),
        ],
        "Preprocessing": [
            (
                "Was the data preprocessed?",
                "States that cannot be distinguished by rewards, screens and successors are merged (consolidated). "
                "Rewards may be divided by `reward_factor`.",
            ),
            (
                "Is the raw data there?",
                "No: searches are not part of the data set. Building them again is one command.",
            ),
            ("Is the software available?", f"Yes: efhorizon {__version__}, MIT licence."),
        ],
        "Uses": [
            ("What has it been used for?", "The tables and figures of the study that it was made from."),
            (
                "What should it not be used for?",
                "Conclusions about environments that are stochastic, continuous or too large to enumerate; or about "
                "algorithms whose settings were tuned, for these were not.",
            ),
        ],
        "Distribution and maintenance": [
            (
                "Under which licence?",
                f"CC-BY-4.0, but for screens: LICENSES.md. {numbers.counted(separate, 'MDP')} with screens of "
                "commercial games, in the folder `screens/`, which can be deleted without breaking anything else.",
            ),
            (
                "How is it versioned?",
                f"This is version {facts.version}; `content` in registry.json identifies the files. "
                "The same study gives the same bytes.",
            ),
            ("Who maintains it?", "Whoever published it; errors in efhorizon are reported to its repository."),
        ],
    }


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"
