"""What `analyze`, `show` and `export` do with tables that have chance."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from efhorizon.commands import _exit
from efhorizon.commands._exit import UsageError

if TYPE_CHECKING:
    from efhorizon.stochastic.mdp import StochasticMDP

_DEFAULT_SECONDS = 45.0
_OPENSPIEL = "openspiel:"


def table_of(path: Path, options: argparse.Namespace) -> StochasticMDP | None:
    """The stochastic table that a call is about: one in a file, or a deterministic one with --sticky; else None."""
    from efhorizon.io.tables import opened_table
    from efhorizon.stochastic.sticky import sticky
    from efhorizon.stochastic.store import is_stochastic, load

    chance = getattr(options, "sticky", None)
    horizon = getattr(options, "horizon", None)
    if is_stochastic(path):
        if chance is not None:
            raise UsageError(f"--sticky goes with a deterministic table; {path} has chance already")
        return load(path, horizon=horizon)
    if chance is None:
        return None
    return sticky(opened_table(path, horizon=horizon), chance)


def analyzed(tables: list[tuple[Path, StochasticMDP]], options: argparse.Namespace) -> int:
    """Analyze tables with chance, and print one screen or one JSON object for each."""
    from efhorizon.commands import _terminal
    from efhorizon.planning.policies import load_policy
    from efhorizon.render.terminal.stochastic import stochastic_analysis
    from efhorizon.stochastic.analysis import analyze

    if options.gamma != 1.0:
        raise UsageError("--gamma is for deterministic tables")
    policy = None if options.exploration_policy is None else load_policy(options.exploration_policy)
    seconds = _DEFAULT_SECONDS if options.max_minutes is None else 60 * options.max_minutes
    contents = []
    for path, mdp in tables:
        with _terminal.waiting(f"analyzing {path}") as say:
            result = analyze(mdp, exploration_policy=policy, seconds=seconds, on_progress=say)
        if options.json:
            contents.append({**result.as_json(), "path": str(path)})
        else:
            _terminal.show(stochastic_analysis(path, result))
    if options.json:
        _terminal.print_json(contents[0] if len(contents) == 1 else contents)
    return _exit.DONE


def shown(path: Path, mdp: StochasticMDP, options: argparse.Namespace) -> int:
    """Describe a table with chance."""
    from efhorizon.commands import _terminal
    from efhorizon.render.terminal.stochastic import described_stochastic
    from efhorizon.stochastic.description import description

    content = description(mdp, path)
    if options.json:
        _terminal.print_json(content)
    else:
        _terminal.show(described_stochastic(content, mdp, path))
    return _exit.DONE


def exported(mdp: StochasticMDP, file: Path, options: argparse.Namespace) -> int:
    """Write a table with chance as npz."""
    from efhorizon.commands import _terminal
    from efhorizon.stochastic.store import save

    save(mdp, file)
    content = {"id": mdp.metadata.get("id"), "path": str(file), "bytes": file.stat().st_size}
    if options.json:
        _terminal.print_json(content)
    else:
        _terminal.show([f"{file}: {content['bytes']:,} bytes, a table with chance ({mdp.num_states:,} states)"])
    return _exit.DONE


def built(options: argparse.Namespace) -> int | None:
    """Build a table with chance, if that is what a call of `build` asks for; else None."""
    from efhorizon import catalog
    from efhorizon.suites.environment_source import environment_source, is_environment_name

    name = options.env or options.name
    if name is None or (options.env is None and catalog.find(name) is not None):
        return None
    if name.startswith(_OPENSPIEL):
        return _built_game(name.removeprefix(_OPENSPIEL), options)
    if options.random_start:
        return _built_random_start(name, options)
    if options.fixed_noise or options.wrapper or (options.env is None and not is_environment_name(name)):
        return None
    from efhorizon.build.target import table_name
    from efhorizon.stochastic.sources.transition_function import from_transition_function, has_chance

    source = environment_source(name, dict(options.env_arg))
    if not has_chance(source):
        return None
    seeds: list[int | None] = list(dict.fromkeys(options.seed)) if options.seed else [None]
    made = []
    for seed in seeds:
        full = table_name(source) if seed is None else f"{table_name(source)}-seed{seed}"
        made.append(from_transition_function(source, options.horizon, name=full, seed=seed))
    return _stored(made, options)


def _built_game(name: str, options: argparse.Namespace) -> int:
    from efhorizon.commands import _terminal
    from efhorizon.stochastic.sources.explored import MAX_STATES
    from efhorizon.stochastic.sources.openspiel import from_openspiel

    if options.seed or options.wrapper or options.env_arg:
        raise UsageError("--seed, --wrapper and --env-arg do not go with a game of OpenSpiel")
    with _terminal.waiting(f"searching {name}") as say:
        made = from_openspiel(
            name,
            options.horizon,
            max_states=options.max_states or MAX_STATES,
            on_states=lambda count: say(f"searching {name}: {count:,} states"),
        )
    return _stored([made], options)


def _built_random_start(name: str, options: argparse.Namespace) -> int:
    """The tables of all seeds, built as ever, and one of them all."""
    from efhorizon.build.pipeline import Options, build
    from efhorizon.build.target import gymnasium_target
    from efhorizon.commands import _terminal
    from efhorizon.io.machine import num_cores
    from efhorizon.io.tables import load
    from efhorizon.stochastic.sources.random_start import random_start

    seeds = list(dict.fromkeys(options.seed or [0]))
    if len(seeds) < 2:
        raise UsageError("--random-start needs several seeds, as in --seed 0,1,2")
    build_options = Options(out=options.out, num_workers=options.workers or num_cores(), rule=options.merge)
    tables, target = [], None
    for seed in seeds:
        target = gymnasium_target(name, dict(options.env_arg), options.horizon, wrappers=options.wrapper, seed=seed)
        with _terminal.waiting(f"building {target.id}"):
            result = build(target, build_options)
        if result.path is None:
            raise UsageError(f"{target.id}: the search was not finished")
        tables.append(load(result.path))
    assert target is not None
    plain = gymnasium_target(name, dict(options.env_arg), options.horizon, wrappers=options.wrapper).id
    identifier = f"{plain}-seeds{'_'.join(map(str, seeds))}"
    return _stored([random_start(tables, name=identifier)], options)


def _stored(made: list[StochasticMDP], options: argparse.Namespace) -> int:
    from efhorizon.commands import _terminal
    from efhorizon.stochastic.store import save

    contents = []
    for mdp in made:
        name = str(mdp.metadata["id"])
        path = save(mdp, options.out / name)
        contents.append(
            {
                "id": name,
                "complete": True,
                "stochastic": True,
                "num_states": mdp.num_states,
                "num_actions": mdp.num_actions,
                "num_outcomes": mdp.num_outcomes,
                "horizon": mdp.horizon,
                "exact": mdp.is_exact,
                "path": str(path),
                "fingerprint": mdp.fingerprint(),
            }
        )
        if not options.json:
            _terminal.show(
                [
                    f"[bold]{name}[/bold]  a table with chance: {mdp.num_states:,} states, {mdp.num_actions} actions, "
                    f"{mdp.num_outcomes:,} outcomes, horizon {mdp.horizon}; in {path}",
                    f"next: efhorizon analyze {name}",
                ]
            )
    if options.json:
        _terminal.print_json(contents[0] if len(contents) == 1 else contents)
    return _exit.DONE


def trained(options: argparse.Namespace) -> int:
    """Train PPO or DQN on sticky tables, and print what each run needed."""
    from efhorizon.agents.deep.protocol import algorithm_sample_complexity, setting_sample_complexity
    from efhorizon.commands import _terminal
    from efhorizon.io.tables import load_table
    from efhorizon.stochastic.training import settings_for, train_sticky
    from efhorizon.study import sweep

    elsewhere = options.live or options.backend != "table"
    if options.algo == "gorp" or elsewhere or options.initial or options.exploration_policy:
        raise UsageError("--sticky goes with --algo ppo or dqn on the table; GORP's counterpart is efhorizon sqirl")
    contents = []
    for name in options.table:
        mdp = load_table(name, options.tables, horizon=options.horizon)
        found = {}
        for setting, changes in sweep.named_settings(options.algo, options.settings).items():
            lines = _terminal.SlowLines()
            title = f"{name} {options.algo} {setting}"
            with _terminal.waiting(title) as say:

                def on_progress(
                    step: int, returns: list[float], title: str = title, say: Callable[[str], None] = say
                ) -> None:
                    text = f"{title}: {step:,} timesteps, returns {', '.join(f'{each:.3g}' for each in returns)}"
                    say(text)
                    lines.say(text)  # noqa: B023  # called before the next setting begins

                found[setting] = train_sticky(
                    mdp,
                    options.sticky,
                    options.algo,
                    settings_for(mdp, options.algo, changes, options.steps),
                    range(options.seeds),
                    max_steps=options.steps,
                    on_progress=on_progress,
                )
        needed = {setting: [run.sample_complexity for run in runs] for setting, runs in found.items()}
        least = algorithm_sample_complexity(list(needed.values()))
        contents.append(
            {
                "id": mdp.metadata.get("id"),
                "algorithm": options.algo,
                "sticky": options.sticky,
                "sample_complexity": None if least == float("inf") else least,
                "settings": {
                    setting: {
                        "sample_complexity": None
                        if (median := setting_sample_complexity(needed[setting])) == float("inf")
                        else median,
                        "solved": sum(value is not None for value in needed[setting]),
                        "runs": [
                            {"seed": run.seed, "sample_complexity": run.sample_complexity, "return": run.final_return}
                            for run in runs
                        ],
                    }
                    for setting, runs in found.items()
                },
            }
        )
        if not options.json:
            _terminal.show(_training_lines(contents[-1]))
    if options.json:
        _terminal.print_json(contents[0] if len(contents) == 1 else contents)
    return _exit.DONE


def _training_lines(content: dict[str, Any]) -> Iterator[str]:
    solved = content["sample_complexity"]
    yield (
        f"[bold]{content['id']}[/bold] with sticky actions ({content['sticky']:g}), {content['algorithm']}: "
        f"{'not solved' if solved is None else f'{solved:,.0f} timesteps'}"
    )
    for setting, each in content["settings"].items():
        median = each["sample_complexity"]
        yield (
            f"  {setting}: {each['solved']} of {len(each['runs'])} runs solved, median "
            f"{'none' if median is None else f'{median:,.0f} timesteps'}"
        )
