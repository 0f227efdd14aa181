"""Do the suggestions of `efhorizon what-if` hold? Train with them, and compare with what was forecast.

    python benchmarks/suggestions.py --out suggestions [--algos ppo,dqn] [--limit 45] [--only NAME ...] [--seeds 5]
        [--steps 5M as a number] [--plan] [--report]

Takes small gridworlds that random play does not solve, up to three suggestions on each, of different kinds, and trains
PPO and DQN by the paper's protocol on the table as it is and as it would be changed. A suggestion counts only if every
optimal policy of the changed table is optimal in the original: then "solved" means the same on both.

Every run is a row in OUT/results as soon as it ends, and every comparison a line of OUT/suggestions.jsonl: the same
command goes on where it stopped. `--plan` only says what would be trained, `--report` prints the table of what was.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import efhorizon as ef
from efhorizon.planning.problem import problem
from efhorizon.what_if.base import Base
from efhorizon.what_if.change import Change, Kind
from efhorizon.what_if.trial import Trial
from efhorizon.what_if.trials import MAX_K, Options, changes, what_if

GRIDWORLDS = tuple(
    f"MiniGrid-{name}"
    for name in (
        *("DoorKey-5x5-v0", "DoorKey-6x6-v0", "KeyCorridorS3R1-v0", "Unlock-v0", "FourRooms-v0"),
        *("LavaGapS5-v0", "LavaGapS6-v0", "LavaGapS7-v0", "DistShift1-v0"),
        *("LavaCrossingS9N1-v0", "LavaCrossingS9N2-v0", "LavaCrossingS9N3-v0", "LavaCrossingS11N5-v0"),
        *("SimpleCrossingS9N1-v0", "SimpleCrossingS9N2-v0", "SimpleCrossingS9N3-v0", "SimpleCrossingS11N5-v0"),
        *("MultiRoom-N2-S4-v0", "MultiRoom-N4-S5-v1", "RedBlueDoors-6x6-v0", "RedBlueDoors-8x8-v0"),
    )
)
KINDS: tuple[Kind, ...] = ("potential", "horizon", "repeat", "actions", "start")  # that an agent on a table can realise
SUGGESTIONS_A_TABLE = 3
OFTEN_OPTIMAL = 1 / 3  # random episodes so often optimal pass the paper's rule without learning
PAPER_TABLE_3A = {"ppo": 0.48, "dqn": 0.35}  # correlation of the predicted and the measured change with reward shaping
ROWS = "suggestions.jsonl"


@dataclass(frozen=True)
class Comparison:
    """One suggestion, one algorithm. Timesteps are steps of the original environment; None: not solved."""

    mdp: str
    kind: str
    title: str
    verdict: str
    algorithm: str
    steps_each: int
    max_steps: int
    seeds: int
    bound_factor: float  # of GORP's timesteps
    forecast_factor: float  # of the forecast's median
    measured_before: float | None
    measured_after: float | None

    @property
    def measured_log(self) -> float | None:
        """log10 of the measured factor; an unsolved one counts as twice its budget, both unsolved as nothing known."""
        if self.measured_before is None and self.measured_after is None:
            return None
        before = self.measured_before or 2.0 * self.max_steps
        return math.log10((self.measured_after or 2.0 * self.max_steps * self.steps_each) / before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--algos", default="ppo,dqn")
    parser.add_argument("--limit", type=int, default=45, help="suggestions, at most")
    parser.add_argument("--only", nargs="+", default=GRIDWORLDS, metavar="NAME")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=5_000_000)
    parser.add_argument("--plan", action="store_true")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    rows = options.out / ROWS
    if not options.report:
        options.out.mkdir(parents=True, exist_ok=True)
        count = 0
        for name in options.only:
            for mdp, trial, change in suggestions(name, options.out / "tables"):
                if count == options.limit:
                    break
                count += 1
                print(f"{count:3} {name}: {trial.title} ({trial.verdict}, {trial.factor:.3g})", flush=True)
                for algorithm in [] if options.plan else options.algos.split(","):
                    compared(rows, name, mdp, trial, change, algorithm, options)
    if rows.exists():
        print(report(read(rows)))


def suggestions(name: str, tables: Path) -> Iterator[tuple[ef.TabularMDP, Trial, Change]]:
    """The strongest comparable change of each kind, the strongest kinds first, where random play does not solve it."""
    mdp = ef.build(name, out=tables)
    base = Base(problem(mdp, max_k=MAX_K))
    analysis = ef.analyze(mdp, exact=False)
    if analysis.optimal_return_probability > OFTEN_OPTIMAL:
        return
    options = Options(kinds=KINDS)
    made = {change.title: change for change in changes(base, options)}
    by_kind: dict[str, Trial] = {}
    for trial in what_if(mdp, options).trials:
        if trial.factor is None or trial.factor == 1 or trial.kept is None or not trial.kept.every:
            continue
        if trial.kind not in by_kind or strength(trial) > strength(by_kind[trial.kind]):
            by_kind[trial.kind] = trial
    for trial in sorted(by_kind.values(), key=lambda each: (-strength(each), each.title))[:SUGGESTIONS_A_TABLE]:
        yield mdp, trial, made[trial.title]


def strength(trial: Trial) -> float:
    return 0.0 if trial.factor is None else abs(math.log10(trial.factor))


def compared(
    rows: Path, name: str, mdp: ef.TabularMDP, trial: Trial, change: Change, algorithm: str, options: argparse.Namespace
) -> None:
    """Train before and after the change, unless that is a row already; append the row."""
    done = {(row.mdp, row.title, row.algorithm, row.max_steps, row.seeds) for row in read(rows)}
    if (name, trial.title, algorithm, options.steps, options.seeds) in done:
        return
    how = change.make()
    before = measured(mdp, algorithm, options)
    after = measured(how.mdp.with_metadata(catalogue_name=name), algorithm, options)
    assert trial.after is not None
    assert trial.factor is not None
    medians = [figures.forecasts[algorithm].timesteps.median for figures in (trial.before, trial.after)]
    row = Comparison(
        mdp=name,
        kind=trial.kind,
        title=trial.title,
        verdict=trial.verdict,
        algorithm=algorithm,
        steps_each=how.steps_each,
        max_steps=options.steps,
        seeds=options.seeds,
        bound_factor=trial.factor,
        forecast_factor=medians[1] / medians[0],
        measured_before=before,
        measured_after=None if after is None else how.steps_each * after,
    )
    with rows.open("a") as file:
        file.write(json.dumps(asdict(row)) + "\n")


def measured(mdp: ef.TabularMDP, algorithm: str, options: argparse.Namespace) -> float | None:
    """Timesteps until optimal: the median over seeds, the least over settings."""
    training = ef.train(
        mdp, algo=algorithm, seeds=options.seeds, steps=options.steps, results=options.out / "results", progress=True
    )
    return training.sample_complexity


def read(rows: Path) -> list[Comparison]:
    if not rows.exists():
        return []
    return [Comparison(**json.loads(line)) for line in rows.read_text().splitlines()]


def report(rows: Sequence[Comparison]) -> str:
    """How often the direction was right, how far off the size was, and the correlation beside the paper's Table 3a."""
    lines = [
        "| algorithm | predicted by | suggestions | MDPs | direction right | median factor off | correlation | 3a |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for algorithm in sorted({row.algorithm for row in rows}):
        known = [row for row in rows if row.algorithm == algorithm and row.measured_log is not None]
        if not known:
            continue
        seen = np.array([row.measured_log for row in known])
        for title, factors in (
            ("forecast", [row.forecast_factor for row in known]),
            ("GORP's timesteps", [row.bound_factor for row in known]),
        ):
            predicted = np.log10(factors)
            right = int((np.sign(predicted) == np.sign(seen)).sum())
            off = 10 ** float(np.median(np.abs(predicted - seen)))
            lines.append(
                f"| {algorithm.upper()} | {title} | {len(known)} | {len({row.mdp for row in known})} | "
                f"{right} of {len(known)} | {off:.2g} | {spearman(predicted, seen)} | {PAPER_TABLE_3A[algorithm]} |"
            )
        unsolved = sum(row.algorithm == algorithm for row in rows) - len(known)
        if unsolved:
            lines.append(f"\n{algorithm.upper()}: {unsolved} more were solved neither before nor after the change.")
    return "\n".join(lines)


def spearman(predicted: np.ndarray, seen: np.ndarray) -> str:
    from scipy.stats import spearmanr

    if len(seen) < 3 or np.ptp(predicted) == 0 or np.ptp(seen) == 0:
        return "too few"
    return f"{spearmanr(predicted, seen).statistic:.2f}"


if __name__ == "__main__":
    main()
