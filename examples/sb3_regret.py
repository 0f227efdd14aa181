"""Your own learner on a table: PPO of Stable-Baselines3, with its exact regret in every episode.

The environment is a corridor of eight cells that pays 1 at its far end and 0.1 for giving up at the near one. Prints
the mean regret of the first and of the last fifty training episodes, and that of the policy that was learnt: the
optimal return less the return that was had. Needs: pip install 'efhorizon[train]'.
"""

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback

import efhorizon as ef

steps = [[cell - 1, cell + 1] for cell in range(7)] + [[6, -1]]  # [S, A]: left, right; -1 ends the episode
rewards = [[0.1, 0]] + [[0, 0]] * 6 + [[0, 1]]
env = ef.TableEnv(ef.TabularMDP(steps, rewards, horizon=40), info=True)


class RegretLog(BaseCallback):
    def _on_step(self):
        for info, done in zip(self.locals["infos"], self.locals["dones"], strict=True):
            if done:
                regrets.append(info["regret"])
                self.logger.record("rollout/regret", info["regret"])  # for TensorBoard
        return True


regrets = []
torch.set_num_threads(1)  # quicker for small networks
model = PPO("MlpPolicy", env, n_steps=256, learning_rate=3e-3, seed=0, device="cpu").learn(4_000, RegretLog())
first, last = sum(regrets[:50]) / 50, sum(regrets[-50:]) / 50
print(f"mean regret: {first:.3f} in the first fifty of {len(regrets)} episodes, {last:.3f} in the last fifty")

state, info = env.reset()
ended = False
while not ended:
    state, _, terminated, truncated, info = env.step(int(model.predict(state, deterministic=True)[0]))
    ended = terminated or truncated
print(f"regret of the policy: {info['regret']:.3f}")
