"""Theory against practice: run GORP with the m that the exact effective horizon names, and with one episode less.

Prints the share of 2,001 runs that return an optimal policy. H is defined by the least m with which that share is at
least one half in expectation.
"""

import efhorizon as ef

# A lock of eight steps: action 1 is right and pays 1, action 0 pays nothing and leads back to the start.
mdp = ef.TabularMDP([[0, state + 1] for state in range(7)] + [[0, -1]], [[0, 1]] * 8, horizon=8)
found = ef.analyze(mdp).effective_horizon
print(f"H = {found.value:.2f} ({found.kind}) with k = {found.k}, m = {found.m}")

for m in (found.m, found.m - 1):
    runs = ef.gorp(mdp, k=found.k, m=m, runs=2001, seed=0)
    print(f"m = {m}: {runs.success_rate:.3f} of the runs are optimal, {runs.timesteps:,} timesteps each")
