"""Under which terms each part of a data set can be passed on.

What efhorizon itself makes (tables, analyses, runs) is CC-BY-4.0. Screens and raw emulator states show what an
environment shows. Those of MiniGrid and Procgen are free software's; those of commercial games are their owners', so
they are a part of their own that can be left out. A suite that is not known counts as commercial.
"""

from __future__ import annotations

OWN = "CC-BY-4.0"
OWNERS = "screens-of-their-owners"
_FREE_SCREENS = {"minigrid": "Apache-2.0", "procgen": "MIT"}  # the licences of the environments that draw them

TEXT = """\
# Licences

| part | licence |
|---|---|
| tables (`mdps/*/table`, `mdps/*/consolidated.npz`), analyses, runs, lists | CC-BY-4.0, https://creativecommons.org/licenses/by/4.0/ |
| screens and pictures of MiniGrid inside `mdps/` | as the environment: Apache-2.0, https://github.com/Farama-Foundation/Minigrid |
| screens and pictures of Procgen inside `mdps/` | as the environment: MIT, https://github.com/openai/procgen |
| the folder `screens/`, if it is here | not ours to license: what commercial games, and environments that we know nothing of, show on their screens, and states of their emulators |

`screens/` is a part of its own. Delete the folder and the rest stays valid: `efhorizon dataset verify` accepts it, and
tables load without their screens.

Please cite the data set and the paper: Laidlaw, Russell and Dragan, "Bridging RL Theory and Practice with the Effective
Horizon", NeurIPS 2023.
"""  # noqa: E501


def screens_licence(suite: str) -> str:
    """The licence of what an environment of this suite shows."""
    return _FREE_SCREENS.get(suite, OWNERS)


def is_separate(suite: str) -> bool:
    """Whether screens of this suite are a part of their own."""
    return suite not in _FREE_SCREENS
