"""Sweeps: which runs there are, how they are run, and the rows that they leave."""

from efhorizon.callable_module import make_callable

make_callable(__name__)  # `efhorizon.study(...)` runs one: see library/
