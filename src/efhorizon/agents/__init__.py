"""One algorithm = one file: GORP and its family on tables, PPO and DQN with two backends."""

import os

# XLA says at length when compiling takes more than a second; errors are raised anyway.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
