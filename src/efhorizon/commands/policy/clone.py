"""`efhorizon policy clone`: a network that plays like a recording."""

from __future__ import annotations

import argparse
from pathlib import Path

from efhorizon.commands import _arguments, _exit, _types
from efhorizon.commands._arguments import completed, environment_names

HELP = "learn a network from recordings of play (behaviour cloning)"
DESCRIPTION = """\
Reads recordings in the form of Atari-HEAD, yours (`policy record`) or the
published ones, and trains a network to do the same, with the paper's settings.
Writes a .npz that `efhorizon train --initial` and the other commands of
`efhorizon policy` take. Prints how well it predicts actions that it has not
seen.
"""
EXAMPLE = "efhorizon policy clone freeway_10_fs30 recordings --out freeway.npz"

_BATCHES, _BATCH_SIZE, _RATE, _ENTROPY = 400, 500, 1e-3, 0.1  # Appendix F
_HELD_OUT = 0.1
_MAX_FRAMESKIP, _MAX_BATCHES, _MAX_BATCH_SIZE = 1000, 10**7, 10**6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    name = parser.add_argument("name", metavar="NAME", help="a game, or an environment of efhorizon list")
    completed(name, environment_names)
    parser.add_argument(
        "recording",
        nargs="+",
        type=Path,
        metavar="RECORDING",
        help="folders with recordings, archives (.tar.bz2) or label files (.txt)",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="F.npz", help="the file for the network")
    parser.add_argument(
        "--batches",
        type=_types.count(most=_MAX_BATCHES),
        default=_BATCHES,
        metavar="N",
        help=f"gradient steps (default: {_BATCHES})",
    )
    parser.add_argument(
        "--batch-size",
        type=_types.count(most=_MAX_BATCH_SIZE),
        default=_BATCH_SIZE,
        metavar="N",
        help=f"samples of a batch (default: {_BATCH_SIZE})",
    )
    parser.add_argument(
        "--rate", type=_types.number, default=_RATE, metavar="X", help=f"Adam's learning rate (default: {_RATE:g})"
    )
    parser.add_argument(
        "--entropy",
        type=_types.number,
        default=_ENTROPY,
        metavar="X",
        help=f"weight of the entropy bonus (default: {_ENTROPY:g})",
    )
    parser.add_argument(
        "--frameskip",
        type=_types.count(most=_MAX_FRAMESKIP),
        metavar="N",
        help="recorded frames to a step (default: that of the environment; of a game alone, the published one)",
    )
    parser.add_argument(
        "--held-out",
        type=_types.fraction,
        default=_HELD_OUT,
        metavar="P",
        help=f"share of the play that is kept for testing (default: {_HELD_OUT:g})",
    )
    _arguments.add_seed(parser, "first parameters, batches and what is held out")
    _arguments.add_json(parser)


def run(options: argparse.Namespace) -> int:
    import numpy as np
    from rich.progress import BarColumn, TimeElapsedColumn

    from efhorizon.commands import _terminal
    from efhorizon.policies.clone import CloneSettings, Fit, cloned
    from efhorizon.policies.recordings import recordings
    from efhorizon.policies.samples import recorded_entry, samples
    from efhorizon.render.terminal.recordings import CloneSummary, FitSummary, clone_summary

    if options.out.suffix != ".npz":
        raise _exit.UsageError(f"--out must end in .npz, got {str(options.out)!r}")
    if options.rate <= 0 or options.entropy < 0:
        raise _exit.UsageError("--rate must be above 0 and --entropy at least 0")
    entry = recorded_entry(options.name)
    settings = CloneSettings(options.batches, options.batch_size, options.rate, options.entropy, options.seed)
    given, lines = recordings(options.recording), _terminal.SlowLines()
    columns = (_terminal.LineColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with _terminal.bars(*columns) as bars:
        reading = bars.add_task("frames", total=sum(len(recording.labels) for recording in given))
        found = samples(
            entry, given, frameskip=options.frameskip, on_frames=lambda number: bars.update(reading, completed=number)
        )
        learning = bars.add_task("batches", total=options.batches)

        def on_batch(number: int, loss: float) -> None:
            bars.update(learning, completed=number, description=f"batches, loss {loss:.3f}")
            lines.say(f"{entry.name}: {number:,} of {options.batches:,} batches, loss {loss:.3f}")

        held_out = found.held_out(options.held_out, np.random.default_rng(options.seed))
        policy = cloned(
            found.observations,
            found.counts(~held_out),
            held_out_counts=found.counts(held_out),
            settings=settings,
            on_batch=on_batch,
        )
    policy.save(options.out)

    def fit(of: Fit) -> FitSummary:
        return FitSummary(of.loss, of.accuracy, of.entropy, of.num_labels)

    summary = CloneSummary(
        environment=entry.name if options.name == entry.name else entry.game,
        network=str(options.out),
        recordings=found.num_recordings,
        frames=found.num_frames,
        rows=found.num_rows,
        unlabelled_rows=found.num_unlabelled,
        episodes=found.num_episodes,
        frameskip=found.frameskip,
        steps=len(found.observation),
        distinct_observations=len(found.observations.stacks),
        replaced_actions=found.replaced,
        batches=settings.batches,
        batch_size=settings.batch_size,
        rate=settings.rate,
        entropy_weight=settings.entropy,
        seed=settings.seed,
        training=fit(policy.training),
        held_out=None if policy.held_out is None else fit(policy.held_out),
    )
    if options.json:
        _terminal.print_json(summary.as_json())
    else:
        _terminal.show(clone_summary(summary))
    return _exit.DONE
