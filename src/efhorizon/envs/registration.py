"""The id under which `gymnasium.make` knows tables. Nothing heavy is imported before an environment is made."""

from __future__ import annotations

import gymnasium
from gymnasium.envs.registration import EnvSpec

TABLE_ID = "efhorizon/Table-v0"


def register_tables() -> None:
    """Make `gymnasium.make("efhorizon/Table-v0", mdp=mdp)` and `make_vec` work."""
    gymnasium.registry[TABLE_ID] = EnvSpec(
        TABLE_ID,
        entry_point="efhorizon.envs.table_env:TableEnv",
        vector_entry_point="efhorizon.envs.table_vector_env:TableVectorEnv",
    )
