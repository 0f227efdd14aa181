"""From an environment to a table: explore, consolidate, verify, store."""
