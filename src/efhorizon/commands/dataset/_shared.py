"""What the commands about data sets share."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from efhorizon.dataset.registry import MdpEntry, Registry


def add_remote(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--remote",
        metavar="PLACE",
        help="where the data set is: a folder, an http(s) address, or hf://OWNER/NAME (default: $EFHORIZON_REMOTE)",
    )


def files(count: int) -> str:
    return f"{count:,} file{'s' * (count != 1)}"


def megabytes(size: float) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 50_000 else f"{size / 1e3:,.1f} kB"


def entry_as_json(name: str, mdp: MdpEntry, registry: Registry, cached: list[str]) -> dict[str, Any]:
    """An MDP of a data set, for programs."""
    parts = {
        kind: {
            "format": part.format,
            "path": part.path,
            "licence": part.licence,
            "separate": part.separate,
            "files": len(part.files),
            "bytes": registry.size([part]),
            "cached": kind in cached,
        }
        for kind, part in mdp.parts.items()
    }
    return {
        "name": name,
        "suite": mdp.suite,
        "kind": mdp.kind,
        "horizon": mdp.horizon,
        "num_states": mdp.num_states,
        "num_actions": mdp.num_actions,
        "effective_horizon": mdp.effective_horizon,
        "verified": mdp.verified,
        "num_runs": mdp.num_runs,
        "base": mdp.base,
        "fingerprint": mdp.fingerprint,
        "parts": parts,
        "bytes": registry.size(mdp.parts.values()),
    }


def dataset_as_json(registry: Registry, remote: str) -> dict[str, Any]:
    return {"remote": remote, "dataset": registry.name, "version": registry.version, "content": registry.content}
