"""A case: one damaged input. Its name is all that is needed to make it again."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

Family = Literal["damage", "flip"]  # structured mutations, or one flipped bit


@dataclass(frozen=True)
class Case:
    """The damaged input with this number in the series of a kind, a family and a seed."""

    kind: str
    family: Family
    seed: int
    number: int

    @classmethod
    def named(cls, name: str) -> Case:
        kind, family, seed, number = name.split(":")
        if family not in ("damage", "flip"):
            raise ValueError(f"{family} is neither damage nor flip")
        return cls(kind, "flip" if family == "flip" else "damage", int(seed), int(number))

    def __str__(self) -> str:
        return f"{self.kind}:{self.family}:{self.seed}:{self.number}"

    def rng(self) -> Random:
        """The same numbers each time."""
        return Random(str(self))

    def turn(self, length: int, attempt: int = 0) -> int:
        """Which of so many things is due: each has its turn before any has a second, in the order of the seed."""
        order = Random(f"{self.kind}:{self.seed}").sample(range(length), length)
        return order[(self.number + attempt) % length]

    @property
    def command(self) -> str:
        """What to type to see this case again."""
        return f"python -m tests.fuzz --case {self}"
