"""Does a shaped reward make an environment easier? Not always, and H says so before anything is trained.

Shaping adds potential(next state) - potential(state) to each reward, which leaves the best way to the goal the best.
Prints H without and with the same potential, progress, on two MDPs. In a corridor, where action 0 is one step back, the
potential helps. In a lock, where action 0 leads back to the start, what random play gains on the way it loses
again: the potential adds noise and no signal, and H rises.
"""

import numpy as np

import efhorizon

LENGTH = 8
states = np.arange(LENGTH)
back = {"corridor": np.maximum(states - 1, 0), "lock": np.zeros(LENGTH, int)}

for name, first in back.items():
    transitions = np.column_stack([first, states + 1])  # [S, A]
    potential_gained = transitions - states[:, None]  # the potential of a state is its number, that of the goal LENGTH
    pays = np.where(transitions == LENGTH, LENGTH, 0)
    transitions[transitions == LENGTH] = -1
    for kind, rewards in {"sparse": pays, "shaped": pays + potential_gained}.items():
        mdp = efhorizon.TabularMDP(transitions, rewards, horizon=LENGTH + 2)
        found = efhorizon.analyze(mdp, max_k=5).effective_horizon
        print(f"{name}, {kind}: H = {found.value:.2f} ({found.kind}), {found.sample_complexity:,} timesteps")
