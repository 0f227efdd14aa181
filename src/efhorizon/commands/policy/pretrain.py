"""`efhorizon policy pretrain`: PPO on Procgen levels that have no table, for a network to start from."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from efhorizon.commands import _arguments, _exit, _types
from efhorizon.commands._exit import UsageError
from efhorizon.policies.pretraining_settings import PAPER_STEPS, PretrainingSettings, settings_for
from efhorizon.suites import procgen

if TYPE_CHECKING:
    from efhorizon.policies.pretrain import Pretrained

HELP = "train PPO on other Procgen levels, for a network to start from"
DESCRIPTION = """\
Trains PPO on live levels of a Procgen game that are not in BRIDGE, with the
settings of the paper (500 easy levels, 25 million timesteps, entropy 0.1).
Writes the network as a .npz that `efhorizon train --initial` takes for every
table of the game. A run that was stopped goes on from its checkpoint when the
same command is run again; with more --steps a finished one is made longer.
With --engine ray several games are trained at once, each on one core of a
cluster; --out is then on a file system that all nodes share.
"""
EXAMPLE = """\
efhorizon policy pretrain maze --steps 500k --out networks
  efhorizon policy pretrain maze heist --engine ray --out /shared/networks"""

_DEFAULTS = settings_for("maze")
_MAX_ENVS, _MAX_THREADS, _MAX_FRAMESKIP = 4096, 1024, 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    game = parser.add_argument(
        "game",
        nargs="+",
        metavar="GAME",
        help=f"a Procgen game, or several, one run each: {', '.join(procgen.GAMES)}",
    )
    _arguments.completed(game, lambda **_: list(procgen.GAMES))
    parser.add_argument(
        "--out", type=Path, required=True, metavar="F.npz", help="file for the network, or a folder for GAME.npz"
    )
    parser.add_argument(
        "--steps",
        type=_types.count(),
        default=PAPER_STEPS,
        metavar="N",
        help=f"timesteps, such as 500k; each is one action, whatever the frameskip (default: {PAPER_STEPS:,})",
    )
    parser.add_argument(
        "--levels",
        type=_types.count(),
        default=_DEFAULTS.num_levels,
        metavar="N",
        help=f"how many levels (default: {_DEFAULTS.num_levels})",
    )
    parser.add_argument(
        "--first-level",
        type=_types.count(least=0),
        default=_DEFAULTS.first_level,
        metavar="N",
        help=f"the first of them (default: {_DEFAULTS.first_level}, the first that is not in BRIDGE)",
    )
    parser.add_argument(
        "--difficulty", choices=("easy", "hard"), default=_DEFAULTS.difficulty, help="of the levels (default: easy)"
    )
    parser.add_argument(
        "--frameskip",
        type=_types.count(most=_MAX_FRAMESKIP),
        metavar="F",
        help="frames of a timestep (default: that of the game's tables)",
    )
    parser.add_argument(
        "--entropy",
        type=_types.number,
        default=_DEFAULTS.entropy_weight,
        metavar="W",
        help=f"weight of the entropy bonus (default: {_DEFAULTS.entropy_weight})",
    )
    parser.add_argument(
        "--num-envs",
        type=_types.count(most=_MAX_ENVS),
        default=_DEFAULTS.num_envs,
        metavar="N",
        help=f"environments that are played at the same time (default: {_DEFAULTS.num_envs})",
    )
    _arguments.add_seed(parser, "the run")
    parser.add_argument(
        "--device", default="auto", metavar="D", help="where the network is: cpu, cuda, or auto (default: auto)"
    )
    parser.add_argument(
        "--precision",
        choices=("auto", "float32", "bfloat16"),
        default="auto",
        help="of the network's arithmetic; parameters are float32 (default: auto, which is float32 on a CPU)",
    )
    parser.add_argument(
        "--threads", type=_types.count(most=_MAX_THREADS), metavar="N", help="threads (default: one per core)"
    )
    parser.add_argument("--tensorboard", type=Path, metavar="DIR", help="also write learning curves for TensorBoard")
    parser.add_argument(
        "--workers", type=_types.count(most=_MAX_THREADS), metavar="N", help="with --engine ray: games at once, at most"
    )
    _arguments.add_engine(parser)
    _arguments.add_json(parser)


def kept(options: argparse.Namespace) -> str:
    from efhorizon.policies.pretrain import checkpoint_path

    first = checkpoint_path(_out(options, options.game[0]))
    return _exit.kept_in(first if len(options.game) == 1 else first.parent, "the run is kept")


def run(options: argparse.Namespace) -> int:
    from efhorizon.commands import _terminal
    from efhorizon.commands.policy import _pretraining

    if len(options.game) > 1 and options.out.suffix == ".npz":
        raise UsageError("--out is a folder where there are several games")
    engine = _arguments.engine_choice(options)
    if engine.is_ray and options.tensorboard:
        raise UsageError("--tensorboard does not go with --engine ray")
    made: list[Pretrained] = []

    def on_result(one: Pretrained) -> None:
        made.append(one)
        if not options.json:
            _terminal.show(_pretraining.lines(one))

    if engine.is_ray:
        from efhorizon.policies.pretraining_pool import PretrainingTask, pretrain_on_ray

        tasks = [
            PretrainingTask(
                _settings(options, game), _out(options, game), options.steps, options.device, options.threads or 1
            )
            for game in options.game
        ]
        pretrain_on_ray(tasks, engine, on_result)
    else:
        for game in options.game:
            on_result(_pretrained_here(options, game))
    if options.json:
        found = [
            _pretraining.content(one) for one in sorted(made, key=lambda one: options.game.index(one.settings.game))
        ]
        _terminal.print_json(found[0] if len(found) == 1 else {"runs": found})
    return _exit.DONE


def _pretrained_here(options: argparse.Namespace, game: str) -> Pretrained:
    from contextlib import ExitStack

    from efhorizon.commands.policy import _pretraining
    from efhorizon.io.memory import keep_freed_memory
    from efhorizon.policies.pretrain import pretrain

    settings, out = _settings(options, game), _out(options, game)
    keep_freed_memory()
    with ExitStack() as stack:
        board = stack.enter_context(_pretraining.Board(options.tensorboard, out)) if options.tensorboard else None
        screen = stack.enter_context(_pretraining.Screen(settings, options.steps, board))
        return pretrain(
            settings, out, steps=options.steps, device=options.device, threads=options.threads, on_progress=screen.step
        )


def _settings(options: argparse.Namespace, game: str) -> PretrainingSettings:
    from efhorizon.agents.deep.device import torch_device
    from efhorizon.policies.precision import chosen_precision

    changes = {} if options.frameskip is None else {"frameskip": options.frameskip}
    return settings_for(
        game,
        difficulty=options.difficulty,
        first_level=options.first_level,
        num_levels=options.levels,
        num_envs=options.num_envs,
        entropy_weight=options.entropy,
        seed=options.seed,
        precision=chosen_precision(options.precision, torch_device(options.device)),
        **changes,
    )


def _out(options: argparse.Namespace, game: str) -> Path:
    """The file for the network of a game."""
    out: Path = options.out
    return out if out.suffix == ".npz" else out / f"{game}.npz"
