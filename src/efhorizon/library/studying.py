"""Many environments at once, and the report about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from efhorizon.agents.deep.protocol import PAPER_STEPS
from efhorizon.build.explore import Budget
from efhorizon.errors import EfhorizonError
from efhorizon.evaluation.bound_table import DEFAULT_RESAMPLES, BoundTable, bound_table
from efhorizon.evaluation.source import study_data
from efhorizon.io.names import safe_name
from efhorizon.io.tables import save
from efhorizon.library.progress import ProgressLine
from efhorizon.mdp import TabularMDP
from efhorizon.planning.problem import DEFAULT_MAX_K
from efhorizon.render import frames
from efhorizon.render.html import write_report
from efhorizon.render.terminal.study import outcome_line
from efhorizon.study import sweep
from efhorizon.study.plan import Plan, environment_names
from efhorizon.study.records import StageOutcome
from efhorizon.study.stages import Watcher
from efhorizon.study.stages import study as run_study
from efhorizon.study.tasks import RunPlan, check_installed

_GIVEN = "given"  # the folder in a study for tables that were given in memory


class Study:
    """The results of a study, in a folder."""

    def __init__(self, path: str | Path, outcomes: Sequence[StageOutcome] = (), num_planned: int | None = None) -> None:
        """An earlier study is opened by its folder, or an export of one."""
        self.path, self.outcomes = Path(path), tuple(outcomes)
        self._num_planned = num_planned

    @property
    def failures(self) -> dict[str, str]:
        """Environments that failed or were left out, and why."""
        return {outcome.name: outcome.text for outcome in self.outcomes if outcome.is_lost}

    def __repr__(self) -> str:
        if self._num_planned is None:
            return f"Study({self.path})"
        complete = self._num_planned - len(self.failures)
        return f"Study({self.path}: {complete} of {self._num_planned} environments complete)"

    def comparison(self, algo: str = "ppo", *, num_resamples: int = DEFAULT_RESAMPLES) -> BoundTable:
        """How well each bound predicts what an algorithm needed: Table 2 of the paper."""
        data = study_data(self.path)
        return bound_table(data.summaries, algo, data.titles, num_resamples=num_resamples)

    def correlations(self, algo: str = "ppo") -> dict[str, float | None]:
        """Spearman's correlation of each bound with what an algorithm needed, by the bound's title."""
        rows = self.comparison(algo, num_resamples=1).rows
        return {row.title: row.metrics["correlation"].value for row in rows}

    def to_pandas(self) -> Any:
        """One row per environment: its size, its bounds, and what each algorithm needed."""
        return frames.study_frame(study_data(self.path).summaries)


def study(
    environments: str | TabularMDP | Path | Iterable[str | TabularMDP | Path],
    *,
    out: str | Path = "study",
    algos: Iterable[sweep.Algorithm] = ("gorp", "ppo", "dqn"),
    settings: str = sweep.PAPER,
    seeds: int = sweep.SEEDS,
    steps: int = PAPER_STEPS,
    max_k: int = DEFAULT_MAX_K,
    max_states: int | None = None,
    max_minutes: float | None = None,
    workers: int = 1,
    progress: bool = False,
    **options: Any,
) -> Study:
    """Build, verify, analyze and train: everything about some environments, in the folder `out`.

    `environments` are names, whole suites ("minigrid") or tables. An environment that fails is listed with its reason,
    and the rest continues. What is there already is kept, so the same call continues a study that was stopped.
    """
    out = Path(out)
    given = [environments] if isinstance(environments, str | Path | TabularMDP) else list(environments)
    algorithms = list(algos)
    for algorithm in algorithms:
        check_installed(algorithm, "table")
    plan = Plan(
        out=out,
        names=environment_names([_name(each, out) for each in given]),
        runs=tuple(RunPlan(algorithm, settings, num_seeds=seeds, max_steps=steps) for algorithm in algorithms),
        max_k=max_k,
        budget=Budget(max_states, max_minutes),
        num_workers=workers,
        **options,
    )
    with ProgressLine(progress) as line:
        result = run_study(plan, _Lines(line))
    return Study(out, result.outcomes, len(result.cases))


def report(results: Study | str | Path, *, out: str | Path = "report") -> Path:
    """Write a web site about a study; returns its first page, which opens from disk."""
    folder = results.path if isinstance(results, Study) else Path(results)
    return write_report(folder, Path(out)).index


class _Lines(Watcher):
    """Progress as lines of text."""

    def __init__(self, line: ProgressLine) -> None:
        self._line = line

    def progress(self, text: str, done: float | None = None) -> None:
        self._line(text)

    def outcome(self, outcome: StageOutcome) -> None:
        self._line(outcome_line(outcome, 0))


def _name(given: str | TabularMDP | Path, out: Path) -> str:
    """What a plan calls it; a table in memory is stored first, as a study reads its tables from disk."""
    if not isinstance(given, TabularMDP):
        return str(given)
    name = given.metadata.get("id")
    if not name:
        raise EfhorizonError("the table has no name; give it one: mdp.with_metadata(id='my table')")
    return str(save(given, out / _GIVEN / safe_name(str(name))))
