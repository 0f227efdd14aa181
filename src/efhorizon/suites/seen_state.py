"""A state of a table as people see it: what is observed there, what its environment draws, how actions are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from efhorizon.errors import EfhorizonError
from efhorizon.mdp import TabularMDP
from efhorizon.suites.action_names import action_names
from efhorizon.suites.drawing import observation_text, observation_value, text_drawing


@dataclass(frozen=True)
class SeenState:
    """The state that decides an analysis, say; nothing is seen where there is none."""

    observation: str | None = None  # in one line
    value: Any = None  # the same in plain types
    drawing: str | None = None  # lines of text
    actions: tuple[str, ...] = ()

    @classmethod
    def of(cls, mdp: TabularMDP, state: int | None) -> SeenState:
        names = action_names(mdp.metadata, mdp.num_actions)
        if state is None:
            return cls(actions=names)
        try:
            observed, value = observation_text(mdp, state), observation_value(mdp, state)
            return cls(observed, value, text_drawing(mdp, state), names)
        except EfhorizonError:  # a damaged screen is no reason to lose an analysis
            return cls(actions=names)

    def in_json(self, analysis: Mapping[str, Any], reasons: Sequence[SeenState] = ()) -> dict[str, Any]:
        """An analysis as JSON with what is seen in its deciding state and those of its reasons, and names of actions.

        An unfinished table has no reasons."""
        deciding = analysis.get("deciding_state")
        if deciding is not None:
            deciding = {**deciding, "observation": self.value, "drawing": self.drawing}
        found = {**analysis, "action_names": list(self.actions), "deciding_state": deciding}
        if "why" in analysis:
            found["why"] = [
                {**reason, "observation": seen.value, "drawing": seen.drawing}
                for reason, seen in zip(analysis["why"], reasons, strict=True)
            ]
        return found
