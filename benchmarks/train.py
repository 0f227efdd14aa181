"""How fast training on a table is, against Stable-Baselines3 on the live environment: both sides in one run, as ratios.

    python benchmarks/train.py [--tables DIR] [--only ppo|dqn|cnn|cnn-dqn|gorp] [--seconds 20] [--json]

- ppo: steps a second of five seeds together on MiniGrid-Empty-8x8-v0 against one Stable-Baselines3 run of the same;
- dqn: the same with DQN;
- cnn, cnn-dqn: one seed of PPO and of DQN with the CNN on freeway_10_fs30;
- gorp: GORP on the table against a Python loop over the live environment (`gorp.py` beside this file).

Nothing ends a run here but its length, and compilation is left out (it is printed): a sweep compiles once a setting.
Stable-Baselines3 is run with one torch thread and with all cores in turn, and the faster counts. The two sides take
turns, so that a machine that gets slower or busier meanwhile slows both.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
import time
from pathlib import Path

import torch

from efhorizon.agents.deep import dqn, ppo, sb3
from efhorizon.agents.deep.observations import ObservedTable, observed_table
from efhorizon.agents.deep.protocol import PAPER_STEPS, Protocol, RunRecord
from efhorizon.agents.deep.settings import DQNSettings, PPOSettings
from efhorizon.io.machine import num_cores
from efhorizon.io.tables import load_table
from efhorizon.suites import registry

CASES = {  # name: algorithm, MDP, seeds on the table, wanted ratio
    "ppo": ("ppo", "MiniGrid-Empty-8x8-v0", 5, 30.0),
    "dqn": ("dqn", "MiniGrid-Empty-8x8-v0", 5, 30.0),
    "cnn": ("ppo", "freeway_10_fs30", 1, 1.5),
    "cnn-dqn": ("dqn", "freeway_10_fs30", 1, 1.5),
}
NEVER = 2**30  # an optimal return that no episode gets


class _TimeIsUpError(Exception):
    pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=Path, default=Path("tables"))
    parser.add_argument("--only", choices=(*CASES, "gorp"))
    parser.add_argument("--seconds", type=float, default=20.0, help="of each turn of each side")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results: dict[str, object] = {}
    for name, (algorithm, table_name, num_seeds, wanted) in CASES.items():
        if options.only not in (None, name):
            continue
        results[name] = found = measured(algorithm, table_name, num_seeds, options)
        if not options.json:
            figures = ", ".join(f"{key} {value:,.4g}" for key, value in found.items())
            print(f"{name}: {figures}   (wanted: at least {wanted:g})", flush=True)
    if options.only in (None, "gorp"):
        command = [sys.executable, str(Path(__file__).with_name("gorp.py"))]
        if options.json:
            answer = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True).stdout
            results["gorp"] = json.loads(answer)
        else:
            subprocess.run(command, check=True)
    if options.json:
        print(json.dumps(results, indent=1))


def measured(algorithm: str, name: str, num_seeds: int, options: argparse.Namespace) -> dict[str, float]:
    mdp = load_table(Path(name), options.tables)
    table = dataclasses.replace(observed_table(mdp), optimal_units=NEVER)
    gamma = registry.suite(mdp.metadata["suite"]).discount
    settings = PPOSettings(gamma=gamma) if algorithm == "ppo" else DQNSettings(gamma=gamma)
    protocol = Protocol(window=None, evaluation_interval=10_000)
    rates: dict[str, list[float]] = {"table": [], "sb3": []}
    compilations = []
    for num_threads in (1, num_cores()):
        torch.set_num_threads(num_threads)
        clock = Clock(options.seconds)
        try:
            if isinstance(settings, PPOSettings):
                ppo.train(table, settings, protocol, list(range(num_seeds)), on_progress=clock)
            else:
                dqn.train(table, settings, protocol, list(range(num_seeds)), on_progress=clock)
        except _TimeIsUpError:
            pass
        rates["table"].append(num_seeds * clock.rate)
        compilations.append(clock.first_seconds)
        rates["sb3"].append(sb3_rate(name, table, settings, options.seconds))
    table_rate, sb3_steps = max(rates["table"]), max(rates["sb3"])
    return {
        "table_steps_a_second": table_rate,
        "sb3_steps_a_second": sb3_steps,
        "ratio": table_rate / sb3_steps,
        "worst_ratio": min(rates["table"]) / sb3_steps,
        "seconds_to_first_result": min(compilations),
    }


class Clock:
    """Stops a training after some seconds; the first call, which compiles, does not count."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._began = seconds, time.perf_counter()
        self._start: tuple[float, int] | None = None
        self.rate = self.first_seconds = 0.0

    def __call__(self, runs: list[RunRecord]) -> None:
        now, steps = time.perf_counter(), max(run.steps for run in runs)
        if self._start is None:
            self._start, self.first_seconds = (now, steps), now - self._began
            return
        elapsed = now - self._start[0]
        self.rate = (steps - self._start[1]) / elapsed
        if elapsed >= self._seconds:
            raise _TimeIsUpError


def sb3_rate(name: str, table: ObservedTable, settings: PPOSettings | DQNSettings, seconds: float) -> float:
    """Steps a second of `learn` without any callback but a clock; the first rollout warms up."""
    from stable_baselines3.common.callbacks import BaseCallback

    warm_up = settings.samples if isinstance(settings, PPOSettings) else 1000

    class Timer(BaseCallback):
        began: float | None = None
        rate = 0.0

        def _on_step(self) -> bool:
            if self.began is None:
                if self.num_timesteps > warm_up:
                    self.began, self.first = time.perf_counter(), self.num_timesteps
                return True
            elapsed = time.perf_counter() - self.began
            if elapsed < seconds:
                return True
            if isinstance(settings, PPOSettings) and (self.num_timesteps - self.first) % warm_up:
                return True  # whole rollouts with their updates only
            self.rate = (self.num_timesteps - self.first) / elapsed
            return False

    timer = Timer()
    model = sb3.agent(name, table, settings, seed=0)
    model.learn(total_timesteps=PAPER_STEPS, callback=timer)
    model.env.close()
    return timer.rate


if __name__ == "__main__":
    main()
