"""A small MDP from plain arrays: how hard is it, and which state makes it so?

The MDP is a combination lock with eight steps: action 1 is right, action 0 sends you back to the start, and only the
last step pays. Prints the effective horizon, what it means in timesteps, and the state where learning is most likely
to go wrong.
"""

import efhorizon

transitions = [[0, state + 1] for state in range(7)] + [[0, -1]]  # [S, A]; -1 ends the episode
rewards = [[0, 0]] * 7 + [[0, 1]]  # [S, A]
mdp = efhorizon.TabularMDP(transitions, rewards, horizon=8, metadata={"id": "lock"})

analysis = efhorizon.analyze(mdp, max_k=6)
found = analysis.effective_horizon
print(mdp)
print(f"H = {found.value:.2f} ({found.kind}): k = {found.k}, m = {found.m}, {found.sample_complexity:,} timesteps")

why = analysis.deciding
print(f"hardest decision: state {why.state} at time {why.time}")
print(f"  each action's value if random play begins after {why.k} good actions: {list(why.q_values)}")
print(f"  each action's value if every later action is optimal: {list(why.optimal_q_values)}")
