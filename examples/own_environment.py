"""An environment of your own, from Gymnasium class to effective horizon.

The environment is a corridor of ten cells that pays at its far end. It has to be deterministic after its reset and to
have a Discrete action space; nothing else is asked of it. From the shell, in this folder:

    efhorizon build --env own_environment:Corridor-v0 --horizon 20
    efhorizon analyze own_environment_Corridor-v0-T20

Run as a script, it does the same in Python and prints the number of states and the effective horizon.
"""

import gymnasium


class Corridor(gymnasium.Env):
    action_space = gymnasium.spaces.Discrete(2)  # 0: left, 1: right
    observation_space = gymnasium.spaces.Discrete(10)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = 0
        return self.cell, {}

    def step(self, action):
        self.cell = min(max(self.cell + (1 if action == 1 else -1), 0), 9)
        at_end = self.cell == 9
        return self.cell, float(at_end), at_end, False, {}


gymnasium.register("Corridor-v0", entry_point=Corridor)

if __name__ == "__main__":
    import efhorizon as ef

    mdp = ef.build("Corridor-v0", horizon=20)
    found = ef.analyze(mdp).effective_horizon
    print(f"{mdp.num_states} states, H = {found.value:.2f} ({found.kind}), {found.sample_complexity:,} timesteps")
