"""Writing the site: every page, picture and download, into a folder that is put in place only once it is complete."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from efhorizon._version import __version__
from efhorizon.errors import EfhorizonError, StoreError
from efhorizon.evaluation import summary_csv
from efhorizon.evaluation.beside import beside
from efhorizon.evaluation.bound_table import DEFAULT_RESAMPLES
from efhorizon.evaluation.live_curves import live_figures
from efhorizon.evaluation.original import Original
from efhorizon.evaluation.source import StudyData, study_data, write_export
from efhorizon.evaluation.stochastic import StochasticTables, stochastic_tables
from efhorizon.evaluation.tables import Tables, tables_by_rule
from efhorizon.io.checksums import LIST, write_listed
from efhorizon.io.files import written_aside
from efhorizon.render.charts.live import live_chart
from efhorizon.render.charts.svg import printable, standalone
from efhorizon.render.html.diagnosis_page import diagnoses, diagnosis_link, film_of
from efhorizon.render.html.entries import MdpEntry, study_entries
from efhorizon.render.html.front_page import front_page
from efhorizon.render.html.listing_page import listing_page
from efhorizon.render.html.live_page import live_page
from efhorizon.render.html.marker import check_replaceable, write_marker
from efhorizon.render.html.mdp_page import mdp_page
from efhorizon.render.html.names import page_link, slug
from efhorizon.render.html.policy_changes import FIGURE_NAME, is_variant
from efhorizon.render.html.published_page import LINK, TITLE, published_page
from efhorizon.render.html.stochastic_page import LINK as CHANCE_LINK
from efhorizon.render.html.stochastic_page import TITLE as CHANCE_TITLE
from efhorizon.render.html.stochastic_page import sticky_part, stochastic_page
from efhorizon.study import built_tables
from efhorizon.study.export import MDPS, RUNS
from efhorizon.study.live_export import FILE as LIVE
from efhorizon.study.pictures import Picture
from efhorizon.study.results import Results, is_results
from efhorizon.study.stochastic_results import ANALYSES
from efhorizon.study.stochastic_results import RUNS as STOCHASTIC_RUNS

DOWNLOADS = "data"
STOCHASTIC = (ANALYSES, STOCHASTIC_RUNS)
_ASSETS = ("charts.css", "site.css", "theme.js", "scatter.js", "table.js", "player.js", "icon.svg")
_PAGES = (("index.html", "Overview"), ("mdps.html", "MDPs"), ("data.html", "Data"), ("reproduce.html", "Reproduce"))
_LIVE_PAGE = ("full-length.html", "Full length")
_DIAGNOSES = ("diagnoses.html", "Diagnoses")


@dataclass(frozen=True)
class WrittenReport:
    """A report that was written."""

    path: Path
    num_mdps: int
    num_files: int
    num_bytes: int
    notes: tuple[str, ...]  # what was left out, and why

    @property
    def index(self) -> Path:
        return self.path / "index.html"


def write_report(
    study: Path,
    out: Path,
    *,
    num_resamples: int = DEFAULT_RESAMPLES,
    published: Original | None = None,
    with_chance: Path | None = None,
) -> WrittenReport:
    """Turn a results directory, an export of one or a summary.csv into a site in `out`.

    With what the paper's authors have `published` there is a page that shows it beside the study; tables with chance
    are those of the study, or of the results `with_chance`.
    """
    out = Path(os.path.realpath(out))  # a link is followed, not replaced
    check_replaceable(out, study)
    environment = _environment()
    found, notes_on_them = diagnoses(study)
    if found and not is_results(study) and not (study / MDPS).exists():
        return _write_diagnoses_only(study, out, environment, found, notes_on_them)
    data = study_data(study) if with_chance is None else study_data(study).with_stochastic(with_chance)
    chance = stochastic_tables(data, num_resamples=num_resamples)
    entries = study_entries(data)
    if not entries and chance is not None:
        return _write_chance_only(out, environment, chance)
    if not entries:
        raise StoreError(nothing_to_show(data))
    tables, by_papers_rule = tables_by_rule(data, num_resamples=num_resamples)
    with written_aside(out) as folder:
        folder.mkdir()
        links = [(entry.name, page_link(entry.name)) for entry in entries]
        live = (_LIVE_PAGE,) if live_figures(data.live) else ()
        diagnosed = (_DIAGNOSES,) if found else ()
        more = () if published is None else ((LINK, TITLE),)
        stochastic = () if chance is None else ((CHANCE_LINK, CHANCE_TITLE),)
        site = _Site(folder, environment, links, (*_PAGES[:2], *stochastic, *live, *diagnosed, *_PAGES[2:], *more))
        if chance is not None:
            site.write(CHANCE_LINK, "with-chance.html", stochastic_page(chance, dict(links)))
        if published is not None:
            site.write(LINK, "published.html", published_page(beside(published, data)))
        notes = _write_mdp_pages(site, data, entries, chance) + _write_downloads(folder / DOWNLOADS, data)
        notes += _write_diagnoses(site, study, found) + notes_on_them
        _write_top_pages(site, data, entries, tables, by_papers_rule, notes)
        write_marker(folder)
        written = [path for path in folder.rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in written)
    return WrittenReport(out, len(entries), len(written), size, (*tables.notes, *notes))


def nothing_to_show(data: StudyData) -> str:
    """What is missing, and the command that makes it."""
    names = sorted({row.id for row in data.runs})
    if names:
        trained = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        return (
            f"{data.path}: nothing to show: there are runs on {trained} but no analysis; "
            f"run: efhorizon analyze {shlex.quote(names[0])} --results {shlex.quote(str(data.path))}"
        )
    return (
        f"{data.path}: nothing to show: no analysis and no runs here; run efhorizon analyze TABLE --results "
        f"{shlex.quote(str(data.path))}, or efhorizon study NAME"
    )


@dataclass(frozen=True)
class _Site:
    """A folder that pages are written into."""

    folder: Path
    environment: Environment
    pages: list[tuple[str, str]]  # name and link of every MDP, in order
    navigation: Sequence[tuple[str, str]]  # link and name of every page that the top of a page links to

    def write(self, name: str, template: str, context: Mapping[str, Any]) -> None:
        depth = name.count("/")
        text = self.environment.get_template(template).render(
            **context,
            page=name,
            root="../" * depth,
            navigation=self.navigation,
            version=__version__,
        )
        self.write_bytes(name, text.encode("utf-8", "replace"))  # a lone surrogate must not stop the report

    def write_bytes(self, name: str, content: bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _write_diagnoses_only(
    study: Path, out: Path, environment: Environment, found: Mapping[str, dict[str, Any]], notes: list[str]
) -> WrittenReport:
    """A site of a results folder that has nothing but diagnoses."""
    with written_aside(out) as folder:
        folder.mkdir()
        site = _Site(folder, environment, [], (("index.html", _DIAGNOSES[1]),))
        notes = _write_diagnoses(site, study, found) + notes
        site.write_bytes("index.html", (folder / _DIAGNOSES[0]).read_bytes())
        _write_assets(site)
        write_marker(folder)
        written = [path for path in folder.rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in written)
    return WrittenReport(out, len(found), len(written), size, tuple(notes))


def _write_diagnoses(site: _Site, study: Path, found: Mapping[str, dict[str, Any]]) -> list[str]:
    """A page for each diagnosis and one that lists them; returns what was wrong with films."""
    notes, listed = [], []
    for stem, context in found.items():
        if context["film"] is not None:
            try:
                site.write_bytes(f"pictures/{slug(stem)}-film.png", film_of(study, stem))
                context["film"]["picture"] = f"../pictures/{slug(stem)}-film.png"
            except StoreError as error:
                context["film"] = None
                notes.append(f"film left out: {error}")
        site.write(diagnosis_link(stem), "diagnosis.html", context)
        listed.append((diagnosis_link(stem), context["title"], context["verdict"]))
    if found:
        site.write(_DIAGNOSES[0], "diagnoses.html", {"diagnoses": listed})
    return notes


def _write_chance_only(out: Path, environment: Environment, chance: StochasticTables) -> WrittenReport:
    """A site of results that have nothing but tables with chance."""
    with written_aside(out) as folder:
        folder.mkdir()
        site = _Site(folder, environment, [], (("index.html", CHANCE_TITLE),))
        site.write("index.html", "with-chance.html", stochastic_page(chance, {}))
        _write_assets(site)
        write_marker(folder)
        written = [path for path in folder.rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in written)
    return WrittenReport(out, len(chance.lines), len(written), size, chance.notes)


def _write_mdp_pages(
    site: _Site, data: StudyData, entries: Sequence[MdpEntry], chance: StochasticTables | None
) -> list[str]:
    """A page for each MDP; returns what was wrong with pictures."""
    notes, results = [], Results(data.path)
    by_name = {entry.name: entry for entry in entries}
    without = {entry.name for entry in entries if _has_lost_pictures(results, entry)}
    if without:
        whose = "states" if len(without) == len(entries) else f"{len(without)} of {len(entries)} MDPs"
        notes.append(f"no pictures of {whose}: an export has none, so neither has an analysis taken from one")
    for number, entry in enumerate(entries):
        pictures: dict[str, str] = {}
        for kind, given in _pictures(entry).items() if entry.name not in without else ():
            try:
                picture = results.picture(given)
                _check_frames(entry, given, picture)
            except StoreError as error:
                notes.append(f"picture left out: {error}")
                continue
            link = f"pictures/{slug(entry.name)}-{kind}.png"
            site.write_bytes(link, picture.content)
            pictures[given] = f"../{link}"
        context = mdp_page(entry, data.titles, pictures, by_name) | {"sticky": sticky_part(chance, entry.name)}
        neighbours = {
            "previous": site.pages[number - 1] if number > 0 else None,
            "next": site.pages[number + 1] if number + 1 < len(entries) else None,
        }
        site.write(page_link(entry.name), "mdp.html", context | neighbours)
    return notes


def _has_lost_pictures(results: Results, entry: MdpEntry) -> bool:
    """Whether an analysis names pictures and not one of them is there."""
    named = _pictures(entry)
    return bool(named) and not any(map(results.has_picture, named.values()))


def _pictures(entry: MdpEntry) -> dict[str, str]:
    return {} if entry.analysis is None else entry.analysis.pictures


def _check_frames(entry: MdpEntry, given: str, picture: Picture) -> None:
    """A sprite sheet must hold all the frames that the analysis says it holds."""
    episode = entry.analysis.episode if entry.analysis is not None else None
    if episode is None or given != episode.picture:
        return
    lines = -(-episode.frames // episode.columns)
    if episode.columns * episode.width > picture.width or lines * episode.height > picture.height:
        raise StoreError(f"{given}: {picture.width} x {picture.height} pixels do not hold {episode.frames} frames")


def _write_downloads(folder: Path, data: StudyData) -> list[str]:
    """The study as CSV and Parquet; without pyarrow as CSV only, with a note."""
    folder.mkdir()
    try:
        write_export(folder, data)
    except EfhorizonError as error:
        write_listed(folder, {summary_csv.FILE: summary_csv.encoded_summaries(data.summaries)})
        return [f"no Parquet files: {error}"]
    return []


def _write_top_pages(
    site: _Site,
    data: StudyData,
    entries: Sequence[MdpEntry],
    tables: Tables,
    by_papers_rule: Tables,
    notes: Sequence[str],
) -> None:
    front = front_page(entries, tables, by_papers_rule, data.titles, notes)
    site.write("index.html", "index.html", front)
    site.write("mdps.html", "mdps.html", listing_page(entries))
    figures = {f"figures/{slug(each.bound)}-{each.algorithm}.svg": each.plain for each in front["scatters"]}
    figures |= {f"figures/{FIGURE_NAME}-{slug(each.bound)}.svg": each.plain for each in front["change_figures"]}
    if front["min_k_chart"] is not None:
        figures["figures/min-k.svg"] = front["min_k_chart"]
    live = live_figures(data.live)
    if live:
        site.write(_LIVE_PAGE[0], "full-length.html", live_page(live))
        figures |= {f"figures/live-{slug(each.id)}.svg": live_chart(each) for each in live}
    for name, picture in figures.items():
        site.write_bytes(name, standalone(picture).encode("utf-8", "replace"))
    known = (summary_csv.FILE, MDPS, RUNS, LIVE, *STOCHASTIC, built_tables.FILE, LIST)
    names = [name for name in known if (site.folder / DOWNLOADS / name).exists()]
    downloads = [(name, (site.folder / DOWNLOADS / name).stat().st_size) for name in names]
    num_mdps = sum(not is_variant(entry) for entry in entries)
    site.write("data.html", "data.html", {"downloads": downloads, "figures": sorted(figures), "num_mdps": num_mdps})
    site.write("reproduce.html", "reproduce.html", {"entries": entries, "tables": tables})
    _write_assets(site)


def _write_assets(site: _Site) -> None:
    for name in _ASSETS:
        site.write_bytes(f"assets/{name}", files("efhorizon.render.html").joinpath("assets", name).read_bytes())


def _environment() -> Environment:
    """Templates escape everything that is not markup already, without control characters; unknown names fail."""
    return Environment(
        loader=PackageLoader("efhorizon.render.html"),
        autoescape=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
