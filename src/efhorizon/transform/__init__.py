"""Changed copies of a table: other rewards, actions or horizons, without running the environment again."""
