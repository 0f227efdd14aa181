"""Pong on the Ray engine beside the local one: pairs a second of both, in one run, and their ratio.

    python benchmarks/ray_build.py                    pong_30_fs30 up to horizon 20, two workers each, three turns
    python benchmarks/ray_build.py --horizon 30       all of it

Turns alternate, so that what else the machine does falls on both. Rates are of the search alone: what it takes to start
Ray and to put the owners' parts together is printed beside them.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median

from efhorizon.build.pipeline import Options, build
from efhorizon.build.target import catalogue_target
from efhorizon.engines.choice import EngineChoice


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", default="pong_30_fs30")
    parser.add_argument("--horizon", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--owners", type=int, default=1)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    engines = {
        "local": EngineChoice(),
        "ray": EngineChoice("ray", owners=options.owners, workers=options.workers, object_store=200 * 2**20),
    }
    rates: dict[str, list[float]] = {name: [] for name in engines}
    prints: set[str] = set()
    for turn in range(options.turns):
        for name in engines if turn % 2 == 0 else reversed(engines):
            rate, seconds, fingerprint = one_build(options, engines[name])
            rates[name].append(rate)
            prints.add(fingerprint)
            print(f"turn {turn + 1}, {name}: {rate:,.0f} pairs/s; {seconds:.0f} s in all", flush=True)
    ratios = [ray / local for ray, local in zip(rates["ray"], rates["local"], strict=True)]
    print(f"ray / local: {median(ratios):.2f} (turns: {', '.join(f'{ratio:.2f}' for ratio in ratios)})")
    print(f"fingerprints equal: {len(prints) == 1}")


def one_build(options: argparse.Namespace, engine: EngineChoice) -> tuple[float, float, str]:
    """Pairs a second while searching, seconds in all, fingerprint."""
    seen = []
    with tempfile.TemporaryDirectory() as folder:
        result = build(
            catalogue_target(options.name, options.horizon),
            Options(out=Path(folder), num_workers=options.workers, engine=engine, verify_episodes=0),
            on_progress=seen.append,
        )
    assert result.mdp is not None
    begun = next(one for one in seen if one.num_pairs)  # after simulators and actors have started
    pairs, seconds = seen[-1].num_pairs - begun.num_pairs, seen[-1].seconds - begun.seconds
    return pairs / seconds, result.seconds, result.mdp.fingerprint()


if __name__ == "__main__":
    main()
