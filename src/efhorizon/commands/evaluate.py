"""`efhorizon evaluate`: the paper's tables from a study."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from efhorizon.commands import _arguments, _exit, _types

if TYPE_CHECKING:
    from efhorizon.evaluation.live_curves import LiveFigure
    from efhorizon.evaluation.source import StudyData
    from efhorizon.evaluation.stochastic import StochasticTables
    from efhorizon.evaluation.tables import Tables

HELP = "compare each bound with what PPO and DQN needed"
DESCRIPTION = """\
Prints the paper's tables for your own study: how well each bound predicts the
sample complexity of PPO and DQN, with bootstrap intervals and the paper's
numbers in parentheses. Only trained networks count, on MDPs that random play
does not solve; the same by the paper's own rule follows. With --export and
--publish it also writes files.
"""
EXAMPLE = "efhorizon evaluate study"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _arguments.add_results(parser)
    parser.add_argument("--export", type=Path, metavar="DIR", help="write summary.csv and the rows as Parquet there")
    parser.add_argument(
        "--publish", type=Path, metavar="DIR", help="write tables.md, lists.md and figures there, as files to commit"
    )
    parser.add_argument(
        "--resamples",
        type=_types.count(most=_arguments.MAX_RUNS),
        default=2000,
        metavar="N",
        help="bootstrap resamples (default: 2000)",
    )
    _arguments.add_seed(parser, "the bootstrap")
    _arguments.add_published(parser)
    _arguments.add_with_chance(parser)
    _arguments.add_json(parser)


def kept(options: argparse.Namespace) -> str:
    written = [str(folder) for folder in (options.export, options.publish) if folder is not None]
    if not written:
        return _exit.NOTHING_KEPT
    return f"each file in {' and '.join(written)} is complete, but some may be of before; run the same command again"


def run(options: argparse.Namespace) -> int:
    from efhorizon.commands import _terminal
    from efhorizon.errors import EfhorizonError
    from efhorizon.evaluation.beside import beside
    from efhorizon.evaluation.live_curves import as_json, live_figures
    from efhorizon.evaluation.original import original
    from efhorizon.evaluation.source import study_data, write_export
    from efhorizon.evaluation.stochastic import as_json as chance_as_json
    from efhorizon.evaluation.stochastic import stochastic_tables
    from efhorizon.evaluation.tables import plain, tables_by_rule
    from efhorizon.render.terminal.beside import published_beside
    from efhorizon.render.terminal.evaluation import evaluation
    from efhorizon.render.terminal.live import live_evaluation
    from efhorizon.render.terminal.stochastic_evaluation import stochastic_evaluation

    data = study_data(options.path)
    if options.with_chance is not None:
        data = data.with_stochastic(options.with_chance)
    figures = live_figures(data.live)
    chance = stochastic_tables(data, num_resamples=options.resamples, seed=options.seed)
    if (figures or chance is not None) and not data.summaries:
        return _without_tables(options, data, figures, chance)
    if not data.summaries:
        nothing = f"{options.path}: nothing to evaluate, no complete analysis (efhorizon study makes them)"
        raise EfhorizonError("; ".join((nothing, *data.notes)))
    compared = None if options.published is None else beside(original(options.published), data)
    tables, by_papers_rule = tables_by_rule(data, num_resamples=options.resamples, seed=options.seed)
    exported = write_export(options.export, data) if options.export else []
    published = _published(options.publish, data, tables, by_papers_rule) if options.publish else []
    if options.json:
        files = {"exported": [str(path) for path in exported], "published": [str(path) for path in published]}
        both = {**plain(tables), "by_papers_rule": plain(by_papers_rule)}
        both |= {"live": as_json(figures)} if figures else {}
        both |= {} if chance is None else {"with_chance": plain(chance_as_json(chance))}
        both |= {} if compared is None else {"beside_published": plain(compared)}
        _terminal.print_json({"path": str(options.path), **files, **both})
    else:
        _terminal.show(evaluation(tables, by_papers_rule))
        _terminal.show(stochastic_evaluation(chance))
        _terminal.show(live_evaluation(figures))
        if compared is not None:
            _terminal.show(published_beside(compared))
    for path in (*exported, *published):
        _terminal.say(f"wrote {path}", style="dim")
    return _exit.DONE


def _without_tables(
    options: argparse.Namespace, data: StudyData, figures: list[LiveFigure], chance: StochasticTables | None
) -> int:
    """There are runs in environments or with chance, and nothing else."""
    from efhorizon.commands import _terminal
    from efhorizon.evaluation.live_curves import as_json
    from efhorizon.evaluation.source import write_export
    from efhorizon.evaluation.stochastic import as_json as chance_as_json
    from efhorizon.evaluation.tables import plain
    from efhorizon.render.terminal.live import live_evaluation
    from efhorizon.render.terminal.stochastic_evaluation import stochastic_evaluation

    exported = write_export(options.export, data) if options.export and chance is not None else []
    written: list[Path] = []
    if options.publish:
        _check_report()
        from efhorizon.render.markdown import write_publication
        from efhorizon.render.markdown.live_page import live_files
        from efhorizon.render.markdown.stochastic_page import stochastic_files

        written = write_publication(options.publish, {**live_files(figures), **stochastic_files(chance)})
    if options.json:
        content: dict[str, object] = {"path": str(options.path), "published": [str(path) for path in written]}
        content |= {"exported": [str(path) for path in exported]} if exported else {}
        content |= {"live": as_json(figures)} if figures else {}
        content |= {} if chance is None else {"with_chance": plain(chance_as_json(chance))}
        _terminal.print_json(content)
    else:
        _terminal.show(stochastic_evaluation(chance))
        _terminal.show(live_evaluation(figures))
    for path in (*exported, *written):
        _terminal.say(f"wrote {path}", style="dim")
    return _exit.DONE


def _published(folder: Path, data: StudyData, tables: Tables, by_papers_rule: Tables) -> list[Path]:
    _check_report()
    from efhorizon.render.markdown import publication, write_publication

    return write_publication(folder, publication(data, tables, by_papers_rule))


def _check_report() -> None:
    """Pages and figures are the report's, which is an extra."""
    from importlib.util import find_spec

    from efhorizon.suites.simulator import MissingExtraError

    if find_spec("jinja2") is None:
        raise MissingExtraError("report", "jinja2")
