"""Do the reasons hold? GORP is simulated with right play by fiat at the places that `why` names, and nowhere else.

    PYTHONPATH=tests/support python benchmarks/reasons.py TABLE ... [--by draws] [--steps N] [--seconds 20] [--json]
    PYTHONPATH=tests/support python benchmarks/reasons.py --markdown docs/study/reasons.md

The first command appends to `data/reasons/rows.jsonl` and leaves out tables that have a row there; the second writes
the page from the rows.

`--by episodes` plays every random episode step by step. `--by draws` is for MDPs that pay 1 once, at the end: how many
of m random episodes reach the goal is then a binomial draw, with the chance to reach it from plain backward induction.
That takes a thousandth of the time, so hard tables can be checked too, and all of them with many runs.

For each table: how often GORP(1, m) succeeds, by computation and by simulation; the rise of success that is claimed for
the largest place and for the three largest together, and the one that is simulated, with the 95% interval of both
simulations. The number of runs is what fits into so many steps, fixed before the first one.

`on the way`: each of the states named can be reached by optimal play at the time named, before the end of the shortest
optimal episode. `detour`: how many steps longer than the shortest the shortest optimal episode through the state is,
for the state furthest off.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Literal, get_args
from zlib import crc32

import numpy as np
from gorp_simulation import drawn_with_fiat, goal_chances, is_goal, optimal_actions, simulated_with_fiat
from numpy.typing import NDArray

from efhorizon.bounds.analysis import analysis_of
from efhorizon.bounds.course import Course
from efhorizon.io.tables import opened_table
from efhorizon.planning.problem import Problem, problem
from efhorizon.reasons.losses import losses
from efhorizon.reasons.repair import success
from efhorizon.reasons.why import explained

By = Literal["episodes", "draws"]
ROWS = Path(__file__).parents[1] / "data" / "reasons" / "rows.jsonl"
MAX_RUNS, LEAST_RUNS = 20_000, 100
DRAWN_RUNS = 100_000
MAX_CHANCES = 400_000_000  # of reaching the goal, one for each time, state and action, that are held for draws: 3.2 GB
DEVIATIONS = 1.96  # 95%, two-sided


@dataclass(frozen=True)
class Row:
    name: str
    m: int
    kind: str
    shares: list[float]  # of GORP's failures that right play at each place avoids
    on_the_way: bool
    detour: int
    success: float
    runs: int
    simulated: float
    claimed_first: float  # the rise of success with right play at the largest place
    first: float  # the same, simulated
    claimed_all: float  # at all places that are named
    all: float
    error: float  # of a simulated rise: the half-width of its 95% interval, at most
    by: By = "episodes"  # how the random episodes were simulated

    @property
    def agrees(self) -> bool:
        return max(abs(self.first - self.claimed_first), abs(self.all - self.claimed_all)) <= self.error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", type=Path, metavar="TABLE")
    parser.add_argument("--by", choices=get_args(By), default="episodes")
    parser.add_argument("--steps", type=int, default=1_000_000_000, help="of one simulation by episodes, at most")
    parser.add_argument("--seconds", type=float, default=20.0, help="for the exact effective horizon")
    parser.add_argument("--seed", type=int, default=23)
    parser.add_argument("--rows", type=Path, default=ROWS, help="file with the rows, which grows")
    parser.add_argument("--markdown", type=Path, help="write the page from the rows")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    known = {(row.name, row.by) for row in read(options.rows)}
    for path in options.tables:
        if (path.name, options.by) in known:
            continue
        found = compared(path, options.by, options.steps, options.seconds, options.seed)
        if isinstance(found, str):
            print(f"{path.name}: {found}", file=sys.stderr, flush=True)
            continue
        text = json.dumps(asdict(found))
        options.rows.parent.mkdir(parents=True, exist_ok=True)
        with options.rows.open("a") as file:
            file.write(f"{text}\n")
        print(text if options.json else line(found), flush=True)
    if options.markdown is not None:
        options.markdown.write_text(page(read(options.rows)))


def read(path: Path = ROWS) -> list[Row]:
    """The rows so far, in the order of their names."""
    lines = path.read_text().splitlines() if path.is_file() else []
    return sorted((Row(**json.loads(each)) for each in lines), key=lambda row: row.name)


def compared(path: Path, by: By, steps: int, seconds: float, seed: int) -> Row | str:
    """What is claimed and what is simulated, or why there is nothing to compare."""
    course = Course(seconds=seconds)
    given = problem(opened_table(path))
    why = explained(given, analysis_of(given, course=course), course).why
    assert why is not None
    if not why.reasons or why.m is None or not why[0].share:
        return why.note or "no reasons"
    if why.method != "exact":
        return f"only simulated ({why.note})"
    mdp = given.mdp
    if by == "draws":
        if not is_goal(mdp):
            return "rewards other than a 1 at the end cannot be drawn"
        if mdp.horizon * mdp.rewards.size > MAX_CHANCES:
            return f"{mdp.num_states:,} states are too many for draws"
        runs = DRAWN_RUNS
    else:
        runs = min(MAX_RUNS, steps // (why.m * mdp.num_actions * mdp.horizon * (mdp.horizon + 1) // 2))
        if runs < LEAST_RUNS:
            return f"only {runs} runs of GORP with m = {why.m:,} would fit"
    right = optimal_actions(mdp)
    fiats = [fiat_of(right, reason.states, reason.right.action) for reason in why]
    together = np.max(fiats, axis=0)

    simulate = simulated_with_fiat if by == "episodes" else partial(drawn_with_fiat, chances=goal_chances(mdp))

    seed += crc32(path.name.encode())  # or tables alike would have the same luck

    def simulated(fiat: NDArray[np.int64], own_seed: int) -> float:
        return simulate(mdp, why.m or 1, right, fiat, runs, own_seed % 2**32) / runs

    before = float(np.mean(success(losses(given, why.m))))
    plain = simulated(np.full_like(together, -1), seed)
    one, every = simulated(fiats[0], seed + 1), simulated(together, seed + 2)
    variance = plain * (1 - plain) + max(one * (1 - one), every * (1 - every)) + 1 / runs
    return Row(
        name=path.name,
        m=why.m,
        kind=why[0].kind,
        shares=[reason.share for reason in why],
        on_the_way=all(is_on_the_way(given, reason.state, reason.time) for reason in why),
        detour=max(detour(given, reason.state) for reason in why),
        success=before,
        runs=runs,
        simulated=plain,
        claimed_first=why[0].rise,
        first=one - plain,
        claimed_all=why.together * (1 - before),
        all=every - plain,
        error=DEVIATIONS * float(np.sqrt(variance / runs)),
        by=by,
    )


def fiat_of(right: NDArray[np.bool_], states: Sequence[int], action: int) -> NDArray[np.int64]:
    """The action [T, S] in some states, wherever it is optimal; -1 elsewhere. Made from what the JSON has alone."""
    fiat = np.full(right.shape[:2], -1)
    for state in states:
        fiat[right[:, state, action], state] = action
    return fiat


def is_on_the_way(given: Problem, state: int, time: int) -> bool:
    """Whether optimal play can be there at that time, before the shortest optimal episode is over."""
    layer = given.timeline.layer(time)
    pair = layer.start + int(np.flatnonzero(given.timeline.states[layer] == state)[0])
    return bool(given.optimal.reached[pair]) and time < int(steps_to_reward(given)[0])


def detour(given: Problem, state: int) -> int:
    """Steps by which the shortest optimal way to the next reward through a state is longer than the shortest."""
    line, steps = given.timeline, steps_to_reward(given)
    pair = int(np.flatnonzero((line.states == state) & given.optimal.reached)[0])  # the earliest
    return max(0, line.time_of(pair) + int(steps[pair]) - int(steps[0]))


def steps_to_reward(given: Problem) -> NDArray[np.int64]:
    """The fewest steps [P] of optimal play to the last reward that is not 0; 0 where nothing is left to be earned."""
    line, mdp = given.timeline, given.mdp
    pays = mdp.reward_values != 0
    steps = np.zeros(line.num_pairs + 1, np.int64)  # the last entry is for episodes that are over
    for time in reversed(range(mdp.horizon)):
        layer = line.layer(time)
        if layer.stop == layer.start:
            continue
        after = steps[line.successors[layer]]
        ahead = np.where((after > 0) | pays[mdp.reward_codes[line.states[layer]]], 1 + after, 0)
        steps[layer] = np.where(given.optimal.actions[layer], ahead, mdp.horizon + 1).min(axis=1)
    return steps[:-1]


def line(row: Row) -> str:
    """One row of a Markdown table."""
    shares = " ".join(f"{100 * share:.0f}%" for share in row.shares)
    cells = (
        row.name.removeprefix("MiniGrid-"),
        f"{row.m:,}",
        row.kind,
        shares,
        f"{'yes' if row.on_the_way else 'NO'}, {row.detour}",
        f"{100 * row.success:.1f}%",
        f"{100 * row.simulated:.1f}%",
        f"{100 * row.claimed_first:.1f}",
        f"{100 * row.first:.1f}",
        f"{100 * row.claimed_all:.1f}",
        f"{100 * row.all:.1f}",
        f"{100 * row.error:.1f}",
        "yes" if row.agrees else "NO",
    )
    return f"| {' | '.join(cells)} |"


HEAD = (
    "| table | m | kind | shares | on the way, detour | success | simulated | rise, largest | simulated "
    "| rise, all three | simulated | ± | agrees |\n|---|---:|---|---|---|---:|---:|---:|---:|---:|---:|---:|---|\n"
)


def page(rows: list[Row]) -> str:
    """The whole page."""
    return (
        "# Do the reasons hold?\n\n"
        "Written by `benchmarks/reasons.py` from `data/reasons`. GORP is simulated with right play by fiat at the "
        "places that\n`why` names, and nowhere else; rises of success are in percentage points. What the columns mean: "
        "[why.md](../why.md).\n"
        + section(
            "Random episodes drawn",
            "Of m random episodes after an action a binomial number reach the goal; the chance comes from plain "
            f"backward induction.\n{DRAWN_RUNS:,} runs for each figure.",
            [row for row in rows if row.by == "draws"],
        )
        + section(
            "Random episodes played",
            "Every random episode is played step by step. A gridworld is left out where fewer than "
            f"{LEAST_RUNS} runs fit into so many steps.",
            [row for row in rows if row.by == "episodes"],
        )
    )


def section(title: str, text: str, rows: list[Row]) -> str:
    """The rows of one way to simulate."""
    agree, way = sum(row.agrees for row in rows), sum(row.on_the_way for row in rows)
    on_shortest = sum(row.detour == 0 for row in rows)
    return (
        f"\n## {title}\n\n{text}\n\n"
        f"- {agree} of {len(rows)} tables: both simulated rises are within the 95% interval of what was claimed. About "
        "one in ten would not be\n  if every claim were exact, for there are two of them.\n"
        f"- {way} of {len(rows)}: all states named lie on the way of an optimal episode, at a time before the shortest "
        f"one ends; in {on_shortest} all lie on a shortest one.\n\n" + HEAD + "".join(f"{line(row)}\n" for row in rows)
    )


if __name__ == "__main__":
    main()
