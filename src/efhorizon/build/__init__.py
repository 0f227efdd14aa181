"""From an environment to a table: explore, consolidate, verify, store."""

from efhorizon.callable_module import make_callable

make_callable(__name__)  # `efhorizon.build(...)` builds a table: see library/
