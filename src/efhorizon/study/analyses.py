"""Making the analysis of a table: what theory says about it, and pictures for people.

An analysis says what it was made from: the table, the code, the settings, the bounds. One that no longer matches is
made again, and so is one that is damaged. One that matches and has lost its pictures, as those in an export have, gets
them back; one of an older version gets what it lacks: the effective horizon with other rules for ties, the mean length
of an episode, and bounds and measures of hardness that were added or changed since.

A variant, an MDP with a policy to start from, is analyzed with that policy as exploration policy. Its start state and
its optimal episode look as those of the MDP do, so it shares their pictures.
"""

from __future__ import annotations

import json
import platform
import time
from dataclasses import asdict
from importlib import metadata

import numpy as np
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from efhorizon._version import __version__
from efhorizon.agents.deep.observations import observation_note
from efhorizon.bounds.analysis import BEHAVIOUR, Analysis, analysis_of, tie_figures, writable
from efhorizon.bounds.effective_horizon import effective_horizon_with
from efhorizon.bounds.measures import Measure
from efhorizon.bounds.registry import BUILT_IN, registered_bounds, registered_measures
from efhorizon.errors import InvalidTableError, StoreError
from efhorizon.forecast.features import sees_images
from efhorizon.gorp.ties import Ties
from efhorizon.io.behaviour import is_version, version_name
from efhorizon.io.decode import record_of
from efhorizon.io.names import is_safe_name
from efhorizon.mdp import TabularMDP
from efhorizon.planning.problem import DEFAULT_MAX_K, Problem, problem
from efhorizon.reasons.why import explained, why_within
from efhorizon.study.analysis_record import (
    SEPARATOR,
    UNIFORM,
    AnalysisProvenance,
    AnalysisRecord,
    AnalysisSettings,
    AnyAnalysis,
    CompleteFigures,
    MeasureFigures,
    Replay,
    StageSeconds,
    TableFigures,
    TieFigures,
    WitnessFigures,
    is_complete,
)
from efhorizon.study.answer_record import ReasonFigures, ReasonScene, WhyBasis
from efhorizon.study.deciding import deciding_state, state_of
from efhorizon.study.drawings import Pictures, drawn, episode_sheet, picture_note, reason_scenes, told
from efhorizon.study.results import Results
from efhorizon.study.variants import Explorer, PolicyFile, explorer

OTHER_RULES: tuple[Ties, ...] = ("lowest", "adversarial")
TIES_POINTS = 10_000_000  # lattice points of one m that other rules may take: a minute for each of them, at most

UCB = "ucb"  # the bound that only counts states

CompleteAnalysis = AnalysisRecord[CompleteFigures]


def is_whole(results: Results, name: str) -> bool:
    """Whether an analysis is there with all its pictures; one from an export has none."""
    try:
        return _has_pictures(results, results.analysis(name))
    except StoreError:
        return False


def current_analysis(
    results: Results, mdp: TabularMDP, *, max_k: int = DEFAULT_MAX_K, policy: PolicyFile | None = None
) -> CompleteAnalysis | None:
    """The analysis of a table, if it was made from the same inputs; pictures that are missing are drawn."""
    name = _name(mdp, policy)
    try:
        analysis = results.analysis(name) if results.has_analysis(name) else None
    except StoreError:
        return None
    if analysis is None or not is_complete(analysis) or not _is_made_from(analysis, _inputs(mdp, max_k, policy)):
        return None
    if not _has_pictures(results, analysis):
        pictures = _pictures_again(mdp, analysis, policy)
        if pictures is None:
            return None
        results.write_pictures(pictures)
    completed, pictures = _completed(mdp, analysis, policy)
    if completed is not analysis:
        results.write_analysis(completed, pictures)
    return completed


def is_current(results: Results, mdp: TabularMDP, *, max_k: int = DEFAULT_MAX_K, with_ties: bool = True) -> bool:
    """Whether there is a finished analysis of the table with its pictures, and with other rules for ties."""
    name = _name(mdp)
    try:
        analysis = results.analysis(name) if results.has_analysis(name) else None
    except StoreError:
        return False
    return (
        analysis is not None
        and is_complete(analysis)
        and _is_made_from(analysis, _inputs(mdp, max_k))
        and not (with_ties and analysis.figures.exact_by_ties is UNSET)
        and _has_pictures(results, analysis)
    )


def _completed(
    mdp: TabularMDP, analysis: CompleteAnalysis, policy: PolicyFile | None
) -> tuple[CompleteAnalysis, Pictures]:
    """The analysis with what older versions did not compute, and pictures of that."""
    pictures: Pictures = {}
    assert analysis.provenance is not None
    settings = analysis.provenance.settings
    max_k = (settings and settings.max_k) or DEFAULT_MAX_K
    lacks_ties, lacks_why = analysis.figures.exact_by_ties is UNSET, analysis.figures.why is UNSET
    missing = [bound for bound in registered_bounds() if bound.name not in analysis.figures.sample_complexity]
    if policy is None:
        analysis = _with_measures(mdp, analysis, max_k)
    if not lacks_ties and not lacks_why and not missing:
        return analysis, pictures
    guide = None if policy is None else explorer(mdp, policy)
    given = _problem(mdp, max_k, guide)
    if lacks_why:
        figures = _with_why(given, analysis.figures)
        figures = figures if guide is None else replace(figures, why=_reasons_of_variant(guide.mdp, figures))
        analysis = replace(analysis, figures=figures, reason_scenes=_reason_scenes(mdp, figures, analysis.id, pictures))
    if lacks_ties:
        figures = replace(analysis.figures, exploration_length=given.occupancy_minima.length)
        analysis = replace(analysis, figures=_with_ties(given, figures))
    if missing:
        found = {bound.name: bound(given) for bound in missing}
        reasons = {name: bound.reason for name, bound in found.items() if bound.reason is not None}
        complexities = {name: writable(bound.sample_complexity) for name, bound in found.items()}
        figures = replace(
            analysis.figures,
            sample_complexity={**analysis.figures.sample_complexity, **complexities},
            reasons={**analysis.figures.reasons, **reasons},
        )
        assert analysis.provenance is not None
        analysis = replace(
            analysis,
            figures=figures,
            titles={**analysis.titles, **{bound.name: bound.title for bound in missing}},
            provenance=replace(analysis.provenance, bounds=_inputs(mdp, max_k, policy).bounds),
        )
    return analysis, pictures


def _with_measures(mdp: TabularMDP, analysis: CompleteAnalysis, max_k: int) -> CompleteAnalysis:
    """The analysis with every measure of hardness in its present version; those of other people's packages stay."""
    assert analysis.provenance is not None
    known = {} if analysis.figures.measures is UNSET else analysis.figures.measures
    versions = {} if analysis.provenance.measures is UNSET else analysis.provenance.measures
    stale = [
        measure
        for measure in registered_measures()
        if measure.name not in known or measure.version is None or versions.get(measure.name) != measure.version
    ]
    if not stale:
        return analysis
    given = problem(mdp, max_k=max_k)
    found = {measure.name: _measure_figures(measure(given)) for measure in stale}
    return replace(
        analysis,
        figures=replace(analysis.figures, measures={**known, **found}),
        titles={**analysis.titles, **{measure.name: measure.title for measure in stale}},
        provenance=replace(
            analysis.provenance, measures={**versions, **{measure.name: measure.version for measure in stale}}
        ),
    )


def _with_why(given: Problem, figures: CompleteFigures) -> CompleteFigures:
    """The figures with the reasons why the MDP is hard."""
    horizon = figures.effective_horizon
    ties = "uniform" if figures.ties is UNSET else figures.ties
    found = why_within(given, horizon.k, horizon.m, is_exact=horizon.kind == "exact", ties=ties)
    content = json.loads(json.dumps(found.as_json()))  # numpy's floats become Python's
    reasons = [record_of(each, ReasonFigures, "a reason") for each in content["why"]]
    return replace(figures, why=reasons, why_basis=record_of(content["why_basis"], WhyBasis, "reasons"))


def _measure_figures(measure: Measure) -> MeasureFigures:
    return record_of(asdict(measure), MeasureFigures, "a measure of hardness")


def write_analysis(
    results: Results,
    mdp: TabularMDP,
    *,
    max_k: int = DEFAULT_MAX_K,
    policy: PolicyFile | None = None,
    build_seconds: float | None = None,
    verify_seconds: float | None = None,
) -> CompleteAnalysis:
    """Analyze a table and write the analysis with its pictures; returns what was written."""
    analysis, pictures = analysis_record(
        mdp, max_k=max_k, policy=policy, build_seconds=build_seconds, verify_seconds=verify_seconds
    )
    results.write_analysis(analysis, pictures)
    return analysis


def analysis_record(
    mdp: TabularMDP,
    *,
    max_k: int = DEFAULT_MAX_K,
    policy: PolicyFile | None = None,
    build_seconds: float | None = None,
    verify_seconds: float | None = None,
    analysis: Analysis | None = None,
) -> tuple[CompleteAnalysis, Pictures]:
    """Everything there is to say about a table, and its pictures by name; with a policy, about that variant of it.

    An `analysis` that is there already is not made again; other rules for ties are then as it has them.
    """
    if not mdp.is_complete:
        raise InvalidTableError(f"{_name(mdp)}: the table is unfinished; a study needs complete ones")
    began, name = time.monotonic(), _name(mdp, policy)
    unguided = problem(mdp, max_k=max_k)
    guide = None if policy is None else explorer(mdp, policy)
    given = unguided if guide is None else _problem(mdp, max_k, guide)
    is_new, analysis = analysis is None, analysis or explained(given, analysis_of(given))
    pictures: Pictures = {}
    start_picture = drawn(mdp, 0, f"{_name(mdp)}-start", pictures)
    episode = episode_sheet(unguided, f"{_name(mdp)}-episode", pictures)
    deciding = deciding_state(given, analysis, mdp, f"{name}-deciding", pictures)
    replayed = mdp.metadata.get("verification")
    verification = None if replayed is None else record_of(replayed, Replay, f"{_name(mdp)}: verification")
    figures = _with_ties(given, _figures(analysis)) if is_new else _figures(analysis)
    if guide is not None:
        figures = _of_variant(unguided, guide.mdp, figures, name)
    start_observation, start_drawing = told(mdp, 0)
    record = AnalysisRecord(
        id=name,
        suite=mdp.metadata.get("suite") or "unknown",
        game=mdp.metadata.get("game"),
        unshaped=mdp.metadata.get("unshaped"),
        shaping=mdp.metadata.get("shaping"),
        reward_factor=float(mdp.metadata.get("reward_factor", 1.0)),
        exploration=UNIFORM if guide is None else guide.record.label,
        explorer=UNSET if guide is None else guide.record,
        figures=figures,
        titles=dict(analysis.titles),
        table=TableFigures(
            num_states=mdp.num_states,
            num_raw_states=mdp.metadata.get("num_states_raw"),
            fingerprint=mdp.fingerprint(),
            layers=np.diff(unguided.timeline.starts).tolist(),
            frameskip=mdp.metadata.get("frameskip"),
            verification=verification,
        ),
        deciding=deciding,
        reason_scenes=_reason_scenes(mdp, figures, name, pictures),
        start_picture=start_picture,
        start_observation=start_observation,
        start_drawing=start_drawing,
        observation_note=observation_note(mdp) or UNSET,
        sees_images=UNSET if start_observation is UNSET else bool(sees_images(mdp.metadata)),
        picture_note=UNSET if start_picture is not None else picture_note(mdp) or UNSET,
        episode=episode,
        seconds=StageSeconds(
            build=build_seconds,
            verify=verification.seconds if verify_seconds is None and verification is not None else verify_seconds,
            analyze=round(time.monotonic() - began, 3),
        ),
        provenance=replace(
            _inputs(mdp, max_k, policy, is_finished=analysis.is_finished),
            efhorizon=__version__,
            packages={name: metadata.version(name) for name in ("numpy", "numba", "scipy")},
            python=platform.python_version(),
            machine=platform.machine(),
        ),
    )
    return record, pictures


def _problem(mdp: TabularMDP, max_k: int, guide: Explorer | None) -> Problem:
    return problem(mdp, max_k=max_k) if guide is None else problem(guide.mdp, policy=guide.policy, max_k=max_k)


def _figures(analysis: Analysis) -> CompleteFigures:
    content = json.loads(json.dumps(analysis.as_json()))  # numpy's floats become Python's
    return record_of(content, CompleteFigures, f"analysis of {analysis.id}")


def _of_variant(unguided: Problem, told_apart: TabularMDP, figures: CompleteFigures, name: str) -> CompleteFigures:
    """The figures of a variant. A policy that sees several frames tells more states apart than the MDP has: states are
    named as in the MDP, and the bound that only counts states counts those of the MDP."""

    def named(witness: WitnessFigures | None) -> WitnessFigures | None:
        return None if witness is None else replace(witness, state=state_of(told_apart, witness.state))

    counting = {bound.name: bound(unguided).sample_complexity for bound in registered_bounds() if bound.name == UCB}
    failing = figures.most_failures
    return replace(
        figures,
        id=name,
        num_states=unguided.mdp.num_states,
        sample_complexity=figures.sample_complexity | counting,
        deciding_state=named(figures.deciding_state),
        theorem_states={k: named(witness) for k, witness in figures.theorem_states.items()},
        most_failures=None if failing is None else replace(failing, state=state_of(told_apart, failing.state)),
        why=_reasons_of_variant(told_apart, figures),
    )


def _reasons_of_variant(told_apart: TabularMDP, figures: CompleteFigures) -> list[ReasonFigures] | UnsetType:
    if figures.why is UNSET:
        return UNSET
    return [
        replace(
            reason,
            state=state_of(told_apart, reason.state),
            states=list(dict.fromkeys(state_of(told_apart, state) for state in reason.states)),
        )
        for reason in figures.why
    ]


def _reason_scenes(
    mdp: TabularMDP, figures: CompleteFigures, name: str, pictures: Pictures
) -> list[ReasonScene] | UnsetType:
    return UNSET if figures.why is UNSET else reason_scenes(mdp, figures.why, name, pictures)


def _with_ties(given: Problem, figures: CompleteFigures) -> CompleteFigures:
    """The figures with the effective horizon for other rules for ties, where that is exact with the usual one."""
    if figures.effective_horizon.kind == "exact":
        found = {
            rule: record_of(
                tie_figures(effective_horizon_with(given, rule, max_points=TIES_POINTS)), TieFigures, f"ties {rule}"
            )
            for rule in OTHER_RULES
        }
    else:
        unknown = TieFigures(reason="not computed: the effective horizon with uniform ties is not exact")
        found = dict.fromkeys(OTHER_RULES, unknown)
    return replace(figures, exact_by_ties=found)


def _name(mdp: TabularMDP, policy: PolicyFile | None = None) -> str:
    name = mdp.metadata.get("id")
    if policy is not None:
        name = f"{name}{SEPARATOR}{policy.label}"
    if not is_safe_name(name):
        raise InvalidTableError(f"the table's name {str(name)[:80]!r} cannot be the name of a file")
    return str(name)


def _inputs(
    mdp: TabularMDP, max_k: int, policy: PolicyFile | None = None, *, is_finished: bool = True
) -> AnalysisProvenance:
    """Everything that an analysis depends on. A study's takes the time that it needs: one cut short is none of it."""
    settings = AnalysisSettings(max_k=max_k, gamma=1.0, exploration=UNIFORM)
    if policy is not None:
        settings = replace(settings, exploration=policy.label, network=policy.network)
    if not is_finished:
        settings = replace(settings, cut_short=True)
    return AnalysisProvenance(
        table_fingerprint=mdp.fingerprint(),
        table_inputs=mdp.metadata.get("inputs"),
        code=version_name("analysis", BEHAVIOUR),
        settings=settings,
        bounds={bound.name: bound.version for bound in registered_bounds()},
        measures={each.name: each.version for each in registered_measures()} if policy is None else UNSET,
    )


def _is_made_from(analysis: AnyAnalysis, inputs: AnalysisProvenance) -> bool:
    made_from = analysis.provenance
    return (
        made_from is not None
        and made_from.table_fingerprint == inputs.table_fingerprint
        and made_from.table_inputs == inputs.table_inputs
        and is_version(made_from.code, "analysis", BEHAVIOUR)
        and _is_enough(made_from.settings, inputs.settings)
        and made_from.bounds == {name: inputs.bounds.get(name) for name in made_from.bounds}
        and all(inputs.bounds[name] == BUILT_IN for name in inputs.bounds.keys() - made_from.bounds.keys())
        and None not in inputs.bounds.values()
    )


def _is_enough(made_with: AnalysisSettings | None, asked: AnalysisSettings | None) -> bool:
    """Whether the settings are those asked for; more steps of planning may have been tried."""
    if made_with is None or asked is None or made_with.max_k is None or asked.max_k is None:
        return made_with == asked
    return made_with.max_k >= asked.max_k and replace(made_with, max_k=asked.max_k) == asked


def _has_pictures(results: Results, analysis: AnyAnalysis) -> bool:
    try:
        return all(results.picture(name) for name in analysis.pictures.values())
    except StoreError:
        return False


def _pictures_again(mdp: TabularMDP, analysis: CompleteAnalysis, policy: PolicyFile | None) -> Pictures | None:
    """The pictures of an analysis, drawn from its table; None if they would not be the ones that it names."""
    pictures: Pictures = {}
    if drawn(mdp, 0, f"{_name(mdp)}-start", pictures) != analysis.start_picture:
        return None
    deciding = analysis.deciding
    if deciding is not None and deciding.picture is not None:
        is_there = deciding.state < mdp.num_states
        name = f"{_name(mdp, policy)}-deciding"
        if not is_there or drawn(mdp, deciding.state, name, pictures) != deciding.picture:
            return None
    scenes = analysis.reason_scenes
    if scenes is not UNSET and _reason_scenes(mdp, analysis.figures, _name(mdp, policy), pictures) != scenes:
        return None
    episode = episode_sheet(problem(mdp), f"{_name(mdp)}-episode", pictures)
    return pictures if episode == analysis.episode else None
