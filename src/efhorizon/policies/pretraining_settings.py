"""What is learned on and how: the settings of pretraining, each with its source.

    paper   Laidlaw, Russell and Dragan 2023, Appendix F, 'Exploration policies'
    Cobbe   Cobbe et al. 2020, 'Leveraging procedural generation to benchmark reinforcement learning', and its code
    suite   as this package's Procgen tables have it: a pretrained network must see and do the same

The paper calls its method very similar to Cobbe's, so what it does not say is Cobbe's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from efhorizon.catalog import UnknownNameError
from efhorizon.errors import EfhorizonError
from efhorizon.suites import procgen

PAPER_STEPS = 25_000_000  # paper

Precision = Literal["float32", "bfloat16"]
Difficulty = Literal["easy", "hard"]


class PretrainingError(EfhorizonError, ValueError):
    """Settings with which nothing can be learned; the message is one line for the user."""


class UnknownGameError(UnknownNameError):
    """No Procgen table is of such a game; the message is one line for the user."""

    def __init__(self, game: str) -> None:
        known = " ".join(procgen.GAMES)
        LookupError.__init__(self, f"Procgen's tables have no game called {game[:60]!r}; their games: {known}")


@dataclass(frozen=True)
class PretrainingSettings:
    """All that decides the numbers of a run, besides how long it is."""

    game: str
    frameskip: int  # suite
    num_actions: int  # suite: the first ones of Procgen's 15
    difficulty: Difficulty = "easy"  # paper
    first_level: int = 1 + max(max(levels) for levels in procgen.LEVELS.values())  # the first outside BRIDGE
    num_levels: int = 500  # paper
    num_envs: int = 64  # Cobbe
    rollout_length: int = 256  # Cobbe: steps of each environment between updates
    num_epochs: int = 3  # Cobbe
    num_minibatches: int = 8  # Cobbe
    rate: float = 5e-4  # Cobbe: Adam's learning rate, constant
    adam_epsilon: float = 1e-5  # that of Cobbe's code and of Stable-Baselines3
    clip: float = 0.2  # Cobbe
    gamma: float = 0.999  # Cobbe; the paper does not say
    gae_lambda: float = 0.95  # Cobbe
    entropy_weight: float = 0.1  # paper; Cobbe: 0.01
    value_weight: float = 0.5  # Cobbe
    max_gradient_norm: float = 0.5  # Cobbe
    reward_clip: float = 10.0  # Cobbe's code: of rewards divided by the deviation of returns
    seed: int = 0
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        for name in ("num_levels", "frameskip", "num_actions", "num_envs", "rollout_length", "num_epochs"):
            if getattr(self, name) < 1:
                raise PretrainingError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.num_minibatches < 1 or self.samples % self.num_minibatches:
            raise PretrainingError(
                f"a rollout of {self.samples} timesteps does not divide into {self.num_minibatches} minibatches"
            )
        if not 0 <= self.gamma <= 1 or self.entropy_weight < 0 or self.rate <= 0:
            raise PretrainingError(
                f"discount {self.gamma}, entropy {self.entropy_weight}, learning rate {self.rate}: not all are possible"
            )

    @property
    def samples(self) -> int:
        """Timesteps of one rollout."""
        return self.num_envs * self.rollout_length

    @property
    def minibatch(self) -> int:
        return self.samples // self.num_minibatches

    @property
    def levels(self) -> range:
        return range(self.first_level, self.first_level + self.num_levels)


def settings_for(game: str, **changes: Any) -> PretrainingSettings:
    """The paper's settings for a game, with the frameskip and the actions of its tables."""
    if game not in procgen.GAMES:
        raise UnknownGameError(game)
    known = procgen.GAMES[game]
    return PretrainingSettings(
        **{"game": game, "frameskip": known.frameskip, "num_actions": known.num_actions, **changes}
    )
