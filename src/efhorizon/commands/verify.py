"""`efhorizon verify`: a table against its environment."""

from __future__ import annotations

import argparse

from rich.console import Console

from efhorizon.build.target import catalogue_target
from efhorizon.build.verify import verify
from efhorizon.cli import EXIT_ERROR, messages, print_json
from efhorizon.errors import EfhorizonError, StoreError
from efhorizon.io import store
from efhorizon.io.tables import load
from efhorizon.mdp import TabularMDP
from efhorizon.suites import registry
from efhorizon.suites.specification import SimulatorSpec


def run(options: argparse.Namespace) -> int:
    if options.path.is_dir() and (damage := store.damage(options.path)):
        raise StoreError(damage)
    mdp = load(options.path)
    spec = specification(mdp, options.id)
    with messages.status(f"replaying {options.episodes} episodes"):
        report = verify(mdp, spec, num_episodes=options.episodes, seed=options.seed)
    content = {"id": mdp.metadata.get("id", options.id), "path": str(options.path), **report.as_json()}
    if options.json:
        print_json(content)
    else:
        console = Console(highlight=False)
        verdict = "[green]exact[/green]" if report.is_exact else "[red]not exact[/red]"
        screens = "with screens" if report.screens_compared else "without screens"
        console.print(
            f"{content['id']}: {verdict}; {report.num_steps:,} steps of {report.num_episodes} episodes compared "
            f"{screens} in {report.seconds:.1f} s"
        )
        if report.difference is not None:
            console.print(f"first difference: {report.difference}", markup=False, soft_wrap=True)
    return 0 if report.is_exact else EXIT_ERROR


def specification(mdp: TabularMDP, name: str | None) -> SimulatorSpec:
    """The environment of a table: by its catalogue name, or for other environments by what the file says."""
    metadata = mdp.metadata
    suite = registry.suite(metadata.get("suite"))
    if name is None and not suite.has_names:
        return SimulatorSpec(suite.name, suite.trusted_arguments(metadata["provenance"]["arguments"]))
    identifier = name or metadata.get("catalogue_name") or metadata.get("id")
    if identifier is None:
        raise EfhorizonError("the file does not say which environment it is; give --id NAME")
    return catalogue_target(identifier, mdp.horizon).spec
