"""`efhorizon policy record`: play a policy in the live environment and write a recording."""

from __future__ import annotations

import argparse
from pathlib import Path

from efhorizon.commands import _arguments, _exit, _types
from efhorizon.commands._arguments import completed, environment_names

HELP = "play a policy and write what was seen and done"
DESCRIPTION = """\
Plays an optimal policy (with noise, if you like), a network or yourself in the
live environment, and writes a recording in the form of Atari-HEAD: STEM.txt
with one row per frame, STEM.tar.bz2 with the frames. `policy clone` reads it.
An optimal policy needs the table: build it first.
"""
EXAMPLE = "efhorizon policy record freeway_10_fs30 --optimal --noise 0.2 --episodes 20"

_EPISODES = 10
_FOLDER = Path("recordings")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    completed(parser.add_argument("name", metavar="NAME", help="an environment, see efhorizon list"), environment_names)
    player = parser.add_mutually_exclusive_group(required=True)
    player.add_argument("--optimal", action="store_true", help="an optimal policy of the environment's table")
    player.add_argument("--network", type=Path, metavar="F", help="a policy network: .npz, .zip or .pth")
    player.add_argument("--keyboard", action="store_true", help="you: arrows and space; escape ends the session")
    parser.add_argument(
        "--noise",
        type=_types.fraction,
        default=0.0,
        metavar="P",
        help="--optimal: probability that a step takes a random action (default: 0)",
    )
    parser.add_argument(
        "--greedy", action="store_true", help="--network: take the likeliest action instead of drawing one"
    )
    parser.add_argument(
        "--episodes",
        type=_types.count(most=_arguments.MAX_RUNS),
        default=_EPISODES,
        metavar="N",
        help=f"episodes to play (default: {_EPISODES})",
    )
    parser.add_argument(
        "--out", type=Path, default=_FOLDER, metavar="DIR", help=f"folder for the recording (default: {_FOLDER})"
    )
    parser.add_argument(
        "--stem", metavar="S", help="name of the recording (default: from environment, policy and seed)"
    )
    parser.add_argument(
        "--tables",
        type=Path,
        default=_arguments.TABLES,
        metavar="DIR",
        help=f"the folder in which the table is looked up (default: {_arguments.TABLES})",
    )
    _arguments.add_seed(parser, "noise and drawn actions")
    _arguments.add_json(parser)


def run(options: argparse.Namespace) -> int:
    from efhorizon.commands import _terminal
    from efhorizon.commands.policy._playing import opened_player, optimal_return, recording_stem
    from efhorizon.policies.live import frame_by_frame
    from efhorizon.policies.record import Episode, record
    from efhorizon.policies.samples import recorded_entry
    from efhorizon.render.terminal.recordings import RecordSummary, record_summary

    if options.noise and not options.optimal:
        raise _exit.UsageError("--noise is for --optimal")
    if options.greedy and options.network is None:
        raise _exit.UsageError("--greedy is for --network")
    entry = recorded_entry(options.name)
    stem, lines, returns = recording_stem(options, entry), _terminal.SlowLines(), list[float]()
    with opened_player(options, entry) as player, _terminal.waiting(f"{entry.name}: playing") as say:

        def on_episode(episode: Episode) -> None:
            returns.append(episode.total_reward)
            text = f"{entry.name}: {len(returns)} of {options.episodes} episodes, last return {returns[-1]:g}"
            say(text)
            lines.say(text)

        recording, episodes = record(
            frame_by_frame(entry) if options.keyboard else entry,
            player,
            options.out,
            stem,
            episodes=options.episodes,
            on_episode=on_episode,
        )
    best = optimal_return(options, entry)
    summary = RecordSummary(
        environment=entry.name,
        recording=str(recording.path),
        frames=sum(episode.frames for episode in episodes),
        steps=sum(episode.steps for episode in episodes),
        returns=returns,
        optimal_return=best,
        optimal_episodes=None if best is None else returns.count(best),
    )
    if options.json:
        _terminal.print_json(summary.as_json())
    else:
        _terminal.show(record_summary(summary))
    return _exit.DONE
