"""Action repeat: each action is taken several times in a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from efhorizon.transform.action_repeat import with_action_repeat
from efhorizon.what_if.base import Base
from efhorizon.what_if.change import Change, Changed

REPEATS = tuple(range(2, 9))


def changes(base: Base, *, repeats: Sequence[int] = REPEATS) -> Iterator[Change]:
    for times in repeats:
        if times <= base.mdp.horizon:
            yield _change(base, times)


def _change(base: Base, times: int) -> Change:
    def make() -> Changed:
        return Changed(with_action_repeat(base.mdp, times), steps_each=times)

    return Change("repeat", f"each action {times} times", "nothing", make, {"times": times})
