"""Are the intervals of `efhorizon diagnose` right? Where the exact m is known, through the live environment alone.

    python benchmarks/diagnose.py --out data/diagnose/coverage.jsonl [--factor 20] [--most-steps 5000000]
        [--only NAME ...] [--suites atari,minigrid,procgen] [--minutes 10] [--page docs/study/diagnose.md]

The exact m_1 and m_2 of uniform ties come from data/study/mdps.parquet. Each environment is diagnosed once with a
budget of FACTOR times the exact cost T^2 A m_1, the cheapest first, as long as that is at most `--most-steps`. Every
diagnosis is a line of OUT as soon as it ends, and the same command goes on where it stopped. `--page` only writes the
page.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import efhorizon as ef

MDPS = Path("data/study/mdps.parquet")


@dataclass(frozen=True)
class Truth:
    """A table with a known exact m_1."""

    name: str
    suite: str
    horizon: int
    num_actions: int
    exact: dict[int, int]  # by k

    @property
    def cost(self) -> int:
        """The timesteps of GORP(1, m_1)."""
        return self.horizon**2 * self.num_actions * self.exact[1]


@dataclass(frozen=True)
class Row:
    """One diagnosis beside the truth; m is None where it is not limited or not known."""

    name: str
    suite: str
    factor: float
    seed: int
    k: int
    exact: int
    low: int | None
    estimate: int | None
    high: int | None
    steps: int
    seconds: float

    @property
    def covers(self) -> bool:
        return self.low is not None and self.low <= self.exact <= (math.inf if self.high is None else self.high)

    @property
    def width(self) -> float:
        return math.inf if self.high is None or self.low is None else self.high / self.low


def truths() -> list[Truth]:
    """Tables with an exact m_1, the cheapest first."""
    import pyarrow.parquet

    found = []
    for line in pyarrow.parquet.read_table(MDPS).to_pylist():
        if line["type"] == "exploration_policy":
            continue
        by_k = json.loads(line["analysis_json"])["analysis"]["effective_horizon"]["by_k"]
        exact = {int(k): each["exact_m"] for k, each in by_k.items() if each["exact_m"] is not None}
        if 1 in exact:
            found.append(Truth(line["mdp_name"], line["origin"], line["horizon"], line["num_actions"], exact))
    return sorted(found, key=lambda each: (each.cost, each.name))


def rows_of(path: Path) -> list[Row]:
    return [Row(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def diagnosed(truth: Truth, factor: float, seed: int, workers: int) -> Iterator[Row]:
    """The rows of one diagnosis: one for each k whose exact m is known and that was examined."""
    began = time.perf_counter()
    found = ef.diagnose(truth.name, max_steps=round(factor * truth.cost), seed=seed, workers=workers)
    seconds = round(time.perf_counter() - began, 1)
    for k, each in found.by_k.items():
        if k in truth.exact and (k == 1 or each.m_from == "runs"):
            m = found.as_json()["by_k"][str(k)]["m"]
            yield Row(
                truth.name, truth.suite, factor, seed, k, truth.exact[k], **m, steps=found.steps_played, seconds=seconds
            )


def page(rows: Sequence[Row]) -> str:
    """docs/study/diagnose.md."""
    lines = [
        "# Diagnoses beside the truth",
        "",
        "How often does the 90% interval of `efhorizon diagnose` hold the exact m, and how wide is it? Each",
        "environment was played live, without its table, with a budget of some times the exact cost T^2 A m_1. The",
        "exact m comes from the table. Made by `python benchmarks/diagnose.py --page docs/study/diagnose.md`.",
        "",
        "| budget | k | tables | exact m > 1 | covered | of m > 1 | median high/low | of m > 1 | no upper end |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    groups = sorted({(-row.factor, row.k) for row in rows})
    for factor, k in groups:
        chosen = [row for row in rows if row.factor == -factor and row.k == k]
        hard = [row for row in chosen if row.exact > 1]
        lines.append(
            f"| {-factor:g} times | {k} | {len(chosen)} | {len(hard)} | {_share(chosen)} | {_share(hard)} | "
            f"{_median(chosen)} | {_median(hard)} | {sum(row.high is None for row in chosen)} |"
        )
    for factor in sorted({row.factor for row in rows}, reverse=True):
        lines += ["", f"## Budget of {factor:g} times the exact cost", ""]
        lines += [
            "| environment | suite | k | exact m | interval | estimate | steps played | |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for row in sorted(rows, key=lambda each: (each.suite, each.name, each.k)):
            if row.factor == factor:
                high = "no end" if row.high is None else f"{row.high:,}"
                mark = "" if row.covers else "missed"
                lines.append(
                    f"| {row.name} | {row.suite} | {row.k} | {row.exact:,} | {row.low} to {high} | {row.estimate} | "
                    f"{row.steps:,} | {mark} |"
                )
    return "\n".join(lines) + "\n"


def _share(rows: Sequence[Row]) -> str:
    return f"{sum(row.covers for row in rows)} ({sum(row.covers for row in rows) / len(rows):.0%})" if rows else "-"


def _median(rows: Sequence[Row]) -> str:
    middle = statistics.median([row.width for row in rows]) if rows else math.inf
    return f"{middle:.2f}" if math.isfinite(middle) else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("data/diagnose/coverage.jsonl"))
    parser.add_argument("--factor", type=float, default=20.0)
    parser.add_argument("--most-steps", type=float, default=5e6, help="leave out tables whose budget is larger")
    parser.add_argument("--suites", default="atari,minigrid,procgen")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no diagnosis after this time")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    if options.page is not None:
        options.page.write_text(page(rows_of(options.out)))
        return
    began = time.monotonic()
    done = {(row.name, row.factor, row.seed) for row in rows_of(options.out)}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for truth in truths():
        wanted = truth.suite in options.suites.split(",") and (not options.only or truth.name in options.only)
        if not wanted or truth.cost * options.factor > options.most_steps:
            continue
        if (truth.name, options.factor, options.seed) in done:
            continue
        if time.monotonic() - began > 60 * options.minutes:
            break
        found = list(diagnosed(truth, options.factor, options.seed, options.workers))
        with options.out.open("a") as file:
            file.writelines(json.dumps(asdict(row)) + "\n" for row in found)
        for row in found:
            missed = "" if row.covers else "  MISSED"
            print(
                f"{row.name} k={row.k} exact {row.exact}: {row.low} {row.estimate} {row.high}  {row.seconds} s{missed}",
                flush=True,
            )


if __name__ == "__main__":
    main()
