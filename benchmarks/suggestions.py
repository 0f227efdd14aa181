"""Do the suggestions of `efhorizon what-if` hold? Train with them, and compare with what was forecast.

    python benchmarks/suggestions.py --out suggestions [--algos ppo,dqn] [--only NAME ...] [--seeds 5] [--steps 5000000]
        [--most N] [--plan] [--page docs/study/suggestions.md]

Takes small gridworlds that random play does not solve. On each, up to two suggestions that should help and one change
that should hurt, of different kinds, are written to OUT/plan.jsonl with their forecasts before anything is trained.
Then PPO, and after it DQN, are trained by the paper's protocol on the table as it is and as it would be changed, those
that are forecast to be quick first. A change counts only if every optimal policy of the changed table is optimal in the
original: then "solved" means the same on both.

Every run is a row in OUT/results as soon as it ends, and every comparison a line of OUT/suggestions.jsonl: the same
command goes on where it stopped. `--plan` stops after the plan, `--page FILE` only writes the page of what was trained.
docs/study/suggestions.md is made from data/suggestions.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import efhorizon as ef
from efhorizon.evaluation import published
from efhorizon.evaluation.formulas import EFFECTIVE_HORIZON
from efhorizon.planning.problem import problem
from efhorizon.what_if.base import Base
from efhorizon.what_if.change import Kind
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
HELPFUL, HARMFUL = 2, 1  # changes of a table
OFTEN_OPTIMAL = 1 / 3  # random episodes so often optimal pass the paper's rule without learning
PLAN, ROWS = "plan.jsonl", "suggestions.jsonl"


@dataclass(frozen=True)
class Prediction:
    """One change, one algorithm, before training. Timesteps are steps of the original environment."""

    mdp: str
    kind: str
    title: str
    verdict: str
    algorithm: str
    model: str  # the version of the forecast
    bound_factor: float  # of GORP's timesteps
    before: float  # the forecast's medians
    after: float
    after_low: float  # its 80% interval
    after_high: float

    @property
    def forecast_factor(self) -> float:
        return self.after / self.before


@dataclass(frozen=True)
class Comparison:
    """What came of it; None: not solved by half of the runs of any setting."""

    prediction: Prediction
    steps_each: int
    max_steps: int  # of the table that was trained on
    seeds: int
    measured_before: float | None
    measured_after: float | None
    solved_before: int  # runs, of all settings
    solved_after: int
    runs: int

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
    parser.add_argument("--only", nargs="+", default=GRIDWORLDS, metavar="NAME")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=5_000_000)
    parser.add_argument("--most", type=int, help="changes to train with, at most")
    parser.add_argument("--plan", action="store_true")
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rows = options.out / ROWS
    if options.page is None:
        planned = plan(options.out, options.only)
        for algorithm in [] if options.plan else options.algos.split(","):
            quickest = sorted(
                (each for each in planned if each.algorithm == algorithm), key=lambda each: each.before + each.after
            )
            for number, prediction in enumerate(quickest[: options.most], 1):
                print(f"{algorithm} {number} of {len(quickest)}: {prediction.mdp}, {prediction.title}", flush=True)
                compared(rows, prediction, options)
        print(report(read(rows)))
    else:
        options.page.write_text(page(read(rows), planned_in(options.out)))


def planned_in(folder: Path) -> list[Prediction]:
    """All that was written down before training."""
    lines = map(json.loads, (folder / PLAN).read_text().splitlines())
    return [Prediction(**each) for line in lines for each in line["predictions"]]


def plan(out: Path, names: Sequence[str]) -> list[Prediction]:
    """What will be trained, written down table by table; a table that is in the file is not looked at again."""
    file = out / PLAN
    lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    looked_at = {line["mdp"] for line in lines}
    for name in names:
        if name not in looked_at:
            found = [asdict(each) for each in suggestions(name, out / "tables")]
            line = {"mdp": name, "predictions": found}
            lines.append(line)
            with file.open("a") as stream:
                stream.write(json.dumps(line) + "\n")
            print(f"{name}: {', '.join(sorted({each['title'] for each in found})) or 'nothing'}", flush=True)
    return [Prediction(**each) for line in lines if line["mdp"] in names for each in line["predictions"]]


def suggestions(name: str, tables: Path) -> Iterator[Prediction]:
    """The strongest changes, each of another kind, where random play does not solve the table."""
    mdp = ef.build(name, out=tables)
    if ef.analyze(mdp, exact=False).optimal_return_probability > OFTEN_OPTIMAL:
        return
    known = [
        trial
        for trial in what_if(mdp, Options(kinds=KINDS)).trials
        if trial.factor not in (None, 1) and trial.kept is not None and trial.kept.every
    ]
    helpful = [trial for trial in known if trial.factor is not None and trial.factor < 1]
    harmful = [trial for trial in known if trial.factor is not None and trial.factor > 1]
    chosen = strongest(helpful, HELPFUL)
    for trial in chosen + strongest(harmful, HARMFUL, {each.kind for each in chosen}):
        for algorithm, before in trial.before.forecasts.items():
            assert trial.after is not None
            assert trial.factor is not None
            after = trial.after.forecasts.get(algorithm)
            if after is not None:
                yield Prediction(
                    mdp=name,
                    kind=trial.kind,
                    title=trial.title,
                    verdict=trial.verdict,
                    algorithm=algorithm,
                    model=after.model,
                    bound_factor=trial.factor,
                    before=before.timesteps.median,
                    after=after.timesteps.median,
                    after_low=after.timesteps.low,
                    after_high=after.timesteps.high,
                )


def strongest(trials: Sequence[Trial], count: int, taken: Set[str] = frozenset()) -> list[Trial]:
    """The largest changes of GORP's timesteps, one of each kind that is not taken."""
    by_kind: dict[str, Trial] = {}
    for trial in sorted(trials, key=lambda each: -abs(math.log(each.factor or 1))):
        if trial.kind not in taken:
            by_kind.setdefault(trial.kind, trial)
    return list(by_kind.values())[:count]


def compared(rows: Path, prediction: Prediction, options: argparse.Namespace) -> None:
    """Train before and after the change, unless that is a row already; append the row."""
    if any(
        (row.prediction, row.max_steps, row.seeds) == (prediction, options.steps, options.seeds) for row in read(rows)
    ):
        return
    mdp = ef.build(prediction.mdp, out=options.out / "tables")
    base = Base(problem(mdp, max_k=MAX_K))
    (change,) = [each for each in changes(base, Options(kinds=[prediction.kind])) if each.title == prediction.title]
    how = change.make()
    before, after = (
        ef.train(
            table, algo=prediction.algorithm, seeds=options.seeds, steps=options.steps, results=options.out / "results"
        )
        for table in (mdp, how.mdp.with_metadata(catalogue_name=prediction.mdp))
    )
    needed = after.sample_complexity
    row = Comparison(
        prediction=prediction,
        steps_each=how.steps_each,
        max_steps=options.steps,
        seeds=options.seeds,
        measured_before=before.sample_complexity,
        measured_after=None if needed is None else how.steps_each * needed,
        solved_before=before.num_solved,
        solved_after=after.num_solved,
        runs=len(after.rows),
    )
    with rows.open("a") as file:
        file.write(json.dumps(asdict(row)) + "\n")


def read(rows: Path) -> list[Comparison]:
    if not rows.exists():
        return []
    found = [json.loads(line) for line in rows.read_text().splitlines()]
    return [Comparison(**{**row, "prediction": Prediction(**row["prediction"])}) for row in found]


def page(rows: Sequence[Comparison], planned: Sequence[Prediction]) -> str:
    """docs/study/suggestions.md."""
    lines = [
        "# Do the suggestions of `what-if` hold?",
        "",
        "Changes that `efhorizon what-if` tried on gridworlds, trained with by the paper's protocol: was the direction",
        "right, and the size? Made by `benchmarks/suggestions.py`, which says how they were chosen, before anything",
        "was trained. Timesteps are those of the environment. All factors are of timesteps after and before the",
        "change: below 1 it helps. An unsolved table counts as twice its budget.",
        "",
        report(rows),
        "",
        *(f"{line}\n" for line in unfinished(rows, planned)),
        "The forecast was fitted to the study's runs, which have these gridworlds as they are and with the suite's",
        "shapings. So it has seen the tables before the change, and of the changed ones those with such a shaping.",
        "",
        "## By kind of change",
        "",
        by_kind(rows),
        "",
        "## Beside the paper's Table 3a",
        "",
        "Table 3a asks the same of reward shaping alone, over pairs of which both are solved: how well does the",
        "predicted change rank the measured one, and by what factor is it off in the median?",
        "",
        beside_the_paper(rows),
        "",
        "## Every change",
        "",
        "| MDP | change | verdict | | forecast | GORP | measured | before | after | solved |",
        "|---|---|---|---|---:|---:|---:|---:|---:|---|",
    ]
    for row in sorted(rows, key=lambda each: (each.prediction.mdp, each.prediction.title, each.prediction.algorithm)):
        given = row.prediction
        seen = "unknown" if row.measured_log is None else f"{10**row.measured_log:.2g}"
        before, after = (
            f"not in {row.max_steps * each:,}" if needed is None else f"{needed:,.0f}"
            for needed, each in ((row.measured_before, 1), (row.measured_after, row.steps_each))
        )
        lines.append(
            f"| {given.mdp} | {given.title} | {given.verdict} | {given.algorithm.upper()} | "
            f"{given.forecast_factor:.2g} | {given.bound_factor:.2g} | {seen} | {before} | {after} | "
            f"{row.solved_before} and {row.solved_after} "
            f"of {row.runs} runs |"
        )
    return "\n".join(lines) + "\n"


def unfinished(rows: Sequence[Comparison], planned: Sequence[Prediction]) -> Iterator[str]:
    """Which of the planned changes were not trained with."""
    for algorithm in sorted({each.algorithm for each in planned}):
        count = sum(each.algorithm == algorithm for each in planned)
        done = sum(row.prediction.algorithm == algorithm for row in rows)
        if done < count:
            yield (
                f"{algorithm.upper()} was trained with {done} of {count} planned changes, those that were forecast to "
                "be the quickest.\nSo easy tables, and changes that help, have more weight than was planned."
            )


def by_kind(rows: Sequence[Comparison]) -> str:
    """Which kinds of changes do what is forecast."""
    lines = [
        "| algorithm | kind | changes | made it easier | direction right | median factor off |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for algorithm, kind in sorted({(row.prediction.algorithm, row.prediction.kind) for row in rows}):
        known = [
            (math.log10(row.prediction.forecast_factor), row.measured_log)
            for row in rows
            if (row.prediction.algorithm, row.prediction.kind) == (algorithm, kind) and row.measured_log is not None
        ]
        if not known:
            continue
        predicted, seen = np.array(known, float).T
        off = 10 ** float(np.median(np.abs(predicted - seen)))
        lines.append(
            f"| {algorithm.upper()} | {kind} | {len(known)} | {int((seen < 0).sum())} | "
            f"{int((np.sign(predicted) == np.sign(seen)).sum())} of {len(known)} | {off:.2g} |"
        )
    return "\n".join(lines)


def beside_the_paper(rows: Sequence[Comparison]) -> str:
    """Shaped rewards only, both solved, as in Table 3a."""
    lines = [
        "| algorithm | predicted by | pairs | correlation | ratio | paper: correlation | ratio |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for algorithm in sorted({row.prediction.algorithm for row in rows}):
        pairs = [
            row
            for row in rows
            if (row.prediction.algorithm, row.prediction.kind) == (algorithm, "potential")
            and None not in (row.measured_before, row.measured_after)
        ]
        if not pairs:
            continue
        seen = np.array([row.measured_log for row in pairs], float)
        of_paper = published.change_metrics("shaping", algorithm, EFFECTIVE_HORIZON) or {}
        correlation, ratio = (of_paper.get(name, math.nan) for name in ("correlation", "median_ratio_log10"))
        for title, factors, paper in (
            ("forecast", [row.prediction.forecast_factor for row in pairs], " | |"),
            (
                "GORP's timesteps (effective horizon)",
                [row.prediction.bound_factor for row in pairs],
                f"{correlation:.2f} | {10**ratio:.2g} |",
            ),
        ):
            off = 10 ** float(np.median(np.abs(np.log10(factors) - seen)))
            lines.append(
                f"| {algorithm.upper()} | {title} | {len(pairs)} | {spearman(np.log10(factors), seen)} | {off:.2g} | "
                f"{paper}"
            )
    return "\n".join(lines)


def report(rows: Sequence[Comparison]) -> str:
    """How often the direction was right, how far off the size was, and the rank correlation."""
    lines = [
        "| algorithm | predicted by | changes | MDPs | direction right | median factor off | correlation | in 80% |",
        "|---|---|---|---|---|---|---|---|",
    ]
    notes = []
    for algorithm in sorted({row.prediction.algorithm for row in rows}):
        every = [row for row in rows if row.prediction.algorithm == algorithm]
        known = [row for row in every if row.measured_log is not None]
        if len(known) < len(every):
            notes.append(f"{algorithm.upper()}: {len(every) - len(known)} more were solved neither before nor after.")
        seen = np.array([row.measured_log for row in known], float)
        solved = [row for row in every if row.measured_after is not None]
        within = sum(
            row.prediction.after_low <= (row.measured_after or 0) <= row.prediction.after_high for row in solved
        )
        for title, factors, covered in (
            ("forecast", [row.prediction.forecast_factor for row in known], f"{within} of {len(solved)} solved"),
            ("GORP's timesteps", [row.prediction.bound_factor for row in known], ""),
        ):
            if not known:
                continue
            predicted = np.log10(factors)
            right = int((np.sign(predicted) == np.sign(seen)).sum())
            off = 10 ** float(np.median(np.abs(predicted - seen)))
            mdps = len({row.prediction.mdp for row in known})
            lines.append(
                f"| {algorithm.upper()} | {title} | {len(known)} | {mdps} | {right} of {len(known)} | {off:.2g} | "
                f"{spearman(predicted, seen)} | {covered} |"
            )
    return "\n".join([*lines, *([""] if notes else []), *notes])


def spearman(predicted: np.ndarray, seen: np.ndarray) -> str:
    from scipy.stats import spearmanr

    if len(seen) < 3 or np.ptp(predicted) == 0 or np.ptp(seen) == 0:
        return "too few"
    return f"{spearmanr(predicted, seen).statistic:.2f}"


if __name__ == "__main__":
    main()
