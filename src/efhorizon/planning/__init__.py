"""Planning on tables: dynamic programming over time and states."""
