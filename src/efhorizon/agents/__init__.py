"""One algorithm = one file: GORP and its family on tables, PPO and DQN with two backends."""
