"""Sweeps: which runs there are, how they are run, and the rows that they leave."""
