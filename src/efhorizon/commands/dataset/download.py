"""`efhorizon dataset download`: parts of a data set into the cache."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from efhorizon.commands import _arguments, _exit
from efhorizon.commands._exit import UsageError
from efhorizon.commands.dataset import _shared

if TYPE_CHECKING:
    from efhorizon.dataset.registry import Registry

HELP = "download MDPs of a data set into the cache"
DESCRIPTION = """\
Downloads MDPs into the cache (EFHORIZON_CACHE, or the platform's folder for
caches), where ef.load finds them. Every file's size and checksum is compared;
what does not match is refused and nothing of it is kept. A download that was
interrupted continues with the same command. With --into the tables are also put
into a folder, such as ./tables, where every command finds them by name.
"""
EXAMPLE = "efhorizon dataset download freeway_10_fs30 --into tables"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="MDPs")
    parser.add_argument("--all", action="store_true", help="every MDP of the data set")
    parser.add_argument(
        "--parts",
        metavar="A,B",
        help="which parts: table, bridge, analysis, runs, pictures, screens, or all (default: what ef.load opens)",
    )
    parser.add_argument("--into", type=Path, metavar="DIR", help="also put the tables into this folder, such as tables")
    _shared.add_remote(parser)
    _arguments.add_json(parser)


def kept(options: argparse.Namespace) -> str:
    return "what has come is kept; the same command continues"


def run(options: argparse.Namespace) -> int:
    from rich.progress import BarColumn, DownloadColumn

    from efhorizon.commands import _terminal
    from efhorizon.dataset.cache import asked, entry
    from efhorizon.dataset.finding import downloaded
    from efhorizon.dataset.remote import needed

    if bool(options.names) == options.all:
        raise UsageError("give the names of MDPs, or --all (for help: efhorizon dataset download --help)")
    remote = needed(options.remote)
    dataset = asked(remote)
    names = options.names or sorted(name for name, mdp in dataset.registry.mdps.items() if options.parts or _table(mdp))
    for name in names:
        entry(dataset.registry, name, remote.given)
    kinds = _kinds(options.parts, dataset.registry)
    done = []
    with _terminal.bars(_terminal.LineColumn("{task.description}"), BarColumn(), DownloadColumn()) as bars:
        task = bars.add_task("", total=None)
        for name in names:

            def on_progress(of: str, so_far: int, total: int) -> None:
                bars.update(task, description=of, completed=so_far, total=total)

            if kinds is None:
                path = downloaded(dataset, remote, name, on_progress, to_open=False)
                done.append({"name": name, "parts": dataset.parts(name), "table": str(path)})
            else:
                here = dataset.add(remote, name, kinds, on_progress)
                found = dataset.table(name)
                done.append({"name": name, "parts": here, "table": None if found is None else str(found)})
    for each in done:
        if options.into is not None and each["table"] is not None:
            each["into"] = str(_put(Path(each["table"]), options.into, each["name"]))
    if options.json:
        content = _shared.dataset_as_json(dataset.registry, remote.given)
        _terminal.print_json({**content, "folder": str(dataset.folder), "downloaded": done})
    else:
        for each in done:
            what = each.get("into") or each["table"] or ", ".join(each["parts"]) or "none of these parts"
            _terminal.show([f"{each['name']}: {what}"])
    return _exit.DONE


def _kinds(given: str | None, registry: Registry) -> list[str] | None:
    """The parts that were asked for; None: what a table is opened from."""
    from efhorizon.errors import StoreError

    known = sorted({kind for mdp in registry.mdps.values() for kind in mdp.parts})
    if given in (None, "all"):
        return known if given else None
    kinds = [kind.strip() for kind in given.split(",")]
    for kind in kinds:
        if kind not in known:
            raise StoreError(
                f"--parts {kind!r}: the data set has no such part, but {', '.join(known) or 'none at all'}"
            )
    return kinds


def _table(mdp: object) -> bool:
    from efhorizon.dataset.registry import OPENED, STOCHASTIC_FORMAT, MdpEntry

    assert isinstance(mdp, MdpEntry)
    return any(part.format in OPENED | {STOCHASTIC_FORMAT} for part in mdp.parts.values())


def _put(table: Path, folder: Path, name: str) -> Path:
    """A copy of a table in the folder where commands look for it; one that is there stays."""
    import shutil

    from efhorizon.errors import StoreError
    from efhorizon.io.files import written_aside

    target = folder / (name if table.is_dir() else f"{name}.npz")
    if target.exists():
        raise StoreError(f"{target}: there already, and not replaced")
    with written_aside(target) as temporary:
        if table.is_dir():
            shutil.copytree(table, temporary)
        else:
            shutil.copyfile(table, temporary)
    return target
